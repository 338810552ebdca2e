//! What a person types to choose a span: `90s`, `14:00-14:20`, `yesterday 14:00-15:00`, ISO or Unix times. Pure text;
//! also the names of windows, which read back as what they are.

use shared::window::LONGEST_OF_SAMPLES;

/// The shortest window, ms.
pub const SHORTEST: i64 = 5_000;
/// The longest, ms: where history is kept for so long. A page holds the minutes of a window.
pub const LONGEST: i64 = 31 * DAY;
const DAY: i64 = 86_400_000;

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The newest so many ms.
    Last(i64),
    /// From, to; ms since the epoch.
    Span(i64, i64),
}

/// The longest window where history is kept for so long, ms.
pub fn longest(retention: i64) -> i64 {
    retention.clamp(LONGEST_OF_SAMPLES, LONGEST)
}

/// The name of a window: `90s`, `5m`, `1h30m`, `7d`. Fractions of a second are rounded away.
pub fn name(ms: i64) -> String {
    let s = (ms + 500) / 1000;
    if s < 120 && s != 60 {
        return format!("{s}s");
    }
    let parts = [(s / 86_400, 'd'), (s / 3600 % 24, 'h'), (s / 60 % 60, 'm'), (s % 60, 's')];
    parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}")).collect()
}

/// Length of a span like `90s`, `1h30m` or `2 h`, ms.
pub fn length(text: &str) -> Option<i64> {
    let (mut sum, mut number, mut any) = (0i64, None::<i64>, false);
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        if let Some(digit) = c.to_digit(10) {
            let so_far = number.unwrap_or(0).checked_mul(10)?;
            number = Some(so_far.checked_add(i64::from(digit))?);
            continue;
        }
        let unit =
            [('s', 1000), ('m', 60_000), ('h', 3_600_000), ('d', DAY)].into_iter().find(|(name, _)| *name == c)?;
        sum = sum.checked_add(number.take()?.checked_mul(unit.1)?)?;
        any = true;
    }
    (any && number.is_none()).then_some(sum)
}

/// Reads what was typed at `now` (ms since the epoch), where `local` gives local time minus UTC at an instant and a window
/// is at most `longest`, ms.
///
/// # Errors
/// A sentence that says what can be typed.
pub fn read(text: &str, now: i64, longest: i64, local: &dyn Fn(i64) -> i64) -> Result<Asked, String> {
    let text = text.trim().to_ascii_lowercase();
    if let Some(ms) = length(text.strip_prefix("last").unwrap_or(&text)) {
        return fits(ms, longest).map(|()| Asked::Last(ms));
    }
    for separator in ["..", "–", " to ", "/", "-"] {
        for (i, _) in text.match_indices(separator) {
            let (left, right) = (text[..i].trim(), text[i + separator.len()..].trim());
            let Some(from) = instant(left, now, None, local) else { continue };
            let Some(mut to) = instant(right, now, Some(from), local) else { continue };
            let timeless = |t: &str| t.len() < 9;
            // 23:50-00:10 goes over midnight.
            to += if to < from && timeless(right) { DAY } else { 0 };
            // Without a day, what would lie ahead was yesterday.
            let back = if from > now && timeless(left) { DAY } else { 0 };
            if to <= from {
                return Err("the end lies before the beginning".into());
            }
            return fits(to - from, longest).map(|()| Asked::Span(from - back, to - back));
        }
    }
    Err("write 90s, 14:00-14:20, yesterday 14:00-15:00 or 2026-11-21T14:00/2026-11-21T14:20".into())
}

fn fits(ms: i64, longest: i64) -> Result<(), String> {
    let fits = (SHORTEST..=longest).contains(&ms);
    if fits { Ok(()) } else { Err(format!("a window is 5s to {} long", name(longest))) }
}

/// An instant in words; without a day it is on that of `near`, else today.
fn instant(text: &str, now: i64, near: Option<i64>, local: &dyn Fn(i64) -> i64) -> Option<i64> {
    if text == "now" {
        return Some(now);
    }
    if let Some(ms) = since_epoch(text).filter(|ms| *ms >= 100_000_000_000) {
        return Some(ms);
    }
    let here = |t: i64| (t + local(t)).div_euclid(DAY);
    let today = here(now);
    let (zone, text) = match text.strip_suffix('z') {
        Some(rest) => (Some(0), rest),
        None => (None, text),
    };
    let (day, time) = match text.rsplit_once(['t', ' ']) {
        // The last letter of "yesterday" is no separator: what follows it is.
        Some((day, time)) if time.contains(':') => (Some(day.trim()), time),
        _ => (None, text),
    };
    let day = match day {
        None | Some("") => near.map_or(today, here),
        Some("today") => today,
        Some("yesterday") => today - 1,
        Some(date) => days(date)?,
    };
    let at = day * DAY + clock(time)?;
    // The offset at the instant itself, also where the clocks are set.
    Some(at - zone.unwrap_or_else(|| local(at - local(at))))
}

/// Unix seconds with at most three decimals, or milliseconds where the number is too large for seconds, as ms.
pub fn since_epoch(text: &str) -> Option<i64> {
    thousandths(text).map(|n| if n >= 100_000_000_000_000 { n / 1000 } else { n })
}

/// Milliseconds since the epoch as Unix seconds.
pub fn seconds(ms: i64) -> String {
    match ms % 1000 {
        0 => (ms / 1000).to_string(),
        rest => format!("{}.{rest:03}", ms / 1000).trim_end_matches('0').to_string(),
    }
}

/// A plain decimal number in thousandths, exactly: neither an exponent nor a sign is a time.
fn thousandths(text: &str) -> Option<i64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || whole.len() > 15 || !digits(whole) || !digits(part) {
        return None;
    }
    let part: String = part.chars().chain("000".chars()).take(3).collect();
    Some(whole.parse::<i64>().ok()? * 1000 + part.parse::<i64>().ok()?)
}

/// `14:00`, `9:05:30`, `14:00:00.250` as ms of the day.
fn clock(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let (h, m) = (parts.next()?.parse::<u8>().ok()?, parts.next()?.parse::<u8>().ok()?);
    let s = parts.next().map_or(Some(0), thousandths)?;
    let fine = h < 24 && m < 60 && s < 60_000 && parts.next().is_none();
    fine.then(|| i64::from(h) * 3_600_000 + i64::from(m) * 60_000 + s)
}

/// `2026-11-21` as days since the epoch.
fn days(text: &str) -> Option<i64> {
    let mut parts = text.split('-').map(|p| p.parse::<i64>().ok());
    let (y, m, d) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || !(1970..=9999).contains(&y) || !(1..=12).contains(&m) || !(1..=31).contains(&d) {
        return None;
    }
    // Years begin in March, so that the leap day is their last.
    let (y, m) = if m > 2 { (y, m - 3) } else { (y - 1, m + 9) };
    Some(y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + d - 1 - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::window;

    /// 2026-11-21 15:40:00 UTC; the clock on the wall is an hour ahead.
    const NOW: i64 = 1_795_275_600_000;

    fn ask(text: &str) -> Result<Asked, String> {
        read(text, NOW, LONGEST_OF_SAMPLES, &|_| 3_600_000)
    }

    fn span(from: i64, to: i64) -> Result<Asked, String> {
        Ok(Asked::Span(from, to))
    }

    #[test]
    fn names_of_windows_read_back() {
        for ms in [5_000, 60_000, 90_000, 119_000, 300_000, 3_661_000, 5_400_000, 43_200_000, 86_400_000, 694_800_000] {
            assert_eq!(length(&name(ms)), Some(ms), "{}", name(ms));
        }
        assert!(window::choices(i64::MAX).all(|w| name(w.ms) == w.name));
        assert_eq!(
            (length("1h 30m"), length("90"), length("m"), length("99999999999999h")),
            (Some(5_400_000), None, None, None)
        );
    }

    #[test]
    fn a_span_is_typed_as_people_write_it() {
        let midnight = NOW - (15 * 60 + 40) * 60_000 - 3_600_000;
        let at = |h: i64, m: i64| midnight + (h * 60 + m) * 60_000;
        assert_eq!(ask("90s"), Ok(Asked::Last(90_000)));
        assert_eq!(ask("last 1h30m"), Ok(Asked::Last(5_400_000)));
        assert_eq!(ask("14:00-14:20"), span(at(14, 0), at(14, 20)));
        assert_eq!(ask(" 14:00 – 14:20:30 "), span(at(14, 0), at(14, 20) + 30_000));
        assert_eq!(ask("yesterday 14:00-15:00"), span(at(14, 0) - DAY, at(15, 0) - DAY));
        assert_eq!(ask("yesterday 23:50-00:10"), span(at(23, 50) - DAY, at(0, 10)));
        assert_eq!(ask("23:50-23:55"), span(at(23, 50) - DAY, at(23, 55) - DAY), "not ahead of now");
        assert_eq!(ask("16:00 to now"), span(at(16, 0), NOW));
        assert_eq!(ask("2026-11-21T14:00/2026-11-21T14:20"), span(at(14, 0), at(14, 20)));
        assert_eq!(ask("2026-11-21t13:00z-13:20z"), span(at(14, 0), at(14, 20)));
        assert_eq!(ask("2026-11-20 14:00 - 2026-11-20 14:20"), span(at(14, 0) - DAY, at(14, 20) - DAY));
        assert_eq!(ask("1795271000-1795271600.5"), span(1_795_271_000_000, 1_795_271_600_500));
    }

    #[test]
    fn what_is_no_span_is_answered_with_what_is_one() {
        for text in ["", "soon", "14:00", "25:00-26:00", "14:00-", "2026-02-40T1:00/2:00"] {
            assert!(ask(text).is_err_and(|e| e.contains("90s")), "{text}");
        }
        assert_eq!(read("7d", NOW, longest(8 * DAY), &|_| 0), Ok(Asked::Last(7 * DAY)));
        assert!(read("9d", NOW, longest(8 * DAY), &|_| 0).is_err_and(|e| e.contains("5s to 8d")));
        for text in ["1s", "13h", "14:00-14:00:02"] {
            assert!(ask(text).is_err_and(|e| e.contains("5s to 12h")), "{text}");
        }
    }
}

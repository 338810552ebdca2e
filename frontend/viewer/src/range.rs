//! Reads the spans that a person types: `90s`, `14:00-14:20`, `yesterday 14:00-15:00`, ISO or Unix times. It also
//! writes the names of windows, which can be read again. It works on text alone.

use shared::unit::time;
use shared::window::MAX_SAMPLES_SPAN_MS;

/// The shortest window in ms.
pub const MIN_WINDOW_MS: i64 = 5_000;
/// The longest window in ms, where history is kept so long. A page holds the minutes of such a window.
pub const MAX_WINDOW_MS: i64 = 31 * DAY_MS;
const DAY_MS: i64 = 86_400_000;

/// The span that a person asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The newest span of this length in ms.
    Last(i64),
    /// Start and end, ms since the epoch.
    Span(i64, i64),
    /// An instant, ms since the epoch; a window of the present length stands around it.
    At(i64),
}

/// The longest window in ms for a history of `retention` ms.
pub fn longest(retention: i64) -> i64 {
    retention.clamp(MAX_SAMPLES_SPAN_MS, MAX_WINDOW_MS)
}

/// The name of a window of `ms` ms: `90s`, `5m`, `1h30m`, `7d`. It is rounded to whole seconds.
pub fn name(ms: i64) -> String {
    let s = (ms + 500) / 1000;
    if s < 120 && s != 60 {
        return format!("{s}s");
    }
    let parts = [(s / 86_400, 'd'), (s / 3600 % 24, 'h'), (s / 60 % 60, 'm'), (s % 60, 's')];
    parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}")).collect()
}

/// Reads a length like `90s`, `1h30m` or `2 h` as ms; None when the text is no length.
pub fn length(text: &str) -> Option<i64> {
    time::read(text)
}

/// Reads a typed span. `now` is ms since the epoch, `longest` the longest window in ms; `local` gives local time minus
/// UTC at an instant, in ms.
///
/// # Errors
/// Returns a sentence that says what can be typed.
pub fn read(text: &str, now: i64, longest: i64, local: &dyn Fn(i64) -> i64) -> Result<Asked, String> {
    let text = text.trim().to_ascii_lowercase();
    let spoken = text.strip_prefix("last").or(text.strip_prefix('-')).unwrap_or(&text).trim();
    let one = [("minute", "1m"), ("hour", "1h"), ("day", "1d"), ("week", "7d")];
    let spoken = one.iter().find(|(word, _)| *word == spoken).map_or(spoken, |(_, length)| length);
    if let Some(ms) = length(spoken) {
        return fits(ms, longest).map(|()| Asked::Last(ms));
    }
    for separator in ["..", "–", " to ", "/", "-"] {
        for (i, _) in text.match_indices(separator) {
            let (left, right) = (text[..i].trim(), text[i + separator.len()..].trim());
            let Some(from) = instant(left, now, None, local) else { continue };
            let Some(mut to) = instant(right, now, Some(from), local) else { continue };
            let timeless = |t: &str| t.len() < 9;
            // A span like 23:50-00:10 goes over midnight.
            to += if to < from && timeless(right) { DAY_MS } else { 0 };
            // A span without a day that would begin after now was yesterday.
            let back = if from > now && timeless(left) { DAY_MS } else { 0 };
            if to <= from {
                return Err("the end is before the beginning".into());
            }
            return fits(to - from, longest).map(|()| Asked::Span(from - back, to - back));
        }
    }
    // A number alone is more often a search than a Unix time, and a day alone is no instant.
    if text.contains(':')
        && let Some(at) = instant(&text, now, None, local)
    {
        // An instant without a day that would come after now was yesterday.
        let back = if at > now && text.len() < 9 { DAY_MS } else { 0 };
        return Ok(Asked::At(at - back));
    }
    Err("write 90s, 14:05, 14:00-14:20, yesterday 14:00-15:00 or 2026-11-21T14:00/2026-11-21T14:20".into())
}

fn fits(ms: i64, longest: i64) -> Result<(), String> {
    let fits = (MIN_WINDOW_MS..=longest).contains(&ms);
    if fits { Ok(()) } else { Err(format!("a window is 5s to {} long", name(longest))) }
}

/// Reads an instant. Without a day it is on the day of `near`, or today for None.
fn instant(text: &str, now: i64, near: Option<i64>, local: &dyn Fn(i64) -> i64) -> Option<i64> {
    if text == "now" {
        return Some(now);
    }
    if let Some(ms) = since_epoch(text).filter(|ms| *ms >= 100_000_000_000) {
        return Some(ms);
    }
    let here = |t: i64| (t + local(t)).div_euclid(DAY_MS);
    let today = here(now);
    let (zone, text) = match text.strip_suffix('z') {
        Some(rest) => (Some(0), rest),
        None => (None, text),
    };
    let (day, time) = match text.rsplit_once(['t', ' ']) {
        // The text is split at its last `t` or space. A part without a colon after it is no time: "yesterday" has a `t`
        // of its own.
        Some((day, time)) if time.contains(':') => (Some(day.trim()), time),
        _ => (None, text),
    };
    let day = match day {
        None | Some("") => near.map_or(today, here),
        Some("today") => today,
        Some("yesterday") => today - 1,
        Some(date) => days(date)?,
    };
    let at = day * DAY_MS + clock(time)?;
    // The offset is that of the instant itself, which may differ near a change of the clocks.
    Some(at - zone.unwrap_or_else(|| local(at - local(at))))
}

/// Reads Unix seconds with a fraction, or milliseconds when the number is too large for seconds, as ms since the epoch.
pub fn since_epoch(text: &str) -> Option<i64> {
    thousandths(text).map(|n| if n >= 100_000_000_000_000 { n / 1000 } else { n })
}

/// Writes ms since the epoch as Unix seconds.
pub fn seconds(ms: i64) -> String {
    match ms % 1000 {
        0 => (ms / 1000).to_string(),
        rest => format!("{}.{rest:03}", ms / 1000).trim_end_matches('0').to_string(),
    }
}

/// Reads a plain decimal number in thousandths without floating point; digits after the third decimal are dropped.
/// An exponent or a sign is not allowed.
fn thousandths(text: &str) -> Option<i64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || whole.len() > 15 || !digits(whole) || !digits(part) {
        return None;
    }
    let part: String = part.chars().chain("000".chars()).take(3).collect();
    Some(whole.parse::<i64>().ok()? * 1000 + part.parse::<i64>().ok()?)
}

/// Reads `14:00`, `9:05:30` or `14:00:00.250` as ms since midnight.
fn clock(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let (h, m) = (parts.next()?.parse::<u8>().ok()?, parts.next()?.parse::<u8>().ok()?);
    let s = parts.next().map_or(Some(0), thousandths)?;
    let fine = h < 24 && m < 60 && s < 60_000 && parts.next().is_none();
    fine.then(|| i64::from(h) * 3_600_000 + i64::from(m) * 60_000 + s)
}

/// Reads `2026-11-21` as days since the epoch.
fn days(text: &str) -> Option<i64> {
    let mut parts = text.split('-').map(|p| p.parse::<i64>().ok());
    let day = shared::date::day(parts.next()??, parts.next()??, parts.next()??)?;
    parts.next().is_none().then_some(day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::window;

    /// This is 2026-11-21 15:40:00 UTC; local time is one hour ahead.
    const NOW: i64 = 1_795_275_600_000;

    fn ask(text: &str) -> Result<Asked, String> {
        read(text, NOW, MAX_SAMPLES_SPAN_MS, &|_| 3_600_000)
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
        assert_eq!((ask("-30m"), ask("last hour")), (Ok(Asked::Last(1_800_000)), Ok(Asked::Last(3_600_000))));
        assert_eq!((ask("14:05"), ask("yesterday 9:00")), (Ok(Asked::At(at(14, 5))), Ok(Asked::At(at(9, 0) - DAY_MS))));
        assert_eq!(ask("23:50"), Ok(Asked::At(at(23, 50) - DAY_MS)), "not ahead of now");
        assert_eq!(ask("14:00-14:20"), span(at(14, 0), at(14, 20)));
        assert_eq!(ask(" 14:00 – 14:20:30 "), span(at(14, 0), at(14, 20) + 30_000));
        assert_eq!(ask("yesterday 14:00-15:00"), span(at(14, 0) - DAY_MS, at(15, 0) - DAY_MS));
        assert_eq!(ask("yesterday 23:50-00:10"), span(at(23, 50) - DAY_MS, at(0, 10)));
        assert_eq!(ask("23:50-23:55"), span(at(23, 50) - DAY_MS, at(23, 55) - DAY_MS), "not ahead of now");
        assert_eq!(ask("16:00 to now"), span(at(16, 0), NOW));
        assert_eq!(ask("2026-11-21T14:00/2026-11-21T14:20"), span(at(14, 0), at(14, 20)));
        assert_eq!(ask("2026-11-21t13:00z-13:20z"), span(at(14, 0), at(14, 20)));
        assert_eq!(ask("2026-11-20 14:00 - 2026-11-20 14:20"), span(at(14, 0) - DAY_MS, at(14, 20) - DAY_MS));
        assert_eq!(ask("1795271000-1795271600.5"), span(1_795_271_000_000, 1_795_271_600_500));
    }

    #[test]
    fn what_is_no_span_is_answered_with_what_is_one() {
        for text in ["", "soon", "25:00-26:00", "14:00-", "2026-02-40T1:00/2:00"] {
            assert!(ask(text).is_err_and(|e| e.contains("90s")), "{text}");
        }
        assert_eq!(read("7d", NOW, longest(8 * DAY_MS), &|_| 0), Ok(Asked::Last(7 * DAY_MS)));
        assert!(read("9d", NOW, longest(8 * DAY_MS), &|_| 0).is_err_and(|e| e.contains("5s to 8d")));
        for text in ["1s", "13h", "14:00-14:00:02"] {
            assert!(ask(text).is_err_and(|e| e.contains("5s to 12h")), "{text}");
        }
    }
}

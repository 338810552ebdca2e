//! Instants as people type them: `14:05`, `yesterday 2:15 pm`, `-1h`, `2026-11-21T14:00Z`, and Unix seconds. A text is
//! parsed without a clock; [`Typed::resolve`] needs the current time and the zone.

use super::time;
use crate::date;

const DAY: i64 = time::DAY;

/// Minimum of a typed Unix time, milliseconds (1973): a smaller number is more often something else.
const LEAST_UNIX: i64 = 100_000_000_000;

/// Maximum offset of a zone from UTC, milliseconds.
const MAX_OFFSET: i64 = 18 * time::HOUR;

/// Most words of a typed time: `fri 27 nov 2026 2:15 pm utc` has seven.
const MAX_WORDS: usize = 8;

/// Years in which a day without its year is searched, from this one back: every eighth year or less has a leap day.
const YEARS_BACK: i64 = 8;

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Ends of a time with twelve hours, and the hours that each adds.
const HALVES: [(&str, u8); 4] = [("am", 0), ("a.m.", 0), ("pm", 12), ("p.m.", 12)];

/// A time as a person typed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typed {
    /// An instant, milliseconds since the Unix epoch.
    At(i64),
    /// A length of time before now, milliseconds.
    Ago(i64),
    /// A day, a time of day, or both.
    OnDay {
        /// The day; None: the nearest one.
        day: Option<TypedDay>,
        /// Milliseconds since midnight; None: the whole day.
        time: Option<i64>,
        /// Offset of its zone from UTC, milliseconds; None: local time.
        offset: Option<i64>,
    },
}

/// A day as a person typed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypedDay {
    #[allow(missing_docs, reason = "the name says it")]
    Today,
    #[allow(missing_docs, reason = "the name says it")]
    Yesterday,
    /// The last one of this weekday, from Monday (0) on; today counts, unless the time of day is still to come.
    Weekday(i64),
    /// The last one of this weekday before today.
    LastWeekday(i64),
    /// The last day of this name, from January (1) on; today counts.
    Named {
        /// The month.
        month: i64,
        /// The day of the month.
        day: i64,
    },
    /// Days since the Unix epoch.
    Date(i64),
}

/// An instant, or a day from its begin to its end; milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The instant, or the begin of the day.
    pub from: i64,
    /// The same instant, or the end of the day.
    pub to: i64,
    /// The same time on the day before and on the day after. None for a time that has a day.
    pub neighbors: Option<(i64, i64)>,
}

impl Typed {
    /// This time in the zone of another one, if it has none itself: `14:00-15:00 utc` has one zone.
    #[must_use]
    pub fn in_zone_of(mut self, other: Typed) -> Typed {
        if let (Typed::OnDay { offset, .. }, Typed::OnDay { offset: known, .. }) = (&mut self, other) {
            *offset = offset.or(known);
        }
        self
    }

    /// The instant on a clock that shows `now`, milliseconds since the Unix epoch. `local` gives local time minus UTC
    /// at an instant, milliseconds. A time without a day is on the day of `near`, or today for None.
    pub fn resolve(self, now: i64, local: &dyn Fn(i64) -> i64, near: Option<i64>) -> Resolved {
        let instant = |t: i64| Resolved { from: t, to: t, neighbors: None };
        let (day, time, offset) = match self {
            Typed::At(t) => return instant(t),
            Typed::Ago(ms) => return instant(now - ms),
            Typed::OnDay { day, time, offset } => (day, time, offset),
        };
        let at = |day: i64, ms: i64| {
            let at = day * DAY + ms;
            // The offset is that of the instant itself, which may differ near a change of the clocks.
            at - offset.unwrap_or_else(|| local(at - local(at)))
        };
        let day_of = |t: i64| (t + offset.unwrap_or_else(|| local(t))).div_euclid(DAY);
        let today = day_of(now);
        // The first day of the epoch was a Thursday.
        let days_since = |weekday: i64| (today + 3 - weekday).rem_euclid(7);
        let number = match day {
            Some(TypedDay::Today) => today,
            Some(TypedDay::Yesterday) => today - 1,
            Some(TypedDay::Weekday(weekday)) => match today - days_since(weekday) {
                number if time.is_some_and(|time| at(number, time) > now) => number - 7,
                number => number,
            },
            Some(TypedDay::LastWeekday(weekday)) => match days_since(weekday) {
                0 => today - 7,
                days => today - days,
            },
            Some(TypedDay::Named { month, day }) => find_last_named(today, month, day),
            Some(TypedDay::Date(number)) => number,
            None => near.map_or(today, day_of),
        };
        match time {
            Some(time) => {
                let neighbors = day.is_none().then(|| (at(number - 1, time), at(number + 1, time)));
                Resolved { neighbors, ..instant(at(number, time)) }
            }
            None => Resolved { from: at(number, 0), to: at(number + 1, 0), neighbors: None },
        }
    }
}

impl Resolved {
    /// A time without a day that would come after now was yesterday.
    #[must_use]
    pub fn past(self, now: i64) -> Resolved {
        match self.neighbors {
            Some((before, _)) if self.from > now => Resolved { from: before, to: before, neighbors: None },
            _ => self,
        }
    }
}

/// The last day of this name up to `today`; both are days since the epoch.
fn find_last_named(today: i64, month: i64, day: i64) -> i64 {
    let (year, ..) = date::civil(today);
    let of = |back: i64| date::day(year - back, month, day).filter(|number| *number <= today);
    (0..=YEARS_BACK).find_map(of).unwrap_or(today)
}

/// Reads a time: `now`, `-1h`, `5 minutes ago`, `14:05`, `yesterday at 2:15 pm`, `2pm today`, `last friday`,
/// `2026-11-21`, `20 Nov 14:05`, `2026-11-21T14:00+02:00`, `14:05 UTC+1`, or Unix seconds since 1973. None for another
/// text.
pub fn read(text: &str) -> Option<Typed> {
    let text = text.trim().to_ascii_lowercase();
    if text == "now" {
        return Some(Typed::Ago(0));
    }
    if let Some(ms) = before_now(&text) {
        return Some(Typed::Ago(ms));
    }
    if let Some(ms) = since_epoch(&text).filter(|ms| *ms >= LEAST_UNIX) {
        return Some(Typed::At(ms));
    }
    let (text, offset) = split_zone(&text);
    // In a date the letter t precedes the time.
    let (date, rest) = match text.get(..10).filter(|date| days(date).is_some()) {
        Some(date) => (date, text[date.len()..].strip_prefix('t').unwrap_or(&text[date.len()..])),
        None => ("", text),
    };
    let parts = [date].into_iter().chain(rest.split_whitespace()).map(|word| word.trim_end_matches(','));
    let said = parts.filter(|word| !["", "at", "on", "around"].contains(word));
    let mut words: Vec<&str> = said.take(MAX_WORDS + 1).collect();
    let zone = words.iter().position(|word| named_zone(word).is_some()).map(|at| words.remove(at));
    if words.is_empty() || words.len() > MAX_WORDS || zone.is_some() && offset.is_some() {
        return None;
    }
    let (day, time) = split_day_and_time(&words)?;
    Some(Typed::OnDay { day, time, offset: offset.or_else(|| named_zone(zone?)) })
}

/// Reads Unix seconds with a fraction, or milliseconds when the number is too large for seconds, as ms since the epoch.
pub fn since_epoch(text: &str) -> Option<i64> {
    thousandths(text).map(|n| if n >= 100_000_000_000_000 { n / 1000 } else { n })
}

/// Writes ms since the epoch as Unix seconds.
pub fn seconds(ms: i64) -> String {
    let (sign, whole) = (if ms < 0 { "-" } else { "" }, ms.unsigned_abs());
    match whole % 1000 {
        0 => format!("{sign}{}", whole / 1000),
        rest => format!("{sign}{}.{rest:03}", whole / 1000).trim_end_matches('0').to_string(),
    }
}

/// Reads `now-5m`, `-5m`, `5 minutes ago` or `an hour ago` as a length before now, ms.
fn before_now(text: &str) -> Option<i64> {
    if let Some(past) = text.strip_suffix("ago") {
        let past = past.trim();
        let one = past.strip_prefix("an ").or_else(|| past.strip_prefix("a "));
        return time::read(past).or_else(|| time::read(&format!("1 {}", one?)));
    }
    time::read(text.strip_prefix("now").map_or(text, str::trim_start).strip_prefix('-')?.trim_start())
}

/// Reads a zone by its name: `utc`, `gmt`, `utc+1`, or `utc−5:30` as the page writes it. Milliseconds.
fn named_zone(word: &str) -> Option<i64> {
    let rest = word.strip_prefix("utc").or_else(|| word.strip_prefix("gmt"))?;
    if rest.is_empty() {
        return Some(0);
    }
    let rest = rest.replace('−', "-");
    let (sign, hours) = rest.split_at_checked(1).filter(|(sign, _)| ["+", "-"].contains(sign))?;
    zone_offset(&rest).or_else(|| zone_offset(&format!("{sign}0{hours}")))
}

/// Splits a zone off: `z`, an offset such as `+02:00`, or behind the time of a date also `-05:00`. Without a date, what
/// follows a `-` is the end of a span.
fn split_zone(text: &str) -> (&str, Option<i64>) {
    if let Some(rest) = text.strip_suffix('z').filter(|rest| rest.contains(':')) {
        return (rest, Some(0));
    }
    let is_dated = text.get(..10).is_some_and(|date| days(date).is_some());
    let is_zone = |at: usize| (is_dated && at > 10 || text[at..].starts_with('+')) && text[..at].contains(':');
    let sign = text.rfind(['+', '-']).filter(|at| is_zone(*at) && !text[..*at].ends_with(char::is_alphabetic));
    let offset = sign.and_then(|at| Some((text[..at].trim_end(), zone_offset(&text[at..])?)));
    offset.map_or((text, None), |(rest, offset)| (rest, Some(offset)))
}

/// Reads `+02:00`, `-0530` or `+01`, milliseconds.
fn zone_offset(text: &str) -> Option<i64> {
    let (sign, rest) = text.split_at_checked(1)?;
    let digits = match rest.split_once(':') {
        Some((hours, minutes)) if hours.len() == 2 && minutes.len() == 2 => format!("{hours}{minutes}"),
        Some(_) => return None,
        None => rest.to_string(),
    };
    let number = |part: &str| part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse::<i64>().ok())?;
    let (hours, minutes) = match digits.len() {
        2 => (number(&digits)?, 0),
        4 => (number(digits.get(..2)?)?, number(digits.get(2..)?)?),
        _ => return None,
    };
    let ms = hours * time::HOUR + minutes * time::MINUTE;
    let fits = minutes < 60 && ms <= MAX_OFFSET;
    fits.then_some(if sign == "-" { -ms } else { ms })
}

/// The day and the time of day of a text in words, in any order: `yesterday 2:15 pm`, `noon today`, and
/// `fri nov 27 14:05:00 2026` of the command `date`. A time has one word or two.
fn split_day_and_time(words: &[&str]) -> Option<(Option<TypedDay>, Option<i64>)> {
    if let Some(day) = day(words) {
        return Some((Some(day), None));
    }
    for len in [2, 1] {
        for (at, part) in words.windows(len).enumerate() {
            let Some(time) = clock(&part.join(" ")) else { continue };
            let rest = [&words[..at], &words[at + len..]].concat();
            let day = day(&rest);
            if day.is_some() || rest.is_empty() {
                return Some((day, Some(time)));
            }
        }
    }
    None
}

/// Reads a day from its date or its name.
fn day(words: &[&str]) -> Option<TypedDay> {
    match words {
        ["today"] => Some(TypedDay::Today),
        ["yesterday"] => Some(TypedDay::Yesterday),
        ["last", day] => weekday(day).map(TypedDay::LastWeekday),
        [day] => weekday(day).map(TypedDay::Weekday).or_else(|| days(day).map(TypedDay::Date)),
        [day, rest @ ..] if weekday(day).is_some() => dated(rest),
        _ => dated(words),
    }
}

/// Reads a day of the week by its name or the first three letters of it.
fn weekday(text: &str) -> Option<i64> {
    (0..).zip(WEEKDAYS).find(|(_, name)| text == *name || text == &name[..3]).map(|(number, _)| number)
}

/// Reads `2026-11-27`, or the name of a day with its month or the first three letters of it: `27 nov`, `november 27th`,
/// `nov 27 2026`.
fn dated(words: &[&str]) -> Option<TypedDay> {
    let month_of = |text: &str| {
        let is = |name: &str| text == name || text == &name[..3] || text == "sept" && name == "september";
        (1..).zip(MONTHS).find(|(_, name)| is(name)).map(|(number, _)| number)
    };
    let (first, second, year) = match words {
        [one] => return days(one).map(TypedDay::Date),
        [first, second] => (first, second, None),
        [first, second, year] => (first, second, Some(year.parse::<i64>().ok()?)),
        _ => return None,
    };
    let (month, number) = match month_of(first) {
        Some(month) => (month, second),
        None => (month_of(second)?, first),
    };
    let bare = ["st", "nd", "rd", "th"].iter().find_map(|end| number.strip_suffix(end)).unwrap_or(number);
    let day = bare.parse::<i64>().ok()?;
    match year {
        Some(year) => date::day(year, month, day).map(TypedDay::Date),
        // A year with a leap day has all days that there are.
        None => date::day(2000, month, day).map(|_| TypedDay::Named { month, day }),
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

/// Reads `14:00`, `9:05:30`, `14:00:00.250`, `14:00:00,250`, `2pm`, `2:15 p.m.` or `noon` as ms since midnight.
fn clock(text: &str) -> Option<i64> {
    let text = match text {
        "noon" => "12:00",
        "midnight" => "0:00",
        _ => text,
    };
    let half = HALVES.iter().find_map(|(end, hours)| Some((text.strip_suffix(end)?.trim_end(), *hours)));
    let mut parts = half.map_or(text, |(rest, _)| rest).split(':');
    let h = parts.next()?.parse::<u8>().ok()?;
    let h = match half {
        Some((_, hours)) => (1..=12).contains(&h).then_some(h % 12 + hours)?,
        None => h,
    };
    let m = match parts.next() {
        Some(minutes) => minutes.parse::<u8>().ok()?,
        None => half.map(|_| 0)?,
    };
    // Logs may write a comma before the milliseconds.
    let s = parts.next().map_or(Some(0), |seconds| thousandths(&seconds.replace(',', ".")))?;
    let fine = h < 24 && m < 60 && s < time::MINUTE && parts.next().is_none();
    fine.then(|| i64::from(h) * time::HOUR + i64::from(m) * time::MINUTE + s)
}

/// Reads `2026-11-21` as days since the epoch.
fn days(text: &str) -> Option<i64> {
    let mut parts = text.split('-').map(|p| p.parse::<i64>().ok());
    let day = date::day(parts.next()??, parts.next()??, parts.next()??)?;
    parts.next().is_none().then_some(day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This is 2026-11-21 15:40:00 UTC, a Saturday; local time is one hour ahead.
    const NOW: i64 = 1_795_275_600_000;
    const LOCAL_MIDNIGHT: i64 = NOW - (15 * 60 + 40) * time::MINUTE - time::HOUR;

    fn resolved(text: &str) -> Option<(i64, i64)> {
        let at = read(text)?.resolve(NOW, &|_| time::HOUR, None).past(NOW);
        Some((at.from - LOCAL_MIDNIGHT, at.to - LOCAL_MIDNIGHT))
    }

    #[test]
    fn an_instant_is_read_as_people_type_it() {
        let at = |h: i64, m: i64| h * time::HOUR + m * time::MINUTE;
        let now = at(16, 40);
        for (text, t) in [
            ("now", now),
            ("-1h", now - at(1, 0)),
            ("now-1h30m", now - at(1, 30)),
            ("5 minutes ago", now - at(0, 5)),
            ("an hour ago", now - at(1, 0)),
            ("14:05", at(14, 5)),
            ("2:15pm", at(14, 15)),
            ("Today 2:15 PM", at(14, 15)),
            ("6pm", at(18, 0) - DAY),
            ("noon", at(12, 0)),
            ("yesterday 9:00", at(9, 0) - DAY),
            ("fri 9:00", at(9, 0) - DAY),
            ("2026-11-21 14:00", at(14, 0)),
            ("2026-11-21T14:00:01.250", at(14, 0) + 1_250),
            ("2026-11-21T13:00Z", at(14, 0)),
            ("13:00 utc", at(14, 0)),
            ("2026-11-21T15:00:00.250+02:00", at(14, 0) + 250),
            ("2026-11-21 07:30 -0530", at(14, 0)),
            ("2026-11-21T14:00+01", at(14, 0)),
            ("14:05+01:00", at(14, 5)),
            ("14:05 +0200", at(13, 5)),
            ("13:05 gmt", at(14, 5)),
            ("14:05 UTC+1", at(14, 5)),
            ("7:35 UTC−5:30", at(14, 5)),
            ("today utc 13:05", at(14, 5)),
            ("2:15 p.m.", at(14, 15)),
            ("at 2pm", at(14, 0)),
            ("around 14:05", at(14, 5)),
            ("14:05 yesterday", at(14, 5) - DAY),
            ("2 pm today", at(14, 0)),
            ("noon yesterday", at(12, 0) - DAY),
            ("saturday 18:00", at(18, 0) - 7 * DAY),
            ("last saturday 9:00", at(9, 0) - 7 * DAY),
            ("3pm last friday", at(15, 0) - DAY),
            ("20 Nov 14:05:00", at(14, 5) - DAY),
            ("Nov 20 2:05:00 PM", at(14, 5) - DAY),
            ("Nov 20, 2026 14:05", at(14, 5) - DAY),
            ("Fri Nov 20 14:05:00 2026", at(14, 5) - DAY),
            ("Fri Nov 20 13:05:00 UTC 2026", at(14, 5) - DAY),
            ("2026-11-21 14:05:00,250", at(14, 5) + 250),
            ("1795271000.5", 1_795_271_000_500 - LOCAL_MIDNIGHT),
            ("1795271000500", 1_795_271_000_500 - LOCAL_MIDNIGHT),
        ] {
            assert_eq!(resolved(text), Some((t, t)), "{text}");
        }
        for (text, day) in [
            ("today", 0),
            ("yesterday", -1),
            ("saturday", 0),
            ("last saturday", -7),
            ("last fri", -1),
            ("sun", -6),
            ("2026-11-20", -1),
            ("20 november", -1),
            ("nov 20th", -1),
            ("Sept 21", -61),
            ("22 Nov", -364),
        ] {
            assert_eq!(resolved(text), Some((day * DAY, (day + 1) * DAY)), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_instants() {
        for text in [
            "",
            "soon",
            "14",
            "-3",
            "1h",
            "25:00",
            "13pm",
            "0am",
            "nowish",
            "now-",
            "yesterday ish",
            "2026-02-30",
            "2026-11-21T25:00Z",
            "2026-11-21T14:00+2",
            "2026-11-21T14:00+19:00",
            "2026-11-21T14:00+02:60",
            "2026-11-21T14:00+é",
            "14:05 utc+2+01:00",
            "noon gpu",
            "may",
            "may 32",
            "feb 30",
            "last night",
            "utc",
            "utc+é",
            "1 2 3 4 5 6 7 8 9 14:05",
            "é2pm",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn a_time_near_a_change_of_the_clocks_has_the_offset_of_its_own() {
        // Local time is one hour ahead, and two from this instant on.
        let change = LOCAL_MIDNIGHT + 3 * time::HOUR;
        let local = |t: i64| if t < change { time::HOUR } else { 2 * time::HOUR };
        let at = |text: &str| read(text).map(|typed| typed.resolve(NOW, &local, None).from);
        assert_eq!(at("2026-11-21 01:00"), Some(LOCAL_MIDNIGHT + time::HOUR));
        assert_eq!(at("2026-11-21 05:00"), Some(LOCAL_MIDNIGHT + 4 * time::HOUR));
        // The same time of the day before is 23 hours earlier.
        let before = read("23:50").map(|typed| typed.resolve(NOW, &local, None).past(NOW).from);
        assert_eq!(before, Some(LOCAL_MIDNIGHT - 10 * time::MINUTE));
    }

    #[test]
    fn unix_seconds_have_a_fraction_only_where_there_is_one() {
        for (ms, text) in
            [(0, "0"), (1_500, "1.5"), (-1, "-0.001"), (-1_500, "-1.5"), (1_795_271_000_500, "1795271000.5")]
        {
            assert_eq!(seconds(ms), text);
        }
    }
}

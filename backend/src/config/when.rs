//! Instants and steps as people write them, on the command line and in a query.

use settings::length::duration;
use shared::date::from_date;

/// An instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Milliseconds since the Unix epoch.
    At(i64),
    /// Milliseconds before now; 0 is now.
    Ago(i64),
}

impl When {
    /// The instant in milliseconds since the Unix epoch, where `now` is one.
    pub fn at(self, now: i64) -> i64 {
        match self {
            When::At(t) => t,
            When::Ago(ms) => now - ms,
        }
    }
}

/// Milliseconds of a length of time; numbers without a unit are seconds.
fn length(text: &str) -> Option<i64> {
    let ms = match text.parse::<f64>() {
        Ok(seconds) => seconds * 1000.0,
        Err(_) => duration(text).ok()?.as_millis() as f64,
    };
    (ms.is_finite() && ms.abs() < 1e15).then(|| ms.round() as i64)
}

/// Unix seconds, a date and time as in RFC 3339, `now`, or a time before now such as `-1h` and `now-90s`.
///
/// # Errors
/// What to write instead, the rest of a sentence.
pub fn when(text: &str) -> Result<When, String> {
    let wrong = || {
        format!(
            "{text:?} is not a time; write Unix seconds, such as 1700000000.5, a date and time, such as \
            2026-05-01T14:00:00Z, or a time before now, such as -1h or now"
        )
    };
    let before_now = text.strip_prefix("now").map(|rest| rest.strip_prefix('-').ok_or(rest));
    match before_now {
        Some(Err("")) => return Ok(When::Ago(0)),
        Some(Err(_)) => return Err(wrong()),
        Some(Ok(rest)) => return length(rest).filter(|ms| *ms >= 0).map(When::Ago).ok_or_else(wrong),
        None => {}
    }
    // A number alone is an instant, even before 1970; with a unit it is a length of time.
    match (text.parse::<f64>(), text.strip_prefix('-')) {
        (Ok(_), _) => length(text).map(When::At).ok_or_else(wrong),
        (Err(_), Some(rest)) => length(rest).map(When::Ago).ok_or_else(wrong),
        (Err(_), None) => from_date(text).map(When::At).ok_or_else(wrong),
    }
}

/// The width of a roll-up's buckets, milliseconds, at least 1; numbers without a unit are seconds.
///
/// # Errors
/// What to write instead, the rest of a sentence.
pub fn step(text: &str) -> Result<i64, String> {
    let ms = length(text).filter(|ms| *ms >= 1);
    ms.ok_or_else(|| format!("{text:?} is not a duration above zero; write one like 10s, 500ms, 5m or 1d"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_absolute_or_before_now() {
        assert_eq!(when("1700000000.12"), Ok(When::At(1_700_000_000_120)));
        assert_eq!(when("-3"), Ok(When::At(-3_000)), "a number alone is Unix seconds");
        assert_eq!(when("now"), Ok(When::Ago(0)));
        assert_eq!(when("-1h30m").map(|w| w.at(10_000_000)), Ok(10_000_000 - 5_400_000));
        assert_eq!(when("now-90s"), Ok(When::Ago(90_000)));
        assert_eq!(when("now-90"), Ok(When::Ago(90_000)));
        assert_eq!(when("2024-05-01T14:34:56.789+02:00"), Ok(When::At(1_714_566_896_789)));
        assert_eq!(when("2024-05-01 12:34"), Ok(When::At(1_714_566_840_000)), "without a zone it is UTC");
        for text in [
            "yesterday",
            "14:00",
            "2024-05-01T25:00Z",
            "",
            "-",
            "now-",
            "nowish",
            "1h",
            "nan",
            "inf",
            "1e30",
            "now--1",
            "-1x",
        ] {
            assert!(when(text).is_err_and(|why| why.contains("Unix seconds")), "{text}");
        }
    }

    #[test]
    fn steps_are_durations() {
        for (text, ms) in [("10", 10_000), ("10s", 10_000), ("500ms", 500), ("5m", 300_000), ("1d", 86_400_000)] {
            assert_eq!(step(text), Ok(ms));
        }
        for text in ["10xs", "0", "-3s", "", "nan", "10y"] {
            assert!(step(text).is_err_and(|why| why.contains("duration")), "{text}");
        }
    }
}

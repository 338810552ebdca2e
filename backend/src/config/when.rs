//! Typed instants and steps, on the command line and in a query.

use settings::length::duration;
use shared::unit::instant::{self, Resolved, Typed};
use system::local_time;

/// An instant of the command line, in the time zone of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When(Typed);

impl When {
    /// The instant, or the begin of the day, at the time `now`; milliseconds since the Unix epoch.
    pub fn begin(self, now: i64) -> i64 {
        resolved(self.0, now, &local_time::offset).from
    }

    /// The instant, or the end of the day.
    pub fn end(self, now: i64) -> i64 {
        resolved(self.0, now, &local_time::offset).to
    }
}

/// The instants of a typed time; `local` gives local time minus UTC at an instant. All are milliseconds.
fn resolved(typed: Typed, now: i64, local: &dyn Fn(i64) -> i64) -> Resolved {
    typed.resolve(now, local, None).past(now)
}

/// The instant of a query, or the day from its begin to its end. A server does not know the client's time zone, so a
/// time without one is UTC. Milliseconds since the Unix epoch, as `now`.
///
/// # Errors
/// The text is no time: the rest of a sentence that gives the remedy.
pub fn asked(text: &str, now: i64) -> Result<Resolved, String> {
    typed(text).map(|typed| resolved(typed, now, &|_| 0))
}

/// Reads an instant of the command line.
///
/// # Errors
/// The text is no time: the rest of a sentence that gives the remedy.
pub fn when(text: &str) -> Result<When, String> {
    typed(text).map(When)
}

/// Milliseconds of a length of time; numbers without a unit are seconds.
fn length(text: &str) -> Option<i64> {
    let ms = match text.parse::<f64>() {
        Ok(seconds) => seconds * 1000.0,
        Err(_) => duration(text).ok()?.as_millis() as f64,
    };
    (ms.is_finite() && ms.abs() < 1e15).then(|| ms.round() as i64)
}

/// The syntax of [`instant::read`], and also plain numbers, which are Unix seconds even before 1970, and `now-90`.
fn typed(text: &str) -> Result<Typed, String> {
    let unix = |digits: &str| instant::since_epoch(digits);
    let number = match text.strip_prefix('-') {
        Some(digits) => unix(digits).map(|ms| Typed::At(-ms)),
        None => unix(text).map(Typed::At),
    };
    let before = || length(text.strip_prefix("now-")?).filter(|ms| *ms >= 0).map(Typed::Ago);
    number.or_else(|| instant::read(text)).or_else(before).ok_or_else(|| {
        format!(
            "{text:?} is not a time; write Unix seconds, such as 1700000000.5, a date and time, such as \
            2026-05-01T14:00:00Z, a time of day, such as 2:15pm or yesterday 14:00, or a time before now, such as -1h \
            or now"
        )
    })
}

/// The width of a roll-up's buckets, milliseconds, at least 1; numbers without a unit are seconds.
///
/// # Errors
/// The rest of a sentence that gives the remedy.
pub fn step(text: &str) -> Result<i64, String> {
    let ms = length(text).filter(|ms| *ms >= 1);
    ms.ok_or_else(|| format!("{text:?} is not a duration above zero; write one like 10s, 500ms, 5m or 1d"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_absolute_or_before_now() {
        // This is 2026-11-21 15:40:00 UTC.
        const NOW: i64 = 1_795_275_600_000;
        const HOUR: i64 = 3_600_000;
        let midnight = NOW - 15 * HOUR - 40 * 60_000;
        for (text, from, to) in [
            ("1700000000.12", 1_700_000_000_120, 1_700_000_000_120),
            ("-3", -3_000, -3_000),
            ("now", NOW, NOW),
            ("-1h30m", NOW - 5_400_000, NOW - 5_400_000),
            ("now-90s", NOW - 90_000, NOW - 90_000),
            ("now-90", NOW - 90_000, NOW - 90_000),
            ("2024-05-01T14:34:56.789+02:00", 1_714_566_896_789, 1_714_566_896_789),
            ("2024-05-01 12:34", 1_714_566_840_000, 1_714_566_840_000),
            ("2:15pm", midnight + 14 * HOUR + 900_000, midnight + 14 * HOUR + 900_000),
            ("23:50", midnight - 600_000, midnight - 600_000),
            ("yesterday", midnight - 24 * HOUR, midnight),
            ("2026-11-20", midnight - 24 * HOUR, midnight),
        ] {
            assert_eq!(asked(text, NOW).map(|at| (at.from, at.to)), Ok((from, to)), "{text}");
        }
        let local = |text| typed(text).map(|typed| resolved(typed, NOW, &|_| HOUR).from);
        assert_eq!(local("2:15pm"), Ok(midnight + 13 * HOUR + 900_000), "in the zone of the system");
        for text in
            ["soon", "2024-05-01T25:00Z", "", "-", "now-", "nowish", "1h", "nan", "inf", "1e30", "now--1", "-1x"]
        {
            assert!(asked(text, NOW).is_err_and(|why| why.contains("Unix seconds")), "{text}");
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

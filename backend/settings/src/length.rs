//! Lengths of time as a user writes them, by [`shared::unit::time`]. Each error is the rest of a sentence with the
//! correct form.

use shared::unit::time;
use std::time::Duration;

/// Retention of ticks. The upper end, ten years, only catches typing errors.
///
/// # Errors
/// The rest of a sentence with the correct form.
pub fn retention(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(60), Duration::from_secs(3650 * 86_400))
}

/// Parses a length of time between two limits.
///
/// # Errors
/// The rest of a sentence with the correct form.
pub fn within(text: &str, least: Duration, most: Duration) -> Result<Duration, String> {
    let value = duration(text)?;
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(format!("{text} is out of range; write {} to {}", show_duration(least), show_duration(most)))
}

/// Whole or decimal numbers, each with its unit: `100ms`, `1.5s`, `1h30m`. Whole milliseconds.
///
/// # Errors
/// The rest of a sentence with the correct form.
pub fn duration(text: &str) -> Result<Duration, String> {
    let ms = time::read(text).and_then(|ms| u64::try_from(ms).ok());
    ms.map(Duration::from_millis)
        .ok_or_else(|| format!("\"{text}\" is not a duration; write a number with its unit, like 100ms, 1s, 5m or 12h"))
}

/// Writes a length of time with the largest unit that leaves a whole number: `12h`, `90s`, `100ms`.
pub fn show_duration(value: Duration) -> String {
    time::typed(i64::try_from(value.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_written_as_it_is_read() {
        for (text, ms) in [("100ms", 100), ("90s", 90_000), ("12h", 43_200_000), ("400d", 34_560_000_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
            assert_eq!(show_duration(Duration::from_millis(ms)), text);
        }
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5_400)));
        for wrong in ["", "5", "1.5ms", "1y", "soon"] {
            assert!(duration(wrong).is_err_and(|why| why.contains("not a duration")), "{wrong}");
        }
        assert!(retention("59s").is_err_and(|why| why.contains("write 1m to 3650d")));
    }
}

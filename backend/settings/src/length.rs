//! Lengths of time as a user writes them. Each error is the rest of a sentence that says what to write instead.

use std::time::Duration;

/// Units of time that can be written, with their milliseconds.
const TIME_UNITS: [(&str, u128); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// How long ticks are kept. The upper end, ten years, only catches typing errors.
///
/// # Errors
/// The rest of a sentence that says what to write.
pub fn retention(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(60), Duration::from_secs(3650 * 86_400))
}

/// Reads a length of time between two.
///
/// # Errors
/// The rest of a sentence that says what to write.
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
/// The rest of a sentence that says what to write.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("\"{text}\" is not a length of time; write a number with its unit, like 100ms, 1s, 5m or 12h");
    let mut rest = text.trim();
    let mut total = 0f64;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (_, ms) = TIME_UNITS.iter().find(|(unit, _)| *unit == &rest[..letters]).ok_or_else(wrong)?;
        rest = &rest[letters..];
        total += number * *ms as f64;
    }
    if total.fract() != 0.0 || total > 9e15 {
        return Err(wrong());
    }
    Ok(Duration::from_millis(total as u64))
}

/// Writes a length of time with the largest unit that leaves a whole number: `12h`, `90s`, `100ms`.
pub fn show_duration(value: Duration) -> String {
    let ms = value.as_millis();
    let (unit, size) = TIME_UNITS.iter().find(|(_, size)| ms != 0 && ms.is_multiple_of(*size)).unwrap_or(&("ms", 1));
    format!("{}{unit}", ms / size)
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
            assert!(duration(wrong).is_err_and(|why| why.contains("not a length of time")), "{wrong}");
        }
        assert!(retention("59s").is_err_and(|why| why.contains("write 1m to 3650d")));
    }
}

//! Numbers, times and cells in the form of every response.

use shared::controls::escaped_json;
use std::fmt::Write;

/// A number in JSON: integers without a fraction. The caller leaves out absent values.
pub fn number(text: &mut String, value: f64) {
    // Above 2^53 not every integer is a float of its own, and an exponent is shorter.
    let _ = if value.fract() == 0.0 && value.abs() < 9e15 {
        write!(text, "{}", value as i64)
    } else {
        write!(text, "{}", serde_json::Number::from_f64(value).expect("absent values are left out"))
    };
}

/// Milliseconds as Unix seconds with at most three decimals: the same digits in every response.
pub fn seconds(text: &mut String, ms: i64) {
    let (sign, ms) = (if ms < 0 { "-" } else { "" }, ms.unsigned_abs());
    let _ = write!(text, "{sign}{}", ms / 1000);
    if !ms.is_multiple_of(1000) {
        let decimals = format!(".{:03}", ms % 1000);
        text.push_str(decimals.trim_end_matches('0'));
    }
}

/// A text in JSON's quotes.
pub fn quoted(text: &str) -> String {
    escaped_json(serde_json::Value::from(text).to_string())
}

/// The body of a record as JSON on one line: unchanged if it is JSON, else its bytes as a list of numbers.
pub fn record_body(body: &[u8]) -> String {
    let json = serde_json::from_slice::<serde_json::Value>(body).ok();
    escaped_json(json.unwrap_or_else(|| serde_json::Value::from(body)).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(write: impl Fn(&mut String)) -> String {
        let mut text = String::new();
        write(&mut text);
        text
    }

    #[test]
    fn what_a_terminal_obeys_leaves_as_escapes() {
        assert_eq!(quoted("a\u{1b}\u{9b}\u{202e}é"), "\"a\\u001b\\u009b\\u202eé\"");
        assert_eq!(record_body("{\"a\":\"\u{7f}\"}".as_bytes()), "{\"a\":\"\\u007f\"}");
        let label = super::super::openmetrics::escape("a\u{1b}[2J\u{7}\"b\"\n", true);
        assert_eq!(label, "a\u{fffd}[2J\u{fffd}\\\"b\\\"\\n");
    }

    #[test]
    fn times_have_the_same_digits_everywhere() {
        for (ms, text) in [
            (1_700_000_000_000, "1700000000"),
            (1_700_000_000_120, "1700000000.12"),
            (1_700_000_000_007, "1700000000.007"),
            (-1_500, "-1.5"),
            (-20, "-0.02"),
        ] {
            assert_eq!(shown(|s| seconds(s, ms)), text);
        }
    }

    #[test]
    fn numbers_lose_nothing() {
        for (value, text) in [(12.0, "12"), (-0.0, "0"), (0.1, "0.1"), (1e300, "1e+300"), (-1.5e-7, "-1.5e-7")] {
            assert_eq!(shown(|s| number(s, value)), text);
        }
        for value in [9_007_199_254_740_993e3, 1.0 / 3.0, f64::MIN_POSITIVE, f64::MAX] {
            assert_eq!(shown(|s| number(s, value)).parse(), Ok(value));
        }
    }
}

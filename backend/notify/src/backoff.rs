//! Timeout of a try, and the pause before the next.

use std::time::{Duration, UNIX_EPOCH};

/// Maximum pause between two tries by our own backoff.
const LONGEST_OWN: Duration = Duration::from_secs(10 * 60);

/// Maximum pause that a server may request.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);

/// Time after which a notice that was not accepted is given up.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(24 * 3_600);

/// Time after which no further request of a notice begins: a try must end within its lease of a minute.
pub(crate) const WHOLE: Duration = Duration::from_secs(40);

/// The pause after this number of tries, starting at 1: 1 s, 2 s, 4 s to 10 min, ±20 % by `random` of 0 to 1.
pub fn backoff(tries: u32, random: f64) -> Duration {
    let whole = Duration::from_secs(1 << tries.saturating_sub(1).min(10)).min(LONGEST_OWN);
    let random = if random.is_finite() { random.clamp(0.0, 1.0) } else { 0.5 };
    whole.mul_f64(0.8 + 0.4 * random)
}

/// The pause of a `Retry-After` at this time, seconds since the Unix epoch: seconds or a date, at most
/// [`LONGEST_PAUSE`]. None for an invalid text, and for a time in the past.
pub fn retry_after(text: &str, now: i64) -> Option<Duration> {
    let text = text.trim();
    let asked = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        // A number of seconds too large to parse means the maximum.
        Err(_) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => LONGEST_PAUSE,
        Err(_) => {
            let at = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
            at.checked_sub(Duration::from_secs(u64::try_from(now).ok()?))?
        }
    };
    Some(asked.min(LONGEST_PAUSE)).filter(|pause| !pause.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_ten_minutes_and_scatter_by_a_fifth() {
        let seconds = |tries, random| backoff(tries, random).as_secs_f64();
        assert_eq!([1, 2, 3, 10].map(|tries| seconds(tries, 0.5)), [1.0, 2.0, 4.0, 512.0]);
        assert_eq!([11, 12, 1_000, u32::MAX].map(|tries| seconds(tries, 0.5)), [600.0; 4]);
        assert_eq!((seconds(1, 0.0), seconds(1, 1.0)), (0.8, 1.2));
        assert_eq!((seconds(50, 0.0), seconds(50, 1.0)), (480.0, 720.0));
        // A value outside 0 to 1 must not give a pause of zero or of years.
        assert_eq!((seconds(1, f64::NAN), seconds(1, -9.0), seconds(1, 9.0), seconds(0, 0.5)), (1.0, 0.8, 1.2, 1.0));
    }

    #[test]
    fn a_server_may_ask_for_an_hour_at_most_in_seconds_or_by_date() {
        let now = 784_111_777; // Sun, 06 Nov 1994 08:49:37 GMT
        let asked = |text| retry_after(text, now).map(|pause| pause.as_secs());
        assert_eq!(asked("120"), Some(120));
        assert_eq!(asked(" 7 "), Some(7));
        assert_eq!(asked("86400"), Some(3_600));
        assert_eq!(asked("99999999999999999999999"), Some(3_600));
        assert_eq!(asked("Sun, 06 Nov 1994 08:50:37 GMT"), Some(60));
        assert_eq!(asked("Sat, 06 Nov 2094 08:50:37 GMT"), Some(3_600));
        for none in ["0", "", "-5", "1.5", "soon", "Sun, 06 Nov 1994 08:49:37 GMT", "Tue, 06 Nov 1984 08:49:37 GMT"] {
            assert_eq!(asked(none), None, "{none}");
        }
    }
}

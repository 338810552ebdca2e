//! Backoff between attempts to connect: short at first, then longer, with jitter so that not all agents retry at once.

use std::time::Duration;

/// Pause after the first failure; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Maximum pause of our own, before jitter changes it by up to half: after half a minute all agents are back.
const MAX_PAUSE: Duration = Duration::from_secs(20);
/// A link of at least this length counts as a success and resets the backoff.
const GOOD: Duration = Duration::from_secs(60);
/// Maximum pause that a hub may request.
pub(super) const MOST_ASKED: Duration = Duration::from_secs(300);

/// Number of consecutive failures.
#[derive(Debug, Default)]
pub(super) struct Again {
    failed: u32,
}

impl Again {
    /// The pause before the next attempt. The last link lasted for `long`; `asked` is the pause that the hub requested,
    /// if any; `random` is from 0 to 1.
    pub fn pause(&mut self, long: Duration, asked: Option<Duration>, random: f64) -> Duration {
        if long >= GOOD {
            self.failed = 0;
        }
        let doubled = FIRST_PAUSE * 2u32.saturating_pow(self.failed.min(10));
        self.failed = self.failed.saturating_add(1);
        let own = doubled.min(MAX_PAUSE).mul_f64(0.5 + random.clamp(0.0, 1.0));
        // Agents with the same requested pause are spread over half of it more.
        asked.map_or(own, |asked| own.max(asked.min(MOST_ASKED).mul_f64(1.0 + random.clamp(0.0, 1.0) / 2.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_half_a_minute_and_begin_anew_after_a_good_link() {
        let mut again = Again::default();
        let seconds = |pause: Duration| pause.as_secs_f64();
        let none = Duration::ZERO;
        let pauses: Vec<f64> = (0..7).map(|_| seconds(again.pause(none, None, 0.5))).collect();
        assert_eq!(pauses, [1.0, 2.0, 4.0, 8.0, 16.0, 20.0, 20.0]);
        assert_eq!(seconds(again.pause(none, None, 0.0)), 10.0);
        assert_eq!(seconds(again.pause(none, None, 1.0)), 30.0);
        assert_eq!(seconds(again.pause(Duration::from_secs(59), None, 0.5)), 20.0);
        assert_eq!(seconds(again.pause(GOOD, None, 0.5)), 1.0);
    }

    #[test]
    fn a_hub_may_ask_for_a_longer_pause_but_not_for_hours() {
        let mut again = Again::default();
        let asked = |again: &mut Again, s| again.pause(Duration::ZERO, Some(Duration::from_secs(s)), 0.0).as_secs();
        assert_eq!(asked(&mut again, 10), 10);
        assert_eq!(asked(&mut again, 100_000), 300);
        let mut later = Again { failed: 9 };
        assert_eq!(asked(&mut later, 1), 10, "our own is longer");
    }
}

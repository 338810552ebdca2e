//! The time by which history expires. A wall clock that jumps ahead may be wrong and be set back: a machine that booted
//! with the local time of another system, or one whose NTP server was off. Removed history would not come back then.

use std::time::Duration;

/// A jump of this length or less counts at once, milliseconds: segments outlive the retention by as much.
pub(super) const SLACK_MS: i64 = 3_600_000;

/// Time after which a longer jump ahead counts.
const BELIEVED_AFTER: Duration = Duration::from_secs(3_600);

/// The clock by which history expires.
#[derive(Debug, Default)]
pub(super) struct ExpiryClock {
    /// The last wall time that counted, milliseconds since the Unix epoch, and its steady time.
    last: Option<(i64, Duration)>,
    /// Since when the wall clock is ahead of it, steady.
    ahead: Option<Duration>,
}

impl ExpiryClock {
    /// The time by which history expires now. `newest` is the time of the newest stored history: the clock may have
    /// been set while nobody looked.
    pub fn now(&mut self, wall: i64, steady: Duration, newest: impl FnOnce() -> Option<i64>) -> i64 {
        let (last, at) = *self.last.get_or_insert_with(|| (newest().unwrap_or(wall), steady));
        let passed = i64::try_from(steady.saturating_sub(at).as_millis()).unwrap_or(i64::MAX);
        let expected = last.saturating_add(passed);
        if wall.saturating_sub(expected) > SLACK_MS {
            let since = *self.ahead.get_or_insert(steady);
            if steady.saturating_sub(since) < BELIEVED_AFTER {
                return expected;
            }
        }
        (self.last, self.ahead) = (Some((wall, steady)), None);
        wall
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;
    const T: i64 = 500_000 * HOUR;

    fn at(clock: &mut ExpiryClock, wall: i64, seconds: u64) -> i64 {
        clock.now(wall, Duration::from_secs(seconds), || None)
    }

    #[test]
    fn a_jump_ahead_counts_after_an_hour_and_one_back_at_once() {
        let mut clock = ExpiryClock::default();
        assert_eq!(at(&mut clock, T, 10), T);
        assert_eq!(at(&mut clock, T + HOUR, 10), T + HOUR, "the slack covers it");
        assert_eq!(at(&mut clock, T + 99 * HOUR, 70), T + HOUR + 60_000, "time passes nevertheless");
        assert_eq!(at(&mut clock, T + 99 * HOUR, 3_669), T + HOUR + 3_659_000);
        assert_eq!(at(&mut clock, T + 99 * HOUR, 3_670), T + 99 * HOUR, "it stays so");
        assert_eq!(at(&mut clock, T, 3_671), T);
        // One that is set back within the hour, and jumps again, has a whole hour again.
        assert_eq!(at(&mut clock, T + 99 * HOUR, 3_671), T);
        assert_eq!(at(&mut clock, T, 7_000), T);
        assert_eq!(at(&mut clock, T + 99 * HOUR, 7_300), T + 300_000);
        assert_eq!(at(&mut clock, i64::MAX, 7_301), T + 301_000);
        assert_eq!(at(&mut clock, i64::MIN, 7_302), i64::MIN);
    }

    #[test]
    fn at_the_start_the_newest_history_tells_the_time() {
        let start = |newest, wall| ExpiryClock::default().now(wall, Duration::ZERO, || newest);
        assert_eq!(start(Some(T), T + HOUR / 4), T + HOUR / 4);
        assert_eq!(start(Some(T), T + 9 * HOUR), T, "it was off for nine hours, or the clock is ahead");
        assert_eq!(start(None, T), T);
    }
}

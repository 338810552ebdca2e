//! Rate limit of a repeated warning: it is logged once, and then as a number, at growing intervals.

use std::time::{Duration, Instant};

/// Time for which repetitions are only counted: the first, and the longest.
const FIRST_SILENCE: Duration = Duration::from_secs(60);
const MAX_SILENCE: Duration = Duration::from_secs(3_600);

/// Counter of one kind of warning.
#[derive(Debug, Default)]
pub struct Throttle {
    /// Time of the last log line, and the time for which repetitions are only counted after it.
    said: Option<(Instant, Duration)>,
    passed_over: u64,
}

impl Throttle {
    /// A throttle that has not logged yet.
    pub const fn new() -> Self {
        Throttle { said: None, passed_over: 0 }
    }

    /// Number of repetitions since the last log line.
    pub fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// Counts a repetition. If it is to be logged, returns the number of those since the last log line, without this
    /// one.
    pub fn came(&mut self, now: Instant) -> Option<u64> {
        let wait = match self.said {
            Some((last, wait)) if now.saturating_duration_since(last) < wait => {
                self.passed_over += 1;
                return None;
            }
            Some((_, wait)) if self.passed_over > 0 => (wait * 2).min(MAX_SILENCE),
            _ => FIRST_SILENCE,
        };
        self.said = Some((now, wait));
        Some(std::mem::take(&mut self.passed_over))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_said_and_then_a_number() {
        let (mut throttle, begin) = (Throttle::default(), Instant::now());
        let said: Vec<(u64, u64)> =
            (0..210).filter_map(|second| Some((second, throttle.came(begin + Duration::from_secs(second))?))).collect();
        assert_eq!(said, [(0, 0), (60, 59), (180, 119)]);
    }

    #[test]
    fn one_that_comes_once_in_a_while_is_always_said() {
        let (mut throttle, begin) = (Throttle::default(), Instant::now());
        for hour in 0..5 {
            assert_eq!(throttle.came(begin + Duration::from_secs(hour * 7_200)), Some(0));
        }
    }
}

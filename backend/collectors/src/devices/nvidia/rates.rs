//! Rates of the driver's counters.

use std::time::Duration;

/// A counter's last reading.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate(Option<(f64, Duration)>);

impl Rate {
    /// Adds a reading, and returns the growth per second since the previous one. None for the first one, and if the
    /// counter fell: reset and wraparound cannot be distinguished.
    pub fn per_second(&mut self, count: Option<f64>, at: Duration) -> Option<f64> {
        let before = std::mem::replace(&mut self.0, count.map(|count| (count, at)));
        let (count, (before, then)) = count.zip(before)?;
        let seconds = at.checked_sub(then)?.as_secs_f64();
        (seconds > 0.0 && count >= before).then(|| (count - before) / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_needs_two_readings_and_a_counter_that_did_not_fall() {
        let mut rate = Rate::default();
        let readings = [
            (Some(100u32), 0, None),
            (Some(300), 2, Some(100.0)),
            (Some(300), 3, Some(0.0)),
            (Some(10), 4, None),
            (Some(20), 5, Some(10.0)),
            (None, 6, None),
            (Some(90), 7, None),
            (Some(90), 7, None),
        ];
        for (count, at, per_second) in readings {
            assert_eq!(rate.per_second(count.map(f64::from), Duration::from_secs(at)), per_second, "at {at}");
        }
    }
}

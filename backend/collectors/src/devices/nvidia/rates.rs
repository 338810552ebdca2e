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

    /// Same for a counter of 32 bits that was not reset meanwhile: if it fell, it began again at 0.
    pub fn per_second_of_32_bits(&mut self, count: Option<f64>, at: Duration) -> Option<f64> {
        const SIZE: f64 = 4_294_967_296.0;
        if let (Some(count), Some((before, _))) = (count, &mut self.0)
            && count < *before
            && *before < SIZE
        {
            *before -= SIZE;
        }
        self.per_second(count, at)
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

    #[test]
    fn a_counter_of_32_bits_begins_again() {
        let mut rate = Rate::default();
        let readings = [
            (Some(4_294_967_000u64), 0, None),
            (Some(704), 1, Some(1000.0)),
            (Some(1704), 2, Some(1000.0)),
            (Some(1 << 33), 3, Some(8_589_932_888.0)),
            (Some(704), 4, None),
        ];
        for (count, at, per_second) in readings {
            let count = count.map(|count| count as f64);
            assert_eq!(rate.per_second_of_32_bits(count, Duration::from_secs(at)), per_second, "at {at}");
        }
    }
}

//! Time between the samples of a series. A value of a job has a sample with each step of the job, not in each tick.

use super::STALE_INTERVALS;

/// Maximum of the usual time between samples, milliseconds.
const MAX_USUAL_MS: u32 = 600_000;

/// The last two times between samples, milliseconds. They are not stored: three samples tell them again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace([u32; 2]);

impl Pace {
    /// The usual time between samples, milliseconds. One long gap, as in an evaluation, does not count.
    pub fn usual_of(self, interval: i64) -> i64 {
        interval.max(self.0[0].min(self.0[1]).min(MAX_USUAL_MS).into())
    }

    /// Notes a sample; `passed` is the time since the one before.
    pub fn note(&mut self, passed: i64) {
        self.0 = [self.0[1], u32::try_from(passed).unwrap_or(u32::MAX)];
    }

    /// The same, and the part of that time that counts, milliseconds.
    pub fn count(&mut self, passed: i64, interval: i64) -> u32 {
        let counted = passed.min(STALE_INTERVALS * self.usual_of(interval));
        self.note(passed);
        u32::try_from(counted).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_counts_for_the_time_that_is_usual_and_an_outage_does_not() {
        let mut pace = Pace::default();
        let counted = [1_000, 10_000, 10_000, 10_000, 60_000, 10_000, 10_000].map(|passed| pace.count(passed, 1_000));
        assert_eq!(counted, [1_000, 3_000, 3_000, 10_000, 30_000, 10_000, 10_000]);
        assert_eq!(pace.usual_of(1_000), 10_000);
        assert_eq!(pace.usual_of(15_000), 15_000, "the machine is measured more rarely");
        (0..2).for_each(|_| pace.note(i64::MAX));
        assert_eq!(pace.usual_of(1_000), 600_000);
    }
}

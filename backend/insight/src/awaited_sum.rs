//! Sum of log-likelihood ratios for one member of a group: see `awaited`.

/// A sum that is not sure after this many seconds starts again: the deviation is another habit.
const TRIED: i64 = 1200;
/// Minimum and maximum contribution of one bucket of ten seconds.
const CONTRIBUTION_LIMITS: (f64, f64) = (-0.5, 1.0);
/// The finding is raised at this sum: probability of chance e^-18.
const RAISE_SUM: f64 = 18.0;
/// Maximum of the sum; at or below `END_SUM` the finding ends.
const MAX_SUM: f64 = 20.0;
const END_SUM: f64 = 10.0;
/// At or above this sum nothing is learned of the group.
const DOUBT: f64 = 3.0;

/// Evidence from buckets of work that the others wait for one member.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Awaited {
    said: f64,
    since: i64,
    /// The sum has reached [`RAISE_SUM`]; it ends at or below [`END_SUM`].
    told: bool,
}

impl Awaited {
    pub fn is_doubted(&self) -> bool {
        self.said >= DOUBT
    }

    pub fn is_sure(&self) -> bool {
        self.said >= RAISE_SUM
    }

    pub fn is_over(&self) -> bool {
        self.said <= END_SUM
    }

    pub fn since(&self) -> i64 {
        self.since
    }

    /// Certainty: 1 at the threshold [`RAISE_SUM`], and a little more at most.
    pub fn sure(&self) -> f64 {
        self.said / RAISE_SUM
    }

    /// Adds a bucket of `length` seconds that ended at `now`.
    pub fn add(&mut self, now: i64, length: f64, says: f64) {
        let tens = length / 10.0;
        if self.said <= 0.0 || (self.said < RAISE_SUM && !self.told && now - self.since > TRIED) {
            self.said = 0.0;
            self.since = now - length as i64;
        }
        let least = if self.told { 2.0 * CONTRIBUTION_LIMITS.0 } else { CONTRIBUTION_LIMITS.0 };
        self.said = (self.said + says.clamp(least * tens, CONTRIBUTION_LIMITS.1 * tens)).clamp(0.0, MAX_SUM);
        self.told = self.said >= RAISE_SUM || (self.told && self.said > END_SUM);
    }
}

//! Sum of log-likelihood ratios for one member of a group: see `awaited`.

/// A sum that is not sure after this many seconds starts again: the deviation is another habit.
const TRIED: i64 = 1200;
/// Minimum and maximum contribution of one bucket of ten seconds.
const SAYS: (f64, f64) = (-0.5, 1.0);
/// The finding is raised at this sum: probability of chance e^-18.
const SURE: f64 = 18.0;
/// Maximum of the sum; at or below `OVER` the finding ends.
const MOST: f64 = 20.0;
const OVER: f64 = 10.0;
/// At or above this sum nothing is learned of the group.
const DOUBT: f64 = 3.0;

/// Evidence from buckets of work that the others wait for one member.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Awaited {
    said: f64,
    since: i64,
    /// The sum has reached [`SURE`]; it ends at or below [`OVER`].
    told: bool,
}

impl Awaited {
    pub fn is_doubted(&self) -> bool {
        self.said >= DOUBT
    }

    pub fn is_sure(&self) -> bool {
        self.said >= SURE
    }

    pub fn is_over(&self) -> bool {
        self.said <= OVER
    }

    pub fn since(&self) -> i64 {
        self.since
    }

    /// Certainty: 1 at the threshold [`SURE`], and a little more at most.
    pub fn sure(&self) -> f64 {
        self.said / SURE
    }

    /// Adds a bucket of `length` seconds that ended at `now`.
    pub fn add(&mut self, now: i64, length: f64, says: f64) {
        let tens = length / 10.0;
        if self.said <= 0.0 || (self.said < SURE && !self.told && now - self.since > TRIED) {
            self.said = 0.0;
            self.since = now - length as i64;
        }
        let least = if self.told { 2.0 * SAYS.0 } else { SAYS.0 };
        self.said = (self.said + says.clamp(least * tens, SAYS.1 * tens)).clamp(0.0, MOST);
        self.told = self.said >= SURE || (self.told && self.said > OVER);
    }
}

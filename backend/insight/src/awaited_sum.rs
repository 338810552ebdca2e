//! What buckets of work say of one member of a group, added up: see `awaited`.

/// What is not sure after so many seconds is another habit.
const TRIED: i64 = 1200;
/// One bucket of ten seconds says at most so much against, and for it.
const SAYS: (f64, f64) = (-0.5, 1.0);
/// From here on it is sure: one in e^18 by chance alone.
const SURE: f64 = 18.0;
/// More is not remembered, and below this it is over.
const MOST: f64 = 20.0;
const OVER: f64 = 10.0;
/// From here on nothing is learned of the group.
const DOUBT: f64 = 3.0;

/// What buckets of work said of one member.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Awaited {
    said: f64,
    since: i64,
    /// It was sure: it is over when little speaks for it.
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

    /// How sure it is, 0 to a little more than 1.
    pub fn sure(&self) -> f64 {
        self.said / SURE
    }

    /// A bucket of `length` seconds that ended at `now`.
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

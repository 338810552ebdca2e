//! Pseudo-random numbers that are a function of their keys alone. No state is kept, so instants can be requested in
//! any order, and two runs agree.

/// Owner of a number: a seed, then a machine, a device, a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(u64);

impl Key {
    pub fn new(seed: u64) -> Self {
        Key(scatter(seed))
    }

    /// The key of a part.
    pub fn derive(self, part: u64) -> Self {
        Key(scatter(self.0 ^ scatter(part)))
    }

    /// 0 to 1, less than 1; different for each `n`.
    pub fn unit(self, n: i64) -> f64 {
        // 53 bits are what a float holds.
        (scatter(self.0.wrapping_add(scatter(n as u64))) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// From `low` to `high`, constant over time.
    pub fn between(self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit(0)
    }

    /// -1 to 1, wandering smoothly with a new goal every `period` milliseconds.
    pub fn sway(self, t: i64, period: i64) -> f64 {
        let (cell, part) = (t.div_euclid(period), t.rem_euclid(period) as f64 / period as f64);
        let (from, to) = (self.unit(cell), self.unit(cell + 1));
        let eased = part * part * (3.0 - 2.0 * part);
        2.0 * (from + (to - from) * eased) - 1.0
    }

    /// -1 to 1, most often near 0: a new value every `period` milliseconds.
    pub fn jitter(self, t: i64, period: i64) -> f64 {
        let cell = t.div_euclid(period);
        self.unit(2 * cell) + self.unit(2 * cell + 1) - 1.0
    }
}

/// Spreads every bit over all others: the finisher of SplitMix64 behind its increment.
fn scatter(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

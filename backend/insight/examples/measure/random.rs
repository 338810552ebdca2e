//! Pseudorandom numbers, the same for the same seed, by the generator SplitMix64.

/// A generator of random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Random {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Self {
        Random(mixed(seed.wrapping_add(0x5851_f42d_4c95_7f2d)))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// From 0 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// From `low` to `high`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// From `low` to `high`, log-uniform.
    pub fn scaled(&mut self, low: f64, high: f64) -> f64 {
        (low.ln() + (high.ln() - low.ln()) * self.unit()).exp()
    }

    /// A whole number from `low` to `high`, both included.
    pub fn whole(&mut self, low: usize, high: usize) -> usize {
        low + (self.next() % (high - low + 1) as u64) as usize
    }

    /// True in this share of cases.
    pub fn chance(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    /// A random element.
    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.whole(0, all.len() - 1)]
    }

    /// Normal, mean 0, deviation 1: a sum of twelve uniform numbers, which is close enough and has bounded tails.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    /// A factor about 1 with this deviation of its logarithm.
    pub fn about_one(&mut self, deviation: f64) -> f64 {
        (self.normal() * deviation).exp()
    }

    /// Time until an event that happens every `mean` on average.
    pub fn until(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

/// Constants of the simulation, each changed by its own factor, to test whether findings depend on them.
#[derive(Clone, Copy, Debug)]
pub struct Altered {
    /// The seed of the factors.
    pub seed: u64,
    /// Maximum change of a constant, a share.
    pub by: f64,
}

impl Altered {
    /// The value of a constant in this trace.
    pub fn alter(self, name: &str, constant: f64) -> f64 {
        let key = name.bytes().fold(self.seed, |key, byte| mixed(key ^ u64::from(byte)));
        constant * (1.0 + self.by * (2.0 * Random::new(key).unit() - 1.0))
    }
}

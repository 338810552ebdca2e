//! An endpoint that counts its scrapes. The server under test scrapes it, so that lost, doubled or changed samples show
//! as numbers.

use crate::exporter;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A running ledger. Its thread ends with the process.
pub struct Ledger {
    /// The address to scrape.
    pub url: String,
    served: Arc<AtomicU64>,
}

impl Ledger {
    /// Starts a ledger on a free port.
    pub fn start() -> Self {
        let served = Arc::new(AtomicU64::new(0));
        let count = served.clone();
        let url = exporter::serve(move |_| Self::page(count.fetch_add(1, Ordering::SeqCst) + 1));
        Ledger { url, served }
    }

    /// Number of scrapes that were answered.
    pub fn served(&self) -> u64 {
        self.served.load(Ordering::SeqCst)
    }

    /// The page of scrape `n`.
    fn page(n: u64) -> String {
        let [wave, noise] = [Self::wave(n), Self::noise(n)];
        let gauges = format!("# TYPE wave gauge\nwave{{of=\"ledger\"}} {wave}\n# TYPE noise gauge\nnoise {noise}\n");
        format!("# TYPE ledger counter\nledger_total {n}\n{gauges}")
    }

    /// The value of the gauge `wave` at scrape `n`. Neighbors differ, and no value is a whole number.
    pub fn wave(n: u64) -> f64 {
        (n as f64 * 0.7).sin() * 100.0
    }

    /// The value of the gauge `noise` at scrape `n`: pseudo-random, with all bits in use.
    pub fn noise(n: u64) -> f64 {
        Chance::new(n).unit()
    }
}

/// A generator of pseudo-random numbers that are the same in every run (SplitMix64).
pub struct Chance(u64);

impl Chance {
    /// Starts the generator with a seed.
    pub fn new(seed: u64) -> Self {
        Chance(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number from 0 to `end`, exclusive.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A number from 0 to 1, exclusive.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

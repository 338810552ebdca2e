//! The known lines of an endpoint, and the targets of their values.
//!
//! Lines that were not seen for [`FORGET_AFTER`] are evicted. So labels that change permanently take only the room of a
//! quarter of an hour.

use super::dcgm::DcgmReading;
use super::histogram::{Histogram, QUANTILES};
use super::left::MAX_KEY_BYTES;
use shared::catalog::MetricDef;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;
use std::time::Duration;

/// Time after which an unseen line is evicted: as long as the newest samples stay in memory as ticks.
pub(super) const FORGET_AFTER: Duration = Duration::from_secs(900);
/// Interval between two evictions.
const FORGET_INTERVAL: Duration = Duration::from_secs(10);

/// Target of a line's value.
pub(super) enum Target {
    Series(&'static MetricDef, Box<str>),
    /// DCGM's series: absent for a sentinel.
    Dcgm(&'static MetricDef, Box<str>),
    /// A value of a GPU. The series is used if a driver already reports the GPU.
    Gpu(DcgmReading, &'static MetricDef, Box<str>),
    /// A bucket of a histogram.
    Bucket,
    /// None: no filter keeps the line.
    Left,
}

impl Target {
    fn is_series(&self) -> bool {
        !matches!(self, Target::Bucket | Target::Left)
    }
}

/// A known line.
pub(super) struct KnownLine {
    /// Name and labels as printed.
    key: Arc<str>,
    /// Hash of name and labels, independent of their order and their quotes.
    same: u64,
    pub target: Target,
    seen: Duration,
    /// Whether it is on this page.
    here: bool,
    stamp: Option<f64>,
}

/// A histogram and the series of its quantiles.
pub(super) struct Quantiles {
    pub def: &'static MetricDef,
    pub instances: [Box<str>; 3],
    pub histogram: Histogram,
}

/// State of an endpoint's pages.
pub(super) struct KnownPages {
    /// Maximum number of series.
    limit: usize,
    pub lines: Vec<KnownLine>,
    by_key: HashMap<Arc<str>, usize>,
    by_same: HashMap<u64, usize>,
    hasher: RandomState,
    pub histograms: BTreeMap<String, Quantiles>,
    /// Present number of series, including quantiles.
    series: usize,
    /// Bytes of their keys.
    bytes: usize,
    /// Values of this page, by line.
    pub values: Vec<f64>,
    now: Duration,
    looked: Duration,
}

impl KnownPages {
    pub(super) fn new(limit: usize) -> Self {
        KnownPages {
            limit,
            lines: Vec::new(),
            by_key: HashMap::new(),
            by_same: HashMap::new(),
            hasher: RandomState::new(),
            histograms: BTreeMap::new(),
            series: 0,
            bytes: 0,
            values: Vec::new(),
            now: Duration::ZERO,
            looked: Duration::ZERO,
        }
    }

    /// Begins a page. `now` is monotonic.
    pub(super) fn begin(&mut self, now: Duration) {
        self.now = now;
        if now.saturating_sub(self.looked) >= FORGET_INTERVAL {
            self.looked = now;
            self.forget();
        }
        self.values.fill(f64::NAN);
        self.lines.iter_mut().for_each(|line| line.here = false);
    }

    /// The key of the line at this position.
    pub(super) fn key(&self, at: usize) -> Option<&str> {
        self.lines.get(at).map(|line| &*line.key)
    }

    /// The position of a line with this exact key.
    pub(super) fn find(&self, key: &str) -> Option<usize> {
        self.by_key.get(key).copied()
    }

    /// Hash of a name and labels.
    pub(super) fn same(&self, parts: impl Hash) -> u64 {
        self.hasher.hash_one(parts)
    }

    /// The position of an equal line with another spelling.
    pub(super) fn find_same(&self, same: u64) -> Option<usize> {
        self.by_same.get(&same).copied()
    }

    /// Whether no filter keeps this line.
    pub(super) fn is_left(&self, at: usize) -> bool {
        matches!(self.lines[at].target, Target::Left)
    }

    /// Whether there is room for one more line with this number of series.
    pub(super) fn has_room(&self, series: usize, key: &str) -> bool {
        // Twice, because lines that no filter keeps and buckets are stored too.
        let lines = self.lines.len() < 2 * self.limit;
        lines && self.series + series <= self.limit && self.bytes + key.len() <= MAX_KEY_BYTES
    }

    /// Adds a new line. Returns its position.
    pub(super) fn push(&mut self, key: &str, same: u64, target: Target) -> usize {
        let (at, key) = (self.lines.len(), Arc::<str>::from(key));
        self.series += usize::from(target.is_series());
        self.bytes += key.len();
        self.by_key.insert(key.clone(), at);
        self.by_same.insert(same, at);
        self.lines.push(KnownLine { key, same, target, seen: self.now, here: false, stamp: None });
        self.values.push(f64::NAN);
        at
    }

    /// Adds a new histogram.
    pub(super) fn push_histogram(&mut self, id: String, quantiles: Quantiles) {
        self.series += QUANTILES.len();
        self.histograms.insert(id, quantiles);
    }

    /// Sets the value of a line. Returns false if its series already has a value on the page, unless this sample is
    /// later.
    pub(super) fn take(&mut self, at: usize, value: f64, stamp: Option<f64>) -> bool {
        let line = &mut self.lines[at];
        // Times that differ by less than a billionth of the format's unit are equal.
        let later =
            matches!((line.stamp, stamp), (Some(before), Some(now)) if (now * 1e9).trunc() > (before * 1e9).trunc());
        if line.here && !later {
            return false;
        }
        (line.here, line.seen, line.stamp) = (true, self.now, stamp);
        self.values[at] = value;
        true
    }

    fn forget(&mut self) {
        let alive = |line: &KnownLine| self.now.saturating_sub(line.seen) < FORGET_AFTER;
        if self.lines.iter().all(alive) {
            return;
        }
        let mut places = 0..;
        let to: Vec<Option<usize>> =
            self.lines.iter().map(|line| if alive(line) { places.next() } else { None }).collect();
        self.lines.retain(alive);
        self.histograms.retain(|_, quantiles| quantiles.histogram.moved(&to));
        self.by_key = self.lines.iter().enumerate().map(|(at, line)| (line.key.clone(), at)).collect();
        self.by_same = self.lines.iter().enumerate().map(|(at, line)| (line.same, at)).collect();
        self.values = vec![f64::NAN; self.lines.len()];
        let series = self.lines.iter().filter(|line| line.target.is_series()).count();
        self.series = series + QUANTILES.len() * self.histograms.len();
        self.bytes = self.lines.iter().map(|line| line.key.len()).sum();
    }
}

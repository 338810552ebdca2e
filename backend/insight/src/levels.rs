//! Current and usual values of one signal, in constant memory, with one store per sample.
//!
//! Means weigh a sample by its duration, so they are alike at any interval. No function of a platform's library is
//! used: a page and a server get the same digits.

use shared::catalog::{Kind, MetricDef};

/// Time constant of the short mean, seconds.
const SHORT_TIME_CONSTANT_S: f64 = 10.0;
/// Time constant of the long mean, seconds.
const MINUTE: f64 = 60.0;
/// Time constant of the level, seconds: a half-life of ten minutes.
const LEVEL_TIME_CONSTANT_S: f64 = 866.0;

/// One signal of one device or host.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    /// The row that fills it; none yet.
    pub row: Option<&'static MetricDef>,
    /// Its rank among the rows that could fill it: 0 is the first choice.
    pub rank: u8,
    /// Value of the newest second: the mean of its samples; for a counter the rate per second.
    pub now: f64,
    /// The newest second, since the Unix epoch; [`NEVER`] before the first.
    pub at: i64,
    /// Mean over about 10 s.
    pub short: f64,
    /// Mean over about 60 s.
    pub minute: f64,
    /// Slow mean in work.
    pub level: f64,
    /// The last raw sample: the total of a counter, or a state.
    pub raw: f64,
    /// The raw sample before it.
    pub before: f64,
    sum: f64,
    /// Seconds of work that the level was learned from.
    pub learned: f32,
    /// Seconds between the newest second and the one before.
    pub over: u32,
    n: u32,
}

/// Time of a sample that never came.
pub(crate) const NEVER: i64 = i64::MIN / 4;

impl Default for Slot {
    fn default() -> Self {
        let nan = f64::NAN;
        Slot {
            row: None,
            rank: u8::MAX,
            now: nan,
            at: NEVER,
            short: nan,
            minute: nan,
            level: nan,
            raw: nan,
            before: nan,
            sum: 0.0,
            learned: 0.0,
            over: 0,
            n: 0,
        }
    }
}

impl Slot {
    /// An empty slot that a row fills.
    pub fn new(row: Option<&'static MetricDef>, rank: u8) -> Self {
        Slot { row, rank, ..Slot::default() }
    }

    /// Adds a sample of the current second; true for its first.
    pub fn add(&mut self, value: f64) -> bool {
        self.sum = if self.row.is_some_and(|row| row.kind == Kind::Gauge) { self.sum + value } else { value };
        self.n += 1;
        self.n == 1
    }

    /// Closes the second `t`.
    pub fn close(&mut self, t: i64) {
        let kind = self.row.map_or(Kind::Gauge, |row| row.kind);
        let value = if kind == Kind::Gauge { self.sum / f64::from(self.n.max(1)) } else { self.sum };
        (self.sum, self.n) = (0.0, 0);
        let gap = t - self.at;
        self.over = u32::try_from(gap).unwrap_or(u32::MAX);
        let first = self.at == NEVER;
        let before = std::mem::replace(&mut self.raw, value);
        self.before = before;
        self.at = t;
        let value = match kind {
            Kind::Counter if first || value < before => {
                self.now = f64::NAN;
                return;
            }
            Kind::Counter => (value - before) / gap.max(1) as f64,
            _ => value,
        };
        self.now = value;
        mean(&mut self.short, value, gap, SHORT_TIME_CONSTANT_S);
        mean(&mut self.minute, value, gap, MINUTE);
    }

    /// Growth of a counter in the newest second; 0 at its first sample and at a restart.
    pub fn grew(&self) -> f64 {
        if self.now.is_finite() { self.raw - self.before } else { 0.0 }
    }

    /// Learns the current value from `dt` seconds of work.
    pub fn learn(&mut self, dt: f64) {
        if self.now.is_finite() {
            let weight = dt / (dt + f64::from(self.learned).min(LEVEL_TIME_CONSTANT_S));
            self.level = if self.level.is_finite() { self.level + weight * (self.now - self.level) } else { self.now };
            self.learned += dt as f32;
        }
    }

    /// Forgets the usual value.
    pub fn forget(&mut self) {
        (self.level, self.learned) = (f64::NAN, 0.0);
    }

    /// The level, once learned from a minute of work.
    pub fn level(&self) -> Option<f64> {
        (self.learned >= 60.0 && self.level.is_finite()).then_some(self.level)
    }
}

/// Updates a mean; it restarts after a long gap.
fn mean(mean: &mut f64, value: f64, gap: i64, tau: f64) {
    let gap = gap.max(1) as f64;
    let weight = if mean.is_finite() && gap < 3.0 * tau + 120.0 { gap / (gap + tau) } else { 1.0 };
    *mean = if weight < 1.0 { *mean + weight * (value - *mean) } else { value };
}

/// The last values of a signal, one per tick, for their deviation.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    values: [f32; 32],
    /// Number of values stored in total.
    n: u32,
}

impl Default for Ring {
    fn default() -> Self {
        Ring { values: [f32::NAN; 32], n: 0 }
    }
}

impl Ring {
    pub fn push(&mut self, value: f64) {
        self.values[self.n as usize % 32] = value as f32;
        self.n += 1;
    }

    /// Mean and standard deviation of the last `n` values; none where there are fewer.
    pub fn spread(&self, n: usize) -> Option<(f64, f64)> {
        let n = n.clamp(2, 32);
        if (self.n as usize) < n {
            return None;
        }
        let last = (0..n).map(|back| f64::from(self.values[(self.n as usize - 1 - back) % 32]));
        let mean = last.clone().sum::<f64>() / n as f64;
        let square = last.map(|v| (v - mean) * (v - mean)).sum::<f64>() / n as f64;
        Some((mean, square.sqrt()))
    }
}

/// Median; the mean of the two middle values of an even number. None without values. The slice is sorted.
pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let (low, high, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    let below = low.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(if n % 2 == 1 { *high } else { (below + *high) / 2.0 })
}

/// Values sorted once, so that each can be compared with the median of the others.
#[derive(Debug)]
pub(crate) struct Ordered(Vec<f64>);

impl Ordered {
    pub fn new(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_unstable_by(f64::total_cmp);
        Ordered(values)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Median of all values but `one`, which is among them; none where it is alone.
    pub fn others(&self, one: f64) -> Option<f64> {
        let at = self.0.binary_search_by(|value| value.total_cmp(&one)).ok()?;
        let without = |place: usize| self.0[place + usize::from(place >= at)];
        match self.0.len() - 1 {
            0 => None,
            n if n % 2 == 1 => Some(without(n / 2)),
            n => Some((without(n / 2 - 1) + without(n / 2)) / 2.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::catalog::gpu;

    #[test]
    fn a_second_is_the_mean_of_its_samples() {
        let mut slot = Slot { row: Some(&gpu::POWER_WATTS), ..Slot::default() };
        assert!(slot.add(100.0));
        assert!(!slot.add(300.0));
        slot.close(10);
        assert_eq!((slot.now, slot.short, slot.at), (200.0, 200.0, 10));
    }

    #[test]
    fn a_counter_gives_rates_over_gaps_and_none_at_a_restart() {
        let mut slot = Slot { row: Some(&gpu::CORRECTED_ERRORS), ..Slot::default() };
        for (t, total, grew) in [(0, 50.0, 0.0), (1, 52.0, 2.0), (100, 53.0, 1.0), (101, 3.0, 0.0), (102, 4.0, 1.0)] {
            slot.add(total);
            slot.close(t);
            assert_eq!(slot.grew(), grew, "at {t}");
        }
        assert_eq!(slot.now, 1.0);
    }

    #[test]
    fn means_are_alike_at_any_interval() {
        let run = |interval: i64| {
            let mut slot = Slot { row: Some(&gpu::POWER_WATTS), ..Slot::default() };
            for t in (0..1200).step_by(interval as usize) {
                slot.add(if t < 600 { 100.0 } else { 200.0 });
                slot.close(t);
            }
            slot
        };
        for interval in [1, 5, 60] {
            assert!((run(interval).minute - 200.0).abs() < 0.5, "{interval}: {}", run(interval).minute);
        }
    }

    #[test]
    fn the_spread_needs_its_values() {
        let mut ring = Ring::default();
        ring.push(1.0);
        assert_eq!(ring.spread(3), None);
        ring.push(1.0);
        ring.push(4.0);
        assert_eq!(ring.spread(3).map(|(mean, _)| mean), Some(2.0));
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&mut []), None);
    }

    #[test]
    fn the_middle_of_the_others_is_that_of_all_but_one() {
        for n in 1..8_u32 {
            let values: Vec<f64> = (0..n).map(|at| f64::from(at * 7 % 5)).collect();
            let ordered = Ordered::new(values.iter().copied());
            for at in 0..values.len() {
                let mut others: Vec<f64> = values.clone();
                let one = others.remove(at);
                assert_eq!(ordered.others(one), median(&mut others), "{one} of {values:?}");
            }
        }
        assert_eq!(Ordered::new([1.0, 2.0].into_iter()).others(3.0), None, "it is none of them");
    }
}

//! Sums over a run, from roll-ups: pure arithmetic, without store or clock.

use super::CostSettings;
use serde::{Deserialize, Serialize};
use shared::rollup::Bucket;
use std::collections::BTreeMap;

/// Below this utilization a GPU is idle, percent.
const IDLE_PERCENT: f64 = 5.0;

/// Start and end, milliseconds since the Unix epoch.
pub type HeldSpan = (i64, i64);

/// The sums of a run. Those of two parts of a run may be added; derived values are methods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sums {
    /// Number of distinct GPUs that were held.
    pub gpus: u64,
    /// GPU-seconds held.
    pub held_s: f64,
    /// GPU-seconds of these with a known utilization.
    pub measured_s: f64,
    /// Integral of the utilization over them: GPU-seconds of full use.
    pub used_s: f64,
    /// GPU-seconds of these below 5 % utilization.
    pub idle_s: f64,
    /// GPU-seconds that a scheduler reserved, used or not; None if no reservation is known.
    #[serde(default)]
    pub reserved_s: Option<f64>,
    /// Energy of the GPUs that the driver reports as held; None if there is no source for it.
    pub joules: Option<f64>,
    /// Part of the energy is power times time, because a GPU has no energy counter.
    pub estimated: bool,
    /// The GPUs of a rank are those that it was told to use: the driver has not confirmed it.
    pub assumed: bool,
    /// Maximum memory in use on one GPU, bytes.
    pub memory_peak: Option<f64>,
    /// GPU-seconds held, by model of the GPU; the empty key is an unknown model.
    #[serde(default)]
    pub models: BTreeMap<String, f64>,
}

/// Readings of one GPU.
#[derive(Debug, Default)]
pub struct HeldGpu {
    /// Spans in which it was held; they do not touch.
    pub spans: Vec<HeldSpan>,
    /// The driver has not confirmed that it was held.
    pub assumed: bool,
    /// Its model; empty if unknown.
    pub model: String,
    /// Time between two samples, milliseconds.
    pub interval: i64,
    /// Width of the roll-ups, milliseconds.
    pub step: i64,
    /// Utilization, percent.
    pub utilization: Vec<Bucket>,
    /// Memory in use, bytes.
    pub memory: Vec<Bucket>,
    /// Power, watts.
    pub power: Vec<Bucket>,
    /// The energy counter, joules.
    pub energy: Vec<Bucket>,
}

/// The spans, sorted and with touching ones merged. Empty ones are dropped.
pub fn merged(mut spans: Vec<HeldSpan>) -> Vec<HeldSpan> {
    spans.retain(|(from, to)| from < to);
    spans.sort_unstable();
    let mut all: Vec<HeldSpan> = Vec::with_capacity(spans.len());
    for (from, to) in spans {
        match all.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => all.push((from, to)),
        }
    }
    all
}

/// The roll-ups of `step` milliseconds that overlap spans.
pub fn within<'a>(buckets: &'a [Bucket], step: i64, spans: &'a [HeldSpan]) -> impl Iterator<Item = &'a Bucket> {
    buckets.iter().filter(move |b| spans.iter().any(|(from, to)| b.t < *to && b.t + step > *from))
}

impl Sums {
    /// Adds the readings of a GPU that is not part of the sums yet.
    pub fn add(&mut self, held: &HeldGpu) {
        let own = |buckets| within(buckets, held.step, &held.spans);
        let seconds = |b: &Bucket| f64::from(b.count) * held.interval as f64 / 1_000.0;
        let held_s = held.spans.iter().map(|(from, to)| to - from).sum::<i64>() as f64 / 1_000.0;
        let (mut measured, mut used, mut idle) = (0.0, 0.0, 0.0);
        for bucket in own(&held.utilization) {
            let s = seconds(bucket);
            measured += s;
            used += s * bucket.mean / 100.0;
            idle += if bucket.mean < IDLE_PERCENT { s } else { 0.0 };
        }
        // A sample stands for the time up to the next; the last one of a span may extend over its end.
        let fit = if measured > held_s { held_s / measured } else { 1.0 };
        self.gpus += 1;
        self.held_s += held_s;
        *self.models.entry(held.model.clone()).or_default() += held_s;
        self.measured_s += measured * fit;
        self.used_s += used * fit;
        self.idle_s += idle * fit;
        self.assumed |= held.assumed;
        if let Some(most) = own(&held.memory).map(|b| b.max).max_by(f64::total_cmp) {
            self.memory_peak = Some(self.memory_peak.unwrap_or(most).max(most));
        }
        if held.assumed {
            return;
        }
        let counted = held.spans.iter().filter_map(|span| gained(&held.energy, held.step, *span));
        let joules = counted.reduce(|a, b| a + b);
        let estimate = || own(&held.power).map(|b| b.mean * seconds(b)).reduce(|a, b| a + b).map(|joules| joules * fit);
        if let Some(more) = joules.or_else(estimate) {
            self.joules = Some(self.joules.unwrap_or(0.0) + more);
            self.estimated |= joules.is_none();
        }
    }

    /// Whether a GPU was held or reserved.
    pub fn has_gpus(&self) -> bool {
        self.gpus > 0 || self.reserved_s.is_some()
    }

    /// GPU-hours held; None without any GPU.
    pub fn gpu_hours(&self) -> Option<f64> {
        (self.gpus > 0).then_some(self.held_s / 3_600.0)
    }

    /// The models of the GPUs.
    pub fn gpu_models(&self) -> Vec<String> {
        self.models.keys().filter(|model| !model.is_empty()).cloned().collect()
    }

    /// The cost; None if a part has no price, or if energy has a price and is not known for all GPUs.
    pub fn cost(&self, prices: &CostSettings) -> Option<f64> {
        let hours = self.models.iter().map(|(model, seconds)| (model.as_str(), seconds / 3_600.0));
        prices.total(hours, self.energy_kwh().filter(|_| !self.assumed))
    }

    /// Mean utilization of the GPUs while they were held and measured, percent.
    pub fn gpu_utilization(&self) -> Option<f64> {
        (self.measured_s > 0.0).then(|| 100.0 * self.used_s / self.measured_s)
    }

    /// Share of the measured GPU-time below 5 % utilization, 0 to 1.
    pub fn idle_share(&self) -> Option<f64> {
        (self.measured_s > 0.0).then(|| self.idle_s / self.measured_s)
    }

    /// Energy of the GPUs, kWh.
    pub fn energy_kwh(&self) -> Option<f64> {
        self.joules.map(|joules| joules / 3.6e6)
    }

    /// Share of the held GPU-time with a known utilization, 0 to 1.
    pub fn coverage(&self) -> Option<f64> {
        (self.held_s > 0.0).then(|| self.measured_s / self.held_s)
    }
}

/// Increase of a counter in a span; a decrease is a restart of the counter and no increase. None with fewer than two
/// values.
fn gained(buckets: &[Bucket], step: i64, span: HeldSpan) -> Option<f64> {
    let own: Vec<&Bucket> = within(buckets, step, std::slice::from_ref(&span)).collect();
    let first = own.first()?;
    let between = own.windows(2).map(|pair| (pair[1].last - pair[0].last).max(0.0)).sum::<f64>();
    let values: u64 = own.iter().map(|b| u64::from(b.count)).sum();
    (values > 1).then(|| (first.last - first.min).max(0.0) + between)
}

/// Aggregation of several GPUs' values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// Their mean.
    Mean,
    /// Their sum.
    Sum,
    /// The largest.
    Max,
}

impl Together {
    /// Its name in answers.
    pub const fn name(self) -> &'static str {
        match self {
            Together::Mean => "mean",
            Together::Sum => "sum",
            Together::Max => "max",
        }
    }
}

/// One line of `points` columns of `step` milliseconds from `from` on, from the roll-ups of several series; a column
/// without a sample is None.
pub fn line(series: &[Vec<&Bucket>], how: Together, from: i64, step: i64, points: usize) -> Vec<Option<f64>> {
    let mut all: Vec<Vec<f64>> = vec![Vec::new(); points];
    for buckets in series {
        let mut sums = vec![(0.0, 0.0); points];
        for bucket in buckets {
            // A roll-up begins at a multiple of its width, possibly before the line.
            let at = ((bucket.t - from).max(0) / step.max(1)) as usize;
            if let Some((sum, count)) = sums.get_mut(at) {
                *sum += bucket.mean * f64::from(bucket.count);
                *count += f64::from(bucket.count);
            }
        }
        for (values, (sum, count)) in all.iter_mut().zip(sums) {
            values.extend((count > 0.0).then(|| sum / count));
        }
    }
    let one = |values: Vec<f64>| {
        let count = values.len() as f64;
        let folded = match how {
            Together::Max => values.into_iter().reduce(f64::max),
            Together::Sum | Together::Mean => values.into_iter().reduce(|a, b| a + b),
        }?;
        Some(if how == Together::Mean { folded / count } else { folded })
    };
    all.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One sample per second from `from` on.
    fn each(from: i64, values: &[f64]) -> Vec<Bucket> {
        let one = |(i, &v): (i64, &f64)| Bucket { t: (from + i) * 1_000, min: v, max: v, mean: v, last: v, count: 1 };
        (0..).zip(values).map(one).collect()
    }

    fn held(spans: &[HeldSpan]) -> HeldGpu {
        HeldGpu { spans: spans.to_vec(), interval: 1_000, step: 1_000, ..HeldGpu::default() }
    }

    #[test]
    fn spans_that_touch_become_one() {
        assert_eq!(merged(vec![(5, 9), (0, 3), (3, 4), (8, 8), (7, 12)]), [(0, 4), (5, 12)]);
        assert_eq!(merged(vec![]), []);
    }

    #[test]
    fn use_and_idle_share_are_of_the_measured_time_and_coverage_of_the_held_time() {
        let mut sums = Sums::default();
        assert_eq!(
            (sums.gpu_hours(), sums.gpu_utilization(), sums.coverage(), sums.energy_kwh()),
            (None, None, None, None)
        );
        // Ten seconds held, eight of them measured: four idle, four at 80 %. Samples outside are not the run's.
        let values = [0.0, 0.0, 0.0, 0.0, 80.0, 80.0, 80.0, 80.0];
        let mut before = each(90, &[100.0; 5]);
        before.extend(each(100, &values));
        sums.add(&HeldGpu { utilization: before, ..held(&[(100_000, 110_000)]) });
        assert_eq!(sums.gpu_hours(), Some(10.0 / 3_600.0));
        assert_eq!((sums.gpu_utilization(), sums.idle_share(), sums.coverage()), (Some(40.0), Some(0.5), Some(0.8)));
        // A second GPU without readings changes only the coverage.
        sums.add(&held(&[(100_000, 110_000)]));
        assert_eq!((sums.gpus, sums.gpu_utilization(), sums.coverage()), (2, Some(40.0), Some(0.4)));
    }

    #[test]
    fn no_run_is_measured_for_longer_than_it_held() {
        let mut sums = Sums::default();
        sums.add(&HeldGpu { utilization: each(0, &[50.0; 4]), ..held(&[(0, 3_000)]) });
        assert_eq!((sums.measured_s, sums.gpu_utilization(), sums.coverage()), (3.0, Some(50.0), Some(1.0)));
    }

    #[test]
    fn energy_is_the_counters_else_power_times_time_and_never_that_of_an_assumed_gpu() {
        let counter = each(0, &[1_000.0, 1_100.0, 1_300.0, 40.0, 90.0]);
        let counted = || HeldGpu { energy: counter.clone(), power: each(0, &[1e6; 5]), ..held(&[(0, 5_000)]) };
        let mut sums = Sums::default();
        sums.add(&counted());
        assert_eq!((sums.joules, sums.estimated), (Some(350.0), false), "a restart of the driver is no gain");
        sums.add(&HeldGpu { power: each(0, &[200.0; 5]), ..held(&[(0, 5_000)]) });
        assert_eq!((sums.joules, sums.estimated), (Some(1_350.0), true));
        sums.add(&HeldGpu { assumed: true, ..counted() });
        assert_eq!((sums.joules, sums.assumed, sums.gpus), (Some(1_350.0), true, 3));
        assert_eq!(sums.energy_kwh(), Some(1_350.0 / 3.6e6));
    }

    #[test]
    fn memory_is_the_fullest_gpus() {
        let mut sums = Sums::default();
        for most in [5.0, 9.0, 7.0] {
            sums.add(&HeldGpu { memory: each(0, &[1.0, most]), ..held(&[(0, 2_000)]) });
        }
        assert_eq!(sums.memory_peak, Some(9.0));
    }

    #[test]
    fn a_line_folds_gpus_in_each_column_and_leaves_out_what_is_absent() {
        let (a, b) = (each(0, &[10.0, 30.0]), each(0, &[30.0, 50.0, 0.0, 0.0, 8.0]));
        let series: Vec<Vec<&Bucket>> = vec![a.iter().collect(), b.iter().filter(|b| b.mean > 0.0).collect()];
        let of = |how| line(&series, how, 0, 2_000, 3);
        assert_eq!(of(Together::Mean), [Some(30.0), None, Some(8.0)]);
        assert_eq!(of(Together::Sum), [Some(60.0), None, Some(8.0)]);
        assert_eq!(of(Together::Max), [Some(40.0), None, Some(8.0)]);
        // A roll-up that begins before the line belongs to its first column.
        assert_eq!(line(&series[..1], Together::Mean, 500, 2_000, 1), [Some(20.0)]);
    }
}

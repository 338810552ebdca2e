//! What is kept of a run when its samples have gone: its row, five curves, and what they add up to.

use super::measure::measure;
use crate::live::Live;
use crate::markers::steps;
use serde::{Deserialize, Serialize};
use shared::catalog::{Kind, MetricDef, cpu, gpu, network};
use shared::rollup::Bucket;
use shared::run::Run;
use shared::series::SeriesId;
use shared::wire::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most points of a curve.
const MAX_POINTS: i64 = 512;

/// What curves are of.
pub(super) static MEASURES: [&MetricDef; 5] =
    [&gpu::UTILISATION, &gpu::MEMORY_ALLOCATED, &gpu::POWER_WATTS, &cpu::CPU_PERCENT, &network::RECEIVED];

/// A measure over the time of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunCurve {
    /// Tag of its row in the catalogue.
    pub tag: String,
    /// How many series it is of.
    pub series: u32,
    /// Of each step with samples: its begin (milliseconds since the Unix epoch), and least, largest and mean of what the
    /// series had on average in it.
    pub points: Vec<(i64, f64, f64, f64)>,
}

/// What a run used. What is not known is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunNumbers {
    /// How long it ran, seconds.
    pub seconds: f64,
    /// GPUs that it holds, times the hours for which it held them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_hours: Option<f64>,
    /// Mean of the time in which its GPUs were busy, 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_utilisation: Option<f64>,
    /// Share of the measured time in which they were busy for less than 5 %, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_share: Option<f64>,
    /// Energy of its GPUs; absent, too, where the driver does not say which they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_kwh: Option<f64>,
    /// Share of its time of which there are samples, 0 to 1.
    pub coverage: f64,
    /// The newest step that a marker names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// Steps a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps_per_second: Option<f64>,
}

/// All that is kept of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The run as it was listed.
    pub run: Run,
    /// Its machines: their keys by their names.
    pub machines: BTreeMap<String, String>,
    /// When the summary was made, milliseconds since the Unix epoch.
    pub made: i64,
    /// Width of a point, milliseconds.
    pub step: i64,
    /// What it used.
    pub numbers: RunNumbers,
    /// Its curves; a measure without a sample has none.
    pub curves: Vec<RunCurve>,
}

impl RunSummary {
    /// Reads it from what is stored. It may read the disk.
    pub fn of(live: &Live, sources: &[Arc<Source>], run: Run) -> RunSummary {
        let now = live.clock.wall();
        let (from, to) = (run.began, run.ended.unwrap_or(now).max(run.began));
        let names: BTreeSet<&str> = run.processes.iter().map(|process| process.source.as_str()).collect();
        let sources: Vec<&Arc<Source>> = sources.iter().filter(|source| names.contains(source.name.as_str())).collect();
        let interval = sources.iter().map(|source| source.interval).max().unwrap_or(1_000);
        let step = ((to - from) / MAX_POINTS + 1).max(interval).max(1_000);
        let mut covered: BTreeSet<i64> = BTreeSet::new();
        let mut numbers = RunNumbers { seconds: (to - from) as f64 / 1_000.0, ..RunNumbers::default() };
        let mut curves = Vec::new();
        for measure in MEASURES {
            let series = series(live, &sources, &run, measure, (from, to), step);
            covered.extend(series.iter().flatten().map(|bucket| bucket.t));
            curves.extend(curve(measure, &series));
        }
        let steps_of_time = (to.div_euclid(step) - from.div_euclid(step) + 1) as f64;
        numbers.coverage = (covered.len() as f64 / steps_of_time).min(1.0);
        let machines = sources.iter().map(|source| (source.name.clone(), source.key.clone())).collect();
        let owned: Vec<Arc<Source>> = sources.into_iter().cloned().collect();
        let sums = measure(live, &owned, &run, now, (1, false)).sums;
        numbers.gpu_hours = sums.gpu_hours();
        numbers.gpu_utilisation = sums.gpu_utilisation();
        numbers.idle_share = sums.idle_share();
        // Of a part of its GPUs it would be less than what the run took.
        numbers.energy_kwh = sums.energy_kwh().filter(|_| !sums.assumed);
        if let Some(steps) = steps::of_run(live, &owned, &run.id, (from, to)) {
            (numbers.step, numbers.steps_per_second) = (Some(steps.step), steps.per_second);
        }
        RunSummary { run, machines, made: now, step, numbers, curves }
    }
}

/// The roll-ups of each series of a measure: of GPUs those that the run holds, where that is known of a machine.
fn series(
    live: &Live,
    sources: &[&Arc<Source>],
    run: &Run,
    measure: &MetricDef,
    (from, to): (i64, i64),
    step: i64,
) -> Vec<Vec<Bucket>> {
    let mut all = Vec::new();
    for source in sources {
        let ranks = run.processes.iter().filter(|process| process.source == source.name);
        let held: BTreeSet<String> =
            ranks.flat_map(|one| &one.rank).flat_map(|rank| &rank.gpus).map(u32::to_string).collect();
        let is_gpus = measure.tag.contains("{i}");
        if is_gpus && held.is_empty() {
            continue;
        }
        let (ids, snapshot) = {
            let store = live.store();
            let row = store.catalog().position(measure.tag);
            let fits = |(_, def): &(SeriesId, &shared::series::SeriesDef)| {
                Some(def.metric) == row && (!is_gpus || held.contains(&def.instance))
            };
            let ids: Vec<SeriesId> =
                (0..).zip(store.series(source.id, 0).iter()).filter(fits).map(|(id, _)| id).collect();
            (ids, store.snapshot(source.id, from, to))
        };
        let Some(snapshot) = snapshot.filter(|_| !ids.is_empty()) else { continue };
        let counts = measure.kind == Kind::Counter;
        let read = snapshot.buckets(&ids, step, counts).into_iter();
        all.extend(read.map(|buckets| if counts { rates(&buckets) } else { buckets }));
    }
    all
}

/// What a counter gained a second from one step to the next; nothing where it fell, which is a restart.
fn rates(buckets: &[Bucket]) -> Vec<Bucket> {
    let rate = |pair: &[Bucket]| {
        let rate = (pair[1].last - pair[0].last) * 1_000.0 / (pair[1].t - pair[0].t) as f64;
        (rate >= 0.0).then_some(Bucket { t: pair[1].t, min: rate, max: rate, mean: rate, last: rate, count: 1 })
    };
    buckets.windows(2).filter_map(rate).collect()
}

fn curve(measure: &MetricDef, series: &[Vec<Bucket>]) -> Option<RunCurve> {
    let mut at: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    series.iter().flatten().for_each(|bucket| at.entry(bucket.t).or_default().push(bucket.mean));
    let point = |(t, means): (i64, Vec<f64>)| {
        let least = means.iter().copied().fold(f64::INFINITY, f64::min);
        let most = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (t, least, most, means.iter().sum::<f64>() / means.len() as f64)
    };
    let points: Vec<_> = at.into_iter().map(point).collect();
    let series = series.iter().filter(|buckets| !buckets.is_empty()).count() as u32;
    (!points.is_empty()).then(|| RunCurve { tag: measure.tag.into(), series, points })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_the_band_of_its_series() {
        let bucket = |t: i64, mean: f64| Bucket { t, min: 0.0, max: 100.0, mean, last: mean, count: 9 };
        let series = [vec![bucket(0, 10.0), bucket(5, 30.0)], vec![bucket(0, 20.0)], Vec::new()];
        let curve = curve(&gpu::UTILISATION, &series).expect("a curve");
        assert_eq!((curve.series, curve.points), (2, vec![(0, 10.0, 20.0, 15.0), (5, 30.0, 30.0, 30.0)]));
        assert_eq!(super::curve(&gpu::UTILISATION, &[Vec::new()]), None);
    }
}

//! The stored part of a run after its samples have gone: its row, five curves, and its numbers.

use super::CostSettings;
use super::days::RunDay;
use super::logged;
use super::measure::measure;
use super::sums::Sums;
use super::used::measure_use;
use crate::markers::{between, steps as speed};
use serde::{Deserialize, Serialize};
use shared::answer::markers::Marker;
use shared::catalog::{Kind, MetricDef, cpu, gpu, network};
use shared::finding::{Finding, Place};
use shared::rollup::Bucket;
use shared::run::Run;
use shared::series::SeriesId;
use shared::wire::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stream::live::Live;

/// Maximum number of stored findings and of markers of a run.
const MAX_FINDINGS: usize = 100;
const MAX_MARKS: usize = 200;

/// Maximum number of points of a curve.
const MAX_POINTS: i64 = 512;

/// Measures of the curves.
pub static MEASURES: [&MetricDef; 5] =
    [&gpu::UTILIZATION, &gpu::MEMORY_ALLOCATED, &gpu::POWER_WATTS, &cpu::CPU_PERCENT, &network::RECEIVED];

/// A measure over the time of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunCurve {
    /// Tag of its row in the catalog.
    pub tag: String,
    /// Number of its series.
    pub series: u32,
    /// One entry per step with samples: its begin (milliseconds since the Unix epoch), and the minimum, maximum and
    /// mean over the series' averages in it.
    pub points: Vec<(i64, f64, f64, f64)>,
}

/// Usage of a run. Unknown values are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunNumbers {
    /// Duration, seconds.
    pub seconds: f64,
    /// GPU-hours held: GPUs times hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_hours: Option<f64>,
    /// Mean utilization of its GPUs, 0 to 100. Summaries that were stored before the first release have the British
    /// name.
    #[serde(alias = "gpu_utilisation", skip_serializing_if = "Option::is_none")]
    pub gpu_utilization: Option<f64>,
    /// Share of the measured time with utilization below 5 %, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_share: Option<f64>,
    /// Energy of its GPUs; also absent if the driver does not identify them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_kwh: Option<f64>,
    /// Share of its time with samples, 0 to 1.
    pub coverage: f64,
    /// The newest step that a marker names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// Steps per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps_per_second: Option<f64>,
    /// Number of distinct GPUs that it held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u64>,
    /// Maximum memory in use on one GPU, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_memory_peak_bytes: Option<f64>,
    /// Mean CPU time of its processes, cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores_mean: Option<f64>,
    /// Maximum of the same in one column of a chart, cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores_peak: Option<f64>,
    /// Maximum memory of its processes in one column of a chart, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_peak_bytes: Option<f64>,
    /// Model names of its GPUs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpu_models: Vec<String>,
    /// Driver versions of its machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drivers: Vec<String>,
    /// Cost of its GPU-hours and their energy, if the configuration has prices for all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Currency of the cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
}

impl RunNumbers {
    /// Takes over the sums of a run. The energy of only a part of its GPUs would be too low, so it is then absent, and
    /// the cost with it.
    pub(super) fn hold(&mut self, sums: &Sums, prices: Option<&CostSettings>) {
        self.gpu_hours = sums.gpu_hours();
        self.gpu_utilization = sums.gpu_utilization();
        self.idle_share = sums.idle_share();
        self.energy_kwh = sums.energy_kwh().filter(|_| !sums.assumed);
        self.gpus = (sums.gpus > 0).then_some(sums.gpus);
        self.gpu_memory_peak_bytes = sums.memory_peak;
        self.gpu_models = sums.gpu_models();
        self.cost = prices.and_then(|prices| sums.cost(prices));
        self.currency = self.cost.and(prices.map(|prices| prices.currency.clone()));
    }
}

/// The driver versions of machines, each once.
pub fn drivers(sources: &[Arc<Source>]) -> Vec<String> {
    let fact = |source: &Arc<Source>| source.facts.iter().find(|(word, _)| word == "driver").map(|(_, v)| v.clone());
    sources.iter().filter_map(fact).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The stored summary of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunSummary {
    /// The run as it was listed.
    pub run: Run,
    /// Keys of its machines, by name.
    pub machines: BTreeMap<String, String>,
    /// Time of the summary, milliseconds since the Unix epoch.
    pub made: i64,
    /// Width of a point, milliseconds.
    pub step: i64,
    /// Its usage.
    pub numbers: RunNumbers,
    /// Its curves; a measure without a sample has none.
    pub curves: Vec<RunCurve>,
    /// The newest findings about its machines during the run, or about the GPUs that it held.
    pub findings: Vec<Finding>,
    /// Its newest markers.
    pub markers: Vec<RunMark>,
    /// Its GPU time by day; only in stored summaries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub days: Vec<RunDay>,
}

/// A marker of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunMark {
    /// Its time, milliseconds since the Unix epoch.
    pub t: i64,
    /// Its kind.
    pub kind: String,
    /// Its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The training step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// The rank that sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Name of its machine.
    pub source: String,
}

/// Returns the findings in a span, milliseconds since the Unix epoch, of all machines.
pub type FindingsOf = Box<dyn Fn((i64, i64)) -> Vec<Finding> + Send + Sync>;

/// Whether a finding is about a run: about its machines only, by name, and for GPUs, about one that it held, if that is
/// known.
fn is_about(finding: &Finding, run: &Run, machines: &BTreeMap<String, String>) -> bool {
    let own = |place: &Place| {
        let ranks = run.processes.iter().filter(|one| one.source == place.source).filter_map(|one| one.rank.as_ref());
        let held: BTreeSet<u32> = ranks.flat_map(|rank| rank.gpus.iter().copied()).collect();
        held.is_empty() || place.gpus.is_empty() || place.gpus.iter().any(|gpu| held.contains(gpu))
    };
    let mut places = finding.subject.iter().chain(&finding.affects);
    let evidence = finding.evidence.iter().map(|one| &one.source);
    places.clone().map(|place| &place.source).chain(evidence).all(|name| machines.contains_key(name)) && places.any(own)
}

/// The newest markers of a run on all its machines.
fn marks(live: &Live, sources: &[Arc<Source>], run: &str, span: (i64, i64)) -> Vec<RunMark> {
    let fits = |marker: &Marker| marker.run.as_deref() == Some(run);
    let mut all = Vec::new();
    for source in sources {
        all.extend(between(live, source.id, span, MAX_MARKS, fits).into_iter().map(|(_, t, marker)| RunMark {
            t,
            kind: marker.kind,
            text: marker.text,
            step: marker.step,
            rank: marker.rank,
            source: source.name.clone(),
        }));
    }
    all.sort_by_key(|mark| mark.t);
    all.drain(..all.len().saturating_sub(MAX_MARKS));
    all
}

impl RunSummary {
    /// Makes it from stored data. It may read the disk.
    pub fn build(
        live: &Live,
        sources: &[Arc<Source>],
        run: Run,
        (findings, prices): (Option<&FindingsOf>, Option<&CostSettings>),
    ) -> RunSummary {
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
            curves.extend(band(measure.tag, &series));
        }
        let steps_of_time = (to.div_euclid(step) - from.div_euclid(step) + 1) as f64;
        numbers.coverage = (covered.len() as f64 / steps_of_time).min(1.0);
        let machines: BTreeMap<String, String> =
            sources.iter().map(|source| (source.name.clone(), source.key.clone())).collect();
        let owned: Vec<Arc<Source>> = sources.into_iter().cloned().collect();
        let sums = measure(live, &owned, &run, now, (1, false)).sums;
        numbers.hold(&sums, prices);
        let used = measure_use(live, &owned, &run, now);
        (numbers.cores_mean, numbers.cores_peak) = (used.cores_mean, used.cores_peak);
        numbers.memory_peak_bytes = used.memory_peak;
        numbers.drivers = drivers(&owned);
        let own = logged::curves(live, &owned, &run, (from, to), step);
        curves.extend(own.iter().filter_map(|(tag, series)| band(tag, series)));
        if let Some(steps) = speed::steps(&logged::steps(live, &owned, &run, (from, to))) {
            (numbers.step, numbers.steps_per_second) = (Some(steps.step), steps.per_second);
        }
        let mut findings = findings.map(|of| of((from, to))).unwrap_or_default();
        findings.retain(|one| is_about(one, &run, &machines));
        findings.truncate(MAX_FINDINGS);
        let markers = marks(live, &owned, run.machine_id(), (from, to));
        RunSummary { run, machines, made: now, step, numbers, curves, findings, markers, days: Vec::new() }
    }
}

/// The roll-ups of each series of a measure; for GPUs only those that the run held, if a machine knows them.
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

/// Increase of a counter per second between steps; none where it fell, which is a restart.
fn rates(buckets: &[Bucket]) -> Vec<Bucket> {
    let rate = |pair: &[Bucket]| {
        let rate = (pair[1].last - pair[0].last) * 1_000.0 / (pair[1].t - pair[0].t) as f64;
        (rate >= 0.0).then_some(Bucket { t: pair[1].t, min: rate, max: rate, mean: rate, last: rate, count: 1 })
    };
    buckets.windows(2).filter_map(rate).collect()
}

/// The band of the averages of series; None if they have no sample.
fn band(tag: &str, series: &[Vec<Bucket>]) -> Option<RunCurve> {
    let mut at: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    series.iter().flatten().for_each(|bucket| at.entry(bucket.t).or_default().push(bucket.mean));
    let point = |(t, means): (i64, Vec<f64>)| {
        let least = means.iter().copied().fold(f64::INFINITY, f64::min);
        let most = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (t, least, most, means.iter().sum::<f64>() / means.len() as f64)
    };
    let points: Vec<_> = at.into_iter().map(point).collect();
    let series = series.iter().filter(|buckets| !buckets.is_empty()).count() as u32;
    (!points.is_empty()).then(|| RunCurve { tag: tag.into(), series, points })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_the_band_of_its_series() {
        let bucket = |t: i64, mean: f64| Bucket { t, min: 0.0, max: 100.0, mean, last: mean, count: 9 };
        let series = [vec![bucket(0, 10.0), bucket(5, 30.0)], vec![bucket(0, 20.0)], Vec::new()];
        let curve = band(gpu::UTILIZATION.tag, &series).expect("a curve");
        assert_eq!((curve.series, curve.points), (2, vec![(0, 10.0, 20.0, 15.0), (5, 30.0, 30.0, 30.0)]));
        assert_eq!(band(gpu::UTILIZATION.tag, &[Vec::new()]), None);
    }
}

//! CPU time and memory that the processes of a run used, from the series of its processes.

use super::measure::{life, read_step, series_of};
use super::sums::{HeldSpan, Together, line, within};
use shared::catalog::{MetricDef, process};
use shared::rollup::Bucket;
use shared::run::{Run, RunProcess};
use shared::series::SeriesId;
use shared::wire::Source;
use std::collections::BTreeMap;
use std::sync::Arc;
use stream::live::Live;

/// Maximum number of columns into which a run is divided.
const MAX_COLUMNS: i64 = 512;
/// Maximum number of processes of a machine that are read.
const MAX_PROCESSES: usize = 512;

/// Use of a run. Values without a sample are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunUse {
    /// Mean CPU time of all its processes, cores.
    pub cores_mean: Option<f64>,
    /// Maximum of the same in one column, cores.
    pub cores_peak: Option<f64>,
    /// Maximum memory of all its processes in one column, bytes.
    pub memory_peak: Option<f64>,
}

/// Columns of a run: start and width (milliseconds), and number.
#[derive(Clone, Copy)]
struct Columns {
    from: i64,
    step: i64,
    count: usize,
}

/// Sums over machines by column; a column without a sample is None.
struct Totals(Vec<Option<f64>>);

impl Totals {
    fn add(&mut self, series: &[Vec<&Bucket>], columns: Columns) {
        let values = line(series, Together::Sum, columns.from, columns.step, columns.count);
        for (sum, value) in self.0.iter_mut().zip(values) {
            *sum = value.map(|value| sum.unwrap_or(0.0) + value).or(*sum);
        }
    }

    fn mean(&self) -> Option<f64> {
        let known: Vec<f64> = self.0.iter().flatten().copied().collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }

    fn peak(&self) -> Option<f64> {
        self.0.iter().flatten().copied().reduce(f64::max)
    }
}

/// Reads the use of a run on these machines up to `now`, milliseconds since the Unix epoch. It may read the disk.
pub fn measure_use(live: &Live, sources: &[Arc<Source>], run: &Run, now: i64) -> RunUse {
    let span = (run.began, run.ended.unwrap_or(now).max(run.began + 1));
    let own = |source: &&Arc<Source>| run.processes.iter().any(|one| one.source == source.name);
    let sources: Vec<&Arc<Source>> = sources.iter().filter(own).collect();
    let interval = sources.iter().map(|source| source.interval).max().unwrap_or(1_000).max(1);
    let step = ((span.1 - span.0) / MAX_COLUMNS).max(read_step(span, interval));
    let columns = Columns { from: span.0, step, count: ((span.1 - span.0) / step + 1) as usize };
    let mut cores = Totals(vec![None; columns.count]);
    let mut memory = Totals(vec![None; columns.count]);
    for source in sources {
        let processes = run.processes.iter().filter(|one| one.source == source.name).take(MAX_PROCESSES);
        let processes: Vec<&RunProcess> = processes.collect();
        for (row, totals) in [(&process::CORES, &mut cores), (&process::RSS, &mut memory)] {
            let read = read_rows(live, source, row, (&processes, &run.id), (span, step));
            let lives: Vec<HeldSpan> = read.iter().map(|(one, _)| life(one, span)).collect();
            let own = read.iter().zip(&lives);
            let own = own.map(|((_, buckets), life)| within(buckets, step, std::slice::from_ref(life)).collect());
            totals.add(&own.collect::<Vec<Vec<&Bucket>>>(), columns);
        }
    }
    let bytes = process::RSS.unit.to_base();
    RunUse {
        cores_mean: cores.mean(),
        cores_peak: cores.peak(),
        memory_peak: memory.peak().map(|memory| memory * bytes),
    }
}

/// The roll-ups of a row for each of these processes of a run that has a series.
fn read_rows<'a>(
    live: &Live,
    source: &Source,
    row: &MetricDef,
    (processes, run): (&[&'a RunProcess], &str),
    ((from, to), step): ((i64, i64), i64),
) -> Vec<(&'a RunProcess, Vec<Bucket>)> {
    let mut known: BTreeMap<String, SeriesId> = BTreeMap::new();
    let snapshot = {
        let store = live.store();
        let of_row = store.catalog().position(row.tag);
        let series = (0..).zip(store.series(source.id, 0)).filter(|(_, def)| Some(def.metric) == of_row);
        known.extend(series.map(|(id, def)| (def.instance.clone(), id)));
        store.snapshot(source.id, from, to)
    };
    let found = processes.iter().filter_map(|one| {
        let id = series_of(one, run).iter().rev().find_map(|name| known.get(name).copied())?;
        Some((*one, id))
    });
    let (found, ids): (Vec<&RunProcess>, Vec<SeriesId>) = found.unzip();
    let buckets = snapshot.map(|snapshot| snapshot.buckets(&ids, step, false)).unwrap_or_default();
    found.into_iter().zip(buckets).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_added_by_column_and_a_gap_is_no_zero() {
        let bucket = |t: i64, mean: f64| Bucket { t, min: mean, max: mean, mean, last: mean, count: 1 };
        let (one, other) = ([bucket(0, 2.0), bucket(10, 6.0)], [bucket(10, 1.0), bucket(30, 3.0)]);
        let columns = Columns { from: 0, step: 10, count: 4 };
        let mut totals = Totals(vec![None; 4]);
        assert_eq!((totals.mean(), totals.peak()), (None, None));
        totals.add(&[one.iter().collect(), other.iter().collect()], columns);
        assert_eq!(totals.0, [Some(2.0), Some(7.0), None, Some(3.0)]);
        // A second machine.
        totals.add(&[other.iter().collect()], columns);
        assert_eq!((totals.mean(), totals.peak()), (Some(16.0 / 3.0), Some(8.0)));
    }
}

//! Values that a run logged, read from the history of its machines.

use super::measure::{Line, Measure, RunMeasures, read_step};
use super::sums::{Together, line};
use crate::markers::steps;
use shared::catalog::MetricDef;
use shared::catalog::job::{self, ValueSender};
use shared::rollup::Bucket;
use shared::run::Run;
use shared::series::SeriesId;
use shared::unit::Unit;
use shared::wire::Source;
use std::collections::BTreeMap;
use std::sync::Arc;
use stream::live::Live;

/// Maximum number of values of the lines of a run: with more ranks, further names have one line of all ranks.
const MAX_VALUES: usize = 120_000;

/// Maximum number of names in the summary of a run.
const MAX_CURVES: usize = 24;

/// One series of a run.
pub(super) struct Logged {
    /// Name of its machine.
    pub source: String,
    /// The process.
    pub sender: ValueSender,
    /// Name of the value, for [`job::NOT_A_NUMBER`].
    pub of: Option<String>,
    /// Roll-ups, oldest first.
    pub buckets: Vec<Bucket>,
}

/// The roll-ups of each process by tag.
type OfTags = Vec<(String, Vec<Vec<Bucket>>)>;

/// Whether the tag without its placeholder is that of a row.
fn is(row: &MetricDef, tag: &str) -> bool {
    row.tag.strip_suffix(job::LABELS) == Some(tag)
}

/// Series of a run by the tag of their row without its placeholder, as `job.loss`; those of a tag in the order of
/// machines and ranks. `span` is in milliseconds since the Unix epoch, `step` the width of a roll-up in milliseconds;
/// with `last`, their last values are exact. It may read the disk.
pub(super) fn read(
    live: &Live,
    sources: &[Arc<Source>],
    run: &Run,
    (from, to): (i64, i64),
    (step, last): (i64, bool),
    wanted: impl Fn(&str) -> bool,
) -> BTreeMap<String, Vec<Logged>> {
    let id = run.machine_id();
    let mut all: BTreeMap<String, Vec<Logged>> = BTreeMap::new();
    for source in sources.iter().filter(|source| run.processes.iter().any(|one| one.source == source.name)) {
        let mut found: Vec<(SeriesId, String, ValueSender, Option<String>)> = Vec::new();
        let snapshot = {
            let store = live.store();
            let catalog = store.catalog();
            for (series, def) in (0..).zip(store.series(source.id, 0)) {
                let tag = catalog.metric(def).and_then(|metric| metric.tag.strip_suffix(job::LABELS));
                let Some(tag) = tag.filter(|tag| tag.starts_with(job::PREFIX) && wanted(tag)) else { continue };
                let (sender, of) = ValueSender::from_instance(&def.instance);
                if sender.run.as_deref() == Some(id) {
                    found.push((series, tag.to_string(), sender, of));
                }
            }
            // The last values of a process are in the tick after its end.
            store.snapshot(source.id, from, to.saturating_add(2 * source.interval))
        };
        let Some(snapshot) = snapshot.filter(|_| !found.is_empty()) else { continue };
        found.sort_by_key(|(_, _, sender, _)| sender.rank);
        let ids: Vec<SeriesId> = found.iter().map(|(series, ..)| *series).collect();
        for ((_, tag, sender, of), mut buckets) in found.into_iter().zip(snapshot.buckets(&ids, step, last)) {
            buckets.iter_mut().for_each(|bucket| bucket.t = bucket.t.min(to));
            if !buckets.is_empty() {
                all.entry(tag).or_default().push(Logged { source: source.name.clone(), sender, of, buckets });
            }
        }
    }
    all
}

/// Adds charts of the values of a run before the others: one of each name, with a line of each process. `now` is in
/// milliseconds since the Unix epoch. It may read the disk.
pub fn add_logged(live: &Live, sources: &[Arc<Source>], run: &Run, now: i64, to: &mut RunMeasures) {
    let span = (run.began, run.ended.unwrap_or(now).max(run.began + 1));
    let points = ((span.1 - to.from) / to.step.max(1) + 1).max(1) as usize;
    let own = measures(live, sources, run, span, (to.from, to.step, points));
    to.measures.splice(..0, own);
}

fn measures(
    live: &Live,
    sources: &[Arc<Source>],
    run: &Run,
    span: (i64, i64),
    (from, step, points): (i64, i64, usize),
) -> Vec<Measure> {
    let mut room = MAX_VALUES / points.max(1);
    let width = read_step(span, interval(sources, run));
    let read = read(live, sources, run, span, (width, false), |tag| !is(&job::STEP, tag));
    let mut further = read.len();
    let mut all = Vec::new();
    for (tag, series) in read {
        further -= 1;
        let odd = is(&job::NOT_A_NUMBER, &tag);
        let own = |one: &Logged| Line {
            source: one.source.clone(),
            rank: one.sender.rank,
            label: named(one),
            values: line(&[one.buckets.iter().collect()], Together::Mean, from, step, points),
        };
        // Each further name has a line at least.
        let has_room = series.len() == 1 || series.len() + further <= room;
        let lines: Vec<Line> = match has_room {
            true => series.iter().map(own).collect(),
            false => vec![joined(&series, odd, (from, step, points))],
        };
        let Some(left) = room.checked_sub(lines.len()) else { break };
        room = left;
        let title = if odd { job::NOT_A_NUMBER.title } else { tag.trim_start_matches(job::PREFIX) };
        let title = title.to_string();
        all.push(Measure { id: tag, title, unit: Unit::Count, together: Together::Mean, lines });
    }
    all
}

/// One line of the processes of a name, for which lines of their own have no room.
fn joined(series: &[Logged], odd: bool, (from, step, points): (i64, i64, usize)) -> Line {
    let buckets: Vec<Vec<&Bucket>> = series.iter().map(|one| one.buckets.iter().collect()).collect();
    // A kind that is not a number has no mean.
    let (how, words) = if odd { (Together::Max, "largest") } else { (Together::Mean, "mean") };
    Line {
        source: series.first().map_or_else(String::new, |one| one.source.clone()),
        rank: None,
        label: Some(format!("{words} of {}", series.len())),
        values: line(&buckets, how, from, step, points),
    }
}

/// The name of a line, if it is not that of its rank.
fn named(one: &Logged) -> Option<String> {
    let rank = one.sender.rank.map(|rank| format!("rank {rank}"));
    match (&one.of, rank.or_else(|| one.sender.label.clone())) {
        (Some(of), Some(process)) => Some(format!("{of} · {process}")),
        (Some(of), None) => Some(of.clone()),
        (None, _) => one.sender.label.clone(),
    }
}

/// The longest interval of a run's machines, milliseconds.
fn interval(sources: &[Arc<Source>], run: &Run) -> i64 {
    let own = sources.iter().filter(|source| run.processes.iter().any(|one| one.source == source.name));
    own.map(|source| source.interval).max().unwrap_or(1_000).max(1)
}

/// Time and step of a run between two times, milliseconds since the Unix epoch, sorted by time: of its markers, else of
/// the values that its lowest rank logs. It may read the disk.
pub fn steps(live: &Live, sources: &[Arc<Source>], run: &Run, span: (i64, i64)) -> Vec<(i64, u64)> {
    let told = steps::read_steps(live, sources, run.machine_id(), span);
    if !told.is_empty() {
        return told;
    }
    let width = read_step(span, interval(sources, run));
    let read = read(live, sources, run, span, (width, true), |tag| is(&job::STEP, tag));
    let lowest = read.into_values().flatten().min_by_key(|one| (one.sender.rank, one.source.clone()));
    let told = |one: Logged| {
        let known = one.buckets.iter().filter(|bucket| bucket.last.is_finite());
        known.map(|bucket| (bucket.t, bucket.last as u64)).collect()
    };
    lowest.map(told).unwrap_or_default()
}

/// The values of a run for its summary, by tag: the roll-ups of each process. At most [`MAX_CURVES`] names.
pub(super) fn curves(live: &Live, sources: &[Arc<Source>], run: &Run, span: (i64, i64), step: i64) -> OfTags {
    let wanted = |tag: &str| !is(&job::STEP, tag) && !is(&job::NOT_A_NUMBER, tag);
    let read = read(live, sources, run, span, (step, false), wanted);
    let of = |(tag, series): (String, Vec<Logged>)| (tag, series.into_iter().map(|one| one.buckets).collect());
    read.into_iter().take(MAX_CURVES).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::catalog::{Catalog, Chart, Metric};
    use shared::run::{Rank, RunProcess};
    use shared::series::SeriesDef;
    use std::time::Duration;
    use stream::clock::Manual;
    use stream::store::{Limits, Store};

    /// A minute of a run with two ranks on one machine: the loss of rank 0 falls, and that of rank 1 is lost.
    fn trained() -> (Arc<Live>, Vec<Arc<Source>>, Run) {
        let catalog = Arc::new(Catalog::new(job::ROWS.iter().copied()));
        let mut store = Store::new(catalog, Limits { retention: 3_600_000, bytes: usize::MAX });
        store.add_source("node-1".into(), 1_000, Vec::new());
        let mut row = Metric::from(&job::VALUE);
        (row.tag, row.chart) = ("job.loss{labels}".into(), "job.loss".into());
        let chart = Chart { id: "job.loss".into(), title: "loss".into(), section: job::SECTION.into() };
        let loss = store.add_row_of(Some(0), row, chart).expect("room");
        let at = |tag: &str| store.catalog().position(tag).expect("a row");
        let (step, odd) = (at(job::STEP.tag), at(job::NOT_A_NUMBER.tag));
        let rank =
            |rank: u32, run: &str| ValueSender { run: Some(run.into()), rank: Some(rank), ..ValueSender::default() };
        let defs = [
            (loss, rank(1, "abc").instance(None)),
            (loss, rank(0, "abc").instance(None)),
            (step, rank(0, "abc").instance(None)),
            (odd, rank(1, "abc").instance(Some("loss"))),
            (loss, rank(0, "other").instance(None)),
        ];
        for (metric, instance) in defs {
            store.intern(0, SeriesDef { metric, instance }).expect("room");
        }
        let clock = Arc::new(Manual::at(60_000, Duration::ZERO));
        let live = Live::new(store, clock, 1, 3_600_000);
        for second in 0..60 {
            let falls = 2.0 - f64::from(second) / 60.0;
            let lost = second >= 30;
            let second_rank = if lost { f64::NAN } else { falls + 1.0 };
            let odd = if lost { 1.0 } else { f64::NAN };
            // A step takes two seconds, and is logged once.
            let (own, step) = if second % 2 == 0 { (falls, f64::from(second) / 2.0) } else { (f64::NAN, f64::NAN) };
            let values = [second_rank, own, step, odd, 9.0];
            live.append(0, i64::from(second) * 1_000, false, &values).expect("a tick");
        }
        let process = |rank: u32| RunProcess {
            source: "node-1".into(),
            pid: rank + 1,
            rank: Some(Rank { rank, ..Rank::default() }),
            ..RunProcess::default()
        };
        let run =
            Run { id: "abc".into(), ended: Some(60_000), processes: vec![process(0), process(1)], ..Run::default() };
        let sources = live.store().sources();
        (live, sources, run)
    }

    #[test]
    fn a_run_has_a_chart_for_each_name_with_a_line_for_each_rank() {
        let (live, sources, run) = trained();
        let all = measures(&live, &sources, &run, (0, 60_000), (0, 10_000, 6));
        let names: Vec<_> = all.iter().map(|one| (one.id.as_str(), one.title.as_str(), one.lines.len())).collect();
        assert_eq!(names, [("job.loss", "loss", 2), ("job.not_a_number", "Values that are not a number", 1)]);
        let [first, second] = &all[0].lines[..] else { panic!("two lines") };
        assert_eq!((first.rank, second.rank, first.label.clone()), (Some(0), Some(1), None));
        assert!(first.values.iter().all(Option::is_some), "gaps between steps are none of a column");
        assert_eq!(second.values.iter().filter(|value| value.is_none()).count(), 3);
        assert_eq!(all[1].lines[0].label.as_deref(), Some("loss · rank 1"));
        assert_eq!(all[1].lines[0].values, [None, None, None, Some(1.0), Some(1.0), Some(1.0)]);
    }

    #[test]
    fn a_name_whose_ranks_have_no_room_has_one_line_of_all() {
        let (live, sources, run) = trained();
        let points = MAX_VALUES / 2;
        let all = measures(&live, &sources, &run, (0, 60_000), (0, 10_000, points));
        let lines: Vec<_> = all.iter().map(|one| (one.id.as_str(), one.lines.len())).collect();
        assert_eq!(lines, [("job.loss", 1), ("job.not_a_number", 1)], "no name is left out");
        let mean = &all[0].lines[0];
        assert_eq!((mean.rank, mean.label.as_deref()), (None, Some("mean of 2")));
        let each = measures(&live, &sources, &run, (0, 60_000), (0, 10_000, 6));
        let first = |at: usize| each[0].lines[at].values[0].expect("a value");
        assert_eq!(mean.values[0], Some((first(0) + first(1)) / 2.0));
    }

    #[test]
    fn steps_that_values_name_give_the_speed_of_a_run_without_markers() {
        let (live, sources, run) = trained();
        let told = steps(&live, &sources, &run, (0, 60_000));
        assert_eq!((told.first(), told.last(), told.len()), (Some(&(0, 0)), Some(&(58_000, 29)), 30));
        assert_eq!(steps::steps(&told).and_then(|steps| steps.per_second), Some(0.5));
    }

    #[test]
    fn a_summary_has_the_values_of_each_rank() {
        let (live, sources, run) = trained();
        let kept = curves(&live, &sources, &run, (0, 60_000), 30_000);
        let [(tag, series)] = &kept[..] else { panic!("one name: {kept:?}") };
        let counts: Vec<Vec<u32>> =
            series.iter().map(|buckets| buckets.iter().map(|bucket| bucket.count).collect()).collect();
        assert_eq!((tag.as_str(), counts), ("job.loss", vec![vec![15, 15], vec![30]]));
    }
}

//! Samples of the history in order of time, as input of the detection.

use super::registry::FindingRegistry;
use insight::{Insight, Job, Rank, Reserved, Settings};
use jobs::runs::RunRegistry;
use shared::catalog::job::ValueSender;
use shared::run::Run;
use shared::series::SeriesId;
use shared::wire::{Source, SourceId};
use std::collections::BTreeMap;
use std::sync::Arc;
use stream::live::Live;
use stream::store::Snapshot;

/// Approximate maximum of samples in memory, and the minimum and maximum length of their span, milliseconds.
const SAMPLES_HELD: i64 = 4_000_000;
const PART_MS: (i64, i64) = (60_000, 15 * 60_000);

/// Interval of the evaluation, milliseconds.
const SECOND: i64 = 1_000;

/// A tick: its time, the index of its source among those that are read, and its samples.
type Tick = (i64, usize, Vec<(SeriesId, f64)>);

/// A source that is read.
struct Read {
    id: SourceId,
    series: Vec<SeriesId>,
    snapshot: Option<Snapshot>,
}

/// Defines a source and its series; returns the series that the detection uses.
pub(super) fn announce(insight: &mut Insight, live: &Live, source: &Source) -> Vec<SeriesId> {
    insight.source(source.id.into(), &source.name, source.interval);
    let store = live.store();
    let all = (0..).zip(store.series(source.id, 0));
    all.filter_map(|(id, def)| {
        let metric = store.catalog().metric(def).filter(|metric| Insight::reads(metric, &def.instance))?;
        insight.series(source.id.into(), id, metric, &def.instance);
        Some(id)
    })
    .collect()
}

/// Passes the data of these sources between two times, milliseconds, to the detection, and its findings to the caller.
/// It reads the disk. `jobs` returns the jobs that run at a time.
pub(super) fn feed(
    insight: &mut Insight,
    live: &Live,
    sources: &[Arc<Source>],
    (from, to): (i64, i64),
    jobs: &[Run],
    mut each: impl FnMut(shared::finding::Finding),
) {
    let read: Vec<Read> = sources
        .iter()
        .map(|source| Read {
            id: source.id,
            series: announce(insight, live, source),
            snapshot: live.store().snapshot(source.id, from, to),
        })
        .collect();
    let by_name: BTreeMap<&str, SourceId> = sources.iter().map(|s| (s.name.as_str(), s.id)).collect();
    let series = read.iter().map(|read| read.series.len()).sum::<usize>().max(1) as i64;
    let step = (SAMPLES_HELD / series * SECOND).clamp(PART_MS.0, PART_MS.1);
    let (mut found, mut at, mut known) = (Vec::new(), from, Vec::new());
    while at <= to {
        let end = (at.saturating_add(step) - 1).min(to);
        let mut ticks: Vec<Tick> = Vec::new();
        for (place, read) in read.iter().enumerate() {
            let Some(part) = read.snapshot.as_ref().and_then(|whole| whole.part(at, end)) else { continue };
            let mut by_time: BTreeMap<i64, Vec<(SeriesId, f64)>> = BTreeMap::new();
            for (id, samples) in read.series.iter().zip(part.samples(&read.series)) {
                samples.into_iter().for_each(|(t, value)| by_time.entry(t).or_default().push((*id, value)));
            }
            ticks.extend(by_time.into_iter().map(|(t, samples)| (t, place, samples)));
        }
        ticks.sort_by_key(|(t, place, _)| (*t, *place));
        let mut looked = at;
        for (t, place, samples) in ticks {
            if t >= looked + SECOND {
                let now = running(jobs, &by_name, t);
                if now != known {
                    insight.jobs(&now);
                    known = now;
                }
                looked = t - t.rem_euclid(SECOND);
                insight.judge(looked, &mut found);
                found.drain(..).for_each(&mut each);
            }
            insight.tick(read[place].id.into(), t, samples);
        }
        at = end + 1;
    }
    insight.judge(to.saturating_add(1), &mut found);
    found.into_iter().for_each(each);
}

/// The jobs that run at a time, with the known GPUs of their ranks, and those that are reserved for them.
pub(super) fn running(runs: &[Run], sources: &BTreeMap<&str, SourceId>, t: i64) -> Vec<Job> {
    let of = |run: &Run| {
        let there = || run.processes.iter().filter(|one| one.began <= t && one.ended.is_none_or(|ended| ended > t));
        let reserved: Vec<Reserved> = there()
            .filter_map(|one| {
                let gpus =
                    one.reserved.as_ref().map(|reserved| reserved.gpus.clone()).filter(|gpus| !gpus.is_empty())?;
                Some(Reserved { source: (*sources.get(one.source.as_str())?).into(), gpus })
            })
            .collect();
        let ranks: Vec<Rank> = there()
            .filter_map(|one| {
                let gpus = one.rank.as_ref().map(|rank| rank.gpus.clone()).filter(|gpus| !gpus.is_empty())?;
                let rank = one.rank.as_ref().map(|rank| rank.rank);
                let label = one.label.clone().filter(|_| rank.is_none());
                let sender = ValueSender { run: Some(run.machine_id().into()), rank, label, ..ValueSender::default() };
                let logs = sender.instance(None);
                Some(Rank { source: (*sources.get(one.source.as_str())?).into(), pid: one.pid, gpus, logs })
            })
            .collect();
        let owner = run.about.user.clone().unwrap_or_default();
        (!ranks.is_empty() || !reserved.is_empty()).then(|| Job { id: run.id.clone(), ranks, reserved, owner })
    };
    runs.iter().filter_map(of).collect()
}

/// Runs the detection over all stored data between two times, milliseconds; the findings are added to the registry. It
/// reads the disk, for as long as that takes.
pub fn look_through(live: &Live, registry: &FindingRegistry, settings: Settings, span: Option<(i64, i64)>) {
    let sources = live.store().sources();
    let spans = sources.iter().filter_map(|source| whole(live, source.id));
    let Some((first, last)) = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else { return };
    let (from, to) = span.unwrap_or((first, last));
    // The usual values are learned before the span begins.
    let (from, to) = ((from.saturating_sub(LEARN_MS)).max(first), to.min(last));
    let jobs: Vec<Run> =
        RunRegistry::default().newest_first(live, &sources, (from, to)).map(Arc::unwrap_or_clone).collect();
    let keys: BTreeMap<String, String> = sources.iter().map(|s| (s.name.clone(), s.key.clone())).collect();
    let mut insight = Insight::new(settings);
    feed(&mut insight, live, &sources, (from, to), &jobs, |finding| {
        registry.take_explained(live, finding, |name| keys.get(name).cloned());
    });
    registry.set_rules(insight.rules(), insight.left_out());
}

/// Length of the history before a span from which the usual values are learned, milliseconds.
pub(super) const LEARN_MS: i64 = 60 * 60_000;

/// Times of the first and last tick of a source.
fn whole(live: &Live, source: SourceId) -> Option<(i64, i64)> {
    let store = live.store();
    store.spans(source, 0).flatten().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

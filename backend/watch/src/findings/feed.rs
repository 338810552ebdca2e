//! Samples out of the history, in the order of time, for who looks for what is wrong in them.

use super::book::FindingBook;
use insight::{Insight, Job, Rank, Settings};
use jobs::runs::RunBook;
use shared::run::Run;
use shared::series::SeriesId;
use shared::wire::{Source, SourceId};
use std::collections::BTreeMap;
use std::sync::Arc;
use stream::live::Live;
use stream::store::Snapshot;

/// How many samples are in memory at once, about, and the time that they take at least and at most, milliseconds.
const SAMPLES_HELD: i64 = 4_000_000;
const PART_MS: (i64, i64) = (60_000, 15 * 60_000);

/// Time between two looks, milliseconds.
const SECOND: i64 = 1_000;

/// A tick: its time, the place of its source among those that are read, and its samples.
type Tick = (i64, usize, Vec<(SeriesId, f64)>);

/// One source, as it is read.
struct Read {
    id: SourceId,
    series: Vec<SeriesId>,
    snapshot: Option<Snapshot>,
}

/// Tells of a source, and of its series that are looked at: these.
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

/// Feeds what these sources have between two times, milliseconds, and hands out what is found. It reads the disk. Which jobs
/// run at a time `jobs` says.
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

/// The jobs that run at a time, with the GPUs that their ranks are known to hold.
pub(super) fn running(runs: &[Run], sources: &BTreeMap<&str, SourceId>, t: i64) -> Vec<Job> {
    let of = |run: &Run| {
        let ranks = run.processes.iter().filter(|one| one.began <= t && one.ended.is_none_or(|ended| ended > t));
        let ranks: Vec<Rank> = ranks
            .filter_map(|one| {
                let gpus = one.rank.as_ref().map(|rank| rank.gpus.clone()).filter(|gpus| !gpus.is_empty())?;
                Some(Rank { source: (*sources.get(one.source.as_str())?).into(), pid: one.pid, gpus })
            })
            .collect();
        (!ranks.is_empty()).then(|| Job { id: run.id.clone(), ranks })
    };
    runs.iter().filter_map(of).collect()
}

/// Looks through all that is kept, between two times, milliseconds; everything that is found is put into the book. It reads
/// the disk, and takes as long as that takes.
pub fn look_through(live: &Live, book: &FindingBook, settings: Settings, span: Option<(i64, i64)>) {
    let sources = live.store().sources();
    let spans = sources.iter().filter_map(|source| whole(live, source.id));
    let Some((first, last)) = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else { return };
    let (from, to) = span.unwrap_or((first, last));
    // What is usual is learned before the span begins.
    let (from, to) = ((from.saturating_sub(LEARN_MS)).max(first), to.min(last));
    let jobs: Vec<Run> =
        RunBook::default().newest_first(live, &sources, (from, to)).map(Arc::unwrap_or_clone).collect();
    let keys: BTreeMap<String, String> = sources.iter().map(|s| (s.name.clone(), s.key.clone())).collect();
    let mut insight = Insight::new(settings);
    feed(&mut insight, live, &sources, (from, to), &jobs, |finding| {
        book.take_explained(live, finding, |name| keys.get(name).cloned());
    });
    book.set_rules(insight.rules(), insight.left_out());
}

/// How much of the history before a span is looked at, so that it is known what is usual, milliseconds.
pub(super) const LEARN_MS: i64 = 60 * 60_000;

/// First and last instant of all that a source has.
fn whole(live: &Live, source: SourceId) -> Option<(i64, i64)> {
    let store = live.store();
    store.spans(source, 0).flatten().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

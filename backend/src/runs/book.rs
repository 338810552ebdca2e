//! The runs of all machines, kept up with their records as these come, so that a list reads from the disk only what it has
//! not read before.

use super::fold::{Runs, Silence, clipped, judged, merged};
use super::kept::KeptRuns;
use super::output::RunLogs;
use super::reported::Reports;
use super::summary::{FindingsOf, RunSummary};
use crate::config::CostSettings;
use crate::live::{Live, Reader};
use shared::run::Run;
use shared::standing::Standing;
use shared::wire::{Source, SourceId};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// How long a machine is silent before its runs are said to be unreachable, milliseconds.
const SILENCE_MS: i64 = 60_000;

/// How long until its runs are given up, milliseconds: agents keep what they could not send for as long.
const LOST_MS: i64 = 12 * 3_600_000;

/// What is known of the runs of one machine.
#[derive(Debug, Default)]
struct Part {
    key: String,
    forgotten: u64,
    /// Number of the newest record that was read.
    read: u64,
    runs: Runs,
}

/// The runs of all machines.
#[derive(Default)]
pub struct RunBook {
    parts: Mutex<HashMap<SourceId, Part>>,
    made: Arc<Made>,
    /// Those whose samples may have gone.
    pub kept: KeptRuns,
    /// What those of this machine printed.
    pub logs: RunLogs,
    /// Tells what was wrong while they ran.
    pub findings: OnceLock<FindingsOf>,
    /// Takes what launchers tell by requests, where runs of this machine are followed.
    pub reports: OnceLock<Reports>,
    /// What GPU-time and energy cost.
    pub prices: OnceLock<CostSettings>,
}

/// What machines, which are called so, know of a run.
type Parts = Vec<(Arc<str>, Arc<Run>)>;

/// What a run in a list is made of.
enum Entry {
    /// What the machines' records say.
    Parts(Parts),
    /// What was kept.
    Kept(Arc<Run>),
}

impl Entry {
    fn id(&self) -> &str {
        match self {
            Entry::Parts(parts) => parts.first().map_or("", |(_, run)| run.id.as_str()),
            Entry::Kept(run) => &run.id,
        }
    }
}

/// Runs that have ended on all their machines, as they were made of what these know, by their ids: a long list is made again
/// and again.
#[derive(Default)]
struct Made(Mutex<HashMap<String, (Parts, Arc<Run>)>>);

/// The most that are remembered; then all are made anew.
const MAX_MADE: usize = 100_000;

/// After so many more those are forgotten of which no machine knows any more.
const FORGET_EVERY: usize = 1_024;

impl Made {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Parts, Arc<Run>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run of these parts as it was in a span; None where it was not there then. `silent` says of a machine that it is not
    /// heard.
    fn run(&self, parts: Parts, span: (i64, i64), silent: impl Fn(&str) -> Option<Silence>) -> Option<Arc<Run>> {
        let all = || parts.iter().flat_map(|(_, part)| &part.processes);
        if !all().any(|one| one.began <= span.1 && one.ended.is_none_or(|ended| ended >= span.0)) {
            return None;
        }
        let is_over = all().all(|one| one.began >= span.0 && one.ended.is_some_and(|ended| ended <= span.1));
        let id = &parts.first()?.1.id;
        let same = |known: &Parts| {
            let pairs = known.iter().zip(&parts);
            known.len() == parts.len() && pairs.into_iter().all(|(a, b)| a.0 == b.0 && Arc::ptr_eq(&a.1, &b.1))
        };
        if is_over && let Some((_, run)) = self.lock().get(id).filter(|(known, _)| same(known)) {
            return Some(run.clone());
        }
        let run = Arc::new(judged(clipped(merged(&parts)?, span)?, &silent));
        if is_over {
            let mut made = self.lock();
            if made.len() >= MAX_MADE {
                made.clear();
            } else if made.len() % FORGET_EVERY == FORGET_EVERY - 1 {
                // Where nobody else holds a part, its machine has let go of it.
                made.retain(|_, (parts, _)| parts.iter().any(|(_, part)| Arc::strong_count(part) > 1));
            }
            made.insert(id.clone(), (parts, run.clone()));
        }
        Some(run)
    }
}

impl RunBook {
    /// Reads what came since. It may read the disk.
    fn refresh(&self, live: &Live, sources: &[Arc<Source>]) -> Vec<Vec<Arc<Run>>> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::with_capacity(sources.len());
        for source in sources {
            let part = parts.entry(source.id).or_default();
            let (forgotten, last) = {
                let store = live.store();
                (store.records_forgotten(source.id), store.last_record(source.id))
            };
            if part.key != source.key || part.forgotten != forgotten {
                *part = Part { key: source.key.clone(), forgotten, ..Part::default() };
            }
            if part.read < last {
                let records = live.store().records_behind(source.id, part.read);
                records.into_iter().flatten().flatten().for_each(|record| part.runs.take(&source.name, &record));
                part.read = last;
            }
            all.push(part.runs.all().cloned().collect());
        }
        all
    }

    /// All runs that a reader may see and that were there between two times, also those whose samples have gone, newest first.
    /// It may read the disk.
    pub fn seen(&self, reader: &Reader, span: (i64, i64)) -> impl Iterator<Item = Arc<Run>> + use<> {
        let kept = self.kept.seen(|key| reader.scope().sees(key));
        self.some(reader.live(), &reader.sources(), span, |_| true, kept)
    }

    /// Those that the records of these machines tell of. It may read the disk.
    pub(super) fn of_records(&self, live: &Live, sources: &[Arc<Source>]) -> impl Iterator<Item = Arc<Run>> + use<> {
        self.newest_first(live, sources, (i64::MIN, i64::MAX))
    }

    /// The runs of machines that were there between two times, milliseconds since the Unix epoch, newest first; each is made
    /// when it is asked for. It may read the disk.
    pub fn newest_first(
        &self,
        live: &Live,
        sources: &[Arc<Source>],
        span: (i64, i64),
    ) -> impl Iterator<Item = Arc<Run>> + use<> {
        self.some(live, sources, span, |_| true, Vec::new())
    }

    /// Likewise those that have not ended on each of their machines.
    pub fn open(&self, live: &Live, sources: &[Arc<Source>]) -> impl Iterator<Item = Arc<Run>> + use<> {
        let runs: fn(&Run) -> bool = |run| run.processes.iter().any(|process| process.ended.is_none());
        self.some(live, sources, (i64::MIN, i64::MAX), runs, Vec::new()).filter(|run| run.ended.is_none())
    }

    fn some(
        &self,
        live: &Live,
        sources: &[Arc<Source>],
        span: (i64, i64),
        fits: fn(&Run) -> bool,
        kept: Vec<Arc<Run>>,
    ) -> impl Iterator<Item = Arc<Run>> + use<> {
        let all = self.refresh(live, sources);
        let mut by_id: HashMap<&str, Parts> = HashMap::with_capacity(all.iter().map(Vec::len).sum());
        for (source, runs) in sources.iter().zip(&all) {
            let name: Arc<str> = source.name.as_str().into();
            for run in runs {
                by_id.entry(&run.id).or_insert_with(|| Vec::with_capacity(1)).push((name.clone(), run.clone()));
            }
        }
        let began = |parts: &Parts| parts.iter().map(|(_, run)| run.began).min().unwrap_or_default();
        by_id.retain(|_, parts| parts.iter().any(|(_, run)| fits(run)));
        let kept: Vec<(i64, Entry)> = kept
            .into_iter()
            .filter(|run| !by_id.contains_key(run.id.as_str()))
            .map(|run| (run.began, Entry::Kept(run)))
            .collect();
        let parts = by_id.into_values().map(|parts| (began(&parts), Entry::Parts(parts)));
        let mut sorted: Vec<(i64, Entry)> = parts.chain(kept).collect();
        sorted.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.id().cmp(b.1.id())));
        let (silent, made) = (silent(live, sources), self.made.clone());
        let one = move |(_, entry)| match entry {
            Entry::Parts(parts) => made.run(parts, span, |source: &str| silent.get(source).copied()),
            Entry::Kept(run) => {
                let is_whole = run
                    .processes
                    .iter()
                    .all(|one| (span.0..=span.1).contains(&one.began) && one.ended.is_none_or(|ended| ended <= span.1));
                if is_whole { Some(run) } else { clipped(Arc::unwrap_or_clone(run), span).map(Arc::new) }
            }
        };
        sorted.into_iter().filter_map(one)
    }

    /// The summary of a run, as a reader may see it: from the samples while they are there, else what was kept. It may read
    /// the disk.
    pub fn summary(&self, reader: &Reader, id: &str, span: (i64, i64)) -> Option<RunSummary> {
        let sources = reader.sources();
        let of_records = self.find(reader.live(), &sources, id, span);
        let kept = || {
            self.kept.summary(id, |key| reader.scope().sees(key)).filter(|one| clipped(one.run.clone(), span).is_some())
        };
        let Some(run) = of_records else { return kept() };
        let made = RunSummary::of(reader.live(), &sources, run, (self.findings.get(), self.prices.get()));
        // Records may outlive the samples.
        match made.curves.is_empty() {
            true => Some(kept().filter(|kept| kept.run.id == made.run.id && !kept.curves.is_empty()).unwrap_or(made)),
            false => Some(made),
        }
    }

    /// One run by its id. It may read the disk.
    pub fn find(&self, live: &Live, sources: &[Arc<Source>], id: &str, span: (i64, i64)) -> Option<Run> {
        let all = self.refresh(live, sources);
        let own = |(source, runs): (&Arc<Source>, Vec<Arc<Run>>)| {
            runs.into_iter().find(|run| run.id == id).map(|run| (source.name.as_str().into(), run))
        };
        let parts: Parts = sources.iter().zip(all).filter_map(own).collect();
        let silent = silent(live, sources);
        clipped(merged(&parts)?, span).map(|run| judged(run, &|source: &str| silent.get(source).copied()))
    }
}

/// When machines that are not heard any more were heard last, by their names.
fn silent(live: &Live, sources: &[Arc<Source>]) -> BTreeMap<String, Silence> {
    let unheard = |source: &Arc<Source>| {
        let (standing, since) = live.source(source.id).standing();
        let silent = !matches!(standing, Standing::Live | Standing::Late | Standing::Filling { .. });
        let age = live.clock.wall() - since;
        (silent && age >= SILENCE_MS).then(|| (source.name.clone(), Silence { since, for_good: age >= LOST_MS }))
    };
    sources.iter().filter_map(unheard).collect()
}

//! The runs of all machines, kept up with their records as these come, so that a list reads from the disk only what it has
//! not read before.

use super::fold::{Runs, Silence, clipped, judged, merged};
use super::kept::KeptRuns;
use super::output::RunLogs;
use super::summary::{FindingsOf, RunSummary};
use crate::live::{Live, Reader};
use shared::run::Run;
use shared::standing::Standing;
use shared::wire::{Source, SourceId};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

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
    /// Those whose samples may have gone.
    pub kept: KeptRuns,
    /// What those of this machine printed.
    pub logs: RunLogs,
    /// Tells what was wrong while they ran.
    pub findings: OnceLock<FindingsOf>,
}

/// What a run in a list is made of.
enum Entry {
    /// What the machines' records say, by the machines' names.
    Parts(Vec<(String, Arc<Run>)>),
    /// What was kept.
    Kept(Box<Run>),
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
    pub fn seen(&self, reader: &Reader, span: (i64, i64)) -> impl Iterator<Item = Run> + use<> {
        let kept = self.kept.seen(|key| reader.scope().sees(key));
        self.some(reader.live(), &reader.sources(), span, |_| true, kept)
    }

    /// Those that the records of these machines tell of. It may read the disk.
    pub(super) fn of_records(&self, live: &Live, sources: &[Arc<Source>]) -> impl Iterator<Item = Run> + use<> {
        self.newest_first(live, sources, (i64::MIN, i64::MAX))
    }

    /// The runs of machines that were there between two times, milliseconds since the Unix epoch, newest first; each is made
    /// when it is asked for. It may read the disk.
    pub fn newest_first(
        &self,
        live: &Live,
        sources: &[Arc<Source>],
        span: (i64, i64),
    ) -> impl Iterator<Item = Run> + use<> {
        self.some(live, sources, span, |_| true, Vec::new())
    }

    /// Likewise those that have not ended on each of their machines.
    pub fn open(&self, live: &Live, sources: &[Arc<Source>]) -> impl Iterator<Item = Run> + use<> {
        let runs: fn(&Run) -> bool = |run| run.processes.iter().any(|process| process.ended.is_none());
        self.some(live, sources, (i64::MIN, i64::MAX), runs, Vec::new()).filter(|run| run.ended.is_none())
    }

    fn some(
        &self,
        live: &Live,
        sources: &[Arc<Source>],
        span: (i64, i64),
        fits: fn(&Run) -> bool,
        kept: Vec<Run>,
    ) -> impl Iterator<Item = Run> + use<> {
        let all = self.refresh(live, sources);
        let mut by_id: HashMap<String, Vec<(String, Arc<Run>)>> = HashMap::new();
        for (source, runs) in sources.iter().zip(all) {
            for run in runs {
                by_id.entry(run.id.clone()).or_default().push((source.name.clone(), run));
            }
        }
        let began = |parts: &[(String, Arc<Run>)]| parts.iter().map(|(_, run)| run.began).min().unwrap_or_default();
        by_id.retain(|_, parts| parts.iter().any(|(_, run)| fits(run)));
        let kept = kept.into_iter().filter(|run| !by_id.contains_key(&run.id));
        let kept: Vec<(i64, String, Entry)> =
            kept.map(|run| (run.began, run.id.clone(), Entry::Kept(Box::new(run)))).collect();
        let parts = by_id.into_iter().map(|(id, parts)| (began(&parts), id, Entry::Parts(parts)));
        let mut sorted: Vec<(i64, String, Entry)> = parts.chain(kept).collect();
        sorted.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let silent = silent(live, sources);
        let one = move |(_, _, entry)| match entry {
            Entry::Parts(parts) => {
                clipped(merged(parts)?, span).map(|run| judged(run, &|source: &str| silent.get(source).copied()))
            }
            Entry::Kept(run) => clipped(*run, span),
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
        let made = RunSummary::of(reader.live(), &sources, run, self.findings.get());
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
            runs.into_iter().find(|run| run.id == id).map(|run| (source.name.clone(), run))
        };
        let parts: Vec<_> = sources.iter().zip(all).filter_map(own).collect();
        let silent = silent(live, sources);
        clipped(merged(parts)?, span).map(|run| judged(run, &|source: &str| silent.get(source).copied()))
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

//! The runs of all machines. They are updated as records arrive, so that a list reads only new records from the disk.

use super::CostSettings;
use super::days::RunDays;
use super::edits::{KnownEdits, PlacedRun, RunEdits, renamed};
use super::kept::KeptRuns;
use super::other_id;
use super::output::RunLogs;
use super::reduce::{RunPart, Runs, Silence, apart, clipped, judged, merged};
use super::reported::Reports;
use super::summary::{FindingsOf, RunSummary};
use crate::markers::Markers;
use parking_lot::{Mutex, MutexGuard};
use shared::connection_state::ConnectionState;
use shared::run::{Run, RunProcess};
use shared::wire::{Source, SourceId};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use stream::live::{Live, Reader};

/// Silence of a machine after which its runs are unreachable, milliseconds.
const SILENCE_MS: i64 = 60_000;

/// Silence after which its runs are lost: agents buffer unsent data for this time, milliseconds.
const LOST_MS: i64 = 12 * 3_600_000;

/// The runs of one machine.
#[derive(Debug, Default)]
struct OfMachine {
    key: String,
    forgotten: u64,
    /// Number of the newest record that was read.
    read: u64,
    runs: Runs,
}

/// The runs of all machines.
#[derive(Default)]
pub struct RunRegistry {
    parts: Mutex<HashMap<SourceId, OfMachine>>,
    /// Teams of machines, by machine key; None if there are no teams.
    teams: Mutex<Option<HashMap<String, Arc<str>>>>,
    made: Arc<Made>,
    /// Cached GPU time of runs by day.
    pub(super) days: RunDays,
    /// Summaries of runs, which outlive their samples.
    pub kept: KeptRuns,
    /// Changes of runs by people.
    pub edits: Arc<RunEdits>,
    /// The source of this machine, if it has one.
    pub(super) own: Option<SourceId>,
    /// Output of the runs of this machine.
    pub logs: RunLogs,
    /// Offers of launchers of this machine to take stacks.
    #[cfg(unix)]
    pub(super) stacks: super::stacks::StackRequests,
    findings: Option<FindingsOf>,
    /// Receives reports of launchers by request, if runs of this machine are followed.
    pub reports: Option<Reports>,
    /// Receives markers of this machine.
    pub markers: Arc<Markers>,
    /// Prices of GPU time and energy.
    pub prices: Option<CostSettings>,
}

/// The parts of a run registry.
#[derive(Default)]
pub struct RunRegistryParts {
    /// The source of this machine, if it has one.
    pub own: Option<SourceId>,
    /// Output of the runs of this machine.
    pub logs: RunLogs,
    /// Returns the findings of a span.
    pub findings: Option<FindingsOf>,
    /// Receives reports of launchers by request, if runs of this machine are followed.
    pub reports: Option<Reports>,
    /// Receives markers of this machine.
    pub markers: Arc<Markers>,
    /// Prices of GPU time and energy.
    pub prices: Option<CostSettings>,
}

/// The runs of a machine, each with the number of the job among those of its address.
type OfSource = Vec<(Option<i64>, Arc<Run>)>;

/// Source of a run in a list.
enum RunSource {
    /// Records of machines, and the ID under which the run is listed.
    Parts(String, Vec<RunPart>),
    /// A stored summary.
    Kept(Arc<Run>),
}

impl RunSource {
    fn id(&self) -> &str {
        match self {
            RunSource::Parts(id, _) => id,
            RunSource::Kept(run) => &run.id,
        }
    }
}

/// Cache of merged runs that have ended on all their machines, by ID: a long list is made again and again.
#[derive(Default)]
struct Made(Mutex<MadeRuns>);

/// By listed ID: the parts, and the run that was made of them.
type MadeRuns = HashMap<String, (Vec<RunPart>, Arc<Run>)>;

/// Maximum size of the cache; above it all entries are dropped.
const MAX_MADE: usize = 100_000;

/// After this many new entries, those that no machine knows any more are dropped.
const FORGET_EVERY: usize = 1_024;

impl Made {
    fn lock(&self) -> MutexGuard<'_, MadeRuns> {
        self.0.lock()
    }

    /// The run of these parts, listed under an ID, within a span; None if it was not there then. `silent` returns the
    /// silence of a machine.
    fn run(
        &self,
        (id, parts): (String, Vec<RunPart>),
        span: (i64, i64),
        silent: impl Fn(&str) -> Option<Silence>,
    ) -> Option<Arc<Run>> {
        let all = || parts.iter().flat_map(|part| &part.run.processes);
        if !all().any(|one| one.began <= span.1 && one.ended.is_none_or(|ended| ended >= span.0)) {
            return None;
        }
        let is_over = all().all(|one| one.began >= span.0 && one.ended.is_some_and(|ended| ended <= span.1));
        let same = |known: &Vec<RunPart>| {
            let pairs = known.iter().zip(&parts);
            known.len() == parts.len()
                && pairs.into_iter().all(|(a, b)| a.name == b.name && Arc::ptr_eq(&a.run, &b.run))
        };
        if is_over && let Some((_, run)) = self.lock().get(&id).filter(|(known, _)| same(known)) {
            return Some(run.clone());
        }
        let run = Arc::new(judged(clipped(listed(&id, &parts)?, span)?, &silent));
        if is_over {
            let mut made = self.lock();
            if made.len() >= MAX_MADE {
                made.clear();
            } else if made.len() % FORGET_EVERY == FORGET_EVERY - 1 {
                // A part that only this cache holds was dropped by its machine.
                made.retain(|_, (parts, _)| parts.iter().any(|part| Arc::strong_count(&part.run) > 1));
            }
            made.insert(id, (parts, run.clone()));
        }
        Some(run)
    }
}

/// The run of these parts under an ID.
fn listed(id: &str, parts: &[RunPart]) -> Option<Run> {
    let mut run = merged(parts)?;
    if run.id != id {
        run.known_as = Some(std::mem::replace(&mut run.id, id.into()));
    }
    Some(run)
}

/// The runs of one ID, each with its listed ID: the first keeps the ID, and the others get one of their own.
fn with_ids(parts: Vec<RunPart>) -> impl Iterator<Item = (String, Vec<RunPart>)> {
    apart(parts).into_iter().enumerate().filter_map(|(at, parts)| Some((own_id(parts.first()?, at == 0), parts)))
}

/// The ID of a run with this first part.
fn own_id(RunPart { key, run, generation, .. }: &RunPart, is_first: bool) -> String {
    match generation {
        // No job of an address has the plain ID.
        Some(generation) => other_id(&run.id, &format!("{key} {generation}")),
        None if is_first => run.id.clone(),
        None => other_id(&run.id, key),
    }
}

/// Whether an ID means a run that is listed under another one. It may be the ID on one of its machines alone, or the
/// address of its job.
fn is_called(parts: &[RunPart], id: &str) -> bool {
    let jobs = parts.iter().filter(|part| part.generation.is_some());
    jobs.into_iter().any(|part| part.run.id == id || own_id(part, false) == id)
}

impl RunRegistry {
    /// A registry that has read nothing yet.
    pub fn new(RunRegistryParts { own, logs, findings, reports, markers, prices }: RunRegistryParts) -> Self {
        let edits = Arc::<RunEdits>::default();
        let kept = KeptRuns::new(edits.clone());
        RunRegistry { kept, edits, own, logs, findings, reports, markers, prices, ..RunRegistry::default() }
    }

    /// Findings and prices: a summary uses them besides records and samples.
    pub(super) fn summary_inputs(&self) -> (Option<&FindingsOf>, Option<&CostSettings>) {
        (self.findings.as_ref(), self.prices.as_ref())
    }

    /// Reads new records. It may read the disk.
    fn refresh(&self, live: &Live, sources: &[Arc<Source>]) -> Vec<OfSource> {
        let mut parts = self.parts.lock();
        let mut all = Vec::with_capacity(sources.len());
        for source in sources {
            let part = parts.entry(source.id).or_default();
            let (forgotten, last) = {
                let store = live.store();
                (store.records_forgotten(source.id), store.last_record(source.id))
            };
            if part.key != source.key || part.forgotten != forgotten {
                *part = OfMachine { key: source.key.clone(), forgotten, ..OfMachine::default() };
            }
            if part.read < last {
                let records = live.store().records_behind(source.id, part.read);
                records.into_iter().flatten().flatten().for_each(|record| part.runs.take(&source.name, &record));
                part.read = last;
            }
            all.push(part.runs.all().map(|(generation, run)| (generation, run.clone())).collect());
        }
        drop(parts);
        self.undeleted(sources, all)
    }

    /// Drops the runs of machines that people deleted.
    fn undeleted(&self, sources: &[Arc<Source>], all: Vec<OfSource>) -> Vec<OfSource> {
        let edits = self.edits.now();
        if edits.is_empty() {
            return all;
        }
        let teams = self.teams.lock();
        let left = |(source, runs): (&Arc<Source>, OfSource)| {
            let team = teams.as_ref().and_then(|teams| teams.get(&source.key)).map(|team| &**team);
            let own = |(generation, run): (Option<i64>, Arc<Run>)| {
                Some((generation, edits.left((&source.key, team), generation, &run)?))
            };
            runs.into_iter().filter_map(own).collect()
        };
        sources.iter().zip(all).map(left).collect()
    }

    /// The spans in which processes of deleted runs of an ID, as machines use it, began on a machine, milliseconds since
    /// the Unix epoch: an agent keeps their output for a while.
    pub fn deleted_spans(&self, run: &str, machine: &str) -> Vec<(i64, i64)> {
        self.edits.now().deleted_spans(run, machine)
    }

    /// All runs that a reader may see and that were there between two times, newest first. Runs whose samples have gone
    /// are included. It may read the disk.
    pub fn seen(&self, reader: &Reader, span: (i64, i64)) -> impl Iterator<Item = Arc<Run>> + use<> {
        let kept = self.kept.seen(|key| reader.scope().sees(key));
        self.some(reader.live(), &reader.sources(), span, |_| true, (kept, Some(self.edits.now())))
    }

    /// The runs in the records of these machines, with the names that the jobs had. It may read the disk.
    pub(super) fn of_records(&self, live: &Live, sources: &[Arc<Source>]) -> impl Iterator<Item = Arc<Run>> + use<> {
        self.some(live, sources, (i64::MIN, i64::MAX), |_| true, (Vec::new(), None))
    }

    /// The runs of machines between two times, milliseconds since the Unix epoch, newest first; each is made when the
    /// iterator reaches it. It may read the disk.
    pub fn newest_first(
        &self,
        live: &Live,
        sources: &[Arc<Source>],
        span: (i64, i64),
    ) -> impl Iterator<Item = Arc<Run>> + use<> {
        self.some(live, sources, span, |_| true, (Vec::new(), Some(self.edits.now())))
    }

    /// As above, the runs that have not ended on each of their machines.
    pub fn open(&self, live: &Live, sources: &[Arc<Source>]) -> impl Iterator<Item = Arc<Run>> + use<> {
        let runs: fn(&Run) -> bool = |run| run.processes.iter().any(|process| process.ended.is_none());
        let names = (Vec::new(), Some(self.edits.now()));
        self.some(live, sources, (i64::MIN, i64::MAX), runs, names).filter(|run| run.ended.is_none())
    }

    /// The runs of machines and the stored ones, with the names of these changes.
    fn some(
        &self,
        live: &Live,
        sources: &[Arc<Source>],
        span: (i64, i64),
        fits: fn(&Run) -> bool,
        (kept, edits): (Vec<Arc<Run>>, Option<KnownEdits>),
    ) -> impl Iterator<Item = Arc<Run>> + use<> {
        let all = self.refresh(live, sources);
        let mut by_id: HashMap<&str, Vec<RunPart>> = HashMap::with_capacity(all.iter().map(Vec::len).sum());
        for (source, runs) in sources.iter().zip(&all) {
            let part = self.part_of(source);
            for (generation, run) in runs {
                let part = part(*generation, run);
                by_id.entry(&run.id).or_insert_with(|| Vec::with_capacity(1)).push(part);
            }
        }
        by_id.retain(|_, parts| parts.iter().any(|part| fits(&part.run)));
        // A reader of some of the machines may see a run under another ID than the stored one.
        let is_there = |kept: &Run| {
            let first = kept.processes.first();
            let same = |one: &RunProcess| {
                first.is_some_and(|kept| (kept.pid, kept.began, &kept.source) == (one.pid, one.began, &one.source))
            };
            let has = |parts: &Vec<RunPart>| parts.iter().any(|part| part.run.processes.iter().any(same));
            by_id.contains_key(kept.id.as_str())
                || kept.known_as.as_deref().and_then(|id| by_id.get(id)).is_some_and(has)
        };
        let kept = kept.into_iter().filter(|run| !is_there(run));
        let kept: Vec<(i64, RunSource)> = kept.map(|run| (run.began, RunSource::Kept(run))).collect();
        let parts = by_id.into_values().flat_map(with_ids).map(|(id, parts)| {
            let began = parts.iter().map(|part| part.run.began).min().unwrap_or_default();
            (began, RunSource::Parts(id, parts))
        });
        let mut sorted: Vec<(i64, RunSource)> = parts.chain(kept).collect();
        sorted.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.id().cmp(b.1.id())));
        let (silent, made) = (silent(live, sources), self.made.clone());
        let one = move |(_, entry)| match entry {
            RunSource::Parts(id, parts) => {
                let edit = edits.as_ref().and_then(|edits| edits.of_parts(&parts));
                let run = made.run((id, parts), span, |source: &str| silent.get(source).copied())?;
                Some(renamed(run, edit))
            }
            RunSource::Kept(run) => {
                let is_whole = run
                    .processes
                    .iter()
                    .all(|one| (span.0..=span.1).contains(&one.began) && one.ended.is_none_or(|ended| ended <= span.1));
                if is_whole { Some(run) } else { clipped(Arc::unwrap_or_clone(run), span).map(Arc::new) }
            }
        };
        sorted.into_iter().filter_map(one)
    }

    /// The summary of a run, as a reader may see it: from samples while they are stored, else the stored summary. It
    /// may read the disk.
    pub fn summary(&self, reader: &Reader, id: &str, span: (i64, i64)) -> Option<RunSummary> {
        let sources = reader.sources();
        let of_records = self.find(reader.live(), &sources, id, span);
        let kept = || {
            self.kept.summary(id, |key| reader.scope().sees(key)).filter(|one| clipped(one.run.clone(), span).is_some())
        };
        let Some(run) = of_records else { return kept() };
        let made = RunSummary::build(reader.live(), &sources, run, self.summary_inputs());
        // Records may outlive the samples.
        match made.curves.is_empty() {
            true => Some(kept().filter(|kept| kept.run.id == made.run.id && !kept.curves.is_empty()).unwrap_or(made)),
            false => Some(made),
        }
    }

    /// One run by its ID. It may read the disk.
    pub fn find(&self, live: &Live, sources: &[Arc<Source>], id: &str, span: (i64, i64)) -> Option<Run> {
        let (id, parts) = self.find_parts(live, sources, id)?;
        let silent = silent(live, sources);
        let run =
            clipped(listed(&id, &parts)?, span).map(|run| judged(run, &|source: &str| silent.get(source).copied()));
        Some(Arc::unwrap_or_clone(renamed(Arc::new(run?), self.edits.now().of_parts(&parts))))
    }

    /// One run that a reader sees, by its ID, with all machines that have a part of it, also those that the reader does
    /// not see. It may read the disk.
    pub fn placed(&self, reader: &Reader, id: &str) -> Option<PlacedRun> {
        let (live, sources) = (reader.live(), reader.sources());
        let Some((_, seen)) = self.find_parts(live, &sources, id) else {
            return self.kept.placed(id, |key| reader.scope().sees(key));
        };
        let run = self.find(live, &sources, id, (i64::MIN, i64::MAX))?;
        let first = seen.first()?;
        let is_first = |part: &RunPart| part.key == first.key && part.generation == first.generation;
        // The lock of the store ends before the records are read.
        let everywhere = live.store().sources();
        let whole = self.parts_of(live, &everywhere, &first.run.id);
        let whole =
            whole.into_iter().find(|(_, parts)| parts.iter().any(is_first)).map_or(seen.clone(), |(_, all)| all);
        let machines = whole.iter().map(|part| (part.key.to_string(), part.generation)).collect();
        Some(PlacedRun { run, machines })
    }

    /// The parts of a run by its listed ID, and the ID under which it is listed.
    fn find_parts(&self, live: &Live, sources: &[Arc<Source>], id: &str) -> Option<(String, Vec<RunPart>)> {
        let mut all = self.parts_of(live, sources, id);
        let at = all.iter().position(|(own, _)| own == id).or_else(|| {
            // An address means its newest job.
            let called = (0..all.len()).filter(|at| is_called(&all[*at].1, id));
            called.max_by_key(|at| all[*at].1.iter().map(|part| part.run.began).min())
        });
        Some(all.swap_remove(at?))
    }

    /// The parts of all runs that an ID may mean, by their listed IDs.
    fn parts_of(&self, live: &Live, sources: &[Arc<Source>], id: &str) -> Vec<(String, Vec<RunPart>)> {
        let all = self.refresh(live, sources);
        // A run that is not the first of its ID has its own ID, which does not identify the first one.
        let begin = id.rsplit_once('-').map(|(begin, _)| begin).filter(|begin| begin.len() + 9 == id.len());
        let may_be = |run: &Run| run.id == id || begin.is_some_and(|begin| run.id.starts_with(begin));
        let mut by_id: BTreeMap<&str, Vec<RunPart>> = BTreeMap::new();
        for (source, runs) in sources.iter().zip(&all) {
            let part = self.part_of(source);
            for (generation, run) in runs.iter().filter(|(_, run)| may_be(run)) {
                by_id.entry(&run.id).or_default().push(part(*generation, run));
            }
        }
        by_id.into_values().flat_map(with_ids).collect()
    }

    /// Makes the part of a run that one machine knows.
    fn part_of(&self, source: &Source) -> impl Fn(Option<i64>, &Arc<Run>) -> RunPart + use<> {
        let [key, name]: [Arc<str>; 2] = [&source.key, &source.name].map(|text| text.as_str().into());
        // A machine whose team is unknown shares a team with no other.
        let teams = self.teams.lock();
        let team = teams.as_ref().map(|teams| teams.get(&source.key).unwrap_or(&key).clone());
        move |generation, run| {
            let (key, name, team, run) = (key.clone(), name.clone(), team.clone(), run.clone());
            RunPart { key, name, team, generation, run }
        }
    }

    /// Whether the team of each of these machines is known.
    pub fn knows_teams(&self, sources: &[Arc<Source>]) -> bool {
        let teams = self.teams.lock();
        sources.iter().all(|source| teams.as_ref().is_none_or(|teams| teams.contains_key(&source.key)))
    }

    /// Sets the teams of machines, by machine key. A run on machines of two teams is two runs.
    pub fn set_teams(&self, teams: HashMap<String, Arc<str>>) {
        *self.teams.lock() = Some(teams);
    }
}

/// The last contact of silent machines, by name.
fn silent(live: &Live, sources: &[Arc<Source>]) -> BTreeMap<String, Silence> {
    let unheard = |source: &Arc<Source>| {
        let (connection_state, since) = live.source(source.id).connection_state();
        let silent = !matches!(
            connection_state,
            ConnectionState::Live | ConnectionState::Late | ConnectionState::Filling { .. }
        );
        let age = live.clock.wall() - since;
        (silent && age >= SILENCE_MS).then(|| (source.name.clone(), Silence { since, for_good: age >= LOST_MS }))
    };
    sources.iter().filter_map(unheard).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::catalog::{Catalog, cpu};
    use shared::run::{BEGIN_KIND, Begun, END_KIND, How, Over, Rank, RunState};
    use std::time::Duration;
    use stream::clock::Manual;
    use stream::store::{Limits, Store};

    const ALWAYS: (i64, i64) = (i64::MIN, i64::MAX);

    #[test]
    fn two_jobs_at_one_address_are_two_runs_of_two_agents_each_under_an_id_that_stays() {
        let catalog = Arc::new(Catalog::new(cpu::ROWS.iter().copied()));
        let mut store = Store::new(catalog, Limits { retention: 3_600_000, bytes: usize::MAX });
        let nodes = [1, 2].map(|n| store.add_source(format!("node-{n}"), 1_000, Vec::new()));
        let live = Live::new(store, Arc::new(Manual::at(1_000_000, Duration::ZERO)), 1, 3_600_000);
        let registry = RunRegistry::default();
        let sources = || live.store().sources();
        let rank = |node: usize, t: i64| Begun {
            run: "ddp-n1-29500-00000000".into(),
            t,
            pid: 100,
            joined: true,
            generation: Some(t),
            rank: Some(Rank { rank: node as u32, launcher: "torch".into(), ..Rank::default() }),
            ..Begun::default()
        };
        let tell = |node: usize, t: i64, kind: &str, body: Vec<u8>| {
            live.append_record(nodes[node], t, kind, body).expect("kept");
        };
        let begin = |node: usize, t| tell(node, t, BEGIN_KIND, serde_json::to_vec(&rank(node, t)).expect("JSON"));
        let end = |node: usize, (from, t)| {
            let over = Over { begun: rank(node, from), t, how: How { exit: Some(0), ..How::default() } };
            tell(node, t, END_KIND, serde_json::to_vec(&over).expect("JSON"));
        };
        let listed = || -> Vec<(String, usize, RunState)> {
            let all = registry.newest_first(&live, &sources(), ALWAYS);
            all.map(|run| (run.id.clone(), run.processes.len(), run.state)).collect()
        };
        begin(0, 100_000);
        let first = listed()[0].0.clone();
        assert_eq!(listed(), [(first.clone(), 1, RunState::Running)]);
        begin(1, 101_000);
        assert_eq!(listed(), [(first.clone(), 2, RunState::Running)], "the same job, under the same id");
        end(0, (100_000, 200_000));
        end(1, (101_000, 200_500));
        begin(0, 210_000);
        begin(1, 330_000);
        let all = listed();
        let second = all[0].0.clone();
        assert_eq!(all, [(second.clone(), 2, RunState::Running), (first.clone(), 2, RunState::Finished)]);
        let found = |id: &str| registry.find(&live, &sources(), id, ALWAYS).map(|run| run.id);
        assert_eq!((found(&first), found(&second)), (Some(first.clone()), Some(second.clone())));
        // The address means the newest job; and a single machine uses another ID for it.
        assert_eq!(found("ddp-n1-29500-00000000"), Some(second.clone()));
        let alone: Vec<Arc<Source>> = sources().into_iter().skip(1).collect();
        let of_one = registry.newest_first(&live, &alone, ALWAYS).next().expect("it is there").id.clone();
        assert_ne!(of_one, second);
        assert_eq!(found(&of_one), Some(second));
    }
}

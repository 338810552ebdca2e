//! Tracks the running runs of this machine: reports, and ends according to the kernel, become records.

use super::RunsSettings;
use super::detection::{Here, LookedRank};
use super::jobs::Jobs;
use super::kubernetes::Kubernetes;
use super::permit::Owners;
use super::reduce::COUNTED;
use super::registry::RunRegistry;
use super::reported::Reported;
use super::series;
use super::slurm::{self, RunTool, Slurm};
use super::socket::{Message, SentBy};
use super::spool::Spool;
use crate::code_alerts::Calls;
use crate::markers::{Markers, TakenMarkers};
use crate::values;
#[cfg(target_os = "linux")]
use launch::memory::{LOOK_INTERVAL, Watched};
use shared::alert::CodeAlert;
use shared::alert_call::AlertCall;
use shared::catalog::job::ValueSender;
use shared::new_marker::NewMarker;
use shared::new_values::NewValues;
use shared::run::{BEGIN_KIND, Begun, Claim, END_KIND, How, Over, Paused, Rank, Reserved, RunState, STATE_KIND, Told};
use shared::wire::SourceId;
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use stream::live::Live;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Maximum number of processes whose ends are awaited; ends of further ones must be reported.
const MAX_WATCHED: usize = 1024;

/// Maximum number of running processes of runs; further ranks are not added.
const MAX_RUNNING: usize = 4096;

/// Maximum depth below a process of a run of a process that sends a marker.
const MAX_DEPTH: usize = 64;

/// Maximum time for a launcher to report the end of its process, which it knows better than the kernel's report to us.
const TELL_TIMEOUT: Duration = Duration::from_secs(2);

/// Delay between the end of a process and the reading of its last output.
const OUTPUT_DELAY: Duration = Duration::from_secs(2);

/// Maximum number of processes watched for OOM kills: each needs open files.
const MAX_MEMORIES: usize = 256;

/// Maximum number of concurrent queries to a scheduler, and of ends whose output is to be read.
const MAX_ASKED: usize = 256;

/// Time after a `preempting` marker in which the end of a run counts as preemption, milliseconds.
const PREEMPTING_MS: i64 = 10 * 60_000;

/// The answer to a sender that exceeds the limit of markers.
pub(super) const TOO_MANY_MARKERS: &str =
    "the limit per run is 100 markers a second and 10,000 an hour; this marker is dropped";

/// Identity of a process of a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    run: String,
    /// User that reported it: only the same user can end it.
    user: Option<String>,
    pid: u32,
}

impl Key {
    fn from_begun(begun: &Begun) -> Key {
        Key { run: begun.run.clone(), user: begun.about.user.clone(), pid: begun.pid }
    }
}

/// A process whose end is awaited.
struct Awaited {
    task: tokio::task::AbortHandle,
    /// The process existed before this program started waiting, so no other has its PID until then.
    was_there: bool,
}

pub(super) struct Tracker {
    pub live: Arc<Live>,
    pub source: SourceId,
    /// The known running processes.
    running: HashMap<Key, Begun>,
    pub owners: Owners,
    /// Jobs whose IDs are addresses.
    jobs: Jobs,
    /// Ends that the kernel reports, and their times.
    pub ends: JoinSet<(Key, Begun, i64, How)>,
    /// Processes whose ends the kernel reports.
    awaited: HashMap<Key, Awaited>,
    /// Ends according to schedulers.
    pub claims: JoinSet<(Over, Option<How>)>,
    /// Ends with the class that the output of their processes names.
    pub classes: JoinSet<Option<Over>>,
    registry: Arc<RunRegistry>,
    slurm: Slurm,
    /// Control groups of the machine.
    tree: PathBuf,
    kubernetes: Option<Arc<Kubernetes>>,
    /// Runs reported by requests, by ID.
    pub reported: HashMap<String, Reported>,
    /// Reported runs that ended lately, and when; the oldest first.
    pub reported_ends: VecDeque<(String, Instant)>,
    /// Times at which runs reported that they are being preempted.
    preempting: HashMap<String, i64>,
    stopped: HashSet<Key>,
    /// The running processes differ from those that the collectors know.
    changed: bool,
    dropped: u64,
}

/// The Kubernetes client, if it is enabled and available.
fn kubernetes(settings: &RunsSettings) -> Option<Arc<Kubernetes>> {
    if !settings.kubernetes {
        return None;
    }
    let asks = Kubernetes::new(settings, |name| std::env::var(name).ok());
    asks.map(Arc::new).inspect_err(|why| tracing::warn!("Kubernetes is not asked how pods ended: {why}")).ok()
}

/// Whether a process of this machine is alive.
fn is_alive(begun: &Begun) -> bool {
    is_process(begun.pid, begun.start)
}

/// Whether the process of this PID and start is alive.
fn is_process(pid: u32, start: Option<u64>) -> bool {
    launch::process::Stat::read(pid).is_some_and(|stat| Some(stat.start) == start && !stat.has_ended)
}

/// The newer rank of a process. A number by its GPU replaces none of a launcher, whose variables the process may have
/// overwritten before this program was started again.
fn kept_rank(new: Rank, known: Option<&Rank>) -> Rank {
    match known.filter(|known| new.launcher == COUNTED && known.launcher != COUNTED) {
        Some(known) => Rank { gpus: new.gpus, assumed: new.assumed, ..known.clone() },
        None => new,
    }
}

/// The place of a process in its run, for the labels of its values.
fn place_of(begun: &Begun) -> ValueSender {
    let rank = begun.rank.as_ref().map(|rank| rank.rank);
    let label = begun.about.label.clone().filter(|_| rank.is_none());
    ValueSender { run: Some(begun.run.clone()), rank, label, ..ValueSender::default() }
}

/// Appends a record; true if it was stored.
pub(super) fn append(live: &Live, source: SourceId, t: i64, kind: &str, body: &impl serde::Serialize) -> bool {
    let body = serde_json::to_vec(body).expect("texts and numbers only");
    let appended = live.append_record(source, t, kind, body);
    appended.inspect_err(|error| tracing::warn!(%error, "a run is not kept")).is_ok() && live.is_logged()
}

impl Tracker {
    pub fn new(
        (live, registry): (Arc<Live>, Arc<RunRegistry>),
        source: SourceId,
        owners: Owners,
        settings: &RunsSettings,
        (run_tool, tree): (RunTool, PathBuf),
    ) -> Tracker {
        Tracker {
            live,
            source,
            running: HashMap::new(),
            owners,
            jobs: Jobs::default(),
            ends: JoinSet::new(),
            awaited: HashMap::new(),
            claims: JoinSet::new(),
            classes: JoinSet::new(),
            registry,
            kubernetes: kubernetes(settings),
            slurm: Slurm {
                scontrol: settings.scontrol.clone().unwrap_or_else(|| slurm::SCONTROL.into()),
                run: run_tool,
            },
            tree,
            reported: HashMap::new(),
            reported_ends: VecDeque::new(),
            preempting: HashMap::new(),
            stopped: HashSet::new(),
            changed: true,
            dropped: 0,
        }
    }

    /// Resumes the processes in our own records and in the spooled reports.
    pub fn take_up(&mut self, spool: Option<&Spool>) {
        let open = self.open();
        let written = spool.map_or_else(Vec::new, |spool| spool.read(true));
        let ends = written.iter().filter(|(_, told)| matches!(told, Told::End(_))).map(|(_, told)| told.begun());
        let ends: HashSet<(u32, Option<u64>)> = ends.map(|begun| (begun.pid, begun.start)).collect();
        if let Some(spool) = spool {
            self.take(spool, written);
        }
        self.resume(open.into_values().filter(|begun| !ends.contains(&(begun.pid, begun.start))));
    }

    /// Whether a sender may send this message.
    pub fn permits(&self, sender: &SentBy, message: &Message) -> Result<(), String> {
        let of = |user: &str| self.running.values().filter(|one| one.about.user.as_deref() == Some(user)).count();
        self.owners.check(sender, message, of)
    }

    /// Takes spooled reports.
    pub fn take(&mut self, spool: &Spool, read: Vec<(String, Told)>) {
        for (name, told) in read {
            if self.receive_report(told).0 {
                spool.remove(&name);
            }
        }
    }

    /// Takes a report: whether it was stored, and the ID of its run if that differs from the reported one.
    pub fn receive_report(&mut self, mut told: Told) -> (bool, Option<String>) {
        let by = Key::from_begun(told.begun());
        let key = self.placed(told.begun_mut(), by.clone());
        let listed = Some(&key.run).filter(|run| **run != by.run).cloned();
        let is_kept = match told {
            Told::Begin(begun) => match self.running.get(&key).filter(|known| known.start == begun.start).cloned() {
                Some(known) if known == begun => true,
                // The rank was detected before its report: it is the same process, and its launcher knows its names.
                Some(Begun { t, rank, reserved, pod, .. }) => {
                    let (rank, pod) = (begun.rank.clone().or(rank), begun.pod.clone().or(pod));
                    let reserved = begun.reserved.clone().or(reserved);
                    self.enter(key, Begun { t, rank, reserved, pod, ..begun })
                }
                None => {
                    let is_kept = self.append(begun.t, BEGIN_KIND, &begun);
                    self.watch(key, begun, TELL_TIMEOUT);
                    is_kept
                }
            },
            Told::End(mut over) => {
                // The class comes from the output, which launchers do not read.
                over.how.failure = None;
                self.over(&key, over)
            }
        };
        (is_kept, listed)
    }

    /// Sets the run of a reported process. The run that it names is used if the kernel shows it below a process of that
    /// run, whoever owns it. Else it is the reporting user's own. `by` is the reported identity.
    fn placed(&self, begun: &mut Begun, by: Key) -> Key {
        let own = self.owners.id(&by.run, by.user.as_deref());
        // A known process keeps its run, and may have ended.
        let known = [&by.run, &own].into_iter().find_map(|run| {
            let key = Key { run: run.clone(), ..by.clone() };
            self.running.get(&key).filter(|known| known.start == begun.start).map(|known| (key, known))
        });
        if let Some((key, known)) = known {
            begun.run.clone_from(&key.run);
            begun.about.user.clone_from(&known.about.user);
            return key;
        }
        let is_here = begun.joined && own != by.run && begun.namespace == launch::process::namespace();
        if let Some(above) = is_here.then(|| self.above(begun.pid)).flatten().filter(|above| above.run == by.run) {
            begun.about.user.clone_from(&above.about.user);
            return by;
        }
        begun.run.clone_from(&own);
        Key { run: own, ..by }
    }

    /// Takes a marker of a script, for the run in which its process runs according to the kernel.
    pub fn marker(&mut self, markers: &Markers, new: NewMarker, pid: Option<u32>) -> Result<(), String> {
        let own = pid.filter(|_| new.run.is_none()).and_then(|pid| self.above(pid));
        let new = match own {
            Some(begun) => {
                NewMarker { run: Some(begun.run.clone()), rank: begun.rank.as_ref().map(|rank| rank.rank), ..new }
            }
            None => new,
        };
        let preempting = new.run.clone().filter(|_| new.kind.as_deref() == Some("preempting"));
        if let Some(run) = preempting.filter(|run| self.is_running(run)) {
            self.preempting.insert(run, self.live.clock.wall());
        }
        match markers.take(&self.live, self.source, vec![new]) {
            Ok(TakenMarkers { dropped: 0, .. }) => Ok(()),
            Ok(_) => Err(TOO_MANY_MARKERS.into()),
            Err(why) => Err(why.to_string()),
        }
    }

    /// Takes values of a script, for the run in which its process runs according to the kernel.
    pub fn values(&self, new: NewValues, pid: Option<u32>) -> Result<(), String> {
        match values::take(&self.live, self.source, new, pid) {
            Ok(taken) if taken.dropped == 0 => Ok(()),
            Ok(taken) => Err(values::too_many(taken.dropped)),
            Err(why) => Err(why.to_string()),
        }
    }

    /// Counts values that were dropped before they came here.
    pub fn drop_values(&self, count: u64) {
        self.live.source(self.source).job_values.drop_some(count);
    }

    /// Takes an alert of a script. The run according to the kernel takes precedence over the named one.
    pub fn alert(&self, calls: &Calls, said: CodeAlert, pid: Option<u32>) -> Result<(), String> {
        let own = pid.and_then(|pid| self.above(pid));
        let (run, rank) = match own {
            Some(begun) => (Some(begun.run.clone()), begun.rank.as_ref().map(|rank| rank.rank)),
            // A sender outside of all runs may name a run that is running here, and no other.
            None => (said.run.clone().filter(|run| self.is_running(run)), None),
        };
        if run.is_none() && said.run.is_some() {
            return Err("there is no such run on this machine now; `watchglass runs` lists them".into());
        }
        let call =
            AlertCall::checked(CodeAlert { run, ..said }, self.live.clock.wall()).map_err(|bad| bad.to_string())?;
        let call = AlertCall { ranks: rank.into_iter().collect(), ..call };
        calls.take(&self.live, self.source, call).map(drop).map_err(|why| why.to_string())
    }

    /// The list of runs.
    pub fn registry(&self) -> &Arc<RunRegistry> {
        &self.registry
    }

    pub fn is_running(&self, run: &str) -> bool {
        self.running.keys().any(|key| key.run == run)
    }

    /// This process or its nearest ancestor that is a process of a run.
    fn above(&self, pid: u32) -> Option<&Begun> {
        let own = launch::process::namespace();
        let here = |begun: &&Begun| begun.namespace == own && launch::process::started(begun.pid) == begun.start;
        let by_pid: HashMap<u32, &Begun> = self.running.values().filter(here).map(|begun| (begun.pid, begun)).collect();
        let line = std::iter::successors(Some(pid), |pid| launch::process::parent(*pid));
        line.take(MAX_DEPTH).find_map(|pid| by_pid.get(&pid).copied())
    }

    /// Adds detected ranks.
    pub fn found_all(&mut self, found: Vec<LookedRank>) {
        // The kernel identifies a process by its PID, whoever reported it.
        let known = self.running.iter().map(|(key, known)| ((key.run.clone(), key.pid, known.start), key.clone()));
        let known: HashMap<(String, u32, Option<u64>), Key> =
            if found.is_empty() { HashMap::new() } else { known.collect() };
        for LookedRank { mut begun, below, launcher } in found {
            let user = begun.about.user.clone();
            if below.as_ref() != Some(&begun.run) && !self.owners.fits(&begun.run, user.as_deref()) {
                // It names a run of another user: it belongs to the run below which it stands, or to one of its own.
                begun.run = below.unwrap_or_else(|| self.owners.id(&begun.run, user.as_deref()));
            }
            let key = known.get(&(begun.run.clone(), begun.pid, begun.start)).cloned();
            match key.as_ref().and_then(|key| self.running.get(key)) {
                Some(known) => known.generation.iter().for_each(|one| self.jobs.enter(known, *one, launcher)),
                None if begun.generation.is_some() => {
                    let is_alive = |(pid, start)| is_process(pid, Some(start));
                    begun.generation = Some(self.jobs.generation_of(&begun, launcher, is_alive));
                }
                None => {}
            }
            self.found(key.unwrap_or_else(|| Key::from_begun(&begun)), begun);
        }
    }

    /// Adds a detected rank. A known one is written again only if there is more to record.
    fn found(&mut self, key: Key, begun: Begun) {
        match self.running.get(&key) {
            Some(known) if known.start == begun.start => {
                let says_more = |new: &Rank, old: &Rank| {
                    new.attempt != old.attempt || new.gpus.iter().any(|gpu| !old.gpus.contains(gpu)) && !new.assumed
                };
                let rank = begun.rank.map(|new| kept_rank(new, known.rank.as_ref()));
                let more = match (&rank, &known.rank) {
                    (Some(new), Some(old)) => says_more(new, old),
                    (new, _) => new.is_some(),
                };
                if more {
                    // Launchers in a pod cannot translate the UUIDs of its GPUs.
                    let has_gpus = |reserved: &Reserved| !reserved.gpus.is_empty();
                    let reserved = known.reserved.clone().filter(has_gpus).or(begun.reserved);
                    let known = Begun { rank, reserved, ..known.clone() };
                    self.enter(key, known);
                }
            }
            // It may have ended during the search.
            _ if self.running.len() < MAX_RUNNING && is_alive(&begun) => {
                self.append(begun.t, BEGIN_KIND, &begun);
                self.watch(key, begun, Duration::ZERO);
            }
            _ => {}
        }
    }

    /// Updates a known process.
    fn enter(&mut self, key: Key, begun: Begun) -> bool {
        let is_kept = self.append(self.live.clock.wall(), BEGIN_KIND, &begun);
        self.running.insert(key, begun);
        self.changed = true;
        is_kept
    }

    /// Sends the processes with series to the collectors, if they have changed.
    pub fn tell_collectors(&mut self) {
        if std::mem::take(&mut self.changed) {
            let own = launch::process::namespace();
            let ranks = series::list_ranks(self.running.values(), |begun| begun.namespace == own);
            let here = self.running.values().filter(|begun| begun.namespace == own);
            let places = here.filter_map(|begun| Some((begun.pid, begun.start?, place_of(begun)))).collect();
            let source = self.live.source(self.source);
            source.processes.set_ranks(ranks);
            source.job_values.set_processes(places);
        }
    }

    /// Input of the next search.
    pub fn here(&self) -> Here {
        let own = launch::process::namespace();
        let here = self.running.iter().filter(|(_, begun)| begun.namespace == own);
        let was_there = |key: &Key| self.awaited.get(key).map(|awaited| awaited.was_there);
        let is_there =
            |(key, begun): &(&Key, &Begun)| was_there(key).unwrap_or_else(|| begun.start.is_none() || is_alive(begun));
        let (mut roots, mut awaited) = (Vec::new(), HashMap::new());
        for (key, begun) in here.filter(is_there) {
            roots.push((begun.pid, begun.run.clone()));
            awaited.extend(begun.start.filter(|_| was_there(key).is_some()).map(|start| (begun.pid, start)));
        }
        let source = self.live.source(self.source);
        Here {
            roots,
            awaited,
            stopped: source.processes.stopped(),
            holders: source.processes.gpu_holders(),
            gpus: source.gpus.known(),
        }
    }

    /// Records the end of a process; true if that was stored.
    fn over(&mut self, key: &Key, mut over: Over) -> bool {
        // The known start may have more details than the report of the end.
        if let Some(known) = self.running.remove(key)
            && known.start == over.begun.start
        {
            over.begun = known;
        }
        if let Some(awaited) = self.awaited.remove(key) {
            awaited.task.abort();
        }
        self.owners.take(&over.begun);
        self.jobs.ended(&over.begun, over.t);
        self.changed = true;
        self.stopped.remove(key);
        let said = self.preempting.get(&over.begun.run);
        if said.is_some_and(|said| over.t - said <= PREEMPTING_MS) {
            over.how.claim = Some(Claim { who: "marker".into(), word: "PREEMPTED".into() });
        }
        if !self.is_running(&over.begun.run) {
            self.preempting.remove(&over.begun.run);
        }
        let is_kept = self.append(over.t, END_KIND, &over);
        self.read_output(&over);
        self.ask(over);
        is_kept
    }

    /// Reads the class of a failure from the last output, which is written to its files soon after the end.
    fn read_output(&mut self, over: &Over) {
        let may_say = matches!(over.how.state(), RunState::Failed | RunState::Crashed) && over.how.memory.is_none();
        if !may_say || self.registry.logs.source() != Some(self.source) || self.classes.len() >= MAX_ASKED {
            return;
        }
        let (live, registry, over) = (self.live.clone(), self.registry.clone(), over.clone());
        self.classes.spawn(async move {
            tokio::time::sleep(OUTPUT_DELAY).await;
            tokio::task::spawn_blocking(move || registry.read_class(&live, over)).await.ok().flatten()
        });
    }

    /// Asks the scheduler for the cause of a failed process.
    fn ask(&mut self, over: Over) {
        if over.how.state() == RunState::Finished || over.how.claim.is_some() || self.claims.len() >= MAX_ASKED {
            return;
        }
        let how = over.how.clone();
        if let Some(job) = over.begun.slurm.clone().filter(|_| slurm::is_there(&self.slurm.scontrol)) {
            let asked = slurm::asked(self.slurm.clone(), job, over.begun.t, how);
            self.claims.spawn(async move { (over, asked.await) });
        } else if let Some((asks, pod)) = self.kubernetes.clone().zip(over.begun.pod.clone()) {
            let asked = asks.asked(pod, how);
            self.claims.spawn(async move { (over, asked.await) });
        }
    }

    /// Records newly stopped processes, and those that continue.
    pub fn paused(&mut self, stopped: &HashSet<u32>) {
        let own = launch::process::namespace();
        let here = self.running.iter().filter(|(_, begun)| begun.namespace == own && stopped.contains(&begun.pid));
        let now: HashSet<Key> = here.map(|(key, _)| key.clone()).collect();
        let changed: Vec<Key> = now.symmetric_difference(&self.stopped).cloned().collect();
        for key in changed {
            let stopped = now.contains(&key);
            let Key { run, pid, .. } = key;
            self.append(self.live.clock.wall(), STATE_KIND, &Paused { run, pid, stopped, unheard: None });
        }
        self.stopped = now;
    }

    /// The kernel reports that a process has ended.
    pub fn gone(&mut self, key: Key, begun: Begun, t: i64, how: How) {
        // Its launcher may have reported more.
        if self.running.get(&key).is_some_and(|known| known.start == begun.start) {
            self.over(&key, Over { begun, t, how });
        }
    }

    /// Processes that are running according to our own records, by run and PID.
    fn open(&mut self) -> HashMap<(String, u32), Begun> {
        let records = self.live.store().records(self.source, 0, i64::MAX);
        let mut open: HashMap<(String, u32), Begun> = HashMap::new();
        for record in records.into_iter().flatten().flatten() {
            if record.kind == BEGIN_KIND
                && let Ok(begun) = serde_json::from_slice::<Begun>(&record.body)
            {
                self.owners.take(&begun);
                if let Some(generation) = begun.generation {
                    self.jobs.enter(&begun, generation, None);
                }
                open.insert((begun.run.clone(), begun.pid), begun);
            } else if record.kind == END_KIND
                && let Ok(Over { begun, t, .. }) = serde_json::from_slice(&record.body)
            {
                self.owners.take(&begun);
                self.jobs.ended(&begun, t);
                open.remove(&(begun.run, begun.pid));
            }
        }
        open
    }

    /// Resumes tracking. Processes that ended while no server ran are recorded as ended.
    fn resume(&mut self, open: impl Iterator<Item = Begun>) {
        for begun in open {
            let key = Key::from_begun(&begun);
            if self.running.contains_key(&key) {
                continue;
            }
            if begun.told {
                // Another request may arrive, or it times out.
                let one = Reported { heard: Instant::now(), unheard: false, begun };
                self.reported.insert(one.begun.run.clone(), one);
                continue;
            }
            let is_ours = begun.namespace == launch::process::namespace();
            let is_hidden = || launch::process::is_hidden(begun.pid);
            let is_there = || launch::process::started(begun.pid) == begun.start || is_hidden();
            match !is_ours || begun.start.is_some() && is_there() {
                true => self.watch(key, begun, TELL_TIMEOUT),
                false => {
                    let t = self.live.clock.wall();
                    self.over(&key, Over { begun, t, how: How::default() });
                }
            }
        }
    }

    /// Records the running processes again, before their first records expire.
    pub fn again(&mut self) {
        if self.owners.are_many() {
            self.owners.forget();
            let records = self.live.store().records(self.source, 0, i64::MAX);
            let begun = records.into_iter().flatten().flatten().filter(|record| record.kind == BEGIN_KIND);
            let begun = begun.filter_map(|record| serde_json::from_slice(&record.body).ok());
            begun.for_each(|begun| self.owners.take(&begun));
        }
        for begun in self.running.values().chain(self.reported.values().map(|one| &one.begun)) {
            self.append(self.live.clock.wall(), BEGIN_KIND, begun);
        }
    }

    /// Waits for the end of a process; `told` is the time in which another source may report it better.
    fn watch(&mut self, key: Key, begun: Begun, told: Duration) {
        self.owners.take(&begun);
        self.running.insert(key.clone(), begun.clone());
        self.changed = true;
        // For a process elsewhere, as in a container, the PID has no meaning here: only its launcher reports its end.
        #[cfg(target_os = "linux")]
        if self.awaited.len() < MAX_WATCHED
            && let Some(start) = begun.start.filter(|_| begun.namespace == launch::process::namespace())
        {
            let live = self.live.clone();
            // A launcher of ours reports this for its process, unless it is killed together with that.
            let has_room = self.awaited.len() < MAX_MEMORIES;
            let memory = has_room.then(|| Watched::of_process(begun.pid, &self.tree));
            let process = super::pidfd::ProcessFd::open(begun.pid, start).ok();
            let was_there = process.is_some();
            let ended = key.clone();
            let task = self.ends.spawn(async move {
                let (t, how) = match process {
                    Some(process) => {
                        let mut memory = memory;
                        while tokio::time::timeout(LOOK_INTERVAL, process.ended()).await.is_err() {
                            memory.iter_mut().for_each(Watched::poll);
                        }
                        // The scheduler removes the cgroup soon.
                        let as_whole = memory.as_ref().is_some_and(Watched::is_killed_as_whole);
                        let memory = memory.and_then(|mut memory| memory.killed(Some(begun.pid)));
                        let t = live.clock.wall();
                        (t, with_memory(process.how().await, memory, as_whole))
                    }
                    None => (live.clock.wall(), How::default()), // It has ended already.
                };
                tokio::time::sleep(told).await;
                (ended, begun, t, how)
            });
            if let Some(before) = self.awaited.insert(key, Awaited { task, was_there }) {
                before.task.abort();
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (key, told, &self.tree);
    }

    pub fn append(&self, t: i64, kind: &str, body: &impl serde::Serialize) -> bool {
        append(&self.live, self.source, t, kind, body)
    }

    pub fn drop_one(&mut self) {
        self.dropped += 1;
        if self.dropped.is_power_of_two() {
            tracing::warn!(
                dropped = self.dropped,
                "more than 100 messages a second about runs; further messages are dropped"
            );
        }
    }
}

/// The end of a process with the kill for memory that it may have been. `as_whole`: a daemon has killed its cgroup.
#[cfg(target_os = "linux")]
fn with_memory(how: How, memory: Option<shared::run::MemoryKill>, as_whole: bool) -> How {
    const KILL: &str = "SIGKILL";
    // Kernels before 6.15 keep the status of a process from all but its parent.
    let is_unknown = how.signal.is_none() && how.exit.is_none();
    let signal = if is_unknown && as_whole { Some(KILL.to_string()) } else { how.signal.clone() };
    let is_killed = signal.as_deref() == Some(KILL);
    How { signal, memory: memory.filter(|_| is_killed), ..how }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_kill_of_a_whole_cgroup_is_known_where_the_kernel_keeps_the_status() {
        let kill = || Some(shared::run::MemoryKill { kills: 1, limit: None, peak: None });
        let signal = |name: &str| How { signal: Some(name.into()), ..How::default() };
        for (how, as_whole, state) in [
            (signal("SIGKILL"), false, RunState::OutOfMemory),
            (How::default(), true, RunState::OutOfMemory),
            (How::default(), false, RunState::Ended),
            (signal("SIGSEGV"), true, RunState::Crashed),
            (How { exit: Some(1), ..How::default() }, true, RunState::Failed),
        ] {
            let how = with_memory(how, kill(), as_whole);
            assert_eq!(how.state(), state);
            assert_eq!(how.memory.is_some(), state == RunState::OutOfMemory);
        }
        assert_eq!(with_memory(signal("SIGKILL"), None, false).sentence(), "crashed (SIGKILL)");
    }

    #[test]
    fn a_number_of_a_launcher_stays_and_its_gpus_are_those_that_it_holds() {
        let counted = Rank { rank: 0, launcher: COUNTED.into(), gpus: vec![3], ..Rank::default() };
        let torch = Rank { rank: 5, launcher: "torch".into(), attempt: Some(1), assumed: true, ..Rank::default() };
        let both = Rank { gpus: vec![3], assumed: false, ..torch.clone() };
        assert_eq!(kept_rank(counted.clone(), Some(&torch)), both);
        assert_eq!(kept_rank(torch.clone(), Some(&counted)), torch);
        let next = Rank { rank: 1, ..counted.clone() };
        assert_eq!(kept_rank(next.clone(), Some(&counted)), next);
        assert_eq!(kept_rank(counted.clone(), None), counted);
    }
}

//! NVIDIA GPUs through the driver's own library, opened at run time.
//!
//! A GPU is identified by its UUID and keeps its first number, which is NVML's index. GPUs may appear, disappear, hang,
//! return and be renumbered at run time.
//!
//! Every call into the driver is made on a thread that may be lost ([`pool`](crate::read::pool)). Slow calls are left
//! out of the tick, and the other GPUs continue. A failed call is always retried later; a library that fails as a whole
//! is restarted.
//!
//! Reading order: [`gpu`] (values), [`fleet`] (the GPUs), this file (timing).

mod asker;
mod events;
mod fabric;
mod fleet;
mod gpm;
mod gpu;
mod health;
mod kernel_log;
mod library;
mod mig;
mod open;
mod probe;
mod rates;
mod reading;
mod retry;
mod smi;
mod tegra;
mod users;

pub(crate) use self::open::{OPTIONS, open};

use self::events::{Listener, SeenErrors, Teller};
use self::fleet::{Fleet, StateOwner, Survey, survey};
use self::gpu::Gpu;
use self::kernel_log::KernelLog;
use self::library::Library;
use self::probe::Probe;
use self::reading::NvidiaReading;
use self::retry::NvmlFailure;
use crate::host::process::Watched;
use crate::read::pids::Pids;
use crate::read::pool::{Finished, ThreadPool};
use crate::{CollectError, Collector, Out};
use inventory::Processes;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time that a tick waits for its GPUs: a fifth of the interval, within these bounds. The sampler waits longer.
const ROUND_TIMEOUT: (Duration, Duration) = if cfg!(test) {
    (TEST_ROUND_TIMEOUT, TEST_ROUND_TIMEOUT)
} else {
    (Duration::from_millis(20), Duration::from_millis(200))
};

/// Tests run beside many others, and most of them are not about an answer that is one tick late.
const TEST_ROUND_TIMEOUT: Duration = Duration::from_secs(3);

/// Time without an answer after which a GPU counts as hung.
const HUNG_AFTER: Duration = Duration::from_secs(5);

/// Intervals of surveys of all GPUs: usual, and while one of them is in trouble.
const SURVEY_INTERVALS: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(2));

/// Interval of restarts of a library that fails as a whole.
const RESTART_INTERVAL: Duration = Duration::from_secs(60);

/// Maximum number of reasons reported at once, and the same while GPUs are lost: each of them has a finding of its own.
const MAX_REASONS: usize = 4;
const MAX_REASONS_OF_LOST: usize = 16;

/// Addition to the message of a lost GPU if there is no tool to query it.
const BLIND: &str =
    " (if it stays missing after its return, restart Watchglass: nvidia-smi, which would show it, was not found)";

/// Time that a GPU may be without events before an unreadable kernel log is reported.
const DEAF_AFTER: Duration = Duration::from_secs(10);

/// Prefix of the device files of GPUs, before their number.
const DEVICE_FILE: &str = "nvidia";

/// Time in which no process of the library's list is found here. Then its PIDs count as another namespace's.
const FOREIGN_AFTER: Duration = Duration::from_secs(10);

/// Message if the driver's PIDs cannot be matched to processes here.
const UNKNOWN_PIDS: &str = "GPU memory by process is unknown: the driver counts processes in another pid namespace, \
    so its pids match no process here; start the container with --pid=host, or name the host's folder with --root";

/// Maximum number of processes that ever get series of their own, because each series is stored as long as the history.
const MAX_PROCESSES: usize = 512;

/// Job key for the library; the key of a GPU's job is its position in the list.
const LIBRARY: usize = usize::MAX;
/// Job key for the check whether a lost GPU is back.
const PROBE: usize = usize::MAX - 1;

/// Result of a job.
enum Done {
    Started(Result<(Arc<Library>, Survey), String>),
    Surveyed(Result<Survey, String>),
    Read(Box<Gpu>, NvidiaReading),
    Probed(bool),
}

struct Nvidia {
    path: OsString,
    /// None while it is restarted, and after that has failed.
    library: Option<Arc<Library>>,
    fleet: Fleet,
    pool: ThreadPool<Done>,
    watched: Watched,
    listener: Option<Listener>,
    xids: SeenErrors,
    kernel_log: KernelLog,
    /// Time since when there is a GPU whose errors cannot be received.
    deaf: Option<Duration>,
    /// Processes that have series.
    processes: HashSet<(u32, u32)>,
    /// Folder of the processes.
    proc: PathBuf,
    /// Maps the driver's PIDs to processes here.
    pids: Pids,
    /// There are processes on the GPUs that cannot be mapped.
    are_unknown: bool,
    /// Time since when no process on the GPUs was found here.
    foreign: Option<Duration>,
    /// Memory of the machine, bytes.
    machine_memory: Option<u64>,
    /// The lowest number of a GPU that shares it.
    sharer: Option<u32>,
    /// Process table, which gets the GPU use of processes.
    tables: Arc<Processes>,
    /// Whether a job for the library is running.
    busy: bool,
    /// Check for lost GPUs through another process.
    probe: Probe,
    /// Reason why the library as a whole gives nothing.
    failed: Option<String>,
    last_tick: Option<Duration>,
    looked: Duration,
    restarted: Duration,
}

impl Collector for Nvidia {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        let at = out.at();
        let interval = self.last_tick.replace(at).map(|last| at.saturating_sub(last));
        let patience =
            interval.map_or(ROUND_TIMEOUT.1, |interval| (interval / 5).clamp(ROUND_TIMEOUT.0, ROUND_TIMEOUT.1));
        let watched = self.watched.pids();
        let mut answered = false;
        for finished in self.pool.begin() {
            // An answer that is late for its tick may be used in the next one, but not later.
            let fresh = interval.map_or(Duration::ZERO, |interval| 2 * interval);
            answered |= self.accept(finished, at, fresh, &watched, out);
        }
        self.submit(at);
        for finished in self.pool.run(patience) {
            answered |= self.accept(finished, at, Duration::ZERO, &watched, out);
        }
        self.judge(answered);
        self.look_for_lost(at);
        self.foreign = self.are_pids_foreign().then(|| self.foreign.unwrap_or(at));
        self.put_xids(out);
        self.outcome(at, answered)
    }
}

impl Nvidia {
    /// Submits all due jobs.
    fn submit(&mut self, at: Duration) {
        if !self.busy && self.is_restart_due(at) {
            self.restart(at);
        }
        let Some(library) = &self.library else { return };
        if !self.busy {
            let every = if self.fleet.seats.iter().any(|seat| seat.trouble.is_some()) {
                SURVEY_INTERVALS.1
            } else {
                SURVEY_INTERVALS.0
            };
            let full = at.saturating_sub(self.looked) >= every || !self.fleet.strangers.is_empty();
            let (library, count, numbers) = (library.clone(), self.fleet.count, self.fleet.numbers.clone());
            self.looked = if full { at } else { self.looked };
            self.busy = true;
            self.pool.submit(LIBRARY, move || {
                Done::Surveyed(survey(&library, count, full, &numbers).map_err(|error| error.to_string()))
            });
        }
        for (position, seat) in self.fleet.seats.iter_mut().enumerate() {
            if let StateOwner::Idle(_) = seat.state
                && let StateOwner::Idle(mut gpu) = std::mem::replace(&mut seat.state, StateOwner::Busy(at))
            {
                let (library, submitted) = (library.clone(), Instant::now());
                self.pool.submit(position, move || {
                    // Rates need the time of the reading, not that of the tick.
                    let reading = gpu.read(&library, at + submitted.elapsed());
                    Done::Read(gpu, reading)
                });
            }
        }
    }

    /// Processes the result of a job. Returns whether it put values into the tick. `late`: maximum age of an answer.
    fn accept(
        &mut self,
        finished: Finished<Done>,
        at: Duration,
        late: Duration,
        watched: &HashSet<u32>,
        out: &mut Out,
    ) -> bool {
        match finished.result {
            None if finished.key == LIBRARY => self.busy = false,
            None if finished.key == PROBE => self.probe.answered(None),
            None => {
                if let Some(seat) = self.fleet.seats.get_mut(finished.key) {
                    (seat.state, seat.trouble) = (StateOwner::Missing, Some("the reader panicked; see the log".into()));
                }
            }
            Some(Done::Started(started)) => {
                self.busy = false;
                match started {
                    Ok((library, survey)) => self.started(library, survey, at),
                    Err(reason) => self.failed = Some(reason),
                }
            }
            Some(Done::Surveyed(surveyed)) => {
                self.busy = false;
                match surveyed {
                    Ok(survey) => {
                        self.fleet.update(survey, at);
                        self.listen();
                    }
                    Err(reason) => self.failed = Some(format!("the library cannot count the GPUs: {reason}")),
                }
            }
            Some(Done::Probed(back)) => self.probe.answered(Some(back)),
            Some(Done::Read(gpu, mut reading)) => {
                let Some(seat) = self.fleet.seats.get_mut(finished.key) else { return false };
                let asked = if let StateOwner::Busy(asked) = seat.state { asked } else { at };
                // If the library was restarted meanwhile, the handle is an old one.
                let current = self.library.is_some() && self.fleet.count.is_some() && seat.listed;
                seat.state = if current { StateOwner::Idle(gpu) } else { StateOwner::Missing };
                if seat.listed {
                    seat.trouble = reading.failure.as_ref().map(|(_, reason)| reason.clone());
                }
                match reading.failure {
                    Some((NvmlFailure::Lost, _)) => seat.lost = seat.lost.or(Some(at)),
                    _ if reading.answered && seat.listed => seat.lost = None,
                    _ => {}
                }
                if reading.answered {
                    seat.heard = Some(out.wall());
                }
                if at.saturating_sub(asked) > late {
                    return false;
                }
                let processes = &mut self.processes;
                let mut known = |number, pid| {
                    processes.contains(&(number, pid))
                        || processes.len() < MAX_PROCESSES && processes.insert((number, pid))
                };
                let (number, answered) = (seat.number, reading.answered);
                seat.pids.clone_from(&reading.pids);
                let lists: Vec<&[u32]> = self.fleet.seats.iter().map(|seat| seat.pids.as_slice()).collect();
                let own = self.pids.own(&lists, at);
                self.are_unknown = lists.concat().iter().any(|pid| !own.contains(pid));
                reading.keep_processes(&own);
                if reading.shared_memory.is_some() {
                    self.sharer = Some(self.sharer.map_or(number, |lowest| lowest.min(number)));
                    reading.put_shared(self.machine_memory, self.sharer == Some(number));
                }
                let is_watched = reading.pids.iter().any(|pid| watched.contains(pid));
                self.tables.set_gpu(number, reading.used());
                reading.publish(number, is_watched, &mut known, out);
                return answered;
            }
        }
        false
    }

    /// Detects that the library as a whole no longer answers.
    fn judge(&mut self, answered: bool) {
        if self.library.is_none() || self.busy {
            return;
        }
        if answered {
            self.failed = None;
            return;
        }
        let there = || self.fleet.seats.iter().filter(|seat| seat.lost.is_none());
        let fails = |seat: &fleet::Seat| !matches!(seat.state, StateOwner::Busy(_)) && seat.trouble.is_some();
        if there().next().is_some() && there().all(fails) {
            let first = there().find_map(|seat| seat.trouble.clone()).unwrap_or_default();
            self.failed = Some(format!(
                "the driver rejects all requests of this process ({first}); a container can lose its devices when \
                systemd reloads its units, and gets them back after a restart"
            ));
        }
    }

    /// Whether there are processes on the GPUs and none of them exists here.
    fn are_pids_foreign(&self) -> bool {
        let mut pids = self.fleet.seats.iter().flat_map(|seat| &seat.pids).peekable();
        pids.peek().is_some() && pids.all(|pid| !self.proc.join(pid.to_string()).exists())
    }

    fn is_restart_due(&self, at: Duration) -> bool {
        let failed = self.library.is_none() || self.failed.is_some();
        failed && at.saturating_sub(self.restarted) >= RESTART_INTERVAL
    }

    /// Checks for lost GPUs with another process, and restarts the library when one is back. Both start after the tick
    /// has its answers, so they have the time until the next one.
    fn look_for_lost(&mut self, at: Duration) {
        if let Some(question) = self.probe.due(&self.fleet, at) {
            self.pool.submit_behind(PROBE, move || Done::Probed(question()));
        }
        let is_read = self.fleet.seats.iter().any(|seat| matches!(seat.state, StateOwner::Busy(_)));
        if self.probe.back && !self.busy && !is_read && self.library.is_some() {
            self.probe.back = false;
            self.restart(at);
        }
    }

    fn restart(&mut self, at: Duration) {
        self.restarted = at;
        self.listener = None;
        self.fleet.forget_handles();
        let (old, path, numbers) = (self.library.take(), self.path.clone(), self.fleet.numbers.clone());
        self.busy = true;
        self.pool.submit_behind(LIBRARY, move || Done::Started(open::start_anew(old, &path, &numbers)));
    }

    fn started(&mut self, library: Arc<Library>, survey: Survey, at: Duration) {
        (self.failed, self.looked) = (None, at);
        self.fleet.update(survey, at);
        self.library = Some(library);
        self.listen();
    }

    /// Listens for errors of the present GPUs, unless a listener for them runs already.
    fn listen(&mut self) {
        let there = self.fleet.seats.iter().filter(|seat| seat.listed && seat.lost.is_none());
        let gpus: Vec<_> = there.map(|seat| (seat.index, seat.uuid.clone())).collect();
        if self.listener.as_ref().is_some_and(|listener| listener.hears(&gpus)) {
            return;
        }
        self.listener = self.library.clone().map(|library| Listener::start(library, gpus, self.xids.clone()));
    }

    fn put_xids(&mut self, out: &mut Out) {
        let told = self.kernel_log.read();
        let mut seen = self.xids.lock();
        let mut deaf = false;
        for seat in &self.fleet.seats {
            let unheard = self.kernel_log.is_open() && !seen.contains_key(&seat.uuid);
            if (unheard || !told.is_empty())
                && let Some(place) = self.fleet.numbers.pci(&seat.uuid).and_then(|pci| kernel_log::place(&pci))
            {
                let xids = seen.entry(seat.uuid.clone()).or_default();
                let own = told.iter().filter(|error| error.place == place);
                own.for_each(|error| xids.add_report(Teller::KernelLog, error.number, &error.message));
            }
            if let Some(xids) = seen.get_mut(&seat.uuid) {
                xids.advance();
                xids.put(seat.number, out);
            }
            deaf |= seat.listed && !seen.contains_key(&seat.uuid);
        }
        self.deaf = deaf.then(|| self.deaf.unwrap_or(out.at()));
    }

    fn outcome(&mut self, at: Duration, answered: bool) -> Result<(), CollectError> {
        let mut reasons: Vec<String> = self.failed.iter().cloned().collect();
        if self.library.is_none() {
            reasons.push("NVIDIA's library is being reloaded; Watchglass tries this every minute".into());
        }
        // Lost GPUs come first.
        let lost = self.fleet.seats.iter().filter(|seat| seat.lost.is_some()).count();
        let most = (reasons.len() + lost).clamp(MAX_REASONS, MAX_REASONS_OF_LOST);
        let mut seats: Vec<_> = self.fleet.seats.iter().collect();
        seats.sort_by_key(|seat| seat.lost.is_none());
        for seat in seats {
            let (name, since) = seat.called(&self.fleet.numbers);
            match (&seat.state, &seat.trouble) {
                (StateOwner::Busy(asked), _) if at.saturating_sub(*asked) >= HUNG_AFTER => {
                    reasons.push(format!("{name} hangs: no response{since}; the other GPUs are not affected"));
                }
                (StateOwner::Busy(_), None) => reasons.push(format!("{name} responds slowly")),
                (_, Some(trouble)) if seat.lost.is_some() => {
                    let blind = if self.probe.is_blind() { BLIND } else { "" };
                    reasons.push(format!("{name} is lost: no response{since}: {trouble}{blind}"));
                }
                (_, Some(trouble)) if self.failed.is_none() => reasons.push(format!("{name}: {trouble}")),
                _ => {}
            }
        }
        reasons.extend(self.fleet.strangers.iter().cloned());
        // A process stays in the library's list for a moment after its end.
        let is_foreign = self.foreign.is_some_and(|since| at.saturating_sub(since) >= FOREIGN_AFTER);
        if is_foreign || self.are_unknown && !self.pids.are_first() {
            reasons.push(UNKNOWN_PIDS.into());
        }
        if self.deaf.is_some_and(|since| at.saturating_sub(since) >= DEAF_AFTER) {
            reasons.extend(self.kernel_log.say_denied());
        }
        let more = reasons.len().saturating_sub(most);
        reasons.truncate(most);
        if more > 0 {
            reasons.push(format!("and {more} more"));
        }
        match reasons.join("; ") {
            reason if reason.is_empty() => Ok(()),
            reason if answered => Err(CollectError::partial(reason)),
            reason => Err(CollectError::failed(reason)),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod real_tests;
#[cfg(all(test, target_os = "linux"))]
mod tests;

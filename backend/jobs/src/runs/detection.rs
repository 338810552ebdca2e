//! Schedule of the search for ranks. It has its own thread, because another process can block a read of its
//! environment.

use super::Detect;
use shared::run::Begun;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

/// Input of a search.
pub(super) struct Here {
    /// The running processes and their runs: ranks are searched at and below them.
    pub roots: Vec<(u32, String)>,
    /// Start times of the processes whose ends the kernel reports.
    pub awaited: HashMap<u32, u64>,
    /// PID and start of the processes that a signal has stopped; None where there is no process table.
    pub stopped: Option<HashSet<(u32, u64)>>,
    /// The processes that hold GPUs, with the numbers of those GPUs.
    pub holders: BTreeMap<u32, Vec<u32>>,
    /// The GPUs that there are.
    pub gpus: KnownGpus,
}

/// A rank that a search has found.
pub(super) struct LookedRank {
    pub begun: Begun,
    /// The run at or below whose process it was found.
    pub below: Option<String>,
    /// The process that started it, if the ID of its run is an address: PID and start.
    pub launcher: Option<(u32, u64)>,
}

/// Result of a search: ranks, and the stopped processes of runs.
pub(super) type Looked = (Vec<LookedRank>, HashSet<u32>);

/// Number and labels of each GPU, as [`inventory::GpuNumbers::known`] lists them.
pub(super) type KnownGpus = Vec<(u32, Vec<(&'static str, String)>)>;

/// Searches ranks every few seconds while there are candidates.
#[cfg(target_os = "linux")]
pub(super) struct Detection {
    timer: tokio::time::Interval,
    detect: Detect,
    /// Control groups of the machine.
    tree: PathBuf,
    /// State kept between searches; None while a thread is searching.
    looks: Option<Looks>,
    answer: Option<SearchAnswer>,
}

#[cfg(target_os = "linux")]
type Looks = (super::ranks::Looks, super::frozen::Groups);

#[cfg(target_os = "linux")]
type SearchAnswer = tokio::sync::oneshot::Receiver<(Looks, Looked)>;

#[cfg(target_os = "linux")]
mod linux {
    use super::super::ranks::{DetectedRank, Gpus};
    use super::{Begun, Detect, Detection, Here, Looked, LookedRank, Looks};
    use std::collections::HashSet;
    use std::path::PathBuf;
    use std::time::{Duration, Instant};
    use tokio::time::MissedTickBehavior;

    /// Interval between searches.
    const SEARCH_INTERVAL: Duration = Duration::from_secs(5);

    /// Delay before the first search for a new run: its launcher must start the ranks first.
    const FIRST_SEARCH_DELAY: Duration = Duration::from_secs(1);

    impl Detection {
        pub fn new(detect: Detect, tree: PathBuf) -> Detection {
            let mut timer = tokio::time::interval(SEARCH_INTERVAL);
            timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
            Detection { timer, detect, tree, looks: Some(Looks::default()), answer: None }
        }

        /// Searches soon: a report has arrived.
        pub fn soon(&mut self) {
            self.timer.reset_after(FIRST_SEARCH_DELAY);
        }

        /// The result of a search; None when it is time for the next one.
        pub async fn next(&mut self) -> Option<Looked> {
            if let Some(answer) = &mut self.answer {
                let answer = answer.await;
                self.answer = None;
                // A thread that ended without a result has lost the kept state.
                let (looks, found) = answer.unwrap_or_default();
                self.looks = Some(looks);
                return Some(found);
            }
            self.timer.tick().await;
            None
        }

        /// Starts a search if there are candidates. `now` is wall clock time, milliseconds since the Unix epoch.
        pub fn search(&mut self, here: Here, now: i64) {
            let is_nothing = here.holders.is_empty() || self.detect != Detect::Gpu;
            if here.roots.is_empty() && is_nothing {
                return;
            }
            let Some((mut looks, mut groups)) = self.looks.take() else { return };
            let (answer, answered) = tokio::sync::oneshot::channel();
            let (detect, tree) = (self.detect, self.tree.clone());
            let look = move || {
                let Here { roots, awaited, stopped, holders, gpus } = here;
                let pids: Vec<u32> = roots.iter().map(|(pid, _)| *pid).collect();
                let is_stopped = |pid: &u32| match (&stopped, awaited.get(pid)) {
                    (Some(stopped), Some(start)) => stopped.contains(&(*pid, *start)),
                    _ => launch::process::Stat::read(*pid).is_some_and(|stat| stat.is_stopped),
                };
                let mut paused: HashSet<u32> = pids.iter().copied().filter(is_stopped).collect();
                paused.extend(groups.frozen(&pids, &tree));
                looks.tree = tree;
                (looks.gpus, looks.awaited, looks.only_below_runs) =
                    (Gpus::new(gpus), awaited, detect == Detect::Launched);
                let found = match detect {
                    Detect::Off => Vec::new(),
                    Detect::Gpu | Detect::Launched => looks.search(&roots, &holders, Instant::now()),
                };
                let up = system::boot::since_boot().and_then(|up| i64::try_from(up.as_millis()).ok());
                let namespace = launch::process::namespace();
                let begun = found.into_iter().map(|found| begun(found, now, up, namespace)).collect();
                let _ = answer.send(((looks, groups), (begun, paused)));
            };
            match std::thread::Builder::new().name("ranks".into()).spawn(look) {
                Ok(_) => self.answer = Some(answered),
                Err(_) => self.looks = Some(Looks::default()),
            }
        }
    }

    fn begun(found: DetectedRank, now: i64, up: Option<i64>, namespace: Option<u64>) -> LookedRank {
        let DetectedRank { run, below, pid, start, rank, slurm, reserved, pod, about, is_address, launcher } = found;
        // SAFETY: the call takes a number and returns one.
        let ticks = (unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64).max(1.0);
        let t = up.map_or(now, |up| now - (up - (start as f64 * 1000.0 / ticks) as i64).max(0));
        let begun = Begun {
            run,
            t,
            pid,
            start: Some(start),
            namespace,
            joined: true,
            // The known jobs of that address decide to which one it belongs.
            generation: is_address.then_some(t),
            rank: Some(rank),
            slurm,
            reserved,
            pod,
            told: false,
            about,
        };
        LookedRank { begun, below, launcher }
    }
}

/// On other systems only reported ranks are known.
#[cfg(not(target_os = "linux"))]
pub(super) struct Detection;

#[cfg(not(target_os = "linux"))]
impl Detection {
    pub fn new(_: Detect, _: PathBuf) -> Detection {
        Detection
    }

    pub fn soon(&mut self) {}

    pub async fn next(&mut self) -> Option<Looked> {
        std::future::pending().await
    }

    pub fn search(&mut self, _: Here, _: i64) {}
}

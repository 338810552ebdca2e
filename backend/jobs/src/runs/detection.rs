//! When ranks are looked for: on a thread of its own, because another process can make a read of its environment wait.

use super::Detect;
use shared::run::Begun;
use std::collections::{BTreeMap, HashMap, HashSet};

/// What is looked at.
pub(super) struct Here {
    /// The processes that run, and their runs: at and below them ranks are looked for.
    pub roots: Vec<(u32, String)>,
    /// When those started of which the kernel tells when they end.
    pub awaited: HashMap<u32, u64>,
    /// Number and start of the processes that a signal has stopped; None where the process table is not made.
    pub stopped: Option<HashSet<(u32, u64)>>,
    /// The processes that hold GPUs, with the numbers of those.
    pub holders: BTreeMap<u32, Vec<u32>>,
    /// The GPUs that there are.
    pub gpus: KnownGpus,
}

/// A rank that a look has found.
pub(super) struct LookedRank {
    pub begun: Begun,
    /// The run at or below whose process it stands.
    pub below: Option<String>,
    /// What started it, where the id of its run is an address: number and start.
    pub launcher: Option<(u32, u64)>,
}

/// What a look has found: ranks, and which processes of runs are stopped.
pub(super) type Looked = (Vec<LookedRank>, HashSet<u32>);

/// Number and labels of each GPU, as [`inventory::GpuNumbers::known`] lists them.
pub(super) type KnownGpus = Vec<(u32, Vec<(&'static str, String)>)>;

/// Looks for ranks every few seconds while there is something to look at.
#[cfg(target_os = "linux")]
pub(super) struct Looking {
    timer: tokio::time::Interval,
    detect: Detect,
    /// What is remembered; None while a thread looks.
    looks: Option<Looks>,
    answer: Option<Answer>,
}

#[cfg(target_os = "linux")]
type Looks = (super::ranks::Looks, super::frozen::Groups);

#[cfg(target_os = "linux")]
type Answer = tokio::sync::oneshot::Receiver<(Looks, Looked)>;

#[cfg(target_os = "linux")]
mod linux {
    use super::super::ranks::{Found, Gpus};
    use super::{Begun, Detect, Here, Looked, LookedRank, Looking, Looks};
    use std::collections::HashSet;
    use std::time::{Duration, Instant};
    use tokio::time::MissedTickBehavior;

    /// How often is looked.
    const PERIOD: Duration = Duration::from_secs(5);

    /// How long a run is there before its ranks are looked for: its launcher starts them first.
    const FIRST: Duration = Duration::from_secs(1);

    impl Looking {
        pub fn new(detect: Detect) -> Looking {
            let mut timer = tokio::time::interval(PERIOD);
            timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
            Looking { timer, detect, looks: Some(Looks::default()), answer: None }
        }

        /// Something is told: there may be something to find before long.
        pub fn soon(&mut self) {
            self.timer.reset_after(FIRST);
        }

        /// What a look has found; None when it is time for the next.
        pub async fn next(&mut self) -> Option<Looked> {
            if let Some(answer) = &mut self.answer {
                let answer = answer.await;
                self.answer = None;
                // A thread that ended without an answer has taken with it what was remembered.
                let (looks, found) = answer.unwrap_or_default();
                self.looks = Some(looks);
                return Some(found);
            }
            self.timer.tick().await;
            None
        }

        /// Looks, where there is something to look at. `now` is the wall's time, milliseconds since the Unix epoch.
        pub fn look(&mut self, here: Here, now: i64) {
            let is_nothing = here.holders.is_empty() || self.detect != Detect::Gpu;
            if here.roots.is_empty() && is_nothing {
                return;
            }
            let Some((mut looks, mut groups)) = self.looks.take() else { return };
            let (answer, answered) = tokio::sync::oneshot::channel();
            let detect = self.detect;
            let look = move || {
                let Here { roots, awaited, stopped, holders, gpus } = here;
                let pids: Vec<u32> = roots.iter().map(|(pid, _)| *pid).collect();
                let is_stopped = |pid: &u32| match (&stopped, awaited.get(pid)) {
                    (Some(stopped), Some(start)) => stopped.contains(&(*pid, *start)),
                    _ => launch::process::Stat::of(*pid).is_some_and(|stat| stat.is_stopped),
                };
                let mut paused: HashSet<u32> = pids.iter().copied().filter(is_stopped).collect();
                paused.extend(groups.frozen(&pids));
                (looks.gpus, looks.awaited, looks.only_below_runs) =
                    (Gpus::of(gpus), awaited, detect == Detect::Launched);
                let found = match detect {
                    Detect::Off => Vec::new(),
                    Detect::Gpu | Detect::Launched => looks.look(&roots, &holders, Instant::now()),
                };
                let (up, namespace) = (since_boot(), launch::process::namespace());
                let begun = found.into_iter().map(|found| begun(found, now, up, namespace)).collect();
                let _ = answer.send(((looks, groups), (begun, paused)));
            };
            match std::thread::Builder::new().name("ranks".into()).spawn(look) {
                Ok(_) => self.answer = Some(answered),
                Err(_) => self.looks = Some(Looks::default()),
            }
        }
    }

    /// Milliseconds since boot.
    fn since_boot() -> Option<i64> {
        let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
        let seconds: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
        Some((seconds * 1000.0) as i64)
    }

    fn begun(found: Found, now: i64, up: Option<i64>, namespace: Option<u64>) -> LookedRank {
        let Found { run, below, pid, start, rank, slurm, pod, about, is_address, launcher } = found;
        // SAFETY: the call takes a number and gives one.
        let ticks = (unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64).max(1.0);
        let t = up.map_or(now, |up| now - (up - (start as f64 * 1000.0 / ticks) as i64).max(0));
        let begun = Begun {
            run,
            t,
            pid,
            start: Some(start),
            namespace,
            joined: true,
            // Of which job of that address it is, is told by those that are known.
            generation: is_address.then_some(t),
            rank: Some(rank),
            slurm,
            pod,
            told: false,
            about,
        };
        LookedRank { begun, below, launcher }
    }
}

/// Elsewhere ranks are those that are told.
#[cfg(not(target_os = "linux"))]
pub(super) struct Looking;

#[cfg(not(target_os = "linux"))]
impl Looking {
    pub fn new(_: Detect) -> Looking {
        Looking
    }

    pub fn soon(&mut self) {}

    pub async fn next(&mut self) -> Option<Looked> {
        std::future::pending().await
    }

    pub fn look(&mut self, _: Here, _: i64) {}
}

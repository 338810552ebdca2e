//! State of one running kernel between ticks.

use super::find::FoundKernel;
use super::member;
use crate::Roots;
use crate::host::facts;
use crate::host::linux::process::limits::TreeLimits;
use crate::host::linux::process::tree::Tree;
use inventory::{Kernel, KernelEnd, MemoryWarning};
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

/// Intervals of reading the proportional set size, and of searching the limits.
const PROPORTIONAL_INTERVAL: Duration = Duration::from_millis(4_900);
const LIMITS_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum number of processes of a kernel whose proportional set size is read; for others the resident set counts.
const MAX_PROPORTIONAL: usize = 256;
/// Maximum time from a kill because of memory to the end of the process.
const KILL_TIME: Duration = Duration::from_secs(5);
/// Span in which growth is measured, its minimum, and the time to the limit from which a warning is given.
const GROWTH_SPAN: Duration = Duration::from_secs(10);
const MIN_GROWTH_SPAN: Duration = Duration::from_secs(5);
const WARN_BEFORE_SECONDS: f64 = 60.0;
/// Shares of the limit: the warning threshold, and the minimum growth in the span that is not noise.
const WARN_SHARE: f64 = 0.9;
const NOISE_SHARE: f64 = 0.02;

/// Memory readings of one process.
struct ProcessMemory {
    start: u64,
    /// Proportional set size with swap minus the resident set, at the same time, bytes.
    beside_resident: Option<i64>,
}

pub(super) struct Watch {
    pub kernel: Kernel,
    start: u64,
    tree: Tree,
    limits: TreeLimits,
    looked: Option<Duration>,
    known: HashMap<u32, ProcessMemory>,
    proportional_at: Option<Duration>,
    /// CPU time, seconds: the sum over the processes at the last reading, and the monotonic total.
    said: f64,
    grown: f64,
    /// Time of the last tick, and the CPU time then.
    before: Option<(Duration, f64)>,
    /// CPU use since the previous tick, percent of the cores that it may use.
    pub cpu_percent: Option<f64>,
    kills: f64,
    /// Time of the last kill because of memory in its cgroup.
    killed_at: Option<Duration>,
    used: VecDeque<(Duration, u64)>,
    /// Processes that have a GPU open, by PID and start.
    on_gpu: HashSet<(u32, u64)>,
    proc: PathBuf,
    ticks: f64,
    page: u64,
}

impl Watch {
    pub fn new(found: FoundKernel, roots: &Roots) -> Self {
        let FoundKernel { id, pid, start, path } = found;
        let mut watch = Watch {
            kernel: Kernel { id, pid, path, ..Kernel::default() },
            start,
            tree: Tree::new(roots.proc.clone(), &[pid]),
            limits: TreeLimits::default(),
            looked: None,
            known: HashMap::new(),
            proportional_at: None,
            said: 0.0,
            grown: 0.0,
            before: None,
            cpu_percent: None,
            kills: 0.0,
            killed_at: None,
            used: VecDeque::new(),
            on_gpu: HashSet::new(),
            proc: roots.proc.clone(),
            ticks: facts::ticks_per_second(),
            page: facts::page_size(),
        };
        watch.refresh();
        watch
    }

    /// Whether its own process is alive.
    pub fn lives(&self) -> bool {
        self.tree.roots.iter().any(|root| root.gone.is_none())
    }

    /// Reads its processes.
    pub fn refresh(&mut self) {
        self.tree.refresh();
        let ticks: u64 = self.tree.members.values().map(|member| member.stat.own + member.stat.reaped).sum();
        let now = ticks as f64 / self.ticks;
        // A process that ends outside the tree takes its CPU time away; time already counted stays counted.
        self.grown += (now - self.said).max(0.0);
        self.said = now;
    }

    pub fn cpu_seconds(&self) -> f64 {
        self.grown
    }

    pub fn threads(&self) -> u64 {
        self.alive().map(|(_, _, _, threads)| threads).sum()
    }

    pub fn has(&self, pid: u32) -> bool {
        self.tree.members.get(&pid).is_some_and(|member| !member.stat.ended)
    }

    /// PID, start, resident bytes and threads of each living process.
    fn alive(&self) -> impl Iterator<Item = (u32, u64, u64, u64)> {
        let living = self.tree.members.iter().filter(|(_, member)| !member.stat.ended);
        living.map(|(pid, member)| (*pid, member.stat.start, member.stat.pages * self.page, member.stat.threads))
    }

    /// Memory of all its processes, from the last reading of each.
    pub fn memory(&self) -> Option<u64> {
        let each = self.alive().map(|(pid, start, resident, _)| {
            let known = self.known.get(&pid).filter(|known| known.start == start);
            resident.saturating_add_signed(known.and_then(|known| known.beside_resident).unwrap_or_default())
        });
        let bytes: u64 = each.sum();
        (bytes > 0).then_some(bytes)
    }

    /// Whether the process has a GPU open. A positive result is cached.
    pub fn holds_device(&mut self, pid: u32) -> bool {
        let Some(member) = self.tree.members.get(&pid) else { return false };
        let key = (pid, member.stat.start);
        if self.on_gpu.contains(&key) {
            return true;
        }
        let holds = member::has_gpu_open(&self.proc, pid);
        if holds {
            self.on_gpu.insert(key);
        }
        holds
    }

    /// Begins a tick. Returns PID and start of the processes whose proportional set size is due.
    pub fn tick(&mut self, now: Duration, roots: &Roots) -> Vec<(u32, u64)> {
        self.refresh();
        if self.looked.is_none_or(|then| now.saturating_sub(then) >= LIMITS_INTERVAL) {
            self.looked = Some(now);
            self.limits.refresh(roots, &[self.kernel.pid]);
        }
        let used = self.grown;
        if let Some((then, before)) = self.before.replace((now, used)) {
            let passed = now.saturating_sub(then).as_secs_f64();
            let share = |cores: f64| 100.0 * (used - before) / passed / cores;
            self.cpu_percent = self.limits.capacity.filter(|_| passed > 0.0).map(share);
        }
        let all = self.proportional_at.is_none_or(|then| now.saturating_sub(then) >= PROPORTIONAL_INTERVAL);
        if all {
            self.proportional_at = Some(now);
        }
        let alive: HashMap<u32, u64> = self.alive().map(|(pid, start, ..)| (pid, start)).collect();
        self.known.retain(|pid, known| alive.get(pid) == Some(&known.start));
        self.on_gpu.retain(|(pid, start)| alive.get(pid) == Some(start));
        let new = alive.into_iter().filter(|(pid, _)| all || !self.known.contains_key(pid));
        new.take(MAX_PROPORTIONAL).collect()
    }

    /// Stores the readings of proportional set sizes.
    pub fn take_proportional(&mut self, read: &HashMap<u32, (u64, Option<u64>)>) {
        let own: Vec<(u32, ProcessMemory)> = self
            .alive()
            .filter_map(|(pid, start, resident, _)| {
                let (of, bytes) = read.get(&pid)?;
                let beside_resident = bytes.map(|bytes| bytes as i64 - resident as i64);
                (*of == start).then_some((pid, ProcessMemory { start, beside_resident }))
            })
            .collect();
        self.known.extend(own);
    }

    /// Ends a tick: updates the state of the kernel, or its end. `uptime` is the system's, seconds.
    pub fn judge(&mut self, now: Duration, wall: i64, uptime: Option<f64>, roots: &Roots) {
        let kills = self.limits.kills().unwrap_or(self.kills);
        if kills > self.kills {
            self.killed_at = Some(now);
        }
        self.kills = kills;
        if !self.lives() {
            // A killed process frees its memory before it ends, which takes time.
            let killed_for_memory = self.killed_at.is_some_and(|at| now.saturating_sub(at) <= KILL_TIME);
            // Its last memory value is kept.
            self.kernel.end = Some(KernelEnd { at: wall, killed_for_memory, cell: None });
            self.kernel.warning = None;
            return;
        }
        let began = |uptime: f64| wall - ((uptime - self.start as f64 / self.ticks) * 1_000.0) as i64;
        self.kernel.started = self.kernel.started.or_else(|| uptime.map(began));
        self.kernel.processes = self.alive().count();
        self.kernel.memory = self.memory();
        self.kernel.limit = self.limits.memory.map(|bytes| bytes as u64);
        self.kernel.limited = self.limits.limited();
        self.kernel.cores = self.limits.capacity;
        self.kernel.used = self.limits.used(roots).map(|bytes| bytes as u64);
        self.kernel.warning = self.warning(now);
    }

    fn warning(&mut self, now: Duration) -> Option<MemoryWarning> {
        let (used, limit) = (self.kernel.used?, self.kernel.limit.filter(|limit| *limit > 0)?);
        self.used.push_back((now, used));
        while self.used.front().is_some_and(|(then, _)| now.saturating_sub(*then) > GROWTH_SPAN) {
            self.used.pop_front();
        }
        growth_warning(&self.used, limit)
    }
}

/// Whether a limit is near, by the memory use of the last seconds.
fn growth_warning(used: &VecDeque<(Duration, u64)>, limit: u64) -> Option<MemoryWarning> {
    let ((first, before), (last, now)) = (used.front()?, used.back()?);
    let (limit, grown, now) = (limit as f64, *now as f64 - *before as f64, *now as f64);
    let passed = last.saturating_sub(*first);
    let left = (limit - now).max(0.0) * passed.as_secs_f64() / grown;
    let grows = passed >= MIN_GROWTH_SPAN && grown >= NOISE_SHARE * limit;
    match (grows && left <= WARN_BEFORE_SECONDS, now >= WARN_SHARE * limit) {
        (true, _) => Some(MemoryWarning::Seconds(left.round() as u64)),
        (false, true) => Some(MemoryWarning::Full),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_warned_of_when_it_is_near_or_soon_reached() {
        let warned = |used: &[u64]| {
            let used =
                used.iter().enumerate().map(|(second, used)| (Duration::from_secs(second as u64), *used)).collect();
            growth_warning(&used, 1_000)
        };
        assert_eq!(warned(&[]), None);
        assert_eq!(warned(&[500; 11]), None);
        assert_eq!(warned(&[900; 11]), Some(MemoryWarning::Full));
        assert_eq!(warned(&[400, 410, 420, 430, 440, 450, 460]), Some(MemoryWarning::Seconds(54)));
        assert_eq!(warned(&[300, 310, 320, 330, 340, 350, 360]), None, "in 64 s");
        assert_eq!(warned(&[400, 600]), None, "too short a time to tell");
        assert_eq!(warned(&[880, 881, 882, 883, 884, 885, 886]), None, "noise");
        assert_eq!(warned(&[940, 960, 980, 1_000, 1_020, 1_040]), Some(MemoryWarning::Seconds(0)));
        assert_eq!(warned(&[800, 700, 600, 500, 400, 300]), None);
    }
}

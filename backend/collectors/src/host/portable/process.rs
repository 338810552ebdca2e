//! The watched processes with all their descendants, by parent PIDs.

use super::{MIB, handle, part};
use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
use shared::catalog::process;
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use sysinfo::{Pid, Process, ProcessRefreshKind, ProcessesToUpdate, System};

/// PID and start.
type Identity = (Pid, u64);

struct Processes {
    system: System,
    /// The watched processes, and all descendants found in the last reading. They stay when their ancestors end.
    watched: HashSet<Identity>,
    cores: Option<f64>,
    memory: Option<f64>,
    /// The previous tick, and milliseconds of CPU time then.
    before: Option<(Duration, HashMap<Identity, u64>)>,
}

pub(crate) fn open(options: &Options, roots: &Roots) -> Result<Vec<Part>, OpenError> {
    if options.pids.is_empty() {
        return Err(OpenError::absent([], "no process is configured", "name one with --pid PID"));
    }
    let mut system = handle(System::new())?;
    refresh(&mut system);
    let started = |&pid: &u32| Some((Pid::from_u32(pid), system.process(Pid::from_u32(pid))?.start_time()));
    let watched: HashSet<_> = options.pids.iter().filter_map(started).collect();
    if watched.is_empty() {
        let remedy = "use --pid with the id of a running process";
        return Err(OpenError::absent(["sysinfo".to_string()], "none of the processes is running", remedy));
    }
    let cores = crate::host::facts::logical_cores(roots).map(|n| n as f64);
    let memory = crate::host::facts::memory_bytes(roots).map(|bytes| bytes as f64);
    part(Processes { system, watched, cores, memory, before: None })
}

fn refresh(system: &mut System) {
    let kind = ProcessRefreshKind::nothing().with_cpu().with_memory().without_tasks();
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, kind);
}

impl Processes {
    fn is_watched(&self, process: &Process) -> bool {
        self.watched.contains(&(process.pid(), process.start_time()))
    }

    /// Whether the process or one of its ancestors is watched. Reused PIDs of parents may form a cycle, so the depth is
    /// limited.
    fn belongs(&self, process: &Process) -> bool {
        let mut above = Some(process);
        for _ in 0..1000 {
            let Some(process) = above else { return false };
            if self.is_watched(process) {
                return true;
            }
            let parent = process.parent().and_then(|pid| self.system.process(pid));
            above = parent.filter(|parent| parent.start_time() <= process.start_time());
        }
        false
    }

    /// Keeps the living processes that belong to the tree.
    fn keep(&mut self) {
        let tree = self.system.processes().values().filter(|process| self.belongs(process));
        self.watched = tree.map(|process| (process.pid(), process.start_time())).collect();
    }
}

/// PIDs of the watched processes, for collectors that report the users of a device.
pub(crate) struct PortableWatched(Option<Processes>);
#[cfg(not(target_os = "linux"))]
pub(crate) use PortableWatched as Watched;

impl PortableWatched {
    /// Nothing is read if no process is watched.
    pub fn new(_: &Roots, pids: &[u32]) -> Self {
        let open = || {
            let mut system = handle(System::new()).ok()?;
            refresh(&mut system);
            let started = |&pid: &u32| Some((Pid::from_u32(pid), system.process(Pid::from_u32(pid))?.start_time()));
            let watched = pids.iter().filter_map(started).collect();
            Some(Processes { system, watched, cores: None, memory: None, before: None })
        };
        PortableWatched(if pids.is_empty() { None } else { open() })
    }

    /// PIDs of the living ones.
    pub fn pids(&mut self) -> HashSet<u32> {
        let Some(processes) = &mut self.0 else { return HashSet::new() };
        refresh(&mut processes.system);
        processes.keep();
        processes.watched.iter().map(|(pid, _)| pid.as_u32()).collect()
    }
}

impl Collector for Processes {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        refresh(&mut self.system);
        self.keep();
        let tree: Vec<&Process> = self.system.processes().values().filter(|p| self.is_watched(p)).collect();
        if tree.is_empty() {
            self.before = None;
            return Err(CollectError::failed("the processes have ended"));
        }
        let bytes: f64 = tree.iter().map(|process| process.memory() as f64).sum();
        out.put(&process::PROCESSES, (), tree.len() as f64);
        out.put(&process::RSS, (), bytes / MIB);
        out.put_rounded(&process::RSS_PERCENT, (), self.memory.map(|total| 100.0 * bytes / total));
        let now: HashMap<_, _> = tree.iter().map(|p| ((p.pid(), p.start_time()), p.accumulated_cpu_time())).collect();
        if let Some((at, before)) = &self.before {
            let used = |(id, ms): (&Identity, &u64)| ms.saturating_sub(before.get(id).copied().unwrap_or(0));
            let used = now.iter().map(used).sum::<u64>() as f64 / 1000.0;
            let passed = out.at().saturating_sub(*at).as_secs_f64();
            let share = self.cores.filter(|_| passed > 0.0).map(|cores| 100.0 * used / passed / cores);
            out.put_rounded(&process::CPU, (), share);
        }
        self.before = Some((out.at(), now));
        Ok(())
    }
}

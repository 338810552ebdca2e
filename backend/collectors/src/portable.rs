//! The host collectors of macOS and Windows, thin readers over sysinfo. On Linux this is built for tests only: there it
//! is the independent reading that our own readers are compared with.

use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
use std::time::Duration;

const MIB: f64 = (1 << 20) as f64;

/// A sysinfo handle, or why there is none.
fn handle<T>(made: Result<T, sysinfo::Error>) -> Result<T, OpenError> {
    made.map_err(|error| OpenError {
        kind: crate::OpenErrorKind::Failed,
        tried: vec!["sysinfo".into()],
        reason: format!("the system does not answer: {error:?}"),
        remedy: String::new(),
    })
}

fn part(collector: impl Collector + 'static) -> Result<Vec<Part>, OpenError> {
    Ok(Part::only(["sysinfo".to_string()], collector))
}

pub(crate) mod cpu {
    //! Processor, load and uptime.
    use super::*;
    use shared::catalog::cpu;
    use sysinfo::System;

    struct Cpu {
        system: System,
        /// Use is measured between two readings.
        read_before: bool,
    }

    pub(crate) fn open(_: &Options, _: &Roots) -> Result<Vec<Part>, OpenError> {
        part(Cpu { system: handle(System::new())?, read_before: false })
    }

    impl Collector for Cpu {
        fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
            self.system.refresh_cpu_usage();
            let cores = self.system.cpus();
            if std::mem::replace(&mut self.read_before, true) {
                out.put_rounded(&cpu::CPU_PERCENT, (), f64::from(self.system.global_cpu_usage()));
                for (i, core) in cores.iter().enumerate() {
                    out.put_rounded(&cpu::CORE_PERCENT, i, f64::from(core.usage()));
                }
            }
            if !cores.is_empty() {
                out.put(&cpu::CORES, (), cores.len() as f64);
            }
            // Windows keeps no load averages; sysinfo answers zeros or an error there.
            if let Some(load) = System::load_average().ok().filter(|_| cfg!(unix)) {
                out.put(&cpu::LOAD1, (), load.one);
                out.put(&cpu::LOAD5, (), load.five);
                out.put(&cpu::LOAD15, (), load.fifteen);
            }
            out.put_some(&cpu::UPTIME, (), System::uptime().ok().map(|seconds| seconds as f64));
            Ok(())
        }
    }
}

pub(crate) mod memory {
    //! Memory and swap.
    use super::*;
    use shared::catalog::memory;
    use sysinfo::System;

    struct Memory {
        system: System,
    }

    pub(crate) fn open(_: &Options, _: &Roots) -> Result<Vec<Part>, OpenError> {
        part(Memory { system: handle(System::new())? })
    }

    impl Collector for Memory {
        fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
            self.system.refresh_memory();
            let (total, available) = (self.system.total_memory() as f64, self.system.available_memory() as f64);
            if total <= 0.0 {
                return Err(CollectError::failed("the system does not say how much memory there is"));
            }
            let used = (total - available).max(0.0);
            let (swap_total, swap_used) = (self.system.total_swap() as f64, self.system.used_swap() as f64);
            Bytes { total, used, swap_total, swap_used }.put(out);
            Ok(())
        }
    }

    /// What the system says of its memory.
    pub(crate) struct Bytes {
        pub total: f64,
        pub used: f64,
        pub swap_total: f64,
        pub swap_used: f64,
    }

    impl Bytes {
        /// Puts them, with the shares that follow. There is no share of a swap that does not exist.
        pub fn put(&self, out: &mut Out) {
            let percent = 100.0 * self.used / self.total;
            out.put(&memory::TOTAL, (), self.total);
            out.put(&memory::USED, (), self.used);
            out.put(&memory::AVAILABLE, (), (self.total - self.used) / MIB);
            out.put_rounded(&memory::PERCENT, (), percent);
            out.put_rounded(&memory::WORKING_SET, (), percent);
            out.put(&memory::SWAP_TOTAL, (), self.swap_total);
            out.put(&memory::SWAP_USED, (), self.swap_used);
            out.put_rounded(&memory::SWAP_PERCENT, (), 100.0 * self.swap_used / self.swap_total);
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) mod pressure {
    //! Only Linux measures pressure.
    use super::*;

    pub(crate) fn open(_: &Options, _: &Roots) -> Result<Vec<Part>, OpenError> {
        Err(OpenError::absent([], "only Linux measures pressure", ""))
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) mod disk {
    //! Reads and writes by volume.
    use super::*;
    use crate::total::Total;
    use shared::catalog::disk;
    use std::collections::BTreeMap;
    use sysinfo::{DiskRefreshKind, Disks};

    struct DiskIo {
        disks: Disks,
        /// By name; a disk that is mounted in several places is listed several times.
        totals: BTreeMap<String, (Total, Total)>,
    }

    pub(crate) fn open(_: &Options, _: &Roots) -> Result<Vec<Part>, OpenError> {
        part(DiskIo { disks: handle(Disks::new())?, totals: BTreeMap::new() })
    }

    impl Collector for DiskIo {
        fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
            self.disks.refresh_specifics(true, DiskRefreshKind::nothing().with_io_usage());
            let mut now = BTreeMap::new();
            for disk in self.disks.iter() {
                let usage = disk.usage();
                now.insert(
                    disk.name().to_string_lossy().into_owned(),
                    (usage.total_read_bytes, usage.total_written_bytes),
                );
            }
            for (name, (read, written)) in &now {
                let total = self.totals.entry(name.clone()).or_default();
                total.0.add(*read);
                total.1.add(*written);
                out.put(&disk::DEVICE_READ, &**name, total.0.sum() as f64 / MIB);
                out.put(&disk::DEVICE_WRITTEN, &**name, total.1.sum() as f64 / MIB);
            }
            if !now.is_empty() {
                let sum = |of: fn(&(Total, Total)) -> u64| self.totals.values().map(of).sum::<u64>() as f64 / MIB;
                out.put(&disk::READ, (), sum(|total| total.0.sum()));
                out.put(&disk::WRITTEN, (), sum(|total| total.1.sum()));
            }
            Ok(())
        }
    }
}

#[cfg(windows)]
pub(crate) mod disk_usage {
    //! How full the volumes at the watched paths are.
    use super::*;
    use shared::catalog::disk;
    use std::path::PathBuf;
    use sysinfo::{DiskRefreshKind, Disks};

    struct Usage {
        path: PathBuf,
        name: String,
        disks: Disks,
    }

    pub(crate) fn open(options: &Options, _: &Roots) -> Result<Vec<Part>, OpenError> {
        let mut parts = Vec::new();
        for path in &options.disk_paths {
            let name = path.to_string_lossy().into_owned();
            let collector = Box::new(Usage { path: path.clone(), name: name.clone(), disks: handle(Disks::new())? });
            parts.push(Part { tried: vec![name.clone()], name, collector });
        }
        Ok(parts)
    }

    impl Collector for Usage {
        fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
            self.disks.refresh_specifics(true, DiskRefreshKind::nothing().with_storage());
            let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
            let above = self.disks.iter().filter(|disk| path.starts_with(disk.mount_point()));
            let volume = above.max_by_key(|disk| disk.mount_point().components().count());
            let volume = volume.filter(|volume| volume.total_space() > 0);
            let volume = volume.ok_or_else(|| CollectError::failed(format!("{}: no volume", self.name)))?;
            let used = volume.total_space().saturating_sub(volume.available_space()) as f64;
            out.put_rounded(&disk::USAGE_PERCENT, &*self.name, 100.0 * used / volume.total_space() as f64);
            out.put(&disk::USAGE_GB, &*self.name, used / (1u64 << 30) as f64);
            Ok(())
        }
    }
}

pub(crate) mod network {
    //! Traffic by link.
    use super::*;
    use crate::total::Total;
    use shared::catalog::network;
    use std::collections::BTreeMap;
    use sysinfo::Networks;

    struct Network {
        networks: Networks,
        totals: BTreeMap<String, (Total, Total)>,
    }

    pub(crate) fn open(_: &Options, _: &Roots) -> Result<Vec<Part>, OpenError> {
        part(Network { networks: handle(Networks::new())?, totals: BTreeMap::new() })
    }

    impl Collector for Network {
        fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
            self.networks.refresh(true);
            let links = self.networks.iter().map(|(name, link)| (name.to_string_lossy().into_owned(), link));
            for (name, link) in links.filter(|(name, _)| !is_loopback(name)) {
                let total = self.totals.entry(name.clone()).or_default();
                total.0.add(link.total_received());
                total.1.add(link.total_transmitted());
                out.put(&network::DEVICE_RECEIVED, &*name, total.0.sum() as f64);
                out.put(&network::DEVICE_SENT, &*name, total.1.sum() as f64);
            }
            out.put(&network::RECEIVED, (), self.totals.values().map(|total| total.0.sum()).sum::<u64>() as f64);
            out.put(&network::SENT, (), self.totals.values().map(|total| total.1.sum()).sum::<u64>() as f64);
            Ok(())
        }
    }

    /// `lo` and `lo0`, and Windows' pseudo link.
    fn is_loopback(name: &str) -> bool {
        name.strip_prefix("lo").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
            || name.starts_with("Loopback")
    }
}

pub(crate) mod process {
    //! The watched processes with all their descendants, by their parents' numbers.
    use super::*;
    use shared::catalog::process;
    use std::collections::{HashMap, HashSet};
    use sysinfo::{Pid, Process, ProcessRefreshKind, ProcessesToUpdate, System};

    /// Number and start.
    type Identity = (Pid, u64);

    struct Processes {
        system: System,
        /// Those to watch, and since the last reading all that were found below them: they stay when those above them end.
        watched: HashSet<Identity>,
        cores: Option<f64>,
        memory: Option<f64>,
        /// The tick before, and milliseconds of CPU time then.
        before: Option<(Duration, HashMap<Identity, u64>)>,
    }

    pub(crate) fn open(options: &Options, roots: &Roots) -> Result<Vec<Part>, OpenError> {
        if options.pids.is_empty() {
            return Err(OpenError::absent([], "no process is watched", "start with --pid PID"));
        }
        let mut system = handle(System::new())?;
        refresh(&mut system);
        let started = |&pid: &u32| Some((Pid::from_u32(pid), system.process(Pid::from_u32(pid))?.start_time()));
        let watched: HashSet<_> = options.pids.iter().filter_map(started).collect();
        if watched.is_empty() {
            let remedy = "start with --pid and the number of a process that runs";
            return Err(OpenError::absent(["sysinfo".to_string()], "no watched process runs", remedy));
        }
        let cores = crate::host::logical_cores(roots).map(|n| n as f64);
        let memory = crate::host::memory_bytes(roots).map(|bytes| bytes as f64);
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

        /// Whether the process or one above it is watched. Parents' numbers may be used again, and then make a circle.
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

        /// Keeps those that live and belong.
        fn keep(&mut self) {
            let tree = self.system.processes().values().filter(|process| self.belongs(process));
            self.watched = tree.map(|process| (process.pid(), process.start_time())).collect();
        }
    }

    /// The watched processes' numbers, for collectors that see who uses a device.
    #[cfg_attr(target_os = "linux", allow(dead_code, reason = "Linux has its own"))]
    pub(crate) struct Watched(Option<Processes>);

    #[cfg_attr(target_os = "linux", allow(dead_code, reason = "Linux has its own"))]
    impl Watched {
        /// Nothing is read where no process is watched.
        pub fn new(_: &Roots, pids: &[u32]) -> Self {
            let open = || {
                let mut system = handle(System::new()).ok()?;
                refresh(&mut system);
                let started = |&pid: &u32| Some((Pid::from_u32(pid), system.process(Pid::from_u32(pid))?.start_time()));
                let watched = pids.iter().filter_map(started).collect();
                Some(Processes { system, watched, cores: None, memory: None, before: None })
            };
            Watched(if pids.is_empty() { None } else { open() })
        }

        /// Those that live now.
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
                return Err(CollectError::failed("the watched processes have ended"));
            }
            let bytes: f64 = tree.iter().map(|process| process.memory() as f64).sum();
            out.put(&process::PROCESSES, (), tree.len() as f64);
            out.put(&process::RSS, (), bytes / MIB);
            out.put_rounded(&process::RSS_PERCENT, (), self.memory.map(|total| 100.0 * bytes / total));
            let now: HashMap<_, _> =
                tree.iter().map(|p| ((p.pid(), p.start_time()), p.accumulated_cpu_time())).collect();
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
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    //! Our readers against sysinfo, on the machine that the tests run on.
    use super::*;
    use shared::catalog::MetricDef;
    use shared::catalog::cpu::{CORES, CPU_PERCENT, LOAD1, UPTIME};
    use shared::catalog::memory::{AVAILABLE, PERCENT, SWAP_TOTAL, TOTAL};
    use shared::catalog::network::{DEVICE_RECEIVED, RECEIVED};
    use shared::catalog::process::{CPU, PROCESSES, RSS};
    use std::time::Instant;

    type Open = fn(&Options, &Roots) -> Result<Vec<Part>, OpenError>;

    /// Two readings of both, as close together as can be; the load between them is one busy core.
    fn both(ours: Open, theirs: Open, busy: bool) -> [Out; 2] {
        let options = Options { pids: vec![std::process::id()], ..Options::default() };
        let mut parts = [ours, theirs].map(|open| open(&options, &Roots::default()).unwrap().remove(0));
        let mut outs = [Out::default(), Out::default()];
        let start = Instant::now();
        for reading in 0..2 {
            for (part, out) in parts.iter_mut().zip(&mut outs) {
                out.begin(start.elapsed());
                part.collector.collect(out).unwrap();
            }
            // sysinfo skips readings that are less than 200 ms apart.
            while reading == 0 && start.elapsed() < Duration::from_millis(600) {
                if !busy {
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        }
        outs
    }

    #[track_caller]
    fn agree(outs: &[Out; 2], def: &'static MetricDef, within: f64) {
        let value = |out: &Out| out.present().into_iter().find(|(tag, _)| *tag == def.tag).map(|(_, value)| value);
        let (ours, theirs) = (value(&outs[0]).unwrap(), value(&outs[1]).unwrap());
        assert!((ours - theirs).abs() <= within, "{}: ours {ours}, sysinfo {theirs}", def.tag);
    }

    #[test]
    fn processor_load_and_uptime_agree() {
        let outs = both(crate::cpu::open, cpu::open, true);
        agree(&outs, &CPU_PERCENT, 10.0);
        agree(&outs, &CORES, 0.0);
        agree(&outs, &LOAD1, 0.5);
        agree(&outs, &UPTIME, 2.0);
        assert!(outs[0].present().iter().any(|(tag, value)| tag.ends_with(".cpu_percent") && *value > 20.0));
    }

    #[test]
    fn memory_agrees() {
        let in_a_group = std::fs::read("/proc/self/cgroup").ok().and_then(|text| {
            let mount = crate::read::cgroup::mount("/sys".as_ref());
            let levels = crate::read::cgroup::levels(&mount, &crate::read::cgroup::path_in(&text)?);
            crate::read::cgroup::smallest(&levels, "memory.max", crate::read::cgroup::memory_limit)
        });
        let outs = both(crate::memory::open, memory::open, false);
        agree(&outs, &SWAP_TOTAL, 0.0);
        // sysinfo knows no limits here.
        if in_a_group.is_none() {
            agree(&outs, &TOTAL, 0.0);
            agree(&outs, &PERCENT, 5.0);
            agree(&outs, &AVAILABLE, 1000.0);
        }
    }

    #[test]
    fn traffic_agrees() {
        let outs = both(crate::network::open, network::open, false);
        agree(&outs, &RECEIVED, 10e6);
        let links = |out: &Out| {
            let received = out.slots().filter(|(def, _)| std::ptr::eq(*def, &DEVICE_RECEIVED));
            received.map(|(_, name)| name).collect::<std::collections::BTreeSet<_>>()
        };
        assert!(links(&outs[0]).is_subset(&links(&outs[1])));
    }

    #[test]
    fn our_own_process_agrees() {
        let outs = both(crate::process::open, process::open, true);
        agree(&outs, &RSS, 8.0);
        agree(&outs, &PROCESSES, 0.0);
        agree(&outs, &CPU, 15.0);
    }
}

//! Limits of the watched processes: cores and memory of their control groups, with the groups' counts of throttling and
//! kills.

use crate::Roots;
use crate::host::facts;
use crate::host::linux::gpu_nodes;
use crate::host::total::Total;
use crate::read::cgroup::{self, MemoryFiles};
use crate::read::procfs::{fields, lines, number, trim};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Maximum number of processes whose groups are read, and of threads of one whose allowed cores are read.
const MAX_PROCESSES: usize = 256;
const MAX_THREADS: usize = 256;

/// Memory levels, innermost first, and their file names.
type MemoryLevels = (Vec<PathBuf>, &'static MemoryFiles);

/// A control group with watched processes in it.
struct Group {
    /// Its CPU levels, innermost first.
    levels: Vec<PathBuf>,
    /// Its memory levels, innermost first, and their file names: version 1 has folders of its own.
    of_memory: MemoryLevels,
    /// Cores on which its watched processes may run.
    cores: BTreeSet<u32>,
    /// The level with the effective quota.
    throttled_at: Option<PathBuf>,
    /// Whether one of its levels has a memory limit.
    has_limit: bool,
    kills: Total,
    /// Periods and throttled periods.
    periods: Option<(u64, u64)>,
}

/// The limits of all watched processes together.
#[derive(Default)]
pub(in crate::host::linux) struct TreeLimits {
    groups: Vec<Group>,
    /// Cores that the processes can use.
    pub capacity: Option<f64>,
    /// Memory that they can use, bytes.
    pub memory: Option<f64>,
    /// The levels whose limits make up `memory`; empty if the machine's memory is the limit.
    bound_at: Vec<(PathBuf, &'static MemoryFiles)>,
}

impl TreeLimits {
    /// Reads the limits of these processes. State of groups that remain is kept. Without any process all state is kept,
    /// because a kill is only noticed after the process has ended.
    pub fn refresh(&mut self, roots: &Roots, pids: &[u32]) {
        let host = facts::logical_cores(roots).map(|n| n as f64);
        let mut groups: Vec<Group> = Vec::new();
        // Many processes are in one group, which may have to be searched.
        let mut found: BTreeMap<Vec<u8>, (Vec<PathBuf>, MemoryLevels)> = BTreeMap::new();
        for &pid in pids.iter().take(MAX_PROCESSES) {
            let dir = roots.proc.join(pid.to_string());
            let Ok(text) = std::fs::read(dir.join("cgroup")) else { continue };
            let sys = &roots.sys;
            let find = |text: &Vec<u8>| (cgroup::cpu_levels(sys, text), cgroup::memory_levels(sys, text));
            let (levels, of_memory) = found.entry(text).or_insert_with_key(find).clone();
            let cores = cores_of_threads(&dir, host);
            let is = |group: &Group| group.levels == levels && group.of_memory.0 == of_memory.0;
            if let Some(group) = groups.iter_mut().find(|group| is(group)) {
                group.cores.extend(cores);
                continue;
            }
            let old = self.groups.iter().find(|group| is(group));
            groups.push(Group {
                cores,
                throttled_at: cgroup::smallest(&levels, cgroup::quota).map(|(level, _)| level),
                has_limit: of_memory.1.smallest(&of_memory.0).is_some(),
                kills: old.map(|group| group.kills).unwrap_or_default(),
                periods: old.and_then(|group| group.periods),
                levels,
                of_memory,
            });
        }
        if groups.is_empty() && !self.groups.is_empty() {
            return;
        }
        self.groups = groups;
        self.capacity = least(self.cores(), host);
        let total = facts::memory_bytes(roots).map(|bytes| bytes as f64);
        let (limit, bound_at) = self.limit_of_memory();
        let binds = limit.is_finite() && total.is_none_or(|total| limit < total);
        self.memory = if binds { Some(limit) } else { total };
        self.bound_at = if binds { bound_at } else { Vec::new() };
    }

    /// Cores that can be used. Each level counts at most its quota, the cores on which its processes may run, and the
    /// sum of its groups. So a shared limit counts once.
    fn cores(&self) -> Option<f64> {
        let mut levels: BTreeMap<&Path, (f64, BTreeSet<u32>)> = BTreeMap::new();
        for group in &self.groups {
            let Some(leaf) = group.levels.first() else { continue };
            let (sum, cores) = levels.entry(leaf).or_default();
            cores.extend(&group.cores);
            *sum = if group.cores.is_empty() { f64::INFINITY } else { *sum + group.cores.len() as f64 };
        }
        let ends = up(
            levels,
            &self.groups,
            |group| &group.levels,
            |level, (sum, cores): (f64, BTreeSet<u32>)| {
                let allowed = if cores.is_empty() { f64::INFINITY } else { cores.len() as f64 };
                (sum.min(allowed).min(cgroup::quota(level).unwrap_or(f64::INFINITY)), cores)
            },
        );
        let all: f64 = ends.into_iter().map(|(sum, _)| sum).sum();
        Some(all).filter(|cores| *cores > 0.0 && cores.is_finite())
    }

    /// Memory in bytes by the same rule (infinite without a limit), and the levels whose limits make it up.
    fn limit_of_memory(&self) -> (f64, Vec<(PathBuf, &'static MemoryFiles)>) {
        let mut levels: BTreeMap<&Path, Bytes> = BTreeMap::new();
        let mut files: BTreeMap<&Path, &'static MemoryFiles> = BTreeMap::new();
        for group in &self.groups {
            files.extend(group.of_memory.0.iter().map(|level| (level.as_path(), group.of_memory.1)));
            if let Some(leaf) = group.of_memory.0.first() {
                levels.insert(leaf, Bytes { sum: f64::INFINITY, at: Vec::new() });
            }
        }
        let ends = up(
            levels,
            &self.groups,
            |group| &group.of_memory.0,
            |level, inner: Bytes| match files.get(level).and_then(|files| Some((files.limit(level)?, *files))) {
                Some((limit, files)) if limit <= inner.sum => Bytes { sum: limit, at: vec![(level.into(), files)] },
                _ => inner,
            },
        );
        let mut all = Bytes::default();
        ends.into_iter().for_each(|end| all.add(end));
        (if self.groups.is_empty() { f64::INFINITY } else { all.sum }, all.at)
    }

    /// Whether limits of groups apply instead of the machine's memory.
    pub fn limited(&self) -> bool {
        !self.bound_at.is_empty()
    }

    /// Bytes in use below the limit by all processes, without droppable file cache. Without a limit, the machine's, of
    /// which the memory of GPUs is no part.
    pub fn used(&self, roots: &Roots) -> Option<f64> {
        let in_group = |(level, files): &(PathBuf, &MemoryFiles)| {
            let current = number(trim(&std::fs::read(level.join(files.current)).ok()?))?;
            let stat = std::fs::read(level.join("memory.stat")).unwrap_or_default();
            Some(current.saturating_sub(cgroup::value_of(&stat, files.droppable).unwrap_or_default()) as f64)
        };
        if self.limited() {
            return self.bound_at.iter().map(in_group).sum();
        }
        let text = std::fs::read(roots.proc.join("meminfo")).ok()?;
        let of = |word: &[u8]| {
            let line = lines(&text).find_map(|line| line.strip_prefix(word))?;
            number(fields(line).next()?)
        };
        let used = (of(b"MemTotal:")?.saturating_sub(of(b"MemAvailable:")?) << 10) as f64;
        Some((used - gpu_nodes::used(roots)?).max(0.0))
    }

    /// 100 x throttled periods / periods since the last call, over all groups with a quota. None if no period passed.
    pub fn throttled_percent(&mut self) -> Option<f64> {
        let (mut periods, mut throttled) = (0, 0);
        for group in &mut self.groups {
            let Some(level) = &group.throttled_at else { continue };
            let now = std::fs::read(level.join("cpu.stat")).ok().and_then(|text| {
                Some((cgroup::value_of(&text, "nr_periods")?, cgroup::value_of(&text, "nr_throttled")?))
            });
            if let Some((before, now)) = group.periods.zip(now) {
                periods += now.0.saturating_sub(before.0);
                throttled += now.1.saturating_sub(before.1);
            }
            group.periods = now;
        }
        (periods > 0).then(|| 100.0 * throttled as f64 / periods as f64)
    }

    /// Kills since the first call in all groups with a limit; none if no group has one.
    pub fn kills(&mut self) -> Option<f64> {
        let mut kills = None;
        for group in self.groups.iter_mut().filter(|group| group.has_limit) {
            let (levels, files) = &group.of_memory;
            if let Some(folder) = levels.first()
                && let Ok(text) = std::fs::read(folder.join(files.events))
                && let Some(raw) = cgroup::value_of(&text, "oom_kill")
            {
                group.kills.add(raw);
                *kills.get_or_insert(0.0) += group.kills.sum() as f64;
            }
        }
        kills
    }
}

/// Bytes, and the levels whose limits make them up.
#[derive(Default)]
struct Bytes {
    sum: f64,
    at: Vec<(PathBuf, &'static MemoryFiles)>,
}

/// Sum over sibling groups.
trait Add {
    fn add(&mut self, other: Self);
}

impl Add for Bytes {
    fn add(&mut self, other: Self) {
        self.sum += other.sum;
        self.at.extend(other.at);
    }
}

impl Add for (f64, BTreeSet<u32>) {
    fn add(&mut self, other: Self) {
        self.0 += other.0;
        self.1.extend(other.1);
    }
}

/// Walks from the groups upwards, level by level. The sum of the groups in a level is limited by `bound`. Returns the
/// values at the roots.
fn up<'a, T: Add + Default>(
    mut levels: BTreeMap<&'a Path, T>,
    groups: &'a [Group],
    of: impl Fn(&'a Group) -> &'a Vec<PathBuf>,
    bound: impl Fn(&Path, T) -> T,
) -> Vec<T> {
    let above: BTreeMap<&Path, &Path> = groups
        .iter()
        .flat_map(|group| of(group).windows(2))
        .map(|pair| (pair[0].as_path(), pair[1].as_path()))
        .collect();
    let mut ends = Vec::new();
    // The longest path first, so everything in a level precedes it.
    while let Some(level) = levels.keys().max_by_key(|level| level.components().count()).copied() {
        let inner = levels.remove(level).unwrap_or_default();
        let bounded = bound(level, inner);
        match above.get(level) {
            Some(above) => levels.entry(above).or_default().add(bounded),
            None => ends.push(bounded),
        }
    }
    ends
}

/// The cores on which the threads of a process may run. The first thread may be bound to one of them.
fn cores_of_threads(dir: &Path, host: Option<f64>) -> BTreeSet<u32> {
    let cores_in = |dir: &Path| cores_allowed(&std::fs::read(dir.join("status")).unwrap_or_default());
    let mut cores = cores_in(dir);
    let all = |cores: &BTreeSet<u32>| host.is_some_and(|host| cores.len() as f64 >= host);
    let threads = std::fs::read_dir(dir.join("task")).into_iter().flatten().flatten();
    for thread in threads.take(MAX_THREADS) {
        if all(&cores) {
            break;
        }
        cores.extend(cores_in(&thread.path()));
    }
    cores
}

/// The smaller value, or the only one.
fn least(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The cores of `Cpus_allowed_list: 0-3,8` in a `status` file.
fn cores_allowed(text: &[u8]) -> BTreeSet<u32> {
    let list = lines(text).find_map(|line| line.strip_prefix(b"Cpus_allowed_list:")).unwrap_or_default();
    let mut cores = BTreeSet::new();
    for range in trim(list).split(|&b| b == b',') {
        let mut ends = range.split(|&b| b == b'-').map(number);
        let Some(first) = ends.next().flatten() else { continue };
        let last = ends.next().unwrap_or(Some(first)).unwrap_or(first);
        // No machine has more cores; a larger range is invalid.
        if last < 1 << 16 {
            cores.extend((first..=last).map(|core| core as u32));
        }
    }
    cores
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn memory_of_a_gpu_that_the_kernel_counts_is_not_in_use_here() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let used = || TreeLimits::default().used(&Roots::below(dir.path()));
        put("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 200 kB\nMemAvailable: 300 kB\n");
        assert_eq!(used(), Some(700.0 * 1024.0));
        // A GH200: the node of the GPU has no processors.
        put("proc/driver/nvidia/gpus/0009:01:00.0/numa_status", "Node:      1\nStatus:    online\n");
        put("sys/devices/system/node/node1/cpulist", "\n");
        put("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 600 kB\nNode 1 MemFree: 100 kB\n");
        assert_eq!(used(), Some(200.0 * 1024.0), "500 KiB are in use on the GPU");
        put("sys/devices/system/node/node1/meminfo", "Node 1 MemFree: 100 kB\n");
        assert_eq!(used(), None, "the GPU's part is unknown");
    }

    #[test]
    fn lists_of_cores_are_read() {
        let cores = |list: &str| cores_allowed(format!("Name:\tx\nCpus_allowed_list:\t{list}\n").as_bytes()).len();
        assert_eq!(cores("0-3,8,10-11"), 7);
        assert_eq!(cores("5"), 1);
        assert_eq!(cores("0-99999999999"), 0);
        assert_eq!(cores(""), 0);
    }

    proptest! {
        #[test]
        fn no_text_panics(text: Vec<u8>, list in "[0-9,-]{0,12}") {
            cores_allowed(&text);
            cores_allowed(format!("Cpus_allowed_list:{list}").as_bytes());
        }
    }
}

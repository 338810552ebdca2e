//! What the watched processes may use: cores and memory of their control groups, and what the groups say of throttling
//! and kills.

use crate::Roots;
use crate::host::facts;
use crate::host::total::Total;
use crate::read::cgroup;
use crate::read::procfs::{fields, lines, number, trim};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The files in which a version of control groups tells of memory, and the word for files that can be dropped.
struct MemoryFiles {
    limit: &'static str,
    current: &'static str,
    droppable: &'static str,
    events: &'static str,
}

const VERSION_2: MemoryFiles =
    MemoryFiles { limit: "memory.max", current: "memory.current", droppable: "inactive_file", events: "memory.events" };
const VERSION_1: MemoryFiles = MemoryFiles {
    limit: "memory.limit_in_bytes",
    current: "memory.usage_in_bytes",
    droppable: "total_inactive_file",
    events: "memory.oom_control",
};

/// A control group with watched processes in it.
struct Group {
    dir: PathBuf,
    /// Its folder for memory, and the names in it: version 1 has one of its own.
    of_memory: (PathBuf, &'static MemoryFiles),
    /// Cores on which its watched processes may run.
    cores: BTreeSet<u32>,
    /// The level whose quota binds, and the quota in cores.
    quota: Option<(PathBuf, f64)>,
    /// The smallest limit of memory, bytes, and the level that has it.
    memory: Option<(PathBuf, f64)>,
    kills: Total,
    /// Periods and throttled periods.
    periods: Option<(u64, u64)>,
}

/// The limits of all watched processes together.
#[derive(Default)]
pub(in crate::host::linux) struct TreeLimits {
    groups: Vec<Group>,
    /// Cores' worth of time that the processes can use.
    pub capacity: Option<f64>,
    /// Bytes that they can use.
    pub memory: Option<f64>,
}

impl TreeLimits {
    /// Looks the limits of these processes up. What is known of groups that stay is kept; when no process is left, all
    /// is: a kill is noticed after the death.
    pub fn refresh(&mut self, roots: &Roots, pids: &[u32]) {
        let mount = cgroup::mount(&roots.sys);
        let mut groups: Vec<Group> = Vec::new();
        for &pid in pids {
            let dir = roots.proc.join(pid.to_string());
            let Ok(text) = std::fs::read(dir.join("cgroup")) else { continue };
            let levels = cgroup::levels(&mount, &cgroup::path_in(&text).unwrap_or_default());
            let Some(leaf) = levels.first().cloned() else { continue };
            let cores = cores_allowed(&std::fs::read(dir.join("status")).unwrap_or_default());
            let (of_memory, memory) = memory_of(roots, &text, &leaf, &levels);
            if let Some(group) = groups.iter_mut().find(|group| group.dir == leaf && group.of_memory.0 == of_memory.0) {
                group.cores.extend(cores);
                continue;
            }
            let old = self.groups.iter().find(|group| group.dir == leaf && group.of_memory.0 == of_memory.0);
            groups.push(Group {
                cores,
                quota: cgroup::smallest(&levels, "cpu.max", cgroup::cpu_limit),
                memory,
                of_memory,
                kills: old.map(|group| group.kills).unwrap_or_default(),
                periods: old.and_then(|group| group.periods),
                dir: leaf,
            });
        }
        if groups.is_empty() && !self.groups.is_empty() {
            return;
        }
        self.groups = groups;
        self.capacity = self.cores(facts::logical_cores(roots).map(|n| n as f64));
        let total = facts::memory_bytes(roots).map(|bytes| bytes as f64);
        let limits: Option<f64> = self.groups.iter().map(|group| group.memory.as_ref().map(|(_, bytes)| *bytes)).sum();
        self.memory = least(limits.filter(|bytes| *bytes > 0.0), total);
    }

    fn cores(&self, host: Option<f64>) -> Option<f64> {
        let of_group = |group: &Group| {
            let allowed = Some(group.cores.len() as f64).filter(|n| *n > 0.0);
            least(least(group.quota.as_ref().map(|(_, quota)| *quota), allowed), host)
        };
        let all: Option<f64> = self.groups.iter().map(of_group).sum();
        least(all.filter(|cores| *cores > 0.0), host)
    }

    /// Whether a group has a limit of memory.
    pub fn limited(&self) -> bool {
        self.groups.iter().any(|group| group.memory.is_some())
    }

    /// Bytes that are used of the limit, by whomever, without files that can be dropped; where there is no limit those of the
    /// machine.
    pub fn used(&self, proc: &Path) -> Option<f64> {
        let in_group = |(files, level): (&MemoryFiles, &PathBuf)| {
            let current = number(trim(&std::fs::read(level.join(files.current)).ok()?))?;
            let stat = std::fs::read(level.join("memory.stat")).unwrap_or_default();
            Some(current.saturating_sub(cgroup::value_of(&stat, files.droppable).unwrap_or_default()) as f64)
        };
        if self.limited() {
            let limited = self.groups.iter().filter_map(|group| Some((group.of_memory.1, &group.memory.as_ref()?.0)));
            return limited.map(in_group).sum();
        }
        let text = std::fs::read(proc.join("meminfo")).ok()?;
        let of = |word: &[u8]| {
            let line = lines(&text).find_map(|line| line.strip_prefix(word))?;
            number(fields(line).next()?)
        };
        Some((of(b"MemTotal:")?.saturating_sub(of(b"MemAvailable:")?) << 10) as f64)
    }

    /// 100 x throttled periods / periods since the last call, of all groups that have a quota; absent when no period
    /// passed.
    pub fn throttled_percent(&mut self) -> Option<f64> {
        let (mut periods, mut throttled) = (0, 0);
        for group in &mut self.groups {
            let Some((level, _)) = &group.quota else { continue };
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

    /// Kills since the first call in all groups that have a limit; absent when none has.
    pub fn kills(&mut self) -> Option<f64> {
        let mut kills = None;
        for group in self.groups.iter_mut().filter(|group| group.memory.is_some()) {
            let (folder, files) = &group.of_memory;
            if let Ok(text) = std::fs::read(folder.join(files.events))
                && let Some(raw) = cgroup::value_of(&text, "oom_kill")
            {
                group.kills.add(raw);
                *kills.get_or_insert(0.0) += group.kills.sum() as f64;
            }
        }
        kills
    }
}

/// Where a process's group tells of memory, and the smallest limit: in the tree of version 2, else in that which version 1 has
/// for memory, where it has a limit.
fn memory_of(
    roots: &Roots,
    cgroup: &[u8],
    leaf: &Path,
    levels: &[PathBuf],
) -> ((PathBuf, &'static MemoryFiles), Option<(PathBuf, f64)>) {
    let own = cgroup::smallest(levels, VERSION_2.limit, cgroup::memory_limit);
    let mount = roots.sys.join("fs/cgroup/memory");
    if own.is_none()
        && let Some(path) = cgroup::memory_path_in(cgroup)
        && mount.is_dir()
    {
        let levels = cgroup::levels(&mount, &path);
        let limit = cgroup::smallest(&levels, VERSION_1.limit, cgroup::memory_limit_1);
        if let Some(folder) = levels.into_iter().next().filter(|_| limit.is_some()) {
            return ((folder, &VERSION_1), limit);
        }
    }
    ((leaf.to_path_buf(), &VERSION_2), own)
}

/// The smaller one, or the one that there is.
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
        // No machine has more; a range beyond it is not one.
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

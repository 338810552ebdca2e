//! Detects processes that are frozen with their whole control group.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use system::cgroup;

/// A process may move to another group, so its group is read again after this many checks.
const GROUP_CHECKS: u32 = 12;

/// The known control groups of processes.
#[derive(Default)]
pub(super) struct Groups {
    paths: HashMap<u32, String>,
    /// Their folders; None for one that is not visible.
    folders: HashMap<String, Option<PathBuf>>,
    looks: u32,
}

impl Groups {
    /// The frozen ones among these processes, by `cgroup.events`, which is read once for all processes of a group.
    /// `tree` has the control groups of the machine.
    pub fn frozen(&mut self, pids: &[u32], tree: &Path) -> HashSet<u32> {
        if self.looks.is_multiple_of(GROUP_CHECKS) {
            self.paths.clear();
            self.folders.clear();
        }
        self.looks = self.looks.wrapping_add(1);
        let mut before = std::mem::take(&mut self.paths);
        self.paths = pids.iter().filter_map(|pid| Some((*pid, before.remove(pid).or_else(|| path(*pid))?))).collect();
        let mut is_group_frozen = |path: &str| {
            let folder = self.folders.entry(path.to_owned()).or_insert_with(|| cgroup::find(tree, path));
            folder.as_deref().is_some_and(is_frozen)
        };
        let mut known: HashMap<&str, bool> = HashMap::new();
        let frozen = self.paths.iter().filter(|(_, path)| *known.entry(path).or_insert_with(|| is_group_frozen(path)));
        frozen.map(|(pid, _)| *pid).collect()
    }
}

/// Path of a process's control group, from `/proc/PID/cgroup`.
fn path(pid: u32) -> Option<String> {
    let own = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    Some(own.lines().find_map(|line| line.strip_prefix("0::/"))?.to_owned())
}

/// Whether control group version 2 has frozen the processes of a group, by the `cgroup.events` in its folder.
fn is_frozen(folder: &Path) -> bool {
    let events = std::fs::read_to_string(folder.join("cgroup.events")).unwrap_or_default();
    events.lines().any(|line| line == "frozen 1")
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_frozen_group_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let is_frozen = |text: &str| {
            std::fs::write(folder.path().join("cgroup.events"), text).expect("written");
            super::is_frozen(folder.path())
        };
        assert_eq!(["populated 1\nfrozen 1\n", "populated 1\nfrozen 0\n", ""].map(is_frozen), [true, false, false]);
    }
}

//! What the kernel killed because memory was short: counters of the cgroups that this process is in, and of the machine.
//!
//! Read are, of `/sys/fs/cgroup` as `/proc/self/cgroup` says, `memory.events` (`oom_kill`), `memory.max` and `memory.peak` of
//! version 2; `memory.oom_control` (`oom_kill`), `memory.limit_in_bytes` and `memory.max_usage_in_bytes` of version 1; and
//! `oom_kill` of `/proc/vmstat`. The files stay open: a scheduler removes the cgroup together with the job.

use shared::run::MemoryKill;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The longest of these files that is read, bytes.
const MAX_BYTES: usize = 16 << 10;

/// Files of one cgroup with a limit, and its count at the beginning.
struct Group {
    events: File,
    peak: Option<File>,
    limit: u64,
    kills: u64,
}

/// The counters, as they were when the job began.
pub struct Watched {
    groups: Vec<Group>,
    /// The innermost cgroup that counts, with or without a limit: it knows of each process of its own, whoever ran short.
    own: Option<(File, u64)>,
    machine: Option<(File, u64)>,
}

/// Names of the files in one version of cgroups.
struct Names {
    events: &'static str,
    limit: &'static str,
    peak: &'static str,
}

const V2: Names = Names { events: "memory.events", limit: "memory.max", peak: "memory.peak" };
const V1: Names =
    Names { events: "memory.oom_control", limit: "memory.limit_in_bytes", peak: "memory.max_usage_in_bytes" };

/// A limit above this is none: version 1 writes the largest number of pages.
const NO_LIMIT: u64 = 1 << 62;

impl Watched {
    /// Opens the counters of the cgroups that this process is in.
    pub fn own() -> Watched {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Watched::new(&own, Path::new("/sys/fs/cgroup"), Path::new("/proc/vmstat"))
    }

    /// Likewise of those that another process is in.
    pub fn of(pid: u32) -> Watched {
        let own = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        Watched::new(&own, Path::new("/sys/fs/cgroup"), Path::new("/proc/vmstat"))
    }

    /// Likewise of those that `own`, the text of `/proc/PID/cgroup`, names below `root`.
    pub fn new(own: &str, root: &Path, vmstat: &Path) -> Watched {
        let folders = folders(own, root);
        let counted = |path: &Path| {
            let file = File::open(path).ok()?;
            let kills = counter(&text(&file)?, "oom_kill")?;
            Some((file, kills))
        };
        // That of all processes counts none, or not all.
        let is_below = |folder: &Path| folder != root && folder != root.join("memory");
        let own = folders.iter().filter(|(folder, _)| is_below(folder));
        let own = own.map(|(folder, names)| folder.join(names.events)).find_map(|events| counted(&events));
        let groups = folders.iter().filter_map(|(folder, names)| Group::open(folder, names)).collect();
        Watched { groups, own, machine: counted(vmstat) }
    }

    /// What was killed since, first of the innermost cgroup with a limit; None where nothing was.
    pub fn killed(&self) -> Option<MemoryKill> {
        let of_group = |group: &Group| {
            let kills =
                counter(&text(&group.events)?, "oom_kill")?.checked_sub(group.kills).filter(|kills| *kills > 0)?;
            let peak = group.peak.as_ref().and_then(text).and_then(|text| text.trim().parse().ok());
            Some(MemoryKill { kills, limit: Some(group.limit), peak })
        };
        let since = |(file, before): &(File, u64)| {
            counter(&text(file)?, "oom_kill")?.checked_sub(*before).filter(|kills| *kills > 0)
        };
        self.groups.iter().find_map(of_group).or_else(|| {
            // Another job may have been killed, also for a limit of its own.
            if self.own.as_ref().is_some_and(|own| since(own).is_none()) {
                return None;
            }
            let kills = since(self.machine.as_ref()?)?;
            Some(MemoryKill { kills, limit: None, peak: None })
        })
    }
}

impl Group {
    fn open(folder: &Path, names: &Names) -> Option<Group> {
        let limit =
            fs::read_to_string(folder.join(names.limit)).ok()?.trim().parse().ok().filter(|max| *max < NO_LIMIT)?;
        let events = File::open(folder.join(names.events)).ok()?;
        let kills = counter(&text(&events)?, "oom_kill")?;
        Some(Group { events, peak: File::open(folder.join(names.peak)).ok(), limit, kills })
    }
}

/// The cgroup for memory and those above it, innermost first.
fn folders(own: &str, root: &Path) -> Vec<(PathBuf, &'static Names)> {
    let mut all = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let (root, names) = match controllers {
            "" => (root.to_path_buf(), &V2),
            _ if controllers.split(',').any(|name| name == "memory") => (root.join("memory"), &V1),
            _ => continue,
        };
        let folder = root.join(path.trim_start_matches('/'));
        all.extend(folder.ancestors().take_while(|one| one.starts_with(&root)).map(|one| (one.to_path_buf(), names)));
    }
    all
}

fn text(file: &File) -> Option<String> {
    let mut bytes = vec![0; MAX_BYTES];
    let read = file.read_at(&mut bytes, 0).ok()?;
    bytes.truncate(read);
    String::from_utf8(bytes).ok()
}

/// The number behind a name at the start of a line.
fn counter(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("written");
    }

    #[test]
    fn the_innermost_cgroup_with_a_limit_tells_of_a_kill() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        write(root, "slurm/memory.max", "34359738368\n");
        write(root, "slurm/memory.peak", "34359738000\n");
        write(root, "slurm/memory.events", "low 0\nhigh 0\nmax 3\noom 0\noom_kill 2\noom_group_kill 0\n");
        write(root, "slurm/job/memory.max", "max\n");
        write(root, "slurm/job/memory.events", "oom_kill 2\n");
        write(root, "vmstat", "nr_free_pages 1\noom_kill 7\n");
        let watched = Watched::new("0::/slurm/job\n", root, &root.join("vmstat"));
        assert_eq!(watched.killed(), None);
        write(root, "vmstat", "oom_kill 8\n");
        assert_eq!(watched.killed(), None, "it was none of this job's");
        write(root, "slurm/job/memory.events", "oom_kill 3\n");
        assert_eq!(
            watched.killed(),
            Some(MemoryKill { kills: 1, limit: None, peak: None }),
            "only the machine says so"
        );
        write(root, "slurm/memory.events", "oom 1\noom_kill 3\n");
        let kill = MemoryKill { kills: 1, limit: Some(34_359_738_368), peak: Some(34_359_738_000) };
        assert_eq!(watched.killed(), Some(kill));
    }

    #[test]
    fn cgroups_of_version_1_tell_it_too() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        write(root, "memory/job/memory.limit_in_bytes", "1048576\n");
        write(root, "memory/job/memory.max_usage_in_bytes", "1048576\n");
        write(root, "memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
        write(root, "memory/memory.limit_in_bytes", "9223372036854771712\n");
        let own = "11:cpu,cpuacct:/job\n9:memory:/job\n0::/\n";
        let watched = Watched::new(own, root, &root.join("none"));
        assert_eq!(watched.killed(), None);
        write(root, "memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
        let kill = MemoryKill { kills: 4, limit: Some(1 << 20), peak: Some(1 << 20) };
        assert_eq!(watched.killed(), Some(kill));
    }
}

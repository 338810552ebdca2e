//! Control groups: version 2, and version 1 where it has memory or CPU. Lists the folders from a process's own group up
//! to the visible root, and reads their limits.

use super::procfs::{fields, lines, number, trim};
use std::path::{Component, Path, PathBuf};
use system::cgroup;

/// Mount point of the version 2 tree. Beside version 1 it has a folder of its own.
pub(crate) fn mount(sys: &Path) -> PathBuf {
    let own = sys.join("fs/cgroup/unified");
    if own.join("cgroup.controllers").exists() { own } else { sys.join("fs/cgroup") }
}

/// The group of a process from its `cgroup` file: the path of the line that begins with `0::`. None on a machine with
/// only version 1.
pub(crate) fn path_in(text: &[u8]) -> Option<PathBuf> {
    let line = lines(text).find_map(|line| line.strip_prefix(b"0::"))?;
    let text = String::from_utf8_lossy(line);
    // The kernel appends this to the path of a group that was removed.
    Some(PathBuf::from(text.strip_suffix(" (deleted)").unwrap_or(&text)))
}

/// The version 1 group of a process for a controller: the path of the line that names it.
pub(crate) fn path_of(controller: &[u8], text: &[u8]) -> Option<PathBuf> {
    lines(text).find_map(|line| {
        let mut parts = line.splitn(3, |byte| *byte == b':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let names_it = controllers.split(|byte| *byte == b',').any(|one| one == controller);
        names_it.then(|| PathBuf::from(String::from_utf8_lossy(path).into_owned()))
    })
}

/// File names of a version's memory values, and the key for droppable file cache.
#[derive(Debug)]
pub(crate) struct MemoryFiles {
    pub current: &'static str,
    pub droppable: &'static str,
    pub events: &'static str,
    limit: &'static str,
    parse: fn(&[u8]) -> Option<f64>,
}

pub(crate) static MEMORY_2: MemoryFiles = MemoryFiles {
    limit: "memory.max",
    current: "memory.current",
    droppable: "inactive_file",
    events: "memory.events",
    parse: memory_limit,
};
pub(crate) static MEMORY_1: MemoryFiles = MemoryFiles {
    limit: "memory.limit_in_bytes",
    current: "memory.usage_in_bytes",
    droppable: "total_inactive_file",
    events: "memory.oom_control",
    parse: memory_limit_1,
};

impl MemoryFiles {
    /// The limit of a level, bytes.
    pub fn limit(&self, level: &Path) -> Option<f64> {
        std::fs::read(level.join(self.limit)).ok().and_then(|text| (self.parse)(&text)).filter(|bytes| *bytes > 0.0)
    }

    /// The level with the smallest limit, and that limit.
    pub fn smallest(&self, levels: &[PathBuf]) -> Option<(PathBuf, f64)> {
        smallest(levels, |level| self.limit(level))
    }
}

/// The memory levels of a process, from the text of its `cgroup` file: those of version 2. If only version 1 has a
/// limit, the levels of version 1.
pub(crate) fn memory_levels(sys: &Path, text: &[u8]) -> (Vec<PathBuf>, &'static MemoryFiles) {
    let own = levels(&mount(sys), &path_in(text).unwrap_or_default());
    let of_version_1 = sys.join("fs/cgroup/memory");
    if MEMORY_2.smallest(&own).is_none()
        && let Some(path) = path_of(b"memory", text)
        && of_version_1.is_dir()
    {
        let levels = levels(&of_version_1, &path);
        if MEMORY_1.smallest(&levels).is_some() {
            return (levels, &MEMORY_1);
        }
    }
    (own, &MEMORY_2)
}

/// The CPU levels, by the same rule.
pub(crate) fn cpu_levels(sys: &Path, text: &[u8]) -> Vec<PathBuf> {
    let own = levels(&mount(sys), &path_in(text).unwrap_or_default());
    if smallest(&own, quota).is_none()
        && let Some(path) = path_of(b"cpu", text)
        && let Some(mount) =
            ["cpu", "cpu,cpuacct"].map(|name| sys.join("fs/cgroup").join(name)).iter().find(|dir| dir.is_dir())
    {
        return levels(mount, &path);
    }
    own
}

/// Maximum number of cores of a level: its quota divided by its period.
pub(crate) fn quota(level: &Path) -> Option<f64> {
    let read = |file: &str| std::fs::read(level.join(file)).ok();
    if let Some(text) = read("cpu.max") {
        return cpu_limit(&text);
    }
    // Version 1; without a quota it is -1.
    let microseconds = |file: &str| read(file).and_then(|text| number(trim(&text))).map(|us| us as f64);
    let (quota, period) = (microseconds("cpu.cfs_quota_us")?, microseconds("cpu.cfs_period_us")?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// The visible folders of a group and its ancestors, innermost first. A path that leaves the visible tree (`/../..`, or
/// that of a mounted part) ends at the visible root.
///
/// In a container the kernel writes paths as seen from the container's own group: `/../pod1` is beside it. Where the
/// machine's tree is mounted, as below `--root`, the group is in it, and its name is searched.
pub(crate) fn levels(mount: &Path, group: &Path) -> Vec<PathBuf> {
    if group.components().any(|part| part == Component::ParentDir)
        && let Some(found) = group.to_str().and_then(|group| cgroup::find(mount, group))
    {
        return found.ancestors().take_while(|dir| dir.starts_with(mount)).map(Path::to_path_buf).collect();
    }
    let mut levels = vec![mount.to_path_buf()];
    let mut dir = mount.to_path_buf();
    for component in group.components() {
        if let Component::Normal(name) = component {
            dir.push(name);
            if !dir.is_dir() {
                break;
            }
            levels.push(dir.clone());
        }
    }
    levels.reverse();
    levels
}

/// The level with the smallest limit, and that limit. Among equal limits the outermost is taken, because it counts
/// most.
pub(crate) fn smallest(levels: &[PathBuf], limit: impl Fn(&Path) -> Option<f64>) -> Option<(PathBuf, f64)> {
    let mut best: Option<(PathBuf, f64)> = None;
    for level in levels {
        if let Some(limit) = limit(level)
            && best.as_ref().is_none_or(|(_, smallest)| limit <= *smallest)
        {
            best = Some((level.clone(), limit));
        }
    }
    best
}

/// Bytes in a `memory.max`; `max` is no limit.
fn memory_limit(text: &[u8]) -> Option<f64> {
    number(trim(text)).map(|bytes| bytes as f64)
}

/// Bytes in a `memory.limit_in_bytes` of version 1. A number that no machine has means no limit.
fn memory_limit_1(text: &[u8]) -> Option<f64> {
    number(trim(text)).filter(|bytes| *bytes < 1 << 60).map(|bytes| bytes as f64)
}

/// Cores in a `cpu.max`: quota divided by period; `max` is no limit.
fn cpu_limit(text: &[u8]) -> Option<f64> {
    let mut parts = fields(trim(text));
    let quota = number(parts.next()?)? as f64;
    let period = parts.next().map_or(Some(100_000), number)? as f64;
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// The number after a word: `oom_kill 3`.
pub(crate) fn value_of(text: &[u8], word: &str) -> Option<u64> {
    lines(text).find_map(|line| {
        let rest = line.strip_prefix(word.as_bytes())?.strip_prefix(b" ")?;
        number(trim(rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_path_out_of_the_visible_tree_ends_at_its_root() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        let at = |group: &str| levels(root, Path::new(group));
        assert_eq!(at("/a/b"), [root.join("a/b"), root.join("a"), root.into()]);
        assert_eq!(at("/a/gone/b"), [root.join("a"), root.into()]);
        assert_eq!(at("/../../x"), [root.to_path_buf()]);
        assert_eq!(at("/"), [root.to_path_buf()]);
    }

    #[test]
    fn a_group_beside_our_containers_is_found_in_the_machines_tree() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for group in
            ["kubepods.slice/burstable.slice/pod1/train", "kubepods.slice/pod2/agent", "system.slice/x.service"]
        {
            std::fs::create_dir_all(root.join(group)).unwrap();
        }
        let at = |group: &str| levels(root, Path::new(group));
        let whole = |path: &str| {
            let levels = Path::new(path).ancestors().map(|level| root.join(level));
            levels.collect::<Vec<PathBuf>>()
        };
        assert_eq!(at("/../../burstable.slice/pod1/train"), whole("kubepods.slice/burstable.slice/pod1/train"));
        assert_eq!(at("/../../pod1/train"), whole("kubepods.slice/burstable.slice/pod1/train"));
        assert_eq!(at("/../../../system.slice/x.service"), whole("system.slice/x.service"));
        assert_eq!(at("/../pod3/gone"), [root.to_path_buf()]);
        assert_eq!(at("/.."), [root.to_path_buf()]);
    }

    #[test]
    fn the_line_of_version_2_is_found() {
        assert_eq!(path_in(b"4:memory:/x\n0::/a/b\n"), Some("/a/b".into()));
        assert_eq!(path_in(b"0::/a (deleted)\n"), Some("/a".into()));
        assert_eq!(path_in(b"4:memory:/x\n"), None);
        assert_eq!(path_of(b"memory", b"5:cpu,cpuacct:/y\n4:hugetlb,memory:/x:1\n0::/a\n"), Some("/x:1".into()));
        assert_eq!(path_of(b"memory", b"0::/a\n"), None);
        assert_eq!(
            (memory_limit_1(b"67108864\n"), memory_limit_1(b"9223372036854771712\n")),
            (Some(67_108_864.0), None)
        );
    }

    #[test]
    fn limits_are_read_and_max_is_none() {
        assert_eq!(memory_limit(b"1048576\n"), Some(1_048_576.0));
        assert_eq!(memory_limit(b"max\n"), None);
        assert_eq!(cpu_limit(b"150000 100000\n"), Some(1.5));
        assert_eq!(cpu_limit(b"50000\n"), Some(0.5));
        assert_eq!(cpu_limit(b"max 100000\n"), None);
        assert_eq!(cpu_limit(b"100000 0\n"), None);
        assert_eq!(value_of(b"oom 1\noom_kill 3\n", "oom_kill"), Some(3));
        assert_eq!(value_of(b"oom_kill_disable 1\n", "oom_kill"), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text: Vec<u8>) {
            let _ = (path_in(&text), memory_limit(&text), cpu_limit(&text), value_of(&text, "oom_kill"));
        }
    }
}

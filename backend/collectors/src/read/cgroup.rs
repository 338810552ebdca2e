//! Control groups, version 2, and version 1 where it has the memory: the folders from a process's own group up to the visible root, and the limits in them.

use super::procfs::{fields, lines, number, trim};
use std::path::{Component, Path, PathBuf};

/// Where the version 2 tree is mounted: beside version 1 it has a folder of its own.
pub(crate) fn mount(sys: &Path) -> PathBuf {
    let own = sys.join("fs/cgroup/unified");
    if own.join("cgroup.controllers").exists() { own } else { sys.join("fs/cgroup") }
}

/// The group of a process from its `cgroup` file: the path of the line that begins with `0::`. Absent on a machine that
/// has version 1 alone.
pub(crate) fn path_in(text: &[u8]) -> Option<PathBuf> {
    let line = lines(text).find_map(|line| line.strip_prefix(b"0::"))?;
    let text = String::from_utf8_lossy(line);
    // The kernel adds this to the path of a group that was removed under its processes.
    Some(PathBuf::from(text.strip_suffix(" (deleted)").unwrap_or(&text)))
}

/// The group that a process has for memory in version 1: the path of the line that names this controller.
pub(crate) fn memory_path_in(text: &[u8]) -> Option<PathBuf> {
    lines(text).find_map(|line| {
        let mut parts = line.splitn(3, |byte| *byte == b':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_memory = controllers.split(|byte| *byte == b',').any(|one| one == b"memory");
        is_memory.then(|| PathBuf::from(String::from_utf8_lossy(path).into_owned()))
    })
}

/// The folders of a group and of all above it, innermost first, as far as they are visible. A path that leads out of the
/// visible tree (`/../..`, or that of a mounted part) ends at the visible root.
pub(crate) fn levels(mount: &Path, group: &Path) -> Vec<PathBuf> {
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

/// The level whose file holds the smallest limit, and the limit. Of equal limits the outermost binds, for it counts
/// most.
pub(crate) fn smallest(levels: &[PathBuf], file: &str, parse: fn(&[u8]) -> Option<f64>) -> Option<(PathBuf, f64)> {
    let mut best: Option<(PathBuf, f64)> = None;
    for level in levels {
        let limit = std::fs::read(level.join(file)).ok().and_then(|text| parse(&text));
        if let Some(limit) = limit
            && best.as_ref().is_none_or(|(_, smallest)| limit <= *smallest)
        {
            best = Some((level.clone(), limit));
        }
    }
    best
}

/// Bytes of a `memory.max`; `max` is no limit.
pub(crate) fn memory_limit(text: &[u8]) -> Option<f64> {
    number(trim(text)).map(|bytes| bytes as f64)
}

/// Bytes of a `memory.limit_in_bytes` of version 1, where no limit is a number that no machine has.
pub(crate) fn memory_limit_1(text: &[u8]) -> Option<f64> {
    number(trim(text)).filter(|bytes| *bytes < 1 << 60).map(|bytes| bytes as f64)
}

/// Cores of a `cpu.max`: quota over period; `max` is no limit.
pub(crate) fn cpu_limit(text: &[u8]) -> Option<f64> {
    let mut parts = fields(trim(text));
    let quota = number(parts.next()?)? as f64;
    let period = parts.next().map_or(Some(100_000), number)? as f64;
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// The number behind a word: `oom_kill 3`.
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
    fn the_line_of_version_2_is_found() {
        assert_eq!(path_in(b"4:memory:/x\n0::/a/b\n"), Some("/a/b".into()));
        assert_eq!(path_in(b"0::/a (deleted)\n"), Some("/a".into()));
        assert_eq!(path_in(b"4:memory:/x\n"), None);
        assert_eq!(memory_path_in(b"5:cpu,cpuacct:/y\n4:hugetlb,memory:/x:1\n0::/a\n"), Some("/x:1".into()));
        assert_eq!(memory_path_in(b"0::/a\n"), None);
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

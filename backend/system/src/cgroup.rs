//! The folder of a control group of Linux, by its path in `/proc/PID/cgroup`.

use std::collections::VecDeque;
use std::path::{Component, Path, PathBuf};

/// Where the kernel's tree of control groups is. In a container it is only the part of that container.
pub const TREE: &str = "/sys/fs/cgroup";

/// Maximum number of folders in which a group beside our own is searched.
const MAX_SEARCHED: usize = 4_096;

/// The folder of a group below `tree`; None for one that is outside of it.
///
/// In a container the kernel writes paths as seen from the container's own group: `/../pod1` is beside it. Where `tree`
/// is the machine's, as below `--root`, the name of the group is searched. Names of containers are unique.
pub fn find(tree: &Path, group: &str) -> Option<PathBuf> {
    let group = Path::new(group.trim_start_matches('/'));
    if !group.components().any(|part| part == Component::ParentDir) {
        return Some(tree.join(group));
    }
    let end: PathBuf = group.components().filter(|part| matches!(part, Component::Normal(_))).collect();
    end.components().next()?;
    let mut open = VecDeque::from([tree.to_path_buf()]);
    for _ in 0..MAX_SEARCHED {
        let folder = open.pop_front()?;
        let found = folder.join(&end);
        if found.is_dir() {
            return Some(found);
        }
        let room = MAX_SEARCHED.saturating_sub(open.len());
        let inside = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let folders = inside.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        open.extend(folders.take(room).map(|entry| entry.path()));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_beside_ours_is_searched_in_the_machines_tree() {
        let tree = tempfile::tempdir().expect("a folder");
        let tree = tree.path();
        let folder = tree.join("kubepods.slice/kubepods-podb.slice/cri-containerd-8f0c.scope");
        std::fs::create_dir_all(&folder).expect("a folder");
        assert_eq!(find(tree, "/../../kubepods-podb.slice/cri-containerd-8f0c.scope"), Some(folder.clone()));
        assert_eq!(find(tree, "/../cri-containerd-8f0c.scope"), Some(folder.clone()));
        assert_eq!(find(tree, "/../../kubepods-podc.slice/cri-containerd-8f0c.scope"), None);
        assert_eq!(find(&folder, "/../../kubepods-podb.slice/cri-containerd-8f0c.scope"), None, "only our own part");
        assert_eq!(find(tree, "/../.."), None);
        assert_eq!((find(tree, "/a/b"), find(tree, "/")), (Some(tree.join("a/b")), Some(tree.into())));
    }
}

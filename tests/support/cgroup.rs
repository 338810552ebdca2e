//! A cgroup with too little memory, for processes that are to be killed in it. It needs root.

use std::path::{Path, PathBuf};

/// A cgroup with a limit. It is removed when this is dropped.
pub struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// Makes a cgroup of version 1 or 2 with this limit in bytes.
    ///
    /// # Panics
    /// Panics when it cannot be made.
    pub fn new(name: &str, bytes: u64) -> Self {
        let name = format!("watchglass-test-{name}-{}", std::process::id());
        let one = Path::new("/sys/fs/cgroup/memory");
        let (folder, limit) = match one.is_dir() {
            true => (one.join(name), "memory.limit_in_bytes"),
            false => (Path::new("/sys/fs/cgroup").join(name), "memory.max"),
        };
        std::fs::create_dir(&folder).expect("root may make cgroups");
        std::fs::write(folder.join(limit), bytes.to_string()).expect("a limit");
        MemoryGroup(folder)
    }

    /// The file that takes the ids of processes that join it.
    pub fn entrance(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }

    /// Moves a process into it.
    ///
    /// # Panics
    /// Panics when it cannot be moved.
    pub fn take(&self, pid: u32) {
        std::fs::write(self.entrance(), pid.to_string()).expect("root may move processes");
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

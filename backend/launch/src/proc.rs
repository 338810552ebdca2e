//! Fields of `/proc/PID/stat` and namespaces of processes.

/// Fields of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Field 4, the parent; None for PID 1 and the kernel.
    pub parent: Option<u32>,
    /// Field 22, the start time, clock ticks since boot.
    pub start: u64,
    /// Field 3 is T: a signal has stopped the process.
    pub is_stopped: bool,
    /// Fields 3 and 20: all of its threads have ended, and its parent has not reaped it.
    pub has_ended: bool,
}

impl Stat {
    /// None if the process no longer exists.
    pub fn read(pid: u32) -> Option<Stat> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the name in parentheses, which may contain any character.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let (state, parent) = (fields.next()?, fields.next()?.parse().ok()?);
        let (threads, start) = (fields.nth(15)?, fields.nth(1)?.parse().ok()?);
        // The first thread of a process may end before the others, and the process goes on.
        let has_ended = matches!(state, "Z" | "X") && matches!(threads, "0" | "1");
        Some(Stat { parent: Some(parent).filter(|parent| *parent > 1), start, is_stopped: state == "T", has_ended })
    }
}

/// Start time of a process, clock ticks since boot. None if it no longer exists.
pub fn started(pid: u32) -> Option<u64> {
    Stat::read(pid).map(|stat| stat.start)
}

/// Parent of a process. None for PID 1, or if the process no longer exists.
pub fn parent(pid: u32) -> Option<u32> {
    Stat::read(pid)?.parent
}

/// PID namespace of this process: the inode of `/proc/self/ns/pid`.
pub fn namespace() -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/ns/pid").ok().map(|file| file.ino())
}

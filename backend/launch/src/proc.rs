//! What the kernel says of processes in `/proc`.

/// What the kernel says of a process in `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Field 4, without the first process of all and the kernel.
    pub parent: Option<u32>,
    /// Field 22: when it started, clock ticks since boot.
    pub start: u64,
    /// Field 3 is T: a signal has stopped it.
    pub is_stopped: bool,
    /// Fields 3 and 20: all of its threads have ended, and its parent has not taken note.
    pub has_ended: bool,
}

impl Stat {
    /// None for a process that is gone.
    pub fn of(pid: u32) -> Option<Stat> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the name in brackets, which may hold anything.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let (state, parent) = (fields.next()?, fields.next()?.parse().ok()?);
        let (threads, start) = (fields.nth(15)?, fields.nth(1)?.parse().ok()?);
        // The first thread of a process may end before the others; then the process goes on.
        let has_ended = matches!(state, "Z" | "X") && matches!(threads, "0" | "1");
        Some(Stat { parent: Some(parent).filter(|parent| *parent > 1), start, is_stopped: state == "T", has_ended })
    }
}

/// When a process started, clock ticks since boot. None for one that is gone.
pub fn started(pid: u32) -> Option<u64> {
    Stat::of(pid).map(|stat| stat.start)
}

/// The parent of a process. None for the first process, and for one that is gone.
pub fn parent(pid: u32) -> Option<u32> {
    Stat::of(pid)?.parent
}

/// The namespace of the numbers of processes that this one sees: the inode of `/proc/self/ns/pid`.
pub fn namespace() -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/ns/pid").ok().map(|file| file.ino())
}

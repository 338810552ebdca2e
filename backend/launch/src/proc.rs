//! Fields of `/proc/PID/stat` and namespaces of processes.

/// Name of the process that witnesses signals beside a job. It is none of the job's.
pub const WITNESS: &str = "wg-signals";

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

/// Whether a process exists that `/proc` does not show: with the mount option `hidepid` it shows those of other users to root
/// alone.
pub fn is_hidden(pid: u32) -> bool {
    let Some(pid) = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 0) else { return false };
    // SAFETY: the call takes numbers, and signal 0 is not sent.
    let sent = unsafe { libc::kill(pid, 0) };
    let is_denied = sent != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM);
    is_denied && Stat::read(pid as u32).is_none()
}

/// Parent of a process. None for PID 1, or if the process no longer exists.
pub fn parent(pid: u32) -> Option<u32> {
    Stat::read(pid)?.parent
}

/// Whether a process is the witness of signals beside a job.
pub fn is_witness(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim_end() == WITNESS)
}

/// PID namespace of this process: the inode of `/proc/self/ns/pid`.
pub fn namespace() -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/ns/pid").ok().map(|file| file.ino())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_shown_or_not_there_is_not_hidden() {
        for pid in [0, std::process::id(), u32::MAX, i32::MAX as u32] {
            assert!(!is_hidden(pid), "{pid}");
        }
    }
}

//! The end of a process that is no child of ours, reported by the kernel: `pidfd_open` of Linux 5.3, and `PIDFD_GET_INFO`
//! of Linux 6.15. Where the first is missing, or a container's filter denies it, `/proc/PID/stat` is polled.

use launch::process::{Stat, is_hidden, signal_name, started};
use shared::run::How;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Maximum time for the parent to reap the process: until then its exit status cannot be read.
const REAP_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval of the checks of a process whose end the kernel does not report.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A process, which cannot be confused with a later one of the same PID.
pub(super) struct ProcessFd {
    pid: u32,
    /// Its start, clock ticks since boot.
    start: u64,
    /// Becomes readable at its end; None where the kernel grants no such file.
    file: Option<AsyncFd<OwnedFd>>,
}

/// `struct pidfd_info` of `linux/pidfd.h`, its first 64 bytes; later fields are not requested.
#[repr(C)]
#[derive(Default)]
struct Info {
    mask: u64,
    cgroup: u64,
    pid: u32,
    tgid: u32,
    ppid: u32,
    /// Real, effective, saved and file-system user and group.
    ids: [u32; 8],
    exit_code: i32,
}

/// `PIDFD_INFO_EXIT`: the status of a reaped process.
const INFO_EXIT: u64 = 1 << 3;
/// `PIDFD_GET_INFO`: `_IOWR(0xFF, 11, struct pidfd_info)`, of 64 bytes.
const GET_INFO: libc::Ioctl = 0xC040_FF0B_u32 as libc::Ioctl;

impl ProcessFd {
    /// Opens it. A PID alone does not identify a process: `start` is its start time, in clock ticks since boot.
    ///
    /// # Errors
    /// The process has ended, or it is another one.
    pub fn open(pid: u32, start: u64) -> io::Result<ProcessFd> {
        // SAFETY: the call takes two numbers, and gives a new descriptor or an error.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
        if fd < 0 {
            return match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::ESRCH) => Err(error),
                // The kernel is older, a filter denies the call, or all descriptors are in use: no word about the process.
                _ => ProcessFd::polled(pid, start),
            };
        }
        // SAFETY: the descriptor is new, and nobody else has it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        // Read after the opening: it is the same process for as long as it lives.
        let process = ProcessFd::polled(pid, start)?;
        // SAFETY: an owned descriptor is the same open file until it is dropped.
        let file = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE)? };
        Ok(ProcessFd { file: Some(file), ..process })
    }

    /// The same process, which is polled. The start of a hidden one is unknown: its launcher has just reported it.
    fn polled(pid: u32, start: u64) -> io::Result<ProcessFd> {
        match started(pid).map_or_else(|| is_hidden(pid), |found| found == start) {
            true => Ok(ProcessFd { pid, start, file: None }),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Waits for its end.
    pub async fn ended(&self) {
        match &self.file {
            Some(file) => _ = file.readable().await,
            None => {
                let is_there = |stat: Stat| stat.start == self.start && !stat.has_ended;
                while Stat::read(self.pid).map_or_else(|| is_hidden(self.pid), is_there) {
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            }
        }
    }

    /// The exit status after its end, if this kernel reports it.
    pub async fn how(self) -> How {
        let Some(file) = &self.file else {
            self.ended().await;
            return How::default();
        };
        // Closed: its parent has reaped it, and from then on the kernel reports the status to others, too.
        if let Ok(mut ended) = file.readable().await
            && !ended.ready().is_read_closed()
        {
            ended.clear_ready();
            let reaped = async {
                while let Ok(mut ready) = file.readable().await
                    && !ready.ready().is_read_closed()
                {
                    ready.clear_ready();
                }
            };
            let _ = tokio::time::timeout(REAP_TIMEOUT, reaped).await;
        }
        status(file).map_or_else(How::default, how)
    }
}

/// The status of a process in the format of `wait`.
fn status(file: &impl AsRawFd) -> Option<i32> {
    let mut info = Info { mask: INFO_EXIT, ..Info::default() };
    // SAFETY: the kernel writes at most the 64 bytes that the number of the call says, which `info` has.
    let asked = unsafe { libc::ioctl(file.as_raw_fd(), GET_INFO, &mut info) };
    (asked == 0 && info.mask & INFO_EXIT != 0).then_some(info.exit_code)
}

/// Converts a status of `wait`.
fn how(status: i32) -> How {
    match libc::WIFSIGNALED(status) {
        true => How { signal: Some(signal_name(libc::WTERMSIG(status))), ..How::default() },
        false => How { exit: Some(libc::WEXITSTATUS(status)), ..How::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    #[expect(clippy::disallowed_methods, reason = "a process whose end is to be seen")]
    fn shell(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).stdin(std::process::Stdio::piped()).spawn().expect("a shell")
    }

    #[tokio::test]
    async fn the_end_of_a_process_is_seen_once_its_parent_has_read_it() {
        for (script, told) in [("read x; exit 3", "failed (exit 3)"), ("read x; kill -9 $$", "crashed (SIGKILL)")] {
            let mut child = shell(script);
            let start = started(child.id()).expect("it lives");
            let process = ProcessFd::open(child.id(), start).expect("it lives");
            assert!(ProcessFd::open(child.id(), start + 1).is_err(), "another that has its number");
            let waiting = tokio::spawn(process.how());
            drop(child.stdin.take());
            tokio::task::spawn_blocking(move || child.wait()).await.expect("no panic").expect("it ended");
            let how = waiting.await.expect("no panic");
            // Kernels before 6.15 report only that it ended.
            let known = how != How::default();
            assert_eq!(how.sentence(), if known { told } else { "ended for an unknown reason" });
        }
    }

    #[tokio::test]
    async fn without_the_kernels_report_a_process_that_lives_has_not_ended() {
        let mut child = shell("read x");
        let (pid, start) = (child.id(), started(child.id()).expect("it lives"));
        assert!(ProcessFd::polled(pid, start + 1).is_err(), "another that has its number");
        let process = ProcessFd::polled(pid, start).expect("it lives");
        assert!(tokio::time::timeout(Duration::from_millis(50), process.ended()).await.is_err());
        drop(child.stdin.take());
        // It counts as ended before its parent has reaped it.
        assert_eq!(process.how().await, How::default());
        child.wait().expect("it ended");
        assert!(ProcessFd::polled(pid, start).is_err());
    }
}

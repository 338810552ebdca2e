//! A witness of signals: a process of ours that stands where the job stands, and keeps the signals that it got.
//!
//! Slurm and systemd signal all processes of a control group, a shell all of a process group. The job gets such a signal
//! itself, and must not get it from us as well: torchrun leaves its ranks behind after a second SIGTERM. A signal that
//! was sent to us alone, as by Kubernetes or `kill`, must be passed on. The system does not tell the two apart: sender
//! and signal are the same. But a signal that the witness got, too, was sent to all.

use super::proc::WITNESS;
use super::pty::pipe;
use std::ffi::CString;
use std::fs::File;
use std::io::Write;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::time::Duration;
use std::{fs, ptr, thread};

/// Number of looks at the witness, and the delay between them: 0.2 s in all. A control group is signaled one
/// process after the other.
const MAX_LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Maximum number of looks until it has forgotten a signal: 1 s in all. It only has to be scheduled.
const MAX_FORGETS: u32 = 100;

/// Maximum size of `/proc/PID/status` that is read, bytes. The signals stand in the first 2 KiB, after the groups.
const MAX_STATUS_BYTES: usize = 64 << 10;

/// Maximum length of our arguments that are overwritten, bytes: the maximum of Linux for all of them by default.
const MAX_ARGUMENTS_BYTES: usize = 2 << 20;

/// In place of a signal: all of them.
const ALL: u8 = 0;

/// A running witness. It ends with its launcher.
#[derive(Debug)]
pub(super) struct Witness {
    pid: libc::pid_t,
    /// Its `/proc/PID/status`: once it has ended this cannot be read, also if another process has its number.
    status: File,
    /// Signals that it is to forget. The witness ends when this is closed.
    forgotten: File,
    /// It is in a session of its own, so signals to our process group do not reach it.
    is_apart: bool,
}

impl Witness {
    /// Starts one. It is `is_apart` if the job is in another session than we are. None: the system grants none, and each
    /// signal is passed on.
    pub fn start(is_apart: bool) -> Option<Witness> {
        let (forgets, forgotten) = pipe().ok()?;
        // SAFETY: this process has one thread, so its copy can go on normally.
        match unsafe { libc::fork() } {
            -1 => None,
            0 => stand(&forgets, is_apart),
            pid => {
                let status = File::open(format!("/proc/{pid}/status")).ok()?;
                Some(Witness { pid, status, forgotten: forgotten.into(), is_apart })
            }
        }
    }

    /// Whether the job got this signal itself, as far as that can be known. It waits up to 0.2 s for the signal. The
    /// witness has forgotten it then, so that the next one can be told from it.
    pub fn has_seen(&self, signal: i32, job: libc::pid_t) -> bool {
        for look in 0..MAX_LOOKS {
            if look > 0 {
                thread::sleep(BETWEEN_LOOKS);
            }
            match self.is_pending(signal) {
                Some(true) => {
                    self.forget(Some(signal));
                    (0..MAX_FORGETS).take_while(|_| self.is_pending(signal) == Some(true)).for_each(|_| {
                        thread::sleep(BETWEEN_LOOKS);
                    });
                    return self.stands_with(job);
                }
                Some(false) => {}
                None => return false,
            }
        }
        false
    }

    /// Makes it forget a signal, or all.
    pub fn forget(&self, signal: Option<i32>) {
        let word = signal.and_then(|signal| u8::try_from(signal).ok()).unwrap_or(ALL);
        // The pipe has room for all that was ever asked at once. A witness that has ended knows nothing anyway.
        let _ = (&self.forgotten).write_all(&[word]);
    }

    fn is_pending(&self, signal: i32) -> Option<bool> {
        let mut bytes = vec![0; MAX_STATUS_BYTES];
        let read = self.status.read_at(&mut bytes, 0).ok()?;
        is_pending_in(&String::from_utf8_lossy(&bytes[..read]), signal)
    }

    /// Whether the job is in its control group and, unless it is apart, in its process group. A job that has left one of
    /// them does not get what is sent there.
    fn stands_with(&self, job: libc::pid_t) -> bool {
        // SAFETY: the calls take and return numbers; an error number equals no group of ours.
        let is_in_group = self.is_apart || unsafe { libc::getpgid(job) == libc::getpgrp() };
        let group = |process: &str| fs::read_to_string(format!("/proc/{process}/cgroup")).ok();
        is_in_group && group("self").is_some_and(|own| group(&job.to_string()) == Some(own))
    }
}

impl Drop for Witness {
    /// Ends and reaps it: the first process of a container, which would inherit it, may reap none.
    fn drop(&mut self) {
        // SAFETY: the calls take numbers and no place for a status. A child that was not reaped keeps its number.
        unsafe {
            if libc::waitpid(self.pid, ptr::null_mut(), libc::WNOHANG) == 0 {
                libc::kill(self.pid, libc::SIGKILL);
                libc::waitpid(self.pid, ptr::null_mut(), 0);
            }
        }
    }
}

/// Whether this text of `/proc/PID/status` has the signal among those that the process has not taken yet.
fn is_pending_in(status: &str, signal: i32) -> Option<bool> {
    let mask = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    let bit = u32::try_from(signal).ok()?.checked_sub(1)?;
    Some(mask.checked_shr(bit)? & 1 == 1)
}

/// Main function of the witness. It takes no signal until it is told to forget it, so each one that it got is seen in
/// its `/proc/PID/status`.
fn stand(forgets: &OwnedFd, is_apart: bool) -> ! {
    let name = CString::new(WITNESS).unwrap_or_default();
    let mut all = MaybeUninit::uninit();
    // SAFETY: the first call fills the set, the second reads it, and the name is a valid text.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_BLOCK, all.as_ptr(), ptr::null_mut());
        if is_apart {
            libc::setsid();
        }
        libc::prctl(libc::PR_SET_NAME, name.as_ptr(), 0, 0, 0);
    }
    // An open copy of our streams would keep their readers waiting, and one of the pipe ourselves.
    if hide_arguments().is_some() && close_all_but(forgets.as_raw_fd()).is_some() {
        forget_as_told(forgets.as_raw_fd());
    }
    // SAFETY: this copy has nothing left to do.
    unsafe { libc::_exit(0) }
}

/// Takes the signals that it is told to forget, until the launcher has ended.
fn forget_as_told(forgets: RawFd) {
    let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    loop {
        let mut word = ALL;
        // SAFETY: the pointer is to one live byte.
        match unsafe { libc::read(forgets, (&raw mut word).cast(), 1) } {
            1 => {}
            -1 if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => continue,
            _ => return,
        }
        let mut set = MaybeUninit::uninit();
        // SAFETY: the first two calls fill the set, which the third one adds a signal to.
        let set = unsafe {
            if word == ALL {
                libc::sigfillset(set.as_mut_ptr());
            } else {
                libc::sigemptyset(set.as_mut_ptr());
                libc::sigaddset(set.as_mut_ptr(), i32::from(word));
            }
            set.assume_init()
        };
        // SAFETY: set and time are valid for the call, which returns at once.
        while unsafe { libc::sigtimedwait(&raw const set, ptr::null_mut(), &raw const none) } > 0 {}
    }
}

/// Overwrites the arguments of this copy. `pkill -f "watchglass run"` would hit it beside us: then it would look as if
/// all had been signaled, and the job would not be told.
fn hide_arguments() -> Option<()> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // Fields 48 and 49. The second field is the name in parentheses, which may contain any character.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(45);
    let (start, end): (usize, usize) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let length = end.checked_sub(start).filter(|length| start > 0 && *length <= MAX_ARGUMENTS_BYTES)?;
    // SAFETY: the kernel names the memory of our arguments, on our stack, and nothing in this copy reads them any more.
    unsafe { ptr::with_exposed_provenance_mut::<u8>(start).write_bytes(0, length) };
    Some(())
}

/// Closes all descriptors of this copy but one.
fn close_all_but(kept: RawFd) -> Option<()> {
    let all = fs::read_dir("/proc/self/fd").ok()?.flatten();
    let all: Vec<RawFd> = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in all.into_iter().filter(|fd| *fd != kept) {
        // SAFETY: nothing in this copy uses or drops its descriptors.
        unsafe { libc::close(fd) };
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_witness_is_reaped_at_the_end() {
        // It is a process of one thread, whatever this one has, and what it calls needs no lock of another thread.
        let witness = Witness::start(true).expect("a process");
        let pid = witness.pid;
        // SAFETY: the call takes numbers and no place for a status.
        let look = || unsafe { libc::waitpid(pid, ptr::null_mut(), libc::WNOHANG) };
        assert_eq!(look(), 0, "it runs");
        drop(witness);
        assert_eq!(look(), -1, "it is no child any more");
    }

    #[test]
    fn a_signal_that_waits_is_read_from_the_mask_of_the_process() {
        let status = "Name:\twg-signals\nSigPnd:\t0000000000000200\nShdPnd:\t0000000000004001\nSigBlk:\tffffffff\n";
        let is_pending = |signal| is_pending_in(status, signal);
        assert_eq!([1, 2, 10, 15].map(is_pending), [Some(true), Some(false), Some(false), Some(true)]);
        assert_eq!([0, -1, 65].map(is_pending), [None; 3]);
        assert_eq!((is_pending_in("Name:\tx\n", 15), is_pending_in("ShdPnd:\tx\n", 15)), (None, None));
    }
}

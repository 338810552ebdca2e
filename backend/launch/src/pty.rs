//! A pseudoterminal for the job, between it and our terminal, so that its output can be recorded without a change for
//! the job.
//!
//! The job runs there in a session of its own, whose leader is a second process of ours. It is needed because a process
//! stopped by keys needs a parent in its session. Our own terminal is raw meanwhile, so all keys reach the job's
//! terminal.

use parking_lot::{Mutex, MutexGuard};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Both ends of a pseudoterminal.
#[derive(Debug)]
pub struct Pty {
    /// Our end.
    pub master: OwnedFd,
    /// The job's end.
    pub slave: OwnedFd,
}

/// Whether a descriptor is a terminal.
pub fn is_terminal(fd: RawFd) -> bool {
    // SAFETY: the call accepts any number.
    unsafe { libc::isatty(fd) == 1 }
}

fn mode(fd: RawFd) -> io::Result<libc::termios> {
    let mut mode = MaybeUninit::zeroed();
    // SAFETY: the call fills `mode`, which is plain numbers.
    match unsafe { libc::tcgetattr(fd, mode.as_mut_ptr()) } {
        // SAFETY: it was filled.
        0 => Ok(unsafe { mode.assume_init() }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets the mode of a terminal; does nothing if it has closed.
pub(super) fn set_mode(fd: RawFd, mode: &libc::termios) {
    // SAFETY: `mode` is valid for the whole call.
    unsafe { libc::tcsetattr(fd, libc::TCSADRAIN, mode) };
}

/// Gives a terminal the size of another.
pub fn copy_size(from: RawFd, to: RawFd) {
    let mut size = MaybeUninit::<libc::winsize>::zeroed();
    // SAFETY: the first call fills `size`, which is plain numbers, and the second reads it.
    unsafe {
        if libc::ioctl(from, libc::TIOCGWINSZ, size.as_mut_ptr()) == 0 {
            libc::ioctl(to, libc::TIOCSWINSZ, size.as_ptr());
        }
    }
}

impl Pty {
    /// Creates a pseudoterminal with mode and size of an existing terminal.
    ///
    /// # Errors
    /// The system grants none.
    pub fn like(terminal: RawFd) -> io::Result<Pty> {
        let mut like = mode(terminal)?;
        let (mut master, mut slave) = (0, 0);
        let name = std::ptr::null_mut::<libc::c_char>();
        // SAFETY: the pointers are to live values, which the call fills or reads, or null if it allows that.
        let opened = unsafe { libc::openpty(&mut master, &mut slave, name, &raw mut like, std::ptr::null_mut()) };
        if opened != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: both were just opened and have no other owner.
        let (master, slave) = unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
        for end in [&master, &slave] {
            // SAFETY: the descriptor is open.
            unsafe { libc::fcntl(end.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
        }
        copy_size(terminal, master.as_raw_fd());
        Ok(Pty { master, slave })
    }
}

/// A pipe: its reading end and its writing end.
///
/// # Errors
/// The system grants none.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = io::pipe()?;
    Ok((read.into(), write.into()))
}

/// Our own terminal, while the job uses a pseudoterminal.
#[derive(Debug)]
pub struct OwnTerminal {
    file: File,
    /// Its mode at the start.
    saved: libc::termios,
    taken: Mutex<Taken>,
}

/// Present use of our terminal.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    /// Raw mode is wanted.
    wanted: bool,
    /// Raw mode is set.
    raw: bool,
}

impl OwnTerminal {
    /// The terminal of standard input; None if that is no terminal.
    pub fn of_input() -> Option<OwnTerminal> {
        let file = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
        let saved = mode(file.as_raw_fd()).ok()?;
        Some(OwnTerminal { file, saved, taken: Mutex::default() })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock()
    }

    /// Its descriptor.
    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Whether we are in its foreground: a background job does not change its terminal.
    pub fn is_ours(&self) -> bool {
        // SAFETY: both calls return a number; an error number equals no group of ours.
        unsafe { libc::tcgetpgrp(self.fd()) == libc::getpgrp() }
    }

    /// Requests raw mode from now on, whenever we are in the foreground.
    pub fn take(&self) {
        self.taken().wanted = true;
        self.keep();
    }

    /// Whether raw mode is set now: it is wanted, and we are in the foreground.
    pub fn keep(&self) -> bool {
        let mut taken = self.taken();
        if !taken.wanted || !self.is_ours() {
            return false;
        }
        if !taken.raw {
            let mut mode = self.saved;
            // SAFETY: `mode` is valid for the whole call.
            unsafe { libc::cfmakeraw(&mut mode) };
            set_mode(self.fd(), &mode);
            taken.raw = true;
        }
        true
    }

    /// Restores its mode.
    pub fn give_back(&self) {
        let mut taken = self.taken();
        taken.wanted = false;
        if std::mem::take(&mut taken.raw) && self.is_ours() {
            set_mode(self.fd(), &self.saved);
        }
    }

    /// Its mode at the start.
    pub(super) fn saved(&self) -> libc::termios {
        self.saved
    }
}

/// The key (one byte) that causes this signal on the terminal now; None if none does.
pub fn key_of(terminal: RawFd, signal: i32) -> Option<u8> {
    let mode = mode(terminal).ok().filter(|mode| mode.c_lflag & libc::ISIG != 0)?;
    let key = match signal {
        libc::SIGINT => libc::VINTR,
        libc::SIGQUIT => libc::VQUIT,
        libc::SIGTSTP => libc::VSUSP,
        _ => return None,
    };
    mode.c_cc.get(key).copied().filter(|byte| *byte != 0)
}

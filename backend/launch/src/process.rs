//! The command as our child: started unchanged, sent the signals that reach us alone, and reaped.
//!
//! If it has a terminal of its own, a process of ours in that terminal's session starts it, and ends with the same
//! status.

use super::memory::LOOK_INTERVAL;
pub use super::proc::{Stat, WITNESS, is_hidden, namespace, parent, started};
use super::pty::{pipe, set_mode};
use super::relay::{Relay, Streams};
#[cfg(target_os = "linux")]
use super::witness::Witness;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::ptr;
use std::time::Duration;

/// Result of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It ended with this exit status.
    Status(i32),
    /// It was ended by this signal.
    Signal(i32),
}

/// Signals that are passed on. SIGTSTP is not one of them: the terminal sends it to the whole group, so we stop, too.
const FORWARDED_SIGNALS: [i32; 7] =
    [libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2, libc::SIGCONT, libc::SIGINT, libc::SIGQUIT];

/// Additional signals that are handled if the command has a terminal of its own.
const OF_TERMINAL: [i32; 2] = [libc::SIGTSTP, libc::SIGWINCH];

/// The running command.
pub struct Child {
    pid: libc::pid_t,
    /// Our direct child, if it is not the command itself.
    leader: Option<libc::pid_t>,
    waited_for: libc::sigset_t,
    /// Our signal mask before.
    before: libc::sigset_t,
    /// It tells which signals the command got itself.
    #[cfg(target_os = "linux")]
    witness: Option<Witness>,
}

/// The command's process and, if that is not our direct child, the one that is.
type Started = (libc::pid_t, Option<libc::pid_t>);

impl Child {
    /// Starts the command with additional environment variables, and with `streams` in place of ours. From here on
    /// signals are received only in [`wait`](Self::wait). If `is_readable`, programs that we start may read its memory.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(
        command: &[OsString],
        environment: &[(&str, OsString)],
        streams: Streams,
        is_readable: bool,
    ) -> io::Result<Child> {
        #[cfg(target_os = "linux")]
        // SAFETY: this sets a flag of our process. We become the parent of orphaned descendants, so workers stay in the
        // tree when a launcher ends before them.
        unsafe {
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        }
        let of_terminal: &[i32] = if streams.terminal.is_some() { &OF_TERMINAL } else { &[] };
        let waited_for = set(FORWARDED_SIGNALS.into_iter().chain([libc::SIGCHLD]).chain(of_terminal.iter().copied()));
        let mut before = MaybeUninit::uninit();
        // SAFETY: the calls change the signal mask of this process, which has one thread, and fill `before`. An
        // inherited setting that discards the status of children is undone.
        let (before, children) = unsafe {
            libc::sigprocmask(libc::SIG_BLOCK, &waited_for, before.as_mut_ptr());
            (before.assume_init(), libc::signal(libc::SIGCHLD, libc::SIG_DFL))
        };
        // A job with a terminal of its own is in a session of its own.
        #[cfg(target_os = "linux")]
        let is_apart = streams.terminal.is_some();
        let (pid, leader) = Child::begin(command, environment, streams, is_readable, (before, children))?;
        Ok(Child {
            pid,
            leader,
            waited_for,
            before,
            // The first child is the command.
            #[cfg(target_os = "linux")]
            witness: Witness::start(is_apart),
        })
    }

    /// Starts the command with the signal mask and the handling of children's ends that we had before.
    fn begin(
        command: &[OsString],
        environment: &[(&str, OsString)],
        streams: Streams,
        is_readable: bool,
        (before, children): (libc::sigset_t, libc::sighandler_t),
    ) -> io::Result<Started> {
        let Streams { all: [stdin, stdout, stderr], terminal, ours: our_ends, restore } = streams;
        #[expect(clippy::disallowed_methods, reason = "this is the user's own command, and no tool of a collector")]
        let mut starting = Command::new(&command[0]);
        starting.args(&command[1..]).envs(environment.iter().map(|(name, value)| (name, value)));
        let stream = |fd: Option<OwnedFd>| fd.map_or_else(Stdio::inherit, Stdio::from);
        starting.stdin(stream(stdin)).stdout(stream(stdout)).stderr(stream(stderr));
        let own_terminal = terminal.as_ref().map(AsRawFd::as_raw_fd);
        let ours = std::process::id() as libc::pid_t;
        // SAFETY: between fork and exec only async-signal-safe calls are made. The command gets the signal handling
        // that it would have without us: our program ignores SIGXFSZ.
        unsafe {
            starting.pre_exec(move || {
                if let Some(terminal) = own_terminal {
                    // It becomes a group of its own in the foreground of its terminal. Until then it must not be
                    // stopped for setting that.
                    libc::setpgid(0, 0);
                    libc::sigprocmask(libc::SIG_BLOCK, &set([libc::SIGTTOU].into_iter()), ptr::null_mut());
                    libc::tcsetpgrp(terminal, libc::getpid());
                }
                #[cfg(target_os = "linux")]
                if is_readable {
                    allow_readers(ours);
                }
                libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
                libc::signal(libc::SIGCHLD, children);
                match libc::sigprocmask(libc::SIG_SETMASK, &before, ptr::null_mut()) {
                    0 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                }
            });
        }
        let Some(terminal) = terminal else {
            return Ok((starting.spawn()?.id() as libc::pid_t, None));
        };
        let (told, tell) = pipe()?;
        // SAFETY: this process has one thread, so its copy can go on normally.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(told);
                for fd in our_ends {
                    // SAFETY: these are our descriptors, which this copy neither uses nor drops.
                    unsafe { libc::close(fd) };
                }
                lead(starting, terminal, File::from(tell), restore, ours)
            }
            leader => {
                drop((starting, terminal, tell));
                let mut said = [0; 8];
                File::from(told).read_exact(&mut said)?;
                let [a, b, c, d, error @ ..] = said;
                match i32::from_ne_bytes(error) {
                    0 => Ok((i32::from_ne_bytes([a, b, c, d]), Some(leader))),
                    error => Err(io::Error::from_raw_os_error(error)),
                }
            }
        }
    }

    /// Its PID.
    pub fn pid(&self) -> u32 {
        self.pid as u32
    }

    /// Waits for the command's end, and passes signals on meanwhile. Returns the end and the first signal that
    /// requested it. `look` is called periodically.
    pub fn wait(&self, relay: Option<&Relay>, mut look: impl FnMut()) -> (End, Option<i32>) {
        let ours = self.leader.unwrap_or(self.pid);
        let mut asked = None;
        let mut is_late = false;
        loop {
            match reap(ours) {
                Some(Reaped::End(end)) => {
                    let key = relay.filter(|relay| relay.was_interrupted()).map(|_| libc::SIGINT);
                    let asked = asked.or(key);
                    // ^C in an interactive program is no request to end if the program then ends with status 0.
                    return (end, asked.filter(|signal| *signal != libc::SIGINT || end != End::Status(0)));
                }
                Some(Reaped::Stop) | None => {}
            }
            look();
            let Some(Came { signal, from_terminal, from }) = next(&self.waited_for, Some(LOOK_INTERVAL)) else {
                // A signal that the witness got after a look belongs to no later one.
                if std::mem::take(&mut is_late) {
                    self.forget(None);
                }
                continue;
            };
            let signal = match signal {
                libc::SIGCHLD => continue,
                libc::SIGWINCH => {
                    relay.into_iter().for_each(Relay::resized);
                    continue;
                }
                // The job is stopped, as its session leader reports.
                libc::SIGTSTP if from.is_some() && from == self.leader => {
                    relay.into_iter().for_each(Relay::stop);
                    libc::SIGCONT
                }
                libc::SIGTERM | libc::SIGINT => {
                    asked = asked.or(Some(signal));
                    signal
                }
                signal => signal,
            };
            let is_passed_on = match (from_terminal, self.leader) {
                // The terminal has sent the signal to the whole group.
                (true, None) => false,
                // If the job has its own terminal, that terminal sends it to the job's group.
                (true, Some(_)) => !relay.is_some_and(|relay| relay.key(signal)),
                // A second SIGCONT does nothing.
                (false, _) => signal == libc::SIGCONT || !self.has_got(signal),
            };
            if from_terminal {
                self.forget(Some(signal));
            }
            if is_passed_on {
                is_late = true;
                // SAFETY: the child is not reaped, so the number is its own.
                unsafe { libc::kill(ours, signal) };
            }
        }
    }

    /// Whether the command got a signal itself that we got: it was sent to all of a group. It takes up to 0.2 s to know
    /// that it was not.
    fn has_got(&self, signal: i32) -> bool {
        #[cfg(target_os = "linux")]
        {
            let has_seen = self.witness.as_ref().is_some_and(|witness| witness.has_seen(signal, self.pid));
            if has_seen {
                // `timeout` signals us and then the group, which is one signal.
                let _ = next(&set([signal].into_iter()), Some(Duration::ZERO));
            }
            has_seen
        }
        // This system shows no signals of other processes.
        #[cfg(not(target_os = "linux"))]
        {
            let _ = signal;
            false
        }
    }

    /// Makes the witness forget a signal that needed no look at it, or all.
    fn forget(&self, signal: Option<i32>) {
        #[cfg(target_os = "linux")]
        self.witness.iter().for_each(|witness| witness.forget(signal));
        #[cfg(not(target_os = "linux"))]
        let _ = signal;
    }

    /// Restores the signal mask that we had before.
    pub fn give_signals_back(&self) {
        // SAFETY: the set is a valid one.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, ptr::null_mut()) };
    }
}

/// Lets the descendants of `reader` read this process, which its next program keeps. It is called between fork and exec.
/// Kernels without Yama refuse the call, and there it is not needed.
#[cfg(target_os = "linux")]
fn allow_readers(reader: libc::pid_t) {
    // SAFETY: the call takes numbers.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, reader as libc::c_ulong, 0, 0, 0) };
}

/// A received signal.
struct Came {
    signal: i32,
    /// Whether a key caused it.
    from_terminal: bool,
    /// PID of its sender, if a process sent it and the system reports that.
    from: Option<libc::pid_t>,
}

/// Waits for the next of these signals; None after the timeout.
fn next(waited_for: &libc::sigset_t, timeout: Option<Duration>) -> Option<Came> {
    const KEYS: [i32; 3] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP];
    #[cfg(target_os = "linux")]
    {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        let timeout = timeout.map(|time| libc::timespec { tv_sec: time.as_secs() as _, tv_nsec: 0 });
        let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the set is valid, the time is valid or null, and the call fills `info`, which is plain numbers.
        let (signal, info) =
            unsafe { (libc::sigtimedwait(waited_for, info.as_mut_ptr(), timeout), info.assume_init()) };
        // SAFETY: the field is a number for every signal, and is only used if a process sent it.
        let from = (info.si_code <= 0).then(|| unsafe { info.si_pid() });
        (signal > 0).then_some(Came { signal, from_terminal: info.si_code > 0 && KEYS.contains(&signal), from })
    }
    #[cfg(not(target_os = "linux"))]
    {
        // No cgroup has to be polled on this system, so there is no timeout.
        let (mut signal, _) = (0, timeout);
        // SAFETY: the set is a valid one, and the call fills `signal`.
        let waited = unsafe { libc::sigwait(waited_for, &mut signal) };
        // The sender is not reported on this system; keys are the usual source.
        (waited == 0).then_some(Came { signal, from_terminal: KEYS.contains(&signal), from: None })
    }
}

/// State change of a child.
enum Reaped {
    End(End),
    Stop,
}

/// Reaps ended processes, also orphaned descendants of the command. Returns the end of this child, or that it is
/// stopped.
fn reap(child: libc::pid_t) -> Option<Reaped> {
    loop {
        let mut status = 0;
        // SAFETY: the call fills `status`.
        let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG | libc::WUNTRACED) };
        if pid <= 0 {
            return None;
        }
        if pid == child {
            return Some(match status {
                _ if libc::WIFSTOPPED(status) && is_of_terminal(libc::WSTOPSIG(status)) => Reaped::Stop,
                _ if libc::WIFSTOPPED(status) => continue,
                _ if libc::WIFSIGNALED(status) => Reaped::End(End::Signal(libc::WTERMSIG(status))),
                _ => Reaped::End(End::Status(libc::WEXITSTATUS(status))),
            });
        }
    }
}

/// Whether this stop signal comes from the terminal.
fn is_of_terminal(signal: i32) -> bool {
    [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU].contains(&signal)
}

/// Main function of the session leader on the job's terminal. It starts the command, and sends its PID or the error to
/// the launcher. It passes signals on, reports when the command is stopped, and ends as the command ends.
fn lead(
    mut starting: Command,
    terminal: OwnedFd,
    mut tell: File,
    restore: Option<(i32, libc::termios)>,
    launcher: libc::pid_t,
) -> ! {
    use std::io::Write;
    // SAFETY: the calls make this process the leader of a session on the job's terminal.
    unsafe {
        libc::setsid();
        libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY as _, 0);
    }
    let spawned = starting.spawn();
    let (pid, error) = match &spawned {
        Ok(child) => (child.id() as libc::pid_t, 0),
        Err(error) => (0, error.raw_os_error().unwrap_or(libc::EIO)),
    };
    // The terminal closes with its last other end. So we close ours, and its output can be read to the end.
    drop((starting, terminal));
    let _ = tell.write_all(&[pid.to_ne_bytes(), error.to_ne_bytes()].concat());
    drop(tell);
    if spawned.is_err() {
        // SAFETY: this copy has nothing left to do.
        unsafe { libc::_exit(127) };
    }
    let waited_for = set(FORWARDED_SIGNALS.into_iter().chain([libc::SIGCHLD, libc::SIGTSTP]));
    loop {
        match reap(pid) {
            Some(Reaped::End(End::Signal(signal))) => end_by(signal),
            // SAFETY: this copy has nothing left to do.
            Some(Reaped::End(End::Status(status))) => unsafe { libc::_exit(status) },
            // The launcher stops, too, and later continues us.
            // SAFETY: the PID is that of our living parent.
            Some(Reaped::Stop) if unsafe { libc::getppid() } == launcher => unsafe {
                libc::kill(launcher, libc::SIGTSTP);
            },
            Some(Reaped::Stop) | None => {}
        }
        let Some(Came { signal, from, .. }) = next(&waited_for, None) else { continue };
        match signal {
            libc::SIGCHLD => {}
            // The whole group that stopped with it continues with it.
            // SAFETY: the child is not reaped, so the number is that of its group.
            libc::SIGCONT => _ = unsafe { libc::kill(-pid, libc::SIGCONT) },
            // A signal of anyone else was sent to all of the control group, and so to the job. One that is meant for the
            // job alone comes by the launcher.
            _ if from.is_some_and(|from| from != launcher) => {}
            _ => {
                // SIGHUP from the kernel: the terminal has closed, so the launcher that restores our terminal has
                // ended. The parent PID may not have changed yet, so the mode is restored here.
                if signal == libc::SIGHUP
                    && from.is_none()
                    && let Some((own, mode)) = &restore
                {
                    set_mode(*own, mode);
                }
                // SAFETY: the child is not reaped, so the number is its own.
                unsafe { libc::kill(pid, signal) };
            }
        }
    }
}

fn set(signals: impl Iterator<Item = i32>) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the first call fills the set, the others add numbers of signals to it.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        signals.for_each(|signal| {
            libc::sigaddset(set.as_mut_ptr(), signal);
        });
        set.assume_init()
    }
}

/// Ends this process by the signal that ended the command, but without a second core dump.
pub fn end_by(signal: i32) -> ! {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let set = set([signal].into_iter());
    // SAFETY: the calls set a limit and the disposition of a signal, and send it to ourselves.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::signal(signal, libc::SIG_DFL);
        libc::sigprocmask(libc::SIG_UNBLOCK, &set, ptr::null_mut());
        libc::raise(signal);
    }
    std::process::exit(128 + signal)
}

/// Name of a signal, as `SIGTERM`; `signal 35` for one without a name.
pub fn signal_name(signal: i32) -> String {
    const NAMES: [(i32, &str); 20] = [
        (libc::SIGHUP, "SIGHUP"),
        (libc::SIGINT, "SIGINT"),
        (libc::SIGQUIT, "SIGQUIT"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGTRAP, "SIGTRAP"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGUSR1, "SIGUSR1"),
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGUSR2, "SIGUSR2"),
        (libc::SIGPIPE, "SIGPIPE"),
        (libc::SIGALRM, "SIGALRM"),
        (libc::SIGTERM, "SIGTERM"),
        (libc::SIGXCPU, "SIGXCPU"),
        (libc::SIGXFSZ, "SIGXFSZ"),
        (libc::SIGVTALRM, "SIGVTALRM"),
        (libc::SIGPROF, "SIGPROF"),
        (libc::SIGSYS, "SIGSYS"),
    ];
    NAMES
        .iter()
        .find(|(number, _)| *number == signal)
        .map_or_else(|| format!("signal {signal}"), |(_, name)| (*name).into())
}

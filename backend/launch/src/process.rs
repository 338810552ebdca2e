//! The command as a child of ours: started as it would have started, reached by the signals that are sent to us, and reaped.

use std::ffi::OsString;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
}

/// Signals that are passed on. SIGTSTP is not among them: the terminal sends it to the whole group, and then we stop, too.
const PASSED: [i32; 7] =
    [libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2, libc::SIGCONT, libc::SIGINT, libc::SIGQUIT];

/// The command, which runs.
pub struct Child {
    pid: libc::pid_t,
    waited_for: libc::sigset_t,
}

impl Child {
    /// Starts it, with these variables besides those of ours. From here on signals reach us in [`wait`](Self::wait) only.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(command: &[OsString], environment: &[(&str, OsString)]) -> io::Result<Child> {
        #[cfg(target_os = "linux")]
        // SAFETY: this sets a flag of our process. It stays the parent of what its command leaves behind, so that a launcher
        // which ends before its workers takes none of them out of the tree.
        unsafe {
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        }
        let waited_for = set(PASSED.into_iter().chain([libc::SIGCHLD]));
        let mut before = MaybeUninit::uninit();
        // SAFETY: the calls change how signals reach this process, which has one thread, and fill `before`. Where children
        // were not to be waited for, which is inherited, no status would come.
        let (before, children) = unsafe {
            libc::sigprocmask(libc::SIG_BLOCK, &waited_for, before.as_mut_ptr());
            (before.assume_init(), libc::signal(libc::SIGCHLD, libc::SIG_DFL))
        };
        #[expect(clippy::disallowed_methods, reason = "this is the user's own command, and no tool of a collector")]
        let mut starting = Command::new(&command[0]);
        starting.args(&command[1..]).envs(environment.iter().map(|(name, value)| (name, value)));
        // SAFETY: between fork and exec only calls are made that are safe there. The command has the signals that it would
        // have without us: the program that we are in ignores SIGXFSZ.
        unsafe {
            starting.pre_exec(move || {
                libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
                libc::signal(libc::SIGCHLD, children);
                match libc::sigprocmask(libc::SIG_SETMASK, &before, ptr::null_mut()) {
                    0 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                }
            });
        }
        let child = starting.spawn()?;
        Ok(Child { pid: child.id() as libc::pid_t, waited_for })
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid as u32
    }

    /// Waits for its end, and passes signals on meanwhile; with the first signal that asked it to end.
    pub fn wait(self) -> (End, Option<i32>) {
        let mut asked = None;
        loop {
            if let Some(end) = self.reap() {
                // Who asks an interactive program for something with ^C does not ask it to end.
                return (end, asked.filter(|signal| *signal != libc::SIGINT || end != End::Status(0)));
            }
            let Some((signal, from_terminal)) = self.next() else { continue };
            match signal {
                libc::SIGCHLD => continue,
                libc::SIGTERM | libc::SIGINT => asked = asked.or(Some(signal)),
                _ => {}
            }
            // The terminal has sent it to the whole group.
            if !from_terminal {
                // SAFETY: the child is not reaped, so the number is its own.
                unsafe { libc::kill(self.pid, signal) };
            }
        }
    }

    /// The next signal, and whether the terminal sent it.
    fn next(&self) -> Option<(i32, bool)> {
        #[cfg(target_os = "linux")]
        {
            let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
            // SAFETY: the set is a valid one, and the call fills `info`, which is plain numbers.
            let (signal, info) =
                unsafe { (libc::sigwaitinfo(&self.waited_for, info.as_mut_ptr()), info.assume_init()) };
            (signal > 0).then_some((signal, info.si_code > 0 && matches!(signal, libc::SIGINT | libc::SIGQUIT)))
        }
        #[cfg(not(target_os = "linux"))]
        {
            let mut signal = 0;
            // SAFETY: the set is a valid one, and the call fills `signal`.
            let waited = unsafe { libc::sigwait(&self.waited_for, &mut signal) };
            // Who sent it is not told here; keys are the usual way.
            (waited == 0).then_some((signal, matches!(signal, libc::SIGINT | libc::SIGQUIT)))
        }
    }

    /// Takes what has ended, also of what the command left behind; how the command ended, once it has.
    fn reap(&self) -> Option<End> {
        loop {
            let mut status = 0;
            // SAFETY: the call fills `status`.
            let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
            if pid <= 0 {
                return None;
            }
            if pid == self.pid {
                return Some(match libc::WIFSIGNALED(status) {
                    true => End::Signal(libc::WTERMSIG(status)),
                    false => End::Status(libc::WEXITSTATUS(status)),
                });
            }
        }
    }
}

/// When a process started, clock ticks since boot: field 22 of `/proc/PID/stat`. None for one that is gone.
pub fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the name in brackets, which may hold anything.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Whether a process is stopped by a signal (field 3 of `/proc/PID/stat`), or frozen (`cgroup.events` of its cgroup).
pub fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().next());
    let frozen = || {
        let own = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let events = std::fs::read_to_string(format!("/sys/fs/cgroup/{path}/cgroup.events")).ok()?;
        Some(events.lines().any(|line| line == "frozen 1"))
    };
    state == Some("T") || frozen().unwrap_or(false)
}

/// The parent of a process: field 4 of `/proc/PID/stat`. None for the first process, and for one that is gone.
pub fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok().filter(|parent| *parent > 1)
}

/// The namespace of the numbers of processes that this one sees: the inode of `/proc/self/ns/pid`.
pub fn namespace() -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/ns/pid").ok().map(|file| file.ino())
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

/// Ends this process by a signal, as the command ended, but without a second core dump.
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

/// The name of a signal, as `SIGTERM`; `signal 35` for one without.
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

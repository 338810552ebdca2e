//! Runs vendor tools with a timeout and an output limit. It is the one place that starts processes.
//!
//! A tool gets empty standard input, `LC_ALL=C`, `/` as its folder and a process group of its own. The group is killed
//! as a whole, by us or, after our end, by the [`guard`].
//!
//! The exit status is no verdict: some tools succeed without output, others fail after usable output. So callers check
//! the content. `find.rs` finds tools.

mod find;
#[cfg(unix)]
mod guard;
mod stream;

pub(crate) use find::find;
pub(crate) use stream::Stream;

use parking_lot::Mutex;
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Maximum stored bytes of standard error; its end is kept.
const MAX_ERROR_BYTES: usize = 2048;

/// Time to wait for a killed process to end. One that hangs in a driver stays.
const REAP_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval of checks of the process while waiting.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Time in which a start is retried while the tool's file is being written, as by its update.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// Time to wait for the pipes of a process that has ended.
const PIPE_TIMEOUT: Duration = Duration::from_millis(500);

/// Processes that did not end when killed. Their tools are not started again while they exist.
static STUCK: Mutex<Vec<(PathBuf, Child)>> = Mutex::new(Vec::new());

/// Limits of a run.
pub(crate) struct RunLimits {
    /// Timeout after which the tool and all its descendants are killed.
    pub deadline: Duration,
    /// Maximum bytes of standard output.
    pub output: usize,
}

impl RunLimits {
    /// A timeout, with 4 MiB of output.
    pub fn within(deadline: Duration) -> Self {
        RunLimits { deadline, output: 4 << 20 }
    }
}

/// Output of a tool that has ended.
#[derive(Debug)]
pub(crate) struct Output {
    /// Standard output, complete.
    pub stdout: Vec<u8>,
    /// Standard error, its last 2 KiB.
    pub errors: String,
    /// Exit status.
    pub status: ExitStatus,
}

impl Output {
    /// The message of a tool without usable output, in one sentence without a full stop.
    pub fn failure_message(&self, tool: &Path) -> String {
        let last = self.errors.lines().rev().find(|line| !line.trim().is_empty());
        let text = String::from_utf8_lossy(&self.stdout[..self.stdout.len().min(4 * MAX_ERROR_BYTES)]);
        match last.or_else(|| text.lines().find(|line| !line.trim().is_empty())) {
            Some(line) => format!("{} said: {}", tool.display(), short(line)),
            None => format!("{} printed nothing ({})", tool.display(), self.status),
        }
    }
}

/// The first 200 characters without control characters.
pub(crate) fn short(text: &str) -> String {
    text.trim().chars().filter(|c| !c.is_control()).take(200).collect()
}

/// Reason why a run gave no output.
#[derive(Debug)]
pub(crate) enum ExecError {
    /// It could not be started.
    Start(PathBuf, std::io::Error),
    /// It had not ended within the timeout, and was killed.
    Hung(PathBuf, Duration),
    /// It printed more than the limit (bytes), and was killed.
    Flood(PathBuf, usize),
    /// An earlier run could not be killed and still exists.
    Stuck(PathBuf),
}

impl std::fmt::Display for ExecError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ExecError::Start(path, error) => write!(f, "{} cannot be started: {error}", path.display()),
            ExecError::Hung(path, after) => {
                write!(f, "{} timed out after {:.1} s and was killed", path.display(), after.as_secs_f64())
            }
            ExecError::Flood(path, limit) => {
                write!(f, "{} printed more than {limit} bytes and was killed", path.display())
            }
            ExecError::Stuck(path) => {
                write!(f, "{} was killed and does not end: it hangs in the driver", path.display())
            }
        }
    }
}

/// Output of a tool, for callers that are no collectors. None if it prints nothing in time, or more than 1 MiB.
pub fn printed(tool: &Path, args: &[&str], deadline: Duration) -> Option<String> {
    let output = run(tool, args, &RunLimits { deadline, output: 1 << 20 }).ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a tool to its end.
///
/// # Errors
/// [`ExecError`]. In every case no process of the tool's group remains, unless it hangs in the kernel.
pub(crate) fn run(path: &Path, args: &[impl AsRef<OsStr>], limits: &RunLimits) -> Result<Output, ExecError> {
    let begin = Instant::now();
    let mut child = start(path, args)?;
    let stop = Arc::new(AtomicBool::new(false));
    // The tool blocks while its output is not read, so nothing accumulates.
    let (sender, pieces) = sync_channel(8);
    read_from(child.stdout.take(), Piece::Out, &sender, &stop);
    read_from(child.stderr.take(), Piece::Err, &sender, &stop);
    drop(sender);
    let (mut stdout, mut errors) = (Vec::new(), Vec::new());
    let mut gone: Option<Instant> = None;
    let outcome = loop {
        let left = limits.deadline.saturating_sub(begin.elapsed());
        if left.is_zero() {
            break Err(ExecError::Hung(path.into(), limits.deadline));
        }
        match pieces.recv_timeout(left.min(POLL_INTERVAL)) {
            Ok(Piece::Out(bytes)) if stdout.len() + bytes.len() > limits.output => {
                break Err(ExecError::Flood(path.into(), limits.output));
            }
            Ok(Piece::Out(bytes)) => stdout.extend(bytes),
            Ok(Piece::Err(bytes)) => keep_end(&mut errors, &bytes),
            // It has ended and no more output comes: its descendants may hold the pipe open. On a busy machine the last
            // output may still be in transit.
            Err(RecvTimeoutError::Timeout) if ended(&mut child) => {
                if gone.get_or_insert_with(Instant::now).elapsed() >= PIPE_TIMEOUT {
                    break Ok(());
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if ended(&mut child) => break Ok(()),
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(left.min(POLL_INTERVAL / 10)),
        }
    };
    stop.store(true, Ordering::Relaxed);
    let status = end(path, child);
    outcome?;
    let status = status.ok_or_else(|| ExecError::Stuck(path.into()))?;
    Ok(Output { stdout, errors: String::from_utf8_lossy(&errors).into_owned(), status })
}

/// Starts a tool in a group of its own. The kernel kills it when the starting thread ends, so that thread waits for it.
#[allow(clippy::disallowed_methods, reason = "the one place that starts tools")]
fn start(path: &Path, args: &[impl AsRef<OsStr>]) -> Result<Child, ExecError> {
    let mut stuck = STUCK.lock();
    stuck.retain_mut(|(_, child)| matches!(child.try_wait(), Ok(None)));
    if stuck.iter().any(|(other, _)| other == path) {
        return Err(ExecError::Stuck(path.into()));
    }
    drop(stuck);
    let mut command = Command::new(path);
    command.args(args).env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command.current_dir("/"), 0);
    #[cfg(target_os = "linux")]
    die_with_thread(&mut command);
    #[cfg(unix)]
    guard::announce(&mut command);
    let begin = Instant::now();
    let spawned = loop {
        match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy && begin.elapsed() < BUSY_TIMEOUT => {
                std::thread::sleep(POLL_INTERVAL);
            }
            spawned => break spawned,
        }
    };
    let child = spawned.map_err(|error| {
        #[cfg(unix)]
        guard::renew();
        ExecError::Start(path.into(), error)
    })?;
    #[cfg(unix)]
    guard::watch(child.id());
    Ok(child)
}

/// Makes the kernel kill the started process when the starting thread ends.
#[cfg(target_os = "linux")]
fn die_with_thread(command: &mut Command) {
    let parent = std::process::id() as libc::pid_t;
    let ask = move || {
        // SAFETY: plain system calls without pointers, safe between fork and exec.
        match unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), libc::getppid()) } {
            (0, now) if now == parent => Ok(()),
            (0, _) => Err(std::io::ErrorKind::NotFound.into()), // The parent died before the call.
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure only makes system calls; it takes no lock and allocates nothing.
    unsafe { std::os::unix::process::CommandExt::pre_exec(command, ask) };
}

/// Whether a process has ended. It keeps its PID until [`end`], so its group can be killed safely.
#[cfg(unix)]
fn ended(child: &mut Child) -> bool {
    // SAFETY: all-zero bytes are a valid siginfo_t, a structure of integers.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `info` is a live siginfo_t that the call fills.
    let found = unsafe { libc::waitid(libc::P_PID, child.id(), &mut info, flags) };
    // SAFETY: waitid filled the fields of a child's state change, or left the zeros.
    found != 0 || unsafe { info.si_pid() } != 0
}

#[cfg(not(unix))]
fn ended(child: &mut Child) -> bool {
    !matches!(child.try_wait(), Ok(None))
}

/// Kills a process with its whole group.
fn kill(child: &mut Child) {
    #[cfg(unix)]
    // SAFETY: a plain system call. The child is not reaped, so the number is still its group's.
    unsafe {
        libc::kill(-(child.id() as libc::pid_t), libc::SIGKILL);
    }
    #[cfg(not(unix))]
    let _ = child.kill(); // It fails only when the process has ended.
}

/// Kills the rest of a tool and returns its status; none if it does not end.
fn end(path: &Path, mut child: Child) -> Option<ExitStatus> {
    kill(&mut child);
    // Done before the PID can be reused.
    #[cfg(unix)]
    guard::forget(child.id());
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if begin.elapsed() < REAP_TIMEOUT => std::thread::sleep(POLL_INTERVAL / 20),
            _ => break,
        }
    }
    STUCK.lock().push((path.into(), child));
    None
}

enum Piece {
    Out(Vec<u8>),
    Err(Vec<u8>),
}

/// Sends the bytes of a pipe, from a thread of its own that ends with the pipe or after `stop`.
fn read_from(pipe: Option<impl Pipe>, piece: fn(Vec<u8>) -> Piece, sender: &SyncSender<Piece>, stop: &Arc<AtomicBool>) {
    let (sender, stop) = (sender.clone(), stop.clone());
    let read = move |mut pipe| {
        let mut buffer = [0; 16 << 10];
        while let Some(n) = next(&mut pipe, &mut buffer, &stop).filter(|n| *n > 0) {
            if sender.send(piece(buffer[..n].to_vec())).is_err() {
                return;
            }
        }
    };
    // If no thread can be started, the pipe is dropped, and the tool counts as one without output.
    let _ = pipe.map(|pipe| std::thread::Builder::new().stack_size(64 << 10).spawn(move || read(pipe)));
}

/// The next bytes of a pipe; 0 at its end, none after `stop` or an error.
fn next(pipe: &mut impl Pipe, buffer: &mut [u8], stop: &AtomicBool) -> Option<usize> {
    while !ready(pipe, 5 * POLL_INTERVAL) {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
    }
    pipe.read(buffer).ok()
}

#[cfg(unix)]
trait Pipe: Read + std::os::fd::AsRawFd + Send + 'static {}
#[cfg(unix)]
impl<T: Read + std::os::fd::AsRawFd + Send + 'static> Pipe for T {}
#[cfg(not(unix))]
trait Pipe: Read + Send + 'static {}
#[cfg(not(unix))]
impl<T: Read + Send + 'static> Pipe for T {}

/// Waits until a pipe has bytes or has ended. Without it a thread would block forever on a pipe that a process outside
/// the killed group holds open.
#[cfg(unix)]
fn ready(pipe: &impl Pipe, wait: Duration) -> bool {
    let mut polled = libc::pollfd { fd: pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one live pollfd, whose descriptor is owned by `pipe`.
    unsafe { libc::poll(&mut polled, 1, wait.as_millis() as libc::c_int) > 0 }
}

#[cfg(not(unix))]
fn ready(_: &impl Pipe, _: Duration) -> bool {
    true
}

fn keep_end(kept: &mut Vec<u8>, bytes: &[u8]) {
    kept.extend_from_slice(bytes);
    kept.drain(..kept.len().saturating_sub(MAX_ERROR_BYTES));
}

#[cfg(test)]
mod tests;

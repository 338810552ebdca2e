//! A tool that runs permanently and prints one line per report.

use super::{ExecError, MAX_ERROR_BYTES, Pipe, end, ended, keep_end, kill, next, short, start};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum length of a line, and of all lines in the queue, bytes.
const MAX_LINE_BYTES: usize = 16 << 20;

/// Maximum number of lines in the queue; the oldest is dropped.
const MAX_LINES: usize = 1000;

/// Backoff: delay of the next start after this number of ends without a line.
const BACK_OFF: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30), Duration::from_secs(120)];

/// A complete line without its line feed.
#[derive(Debug)]
pub(crate) struct StreamLine {
    /// As printed.
    pub text: Vec<u8>,
    /// Time of arrival.
    pub at: Instant,
}

/// A tool that is kept running until this is dropped. It is restarted with backoff when it ends or prints nothing.
pub(crate) struct Stream {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    args: Vec<String>,
    silence: Duration,
    stop: AtomicBool,
    state: Mutex<StreamState>,
    stopped: Condvar,
}

#[derive(Default)]
struct StreamState {
    /// Stored here from start to wait, so that a drop of the stream can kill it.
    child: Option<Child>,
    lines: VecDeque<StreamLine>,
    trouble: Option<String>,
    /// Number of ends without a line in between.
    failures: usize,
}

impl Stream {
    /// Starts it on a thread of its own. After `silence` without a line the tool counts as hung.
    pub fn start(path: &Path, args: &[&str], silence: Duration) -> Stream {
        let args = args.iter().map(|arg| arg.to_string()).collect();
        let shared = Arc::new(Shared {
            path: path.into(),
            args,
            silence,
            stop: AtomicBool::new(false),
            state: Mutex::default(),
            stopped: Condvar::new(),
        });
        let own = shared.clone();
        let thread = std::thread::Builder::new().stack_size(128 << 10).spawn(move || own.keep_running());
        if let Err(error) = thread {
            shared.state().trouble = Some(format!("no thread could be started for it: {error}"));
        }
        Stream { shared }
    }

    /// The complete lines since the last call, oldest first.
    pub fn take(&self) -> Vec<StreamLine> {
        self.shared.state().lines.drain(..).collect()
    }

    /// The reason why it does not run, or the fault in its output: one sentence without a full stop. A valid line
    /// clears it.
    pub fn trouble(&self) -> Option<String> {
        self.shared.state().trouble.clone()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(child) = &mut self.shared.state().child {
            kill(child);
        }
        self.shared.stopped.notify_all();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock()
    }

    fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn keep_running(&self) {
        while !self.stopping() {
            let reason = self.run_once().unwrap_or_else(|error| error.to_string());
            let mut state = self.state();
            state.trouble = Some(reason);
            let pause = BACK_OFF[state.failures.min(BACK_OFF.len() - 1)];
            state.failures += 1;
            let waiting = |_: &mut StreamState| !self.stopping();
            let _ = self.stopped.wait_while_for(&mut state, waiting, pause);
        }
    }

    /// Runs the tool until it ends, prints nothing for too long or is not wanted any more. Returns the reason of its
    /// end.
    fn run_once(&self) -> Result<String, ExecError> {
        let mut child = start(&self.path, &self.args)?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        self.state().child = Some(child);
        let quiet = Arc::new(AtomicBool::new(false));
        let errors = err.and_then(|err| keep_errors(err, quiet.clone()));
        let silent = out.is_none_or(|out| self.read(out));
        quiet.store(true, Ordering::Relaxed);
        let status = self.state().child.take().and_then(|child| end(&self.path, child));
        let errors = errors.and_then(|thread| thread.join().ok()).unwrap_or_default();
        let errors = String::from_utf8_lossy(&errors);
        let said = errors.lines().rev().find(|line| !line.trim().is_empty()).map(short);
        let path = self.path.display();
        Ok(match (silent, status, said) {
            (true, ..) => format!("{path} printed nothing for {} s and was restarted", self.silence.as_secs()),
            (_, _, Some(said)) => format!("{path} ended: {said}"),
            (_, Some(status), None) => format!("{path} ended ({status})"),
            (_, None, None) => format!("{path} was killed and does not end: it hangs in the driver"),
        })
    }

    /// Reads lines until the tool's end. Returns true if it was silent for too long instead.
    fn read(&self, mut pipe: impl Pipe) -> bool {
        let (mut part, mut too_long) = (Vec::new(), false);
        let mut buffer = [0; 32 << 10];
        let mut heard = Instant::now();
        // Checked between waits, when no output came for a moment.
        let look = AtomicBool::new(true);
        loop {
            let read = next(&mut pipe, &mut buffer, &look);
            if self.stopping() {
                return false;
            }
            match read {
                Some(0) => return false,
                Some(n) => {
                    for piece in buffer[..n].split_inclusive(|b| *b == b'\n') {
                        let (piece, whole) = piece.strip_suffix(b"\n").map_or((piece, false), |piece| (piece, true));
                        too_long |= part.len() + piece.len() > MAX_LINE_BYTES;
                        if too_long {
                            part.clear();
                        } else {
                            part.extend_from_slice(piece);
                        }
                        if whole {
                            let line = std::mem::take(&mut part);
                            self.push((!std::mem::take(&mut too_long)).then_some(line));
                            heard = Instant::now();
                        }
                    }
                }
                None if heard.elapsed() > self.silence => return true,
                // It has ended, but its descendants hold the pipe open.
                None if self.state().child.as_mut().is_none_or(ended) => return false,
                None => {}
            }
        }
    }

    fn push(&self, line: Option<Vec<u8>>) {
        let mut state = self.state();
        state.failures = 0;
        let Some(text) = line else {
            state.trouble = Some(format!("{} printed a line longer than {MAX_LINE_BYTES} bytes", self.path.display()));
            return;
        };
        state.trouble = None;
        state.lines.push_back(StreamLine { text, at: Instant::now() });
        let mut bytes: usize = state.lines.iter().map(|line| line.text.len()).sum();
        while state.lines.len() > 1 && (state.lines.len() > MAX_LINES || bytes > MAX_LINE_BYTES) {
            bytes -= state.lines.pop_front().map_or(0, |line| line.text.len());
        }
    }
}

/// Reads standard error to its end, or only the available bytes once `quiet` is set. Keeps the last part.
fn keep_errors(mut pipe: impl Pipe, quiet: Arc<AtomicBool>) -> Option<JoinHandle<Vec<u8>>> {
    let read = move || {
        let (mut kept, mut buffer) = (Vec::with_capacity(MAX_ERROR_BYTES), [0; 4096]);
        // A pipe holds 64 KiB; later output is from a process that outlived the tool.
        let mut rest = 16;
        while let Some(n) = next(&mut pipe, &mut buffer, &quiet).filter(|n| *n > 0 && rest > 0) {
            keep_end(&mut kept, &buffer[..n]);
            rest -= usize::from(quiet.load(Ordering::Relaxed));
        }
        kept
    };
    std::thread::Builder::new().stack_size(64 << 10).spawn(read).ok()
}

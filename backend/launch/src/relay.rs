//! Copies the output of a job to our streams, byte by byte, and to the log; and copies keys to the job's terminal.

use super::folder::Folder;
use super::keep::Keeper;
use super::lines::Assembler;
use super::pty::{OwnTerminal, Pty, copy_size, is_terminal, key_of, pipe};
use parking_lot::Mutex;
use shared::output::OutputStream;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Maximum bytes copied at once.
const CHUNK: usize = 64 << 10;

/// Time after the job's end in which its remaining output is read. The limit protects against a daemon that holds the
/// terminal open.
const LAST_READ: Duration = Duration::from_secs(1);

/// Maximum bytes that are read after that time.
const LAST_BYTES: usize = 1 << 20;

/// Interval of checks for the foreground, while the keys are not ours.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Timeout of writing the last lines.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// Replacements of our standard streams for a job; None for a stream that it inherits.
#[derive(Debug, Default)]
pub struct Streams {
    /// Standard input, output and error.
    pub all: [Option<OwnedFd>; 3],
    /// The terminal that becomes the job's controlling terminal.
    pub terminal: Option<OwnedFd>,
    /// Descriptors of our ends. The job must hold none of them.
    pub ours: Vec<RawFd>,
    /// Our own terminal and its mode. The process that survives restores it.
    pub restore: Option<(RawFd, libc::termios)>,
}

/// Our ends of the streams.
pub struct Relay {
    /// Source, target and kind of each stream.
    outputs: Vec<(OwnedFd, OwnedFd, OutputStream)>,
    master: Option<Arc<OwnedFd>>,
    own: Option<Arc<OwnTerminal>>,
    /// Our terminal, whose size is copied to the job's.
    sized: Option<OwnedFd>,
    keeper: Keeper,
    /// Closed once the job has ended.
    wake: (Arc<OwnedFd>, Option<OwnedFd>),
    ended: Arc<Mutex<Option<Instant>>>,
    interrupted: Arc<AtomicBool>,
    done: (SyncSender<()>, Receiver<()>),
    /// Number of running copy threads.
    running: usize,
    written: Option<Receiver<()>>,
}

fn own(fd: &impl AsFd) -> io::Result<OwnedFd> {
    fd.as_fd().try_clone_to_owned()
}

impl Relay {
    /// Creates the relay between a job and our streams.
    ///
    /// # Errors
    /// The system grants no terminal or no pipe.
    pub fn new() -> io::Result<(Relay, Streams)> {
        let outs = [(own(&io::stdout())?, OutputStream::Out), (own(&io::stderr())?, OutputStream::Err)];
        let mut streams = Streams::default();
        let mut outputs = Vec::new();
        let sized = outs.iter().map(|(fd, _)| fd).find(|fd| is_terminal(fd.as_raw_fd()));
        let sized = sized.map(own).transpose()?;
        let pty = sized.as_ref().map(|terminal| Pty::like(terminal.as_raw_fd())).transpose()?;
        for (at, (to, stream)) in outs.into_iter().enumerate() {
            match &pty {
                Some(pty) if is_terminal(to.as_raw_fd()) => {
                    streams.all[at + 1] = Some(own(&pty.slave)?);
                    // There is one terminal, so output to both streams appears there.
                    if !outputs.iter().any(|(_, _, stream)| *stream == OutputStream::Tty) {
                        outputs.push((own(&pty.master)?, to, OutputStream::Tty));
                    }
                }
                _ => {
                    let (read, write) = pipe()?;
                    streams.all[at + 1] = Some(write);
                    outputs.push((read, to, stream));
                }
            }
        }
        let own_terminal = match &pty {
            Some(pty) if is_terminal(io::stdin().as_raw_fd()) => {
                streams.all[0] = Some(own(&pty.slave)?);
                OwnTerminal::of_input().map(Arc::new)
            }
            _ => None,
        };
        let (woken, wake) = pipe()?;
        streams.ours =
            outputs.iter().map(|(from, ..)| from.as_raw_fd()).chain([woken.as_raw_fd(), wake.as_raw_fd()]).collect();
        let mut master = None;
        if let Some(pty) = pty {
            streams.ours.push(pty.master.as_raw_fd());
            streams.terminal = Some(pty.slave);
            master = Some(Arc::new(pty.master));
        }
        streams.restore = own_terminal.as_ref().map(|own| (own.fd(), own.saved()));
        let relay = Relay {
            outputs,
            master,
            own: own_terminal,
            sized,
            keeper: Keeper::default(),
            wake: (Arc::new(woken), Some(wake)),
            ended: Arc::default(),
            interrupted: Arc::default(),
            done: mpsc::sync_channel(8),
            running: 0,
            written: None,
        };
        Ok((relay, streams))
    }

    /// Starts copying. Lines are stored in the folder of a run below `logs`, under the name `stem`. `now` returns
    /// milliseconds since the Unix epoch.
    pub fn begin(
        &mut self,
        logs: Folder,
        (run, stem): (String, String),
        now: impl Fn() -> i64 + Copy + Send + 'static,
    ) {
        // Before the job's first output is seen: a key that answers it is the job's.
        if let (Some(own), Some(master)) = (self.own.clone(), self.master.clone()) {
            own.take();
            let interrupted = self.interrupted.clone();
            // If this thread cannot start, the job gets no keys but everything else.
            let _ = Builder::new().name("keys".into()).spawn(move || keys(&own, &master, &interrupted));
        }
        for (from, to, stream) in std::mem::take(&mut self.outputs) {
            let (keeper, wake, ended, done) =
                (self.keeper.clone(), self.wake.0.clone(), self.ended.clone(), self.done.0.clone());
            let carry = move || {
                let mut assembler = Assembler::default();
                let ends = Ends { from: from.into(), to: to.into(), wake: &wake, ended: &ended };
                ends.carry(|bytes| keeper.take(&mut assembler, stream, bytes, now()));
                keeper.rest(&mut assembler, stream, now());
                let _ = done.send(());
            };
            self.running += usize::from(Builder::new().name("output".into()).spawn(carry).is_ok());
        }
        let (keeper, (tell, told)) = (self.keeper.clone(), mpsc::sync_channel(1));
        let write = move || {
            keeper.write(logs, &run, &stem);
            let _ = tell.send(());
        };
        self.written = Builder::new().name("logs".into()).spawn(write).ok().map(|_| told);
    }

    /// Receives further lines for the log.
    pub fn keeper(&self) -> Keeper {
        self.keeper.clone()
    }

    /// Copies the new size of our terminal to the job's.
    pub fn resized(&self) {
        if let (Some(sized), Some(master)) = (&self.sized, &self.master) {
            copy_size(sized.as_raw_fd(), master.as_raw_fd());
        }
    }

    /// Passes a signal made by a key of our terminal on as that key. Returns whether the job's terminal turns it into a
    /// signal.
    pub fn key(&self, signal: i32) -> bool {
        let Some(master) = &self.master else { return false };
        key_of(master.as_raw_fd(), signal).is_some_and(|key| write_all(master, &[key]))
    }

    /// Stops us, because the job was stopped by its terminal. Returns when we are continued.
    pub fn stop(&self) {
        self.give_back();
        // SAFETY: the call sends a signal to ourselves.
        unsafe { libc::raise(libc::SIGSTOP) };
        if let Some(own) = &self.own {
            own.take();
        }
        self.resized();
    }

    /// Whether a key requested the job's end.
    pub fn was_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Restores the mode of our terminal.
    pub fn give_back(&self) {
        if let Some(own) = &self.own {
            own.give_back();
        }
    }

    /// Ends after the job: copies its remaining output. `patience` is called if a reader is slow, so that signals can
    /// end us meanwhile. Returns the reason if lines could not be stored.
    pub fn end(mut self, patience: impl FnOnce()) -> Option<String> {
        *self.ended.lock() = Some(Instant::now());
        self.wake.1.take();
        let mut patience = Some(patience);
        while self.running > 0 {
            match patience.is_some() {
                true if self.done.1.recv_timeout(2 * LAST_READ).is_err() => {
                    self.give_back();
                    patience.take().into_iter().for_each(|patience| patience());
                    continue;
                }
                true => {}
                false => _ = self.done.1.recv(),
            }
            self.running -= 1;
        }
        self.give_back();
        self.keeper.end();
        match self.written.take().map(|written| written.recv_timeout(WRITE_TIMEOUT)) {
            Some(Ok(())) => self.keeper.failed(),
            _ => Some("the disk is too slow".into()),
        }
    }
}

/// Both ends of one stream of a job.
struct Ends<'a> {
    from: File,
    to: File,
    wake: &'a OwnedFd,
    ended: &'a Mutex<Option<Instant>>,
}

impl Ends<'_> {
    /// Copies until the job's end of the stream is closed, or the job has ended and no more output comes.
    fn carry(mut self, mut copy: impl FnMut(&[u8])) {
        // A terminal that has closed no longer tells that it is one.
        let is_to_terminal = is_terminal(self.to.as_raw_fd());
        let mut bytes = vec![0; CHUNK];
        let mut late = 0;
        loop {
            let ended = *self.ended.lock();
            let wait = ended.map(|ended| LAST_READ.saturating_sub(ended.elapsed()));
            let wake = ended.is_none().then_some(self.wake);
            match ready(&self.from, wake, wait) {
                Ready::Read => {}
                Ready::Woken => continue,
                Ready::Nothing => return,
            }
            if wait.is_some_and(|wait| wait.is_zero()) && late > LAST_BYTES {
                return;
            }
            let read = match self.from.read(&mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // A terminal reports an error once its last user has closed it.
                Ok(0) | Err(_) => return,
                Ok(read) => read,
            };
            late += if ended.is_some() { read } else { 0 };
            let is_taken = write_all(&self.to, &bytes[..read]);
            copy(&bytes[..read]);
            // Nobody reads our pipe any more. Closing our end makes the job's next write fail in the same way. A terminal
            // stays open by our other descriptors: unless it is read further, the job would wait for ever once it is full.
            if !is_taken && !is_to_terminal {
                return;
            }
        }
    }
}

enum Ready {
    Read,
    Woken,
    Nothing,
}

/// Waits until there are bytes to read, `wake` is closed, or the time is over.
fn ready(from: &impl AsRawFd, wake: Option<&OwnedFd>, wait: Option<Duration>) -> Ready {
    let entry = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // `poll` ignores a negative descriptor.
    let mut all = [entry(from.as_raw_fd()), entry(wake.map_or(-1, AsRawFd::as_raw_fd))];
    let wait = wait.map_or(-1, |wait| i32::try_from(wait.as_millis()).unwrap_or(i32::MAX));
    loop {
        // SAFETY: the list is valid for the whole call.
        let found = unsafe { libc::poll(all.as_mut_ptr(), all.len() as libc::nfds_t, wait) };
        match found {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            _ if all[0].revents != 0 => return Ready::Read,
            _ if all[1].revents != 0 => return Ready::Woken,
            _ => return Ready::Nothing,
        }
    }
}

/// Writes all bytes without a timeout. Returns whether they were written.
fn write_all(to: &impl AsRawFd, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        // SAFETY: the pointer and the length are those of `bytes`.
        let written = unsafe { libc::write(to.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(written) {
            Ok(written) => bytes = &bytes[written..],
            Err(_) => match io::Error::last_os_error().kind() {
                io::ErrorKind::Interrupted => {}
                // Another process may have set this terminal to non-blocking.
                io::ErrorKind::WouldBlock => {
                    let mut entry = libc::pollfd { fd: to.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
                    // SAFETY: the entry is valid for the whole call.
                    unsafe { libc::poll(&raw mut entry, 1, -1) };
                }
                _ => return false,
            },
        }
    }
    true
}

/// Copies keys to the job's terminal, while we are in the foreground.
fn keys(own: &OwnTerminal, master: &OwnedFd, interrupted: &AtomicBool) {
    let Ok(mut from) = own_file(own.fd()) else { return };
    let mut bytes = [0; 4096];
    loop {
        // Once we are put into the foreground, we take the keys.
        if !own.keep() {
            std::thread::sleep(LOOK_INTERVAL);
            continue;
        }
        match ready(&from, None, Some(LOOK_INTERVAL)) {
            Ready::Read if own.keep() => {}
            _ => continue,
        }
        let read = match from.read(&mut bytes) {
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => continue,
            Ok(0) | Err(_) => return,
            Ok(read) => &bytes[..read],
        };
        if key_of(master.as_raw_fd(), libc::SIGINT).is_some_and(|key| read.contains(&key)) {
            interrupted.store(true, Ordering::Relaxed);
        }
        if !write_all(master, read) {
            return;
        }
    }
}

fn own_file(fd: RawFd) -> io::Result<File> {
    // SAFETY: the terminal that owns the descriptor outlives the call.
    let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
    Ok(fd.try_clone_to_owned()?.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::FromRawFd;
    use std::ptr::null_mut;

    /// Both ends of a terminal.
    fn terminal() -> (OwnedFd, OwnedFd) {
        let (mut master, mut slave) = (0, 0);
        // SAFETY: the pointers are to live values, which the call fills, or null, which it allows.
        let opened = unsafe { libc::openpty(&mut master, &mut slave, null_mut(), null_mut(), null_mut()) };
        assert_eq!(opened, 0, "no terminal");
        for fd in [master, slave] {
            // SAFETY: the descriptor is open. Programs of other tests must not hold it open.
            unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
        // SAFETY: both were just opened and have no other owner.
        unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) }
    }

    /// Copies to a target that is closed after the first line. Returns whether the lines after that are still read.
    fn is_read_after_close(to: OwnedFd, reader: OwnedFd) -> bool {
        let (from, job) = pipe().expect("a pipe");
        let (wake, _end) = pipe().expect("a pipe");
        let watched = to.try_clone().expect("a copy");
        let (ended, (copied, lines)) = (Mutex::new(None), mpsc::sync_channel(8));
        std::thread::scope(|scope| {
            let ends = Ends { from: from.into(), to: to.into(), wake: &wake, ended: &ended };
            scope.spawn(move || ends.carry(|bytes| drop(copied.send(bytes.to_vec()))));
            let (mut job, mut reader) = (File::from(job), Some(reader));
            for line in ["one\n", "two\n", "three\n"] {
                if job.write_all(line.as_bytes()).is_err() {
                    return false;
                }
                let Ok(copied) = lines.recv() else { return false };
                assert_eq!(String::from_utf8_lossy(&copied), line);
                reader.take();
                // A program that another test starts just now has a copy of the reader for a moment.
                let mut closed = libc::pollfd { fd: watched.as_raw_fd(), events: 0, revents: 0 };
                // SAFETY: the pointer is to one live value, which the call fills.
                assert_eq!(unsafe { libc::poll(&raw mut closed, 1, 60_000) }, 1, "the reader is open");
            }
            true
        })
    }

    #[test]
    fn a_job_goes_on_and_is_recorded_when_our_terminal_has_closed_but_its_pipe_closes_with_ours() {
        let (master, slave) = terminal();
        assert!(is_read_after_close(slave, master));
        let (read, write) = pipe().expect("a pipe");
        assert!(!is_read_after_close(write, read));
    }
}

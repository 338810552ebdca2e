//! Standard error of a server: a queue in memory, and a thread that writes it.
//!
//! Nobody who logs waits, and nothing that happens to standard error goes further than here: a pipe that nobody reads holds
//! up the thread alone, a full disk costs lines. What finds no room is dropped and counted, and the count is written as soon
//! as something can be written again.
//!
//! A thread of `tracing-appender` does less: it keeps lines without a limit in bytes, counts none that a disk refused, and
//! prints to a standard output that may hang as well when it is let go while its pipe is full.

use parking_lot::{Condvar, Mutex, MutexGuard};
use shared::wire::{Check, CheckState};
use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The most bytes that wait; as many may be on their way.
const MAX_QUEUED_BYTES: usize = 256 << 10;

/// A write that has not ended for this long hangs.
const HUNG_AFTER: Duration = Duration::from_secs(5);

/// How often lines that were lost are told of while that fails.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// The one of this process, once it is started.
static OWN: OnceLock<Stderr> = OnceLock::new();

/// Where to write lines. A writer for `tracing`, which writes a line at a time.
#[derive(Clone, Debug, Default)]
pub struct Stderr(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    /// Lines that wait.
    text: Vec<u8>,
    /// Lines that came after them and found no room.
    refused: u64,
    /// Lines that were dropped so far, for whatever reason.
    dropped: u64,
    /// Since when the thread has been writing; none while it has nothing to do.
    writing: Option<Instant>,
    /// Why the last write failed.
    failing: Option<String>,
}

impl Stderr {
    /// The one of this process: from here on panics are written by it too.
    ///
    /// # Errors
    /// The system grants no thread.
    pub fn start() -> io::Result<Stderr> {
        let stderr = Stderr::to(own_descriptor())?;
        let theirs = OWN.get_or_init(|| stderr.clone()).clone();
        // The hook of the standard library waits for whoever reads, with the thread that has panicked.
        std::panic::set_hook(Box::new(move |panic| {
            let thread = std::thread::current();
            let trace = std::backtrace::Backtrace::capture();
            let trace = match trace.status() {
                std::backtrace::BacktraceStatus::Captured => format!("\n{trace}"),
                _ => String::new(),
            };
            theirs.line(&format!("thread '{}' {panic}{trace}", thread.name().unwrap_or("without a name")));
        }));
        Ok(stderr)
    }

    /// Writes elsewhere.
    fn to(out: impl Write + Send + 'static) -> io::Result<Stderr> {
        let stderr = Stderr::default();
        let own = stderr.clone();
        std::thread::Builder::new().name("stderr".into()).stack_size(64 << 10).spawn(move || own.keep_writing(out))?;
        Ok(stderr)
    }

    /// Writes a line, or lines, as they are to be read: not a part of the log. What would act on a terminal is made visible.
    pub fn line(&self, text: &str) {
        self.put(format!("{}\n", crate::terminal::visible(text.trim_end())).as_bytes());
    }

    /// Waits until all is written, but no longer than this.
    pub fn flush(&self, most: Duration) {
        let busy = |queue: &mut Queue| !queue.text.is_empty() || queue.refused > 0 || queue.writing.is_some();
        let _ = self.0.changed.wait_while_for(&mut self.queue(), busy, most);
    }

    /// Lines that were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.queue().dropped
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // No code that holds the lock can leave it half changed.
        self.0.queue.lock()
    }

    fn put(&self, line: &[u8]) {
        let mut queue = self.queue();
        // After one that was dropped the rest is, until room is made: then the count has one place in the text.
        if queue.refused > 0 || queue.text.len() + line.len() > MAX_QUEUED_BYTES {
            queue.refused += 1;
            queue.dropped += 1;
        } else {
            queue.text.extend_from_slice(line);
        }
        self.0.changed.notify_all();
    }

    /// What waits, and how many lines were dropped after it. Nothing after a while in which there was nothing.
    fn take(&self, most: Duration) -> (Vec<u8>, u64) {
        let nothing = |queue: &mut Queue| queue.text.is_empty() && queue.refused == 0;
        let mut queue = self.queue();
        let _ = self.0.changed.wait_while_for(&mut queue, nothing, most);
        queue.writing = Some(Instant::now());
        (std::mem::take(&mut queue.text), std::mem::take(&mut queue.refused))
    }

    fn keep_writing(&self, mut out: impl Write) {
        // Lines that were dropped and are not told of yet.
        let mut untold = 0;
        loop {
            let (text, refused) = self.take(if untold == 0 { Duration::MAX } else { RETRY_INTERVAL });
            let (mut lost, mut result) = (0, tell(&mut out, &mut untold));
            match result {
                Ok(()) => {
                    let written;
                    (written, result) = write(&mut out, &text);
                    lost += lines(&text[written..]);
                }
                Err(_) => lost += lines(&text),
            }
            untold += lost + refused;
            if result.is_ok() {
                result = tell(&mut out, &mut untold);
            }
            let mut queue = self.queue();
            queue.dropped += lost;
            queue.writing = None;
            queue.failing = result.err().map(|error| error.to_string());
            self.0.changed.notify_all();
        }
    }

    fn check(&self) -> Option<Check> {
        let queue = self.queue();
        let hung = queue.writing.filter(|since| since.elapsed() >= HUNG_AFTER);
        let (state, reason) = match (&queue.failing, hung) {
            (_, Some(_)) => (CheckState::Hung, "the reader of standard error is blocked; lines are dropped".into()),
            (Some(error), None) => (CheckState::Failed, format!("standard error cannot be written: {error}")),
            (None, None) => return None,
        };
        let remedy = "check the target of standard error: a pipe without a reader, or a full disk; logging continues \
            by itself";
        Some(Check { state, reason, remedy: remedy.into(), ..well() })
    }
}

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Lines of this process that were dropped so far, for `/metrics`.
pub fn dropped() -> u64 {
    OWN.get().map_or(0, Stderr::dropped)
}

/// How it stands, while it is not well.
pub fn check() -> Option<Check> {
    OWN.get().and_then(Stderr::check)
}

/// The check once it is well again.
pub fn well() -> Check {
    Check {
        id: "log".into(),
        state: CheckState::Ok,
        tried: vec!["standard error".into()],
        found: "The log of the server.".into(),
        reason: String::new(),
        remedy: String::new(),
    }
}

/// Standard error without the lock of the standard library: who writes to it by that is not held up by this thread.
#[cfg(unix)]
fn own_descriptor() -> Box<dyn Write + Send> {
    use std::os::fd::AsFd;
    match io::stderr().as_fd().try_clone_to_owned() {
        Ok(descriptor) => Box::new(std::fs::File::from(descriptor)),
        Err(_) => Box::new(io::stderr()),
    }
}

#[cfg(not(unix))]
fn own_descriptor() -> Box<dyn Write + Send> {
    Box::new(io::stderr())
}

/// Says how many lines were dropped.
fn tell(out: &mut impl Write, untold: &mut u64) -> io::Result<()> {
    if *untold > 0 {
        let note = format!("watchglass: {untold} lines of the log could not be written and were dropped\n");
        write(out, note.as_bytes()).1?;
        *untold = 0;
    }
    Ok(())
}

/// Writes all, and says how much was written. A terminal or a pipe that another program has set not to block is waited for.
fn write(out: &mut impl Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < bytes.len() {
        match out.write(&bytes[written..]) {
            Ok(0) => return (written, Err(ErrorKind::WriteZero.into())),
            Ok(n) => written += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(50)),
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

fn lines(text: &[u8]) -> u64 {
    text.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    /// Takes what is written when it is told to, or refuses it.
    struct Slow {
        words: Receiver<io::Result<()>>,
        read: SyncSender<String>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.words.recv().map_err(|_| ErrorKind::BrokenPipe)??;
            let _ = self.read.send(String::from_utf8_lossy(bytes).into_owned()); // A test that has ended reads no more.
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn slow() -> (Stderr, SyncSender<io::Result<()>>, Receiver<String>) {
        let ((word, words), (read, written)) = (sync_channel(0), sync_channel(100));
        (Stderr::to(Slow { words, read }).expect("a thread"), word, written)
    }

    #[test]
    fn lines_come_whole_and_in_their_order() {
        let (stderr, word, written) = slow();
        stderr.line("one");
        word.send(Ok(())).expect("it writes");
        assert_eq!(written.recv().as_deref(), Ok("one\n"));
        stderr.flush(Duration::from_secs(60));
        assert_eq!((stderr.dropped(), stderr.check()), (0, None));
    }

    #[test]
    fn a_reader_that_takes_nothing_costs_lines_and_nobody_time() {
        let (stderr, word, written) = slow();
        stderr.line("first");
        while stderr.queue().writing.is_none() {
            std::thread::yield_now();
        }
        // It hangs now. What fits waits; the rest is dropped, also what would have fitted after the first that was.
        let line = "x".repeat(1023);
        (0..300).for_each(|_| stderr.line(&line));
        stderr.line("short");
        assert_eq!(stderr.dropped(), 300 - 256 + 1);
        assert_eq!(stderr.queue().text.len(), MAX_QUEUED_BYTES);
        (0..3).for_each(|_| word.send(Ok(())).expect("it writes"));
        let read: Vec<String> = (0..3).map_while(|_| written.recv().ok()).collect();
        assert_eq!((read[0].as_str(), read[1].len()), ("first\n", MAX_QUEUED_BYTES));
        assert_eq!(read[2], "watchglass: 45 lines of the log could not be written and were dropped\n");
    }

    #[test]
    fn what_a_disk_refuses_is_counted_and_told_when_it_takes_again() {
        let (stderr, word, written) = slow();
        stderr.line("one\ntwo");
        word.send(Err(ErrorKind::StorageFull.into())).expect("it writes");
        stderr.flush(Duration::from_secs(60));
        assert_eq!(stderr.dropped(), 2);
        let check = stderr.check().expect("a check");
        assert_eq!(check.state, CheckState::Failed);
        assert!(check.reason.contains("no storage space"), "{}", check.reason);
        stderr.line("three");
        (0..2).for_each(|_| word.send(Ok(())).expect("it writes"));
        assert_eq!(
            written.recv().as_deref(),
            Ok("watchglass: 2 lines of the log could not be written and were dropped\n")
        );
        assert_eq!(written.recv().as_deref(), Ok("three\n"));
        stderr.flush(Duration::from_secs(60));
        assert_eq!((stderr.dropped(), stderr.check()), (2, None));
    }

    #[test]
    fn a_write_that_does_not_end_shows() {
        let (stderr, word, _written) = slow();
        stderr.line("one");
        while stderr.queue().writing.is_none() {
            std::thread::yield_now();
        }
        assert_eq!(stderr.check(), None, "it may end yet");
        stderr.queue().writing = Instant::now().checked_sub(HUNG_AFTER);
        assert_eq!(stderr.check().map(|check| check.state), Some(CheckState::Hung));
        drop(word);
    }
}

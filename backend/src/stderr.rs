//! Standard error of a server: a queue in memory, and a thread that writes it.
//!
//! Logging never blocks, and faults of standard error do not spread: an unread pipe blocks only the thread, a full
//! disk costs lines. Lines without room are dropped and counted, and the count is written as soon as writes succeed
//! again.
//!
//! A thread of `tracing-appender` does less. Its queue has no limit in bytes, and it does not count lines that a disk
//! refused. On drop with a full pipe it prints to a standard output that may hang as well.

use parking_lot::{Condvar, Mutex, MutexGuard};
use shared::wire::{Check, CheckState};
use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Maximum size of the queue, bytes; the same size may be in flight.
const MAX_QUEUED_BYTES: usize = 256 << 10;

/// Time after which a write counts as hung.
const HUNG_AFTER: Duration = Duration::from_secs(5);

/// Interval of the attempts to report lost lines while writes fail.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// The instance of this process, once it is started.
static OWN: OnceLock<Stderr> = OnceLock::new();

/// A queue of lines. It is a writer for `tracing`, which writes one line at a time.
#[derive(Clone, Debug, Default)]
pub struct Stderr(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    /// Queued lines.
    text: Vec<u8>,
    /// Later lines without room.
    refused: u64,
    /// Number of lines dropped so far, for any reason.
    dropped: u64,
    /// Start of the current write; none while the thread is idle.
    writing: Option<Instant>,
    /// Error of the last write.
    failing: Option<String>,
}

impl Stderr {
    /// Starts the instance of this process. From here on it also writes panics.
    ///
    /// # Errors
    /// The system grants no thread.
    pub fn start() -> io::Result<Stderr> {
        let stderr = Stderr::to(own_descriptor())?;
        let theirs = OWN.get_or_init(|| stderr.clone()).clone();
        // The hook of the standard library would block the panicked thread on the reader.
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

    /// Writes to another output.
    fn to(out: impl Write + Send + 'static) -> io::Result<Stderr> {
        let stderr = Stderr::default();
        let own = stderr.clone();
        std::thread::Builder::new().name("stderr".into()).stack_size(64 << 10).spawn(move || own.keep_writing(out))?;
        Ok(stderr)
    }

    /// Writes lines for people, outside the log. Control characters of terminals are made visible.
    pub fn line(&self, text: &str) {
        self.put(format!("{}\n", crate::terminal::visible(text.trim_end())).as_bytes());
    }

    /// Waits until all is written, up to a timeout.
    pub fn flush(&self, most: Duration) {
        let busy = |queue: &mut Queue| !queue.text.is_empty() || queue.refused > 0 || queue.writing.is_some();
        let _ = self.0.changed.wait_while_for(&mut self.queue(), busy, most);
    }

    /// Number of lines dropped so far.
    pub fn dropped(&self) -> u64 {
        self.queue().dropped
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // No code that holds the lock can leave the queue inconsistent.
        self.0.queue.lock()
    }

    fn put(&self, line: &[u8]) {
        let mut queue = self.queue();
        // After a dropped line all further ones are dropped until there is room: then the count has one place in the
        // text.
        if queue.refused > 0 || queue.text.len() + line.len() > MAX_QUEUED_BYTES {
            queue.refused += 1;
            queue.dropped += 1;
        } else {
            queue.text.extend_from_slice(line);
        }
        self.0.changed.notify_all();
    }

    /// Queued text, and the number of lines dropped after it. Empty after `most` without lines.
    fn take(&self, most: Duration) -> (Vec<u8>, u64) {
        let nothing = |queue: &mut Queue| queue.text.is_empty() && queue.refused == 0;
        let mut queue = self.queue();
        let _ = self.0.changed.wait_while_for(&mut queue, nothing, most);
        queue.writing = Some(Instant::now());
        (std::mem::take(&mut queue.text), std::mem::take(&mut queue.refused))
    }

    fn keep_writing(&self, mut out: impl Write) {
        // Dropped lines that are not reported yet.
        let mut unreported = 0;
        loop {
            let (text, refused) = self.take(if unreported == 0 { Duration::MAX } else { RETRY_INTERVAL });
            let (mut lost, mut result) = (0, tell(&mut out, &mut unreported));
            match result {
                Ok(()) => {
                    let written;
                    (written, result) = write(&mut out, &text);
                    lost += lines(&text[written..]);
                }
                Err(_) => lost += lines(&text),
            }
            unreported += lost + refused;
            if result.is_ok() {
                result = tell(&mut out, &mut unreported);
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

/// Number of dropped lines of this process, for `/metrics`.
pub fn dropped() -> u64 {
    OWN.get().map_or(0, Stderr::dropped)
}

/// The check while writes fail.
pub fn check() -> Option<Check> {
    OWN.get().and_then(Stderr::check)
}

/// The check after recovery.
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

/// Standard error without the lock of the standard library, so that this thread blocks no other writer.
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

/// Writes the number of dropped lines.
fn tell(out: &mut impl Write, unreported: &mut u64) -> io::Result<()> {
    if *unreported > 0 {
        let note = format!("watchglass: {unreported} lines of the log could not be written and were dropped\n");
        write(out, note.as_bytes()).1?;
        *unreported = 0;
    }
    Ok(())
}

/// Writes all, and returns the number of written bytes. It waits for a terminal or pipe that another program has set
/// to non-blocking.
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

    /// Accepts or refuses each write on a signal.
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
        // It hangs now. Lines that fit are queued. After the first one without room all are dropped, even those that
        // would fit.
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

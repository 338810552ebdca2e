//! The log that is being written: one thread only writes, another only syncs.
//!
//! So a hanging disk (a home folder over the network) does not delay ticks to their readers. With a slow sync, writes
//! still reach the page cache. The queue is bounded. Without space in it, data is not logged, and the log is *failing*,
//! as after a failed write. Every write then returns [`Written::Later`] at once, until the owner has started a new file
//! with all data that is in no segment yet. `threads.rs` has the code of the two threads.

mod threads;

use crate::files::{Append, Files, Lock};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum time that [`Log::write`] waits for the system to accept the bytes.
pub const WRITE_TIMEOUT: Duration = Duration::from_millis(200);

/// Maximum time that [`Log::close`] waits for the disk.
pub const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum bytes queued for the disk, without openings.
pub const MAX_QUEUED_BYTES: usize = 16 << 20;

/// Interval at which an idle thread checks for work without a signal.
const IDLE_INTERVAL: Duration = Duration::from_secs(3_600);

/// Result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The system has accepted it: it survives a kill of the process, and after the next sync a power cut.
    Done,
    /// It is queued, or not logged at all; [`Log::health`] shows which.
    Later,
}

/// State of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Reason why the log is failing, in words; none when it is not. While it is, the owner calls [`Log::begin`] from
    /// time to time.
    pub failing: Option<String>,
    /// Time for which it has been failing.
    pub failing_for: Option<Duration>,
    /// Time for which the disk has not answered the current call.
    pub waiting_for: Option<Duration>,
    /// Age of the oldest write that a power cut would lose.
    pub unsynced_for: Option<Duration>,
    /// Number of the current file; 0 before the first.
    pub file: u64,
    /// Bytes of all existing log files.
    pub bytes: u64,
    /// Writes that were not logged, since the start.
    pub dropped: u64,
    /// Failures, retries included, since the start.
    pub failures: u64,
}

enum Job {
    Write(Vec<u8>),
    Begin(u64, Vec<u8>),
}

struct Current {
    file: Arc<dyn Append>,
    number: u64,
    len: u64,
}

#[derive(Default)]
struct WriterState {
    queue: VecDeque<Job>,
    queued: usize,
    /// Jobs queued, and jobs written, since the start; both are incremented for dropped jobs too.
    queued_jobs: u64,
    done_jobs: u64,
    /// Incremented with every failure: a job queued before was not written then, whatever the counters are.
    epoch: u64,
    /// A caller has stopped waiting: later ones do not wait, until the queue is empty.
    behind: bool,
    /// False from a failure until the owner starts a file.
    accepting: bool,
    failing: Option<(Instant, String)>,
    dropped: u64,
    next: u64,
    current: Option<Current>,
    sizes: BTreeMap<u64, u64>,
    remove_through: u64,
    writing_since: Option<Instant>,
    syncing_since: Option<Instant>,
    /// Time of the oldest write that no sync covers yet; and of the oldest that the running sync covers.
    unsynced: Option<Instant>,
    covering: Option<Instant>,
    /// Files that are complete but not synced.
    complete: Vec<Arc<dyn Append>>,
    folder_unsynced: bool,
    /// Held until no thread can write any more, which on a hanging disk is longer than the lifetime of the log.
    lock: Option<Arc<dyn Lock>>,
    closing: bool,
    writer_left: bool,
    syncer_left: bool,
}

impl WriterState {
    /// Stops the log. Jobs for the current file are dropped; a queued new file is still started.
    fn fail(&mut self, why: String) {
        self.epoch += 1;
        let since = self.failing.take().map_or_else(Instant::now, |(since, _)| since);
        self.failing = Some((since, why));
        let keep = self.queue.iter().position(|job| matches!(job, Job::Begin(..)));
        self.accepting = keep.is_some();
        self.drop_jobs(0, keep.unwrap_or(self.queue.len()));
    }

    fn drop_jobs(&mut self, from: usize, to: usize) {
        for job in self.queue.drain(from..to) {
            self.done_jobs += 1;
            if let Job::Write(bytes) = job {
                self.queued -= bytes.len();
                self.dropped += 1;
            }
        }
    }
}

struct Shared {
    files: Arc<dyn Files>,
    every: Duration,
    state: Mutex<WriterState>,
    /// Signals a write, or the end.
    work: Condvar,
    /// Signals a sync, or the end; separate from `work`, so that a write wakes one thread.
    written: Condvar,
    /// Signals finished work.
    done: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, WriterState> {
        // No code that holds the lock can leave it half changed.
        self.state.lock()
    }

    /// Marks data for the next sync.
    fn unsynced(&self, state: &mut WriterState) {
        if state.unsynced.is_none() {
            state.unsynced = Some(Instant::now());
            self.written.notify_all();
        }
    }
}

/// Name of a log file.
pub(crate) fn name(number: u64) -> String {
    format!("log-{number}")
}

/// Number of a log file; none for other names.
pub(crate) fn number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("log-")?;
    digits.parse().ok().filter(|n: &u64| n.to_string() == digits)
}

/// The log that is being written. Dropping it closes it.
pub struct Log {
    shared: Arc<Shared>,
}

impl Log {
    /// Starts the threads. Nothing is written before [`begin`](Self::begin). `sizes` are those of the existing log
    /// files.
    pub(crate) fn start(
        files: Arc<dyn Files>,
        lock: Arc<dyn Lock>,
        sizes: BTreeMap<u64, u64>,
        every: Duration,
    ) -> io::Result<Log> {
        let next = sizes.keys().next_back().map_or(1, |n| n + 1);
        let shared = Arc::new(Shared {
            files,
            every,
            state: Mutex::new(WriterState { next, sizes, lock: Some(lock), ..WriterState::default() }),
            work: Condvar::new(),
            written: Condvar::new(),
            done: Condvar::new(),
        });
        let log = Log { shared };
        for (name, work) in [("log-write", threads::write as fn(&Shared)), ("log-sync", threads::sync)] {
            let shared = log.shared.clone();
            std::thread::Builder::new().name(name.into()).spawn(move || work(&shared))?;
        }
        Ok(log)
    }

    /// Appends records ([`log::put`]) to the current file. Waits at most [`WRITE_TIMEOUT`], and not at all after an
    /// earlier call that timed out.
    pub fn write(&self, records: Vec<u8>) -> Written {
        let mut state = self.shared.lock();
        if state.accepting && state.queued + records.len() > MAX_QUEUED_BYTES {
            state.fail("the disk does not respond".into());
        }
        if !state.accepting {
            state.dropped += 1;
            return Written::Later;
        }
        state.queued += records.len();
        state.queue.push_back(Job::Write(records));
        state.queued_jobs += 1;
        let (ticket, epoch, behind) = (state.queued_jobs, state.epoch, state.behind);
        // The woken thread needs the lock.
        drop(state);
        self.shared.work.notify_one();
        if behind {
            return Written::Later;
        }
        let waits = |s: &mut WriterState| s.done_jobs < ticket && s.epoch == epoch;
        let mut state = self.shared.lock();
        let _ = self.shared.done.wait_while_for(&mut state, waits, WRITE_TIMEOUT);
        state.behind |= waits(&mut state);
        if state.done_jobs >= ticket && state.epoch == epoch { Written::Done } else { Written::Later }
    }

    /// Continues in a new file that begins with these records, and returns its number at once. Later writes go to that
    /// file or a later one.
    pub fn begin(&self, opening: Vec<u8>) -> u64 {
        let mut state = self.shared.lock();
        // This file replaces a queued one that has not started, so the queue stays bounded on a hanging disk.
        if let Some(waiting) = state.queue.iter().position(|job| matches!(job, Job::Begin(..))) {
            let end = state.queue.len();
            state.drop_jobs(waiting, end);
        }
        let number = state.next;
        state.next += 1;
        state.accepting = true;
        state.queue.push_back(Job::Begin(number, opening));
        state.queued_jobs += 1;
        self.shared.work.notify_all();
        number
    }

    /// Removes log files up to this number, in the background. The current file stays.
    pub fn remove_through(&self, number: u64) {
        let mut state = self.shared.lock();
        state.remove_through = state.remove_through.max(number);
        self.shared.work.notify_all();
    }

    /// The present state of the log.
    pub fn health(&self) -> Health {
        let state = self.shared.lock();
        Health {
            failing: state.failing.as_ref().map(|(_, why)| why.clone()),
            failing_for: state.failing.as_ref().map(|(since, _)| since.elapsed()),
            waiting_for: state.writing_since.into_iter().chain(state.syncing_since).min().map(|since| since.elapsed()),
            unsynced_for: state.covering.or(state.unsynced).map(|since| since.elapsed()),
            file: state.current.as_ref().map_or(0, |c| c.number),
            bytes: state.sizes.values().sum(),
            dropped: state.dropped,
            failures: state.epoch,
        }
    }

    /// Bytes queued for the disk.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        let size = |job: &Job| match job {
            Job::Write(bytes) | Job::Begin(_, bytes) => bytes.len(),
        };
        self.shared.lock().queue.iter().map(size).sum()
    }

    /// Writes the queue, marks the log as closed in order, and syncs it; gives up after [`CLOSE_TIMEOUT`]. Returns
    /// whether all of that was done.
    pub fn close(self) -> bool {
        self.finish()
    }

    /// The same; may be called repeatedly.
    pub(crate) fn finish(&self) -> bool {
        let mut state = self.shared.lock();
        state.closing = true;
        self.shared.work.notify_all();
        let runs = |state: &mut WriterState| !(state.writer_left && state.syncer_left);
        let _ = self.shared.done.wait_while_for(&mut state, runs, CLOSE_TIMEOUT);
        state.writer_left && state.syncer_left && state.failing.is_none() && state.unsynced.is_none()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if !self.shared.lock().closing {
            self.finish();
        }
    }
}

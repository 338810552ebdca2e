//! The log that is being written: one thread that only writes, one that only syncs.
//!
//! So a disk that hangs (a home folder over the network) keeps neither a tick from its readers nor, where only the sync
//! is slow, a write from the page cache. What is queued is bounded; what finds no room is not logged, and the log is
//! *failing* then, as after a write that failed: every write answers [`Written::Later`] at once, until the owner has
//! begun a new file with all that is not in a segment yet. `threads.rs` holds what the two do.

mod threads;

use crate::files::{Append, Files, Lock};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long [`Log::write`] waits for the system to take the bytes.
pub const WRITE_TIMEOUT: Duration = Duration::from_millis(200);

/// How long [`Log::close`] waits for the disk.
pub const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The most bytes that wait for the disk, openings aside.
pub const MAX_QUEUED_BYTES: usize = 16 << 20;

/// How often a thread that has nothing to do looks round all the same.
const IDLE_INTERVAL: Duration = Duration::from_secs(3_600);

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The system has it: a killed process does not lose it, and a power cut not after the next sync.
    Done,
    /// It waits, or is not logged at all; [`Log::health`] tells which.
    Later,
}

/// How the log stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Why the log is failing, in words; none when it is not. The owner calls [`Log::begin`] now and then
    /// until it is.
    pub failing: Option<String>,
    /// For how long it has been failing.
    pub failing_for: Option<Duration>,
    /// For how long the disk has not answered the call that is under way.
    pub waiting_for: Option<Duration>,
    /// Age of the oldest write that a power cut would lose.
    pub unsynced_for: Option<Duration>,
    /// Number of the file that is written; 0 before the first.
    pub file: u64,
    /// Bytes of all log files that are kept.
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
struct State {
    queue: VecDeque<Job>,
    queued: usize,
    /// Jobs that were queued, and of these written, since the start; raised for dropped ones too.
    queued_jobs: u64,
    done_jobs: u64,
    /// Raised with every failure: a job queued before is not written then, whatever the counts say.
    epoch: u64,
    /// A caller has given up waiting: those after it do not begin to, until the queue is empty.
    behind: bool,
    /// False from a failure until the owner begins a file.
    accepting: bool,
    failing: Option<(Instant, String)>,
    dropped: u64,
    next: u64,
    current: Option<Current>,
    sizes: BTreeMap<u64, u64>,
    remove_through: u64,
    writing_since: Option<Instant>,
    syncing_since: Option<Instant>,
    /// When the oldest write was that no sync has begun to cover; and the oldest that one is covering.
    unsynced: Option<Instant>,
    covering: Option<Instant>,
    /// Files that are complete but not synced.
    complete: Vec<Arc<dyn Append>>,
    folder_unsynced: bool,
    /// Held until no thread can write any more, which on a disk that hangs is longer than the log lives.
    lock: Option<Arc<dyn Lock>>,
    closing: bool,
    writer_left: bool,
    syncer_left: bool,
}

impl State {
    /// The log stops here. What waits for the present file is dropped; a new file that waits is still begun.
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
    state: Mutex<State>,
    /// Something to write, or to leave for.
    work: Condvar,
    /// Something to sync, or to leave for; apart from `work`, so that a write wakes one thread.
    written: Condvar,
    /// Something was done.
    done: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that holds the lock can leave it half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what a sync has to cover from now on.
    fn unsynced(&self, state: &mut State) {
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
    /// Starts the threads. Nothing is written before [`begin`](Self::begin). `sizes` are the log files that are there.
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
            state: Mutex::new(State { next, sizes, lock: Some(lock), ..State::default() }),
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

    /// Appends records ([`log::put`]) to the present file. Waits at most [`WRITE_TIMEOUT`], and only where no call before it
    /// waited in vain.
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
        // Who is woken wants the lock.
        drop(state);
        self.shared.work.notify_one();
        if behind {
            return Written::Later;
        }
        let waits = |s: &mut State| s.done_jobs < ticket && s.epoch == epoch;
        let state = self.shared.lock();
        let waited = self.shared.done.wait_timeout_while(state, WRITE_TIMEOUT, waits);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.behind |= waits(&mut state);
        if state.done_jobs >= ticket && state.epoch == epoch { Written::Done } else { Written::Later }
    }

    /// Goes on in a new file that begins with these records, and returns its number at once. What is written from now on
    /// is in that file or a later one.
    pub fn begin(&self, opening: Vec<u8>) -> u64 {
        let mut state = self.shared.lock();
        // A file that waits to be begun is made up for by this one: what is queued stays bounded on a disk that hangs.
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

    /// Removes log files up to this number, in the background. The present file stays.
    pub fn remove_through(&self, number: u64) {
        let mut state = self.shared.lock();
        state.remove_through = state.remove_through.max(number);
        self.shared.work.notify_all();
    }

    /// How the log stands now.
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

    /// Bytes that wait for the disk.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        let size = |job: &Job| match job {
            Job::Write(bytes) | Job::Begin(_, bytes) => bytes.len(),
        };
        self.shared.lock().queue.iter().map(size).sum()
    }

    /// Writes what is queued, marks the log as closed in order, and syncs it; gives up after [`CLOSE_TIMEOUT`]. True when all
    /// of that was done.
    pub fn close(self) -> bool {
        self.finish()
    }

    /// The same, as often as it is asked.
    pub(crate) fn finish(&self) -> bool {
        let mut state = self.shared.lock();
        state.closing = true;
        self.shared.work.notify_all();
        let left = self.shared.done.wait_timeout_while(state, CLOSE_TIMEOUT, |s| !(s.writer_left && s.syncer_left));
        let state = left.unwrap_or_else(PoisonError::into_inner).0;
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

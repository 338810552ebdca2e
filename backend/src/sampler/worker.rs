//! The thread pool on which collectors open and read.
//!
//! Waking a thread costs more than most readings. So all parts that were quick the last time make one [`Round`], which
//! one thread reads from its first part to its last. If a round has not ended after [`HELP_AFTER`], a second thread
//! reads the parts that have not begun, and the first keeps only its slow part. A part that was slow the last time is
//! a round of its own. `collectors/src/read/pool.rs` has the other pool of the program and explains why there are two.

use collectors::{CollectError, Collector, Entry, OpenError, OpenErrorKind, Options, Out, Part, Roots};
use parking_lot::{Mutex, MutexGuard};
use shared::catalog::MetricDef;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Time after which another thread continues the round of a busy one.
pub(super) const HELP_AFTER: Duration = Duration::from_millis(10);

/// Duration of a slow reading, microseconds: a quick one does not delay the next one of a round.
pub(super) const SLOW_MICROS: u64 = 4_000;

/// A part's collector, owned by the sampler or by the thread that reads it.
pub(super) struct Sensor {
    collector: Box<dyn Collector>,
    out: Out,
}

impl Sensor {
    pub fn new(part: Part) -> Box<Self> {
        Box::new(Sensor { collector: part.collector, out: Out::default() })
    }

    /// Row and instance of a slot.
    pub fn slot(&self, at: usize) -> Option<(&'static MetricDef, String)> {
        self.out.slot(at)
    }
}

/// A request for one reading.
pub(super) struct Request {
    /// Number of the part to read.
    pub part: usize,
    /// Steady time of the tick.
    pub at: Duration,
    /// Its wall time, milliseconds since the Unix epoch.
    pub wall: i64,
    /// The collector.
    pub sensor: Box<Sensor>,
}

/// One reading.
pub(super) struct ReadingReport {
    /// Number of the part.
    pub part: usize,
    /// By slot; NaN is absent.
    pub values: Vec<f64>,
    /// Slots with another series since the reading before.
    pub new: Vec<(usize, &'static MetricDef, String)>,
    /// The result.
    pub result: Result<(), CollectError>,
    /// Duration, microseconds.
    pub micros: u64,
    /// The collector; none after a panic: it gets no further request.
    pub sensor: Option<Box<Sensor>>,
}

/// Events from the threads to the sampler.
pub(super) enum WorkerEvent {
    /// A collector is open.
    Opened { entry: usize, parts: Vec<Part> },
    /// A collector could not be opened.
    NotOpened { entry: usize, error: OpenError },
    /// A thread is free again, with the reports of its round.
    Free { thread: usize, reports: Vec<ReadingReport> },
}

/// Opens a collector on a separate thread: initializing a driver can take seconds.
pub(super) fn open(
    index: usize,
    entry: &'static Entry,
    options: &Options,
    roots: &Roots,
    events: SyncSender<WorkerEvent>,
) {
    let (options, roots) = (options.clone(), roots.clone());
    let spawned = spawn(format!("open {}", entry.name), move || {
        let opened = catch_unwind(AssertUnwindSafe(|| entry.open_here(&options, &roots)));
        let result = opened.unwrap_or_else(|_| {
            Err(OpenError {
                kind: OpenErrorKind::Failed,
                tried: Vec::new(),
                reason: "it panicked while opening".into(),
                remedy: "report it with the log".into(),
            })
        });
        let event = match result {
            Ok(parts) => WorkerEvent::Opened { entry: index, parts },
            Err(error) => WorkerEvent::NotOpened { entry: index, error },
        };
        // The sampler is gone only when the program ends.
        let _ = events.send(event);
    });
    if let Err(error) = spawned {
        tracing::error!(%error, "cannot start a thread for {}; its series are absent", entry.name);
    }
}

/// Readings of one tick that one thread does, one after the other.
#[derive(Default)]
pub(super) struct Round(Mutex<Readings>);

#[derive(Default)]
struct Readings {
    /// Requests that have not begun.
    waiting: VecDeque<Request>,
    /// Reports that were not taken yet.
    made: Vec<ReadingReport>,
    /// Threads that got the round and have not started: waking one takes time on a busy machine.
    coming: usize,
}

impl Round {
    pub fn new(requests: Vec<Request>) -> Arc<Self> {
        Arc::new(Round(Mutex::new(Readings { waiting: requests.into(), ..Readings::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, Readings> {
        // No code that holds the lock can leave the readings inconsistent.
        self.0.lock()
    }

    /// Whether some requests have not begun.
    pub fn waits(&self) -> bool {
        !self.lock().waiting.is_empty()
    }

    /// Number of requests that have not begun.
    #[cfg(test)]
    pub fn left(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Whether requests wait, and no thread is coming.
    pub fn wants_help(&self) -> bool {
        let readings = self.lock();
        !readings.waiting.is_empty() && readings.coming == 0
    }

    /// Takes the requests that have not begun, and the reports: their thread may be blocked by a later reading.
    pub fn give_up(&self) -> (Vec<Request>, Vec<ReadingReport>) {
        let readings = &mut *self.lock();
        (readings.waiting.drain(..).collect(), std::mem::take(&mut readings.made))
    }

    /// Takes the reports.
    pub fn reports(&self) -> Vec<ReadingReport> {
        std::mem::take(&mut self.lock().made)
    }

    /// Reads until no request is left; returns the reports that were not taken.
    fn run(&self) -> Vec<ReadingReport> {
        let begun = |readings: &mut Readings| {
            readings.coming -= 1;
            readings.waiting.pop_front()
        };
        let mut next = begun(&mut self.lock());
        while let Some(request) = next {
            let report = read(request);
            let readings = &mut *self.lock();
            readings.made.push(report);
            next = readings.waiting.pop_front();
        }
        self.reports()
    }
}

/// The threads for readings.
pub(super) struct ThreadPool {
    threads: Vec<SyncSender<Arc<Round>>>,
    /// Idle threads; the last was busy last.
    free: Vec<usize>,
    events: SyncSender<WorkerEvent>,
}

impl ThreadPool {
    pub fn new(events: SyncSender<WorkerEvent>) -> Self {
        ThreadPool { threads: Vec::new(), free: Vec::new(), events }
    }

    /// Gives a round to a thread, or a helper to the one that reads it.
    ///
    /// # Errors
    /// All are busy, and the system grants no more.
    pub fn start(&mut self, round: &Arc<Round>) -> io::Result<()> {
        let thread = match self.free.pop() {
            Some(thread) => thread,
            None => self.add_thread()?,
        };
        round.lock().coming += 1;
        // An idle thread waits for it.
        self.threads[thread].try_send(round.clone()).map_err(|_| {
            round.lock().coming -= 1;
            io::ErrorKind::BrokenPipe.into()
        })
    }

    /// A thread has finished its round.
    pub fn freed(&mut self, thread: usize) {
        self.free.push(thread);
    }

    /// Number of threads.
    #[cfg(test)]
    pub fn size(&self) -> usize {
        self.threads.len()
    }

    /// Adds a thread. It ends with the pool.
    fn add_thread(&mut self) -> io::Result<usize> {
        let (thread, events) = (self.threads.len(), self.events.clone());
        let (give, given) = sync_channel::<Arc<Round>>(1);
        spawn(format!("read {thread}"), move || {
            while let Ok(round) = given.recv() {
                if events.send(WorkerEvent::Free { thread, reports: round.run() }).is_err() {
                    return;
                }
            }
        })?;
        self.threads.push(give);
        Ok(thread)
    }
}

fn read(Request { part, at, wall, mut sensor }: Request) -> ReadingReport {
    sensor.out.begin(at);
    sensor.out.stamp(wall);
    let begin = Instant::now();
    let read = catch_unwind(AssertUnwindSafe(|| sensor.collector.collect(&mut sensor.out)));
    let micros = begin.elapsed().as_micros() as u64;
    let ended = read.is_err();
    let result = read.unwrap_or_else(|_| {
        Err(CollectError::failed("it panicked and was stopped; see the log, and restart Watchglass to try again"))
    });
    let new = sensor.out.news();
    let values = sensor.out.values().to_vec();
    ReadingReport { part, values, new, result, micros, sensor: (!ended).then_some(sensor) }
}

fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    // Collectors need little stack; a machine with 500 mounts should not reserve a gigabyte.
    let thread = std::thread::Builder::new().name(name.chars().take(15).collect()).stack_size(256 * 1024);
    thread.spawn(work).map(drop)
}

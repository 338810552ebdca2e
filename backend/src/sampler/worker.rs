//! The threads on which collectors open and read.

use collectors::{CollectError, Entry, OpenError, OpenErrorKind, Options, Out, Part, Roots};
use shared::catalog::MetricDef;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Asks for one reading.
pub(super) struct Request {
    /// Steady time of the tick.
    pub at: Duration,
    /// Its wall time, milliseconds since the Unix epoch.
    pub wall: i64,
}

/// One reading.
pub(super) struct Report {
    /// Whose.
    pub part: usize,
    /// By slot; NaN is absent.
    pub values: Vec<f64>,
    /// Slots that appeared with this reading.
    pub new: Vec<(&'static MetricDef, String)>,
    /// How it went.
    pub result: Result<(), CollectError>,
    /// How long it took.
    pub micros: u64,
    /// The last one: the collector panicked, and its thread ends.
    pub ended: bool,
}

/// What the threads tell the sampler.
pub(super) enum Event {
    /// A collector is open.
    Opened { entry: usize, parts: Vec<Part> },
    /// A collector could not be opened.
    NotOpened { entry: usize, error: OpenError },
    /// A reading.
    Report(Report),
}

/// Opens a collector on a thread of its own: initialising a driver can take seconds.
pub(super) fn open(index: usize, entry: &'static Entry, options: &Options, roots: &Roots, events: SyncSender<Event>) {
    let (options, roots) = (options.clone(), roots.clone());
    spawn(format!("open {}", entry.name), move || {
        let opened = catch_unwind(AssertUnwindSafe(|| (entry.open)(&options, &roots)));
        let result = opened.unwrap_or_else(|_| {
            Err(OpenError {
                kind: OpenErrorKind::Failed,
                tried: Vec::new(),
                reason: "it panicked while opening".into(),
                remedy: "report it, with the log".into(),
            })
        });
        let event = match result {
            Ok(parts) => Event::Opened { entry: index, parts },
            Err(error) => Event::NotOpened { entry: index, error },
        };
        // The sampler is gone only when the program ends.
        let _ = events.send(event);
    });
}

/// Starts a part's thread and returns where to ask it. The thread ends when the sampler does, or when the collector panics.
pub(super) fn start(index: usize, name: &str, mut part: Part, events: SyncSender<Event>) -> SyncSender<Request> {
    let (requests, asked) = sync_channel::<Request>(1);
    spawn(name.to_string(), move || {
        let mut out = Out::default();
        let mut known = 0;
        while let Ok(request) = asked.recv() {
            out.begin(request.at);
            out.stamp(request.wall);
            let begin = Instant::now();
            let read = catch_unwind(AssertUnwindSafe(|| part.collector.collect(&mut out)));
            let micros = begin.elapsed().as_micros() as u64;
            let ended = read.is_err();
            let result = read.unwrap_or_else(|_| {
                Err(CollectError::failed("it panicked and was stopped; the log says where; restart to try again"))
            });
            let new: Vec<_> = out.slots(known).collect();
            known += new.len();
            let report = Report { part: index, values: out.values().to_vec(), new, result, micros, ended };
            if events.send(Event::Report(report)).is_err() || ended {
                return;
            }
        }
    });
    requests
}

fn spawn(name: String, work: impl FnOnce() + Send + 'static) {
    // Collectors need little stack; a machine with 500 mounts should not reserve a gigabyte.
    let thread = std::thread::Builder::new().name(name.chars().take(15).collect()).stack_size(256 * 1024);
    if let Err(error) = thread.spawn(work) {
        tracing::error!(%error, "cannot start a thread for {name}; its series are absent");
    }
}

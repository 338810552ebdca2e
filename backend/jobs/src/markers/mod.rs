//! Markers: what people and notebooks say of an instant, kept as records of the machine, and what is made of them: the runs
//! of a notebook's cells, and how a kernel ended. [`marker`] is what one is, [`Markers`] takes them in.

pub mod cells;
pub mod ended;
pub mod json;
pub mod marker;
pub mod steps;
pub mod words;

use cells::Cell;
use inventory::{Kernel, Kernels, NoKernel};
use parking_lot::Mutex;
use shared::answer::markers::{CellPhase, Marker};
use shared::new_marker::{BadMarker, MAX_NEW_MARKERS, MarkerSender, NewMarker};
use shared::wire::SourceId;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use stream::live::Live;
use system::user::own_name;

/// The kind of a record that is a marker.
pub const RECORD: &str = "marker";
/// Markers a second of one kernel, or of all who name none; as many as are sent at once may come together.
const PER_SECOND: f64 = 50.0;
/// Markers a second of one training job, whose ranks may all send some.
const RUN_PER_SECOND: f64 = 100.0;
/// Markers an hour of one kernel or training job.
const PER_HOUR: f64 = 10_000.0;
/// Kernels that are read at once for their markers, a second.
const READINGS_PER_SECOND: f64 = 10.0;
/// A marker that is older came late, and reading the kernel now would say nothing of it, milliseconds.
const FRESH_MS: i64 = 2_000;
/// Of how many markers of a kernel it is known that they came.
const MAX_SEEN: usize = 4_096;
/// The most markers that are read for the runs of cells.
const MAX_READ: usize = 10_000;
/// How long before the span a cell may have begun that runs in it, milliseconds.
const MAX_CELL_MS: i64 = 24 * 3_600_000;
/// How much too late a kernel may seem to have begun: the system says it in steps, by another clock than markers have,
/// milliseconds.
const CLOCK_STEPS_MS: i64 = 100;
/// Kernels of which something is remembered.
const MAX_KERNELS: usize = 256;

/// What became of markers that were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakenMarkers {
    /// Stored now, or stored before when they were sent the first time.
    pub taken: u64,
    /// Left out: too many in too short a time.
    pub dropped: u64,
}

/// Why markers are not taken.
#[derive(Clone, Debug, PartialEq)]
pub enum RefusedMarkers {
    /// One of them, by its position, is none.
    Bad(usize, BadMarker),
    /// One of them names a process that is no kernel.
    Process(usize, NoKernel),
    /// They cannot be stored.
    Store(String),
}

impl RefusedMarkers {
    /// Whether it is worth while to send them again.
    pub fn is_for_now(&self) -> bool {
        matches!(self, RefusedMarkers::Store(_) | RefusedMarkers::Process(_, NoKernel::Early))
    }

    /// Whether who asks may not name that process.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, RefusedMarkers::Process(_, NoKernel::OtherUser))
    }
}

impl fmt::Display for RefusedMarkers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RefusedMarkers::Bad(at, why) => write!(f, "marker {at}: {why}"),
            RefusedMarkers::Process(at, why) => write!(f, "marker {at}: {why}"),
            RefusedMarkers::Store(why) => f.write_str(why),
        }
    }
}

/// So much in a second, and at most so much at once.
#[derive(Debug)]
struct Bucket {
    left: f64,
    at: Duration,
}

impl Bucket {
    fn take(&mut self, now: Duration, per_second: f64, most: f64) -> bool {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        (self.left, self.at) = ((self.left + passed * per_second).min(most), now);
        let some = self.left >= 1.0;
        if some {
            self.left -= 1.0;
        }
        some
    }
}

/// What is remembered of a kernel, of a training job, or of all who name none.
#[derive(Debug)]
struct Heard {
    bucket: Bucket,
    hour: Bucket,
    seen: HashSet<u64>,
    order: VecDeque<u64>,
    /// The cell that began last and has not ended.
    open: Option<Marker>,
    /// When the kernel told of a cell itself last, milliseconds since the Unix epoch.
    own: Option<i64>,
    /// When it was heard last.
    at: Duration,
}

impl Heard {
    fn new(now: Duration) -> Self {
        let bucket = Bucket { left: MAX_NEW_MARKERS as f64, at: now };
        let hour = Bucket { left: PER_HOUR, at: now };
        Heard { bucket, hour, seen: HashSet::new(), order: VecDeque::new(), open: None, own: None, at: now }
    }

    /// Whether a marker is new.
    fn note(&mut self, marker: &Marker) -> bool {
        let Some(key) = marker.key() else { return true };
        if !self.seen.insert(key) {
            return false;
        }
        self.order.push_back(key);
        if self.order.len() > MAX_SEEN
            && let Some(oldest) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
        }
        true
    }

    fn follow(&mut self, marker: &Marker) {
        if marker.phase.is_some() && marker.by.is_none() {
            self.own = self.own.max(Some(marker.begun));
        }
        match marker.phase {
            Some(CellPhase::Start) => self.open = Some(marker.clone()),
            Some(CellPhase::End) => self.open = None,
            None => {}
        }
    }
}

#[derive(Debug, Default)]
struct State {
    kernels: HashMap<String, Heard>,
    readings: Option<Bucket>,
    dropped: u64,
}

/// Takes markers in.
#[derive(Debug, Default)]
pub struct Markers(Mutex<State>);

impl Markers {
    /// Takes markers of a machine. A kernel whose cell begins or ends is read at once, which may take a moment: not where
    /// others wait.
    ///
    /// # Errors
    /// [`RefusedMarkers`]; then none was taken.
    pub fn take(&self, live: &Live, source: SourceId, new: Vec<NewMarker>) -> Result<TakenMarkers, RefusedMarkers> {
        let kernels = live.source(source).kernels.clone();
        let (wall, oldest) = (live.clock.wall(), live.clock.wall().saturating_sub(live.retention));
        let mut known = HashMap::new();
        let mut markers = Vec::with_capacity(new.len());
        for (at, new) in new.into_iter().enumerate() {
            let sender = match (&new.kernel, new.pid) {
                (None, Some(pid)) => {
                    sender(&kernels, &mut known, pid).map_err(|why| RefusedMarkers::Process(at, why))?
                }
                _ => MarkerSender::default(),
            };
            markers.push(new.checked(sender, wall).map_err(|why| RefusedMarkers::Bad(at, why))?);
        }
        let mut taken = TakenMarkers::default();
        for (t, mut marker) in markers.into_iter().filter(|(t, _)| *t >= oldest) {
            let kernel = marker.kernel.as_deref().and_then(|id| kernels.get(id));
            match self.admit(live, source, &marker, kernel.as_ref()) {
                Admitted::Known => taken.taken += 1,
                Admitted::TooMany => taken.dropped += 1,
                Admitted::New { read } => {
                    let own = marker.kernel.as_deref().filter(|_| read && (wall - t).abs() <= FRESH_MS);
                    if let Some(sample) = own.map(|id| kernels.read(id)) {
                        marker::take_sample(&mut marker, sample, kernel);
                    }
                    let body = serde_json::to_vec(&marker).map_err(|error| RefusedMarkers::Store(error.to_string()))?;
                    let stored = live.append_record(source, t, RECORD, body);
                    stored.map_err(|why| RefusedMarkers::Store(why.to_string()))?;
                    taken.taken += 1;
                }
            }
        }
        if taken.taken > 0 {
            live.announce(&[source]);
        }
        Ok(taken)
    }

    fn admit(&self, live: &Live, source: SourceId, marker: &Marker, kernel: Option<&Kernel>) -> Admitted {
        let now = live.clock.steady();
        let mut state = self.0.lock();
        let State { kernels, readings, dropped } = &mut *state;
        let heard = heard(kernels, live, source, &marker.whose());
        heard.at = now;
        let lives = |own: i64| kernel.is_none_or(|kernel| kernel.end.is_none() && had_begun(kernel, own));
        if marker.by.is_some() && heard.own.is_some_and(lives) {
            // It tells of its cells itself, and knows better.
            return Admitted::Known;
        }
        if marker.key().is_some_and(|key| heard.seen.contains(&key)) {
            return Admitted::Known;
        }
        let per_second = if marker.run.is_some() { RUN_PER_SECOND } else { PER_SECOND };
        if !heard.bucket.take(now, per_second, MAX_NEW_MARKERS as f64)
            || !heard.hour.take(now, PER_HOUR / 3_600.0, PER_HOUR)
        {
            *dropped += 1;
            return Admitted::TooMany;
        }
        heard.note(marker);
        heard.follow(marker);
        let readings = readings.get_or_insert(Bucket { left: READINGS_PER_SECOND, at: now });
        let read = marker.phase.is_some() && readings.take(now, READINGS_PER_SECOND, READINGS_PER_SECOND);
        Admitted::New { read }
    }

    /// The cell that a kernel runs, as far as markers say.
    pub fn open(&self, live: &Live, source: SourceId, kernel: &str) -> Option<Marker> {
        let mut state = self.0.lock();
        heard(&mut state.kernels, live, source, kernel).open.clone()
    }

    /// One was left out before it came here.
    pub fn drop_one(&self) {
        self.0.lock().dropped += 1;
    }

    /// Markers that were left out since the start.
    pub fn dropped(&self) -> u64 {
        self.0.lock().dropped
    }
}

enum Admitted {
    /// It is new; whether its kernel is to be read.
    New {
        read: bool,
    },
    /// It came before.
    Known,
    TooMany,
}

/// Whether a kernel had begun at an instant: one that is started again keeps its id.
fn had_begun(kernel: &Kernel, t: i64) -> bool {
    kernel.started.is_none_or(|started| t >= started - CLOCK_STEPS_MS)
}

/// The process of a PID: a kernel, or any other program of this user. A process that has ended by now has no PID any more.
fn sender(kernels: &Kernels, known: &mut HashMap<u32, MarkerSender>, pid: u32) -> Result<MarkerSender, NoKernel> {
    if let Some(sender) = known.get(&pid) {
        return Ok(sender.clone());
    }
    let sender = match kernels.of_process(pid) {
        Ok(id) => MarkerSender { kernel: Some(id), ..MarkerSender::default() },
        Err(NoKernel::NotOne | NoKernel::Full) => {
            MarkerSender { pid: Some(pid), program: kernels.program(pid), user: own_name(), kernel: None }
        }
        Err(NoKernel::NoProcess | NoKernel::Off) => MarkerSender::default(),
        Err(why @ (NoKernel::OtherUser | NoKernel::Early)) => return Err(why),
    };
    known.insert(pid, sender.clone());
    Ok(sender)
}

/// What is remembered of a kernel or a run, as [`Marker::whose`] names it; of one that was not heard yet, what the newest
/// records say.
fn heard<'a>(all: &'a mut HashMap<String, Heard>, live: &Live, source: SourceId, whose: &str) -> &'a mut Heard {
    if !all.contains_key(whose) && all.len() >= MAX_KERNELS {
        let oldest = all.iter().min_by_key(|(_, heard)| heard.at).map(|(id, _)| id.clone());
        oldest.map(|id| all.remove(&id));
    }
    all.entry(whose.to_string()).or_insert_with(|| recalled(live, source, whose))
}

/// What the newest records say of a kernel or a run.
fn recalled(live: &Live, source: SourceId, whose: &str) -> Heard {
    let mut heard = Heard::new(live.clock.steady());
    let records = live.store().records_since(source, 0);
    for placed in records {
        if let Some(marker) = marker::of_record(&placed.record)
            && marker.whose() == whose
        {
            heard.note(&marker);
            heard.follow(&marker);
        }
    }
    heard
}

/// Markers of a machine between two times, milliseconds since the Unix epoch, in order of time: the newest `most`. It may
/// read the disk.
pub fn between(
    live: &Live,
    source: SourceId,
    span: (i64, i64),
    most: usize,
    fits: impl Fn(&Marker) -> bool,
) -> Vec<(u64, i64, Marker)> {
    let Some(records) = live.store().records(source, span.0, span.1) else { return Vec::new() };
    let mut found = VecDeque::new();
    for record in records.flatten() {
        if let Some(marker) = marker::of_record(&record).filter(|marker| fits(marker)) {
            found.push_back((record.n, record.t, marker));
            if found.len() > 2 * most.max(1_000) {
                found.make_contiguous().sort_by_key(|(n, t, _)| (*t, *n));
                found.drain(..found.len() - most);
            }
        }
    }
    let mut found = Vec::from(found);
    found.sort_by_key(|(n, t, _)| (*t, *n));
    found.drain(..found.len().saturating_sub(most));
    found
}

/// Runs of cells of a machine that lie in a span, with what was sampled meanwhile: the newest `most`, the newest first; of one
/// kernel, or of all. It may read the disk.
pub fn cells_between(
    live: &Live,
    source: SourceId,
    kernel: Option<&str>,
    (from, to): (i64, i64),
    most: usize,
) -> Vec<Cell> {
    let now = live.clock.wall();
    let span = (from.saturating_sub(MAX_CELL_MS), to.saturating_add(MAX_CELL_MS));
    let fits = |marker: &Marker| {
        marker.phase.is_some() && kernel.is_none_or(|kernel| marker.kernel.as_deref() == Some(kernel))
    };
    let markers = between(live, source, span, MAX_READ, fits);
    let kernels = live.source(source).kernels.clone();
    let ended = |id: &str| kernels.get(id).and_then(|kernel| kernel.end).map(|end| end.at);
    let runs = cells::runs(&markers, now, ended).into_iter().map(|(cell, ..)| cell);
    let within: Vec<Cell> = runs.filter(|cell| cell.from <= to && cell.to.unwrap_or(now) >= from).collect();
    let skip = within.len().saturating_sub(most);
    let mut by_kernel: HashMap<String, Vec<Cell>> = HashMap::new();
    within.into_iter().skip(skip).for_each(|cell| by_kernel.entry(cell.kernel.clone()).or_default().push(cell));
    by_kernel.values_mut().for_each(|cells| cells::measure(live, source, cells, now));
    let mut all: Vec<Cell> = by_kernel.into_values().flatten().collect();
    all.sort_by_key(|cell| std::cmp::Reverse(cell.from));
    all
}

/// The machine that markers sent here are of: that whose kernels are seen here, else the first.
pub fn own_source(live: &Arc<Live>) -> Option<SourceId> {
    let sources = live.store().sources();
    let seen = sources.iter().find(|source| live.source(source.id).kernels.are_looked_for());
    seen.or(sources.first()).map(|source| source.id)
}

#[cfg(test)]
mod tests;

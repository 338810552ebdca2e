//! Markers: notes of people and notebooks about an instant, stored as records of the machine. Runs of notebook cells
//! and the ends of kernels are derived from them. [`marker`] reads one, [`Markers`] receives them.

pub mod cells;
pub mod ended;
pub mod json;
pub mod marker;
pub mod steps;
pub mod words;

use crate::values::place_of;
use cells::Cell;
use inventory::{Kernel, NoKernel};
use parking_lot::Mutex;
use shared::answer::markers::{CellPhase, Marker};
use shared::catalog::job::ValueSender;
use shared::new_marker::{BadMarker, MAX_NEW_MARKERS, MarkerSender, NewMarker};
use shared::wire::SourceId;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use stream::live::Live;
use system::user::own_name;

/// Kind of the records that are markers.
pub const RECORD: &str = "marker";
/// Markers per second of one kernel, or of all senders that are none; the burst is [`MAX_NEW_MARKERS`].
const PER_SECOND: f64 = 50.0;
/// Markers per second of one training job, whose ranks may all send some.
const RUN_PER_SECOND: f64 = 100.0;
/// Markers per hour of one kernel or training job, or of all other senders.
const PER_HOUR: f64 = 10_000.0;
/// Markers per second of all requests to hubs together, and their burst: a request chooses its run freely.
const REQUESTS_PER_SECOND: f64 = 100.0;
const REQUESTS_BURST: f64 = 1_000.0;
/// Restorations per second of the state of a kernel or a training job, and their burst: each reads all newest records.
const RECALLS_PER_SECOND: f64 = 2.0;
const RECALLS_BURST: f64 = 20.0;
/// Kernel reads per second that markers trigger.
const READINGS_PER_SECOND: f64 = 10.0;
/// Maximum age of a marker that triggers a read of its kernel: for an older one the read would be useless,
/// milliseconds.
const FRESH_MS: i64 = 2_000;
/// Remembered markers per kernel, to detect duplicates.
const MAX_SEEN: usize = 4_096;
/// Maximum number of markers that are read for runs of cells.
const MAX_READ: usize = 10_000;
/// Maximum time before a span at which a cell that runs in it may have begun, milliseconds.
const MAX_CELL_MS: i64 = 24 * 3_600_000;
/// Tolerance of a kernel's start time: the system reports it in steps, by another clock than that of markers,
/// milliseconds.
const CLOCK_STEPS_MS: i64 = 100;
/// Maximum number of kernels in memory.
const MAX_KERNELS: usize = 256;

/// Result of a request with markers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakenMarkers {
    /// Stored now, or already stored from an earlier request.
    pub taken: u64,
    /// Dropped by the rate limit.
    pub dropped: u64,
}

/// Reason why markers are refused.
#[derive(Clone, Debug, PartialEq)]
pub enum RefusedMarkers {
    /// The marker at this position is invalid.
    Bad(usize, BadMarker),
    /// The process of the marker at this position cannot be named now, or not by this sender.
    Process(usize, NoKernel),
    /// They cannot be stored.
    Store(String),
}

impl RefusedMarkers {
    /// Whether the sender should retry.
    pub fn is_for_now(&self) -> bool {
        matches!(self, RefusedMarkers::Store(_) | RefusedMarkers::Process(_, NoKernel::Early))
    }

    /// Whether the sender may not name that process.
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

/// Token bucket: a rate per second, and a maximum burst.
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

/// State of a kernel, of a training job, or of all senders that name none.
#[derive(Debug)]
struct Heard {
    bucket: Bucket,
    hour: Bucket,
    seen: HashSet<u64>,
    order: VecDeque<u64>,
    /// The last started cell that has not ended.
    open: Option<Marker>,
    /// Time of the last marker that the kernel itself sent about a cell, milliseconds since the Unix epoch.
    own: Option<i64>,
    /// Time of the last marker.
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
struct MarkerState {
    kernels: HashMap<String, Heard>,
    readings: Option<Bucket>,
    requests: Option<Bucket>,
    recalls: Option<Bucket>,
    dropped: u64,
}

/// Receives markers.
#[derive(Debug, Default)]
pub struct Markers(Mutex<MarkerState>);

impl Markers {
    /// Takes markers of a machine. It may block for a moment, because a kernel whose cell begins or ends is read at
    /// once.
    ///
    /// # Errors
    /// [`RefusedMarkers`]; then none is stored.
    pub fn take(&self, live: &Live, source: SourceId, new: Vec<NewMarker>) -> Result<TakenMarkers, RefusedMarkers> {
        self.take_sent(live, source, new, None)
    }

    /// Takes markers of a machine; `sent_by` is the person or key whose request to a hub they are.
    ///
    /// # Errors
    /// [`RefusedMarkers`]; then none is stored.
    pub fn take_sent(
        &self,
        live: &Live,
        source: SourceId,
        new: Vec<NewMarker>,
        sent_by: Option<&str>,
    ) -> Result<TakenMarkers, RefusedMarkers> {
        let kernels = live.source(source).kernels.clone();
        let (wall, oldest) = (live.clock.wall(), live.clock.wall().saturating_sub(live.retention));
        let mut known = HashMap::new();
        let mut markers = Vec::with_capacity(new.len());
        for (at, new) in new.into_iter().enumerate() {
            let (sender, place) = match (&new.kernel, new.pid) {
                (None, Some(pid)) => {
                    process_of(live, source, &mut known, pid).map_err(|why| RefusedMarkers::Process(at, why))?
                }
                _ => (MarkerSender { sent_by: sent_by.map(String::from), ..MarkerSender::default() }, None),
            };
            let (new, sender) = match place.filter(|_| new.run.is_none()) {
                // As if it came over the socket of runs.
                Some(place) => (NewMarker { run: place.run, rank: place.rank, ..new }, MarkerSender::default()),
                None => (new, sender),
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
        let MarkerState { kernels, readings, requests, recalls, dropped } = &mut *state;
        let heard = state_of_writer((kernels, recalls), live, source, &marker.whose());
        heard.at = now;
        let lives = |own: i64| kernel.is_none_or(|kernel| kernel.end.is_none() && had_begun(kernel, own));
        if marker.by.is_some() && heard.own.is_some_and(lives) {
            // The kernel itself reports its cells, and more exactly.
            return Admitted::Known;
        }
        if marker.key().is_some_and(|key| heard.seen.contains(&key)) {
            return Admitted::Known;
        }
        let per_second = if marker.run.is_some() { RUN_PER_SECOND } else { PER_SECOND };
        let requests = requests.get_or_insert(Bucket { left: REQUESTS_BURST, at: now });
        if (marker.sent_by.is_some() && !requests.take(now, REQUESTS_PER_SECOND, REQUESTS_BURST))
            || !heard.bucket.take(now, per_second, MAX_NEW_MARKERS as f64)
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

    /// The cell that a kernel runs, according to its markers.
    pub fn open(&self, live: &Live, source: SourceId, kernel: &str) -> Option<Marker> {
        let mut state = self.0.lock();
        let MarkerState { kernels, recalls, .. } = &mut *state;
        state_of_writer((kernels, recalls), live, source, kernel).open.clone()
    }

    /// Counts a marker that was dropped before it came here.
    pub fn drop_one(&self) {
        self.0.lock().dropped += 1;
    }

    /// Markers dropped since the start.
    pub fn dropped(&self) -> u64 {
        self.0.lock().dropped
    }
}

enum Admitted {
    /// New; whether its kernel is to be read.
    New {
        read: bool,
    },
    /// A duplicate.
    Known,
    TooMany,
}

/// Whether a kernel had begun at an instant: a restarted kernel keeps its ID.
fn had_begun(kernel: &Kernel, t: i64) -> bool {
    kernel.started.is_none_or(|started| t >= started - CLOCK_STEPS_MS)
}

/// A process that sends markers, and its place in a run.
type MarkerProcess = (MarkerSender, Option<ValueSender>);

/// The process of a PID: a kernel, or another program of this user, which may be below a run.
fn process_of(
    live: &Live,
    source: SourceId,
    known: &mut HashMap<u32, MarkerProcess>,
    pid: u32,
) -> Result<MarkerProcess, NoKernel> {
    if let Some(process) = known.get(&pid) {
        return Ok(process.clone());
    }
    let kernels = live.source(source).kernels.clone();
    let sender = match kernels.of_process(pid) {
        Ok(id) => MarkerSender { kernel: Some(id), ..MarkerSender::default() },
        Err(NoKernel::NotOne | NoKernel::Full) => {
            MarkerSender { pid: Some(pid), program: kernels.program(pid), user: own_name(), ..MarkerSender::default() }
        }
        Err(NoKernel::NoProcess | NoKernel::Off) => MarkerSender::default(),
        Err(why @ (NoKernel::OtherUser | NoKernel::Early)) => return Err(why),
    };
    let place = if sender.kernel.is_none() { place_of(live, source, pid) } else { None };
    known.insert(pid, (sender.clone(), place.clone()));
    Ok((sender, place))
}

/// State of a kernel or a run, by the name in [`Marker::whose`]; at its first marker, restored from the newest records
/// unless many were restored just now.
fn state_of_writer<'a>(
    (all, recalls): (&'a mut HashMap<String, Heard>, &mut Option<Bucket>),
    live: &Live,
    source: SourceId,
    whose: &str,
) -> &'a mut Heard {
    if !all.contains_key(whose) && all.len() >= MAX_KERNELS {
        let oldest = all.iter().min_by_key(|(_, heard)| heard.at).map(|(id, _)| id.clone());
        oldest.map(|id| all.remove(&id));
    }
    all.entry(whose.to_string()).or_insert_with(|| {
        let now = live.clock.steady();
        let recalls = recalls.get_or_insert(Bucket { left: RECALLS_BURST, at: now });
        match recalls.take(now, RECALLS_PER_SECOND, RECALLS_BURST) {
            true => recalled(live, source, whose),
            false => Heard::new(now),
        }
    })
}

/// State of a kernel or a run, restored from the newest records.
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

/// Markers of a machine between two times, milliseconds since the Unix epoch, sorted by time: the newest `most`. It may
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

/// Runs of cells in a span, with their samples: the newest `most`, newest first; of one kernel, or of all. It may read
/// the disk.
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

/// The machine of markers that are sent to this process: the one whose kernels are watched here, else the first.
pub fn own_source(live: &Arc<Live>) -> Option<SourceId> {
    let sources = live.store().sources();
    let seen = sources.iter().find(|source| live.source(source.id).kernels.are_looked_for());
    seen.or(sources.first()).map(|source| source.id)
}

#[cfg(test)]
mod tests;

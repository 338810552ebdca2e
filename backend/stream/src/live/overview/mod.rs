//! The overview of a fleet: a source composed of sources, for pages that show a thousand machines.
//!
//! A series is a row of [`fleet`](shared::catalog::fleet) in a cell. A cell is a source or one of its GPUs. Each
//! [beat](Overview::beat) makes one tick of the newest values and encodes it once. Readers share the bytes, and hold
//! only their [position](OverviewPlace). A reader that joins, or missed some beats, gets a keyframe.

mod cells;
mod elsewhere;
mod values;

pub use elsewhere::CellsElsewhere;

use super::Live;
use bytes::Bytes;
use cells::Cells;
use parking_lot::{Mutex, MutexGuard};
use shared::catalog::fleet::{FleetRow, Grain, rows};
use shared::scope::Scope;
use shared::tick::TickState;
use shared::wire::{Cell, ServerMessage, encode_overview};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::watch;
use values::CellValues;

/// Maximum number of cells of an overview of GPUs.
pub const MAX_GPU_CELLS: usize = 10_240;
/// Maximum number of overviews of one grain updated at every beat. More of them, of other scopes, are updated rarely.
const MAX_OVERVIEWS: usize = 64;
/// Number of beats whose frames are kept: a reader further behind gets a keyframe.
const KEPT_BEATS: usize = 8;
/// Up to this many sources there is a beat every second, above it one every two seconds.
const MANY_SOURCES: usize = 256;
/// Cells per message: far below [`shared::wire::MAX_MESSAGE`], whatever the length of their texts.
const CELLS_A_MESSAGE: usize = 4_096;

/// An overview, shared by all readers that may see the same sources.
pub struct Overview {
    scope: Scope,
    grain: Grain,
    /// Updated rarely, because there are many others.
    seldom: bool,
    /// Restricted to the sources that this hub holds.
    own: bool,
    maker: Mutex<Maker>,
    shown: Mutex<Shown>,
    beats: watch::Sender<u64>,
}

/// State for making the ticks.
#[derive(Default)]
struct Maker {
    cells: Cells,
    values: CellValues,
    state: TickState,
}

/// State that readers read.
#[derive(Default)]
struct Shown {
    /// Oldest first.
    frames: VecDeque<BeatFrame>,
    /// The state after the newest.
    keyframe: Bytes,
    /// Each with the version of its last change.
    cells: Arc<Vec<(u64, Cell)>>,
    version: u64,
    left_out: u32,
    interval: Duration,
}

/// The frame of one beat, as a whole message.
struct BeatFrame {
    seq: u64,
    message: Bytes,
    /// Offset of the frame in the message.
    start: usize,
}

/// Position of a reader in an overview.
#[derive(Default)]
pub struct OverviewPlace {
    seq: u64,
    /// Version of the cells.
    version: u64,
}

impl Overview {
    fn new(grain: Grain, scope: Scope, seldom: bool) -> Self {
        let (maker, shown, beats) = (Mutex::default(), Mutex::default(), watch::Sender::default());
        Overview { scope, grain, seldom, own: false, maker, shown, beats }
    }

    /// An overview of the sources that this hub holds.
    pub(super) fn own(grain: Grain) -> Self {
        Overview { own: true, ..Self::new(grain, Scope::All, false) }
    }

    /// Kind of its cells.
    pub fn grain(&self) -> Grain {
        self.grain
    }

    /// Incremented with each beat.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.beats.subscribe()
    }

    pub(super) fn wake(&self) {
        self.beats.send_modify(|n| *n += 1);
    }

    /// Time until the next beat. It depends on the number of sources.
    pub fn interval(&self) -> Duration {
        self.shown().interval
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock()
    }

    /// Makes a tick of the newest values. Takes milliseconds with a thousand sources.
    pub fn beat(&self, live: &Live) {
        live.find_late();
        let mut sources = live.store().sources();
        sources.retain(|source| self.scope.sees(&source.key) && (!self.own || live.holds(source.id)));
        let interval = match sources.len() {
            _ if self.seldom => Duration::from_secs(10),
            0..=MANY_SOURCES => Duration::from_secs(1),
            _ => Duration::from_secs(2),
        };
        let mut maker = self.maker.lock();
        let Maker { cells, values, state } = &mut *maker;
        cells.begin();
        let rows = rows(self.grain);
        values.resize(state.steps().len());
        for source in &sources {
            values.read_source(live, source, self.grain, cells);
        }
        let hides = |row: &FleetRow| row.of.iter().any(|metric| self.scope.hides(metric.chart));
        rows.iter().enumerate().filter(|(_, row)| hides(row)).for_each(|(at, _)| values.hide(at, rows.len()));
        // Cells added in this beat.
        let missing = cells.len() * rows.len() - state.steps().len();
        state.extend(rows.iter().cycle().take(missing).map(|row| row.steps));
        for cell in cells.renamed() {
            let series = cell * rows.len()..(cell + 1) * rows.len();
            series.zip(rows).for_each(|(id, row)| state.redefine(id as u32, row.steps));
        }
        let frame = state.encode(live.clock.wall(), false, values.all());
        let message = encode_overview(self.grain, [&frame[..]]);
        let frame = BeatFrame { seq: state.seq(), start: message.len() - frame.len(), message: message.into() };
        let keyframe = encode_overview(self.grain, [&state.keyframe()[..]]).into();
        let mut shown = self.shown();
        shown.frames.push_back(frame);
        if shown.frames.len() > KEPT_BEATS {
            shown.frames.pop_front();
        }
        shown.keyframe = keyframe;
        shown.interval = interval;
        if cells.version() != shown.version {
            (shown.cells, shown.version, shown.left_out) = (cells.shown(), cells.version(), cells.left_out());
        }
        drop(shown);
        self.wake();
    }

    /// The news for a reader, whose position is advanced: messages, followed by a message of frames. None without news.
    pub fn next(&self, place: &mut OverviewPlace) -> Option<(Vec<ServerMessage>, Bytes)> {
        let shown = self.shown();
        let newest = shown.frames.back()?.seq;
        if place.seq == newest {
            return None;
        }
        // A page drops all cells when the first is sent again, so all are sent then.
        let first_anew = shown.cells.first().is_some_and(|(version, _)| *version > place.version);
        let begins = place.seq == 0 || first_anew;
        let told = |(version, _): &(u64, Cell)| begins || *version > place.version;
        let mut messages = Vec::new();
        if begins || place.version != shown.version {
            let cells = &shown.cells;
            let new: Vec<usize> = (0..cells.len()).filter(|at| told(&cells[*at])).collect();
            let runs = new.chunk_by(|a, b| a + 1 == *b).flat_map(|run| run.chunks(CELLS_A_MESSAGE));
            let message = |first: usize, cells: &[(u64, Cell)]| ServerMessage::Cells {
                grain: self.grain,
                first: first as u32,
                cells: cells.iter().map(|(_, cell)| cell.clone()).collect(),
                left_out: shown.left_out,
                interval: shown.interval.as_millis() as i64,
            };
            messages.extend(runs.map(|run| message(run[0], &cells[run[0]..run[0] + run.len()])));
            if begins && messages.is_empty() {
                messages.push(message(0, &[]));
            }
        }
        let missed = shown.frames.iter().position(|frame| frame.seq == place.seq + 1).filter(|_| !begins);
        let frames = match missed.map(|at| shown.frames.range(at..)) {
            None => shown.keyframe.clone(),
            Some(mut one) if one.len() == 1 => one.next().expect("it has one").message.clone(),
            Some(several) => encode_overview(self.grain, several.map(|one| &one.message[one.start..])).into(),
        };
        *place = OverviewPlace { seq: newest, version: shown.version };
        Some((messages, frames))
    }
}

/// The overviews that have a reader.
#[derive(Default)]
pub(super) struct Overviews(Mutex<Vec<Weak<Overview>>>);

impl Overviews {
    /// All overviews that still have a reader.
    pub fn all(&self) -> Vec<Arc<Overview>> {
        let mut known = self.0.lock();
        known.retain(|one| one.strong_count() > 0);
        known.iter().filter_map(Weak::upgrade).collect()
    }

    /// The overview of this grain and scope, and whether it is new. The caller updates a new one at each beat.
    pub fn overview(&self, grain: Grain, scope: &Scope) -> (Arc<Overview>, bool) {
        let mut known = self.0.lock();
        known.retain(|one| one.strong_count() > 0);
        let alike = known.iter().filter_map(Weak::upgrade).filter(|one| one.grain == grain);
        let (mut count, mut found) = (0, None);
        for one in alike {
            count += 1;
            if one.scope == *scope {
                found = Some(one);
            }
        }
        if let Some(found) = found {
            return (found, false);
        }
        let new = Arc::new(Overview::new(grain, scope.clone(), count >= MAX_OVERVIEWS));
        known.push(Arc::downgrade(&new));
        (new, true)
    }
}

#[cfg(test)]
mod tests;

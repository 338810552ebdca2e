//! The fleet: the overviews that the server sends, their machines, and texts about all of them.
//!
//! [`hosts`] are machines in groups, filtered and sorted; [`words`] are sentences about them. Like the rest of the
//! store this needs no browser.

mod apart;
pub mod hosts;
pub mod words;

use apart::Apart;
use charts::map::MIN_DISTANCE;
use charts::order;
use shared::catalog::fleet::{self, FleetRow, Grain};
use shared::series::SeriesId;
use shared::tick::{Applied, FrameError, TickState};
use shared::wire::{Cell, SourceId};
use std::collections::VecDeque;

/// Maximum number of instants in the sparklines of the fleet's tiles.
const MAX_INSTANTS: usize = 600;
/// Length of these lines in ms.
pub const HISTORY_MS: i64 = 300_000;

/// One overview: its cells, and the newest value of each row in each cell.
#[derive(Default)]
struct Overview {
    cells: Vec<Cell>,
    state: TickState,
    left_out: u32,
    interval: i64,
}

impl Overview {
    fn announce(&mut self, rows: &[&FleetRow], first: u32, cells: Vec<Cell>) {
        let first = first as usize;
        if first == 0 {
            *self = Overview::default();
        }
        let (known, mut pushed) = (self.cells.len(), 0);
        for (at, cell) in (first..).zip(cells) {
            match self.cells.get_mut(at) {
                Some(taken) => {
                    *taken = cell;
                    let series = (at * rows.len()) as SeriesId..;
                    series.zip(rows).for_each(|(id, row)| self.state.redefine(id, row.steps));
                }
                // Cells are announced in order; a later one has no position yet.
                None if at == known + pushed => {
                    pushed += 1;
                    self.cells.push(cell);
                    self.state.extend(rows.iter().map(|row| row.steps));
                }
                None => {}
            }
        }
    }

    /// Applies frames; true when one of them was new.
    fn apply(&mut self, frames: &[&[u8]]) -> Result<bool, FrameError> {
        let mut any = false;
        for frame in frames {
            any |= matches!(self.state.apply(frame)?, Applied::Keyframe | Applied::Tick { .. });
        }
        Ok(any)
    }
}

/// Shown values of one machine: by row of [`Grain::Sources`], NaN if there is none, and the use of each of its GPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    rows: Vec<f64>,
    /// Use of each GPU, 0 to 100, in order of its number; NaN if unknown.
    pub gpus: Vec<f64>,
    /// Number of each of these GPUs.
    numbers: Vec<u32>,
    /// Whether each of them has differed from the others for some time.
    apart: Vec<bool>,
}

impl Values {
    /// The value of a row; NaN if there is none.
    pub fn value_of(&self, row: &FleetRow) -> f64 {
        let at = fleet::place(Grain::Sources, row);
        at.and_then(|at| self.rows.get(at).copied()).unwrap_or(f64::NAN)
    }

    /// Adds a GPU. Cells are announced machine by machine and in order, so only a later one is inserted in the middle.
    fn put(&mut self, number: u32, busy: f64) {
        let at = self.numbers.partition_point(|known| *known <= number);
        self.numbers.insert(at, number);
        self.gpus.insert(at, busy);
        self.apart.insert(at, false);
    }

    /// For each of its GPUs, the use and the distance from the median of all of them; NaN if there are fewer than
    /// three.
    fn spread(&self) -> impl Iterator<Item = (f64, f64)> {
        let known: Vec<f64> = self.gpus.iter().copied().filter(|v| v.is_finite()).collect();
        let sorted = order::by(known.iter().map(|v| order::key(*v)));
        let median = if known.len() < 3 { f64::NAN } else { known[sorted[known.len() / 2]] };
        self.gpus.iter().map(move |busy| (*busy, busy - median))
    }

    /// The same, but without a difference that has just begun: when a job pauses, its devices do not stop in the same
    /// second.
    pub fn cells(&self) -> Vec<(f64, f64)> {
        let shown = |((busy, apart), lasts): ((f64, f64), &bool)| {
            (busy, if *lasts { apart } else { apart.clamp(-MIN_DISTANCE, MIN_DISTANCE) })
        };
        self.spread().zip(&self.apart).map(shown).collect()
    }

    /// Values for tests and for drawings.
    pub fn new(values: &[(&FleetRow, f64)], gpus: Vec<f64>) -> Self {
        let mut rows = vec![f64::NAN; fleet::rows(Grain::Sources).len()];
        for (row, value) in values {
            if let Some(at) = fleet::place(Grain::Sources, row) {
                rows[at] = *value;
            }
        }
        let (numbers, apart) = ((0..gpus.len() as u32).collect(), vec![true; gpus.len()]);
        Values { rows, gpus, numbers, apart }
    }
}

/// Totals of all machines at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Instant {
    /// Time, ms since the epoch.
    pub t: i64,
    /// Mean use of all GPUs, or of all CPUs if no machine has a GPU; NaN if unknown.
    pub busy: f64,
    /// Number of machines that answer.
    pub answer: f64,
    /// Power of all GPUs in W, or bytes received per second if no machine has a GPU; NaN if unknown.
    pub power: f64,
    /// The hottest GPU in °C, or the largest share of memory in use; NaN if unknown.
    pub most: f64,
}

/// The overviews of a fleet.
#[derive(Default)]
pub struct Fleet {
    sources: Overview,
    gpus: Overview,
    /// Devices that differ from their peers, and since when.
    apart: Apart,
    /// The last minutes, oldest first.
    pub history: VecDeque<Instant>,
}

impl Fleet {
    /// Adds cells of an overview.
    pub fn announce(&mut self, grain: Grain, first: u32, cells: Vec<Cell>, left_out: u32, interval: i64) {
        let overview = self.overview(grain);
        overview.announce(fleet::rows(grain), first, cells);
        (overview.left_out, overview.interval) = (left_out, interval);
    }

    /// Applies frames of an overview; true when there is something new to show.
    ///
    /// # Errors
    /// A frame is missing or damaged: the overview must be sent again.
    pub fn apply(&mut self, grain: Grain, frames: &[&[u8]]) -> Result<bool, FrameError> {
        let new = self.overview(grain).apply(frames)?;
        if new && grain == Grain::Gpus {
            let values = self.newest();
            self.apart.note(self.gpus.state.t(), &values);
        }
        Ok(new)
    }

    fn overview(&mut self, grain: Grain) -> &mut Overview {
        match grain {
            Grain::Sources => &mut self.sources,
            Grain::Gpus => &mut self.gpus,
        }
    }

    /// Time of the newest frame, ms since the epoch; 0 before the first.
    pub fn t(&self) -> i64 {
        self.sources.state.t()
    }

    /// Time between two frames in ms; 0 before it is known.
    pub fn interval(&self) -> i64 {
        self.sources.interval
    }

    /// Number of GPUs without a cell, because an overview is bounded.
    pub fn left_out(&self) -> u32 {
        self.gpus.left_out
    }

    /// The newest values by the number of the machine.
    pub fn values(&self) -> Vec<Values> {
        let mut all = self.newest();
        self.apart.mark(self.gpus.state.t(), &mut all);
        all
    }

    fn newest(&self) -> Vec<Values> {
        let mut all: Vec<Values> = Vec::new();
        let mut of = |source: SourceId, put: &mut dyn FnMut(&mut Values)| {
            let at = usize::from(source);
            if all.len() <= at {
                all.resize(at + 1, Values::default());
            }
            put(&mut all[at]);
        };
        let rows = fleet::rows(Grain::Sources).len();
        for (cell, values) in self.sources.cells.iter().zip(self.sources.state.values().chunks(rows)) {
            let Some(source) = cell.source else { continue };
            of(source, &mut |known| known.rows = values.to_vec());
        }
        let rows = fleet::rows(Grain::Gpus).len();
        let busy = fleet::place(Grain::Gpus, &fleet::EACH_BUSY).unwrap_or(0);
        for (cell, values) in self.gpus.cells.iter().zip(self.gpus.state.values().chunks(rows)) {
            let Some(source) = cell.source else { continue };
            let number = cell.instance.parse().unwrap_or(u32::MAX);
            of(source, &mut |known| known.put(number, values[busy]));
        }
        all
    }

    /// Stores the present totals of all machines, for the sparklines.
    pub fn remember(&mut self, now: Instant) {
        if self.history.back().is_some_and(|last| last.t >= now.t) {
            return;
        }
        self.history.push_back(now);
        while self.history.len() > MAX_INSTANTS
            || self.history.front().is_some_and(|first| first.t < now.t - HISTORY_MS - 5_000)
        {
            self.history.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(source: u16, instance: &str) -> Cell {
        Cell { source: Some(source), instance: instance.into() }
    }

    /// The sender of an overview.
    fn sender(grain: Grain, cells: usize) -> TickState {
        let mut state = TickState::default();
        state.extend((0..cells).flat_map(|_| fleet::rows(grain).iter().map(|row| row.steps)));
        state
    }

    #[test]
    fn an_overview_is_read_as_it_was_written() {
        let mut fleet = Fleet::default();
        fleet.announce(Grain::Sources, 0, vec![cell(3, ""), cell(7, "")], 0, 1_000);
        fleet.announce(Grain::Gpus, 0, vec![cell(3, "10"), cell(3, "9")], 5, 1_000);
        let (mut sources, mut gpus) = (sender(Grain::Sources, 2), sender(Grain::Gpus, 2));
        let rows = fleet::rows(Grain::Sources).len();
        let mut values = vec![f64::NAN; 2 * rows];
        let power = fleet::place(Grain::Sources, &fleet::GPU_POWER).expect("a row");
        values[power] = 1_230.0;
        values[rows] = 12.0;
        let frame = sources.encode(5_000, false, &values);
        assert_eq!(fleet.apply(Grain::Sources, &[&frame]), Ok(true));
        let per = fleet::rows(Grain::Gpus).len();
        let mut each = vec![f64::NAN; 2 * per];
        (each[0], each[per]) = (40.0, 90.0);
        let frame = gpus.encode(5_000, false, &each);
        assert_eq!(fleet.apply(Grain::Gpus, &[&frame]), Ok(true));

        let all = fleet.values();
        assert_eq!(all[3].value_of(&fleet::GPU_POWER), 1_230.0);
        assert_eq!(all[7].value_of(&fleet::GPU_BUSY), 12.0);
        assert!(all[7].value_of(&fleet::GPU_POWER).is_nan(), "what was not sent is absent");
        assert_eq!(all[3].gpus, [90.0, 40.0], "in the order of the GPUs' numbers");
        assert_eq!((fleet.t(), fleet.left_out()), (5_000, 5));
    }

    #[test]
    fn a_cell_that_another_machine_takes_forgets_what_it_showed() {
        let mut fleet = Fleet::default();
        fleet.announce(Grain::Sources, 0, vec![cell(3, "")], 0, 1_000);
        let mut sender = sender(Grain::Sources, 1);
        let frame = sender.encode(5_000, false, &[50.0]);
        assert_eq!(fleet.apply(Grain::Sources, &[&frame]), Ok(true));
        fleet.announce(Grain::Sources, 0, vec![cell(4, "")], 0, 1_000);
        assert!(fleet.values()[4].value_of(&fleet::GPU_BUSY).is_nan());
        assert!(fleet.values()[3].value_of(&fleet::GPU_BUSY).is_nan());
    }

    #[test]
    fn a_frame_that_is_missing_is_noticed() {
        let mut fleet = Fleet::default();
        fleet.announce(Grain::Sources, 0, vec![cell(3, "")], 0, 1_000);
        let mut sender = sender(Grain::Sources, 1);
        let frames: Vec<_> = (0..3).map(|n| sender.encode(5_000 + n, false, &[n as f64])).collect();
        assert_eq!(fleet.apply(Grain::Sources, &[&frames[0]]), Ok(true));
        assert!(fleet.apply(Grain::Sources, &[&frames[2]]).is_err());
    }

    #[test]
    fn the_past_of_the_tiles_is_bounded_and_rises() {
        let mut fleet = Fleet::default();
        for t in 0..2_000 {
            fleet.remember(Instant { t: t * 1_000, ..Instant::default() });
        }
        fleet.remember(Instant { t: 5, ..Instant::default() });
        assert!(fleet.history.len() <= 306);
        assert_eq!(fleet.history.back().map(|i| i.t), Some(1_999_000));
    }
}

//! The newest values of all cells, gathered from the sources.

use super::cells::Cells;
use crate::live::Live;
use crate::store::{Cursor, Store};
use shared::catalog::Catalog;
use shared::catalog::fleet::{Aggregate, FleetRow, Grain, rows};
use shared::connection_state::ConnectionState;
use shared::series::{SeriesDef, SeriesId};
use shared::wire::{Source, SourceId};
use std::collections::HashMap;
use std::sync::Arc;

/// The values by series of the overview, and the state to compute them.
#[derive(Default)]
pub struct CellValues {
    pub(super) all: Vec<f64>,
    members: HashMap<SourceId, Member>,
    /// Cells of sources that other hubs hold, by instance.
    pub(super) elsewhere: HashMap<SourceId, HashMap<String, usize>>,
    table: Table,
}

/// The rows of the overview that use a row of the table.
#[derive(Default)]
struct Table {
    catalog: Arc<Catalog>,
    /// By position in the table: rows of the overview, each with the rank among its alternatives.
    uses: HashMap<u16, Vec<(usize, usize)>>,
}

/// The shown series of a source.
struct Member {
    /// Tracks new and redefined series.
    cursor: Cursor,
    /// By cell; its name is the instance if a cell is a GPU.
    shown: Vec<(usize, String, CellSeries)>,
    /// The newest value of each counter.
    totals: HashMap<SeriesId, Total>,
}

/// A value of a counter, its time, and its rate per second at that time.
struct Total {
    t: i64,
    value: f64,
    rate: f64,
}

/// By row, the alternative series, each with its rank.
type CellSeries = Vec<Vec<(usize, SeriesId)>>;

impl CellValues {
    /// Resizes to this number of series, all absent.
    pub fn resize(&mut self, series: usize) {
        self.all.clear();
        self.all.resize(series, f64::NAN);
    }

    /// By series.
    pub fn all(&self) -> &[f64] {
        &self.all
    }

    /// Hides one row, out of `rows` per cell.
    pub fn hide(&mut self, row: usize, rows: usize) {
        self.all.iter_mut().skip(row).step_by(rows.max(1)).for_each(|value| *value = f64::NAN);
    }

    /// Reads the newest values of a source.
    pub fn read_source(&mut self, live: &Live, source: &Source, grain: Grain, cells: &mut Cells) {
        // A source that moves to another hub or from there starts afresh.
        if !live.holds(source.id) {
            let own = self.members.remove(&source.id).into_iter().flat_map(|member| member.shown);
            own.filter(|_| grain == Grain::Gpus).for_each(|(cell, ..)| cells.let_go(cell));
            return self.look_elsewhere(live, source, grain, cells);
        }
        let theirs = self.elsewhere.remove(&source.id).into_iter().flatten();
        theirs.filter(|_| grain == Grain::Gpus).for_each(|(_, cell)| cells.let_go(cell));
        let (connection_state, _) = live.source(source.id).connection_state();
        let ticks = matches!(connection_state, ConnectionState::Live | ConnectionState::Filling { .. });
        let rows = rows(grain);
        let store = live.store();
        self.table.follow(store.catalog(), rows);
        let new = || Member { cursor: Cursor::new(source.id), shown: Vec::new(), totals: HashMap::new() };
        let member = self.members.entry(source.id).or_insert_with(new);
        member.learn(&store, &self.table, grain, cells);
        let Member { shown, totals, .. } = member;
        for (cell, _, series) in shown {
            let first = *cell * rows.len();
            self.all.resize(self.all.len().max(first + rows.len()), f64::NAN);
            for (at, row) in rows.iter().enumerate() {
                self.all[first + at] = match row.aggregate {
                    Aggregate::ConnectionState => f64::from(connection_state.code()),
                    // Values from before the connection was lost are not current.
                    _ if !ticks => f64::NAN,
                    _ => newest(row, &store, source.id, &series[at], totals),
                };
            }
        }
    }
}

impl Table {
    /// Follows the table of a store, which grows and whose rows may be redefined.
    fn follow(&mut self, catalog: &Arc<Catalog>, rows: &[&FleetRow]) {
        if Arc::ptr_eq(&self.catalog, catalog) && !self.uses.is_empty() {
            return;
        }
        self.catalog = catalog.clone();
        self.uses.clear();
        for (row, choice, metric) in rows
            .iter()
            .enumerate()
            .flat_map(|(row, of)| of.of.iter().enumerate().map(move |(n, metric)| (row, n, metric)))
        {
            if let Some(position) = catalog.position(metric.tag) {
                self.uses.entry(position).or_default().push((row, choice));
            }
        }
    }
}

impl Member {
    /// Adds new series, and updates those that were redefined.
    fn learn(&mut self, store: &Store, table: &Table, grain: Grain, cells: &mut Cells) {
        if self.shown.is_empty() && grain == Grain::Sources {
            self.cell(String::new(), grain, cells);
        }
        let source = self.cursor.source();
        let new = match self.cursor.series(store) {
            Some(new) => new,
            // The cursor is too far behind: starts again with all series.
            None => {
                self.shown.iter_mut().flat_map(|(.., series)| series).for_each(Vec::clear);
                self.totals.clear();
                self.cursor.series(store).unwrap_or_default()
            }
        };
        if new.is_empty() {
            return;
        }
        let defs = store.series(source, 0);
        for id in new {
            for series in self.shown.iter_mut().flat_map(|(.., series)| series) {
                series.retain(|(_, known)| *known != id);
            }
            self.totals.remove(&id);
            let Some(SeriesDef { metric, instance }) = defs.get(id as usize) else { continue };
            for (row, choice) in table.uses.get(metric).map(Vec::as_slice).unwrap_or_default() {
                let name = if grain == Grain::Gpus { instance.as_str() } else { "" };
                if let Some(series) = self.cell(name.to_string(), grain, cells) {
                    series[*row].push((*choice, id));
                }
            }
        }
        let gone = |series: &CellSeries| grain == Grain::Gpus && series.iter().all(Vec::is_empty);
        self.shown.iter().filter(|(.., series)| gone(series)).for_each(|(cell, ..)| cells.let_go(*cell));
        self.shown.retain(|(.., series)| !gone(series));
    }

    /// The series of a cell, which gets a number if it is new; none if the maximum is reached.
    fn cell(&mut self, name: String, grain: Grain, cells: &mut Cells) -> Option<&mut CellSeries> {
        let at = match self.shown.iter().position(|(_, known, _)| *known == name) {
            Some(at) => at,
            None => {
                let cell = cells.cell_of(self.cursor.source(), &name)?;
                self.shown.push((cell, name, vec![Vec::new(); rows(grain).len()]));
                self.shown.len() - 1
            }
        };
        Some(&mut self.shown[at].2)
    }
}

/// The newest value of a row of a source; NaN if there is none.
fn newest(
    row: &FleetRow,
    store: &Store,
    source: SourceId,
    series: &[(usize, SeriesId)],
    totals: &mut HashMap<SeriesId, Total>,
) -> f64 {
    let choice = series.iter().map(|(choice, _)| *choice).min();
    let own = series.iter().filter(|(of, _)| Some(*of) == choice).map(|(_, id)| *id);
    let t = store.state(source).map_or(0, |state| state.t());
    let values = own.filter_map(|id| {
        let value = store.current(source, id)?;
        if !row.is_rate() {
            return Some(value);
        }
        let rate = match totals.get(&id) {
            // No tick arrived since the last beat.
            Some(before) if before.t == t => before.rate,
            Some(before) if before.t < t && value >= before.value => {
                (value - before.value) * 1_000.0 / (t - before.t) as f64
            }
            _ => f64::NAN,
        };
        totals.insert(id, Total { t, value, rate });
        Some(rate)
    });
    row.fold(values).unwrap_or(f64::NAN)
}

//! Rows that the table gained at run time. One that no series names any more, alive or in history, is free for the next.

use super::Store;
use shared::catalog::{Chart, Metric};
use std::collections::{BTreeMap, BTreeSet};

/// What becomes of rows.
#[derive(Default)]
pub(super) struct Rows {
    /// Rows before this one are the collectors', and stay.
    fixed: usize,
    /// Named by no series at the newest cut: those of before, which no log file tells of, and those that joined then.
    free: BTreeSet<u16>,
    resting: BTreeSet<u16>,
    /// Rows that are others than they were, by position, and the version in which they became so.
    replaced: BTreeMap<u16, u64>,
    version: u64,
}

impl Rows {
    pub fn new(fixed: usize) -> Self {
        Rows { fixed, ..Rows::default() }
    }
}

impl Store {
    /// Adds a row to the table, with its chart, unless it is there; its position, or none when the table is full. It may
    /// take the place of one that no series names. Readers keep the table that they have taken.
    pub fn add_row(&mut self, metric: Metric, chart: Chart) -> Option<u16> {
        let known = self.known_row(&metric);
        if let Some(known) = known {
            self.rows.free.remove(&known);
            self.rows.resting.remove(&known);
            return Some(known);
        }
        let catalog = std::sync::Arc::make_mut(&mut self.catalog);
        let Some(position) = self.rows.free.pop_first() else { return catalog.add(metric, chart) };
        catalog.replace(position, metric, chart);
        self.rows.version += 1;
        self.rows.replaced.insert(position, self.rows.version);
        Some(position)
    }

    /// The position of a row that is in the table. A tag of the collectors means what they say, whatever else a row says of
    /// it; by another two machines may mean different things.
    pub fn known_row(&self, row: &Metric) -> Option<u16> {
        let fixed = self.catalog.position(&row.tag).filter(|at| usize::from(*at) < self.rows.fixed);
        fixed.or_else(|| self.catalog.position_of(row))
    }

    /// At a cut, once all sources are cut: looks which rows no series names any more.
    pub fn rest_rows(&mut self) {
        let mut named = vec![false; self.catalog.metrics.len()];
        for def in self.sources.iter().flat_map(|source| source.series.defs()) {
            if let Some(named) = named.get_mut(usize::from(def.metric)) {
                *named = true;
            }
        }
        let idle: BTreeSet<u16> = (self.rows.fixed..named.len()).filter(|at| !named[*at]).map(|at| at as u16).collect();
        let rows = &mut self.rows;
        let before: BTreeSet<u16> = rows.free.union(&rows.resting).copied().collect();
        rows.free = idle.intersection(&before).copied().collect();
        rows.resting = idle.difference(&before).copied().collect();
    }

    /// Rows that became others after a version of the table, and its version now.
    pub fn replaced_rows(&self, since: u64) -> (Vec<u16>, u64) {
        let later = self.rows.replaced.iter().filter(|(_, version)| **version > since);
        (later.map(|(position, _)| *position).collect(), self.rows.version)
    }
}

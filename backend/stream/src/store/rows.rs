//! Rows added to the table at run time. A row that no series uses any more, alive or in history, is reused for the
//! next.
//!
//! A row of one source never changes the meaning of another's: two sources share a row only if they define it, and its
//! chart, identically. A source keeps the rows that its series use.

use super::Store;
use shared::catalog::{Catalog, Chart, Metric};
use shared::wire::{Source, SourceId};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// State of the rows.
#[derive(Default)]
pub(super) struct Rows {
    /// Rows before this one belong to the collectors and are permanent.
    fixed: usize,
    /// So do these charts.
    fixed_charts: HashSet<String>,
    /// The other rows, by tag.
    by_tag: HashMap<String, Vec<u16>>,
    /// Rows that no series used at the newest cut. `free`: since earlier, and no log file has them. `resting`: since
    /// that cut.
    free: BTreeSet<u16>,
    resting: BTreeSet<u16>,
    /// Redefined rows, by position, and the version of the redefinition.
    replaced: BTreeMap<u16, u64>,
    version: u64,
}

impl Rows {
    pub fn new(catalog: &Catalog) -> Self {
        let fixed_charts = catalog.layout.charts.iter().map(|chart| chart.id.clone()).collect();
        Rows { fixed: catalog.metrics.len(), fixed_charts, ..Rows::default() }
    }
}

impl Store {
    /// Adds a row of a file to the table: [`add_row_of`](Self::add_row_of) without a source.
    pub fn add_row(&mut self, metric: Metric, chart: Chart) -> Option<u16> {
        self.add_row_of(None, metric, chart)
    }

    /// Adds a row of a source to the table, with its chart, unless it exists. Returns its position, or none when the
    /// table is full. It may replace a row that no series uses. Readers keep the table that they have taken.
    pub fn add_row_of(&mut self, source: Option<SourceId>, metric: Metric, chart: Chart) -> Option<u16> {
        let (metric, chart) = self.placed(metric, chart);
        if let Some(known) = self.position(source, &metric) {
            self.rows.free.remove(&known);
            self.rows.resting.remove(&known);
            return Some(known);
        }
        let catalog = Arc::make_mut(&mut self.catalog);
        let tag = metric.tag.clone();
        let position = match self.rows.free.pop_first() {
            None => catalog.push(metric, chart)?,
            Some(position) => {
                let old = catalog.metrics[usize::from(position)].tag.clone();
                let rows = self.rows.by_tag.entry(old.clone()).or_default();
                rows.retain(|row| *row != position);
                if rows.is_empty() {
                    self.rows.by_tag.remove(&old);
                }
                catalog.replace(position, metric, chart);
                self.rows.version += 1;
                self.rows.replaced.insert(position, self.rows.version);
                position
            }
        };
        self.rows.by_tag.entry(tag).or_default().push(position);
        Some(position)
    }

    /// The position of a source's row in the table. A tag of the collectors keeps their definition, whatever another
    /// row defines for it.
    pub fn known_row(&self, source: SourceId, row: &Metric, chart: &Chart) -> Option<u16> {
        let (row, _) = self.placed(row.clone(), chart.clone());
        self.position(Some(source), &row)
    }

    /// A row with its chart under an id of its own.
    fn placed(&self, mut metric: Metric, chart: Chart) -> (Metric, Chart) {
        let is_fixed = self.rows.fixed_charts.contains(&chart.id);
        let chart = if is_fixed { chart } else { chart.distinct(&self.catalog.layout.charts) };
        metric.chart.clone_from(&chart.id);
        (metric, chart)
    }

    fn position(&self, source: Option<SourceId>, row: &Metric) -> Option<u16> {
        let metric = |at: u16| &self.catalog.metrics[usize::from(at)];
        let fixed = self.catalog.metrics[..self.rows.fixed].iter().position(|fixed| fixed.tag == row.tag);
        let own = source.and_then(|source| self.kept(source)).map(|kept| &kept.rows);
        let of_tag = || self.rows.by_tag.get(&row.tag).into_iter().flatten().copied();
        let is_own = |at: &u16| own.is_some_and(|own| own.contains(at)) && metric(*at).is_row_of(row);
        let fixed = fixed.and_then(|at| u16::try_from(at).ok());
        fixed.or_else(|| of_tag().find(is_own)).or_else(|| of_tag().find(|at| metric(*at) == row))
    }

    /// Number of rows that can still be added to a table of this maximum.
    pub fn free_rows(&self, most: usize) -> usize {
        most.saturating_sub(self.catalog.metrics.len()) + self.rows.free.len()
    }

    /// A number that changes when a row is redefined.
    pub fn row_version(&self, position: u16) -> u64 {
        self.rows.replaced.get(&position).copied().unwrap_or(0)
    }

    /// Number of the collectors' rows, which come first in every table.
    pub fn fixed_rows(&self) -> usize {
        self.rows.fixed
    }

    /// The table for a reader who sees some sources, and not the hidden charts, by their ids. Rows added at run time
    /// are in it if a series of these sources uses them. The others are replaced by [nothing](Metric::nothing).
    pub fn catalog_of(&self, sees: impl Fn(&Source) -> bool, hides: impl Fn(&str) -> bool) -> Arc<Catalog> {
        let seen = self.sources.iter().filter(|kept| !kept.removed && sees(&kept.info));
        let seen: BTreeSet<u16> = seen.flat_map(|kept| kept.rows.iter().copied()).collect();
        let shown = |at: usize| {
            let own = || u16::try_from(at).is_ok_and(|at| seen.contains(&at));
            at < self.rows.fixed || (own() && !hides(&self.catalog.metrics[at].chart))
        };
        match (self.rows.fixed..self.catalog.metrics.len()).all(shown) {
            true => self.catalog.clone(),
            false => Arc::new(self.catalog.without(shown)),
        }
    }

    /// At a cut, after all sources are cut: finds the rows that no series uses any more.
    pub fn rest_rows(&mut self) {
        let own = self.rows.fixed..self.catalog.metrics.len();
        let mut named = BTreeSet::new();
        for kept in &mut self.sources {
            let rows = kept.series.defs().iter().map(|def| def.metric);
            kept.rows = rows.filter(|row| own.contains(&usize::from(*row))).collect();
            named.extend(kept.rows.iter().copied());
        }
        let idle = own.filter_map(|at| u16::try_from(at).ok());
        let idle: BTreeSet<u16> = idle.filter(|at| !named.contains(at)).collect();
        let rows = &mut self.rows;
        let before: BTreeSet<u16> = rows.free.union(&rows.resting).copied().collect();
        rows.free = idle.intersection(&before).copied().collect();
        rows.resting = idle.difference(&before).copied().collect();
    }

    /// Rows redefined after a version of the table, and its version now.
    pub fn replaced_rows(&self, since: u64) -> (Vec<u16>, u64) {
        let later = self.rows.replaced.iter().filter(|(_, version)| **version > since);
        (later.map(|(position, _)| *position).collect(), self.rows.version)
    }
}

//! Names of series for a page: the rows of the table that they use, and the series themselves.

use super::hidden::HiddenSeries;
use crate::store::Store;
use shared::catalog::Catalog;
use shared::series::{SeriesDef, SeriesId};
use shared::wire::{MAX_MESSAGE, ServerMessage, SourceId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maximum number of rows of the table in one message: their texts together are far below [`MAX_MESSAGE`].
pub(super) const MAX_ROWS: usize = 250;

/// The table as a page knows it: the rows of the collectors, and those rows added at run time that a series sent to it
/// uses. All other rows are empty in their places.
#[derive(Default)]
pub(super) struct KnownTable {
    /// Number of rows, including empty ones.
    pub rows: usize,
    /// The rows added at run time that were sent.
    pub told: BTreeSet<u16>,
    /// The version of the table at which they were sent.
    pub version: u64,
}

/// Series with their current names, and the rows that they use.
pub(super) struct Named {
    /// Ids and their definitions, in order of id.
    series: Vec<(SeriesId, SeriesDef)>,
    catalog: Arc<Catalog>,
    /// Number of the collectors' rows.
    fixed: usize,
    /// Rows redefined after the version of the table that the page knows.
    replaced: Vec<u16>,
    version: u64,
}

impl Named {
    /// The current definitions of these ids in the store.
    pub fn from_ids(store: &Store, source: SourceId, ids: &[SeriesId], rows_version: u64) -> Self {
        let defs = store.series(source, 0);
        let series = ids.iter().filter_map(|id| Some((*id, defs.get(*id as usize)?.clone()))).collect();
        let (replaced, version) = store.replaced_rows(rows_version);
        Named { series, catalog: store.catalog().clone(), fixed: store.fixed_rows(), replaced, version }
    }

    /// Without the definitions of hidden series: a page knows their ids only.
    pub fn without(mut self, hidden: &HiddenSeries) -> Self {
        let nothing = SeriesDef { metric: u16::MAX, instance: String::new() };
        self.series.iter_mut().filter(|(id, _)| hidden.has(*id)).for_each(|(_, def)| *def = nothing.clone());
        self
    }

    /// The messages that send them to a page; `known` is updated.
    pub fn messages(self, source: SourceId, known: &mut KnownTable, mut say: impl FnMut(ServerMessage)) {
        let Named { series, catalog, fixed, replaced, version } = self;
        if series.is_empty() {
            return;
        }
        known.version = version;
        known.told.retain(|row| !replaced.contains(row));
        let named = series.iter().map(|(_, def)| def.metric);
        let own = fixed..catalog.metrics.len();
        let new = named.filter(|row| own.contains(&usize::from(*row)) && !known.told.contains(row));
        let new: BTreeSet<u16> = new.collect();
        for row in new.iter().filter(|row| usize::from(**row) < known.rows) {
            let (metrics, charts) = catalog.part(usize::from(*row), 1, |_| true);
            say(ServerMessage::Rows { first: u32::from(*row), metrics, charts });
        }
        let shown = |row: usize| row < fixed || u16::try_from(row).is_ok_and(|row| new.contains(&row));
        while catalog.metrics.len() > known.rows {
            let (metrics, charts) = catalog.part(known.rows, MAX_ROWS, shown);
            say(ServerMessage::Rows { first: known.rows as u32, metrics, charts });
            known.rows = catalog.metrics.len().min(known.rows + MAX_ROWS);
        }
        known.told.extend(new);
        for mut rest in series.chunk_by(|a, b| a.0 + 1 == b.0) {
            while let [(first, _), ..] = rest {
                let mut size = 0;
                let fits = rest.iter().take_while(|(_, def)| {
                    size += def.instance.len() + 8;
                    size < MAX_MESSAGE
                });
                let (now, later) = rest.split_at(fits.count().max(1));
                let defs = now.iter().map(|(_, def)| def.clone()).collect();
                say(ServerMessage::Series { source, first: *first, defs });
                rest = later;
            }
        }
    }
}

//! How a page learns what series are called: the rows of the table that they name, and the series themselves.

use super::hidden::HiddenSeries;
use crate::store::Store;
use shared::catalog::Catalog;
use shared::series::{SeriesDef, SeriesId};
use shared::wire::{MAX_MESSAGE, ServerMessage, SourceId};
use std::sync::Arc;

/// The most rows of the table in one message: their texts together are far below [`MAX_MESSAGE`].
pub(super) const MAX_ROWS: usize = 250;

/// What a page knows of the table.
#[derive(Default)]
pub(super) struct KnownTable {
    /// How many rows.
    pub rows: usize,
    /// The version of the table that it knows them by.
    pub version: u64,
}

/// Series as they are called now, and the rows that they name.
pub(super) struct Named {
    /// Ids and what they stand for, in order of id.
    series: Vec<(SeriesId, SeriesDef)>,
    catalog: Arc<Catalog>,
    /// Rows that became others after the version of the table that the page knows.
    replaced: Vec<u16>,
    version: u64,
}

impl Named {
    /// The series of these ids, as the store has them now.
    pub fn of(store: &Store, source: SourceId, ids: &[SeriesId], rows_version: u64) -> Self {
        let defs = store.series(source, 0);
        let series = ids.iter().filter_map(|id| Some((*id, defs.get(*id as usize)?.clone()))).collect();
        let (replaced, version) = store.replaced_rows(rows_version);
        Named { series, catalog: store.catalog().clone(), replaced, version }
    }

    /// Without what those are that are hidden: a page knows that they are there, and nothing of them.
    pub fn without(mut self, hidden: &HiddenSeries) -> Self {
        let nothing = SeriesDef { metric: u16::MAX, instance: String::new() };
        self.series.iter_mut().filter(|(id, _)| hidden.has(*id)).for_each(|(_, def)| *def = nothing.clone());
        self
    }

    /// The messages that tell a page of them; it knows them then.
    pub fn messages(self, source: SourceId, known: &mut KnownTable, mut say: impl FnMut(ServerMessage)) {
        let Named { series, catalog, replaced, version } = self;
        if series.is_empty() {
            return;
        }
        known.version = version;
        for row in replaced.into_iter().filter(|row| usize::from(*row) < known.rows) {
            let (metrics, charts) = catalog.part(usize::from(row), 1);
            say(ServerMessage::Rows { first: u32::from(row), metrics, charts });
        }
        while catalog.metrics.len() > known.rows {
            let (metrics, charts) = catalog.part(known.rows, MAX_ROWS);
            say(ServerMessage::Rows { first: known.rows as u32, metrics, charts });
            known.rows = catalog.metrics.len().min(known.rows + MAX_ROWS);
        }
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

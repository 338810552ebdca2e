//! Announces names to a hub: the series, and the rows of the table to which they belong.

use shared::agent::{AgentMessage, MAX_SERIES_IDS};
use shared::catalog::{Chart, Metric};
use shared::series::{SeriesDef, SeriesId};
use shared::wire::SourceId;
use std::collections::BTreeSet;
use stream::store::Store;

/// Approximate message size, bytes: on a slow link the next heartbeat must not wait long.
const MESSAGE_BYTES: usize = 32 << 10;

/// The part of our table that a hub knows.
#[derive(Default)]
pub(super) struct TableTold {
    rows: BTreeSet<u16>,
    /// Version of the table of those rows.
    version: u64,
}

/// Current definitions of series, and those of their rows that the hub lacks.
pub(super) struct NewNames {
    rows: Vec<(u16, Metric, Chart)>,
    series: Vec<(SeriesId, SeriesDef)>,
}

impl TableTold {
    /// The series of these IDs, and their rows, which then count as known. Unused IDs are skipped.
    pub fn names(&mut self, store: &Store, source: SourceId, ids: &[SeriesId]) -> NewNames {
        if ids.is_empty() {
            return NewNames { rows: Vec::new(), series: Vec::new() };
        }
        let (replaced, version) = store.replaced_rows(self.version);
        self.rows.retain(|row| !replaced.contains(row));
        self.version = version;
        let (defs, catalog) = (store.series(source, 0), store.catalog());
        let known = ids.iter().filter(|id| **id < MAX_SERIES_IDS);
        let series = known.filter_map(|id| Some((*id, defs.get(*id as usize)?.clone())));
        let series: Vec<_> = series.filter(|(_, def)| catalog.metric(def).is_some()).collect();
        let rows: BTreeSet<u16> = series.iter().map(|(_, def)| def.metric).collect();
        let new: Vec<u16> = rows.difference(&self.rows).copied().collect();
        let rows = new.iter().filter_map(|&row| {
            let (metrics, charts) = catalog.part(usize::from(row), 1, |_| true);
            Some((row, metrics.into_iter().next()?, charts.into_iter().next()?))
        });
        let rows = rows.collect();
        self.rows.extend(new);
        NewNames { rows, series }
    }
}

impl NewNames {
    /// Converts them to messages, rows first.
    pub fn messages(self) -> Vec<AgentMessage> {
        let mut messages = Vec::new();
        let size = |(_, row, chart): &(u16, Metric, Chart)| {
            64 + row.tag.len() + row.title.len() + row.help.len() + row.label.len() + chart.title.len()
        };
        for rows in parts(self.rows, size) {
            let mut charts: Vec<Chart> = Vec::new();
            for (_, _, chart) in &rows {
                if charts.iter().all(|known| known.id != chart.id) {
                    charts.push(chart.clone());
                }
            }
            messages
                .push(AgentMessage::Rows { rows: rows.into_iter().map(|(at, row, _)| (at, row)).collect(), charts });
        }
        let series = parts(self.series, |(_, def)| 8 + def.instance.len());
        messages.extend(series.into_iter().map(|defs| AgentMessage::Series { defs }));
        messages
    }
}

/// Splits into parts of about [`MESSAGE_BYTES`] each.
fn parts<T>(all: Vec<T>, size: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let (mut parts, mut bytes) = (Vec::new(), usize::MAX);
    for one in all {
        let own = size(&one);
        if bytes.saturating_add(own) > MESSAGE_BYTES {
            parts.push(Vec::new());
            bytes = 0;
        }
        bytes += own;
        parts.last_mut().expect("one was pushed for the first").push(one);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_bounded_and_hold_all_in_order() {
        let all: Vec<usize> = (0..100).map(|i| i * 100).collect();
        let parts = parts(all.clone(), |size| *size);
        assert!(parts.len() > 10 && parts.iter().all(|part| part.iter().sum::<usize>() <= MESSAGE_BYTES));
        assert_eq!(parts.concat(), all);
        assert_eq!(super::parts(vec![1_000_000, 1], |size| *size), [vec![1_000_000], vec![1]]);
    }
}

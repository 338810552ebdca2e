//! Makes a store of a recording.

use crate::store::{Block, Chunk, Column, Limits, Store};
use shared::catalog::{Catalog, Chart};
use shared::column;
use shared::recording::Recording;
use shared::wire::{Columns, Source};
use std::sync::Arc;

/// A store with the data of a recording alone. Its table is the recording's, followed by the other rows of `catalog`.
pub fn store(recording: Recording, catalog: &Catalog) -> Store {
    let mut table = recording.catalog;
    for metric in &catalog.metrics {
        let chart = catalog.layout.charts.iter().find(|chart| chart.id == metric.chart).cloned();
        let none = || Chart { id: metric.chart.clone(), title: metric.title.clone(), section: String::new() };
        table.add(metric.clone(), chart.unwrap_or_else(none));
    }
    // Nothing is ever appended, so nothing is dropped.
    let mut store = Store::new(Arc::new(table), Limits { retention: i64::MAX, bytes: usize::MAX });
    for machine in recording.machines {
        let Source { key, interval, facts, .. } = machine.info;
        let source = store.add_source(key, interval, facts);
        let ids: Vec<Option<u32>> = machine.series.into_iter().map(|def| store.intern(source, def)).collect();
        let blocks = machine.blocks.into_iter().filter_map(|block| chunk(block, &ids));
        let blocks = blocks.map(|chunk| Block::Memory(Arc::new(chunk))).collect();
        store.hold(source, blocks);
        store.hold_records(source, machine.records);
    }
    store
}

/// A block of a recording as a chunk of the store; `ids` maps ids of the recording to those of the store.
fn chunk(block: Columns, ids: &[Option<u32>]) -> Option<Chunk> {
    let ticks = block.ticks as usize;
    let times = column::decode_times(&block.times, ticks).ok()?;
    let mut columns: Vec<Column> = Vec::with_capacity(block.columns.len());
    for (id, bytes) in block.columns {
        let Some(Some(id)) = ids.get(id as usize) else { continue };
        let samples = column::presence(&bytes.0, ticks).ok().flatten().map_or(0, |presence| presence.samples as u64);
        columns.push(Column { id: *id, raw: bytes.0.into_boxed_slice(), samples });
    }
    columns.sort_by_key(|column| column.id);
    (!times.is_empty()).then(|| Chunk::new(block.first_seq, &times, columns))
}

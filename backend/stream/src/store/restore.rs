//! A store of the data found in a data folder.

use super::kept::KeptSource;
use super::series::NO_ROW;
use super::{Block, Chunk, Limits, Store, Stretch};
use history::{Found, FoundSource, Segment};
use shared::catalog::{Catalog, Chart, Metric};
use shared::record::Record;
use shared::series::{SeriesDef, SeriesId, Steps};
use shared::tick::TickState;
use shared::wire::{Source, SourceId};
use std::sync::Arc;

/// Data of a source that is in no segment yet.
pub struct Unwritten {
    /// The source.
    pub source: SourceId,
    /// Its ticks as columns.
    pub chunks: Vec<Arc<Chunk>>,
    /// Its records, ascending by number.
    pub records: Vec<Arc<Record>>,
}

impl Unwritten {
    /// Whether it has no data.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.records.is_empty()
    }
}

impl Store {
    /// A store of the data found, and the part that is in no segment yet. `first` is the name of the machine that a
    /// page shows by default; it is added if it was not found. Rows that are not in the table are added to it.
    pub fn of_found(
        catalog: Arc<Catalog>,
        found: &Found,
        limits: Limits,
        first: Option<&str>,
    ) -> (Store, Vec<Unwritten>) {
        let mut store = Store::new(catalog, limits);
        let rows: Vec<Option<u16>> = found.rows.iter().map(|row| store.found_row(row, &found.charts)).collect();
        let (own, others): (Vec<_>, Vec<_>) = found.sources.iter().partition(|s| Some(s.name.as_str()) == first);
        if let Some(first) = first.filter(|_| own.is_empty()) {
            store.add_source(first.into(), 1_000, Vec::new());
        }
        let all: Vec<&FoundSource> = own.into_iter().chain(others).collect();
        let unwritten = all.into_iter().map(|source| store.restore(source, &rows, found)).collect();
        (store, unwritten)
    }

    fn found_row(&mut self, row: &Metric, charts: &[Chart]) -> Option<u16> {
        let none = || Chart { id: row.chart.clone(), title: row.title.clone(), section: String::new() };
        let chart = charts.iter().find(|chart| chart.id == row.chart).cloned().unwrap_or_else(none);
        self.add_row(row.clone(), chart)
    }

    fn restore(&mut self, found: &FoundSource, rows: &[Option<u16>], all: &Found) -> Unwritten {
        let (segments, sound) = (&all.segments, all.report.damages.is_empty());
        let id = self.sources.len() as SourceId;
        self.facts += 1;
        let info = Source::new(id, found.name.clone(), found.interval.max(1), found.facts.clone());
        let mut kept = KeptSource::new(info, self.facts);
        // Everything is absent until the first tick of this run: values read before the last run ended are not current.
        let after = TickState::after(found.last_seq(), found.state.t());
        kept.begin_after(after);
        for def in &found.series {
            let row = def.as_ref().and_then(|def| rows.get(usize::from(def.metric)).copied().flatten());
            let instance = def.as_ref().map(|def| def.instance.clone()).unwrap_or_default();
            let steps: Steps = row.map_or(0.0, |row| self.catalog.metrics[usize::from(row)].steps);
            kept.rows.extend(row.filter(|row| usize::from(*row) >= self.fixed_rows()));
            kept.restore(def.is_some().then(|| SeriesDef { metric: row.unwrap_or(NO_ROW), instance }), steps, sound);
        }
        for segment in segments {
            let entries = segment.contents().sources.iter().zip(0u16..).filter(|(s, _)| s.name == found.name);
            for (entry, number) in entries {
                let blocks = segment.contents().blocks.iter().enumerate().filter(|(_, b)| b.source == number);
                let blocks: Vec<Block> = blocks.map(|(at, _)| Block::Disk(segment.clone(), at)).collect();
                let (from, to) = (blocks.iter().map(Block::from).min(), blocks.iter().map(Block::to).max());
                if let (Some(from), Some(to)) = (from, to) {
                    entry.series.iter().for_each(|series| kept.series.seen(series.id, from, to));
                }
                kept.put(blocks);
            }
        }
        let mut chunks = Vec::new();
        for chunk in Chunk::of_late(&found.late, |id| kept.steps(id)) {
            chunk.columns().iter().for_each(|(id, _)| kept.series.seen(*id, chunk.from, chunk.to));
            chunks.push(Arc::new(chunk));
        }
        for span in &found.spans {
            let logged = Chunk::of_log(Stretch::of_span(id, span));
            let (from, to) = (logged.iter().map(|chunk| chunk.from).min(), logged.iter().map(|chunk| chunk.to).max());
            if let (Some(from), Some(to)) = (from, to) {
                let present = (0..).zip(&span.present).filter(|(_, present)| **present);
                present.for_each(|(id, _)| kept.series.seen(id, from, to));
            }
            chunks.extend(logged.into_iter().map(Arc::new));
        }
        kept.put(chunks.iter().map(|chunk| Block::Memory(chunk.clone())).collect());
        for block in kept.blocks.iter().filter(|block| !block.late()) {
            kept.instants.take_block(block);
        }
        let (records, lost) = kept.records.restore(found, segments);
        self.counts.records_dropped += lost;
        self.memory += kept.memory;
        self.sources.push(kept);
        Unwritten { source: id, chunks, records }
    }

    /// The source of this key.
    pub fn named(&self, key: &str) -> Option<SourceId> {
        self.sources.iter().find(|s| s.info.key == key).map(|s| s.info.id)
    }

    /// Sets the interval and the facts of this run for a source that was found.
    pub fn renew(&mut self, source: SourceId, interval: i64, facts: Vec<(String, String)>) {
        if let Some(kept) = self.sources.get_mut(usize::from(source)) {
            self.facts += 1;
            kept.facts = self.facts;
            let info = Arc::make_mut(&mut kept.info);
            info.interval = interval;
            info.set_facts(facts);
        }
    }

    /// Adds facts of a source that were found at run time, in front of the others. Facts of the same name are replaced.
    pub fn add_facts(&mut self, source: SourceId, mut facts: Vec<(String, String)>) {
        let Some(kept) = self.sources.get_mut(usize::from(source)) else { return };
        let old = &kept.info.facts;
        let others =
            old.iter().filter(|(word, _)| !facts.iter().any(|(new, _)| new == word)).cloned().collect::<Vec<_>>();
        facts.extend(others);
        if facts != *old {
            self.facts += 1;
            kept.facts = self.facts;
            Arc::make_mut(&mut kept.info).set_facts(facts);
        }
    }

    /// Replaces chunks that are written in a segment, or the segments merged into it, by its blocks.
    pub fn replace(&mut self, source: SourceId, old: impl Fn(&Block) -> bool, new: Vec<Block>) {
        self.change(source, |kept| {
            kept.remove(old);
            kept.put(new);
        });
    }

    /// Drops the blocks and records of a segment that is gone.
    pub fn forget(&mut self, segment: &Segment) {
        for source in 0..self.sources.len() as SourceId {
            self.change(source, |kept| {
                kept.remove(|block| block.lies_in(segment));
                kept.records.replace(&kept.info.key, |old| old.name() == segment.name(), None);
            });
        }
    }

    /// Series of a source that has these ids, for a segment's directory.
    pub fn definition(&self, source: SourceId, id: SeriesId) -> Option<&SeriesDef> {
        self.kept(source)?.series.defs().get(id as usize)
    }
}

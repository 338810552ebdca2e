//! The data folder while the server runs.

use super::Batch;
use super::classes::{self, Classes};
use super::expiry::{ExpiryClock, SLACK_MS};
use super::health::{HistoryHealth, Trouble};
use crate::live::{Live, Writing};
use crate::store::{Block, Chunk, Unwritten};
use history::compaction::{self, Merged};
use history::retain::{Limits, expired};
use history::segments::{self, Kind, Name};
use history::{Folder, Found, Segment};
use shared::catalog::Chart;
use shared::segment::{Contents, NewColumn, SeriesEntry, SourceEntry, TickSpan};
use shared::series::SeriesId;
use shared::wire::SourceId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Delay after a failure before segments are written again.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// Delay before a segment that could not be read is tried again.
const UNREAD_RETRY_INTERVAL: Duration = Duration::from_secs(3_600);

/// A data folder, and its data that is not written yet.
pub struct Disk {
    folder: Folder,
    classes: Classes,
    /// Maximum bytes of all segments.
    most: Option<u64>,
    segments: Vec<Arc<Segment>>,
    /// Not written yet, oldest first.
    batches: VecDeque<Batch>,
    /// Log files up to this number are in segments. The next cut removes them.
    sealed: u64,
    found_log: u64,
    tried: Duration,
    /// Segments that could not be read during a merge, by serial, with the time of the failure.
    unread: BTreeMap<u64, Duration>,
    expiry: ExpiryClock,
    health: Arc<HistoryHealth>,
}

impl Disk {
    /// A folder as it was found.
    pub fn new(path: PathBuf, folder: Folder, found: Found, limits: Limits) -> Self {
        let health = Arc::new(HistoryHealth::new(path, folder.calls().clone(), &found.report));
        for damage in &found.report.damages {
            tracing::warn!("history: {damage}");
        }
        Disk {
            folder,
            classes: Classes::new(limits.retention),
            most: limits.bytes,
            segments: found.segments,
            batches: VecDeque::new(),
            sealed: 0,
            found_log: found.log,
            tried: Duration::ZERO,
            unread: BTreeMap::new(),
            expiry: ExpiryClock::default(),
            health,
        }
    }

    /// Number of the last log file that was found.
    pub(super) fn found_log(&self) -> u64 {
        self.found_log
    }

    /// State of the folder, for checks and metrics.
    pub(super) fn health(&self) -> &Arc<HistoryHealth> {
        &self.health
    }

    /// Starts the log and begins its first file.
    pub(super) fn begin(&mut self, live: &Live) -> io::Result<()> {
        let log = self.folder.log()?;
        let mut writing = live.writing();
        log.begin(writing.told.opening(&live.store(), false));
        writing.log = Some(log);
        Ok(())
    }

    /// Queues a batch that was cut. The next [`step`](Self::step) writes it.
    pub(super) fn take(&mut self, live: &Live, batch: Batch) {
        self.batches.extend(classes::split(live, batch));
    }

    /// Runs due work: the log, segments, merging, retention. May block on the disk for any time.
    pub(super) fn step(&mut self, live: &Live, now: i64) {
        let steady = live.clock.steady();
        self.restart_log(live, steady);
        if !self.health.troubled() || steady.saturating_sub(self.tried) >= RETRY_INTERVAL {
            self.tried = steady;
            let written = self.write_batches(live);
            let written = written.and_then(|()| self.remove_sources(live, steady));
            let written = written.and_then(|()| self.merge(live, now, steady));
            // Runs even after errors above: expired segments free space.
            let expired = self.expire(live, now);
            let bytes = self.segments.iter().map(|s| s.bytes()).sum();
            self.health.note(self.segments.len(), bytes, written.and(expired).err());
            self.let_go();
        }
    }

    /// Drops what the store has dropped, by age or for lack of memory, while the disk was failing.
    fn let_go(&mut self) {
        for source in self.batches.iter_mut().flat_map(|batch| &mut batch.sources) {
            source.chunks.retain(|chunk| Arc::strong_count(chunk) > 1);
            source.records.retain(|record| Arc::strong_count(record) > 1);
        }
    }

    /// Bytes of data that is not written yet.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.batches.iter().flat_map(|batch| &batch.sources).flat_map(|source| &source.chunks).map(|c| c.bytes()).sum()
    }

    /// Restarts a log that failed, with all data that is in no segment and no chunk.
    fn restart_log(&self, live: &Live, steady: Duration) {
        let failing = live.writing().log.as_ref().is_some_and(|log| log.health().failing.is_some());
        if failing && self.health.retry(steady) {
            let Writing { log, told, .. } = &mut *live.writing();
            if let Some(log) = log {
                log.begin(told.opening(&live.store(), true));
            }
        }
    }

    fn write_batches(&mut self, live: &Live) -> Result<(), Trouble> {
        while let Some(batch) = self.batches.front() {
            if let Some(segment) = self.write(live, batch).map_err(|e| Trouble::new("write", e))? {
                self.segments.push(segment);
            }
            let through = batch.through;
            self.batches.pop_front();
            if through == 0 {
                continue;
            }
            // One cut later than its segment, so that a damaged segment can be written again.
            if let Some(log) = &live.writing().log {
                log.remove_through(self.sealed);
            }
            self.sealed = through;
        }
        Ok(())
    }

    /// Writes the data of one cut as a segment; none when there is no data.
    fn write(&self, live: &Live, batch: &Batch) -> io::Result<Option<Arc<Segment>>> {
        let is_kept = |unwritten: &&Unwritten| !unwritten.is_empty() && !live.store().is_removed(unwritten.source);
        let all: Vec<&Unwritten> = batch.sources.iter().filter(is_kept).collect();
        if all.is_empty() {
            return Ok(None);
        }
        let mut contents = Contents { log_through: batch.through, ..Contents::default() };
        let sources: Vec<SourceId> = all.iter().map(|unwritten| unwritten.source).collect();
        directory(live, &mut contents, &sources, |source| {
            let own = all.iter().filter(|unwritten| unwritten.source == source);
            let chunks = own.flat_map(|unwritten| &unwritten.chunks);
            chunks.flat_map(|chunk| chunk.columns().iter().map(|(id, _)| *id)).collect()
        });
        let name = Name { kind: Kind::Quarter, start: batch.start / 1_000, serial: self.folder.serial() };
        let segment = segments::write(&**self.folder.files(), self.folder.indexes(), name, |writer| {
            for (number, unwritten) in (0u16..).zip(&all) {
                for chunk in &unwritten.chunks {
                    let times = shared::column::decode_times(&chunk.times, chunk.ticks).map_err(io::Error::other)?;
                    let (first_seq, last_seq) = (chunk.first_seq, chunk.last_seq());
                    let (clock_step, after_gap) = (chunk.clock_step, chunk.after_gap);
                    let span = TickSpan { source: number, first_seq, last_seq, times: &times, clock_step, after_gap };
                    writer.block(span, columns(chunk))?;
                }
                writer.records(number, unwritten.records.iter().map(|record| &**record))?;
            }
            Ok(contents)
        })?;
        let mut blocks: Vec<Vec<Block>> = vec![Vec::new(); all.len()];
        for (at, block) in segment.contents().blocks.iter().enumerate() {
            blocks[usize::from(block.source)].push(Block::Disk(segment.clone(), at));
        }
        for (unwritten, blocks) in all.iter().zip(blocks) {
            let written: BTreeSet<*const Chunk> = unwritten.chunks.iter().map(Arc::as_ptr).collect();
            let old = |b: &Block| matches!(b, Block::Memory(chunk) if written.contains(&Arc::as_ptr(chunk)));
            // One by one, here and below: ticks must not wait for a thousand replacements.
            live.store().replace(unwritten.source, old, blocks);
        }
        live.store().records_written(&segment, |_| false);
        Ok(Some(segment))
    }

    fn merge(&mut self, live: &Live, now: i64, steady: Duration) -> Result<(), Trouble> {
        // An hour that still receives late data would be rewritten again and again.
        if live.is_filling() {
            return Ok(());
        }
        while let Some(parts) = self.due(live, now, steady) {
            let files = &**self.folder.files();
            let merged = match compaction::merge(files, self.folder.indexes(), self.folder.serial(), &parts) {
                Ok(merged) => merged,
                Err(error) if compaction::unread(&error).is_some() => {
                    self.set_aside(&error, steady);
                    continue;
                }
                // Unmerged quarters hold the same data, only in more bytes. The remaining space is left to ticks.
                Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(()),
                Err(error) => return Err(Trouble::new("merge", error)),
            };
            self.take_over(live, &parts, merged)?;
        }
        Ok(())
    }

    /// The segments to merge next: of one hour and with the same retention.
    fn due(&mut self, live: &Live, now: i64, steady: Duration) -> Option<Vec<Arc<Segment>>> {
        self.classes.renew(live, &self.segments);
        self.classes.split(self.readable(steady)).find_map(|segments| compaction::due(now, &segments))
    }

    /// Replaces segments by the one that was merged from them.
    fn take_over(&mut self, live: &Live, parts: &[Arc<Segment>], merged: Merged) -> Result<(), Trouble> {
        for (file, damage) in &merged.damages {
            tracing::warn!("history: {file}: {damage}");
        }
        self.health.damaged(merged.damages.len());
        let contents = merged.segment.contents();
        let mut blocks: BTreeMap<&str, Vec<Block>> = BTreeMap::new();
        for (at, block) in contents.blocks.iter().enumerate() {
            let entry = contents.sources.get(usize::from(block.source));
            let own = entry.map(|entry| blocks.entry(entry.name.as_str()).or_default());
            own.into_iter().for_each(|own| own.push(Block::Disk(merged.segment.clone(), at)));
        }
        let sources = live.store().sources();
        for source in sources {
            let own = blocks.remove(source.key.as_str()).unwrap_or_default();
            live.store().replace(source.id, |b| parts.iter().any(|part| b.lies_in(part)), own);
        }
        live.store().records_written(&merged.segment, |old| parts.iter().any(|part| part.name() == old.name()));
        self.segments.retain(|s| !parts.iter().any(|part| part.name() == s.name()));
        self.segments.push(merged.segment);
        let gone = merged.replaced.iter().map(String::as_str);
        segments::remove(&**self.folder.files(), gone).map_err(|e| Trouble::new("remove", e))
    }

    /// Rewrites one segment that still has data of a removed source. One at a time, to leave the disk to ticks.
    fn remove_sources(&mut self, live: &Live, steady: Duration) -> Result<(), Trouble> {
        let removed = live.store().removed().clone();
        let readable = self.readable(steady);
        let Some(part) = readable.into_iter().find(|part| compaction::has_any(part, &removed)) else { return Ok(()) };
        let (files, serial) = (&**self.folder.files(), self.folder.serial());
        match compaction::without(files, self.folder.indexes(), serial, &part, &removed) {
            Ok(Some(merged)) => self.take_over(live, &[part], merged),
            Ok(None) => self.drop_segment(live, &part),
            Err(error) if compaction::unread(&error).is_some() => {
                self.set_aside(&error, steady);
                Ok(())
            }
            // The segment expires anyway, or space becomes free.
            Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(()),
            Err(error) => Err(Trouble::new("write", error)),
        }
    }

    /// Removes a segment.
    fn drop_segment(&mut self, live: &Live, segment: &Arc<Segment>) -> Result<(), Trouble> {
        live.store().forget(segment);
        self.segments.retain(|s| s.name() != segment.name());
        self.unread.remove(&segment.name().serial);
        let name = segment.name().to_string();
        segments::remove(&**self.folder.files(), [&name[..]]).map_err(|e| Trouble::new("remove", e))
    }

    /// The segments without those that could not be read recently. An hour is merged without its unreadable quarter.
    /// That quarter stays as it is, and is merged when it can be read.
    fn readable(&self, steady: Duration) -> Vec<Arc<Segment>> {
        let lately = |tried: &Duration| steady.saturating_sub(*tried) < UNREAD_RETRY_INTERVAL;
        let aside = |segment: &Arc<Segment>| self.unread.get(&segment.name().serial).is_some_and(lately);
        self.segments.iter().filter(|segment| !aside(segment)).cloned().collect()
    }

    /// Skips an unreadable segment for a while. It is logged once.
    fn set_aside(&mut self, error: &io::Error, steady: Duration) {
        let Some(name) = compaction::unread(error) else { return };
        if self.unread.insert(name.serial, steady).is_none() {
            tracing::warn!("history: {error}; it stays as it is, and is tried again every hour");
        }
    }

    fn expire(&mut self, live: &Live, now: i64) -> Result<(), Trouble> {
        self.classes.renew(live, &self.segments);
        let newest = || self.segments.iter().map(|segment| segment.to()).filter(|to| *to <= now).max();
        let now = self.expiry.now(now, live.clock.steady(), newest);
        let kept = |segment: &Segment| self.classes.class_of(segment).saturating_add(SLACK_MS);
        for segment in expired(now, self.most, &self.segments, kept) {
            self.drop_segment(live, &segment)?;
        }
        Ok(())
    }
}

/// Fills in rows, charts and sources with the series of `ids` for each source.
fn directory(live: &Live, contents: &mut Contents, sources: &[SourceId], ids: impl Fn(SourceId) -> BTreeSet<SeriesId>) {
    let (mut rows, mut places) = (Vec::new(), BTreeMap::new());
    for source in sources {
        let ids = ids(*source);
        // One by one: ticks must not wait for the names of a thousand machines.
        let store = live.store();
        let (catalog, Some((info, _))) = (store.catalog(), store.source(*source)) else { continue };
        let series = ids.into_iter().filter_map(|id| {
            let def = store.definition(info.id, id)?;
            let metric = catalog.metric(def)?;
            let row = *places.entry(def.metric).or_insert_with(|| {
                rows.push(metric.clone());
                (rows.len() - 1) as u16
            });
            Some(SeriesEntry { id, row, instance: def.instance.clone() })
        });
        let series = series.collect();
        contents.sources.push(SourceEntry {
            name: info.key.clone(),
            interval: info.interval,
            facts: info.facts.clone(),
            series,
        });
    }
    let drawn: BTreeSet<&str> = rows.iter().map(|row| &row.chart[..]).collect();
    let catalog = live.store().catalog().clone();
    let charts: Vec<Chart> =
        catalog.layout.charts.iter().filter(|chart| drawn.contains(&chart.id[..])).cloned().collect();
    contents.charts = charts;
    contents.rows = rows.into();
}

fn columns(chunk: &Chunk) -> impl Iterator<Item = NewColumn> + '_ {
    chunk.columns().iter().map(|(id, raw)| NewColumn { id: *id, raw: raw.to_vec(), tier: None })
}

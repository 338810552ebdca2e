//! Stores history: cuts the head at each quarter of an hour, converts it to columns, and writes them to the data
//! folder.
//!
//! It works beside the sampler, on a thread of its own, so that neither a large head nor a hanging disk delays a tick.
//! [`Archive::step`] does all the work, so that tests can call it at any time; [`run`] calls it once a second.
//!
//! Data stays readable throughout: from the head, from the cut stretch, from columns in memory, from the segment, and
//! at last from the merged hour.
//!
//! `disk.rs` writes, merges and removes segments and restarts the log. `classes.rs` separates sources by retention.
//! `expiry.rs` has the time by which they expire. `health.rs` reports the state, from a thread of its own in [`run`].

mod classes;
mod disk;
mod expiry;
mod health;

pub use disk::Disk;
pub use health::HistoryHealth;

use crate::live::Live;
use crate::store::{Block, Chunk, QUARTER, Stretch, Unwritten};
use shared::wire::SourceId;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Maximum number of sources cut under one lock, which delays ticks.
const MAX_CUT_AT_ONCE: usize = 16;
/// Pause between two cuts, in which ticks get the lock.
const BETWEEN_CUTS: Duration = Duration::from_millis(1);

/// Interval at which the archive checks the clock and the disk.
const STEP_INTERVAL: Duration = Duration::from_secs(1);

/// Writer of a server's history.
pub struct Archive {
    live: Arc<Live>,
    /// None without a data folder.
    disk: Option<Disk>,
    /// The quarter that the head belongs to.
    quarter: i64,
}

/// The heads that were cut at one moment, as columns in memory, and the records of the same time.
struct Batch {
    /// Start of its quarter, milliseconds since the Unix epoch.
    start: i64,
    /// Log files up to this number hold only data of this batch and of those before it. 0: no statement about logs.
    through: u64,
    sources: Vec<Unwritten>,
}

impl Archive {
    /// An archive that stores everything in memory.
    pub fn in_memory(live: Arc<Live>) -> Self {
        let quarter = live.clock.wall().div_euclid(QUARTER);
        Archive { live, disk: None, quarter }
    }

    /// An archive that writes to a folder, whose log it starts. `unwritten` is the data found in logs alone.
    ///
    /// # Errors
    /// The threads of the log cannot be started.
    pub fn on_disk(live: Arc<Live>, mut disk: Disk, unwritten: Vec<Unwritten>) -> std::io::Result<Self> {
        let mut archive = Self::in_memory(live);
        disk.begin(&archive.live)?;
        let (start, through) = (archive.quarter * QUARTER, disk.found_log());
        disk.take(&archive.live, Batch { start, through, sources: unwritten });
        archive.disk = Some(disk);
        Ok(archive)
    }

    /// Runs due work.
    pub fn step(&mut self) {
        let now = self.live.clock.wall();
        if now.div_euclid(QUARTER) != self.quarter {
            self.cut();
            self.quarter = now.div_euclid(QUARTER);
        }
        if let Some(disk) = &mut self.disk {
            late(&self.live).into_iter().for_each(|batch| disk.take(&self.live, batch));
            disk.step(&self.live, now);
            disk.health().check_disk(&self.live);
        }
    }

    /// Cuts the heads of all sources and converts them to columns.
    pub fn cut(&mut self) {
        let (sources, through) = {
            let mut writing = self.live.writing();
            let store = self.live.store();
            let sources: Vec<SourceId> = store.sources().into_iter().map(|source| source.id).collect();
            let idle = sources.iter().copied().filter(|id| store.is_cut(*id)).collect();
            let opening = writing.log.is_some().then(|| writing.told.opening_at_cut(&store, &idle));
            drop(store);
            let number = opening.zip(writing.log.as_ref()).map_or(0, |(opening, log)| log.begin(opening));
            (sources, number.saturating_sub(1))
        };
        // These cuts hold all data of the log files so far. A tick that arrives in between is in the next file as well.
        // A reader of both takes it once, by its sequence.
        let mut cut = Vec::with_capacity(sources.len());
        for (at, some) in sources.chunks(MAX_CUT_AT_ONCE).enumerate() {
            if at > 0 {
                // A thread waiting for a lock does not get it from one that takes it again at once.
                std::thread::sleep(BETWEEN_CUTS);
            }
            let writing = self.live.writing();
            let mut store = self.live.store();
            cut.extend(some.iter().map(|id| (*id, store.cut(*id), store.cut_records(*id))));
            let outdated = store.take_outdated();
            drop((store, writing));
            drop(outdated);
        }
        self.live.store().rest_rows();
        let sealed = cut.into_iter().map(|(source, stretch, records)| {
            let chunks = stretch.map(|stretch| self.seal(source, &stretch)).unwrap_or_default();
            Unwritten { source, chunks, records }
        });
        let sources: Vec<Unwritten> = sealed.collect();
        if let Some(disk) = &mut self.disk {
            disk.take(&self.live, Batch { start: self.quarter * QUARTER, through, sources });
        }
    }

    fn seal(&self, source: SourceId, stretch: &Arc<Stretch>) -> Vec<Arc<Chunk>> {
        let chunks = stretch.transpose().expect("the store encoded these frames one after the other");
        let chunks: Vec<_> = chunks.into_iter().map(Arc::new).collect();
        let blocks = chunks.iter().map(|chunk| Block::Memory(chunk.clone())).collect();
        self.live.store().sealed(source, stretch, blocks);
        chunks
    }
}

/// Late data to write now, by the hour that it belongs to.
fn late(live: &Live) -> Vec<Batch> {
    let mut hours: BTreeMap<i64, BTreeMap<SourceId, Vec<Arc<Chunk>>>> = BTreeMap::new();
    for (source, chunk) in live.take_fills() {
        let hour = chunk.from.div_euclid(4 * QUARTER) * 4 * QUARTER;
        hours.entry(hour).or_default().entry(source).or_default().push(chunk);
    }
    let unwritten = |(source, chunks)| Unwritten { source, chunks, records: Vec::new() };
    let batch = |(start, sources): (i64, BTreeMap<SourceId, Vec<Arc<Chunk>>>)| Batch {
        start,
        through: 0,
        sources: sources.into_iter().map(unwritten).collect(),
    };
    hours.into_iter().map(batch).collect()
}

/// Stores history until `stop`. A panic of the archive ends the archive alone: the page continues and shows a check.
pub fn run(mut archive: Archive, stop: &AtomicBool) {
    let live = archive.live.clone();
    let health = archive.disk.as_ref().map(|disk| disk.health().clone());
    let ended = AtomicBool::new(false);
    let ends = || stop.load(Ordering::Relaxed) || ended.load(Ordering::Relaxed);
    let kept = std::thread::scope(|scope| {
        if let Some(health) = &health {
            let look = || {
                while !ends() {
                    std::thread::park_timeout(STEP_INTERVAL);
                    health.check_disk(&live);
                }
            };
            if let Err(error) = std::thread::Builder::new().name("archive-look".into()).spawn_scoped(scope, look) {
                tracing::error!(%error, "a disk that hangs will not be told: the thread could not be started");
            }
        }
        let kept = catch_unwind(AssertUnwindSafe(|| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::park_timeout(STEP_INTERVAL);
                archive.step();
            }
        }));
        ended.store(true, Ordering::Relaxed);
        kept
    });
    if kept.is_err() {
        live.store().set_check(&health::gone());
    }
}

#[cfg(test)]
mod tests;

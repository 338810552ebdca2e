//! Keeps history: cuts the head at each quarter of an hour, turns it into columns, and writes them to the data folder.
//!
//! It works beside the sampler, on a thread of its own, so that neither a large head nor a disk that hangs holds a tick up.
//! [`Archive::step`] is all that it does, so that tests can do it when they like; [`run`] does it once a second. What is
//! written stays readable throughout: from the head, from the stretch that was cut, from columns in memory, from the
//! segment, and at last from the hour that the segment was merged into.
//!
//! `disk.rs` writes, merges and removes segments and gets the log going again, and `classes.rs` keeps those apart that are
//! kept for another time; `standing.rs` says how it stands, from a thread of its own in [`run`].

mod classes;
mod disk;
mod standing;

pub use disk::Disk;
pub use standing::Standing;

use crate::live::Live;
use crate::store::{Block, Chunk, QUARTER, Stretch, Unwritten};
use shared::wire::SourceId;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Sources that are cut at once: ticks wait for so many.
const MAX_CUT_AT_ONCE: usize = 16;
/// Ticks have so long between two of these.
const BETWEEN_CUTS: Duration = Duration::from_millis(1);

/// How often it looks at the clock and the disk.
const STEP_INTERVAL: Duration = Duration::from_secs(1);

/// What keeps the history of a server.
pub struct Archive {
    live: Arc<Live>,
    /// None where nothing is kept on disk.
    disk: Option<Disk>,
    /// The quarter that the head belongs to.
    quarter: i64,
}

/// What was cut off the heads at one moment, as columns in memory, and the records of the same time.
struct Batch {
    /// Start of its quarter, milliseconds since the Unix epoch.
    start: i64,
    /// Log files up to this number hold nothing that is not in this batch or in one before it. 0: it says nothing of logs.
    through: u64,
    sources: Vec<Unwritten>,
}

impl Archive {
    /// One that keeps all in memory.
    pub fn in_memory(live: Arc<Live>) -> Self {
        let quarter = live.clock.wall().div_euclid(QUARTER);
        Archive { live, disk: None, quarter }
    }

    /// One that writes to a folder, whose log it begins. `unwritten` is what was found in logs alone.
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

    /// Does what is due.
    pub fn step(&mut self) {
        let now = self.live.clock.wall();
        if now.div_euclid(QUARTER) != self.quarter {
            self.cut();
            self.quarter = now.div_euclid(QUARTER);
        }
        if let Some(disk) = &mut self.disk {
            late(&self.live).into_iter().for_each(|batch| disk.take(&self.live, batch));
            disk.step(&self.live, now);
            disk.standing().look(&self.live);
        }
    }

    /// Cuts the heads of all sources off and turns them into columns.
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
        // What the log files so far hold is in these cuts. A tick that comes in between is in the next file as well: who
        // reads both takes it once, by its sequence.
        let mut cut = Vec::with_capacity(sources.len());
        for (at, some) in sources.chunks(MAX_CUT_AT_ONCE).enumerate() {
            if at > 0 {
                // Whoever waits for a lock does not get it from one that takes it again at once.
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

/// What came late and is to be written now, by the hour that it belongs to.
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

/// Keeps history until `stop`. A fault of the archive's own ends it, not the page, which says so.
pub fn run(mut archive: Archive, stop: &AtomicBool) {
    let live = archive.live.clone();
    let standing = archive.disk.as_ref().map(|disk| disk.standing().clone());
    let ended = AtomicBool::new(false);
    let ends = || stop.load(Ordering::Relaxed) || ended.load(Ordering::Relaxed);
    let kept = std::thread::scope(|scope| {
        if let Some(standing) = &standing {
            let look = || {
                while !ends() {
                    std::thread::park_timeout(STEP_INTERVAL);
                    standing.look(&live);
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
        live.store().set_check(&standing::gone());
    }
}

#[cfg(test)]
mod tests;

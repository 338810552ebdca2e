//! Keeps history: cuts the head at each quarter of an hour, turns it into columns, and writes them to the data folder.
//!
//! It works beside the sampler, on a thread of its own, so that neither a large head nor a disk that hangs holds a tick up.
//! [`Keeper::step`] is all that it does, so that tests can do it when they like; [`run`] does it once a second. What is
//! written stays readable throughout: from the head, from the stretch that was cut, from columns in memory, from the
//! segment, and at last from the hour that the segment was merged into.
//!
//! `disk.rs` writes, merges and removes segments and gets the log going again; `standing.rs` says how it stands, from a
//! thread of its own in [`run`].

mod disk;
mod standing;

pub use disk::Disk;
pub use standing::Standing;

use crate::live::Hub;
use crate::store::{Block, Chunk, QUARTER, Stretch, Unwritten};
use shared::wire::SourceId;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often it looks at the clock and the disk.
const LOOK: Duration = Duration::from_secs(1);

/// What keeps a hub's history.
pub struct Keeper {
    hub: Arc<Hub>,
    /// None where nothing is kept on disk.
    disk: Option<Disk>,
    /// The quarter that the head belongs to.
    quarter: i64,
}

/// What was cut off the heads at one moment, as columns in memory.
struct Batch {
    /// Start of its quarter, milliseconds since the Unix epoch.
    start: i64,
    /// Log files up to this number hold nothing that is not in this batch or in one before it.
    through: u64,
    chunks: Unwritten,
}

impl Keeper {
    /// One that keeps all in memory.
    pub fn in_memory(hub: Arc<Hub>) -> Self {
        let quarter = hub.clock.wall().div_euclid(QUARTER);
        Keeper { hub, disk: None, quarter }
    }

    /// One that writes to a folder, whose log it begins. `unwritten` is what was found in logs alone.
    ///
    /// # Errors
    /// The threads of the log cannot be started.
    pub fn on_disk(hub: Arc<Hub>, mut disk: Disk, unwritten: Unwritten) -> std::io::Result<Self> {
        let mut keeper = Self::in_memory(hub);
        disk.begin(&keeper.hub)?;
        let (start, through) = (keeper.quarter * QUARTER, disk.found_log());
        disk.take(Batch { start, through, chunks: unwritten });
        keeper.disk = Some(disk);
        Ok(keeper)
    }

    /// Does what is due.
    pub fn step(&mut self) {
        let now = self.hub.clock.wall();
        if now.div_euclid(QUARTER) != self.quarter {
            self.cut();
            self.quarter = now.div_euclid(QUARTER);
        }
        if let Some(disk) = &mut self.disk {
            disk.step(&self.hub, now);
            disk.standing().look(&self.hub);
        }
    }

    /// Cuts the heads of all sources off and turns them into columns.
    pub fn cut(&mut self) {
        let (cut, through) = {
            // Nothing is appended between the cut and the beginning of the next log file.
            let mut writing = self.hub.writing();
            let mut store = self.hub.store();
            let sources = store.sources().into_iter().map(|source| source.id);
            let cut: Vec<_> = sources.filter_map(|id| Some((id, store.cut(id)?))).collect();
            store.rest_rows();
            let opening = writing.log.is_some().then(|| writing.told.opening(&store, false));
            drop(store);
            let number = opening.zip(writing.log.as_ref()).map_or(0, |(opening, log)| log.begin(opening));
            (cut, number.saturating_sub(1))
        };
        let chunks = cut.into_iter().map(|(source, stretch)| self.seal(source, &stretch)).collect();
        if let Some(disk) = &mut self.disk {
            disk.take(Batch { start: self.quarter * QUARTER, through, chunks });
        }
    }

    fn seal(&self, source: SourceId, stretch: &Arc<Stretch>) -> (SourceId, Vec<Arc<Chunk>>) {
        let chunks = stretch.transpose().expect("the store encoded these frames one after the other");
        let chunks: Vec<_> = chunks.into_iter().map(Arc::new).collect();
        let blocks = chunks.iter().map(|chunk| Block::Memory(chunk.clone())).collect();
        self.hub.store().sealed(source, stretch, blocks);
        (source, chunks)
    }
}

/// Keeps history until `stop`. A fault of the keeper's own ends it, not the page, which says so.
pub fn run(mut keeper: Keeper, stop: &AtomicBool) {
    let hub = keeper.hub.clone();
    let standing = keeper.disk.as_ref().map(|disk| disk.standing().clone());
    let ended = AtomicBool::new(false);
    let ends = || stop.load(Ordering::Relaxed) || ended.load(Ordering::Relaxed);
    let kept = std::thread::scope(|scope| {
        if let Some(standing) = &standing {
            let look = || {
                while !ends() {
                    std::thread::park_timeout(LOOK);
                    standing.look(&hub);
                }
            };
            if let Err(error) = std::thread::Builder::new().name("keeper-look".into()).spawn_scoped(scope, look) {
                tracing::error!(%error, "a disk that hangs will not be told: the thread could not be started");
            }
        }
        let kept = catch_unwind(AssertUnwindSafe(|| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::park_timeout(LOOK);
                keeper.step();
            }
        }));
        ended.store(true, Ordering::Relaxed);
        kept
    });
    if kept.is_err() {
        hub.store().set_check(&standing::gone());
    }
}

#[cfg(test)]
pub(crate) mod tests;

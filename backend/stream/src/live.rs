//! The live stream: what the sampler appends to and everybody reads; and what a page that follows it is sent.

mod append;
mod columns;
mod elsewhere;
mod fills;
mod hidden;
mod lock;
mod minutes;
mod named;
mod outgoing;
mod overview;
mod reader;
mod source;
mod standings;
mod uplinks;
mod viewer;
mod wakes;

pub use append::NewTick;
pub use columns::{RowColumns, rows_over_time};
pub use elsewhere::Holder;
pub use lock::StoreGuard;
pub use outgoing::Outgoing;
pub use overview::{CellsElsewhere, Overview, OverviewPlace};
pub use reader::Reader;
pub use source::{LinkFigures, Provenance, SourceState, TakenCounts};
pub use standings::KnownIndex;
pub use uplinks::{UplinkCounts, UplinkLag, UplinkStanding, UplinkState};
pub use viewer::Viewer;
pub use wakes::Wakes;

use crate::clock::{Clock, StoppedClock};
use crate::store::{Store, Told};
use history::Log;
use lock::StoreLock;
use overview::Overviews;
use shared::catalog::fleet::Grain;
use shared::scope::Scope;
use shared::wire::{Recorded, SourceId};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Counts of the stream, for our own health.
#[derive(Debug, Default)]
pub struct StreamCounts {
    /// Pages and scripts connected now.
    pub viewers: AtomicU64,
    /// Times a page's place was gone and everything was sent anew.
    pub resyncs: AtomicU64,
    /// Times a page had used up its credit while ticks went on: ticks were held back, none was queued.
    pub held_back: AtomicU64,
    /// Bytes of the messages that were handed to the sockets of viewers.
    pub bytes: AtomicU64,
    /// How old the newest tick of a simulated fleet was when it was there, milliseconds; 0 while it keeps its interval.
    pub behind_ms: AtomicU64,
    /// Ticks of a simulated fleet that were dropped because this machine is too slow, each of all its machines.
    pub dropped_ticks: AtomicU64,
}

/// What is written to disk as ticks come.
#[derive(Default)]
pub struct Writing {
    /// The log; none where nothing is kept on disk.
    pub log: Option<Log>,
    /// What its present file has been told.
    pub told: Told,
    closed: bool,
}

/// What the sampler writes and every page, script and request reads.
pub struct Live {
    store: StoreLock,
    /// Held by whoever appends: readers of the store do not wait for the disk.
    writing: Mutex<Writing>,
    /// What each source has beside its samples, by source id.
    sources: Mutex<Vec<Arc<SourceState>>>,
    /// Rises with the ticks of any source.
    ticks: watch::Sender<u64>,
    /// Rises when a source of another hub is wanted that does not come here yet.
    wants: watch::Sender<u64>,
    /// The hubs that hold other sources cannot be reached.
    apart: AtomicBool,
    /// Blocks that came late and are not written yet.
    fills: Mutex<fills::Fills>,
    /// What came late and is to be handed on; none where nobody does.
    late: Mutex<Option<fills::Late>>,
    /// How often what is said of a source in the index was changed.
    changes: AtomicU64,
    overviews: Overviews,
    /// The newest values of sources that other hubs hold, as those tell them.
    elsewhere: Mutex<HashMap<SourceId, Arc<CellsElsewhere>>>,
    /// Links to hubs.
    uplinks: Mutex<Vec<Arc<UplinkState>>>,
    /// When it was last looked which sources are late, by the steady clock, milliseconds.
    looked: AtomicU64,
    /// What went out to viewers, for our own health.
    pub counts: StreamCounts,
    /// A random number by which a page tells this run of the server from another.
    pub boot: u64,
    /// The clock that everything here is told.
    pub clock: Arc<dyn Clock>,
    /// How long history is kept, milliseconds; of sources that [differ](Store::retention), the longest time.
    pub retention: i64,
    /// Where the values come from.
    pub provenance: Provenance,
}

impl Live {
    /// The stream of a store of what is measured here and now.
    pub fn new(store: Store, clock: Arc<dyn Clock>, boot: u64, retention: i64) -> Arc<Self> {
        Self::of(store, clock, boot, retention, Provenance::default())
    }

    /// The stream of a store of simulated values.
    pub fn of_simulated(store: Store, clock: Arc<dyn Clock>, boot: u64, retention: i64) -> Arc<Self> {
        Self::of(store, clock, boot, retention, Provenance { simulated: true, recorded: None })
    }

    /// The stream of a recording; the clock stands at its end.
    pub fn of_recording(store: Store, boot: u64, recorded: Recorded, simulated: bool) -> Arc<Self> {
        let (clock, retention) = (Arc::new(StoppedClock(recorded.to)), recorded.to - recorded.from);
        Self::of(store, clock, boot, retention, Provenance { simulated, recorded: Some(recorded) })
    }

    fn of(store: Store, clock: Arc<dyn Clock>, boot: u64, retention: i64, provenance: Provenance) -> Arc<Self> {
        Arc::new(Live {
            store: StoreLock::new(store),
            writing: Mutex::default(),
            sources: Mutex::default(),
            ticks: watch::Sender::default(),
            wants: watch::Sender::default(),
            apart: AtomicBool::default(),
            fills: Mutex::default(),
            late: Mutex::default(),
            changes: AtomicU64::default(),
            overviews: Overviews::default(),
            elsewhere: Mutex::default(),
            uplinks: Mutex::default(),
            looked: AtomicU64::default(),
            counts: StreamCounts::default(),
            boot,
            clock,
            retention,
            provenance,
        })
    }

    /// What a source has beside its samples. There are as many as there are source ids.
    pub fn source(&self, source: SourceId) -> Arc<SourceState> {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if sources.len() <= usize::from(source) {
            let begun = || Arc::new(SourceState::begun(self.clock.wall(), self.steady_ms()));
            sources.resize_with(usize::from(source) + 1, begun);
        }
        sources[usize::from(source)].clone()
    }

    /// The sources whose ticks somebody waits for.
    pub fn watched(&self) -> Vec<SourceId> {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let watched = sources.iter().enumerate().filter(|(_, source)| source.ticks.receiver_count() > 0);
        watched.map(|(id, _)| id as SourceId).collect()
    }

    /// The store, for a moment: decode outside.
    ///
    /// # Panics
    /// Panics in tests where this thread has it already.
    #[track_caller]
    pub fn store(&self) -> StoreGuard<'_> {
        self.store.lock()
    }

    /// What is written to disk, for a moment in which nothing is appended.
    pub fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the readers of these sources that there are new ticks.
    pub fn announce(&self, sources: &[SourceId]) {
        let now = self.steady_ms();
        for source in sources {
            self.source(*source).heard.store(now, Ordering::Relaxed);
            self.announce_quietly(*source);
        }
        self.ticks.send_modify(|n| *n += 1);
    }

    /// Wakes the readers of a source, for something else than a tick.
    fn announce_quietly(&self, source: SourceId) {
        self.source(source).ticks.send_modify(|n| *n += 1);
    }

    fn steady_ms(&self) -> u64 {
        self.clock.steady().as_millis() as u64
    }

    /// Wakes every reader of whatever source: the server ends.
    pub fn wake_all(&self) {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner).len();
        (0..sources as SourceId).for_each(|source| self.announce_quietly(source));
        self.overviews.all().iter().for_each(|overview| overview.wake());
        self.ticks.send_modify(|n| *n += 1);
    }

    /// The overview of all that a scope has, and whether it is new: then whoever asked for it lets it [beat](Overview::beat)
    /// as long as anybody holds it.
    pub fn overview(&self, grain: Grain, scope: &Scope) -> (Arc<Overview>, bool) {
        self.overviews.of(grain, scope)
    }

    /// An overview of the sources that this hub holds, for the other hubs. Whoever asked lets it [beat](Overview::beat).
    pub fn own_overview(&self, grain: Grain) -> Overview {
        Overview::own(grain)
    }

    /// Takes the newest values of sources that another hub holds; None: nobody knows them.
    pub fn tell_cells(&self, all: impl IntoIterator<Item = (SourceId, Option<CellsElsewhere>)>) {
        let mut known = self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner);
        for (source, cells) in all {
            match cells {
                Some(cells) => drop(known.insert(source, Arc::new(cells))),
                None => drop(known.remove(&source)),
            }
        }
    }

    /// The newest values of a source that another hub holds.
    fn cells_elsewhere(&self, source: SourceId) -> Option<Arc<CellsElsewhere>> {
        self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner).get(&source).cloned()
    }

    /// Announcements that concern these sources; with none, any source.
    pub fn subscribe(&self, sources: &[SourceId]) -> Wakes {
        match sources {
            [] => self.ticks.subscribe().into(),
            some => Wakes::new(some.iter().map(|source| self.source(*source).subscribe()).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Manual;
    use crate::store::Limits;
    use shared::catalog::{Catalog, cpu};
    use std::time::Duration;

    #[test]
    fn readers_of_a_source_are_woken_by_its_ticks_alone_and_all_by_the_end() {
        let catalog = Arc::new(Catalog::new(cpu::ROWS.iter().copied()));
        let store = Store::new(catalog, Limits { retention: 60_000, bytes: usize::MAX });
        let live = Live::new(store, Arc::new(Manual::at(0, Duration::ZERO)), 1, 60_000);
        let mut readers = [&[0][..], &[1], &[], &[0, 1]].map(|sources| live.subscribe(sources));
        let mut woken = || readers.each_mut().map(Wakes::woken);
        assert_eq!(woken(), [false; 4]);
        live.announce(&[1]);
        assert_eq!(woken(), [false, true, true, true]);
        live.announce(&[0, 1]);
        assert_eq!(woken(), [true; 4]);
        live.wake_all();
        assert_eq!(woken(), [true; 4]);
        assert_eq!(woken(), [false; 4]);
    }
}

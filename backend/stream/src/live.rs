//! The live stream: appends by the sampler, reads by everything else, and the messages to a page that follows it.

mod append;
mod columns;
mod connection_states;
mod elsewhere;
mod fills;
mod found;
mod hidden;
mod lock;
mod minutes;
mod named;
mod outgoing;
mod overview;
mod reader;
mod source;
mod uplinks;
mod viewer;
mod wakes;

pub use append::NewTick;
pub use columns::{RowColumns, rows_over_time};
pub use connection_states::KnownIndex;
pub use elsewhere::Holder;
pub use found::FoundMachine;
pub use lock::StoreGuard;
pub use outgoing::Outgoing;
pub use overview::{CellsElsewhere, Overview, OverviewPlace};
pub use reader::Reader;
pub use source::{LinkFigures, Provenance, SourceState, TakenCounts};
pub use uplinks::{UplinkCounts, UplinkLag, UplinkState, UplinkStatus};
pub use viewer::Viewer;
pub use wakes::Wakes;

use crate::clock::{Clock, StoppedClock};
use crate::store::{AnnouncedSeries, Store};
use history::Log;
use lock::StoreLock;
use overview::Overviews;
use parking_lot::{Mutex, MutexGuard};
use shared::catalog::fleet::Grain;
use shared::scope::Scope;
use shared::wire::{Recorded, SourceId};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::watch;

/// Counters of the stream, for the server's own metrics.
#[derive(Debug, Default)]
pub struct StreamCounts {
    /// Pages and scripts connected now.
    pub viewers: AtomicU64,
    /// Times that a page's position was no longer in memory and everything was sent again.
    pub resyncs: AtomicU64,
    /// Times that a page had no credit left while ticks continued: ticks were held back, none was queued.
    pub held_back: AtomicU64,
    /// Bytes of the messages handed to the sockets of viewers.
    pub bytes: AtomicU64,
    /// Age of a simulated fleet's newest tick when it was appended, milliseconds; 0 while the fleet keeps its interval.
    pub behind_ms: AtomicU64,
    /// Dropped ticks of a simulated fleet, because this machine is too slow. Each stands for all machines of the fleet.
    pub dropped_ticks: AtomicU64,
}

/// State of writing ticks to disk as they are appended.
#[derive(Default)]
pub struct Writing {
    /// The log; none without a data folder.
    pub log: Option<Log>,
    /// Definitions already written to the current log file.
    pub told: AnnouncedSeries,
    closed: bool,
}

/// The stream that the sampler appends to and every page, script and request reads.
pub struct Live {
    store: StoreLock,
    /// Locked during an append: readers of the store do not wait for the disk.
    writing: Mutex<Writing>,
    /// State of each source beside its samples, by source id.
    sources: Mutex<Vec<Arc<SourceState>>>,
    /// Incremented with the ticks of any source.
    ticks: watch::Sender<u64>,
    /// Incremented when a reader wants a source of another hub whose data is not fetched yet.
    wants: watch::Sender<u64>,
    /// Whether the hubs that hold other sources are unreachable.
    apart: AtomicBool,
    /// Late blocks that are not written yet.
    fills: Mutex<fills::Fills>,
    /// Late sequences to be forwarded; none if nothing forwards them.
    late: Mutex<Option<fills::Late>>,
    /// Number of changes to sources' entries in the index.
    changes: AtomicU64,
    overviews: Overviews,
    /// The newest values of sources that other hubs hold, as received from them.
    elsewhere: Mutex<HashMap<SourceId, Arc<CellsElsewhere>>>,
    /// Connections to hubs.
    uplinks: Mutex<Vec<Arc<UplinkState>>>,
    /// Machines that endpoints scraped here tell of.
    found: watch::Sender<Arc<Vec<FoundMachine>>>,
    /// Time of the last check for late sources, by the steady clock, milliseconds.
    looked: AtomicU64,
    /// Counters of data sent to viewers, for the server's own metrics.
    pub counts: StreamCounts,
    /// A random number by which a page recognizes a restart of the server.
    pub boot: u64,
    /// The clock of this stream.
    pub clock: Arc<dyn Clock>,
    /// Retention, milliseconds; the longest one if sources [differ](Store::retention).
    pub retention: i64,
    /// Origin of the values.
    pub provenance: Provenance,
}

impl Live {
    /// The stream of a store of values measured now.
    pub fn new(store: Store, clock: Arc<dyn Clock>, boot: u64, retention: i64) -> Arc<Self> {
        Self::build(store, clock, boot, retention, Provenance::default())
    }

    /// The stream of a store of simulated values.
    pub fn of_simulated(store: Store, clock: Arc<dyn Clock>, boot: u64, retention: i64) -> Arc<Self> {
        Self::build(store, clock, boot, retention, Provenance { simulated: true, recorded: None })
    }

    /// The stream of a recording; the clock stands at its end.
    pub fn of_recording(store: Store, boot: u64, recorded: Recorded, simulated: bool) -> Arc<Self> {
        let (clock, retention) = (Arc::new(StoppedClock(recorded.to)), recorded.to - recorded.from);
        Self::build(store, clock, boot, retention, Provenance { simulated, recorded: Some(recorded) })
    }

    fn build(store: Store, clock: Arc<dyn Clock>, boot: u64, retention: i64, provenance: Provenance) -> Arc<Self> {
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
            found: watch::Sender::default(),
            looked: AtomicU64::default(),
            counts: StreamCounts::default(),
            boot,
            clock,
            retention,
            provenance,
        })
    }

    /// State of a source beside its samples. There are as many as source ids.
    pub fn source(&self, source: SourceId) -> Arc<SourceState> {
        let mut sources = self.sources.lock();
        if sources.len() <= usize::from(source) {
            let begun = || Arc::new(SourceState::begun(self.clock.wall(), self.steady_ms()));
            sources.resize_with(usize::from(source) + 1, begun);
        }
        sources[usize::from(source)].clone()
    }

    /// The sources whose ticks have a subscriber.
    pub fn watched(&self) -> Vec<SourceId> {
        let sources = self.sources.lock();
        let watched = sources.iter().enumerate().filter(|(_, source)| source.ticks.receiver_count() > 0);
        watched.map(|(id, _)| id as SourceId).collect()
    }

    /// The store, to be locked only briefly: decode outside.
    ///
    /// # Panics
    /// Panics in tests if this thread has locked it already.
    #[track_caller]
    pub fn store(&self) -> StoreGuard<'_> {
        self.store.lock()
    }

    /// State of writing to disk. Nothing is appended while the guard is held.
    pub fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock()
    }

    /// Notifies the readers of these sources of new ticks.
    pub fn announce(&self, sources: &[SourceId]) {
        let now = self.steady_ms();
        for source in sources {
            self.source(*source).heard.store(now, Ordering::Relaxed);
            self.announce_quietly(*source);
        }
        self.ticks.send_modify(|n| *n += 1);
    }

    /// Wakes the readers of a source for a change other than a tick.
    fn announce_quietly(&self, source: SourceId) {
        self.source(source).ticks.send_modify(|n| *n += 1);
    }

    fn steady_ms(&self) -> u64 {
        self.clock.steady().as_millis() as u64
    }

    /// Wakes the readers of all sources: the server ends.
    pub fn wake_all(&self) {
        let sources = self.sources.lock().len();
        (0..sources as SourceId).for_each(|source| self.announce_quietly(source));
        self.overviews.all().iter().for_each(|overview| overview.wake());
        self.ticks.send_modify(|n| *n += 1);
    }

    /// The overview of everything in a scope, and whether it is new. The caller [updates](Overview::beat) a new one as
    /// long as anybody holds it.
    pub fn overview(&self, grain: Grain, scope: &Scope) -> (Arc<Overview>, bool) {
        self.overviews.overview(grain, scope)
    }

    /// An overview of the sources that this hub holds, for the other hubs. The caller [updates](Overview::beat) it.
    pub fn own_overview(&self, grain: Grain) -> Overview {
        Overview::own(grain)
    }

    /// Sets the newest values of sources that another hub holds; None: the values are unknown.
    pub fn tell_cells(&self, all: impl IntoIterator<Item = (SourceId, Option<CellsElsewhere>)>) {
        let mut known = self.elsewhere.lock();
        for (source, cells) in all {
            match cells {
                Some(cells) => drop(known.insert(source, Arc::new(cells))),
                None => drop(known.remove(&source)),
            }
        }
    }

    /// The newest values of a source that another hub holds.
    fn cells_elsewhere(&self, source: SourceId) -> Option<Arc<CellsElsewhere>> {
        self.elsewhere.lock().get(&source).cloned()
    }

    /// Notifications of these sources; with none given, of any source.
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

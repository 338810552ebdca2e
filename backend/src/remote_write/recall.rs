//! The last 12 hours of a machine without a holder and without local data: its hub and the machine itself are gone.
//! They are read back from the server of remote write, when somebody opens that machine.
//!
//! Data read back is in memory, as blocks without sequences. So it never counts as history of ours: it is not offered,
//! not sent, and not written to disk. If the machine returns, its agent is requested for all of it, and the data read
//! back is dropped.
//!
//! One machine at a time, window by window, the newest first, so that the first data shows at once. The work ends when
//! nobody waits for it any more, and resumes where it ended.

use super::back::{Doubled, RawSeries};
use super::server::Server;
use shared::catalog::prometheus::{Names, SOURCE};
use shared::column;
use shared::series::SeriesId;
use shared::wire::SourceId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use stream::live::{Holder, Live};
use stream::store::{Chunk, Column};
use tokio::sync::{Mutex, OwnedMutexGuard, watch};

/// Length of the read span, milliseconds.
const SPAN_MS: i64 = 12 * 3_600_000;
/// Window of one query, milliseconds: 3 MB for 500 series at one sample per second.
const WINDOW_MS: i64 = 300_000;
/// Maximum size of one machine's blocks, bytes; older data is left out.
const MAX_BYTES: usize = 64 << 20;
/// Maximum size of all blocks, bytes; beyond it the machines that were read first are evicted.
const MAX_ALL_BYTES: usize = 256 << 20;
/// Pause after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);
/// Interval of the checks whether somebody has such a machine open.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Steps of a series, and its samples read back, by time.
type ReadColumn = (f64, Vec<(i64, f64)>);

/// Counts of data read back, for our own metrics.
#[derive(Debug, Default)]
pub struct RecallCounts {
    /// Samples.
    pub samples: AtomicU64,
    /// Samples of series without a row on this hub, or above the size limit of a machine.
    pub left_out: AtomicU64,
}

/// Progress of one machine's read-back.
#[derive(Clone, Copy, Debug)]
struct Reached {
    /// The newest requested instant, milliseconds since the Unix epoch.
    to: i64,
    /// Everything after this instant was read.
    from: i64,
    bytes: usize,
}

#[derive(Default)]
struct RecallState {
    reached: BTreeMap<SourceId, Reached>,
    /// In the order of their begin.
    order: Vec<SourceId>,
    /// Time of the server's failure, by the steady clock.
    failed: Option<Duration>,
}

/// Reads machines back.
pub struct Recall {
    live: Arc<Live>,
    server: Arc<Server>,
    /// Lock of the current read: one at a time.
    state: Arc<Mutex<RecallState>>,
    /// Counts of data read back.
    pub counts: RecallCounts,
    doubled: Arc<Doubled>,
}

impl Recall {
    pub(super) fn new(live: &Arc<Live>, server: &Arc<Server>, doubled: &Arc<Doubled>) -> Arc<Self> {
        Arc::new(Recall {
            live: live.clone(),
            server: server.clone(),
            state: Arc::default(),
            counts: RecallCounts::default(),
            doubled: doubled.clone(),
        })
    }

    /// Whether a machine needs a read-back: it has no holder, and no tick of it is here.
    pub fn lacks(&self, source: SourceId) -> bool {
        if self.live.holder(source) != Holder::Nobody {
            return false;
        }
        let store = self.live.store();
        let known = store.source(source).is_some() && !store.is_removed(source);
        known && store.ticks_after(source, 0) == 0
    }

    /// Reads back the missing data of a machine; returns at once if nothing is missing. When dropped, it ends after
    /// the current query.
    pub async fn read(self: &Arc<Self>, source: SourceId) {
        let mut state = self.state.clone().lock_owned().await;
        while self.lacks(source) {
            let this = self.clone();
            let step = tokio::task::spawn_blocking(move || {
                let more = this.step(&mut state, source);
                (state, more)
            });
            let Ok((kept, more)) = step.await else { return };
            state = kept;
            if !more {
                return;
            }
        }
        state.reached.remove(&source);
        state.order.retain(|own| *own != source);
    }

    /// Reads the next window; returns whether there may be more.
    fn step(&self, state: &mut OwnedMutexGuard<RecallState>, source: SourceId) -> bool {
        let (wall, steady) = (self.live.clock.wall(), self.live.clock.steady());
        if state.failed.is_some_and(|failed| steady.saturating_sub(failed) < RETRY_INTERVAL) {
            return false;
        }
        if !state.reached.contains_key(&source) {
            state.order.push(source);
        }
        let reached = *state.reached.entry(source).or_insert(Reached { to: wall, from: wall, bytes: 0 });
        if reached.from <= reached.to - SPAN_MS.min(self.live.retention) || reached.bytes >= MAX_BYTES {
            return false;
        }
        let Some(name) = self.live.store().source(source).map(|(source, _)| source.name.clone()) else { return false };
        let read = match super::back::raw(&self.server, &[(SOURCE, &name)], reached.from, WINDOW_MS, &self.doubled) {
            Ok(read) => read,
            Err(reason) => {
                tracing::warn!(source = name, reason, "what no hub holds could not be read back; it is tried again");
                state.failed = Some(steady);
                return false;
            }
        };
        state.failed = None;
        let bytes = self.lay(source, read);
        if let Some(reached) = state.reached.get_mut(&source) {
            reached.from -= WINDOW_MS;
            reached.bytes += bytes;
        }
        self.make_room(state, source);
        true
    }

    /// Drops the machines that were read first while the total is too large, but never the current one.
    fn make_room(&self, state: &mut RecallState, reading: SourceId) {
        let all = |state: &RecallState| state.reached.values().map(|reached| reached.bytes).sum::<usize>();
        while all(state) > MAX_ALL_BYTES
            && let Some(at) = state.order.iter().position(|source| *source != reading)
        {
            let oldest = state.order.remove(at);
            state.reached.remove(&oldest);
            self.live.store().forget_recalled(oldest);
        }
    }

    /// Adds the data to the history of a machine; returns its size in bytes.
    fn lay(&self, source: SourceId, read: Vec<RawSeries>) -> usize {
        let (own, catalog) = {
            let store = self.live.store();
            (store.catalog_of(|known| known.id == source, |_| false), store.catalog().clone())
        };
        // The machine's own definition of a name applies; without one, that of the other machines.
        let tables = [Names::new(&own), Names::new(&catalog)];
        let mut columns: BTreeMap<SeriesId, (f64, Vec<(i64, f64)>)> = BTreeMap::new();
        for RawSeries { name, labels, samples } in read {
            let labels: Vec<(&str, &str)> =
                labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let found = tables.iter().find_map(|names| Some((names.find(&name, &labels)?, names)));
            let family = found.as_ref().and_then(|(def, names)| names.family(def.metric));
            let def = found.as_ref().map(|(def, _)| def);
            let placed = def.and_then(|def| {
                let steps = catalog.metric(def)?.steps;
                Some((self.live.store().intern(source, def.clone())?, steps))
            });
            match (placed, family) {
                (Some((id, steps)), Some(family)) => {
                    self.counts.samples.fetch_add(samples.len() as u64, Relaxed);
                    let stored = samples.into_iter().map(|(t, value)| (t, family.stored(value)));
                    columns.entry(id).or_insert((steps, Vec::new())).1.extend(stored);
                }
                _ => drop(self.counts.left_out.fetch_add(samples.len() as u64, Relaxed)),
            }
        }
        let times: BTreeSet<i64> = columns.values().flat_map(|(_, own)| own.iter().map(|(t, _)| *t)).collect();
        let times: Vec<i64> = times.into_iter().collect();
        let mut bytes = 0;
        for times in times.chunks(column::MAX_TICKS) {
            let (from, to) = (times[0], times[times.len() - 1]);
            let column = |(id, (steps, own)): (&SeriesId, &ReadColumn)| {
                let mut values = vec![f64::NAN; times.len()];
                for (t, value) in own.iter().filter(|(t, _)| (from..=to).contains(t)) {
                    if let Ok(at) = times.binary_search(t) {
                        values[at] = *value;
                    }
                }
                let samples = values.iter().filter(|value| value.is_finite()).count() as u64;
                (samples > 0).then(|| Column {
                    id: *id,
                    raw: column::encode(&values, *steps).into_boxed_slice(),
                    samples,
                })
            };
            let chunk = Arc::new(Chunk::new(0, times, columns.iter().filter_map(column).collect()));
            bytes += chunk.bytes();
            self.live.store().recall(source, chunk);
            self.live.refilled(source, from, to);
        }
        bytes
    }
}

/// Reads back the machines that somebody has open, until `stop` becomes true.
pub async fn keep(recall: Arc<Recall>, mut stop: watch::Receiver<bool>) {
    let mut look = tokio::time::interval(LOOK_INTERVAL);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let ends = tokio::select! {
            _ = look.tick() => false,
            _ = stop.wait_for(|stop| *stop) => true,
        };
        if ends {
            return;
        }
        let watched: Vec<SourceId> = recall.live.watched();
        for source in watched.into_iter().filter(|source| recall.lacks(*source)) {
            tokio::select! {
                () = recall.read(source) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }
}

//! Sequences sent to the other server by any replica of a cluster: ranges by source, in a table that all replicas
//! share.
//!
//! A source moves between replicas. Its holder reads here the ranges that earlier holders sent, and records its own
//! ones, at most every [`WRITE_INTERVAL`]. It records a range only after the other server has had time to write it to
//! its disk: a replica may be killed together with that server. Samples that a killed replica had sent but not
//! recorded are sent again, equal in time and value.
//!
//! The sender never waits for the table: [`keep`] reads and writes it in parallel. While the table is unreachable,
//! sent ranges wait in memory, merged to few. Sources that arrived since then also wait; their samples stay in the
//! store.

use parking_lot::{Mutex, MutexGuard};
use shared::wire::SourceId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// First and last sequence, both included.
pub type SentRange = (u64, u64);

/// Interval of the writes of sent ranges.
pub const WRITE_INTERVAL: Duration = Duration::from_secs(15);
/// Interval of the checks for pending reads.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Timeout of the table.
const TABLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of ranges of a source; beyond it the oldest are dropped, and may be sent again.
const MAX_RANGES: usize = 1_024;

/// The table that the replicas share.
pub trait CoverageTable: Send + Sync + 'static {
    /// Ranges of these sources that the other server has taken: rising, by source; nothing for unknown sources.
    ///
    /// # Errors
    /// A sentence without a full stop.
    fn read(
        &self,
        sources: Vec<String>,
    ) -> impl Future<Output = Result<BTreeMap<String, Vec<SentRange>>, String>> + Send;

    /// Adds taken ranges, by source.
    ///
    /// # Errors
    /// A sentence without a full stop. The call is then repeated, with newer ranges added.
    fn extend(&self, taken: BTreeMap<String, Vec<SentRange>>) -> impl Future<Output = Result<(), String>> + Send;
}

/// Sending state of a replica in a cluster.
pub struct SendingCluster {
    /// Ranges sent by any of them.
    pub covered: Arc<Covered>,
    /// Whether this replica sends a source.
    pub holds: Box<dyn Fn(SourceId) -> bool + Send>,
}

/// Cached rows of the table, and pending writes.
#[derive(Default)]
pub struct Covered {
    state: Mutex<CoveredState>,
}

#[derive(Default)]
struct CoveredState {
    /// Sources whose ranges are to be read, or were read.
    asked: BTreeSet<String>,
    known: BTreeMap<String, Vec<SentRange>>,
    /// Taken ranges that are not written yet.
    waiting: BTreeMap<String, Vec<SentRange>>,
    /// The part of these that the other server may lose: this replica sends it again while it lives.
    unsettled: BTreeMap<String, Vec<SentRange>>,
    /// Write the pending ranges at once.
    hurry: bool,
    /// The last error of the table.
    failed: Option<String>,
}

impl CoveredState {
    /// The ranges to write: pending and settled.
    fn take_settled(&mut self) -> BTreeMap<String, Vec<SentRange>> {
        let mut all = BTreeMap::new();
        for (source, waiting) in std::mem::take(&mut self.waiting) {
            let mut unsettled = self.unsettled.get(&source).cloned().unwrap_or_default();
            join(&mut unsettled);
            let settled: Vec<SentRange> = waiting.iter().flat_map(|range| without(*range, &unsettled)).collect();
            let left: Vec<SentRange> = waiting.iter().flat_map(|range| without(*range, &settled)).collect();
            if !settled.is_empty() {
                all.insert(source.clone(), settled);
            }
            if !left.is_empty() {
                self.waiting.insert(source, left);
            }
        }
        all
    }
}

impl Covered {
    fn state(&self) -> MutexGuard<'_, CoveredState> {
        self.state.lock()
    }

    /// Ranges of a source on the other server; none before the table was read.
    pub fn ranges_of(&self, source: &str) -> Option<Vec<SentRange>> {
        let mut state = self.state();
        let known = state.known.get(source).cloned();
        if known.is_none() {
            state.asked.insert(source.into());
        }
        known
    }

    /// The other server has taken these, or refused them for good.
    pub fn took(&self, source: &str, ranges: &[SentRange]) {
        let state = &mut *self.state();
        for all in [state.known.entry(source.into()).or_default(), state.waiting.entry(source.into()).or_default()] {
            all.extend(ranges);
            join(all);
        }
    }

    /// Sets the ranges that the other server would lose of our source if it were killed now.
    pub fn may_lose(&self, source: &str, unsettled: Vec<SentRange>) {
        let mut state = self.state();
        match unsettled.is_empty() || !state.known.contains_key(source) {
            true => drop(state.unsettled.remove(source)),
            false => drop(state.unsettled.insert(source.into(), unsettled)),
        }
    }

    /// The source has moved to another replica: pending ranges are written at once, and its rows are read again if it
    /// returns. Ranges that the other server may lose are still sent again by this replica.
    pub fn left(&self, source: &str) {
        let mut state = self.state();
        state.asked.remove(source);
        state.unsettled.remove(source);
        if state.known.remove(source).is_some() {
            state.hurry = true;
        }
    }

    /// The last error of the table, a sentence without a full stop; none while it responds.
    pub fn failed(&self) -> Option<String> {
        self.state().failed.clone()
    }

    /// Reads requested sources, and writes pending ranges if that is `due`.
    async fn exchange(&self, table: &impl CoverageTable, due: bool) {
        let asked: Vec<String> = std::mem::take(&mut self.state().asked).into_iter().collect();
        if !asked.is_empty() {
            match bounded(table.read(asked.clone())).await {
                Ok(mut read) => {
                    let mut state = self.state();
                    state.failed = None;
                    for source in asked {
                        let mut ranges = read.remove(&source).unwrap_or_default();
                        ranges.extend(state.waiting.get(&source).into_iter().flatten());
                        join(&mut ranges);
                        state.known.insert(source, ranges);
                    }
                }
                Err(why) => {
                    let mut state = self.state();
                    state.failed = Some(why);
                    state.asked.extend(asked);
                }
            }
        }
        let waiting = {
            let mut state = self.state();
            if !(due || state.hurry) {
                return;
            }
            state.hurry = false;
            state.take_settled()
        };
        if waiting.is_empty() {
            return;
        }
        let written = bounded(table.extend(waiting.clone())).await;
        let mut state = self.state();
        match written {
            Ok(()) => state.failed = None,
            Err(why) => {
                state.failed = Some(why);
                for (source, ranges) in waiting {
                    let all = state.waiting.entry(source).or_default();
                    all.extend(ranges);
                    join(all);
                }
            }
        }
    }
}

/// Reads and writes the table until `stop` becomes true, and then writes the rest.
pub async fn keep(covered: &Covered, table: impl CoverageTable, mut stop: watch::Receiver<bool>) {
    let mut look = tokio::time::interval(LOOK_INTERVAL);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut written = tokio::time::Instant::now();
    loop {
        let ends = tokio::select! {
            _ = look.tick() => false,
            _ = stop.wait_for(|stop| *stop) => true,
        };
        let due = ends || written.elapsed() >= WRITE_INTERVAL;
        covered.exchange(&table, due).await;
        if ends {
            return;
        }
        if due {
            written = tokio::time::Instant::now();
        }
    }
}

async fn bounded<T>(asked: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let late = |_| format!("the database timed out after {} s", TABLE_TIMEOUT.as_secs());
    tokio::time::timeout(TABLE_TIMEOUT, asked).await.map_err(late)?
}

/// Merges touching ranges, in rising order.
pub(super) fn join(ranges: &mut Vec<SentRange>) {
    ranges.sort_unstable();
    ranges.dedup_by(|next, range| {
        let touches = next.0 <= range.1.saturating_add(1);
        range.1 = if touches { range.1.max(next.1) } else { range.1 };
        touches
    });
    if ranges.len() > MAX_RANGES {
        ranges.drain(..ranges.len() - MAX_RANGES);
    }
}

/// The part of a range outside of others, which rise and do not overlap.
pub(super) fn without((mut first, last): SentRange, others: &[SentRange]) -> Vec<SentRange> {
    let mut left = Vec::new();
    for &(start, end) in others {
        if end < first {
            continue;
        }
        if start > last {
            break;
        }
        if first < start {
            left.push((first, start - 1));
        }
        first = first.max(end.saturating_add(1));
    }
    if first <= last {
        left.push((first, last));
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the table is unreachable, and its rows.
    type Rows = (bool, BTreeMap<String, Vec<SentRange>>);

    /// A table in memory that can be unreachable.
    #[derive(Clone, Default)]
    struct Table(Arc<Mutex<Rows>>);

    impl CoverageTable for Table {
        async fn read(&self, sources: Vec<String>) -> Result<BTreeMap<String, Vec<SentRange>>, String> {
            let table = self.0.lock();
            let of = |source: String| table.1.get(&source).map(|ranges| (source.clone(), ranges.clone()));
            if table.0 { Err("away".into()) } else { Ok(sources.into_iter().filter_map(of).collect()) }
        }

        async fn extend(&self, taken: BTreeMap<String, Vec<SentRange>>) -> Result<(), String> {
            let mut table = self.0.lock();
            if table.0 {
                return Err("away".into());
            }
            for (source, ranges) in taken {
                table.1.entry(source).or_default().extend(ranges);
            }
            Ok(())
        }
    }

    #[tokio::test]
    async fn what_one_hub_sent_another_knows_once_it_is_written_down() {
        let (table, one, other) = (Table::default(), Covered::default(), Covered::default());
        assert_eq!(one.ranges_of("a"), None, "it is not known before it was read");
        one.exchange(&table, false).await;
        assert_eq!(one.ranges_of("a"), Some(vec![]));
        one.took("a", &[(1, 15)]);
        one.took("a", &[(16, 30), (41, 50)]);
        one.exchange(&table, false).await;
        assert!(table.0.lock().1.is_empty(), "not before its time");
        // The table is unreachable for a while: no taken range is lost.
        table.0.lock().0 = true;
        one.exchange(&table, true).await;
        assert_eq!(one.failed().as_deref(), Some("away"));
        one.took("a", &[(51, 60)]);
        assert_eq!(other.ranges_of("a"), None);
        other.exchange(&table, true).await;
        assert_eq!(other.ranges_of("a"), None, "who cannot read waits");
        table.0.lock().0 = false;
        one.left("a");
        one.exchange(&table, false).await;
        other.exchange(&table, false).await;
        assert_eq!((one.failed(), other.ranges_of("a")), (None, Some(vec![(1, 30), (41, 60)])));
        assert_eq!(one.ranges_of("a"), None, "it is read anew when the source returns");
    }

    #[tokio::test]
    async fn what_may_be_lost_with_the_server_is_not_written_down_before_it_is_settled() {
        let (table, hub) = (Table::default(), Covered::default());
        hub.ranges_of("a");
        hub.exchange(&table, true).await;
        let written = || table.0.lock().1.get("a").cloned().unwrap_or_default();
        hub.took("a", &[(1, 15), (16, 30)]);
        hub.may_lose("a", vec![(16, 30)]);
        hub.exchange(&table, true).await;
        assert_eq!(
            (written(), hub.ranges_of("a")),
            (vec![(1, 15)], Some(vec![(1, 30)])),
            "this hub sends it no more by itself"
        );
        // The replica is killed here: the next one sends the ranges that are not in the table.
        let next = Covered::default();
        next.ranges_of("a");
        next.exchange(&table, false).await;
        assert_eq!(next.ranges_of("a"), Some(vec![(1, 15)]));
        hub.took("a", &[(31, 45)]);
        hub.may_lose("a", vec![(31, 45)]);
        hub.exchange(&table, true).await;
        assert_eq!(written(), [(1, 15), (16, 30)]);
        // A replica that lives on repeats the lost samples of a source that has moved.
        hub.left("a");
        hub.may_lose("a", vec![(31, 45)]);
        hub.exchange(&table, false).await;
        assert_eq!(written(), [(1, 15), (16, 30), (31, 45)]);
    }

    #[test]
    fn what_is_left_of_a_range_is_outside_of_the_others() {
        assert_eq!(without((5, 20), &[]), [(5, 20)]);
        assert_eq!(without((5, 20), &[(1, 7), (10, 12), (19, 30)]), [(8, 9), (13, 18)]);
        assert_eq!(without((5, 20), &[(1, u64::MAX)]), []);
        let mut many: Vec<SentRange> = (0..5_000).map(|n| (n * 3, n * 3)).collect();
        join(&mut many);
        assert_eq!((many.len(), many.last().copied()), (MAX_RANGES, Some((14_997, 14_997))));
    }
}

//! Late blocks: they can be read at once, and wait here for the archive to write them.
//!
//! They are in no log. A server that ends before they are written lacks them after its restart, and fetches them again.

use super::Live;
use crate::store::Chunk;
use shared::wire::SourceId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Late blocks are written from this size or this age on.
const WRITE_BYTES: usize = 64 << 20;
const WRITE_AFTER: Duration = Duration::from_secs(30);
/// Hours are not merged while late data for them arrives: delay after the last of it, and the maximum delay.
const MERGE_DELAY: Duration = Duration::from_secs(60);
const MERGE_AFTER: Duration = Duration::from_secs(3_600);

/// Maximum number of late ranges per source that were not handed out yet. Above it all are joined to one.
const MAX_LATE: usize = 256;

/// Sequences of late ticks, by source, for forwarding.
pub(super) type Late = BTreeMap<SourceId, Vec<(u64, u64)>>;

/// Late blocks that are on no disk yet.
#[derive(Default)]
pub(super) struct Fills {
    waiting: Vec<(SourceId, Arc<Chunk>)>,
    bytes: usize,
    /// Arrival of the oldest of them, by the steady clock.
    since: Option<Duration>,
    /// No more late data is expected, so there is nothing to wait for.
    complete: bool,
    /// Arrival of the first and the last block of a series without a pause of a minute.
    coming: Option<(Duration, Duration)>,
}

impl Live {
    /// Adds late blocks to a source. They can be read when it returns.
    pub fn fill(&self, source: SourceId, chunks: Vec<Arc<Chunk>>) {
        let kept_on_disk = self.writing().log.is_some();
        self.store().fill(source, &chunks);
        let (state, samples) = (self.source(source), chunks.iter().map(|chunk| chunk.samples()).sum());
        state.taken.samples.fetch_add(samples, Ordering::Relaxed);
        state.taken.late.fetch_add(samples, Ordering::Relaxed);
        if let Some(late) = &mut *self.late.lock() {
            let late = late.entry(source).or_default();
            late.extend(
                chunks.iter().filter(|chunk| chunk.first_seq > 0).map(|chunk| (chunk.first_seq, chunk.last_seq())),
            );
            join(late);
        }
        let now = self.clock.steady();
        let mut fills = self.fills.lock();
        let since =
            fills.coming.filter(|(_, last)| now.saturating_sub(*last) < MERGE_DELAY).map_or(now, |(first, _)| first);
        fills.coming = Some((since, now));
        if kept_on_disk {
            fills.bytes += chunks.iter().map(|chunk| chunk.bytes()).sum::<usize>();
            fills.since.get_or_insert(now);
            fills.complete = false;
            fills.waiting.extend(chunks.into_iter().map(|chunk| (source, chunk)));
        }
    }

    /// Records the ranges of late data from now on, until they are [taken](Self::take_late).
    pub fn remember_late(&self) {
        self.late.lock().get_or_insert_default();
    }

    /// First and last sequences of the late ticks of a source since the last call, ascending.
    pub fn take_late(&self, source: SourceId) -> Vec<(u64, u64)> {
        let mut late = self.late.lock();
        late.as_mut().and_then(|late| late.remove(&source)).unwrap_or_default()
    }

    /// No data is missing any more: waiting blocks are written now.
    pub fn complete_fills(&self) {
        self.fills.lock().complete = true;
    }

    /// Whether the limit of blocks waiting to be written is reached.
    pub fn is_full_of_fills(&self) -> bool {
        self.fills.lock().bytes >= WRITE_BYTES
    }

    /// The blocks to be written now; usually none.
    pub fn take_fills(&self) -> Vec<(SourceId, Arc<Chunk>)> {
        let now = self.clock.steady();
        let mut fills = self.fills.lock();
        let old = fills.since.is_some_and(|since| now.saturating_sub(since) >= WRITE_AFTER);
        if !(old || fills.complete || fills.bytes >= WRITE_BYTES) {
            return Vec::new();
        }
        (fills.bytes, fills.since, fills.complete) = (0, None, false);
        std::mem::take(&mut fills.waiting)
    }

    /// Whether past hours still change.
    pub fn is_filling(&self) -> bool {
        let now = self.clock.steady();
        let fills = self.fills.lock();
        fills.coming.is_some_and(|(first, last)| {
            now.saturating_sub(last) < MERGE_DELAY && now.saturating_sub(first) < MERGE_AFTER
        })
    }
}

/// Joins adjacent ranges, and above [`MAX_LATE`] all of them: the ticks between are then forwarded once more.
fn join(spans: &mut Vec<(u64, u64)>) {
    spans.sort_unstable();
    let all = spans.len() > MAX_LATE;
    spans.dedup_by(|next, span| {
        let touches = all || next.0 <= span.1.saturating_add(1);
        span.1 = if touches { span.1.max(next.1) } else { span.1 };
        touches
    });
}

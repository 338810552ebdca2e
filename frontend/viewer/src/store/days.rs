//! History of one machine in minutes, still compressed. Windows longer than [`MAX_SAMPLES_SPAN_MS`] are drawn from
//! these. The newest hours come from the samples of the page.

use shared::rollup::Bucket;
use shared::segment::{TIER_MS, tier};
use shared::series::SeriesId;
use shared::window::MAX_SAMPLES_SPAN_MS;
use shared::wire::Minutes;
use std::collections::BTreeMap;

const HOUR_MS: i64 = 3_600_000;

/// A stretch of history in the form in which it arrived.
struct Stretch {
    last_seq: u64,
    from: i64,
    to: i64,
    columns: BTreeMap<SeriesId, Vec<u8>>,
}

/// The minutes of a machine that the page stores.
#[derive(Default)]
pub struct Days {
    /// Stretches by the sequence of their first tick; they do not overlap.
    stretches: BTreeMap<u64, Stretch>,
    arriving: BTreeMap<u64, Stretch>,
    /// Start of the time for which the minutes are complete, ms since the epoch; None before the first answer.
    from: Option<i64>,
    /// Time of the newest tick at the last request for minutes, ms since the epoch.
    asked: i64,
}

impl Days {
    /// True when there are no minutes.
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Adds a part of an answer. Several messages may contain the columns of one stretch.
    pub fn take(&mut self, message: Minutes) {
        let Minutes { first_seq, last_seq, from, to, columns, .. } = message;
        let new = || Stretch { last_seq, from, to, columns: BTreeMap::default() };
        let stretch = self.arriving.entry(first_seq).or_insert_with(new);
        stretch.columns.extend(columns.into_iter().map(|(id, bytes)| (id, bytes.0)));
    }

    /// The answer is complete from `from` on (ms since the epoch), so its stretches can be used.
    pub fn end(&mut self, from: i64) {
        self.from = Some(self.from.map_or(from, |before| before.min(from)));
        for (first, stretch) in std::mem::take(&mut self.arriving) {
            // The server merges quarters of an hour to hours. A new hour replaces the quarters that it contains.
            if self.stretches.range(..=first).any(|(_, held)| held.last_seq > stretch.last_seq) {
                continue;
            }
            self.stretches.retain(|held, s| *held < first || s.last_seq > stretch.last_seq);
            self.stretches.insert(first, stretch);
        }
    }

    /// The span to request, so that all minutes from `from` on are available; None if they are. `newest` is the time of
    /// the newest tick.
    pub fn ask(&mut self, from: i64, newest: i64) -> Option<(i64, i64)> {
        let to = self.stretches.last_key_value().map(|(_, s)| s.to);
        // Whole hours are requested, because the start of a live window always moves a little.
        let from = from.div_euclid(HOUR_MS) * HOUR_MS;
        let ask = match (self.from, to) {
            (None, _) => (from, newest),
            (Some(known), _) if from < known => (from, known),
            // This happens before the page drops the samples that follow the last minutes.
            (_, Some(to)) if to < newest - MAX_SAMPLES_SPAN_MS / 2 && self.asked < newest - HOUR_MS => (to + 1, newest),
            _ => return None,
        };
        self.asked = newest;
        Some(ask)
    }

    /// True when the minutes are complete from an instant on, ms since the epoch.
    pub fn has_from(&self, from: i64) -> bool {
        self.from.is_some_and(|known| known <= from)
    }

    /// Drops stretches that end before an instant, ms since the epoch.
    pub fn forget(&mut self, before: i64) {
        self.stretches.retain(|_, s| s.to >= before);
    }

    /// Drops the minutes of a series.
    pub fn forget_series(&mut self, series: SeriesId) {
        for stretch in self.stretches.values_mut().chain(self.arriving.values_mut()) {
            stretch.columns.retain(|id, _| *id != series);
        }
    }

    /// Sequence of the newest tick in the minutes, 0 for none. Later ticks are read from samples.
    pub fn last_seq(&self) -> u64 {
        self.stretches.values().map(|s| s.last_seq).max().unwrap_or(0)
    }

    /// Calls `each` with the minutes of a series that end after `from`, oldest first, and with the time of the last
    /// tick in each. Times are ms since the epoch.
    pub fn minutes(&self, series: SeriesId, from: i64, mut each: impl FnMut(&Bucket, i64)) {
        for stretch in self.stretches.values().filter(|s| s.to >= from) {
            let buckets = stretch.columns.get(&series).and_then(|bytes| tier::decode(bytes));
            for bucket in buckets.iter().flatten().filter(|b| b.t + TIER_MS > from) {
                each(bucket, (bucket.t + TIER_MS - 1).min(stretch.to).max(bucket.t.max(stretch.from)));
            }
        }
    }
}

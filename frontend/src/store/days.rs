//! Days of one machine as minutes, still compressed: what windows longer than [`LONGEST_OF_SAMPLES`] are drawn from. The
//! newest hours, which a page has as samples, follow behind.

use shared::rollup::Bucket;
use shared::segment::{TIER_MS, tier};
use shared::series::SeriesId;
use shared::window::LONGEST_OF_SAMPLES;
use shared::wire::Minutes;
use std::collections::BTreeMap;

const HOUR: i64 = 3_600_000;

/// A stretch as it came.
struct Stretch {
    last_seq: u64,
    from: i64,
    to: i64,
    columns: BTreeMap<SeriesId, Vec<u8>>,
}

/// What is held of it.
#[derive(Default)]
pub struct Days {
    /// By the sequence of their first tick; none reaches into another.
    stretches: BTreeMap<u64, Stretch>,
    arriving: BTreeMap<u64, Stretch>,
    /// From where on it is complete, ms; none before the first answer.
    from: Option<i64>,
    /// Time of the newest tick when it was asked for last, ms.
    asked: i64,
}

impl Days {
    /// True when there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Takes in a stretch; several messages may bring the columns of one.
    pub fn take(&mut self, message: Minutes) {
        let Minutes { first_seq, last_seq, from, to, columns, .. } = message;
        let new = || Stretch { last_seq, from, to, columns: BTreeMap::default() };
        let stretch = self.arriving.entry(first_seq).or_insert_with(new);
        stretch.columns.extend(columns.into_iter().map(|(id, bytes)| (id, bytes.0)));
    }

    /// An answer is complete.
    pub fn end(&mut self, from: i64) {
        self.from = Some(self.from.map_or(from, |before| before.min(from)));
        for (first, stretch) in std::mem::take(&mut self.arriving) {
            // The server merges quarters to hours: an hour takes the place of what it holds.
            if self.stretches.range(..=first).any(|(_, held)| held.last_seq > stretch.last_seq) {
                continue;
            }
            self.stretches.retain(|held, s| *held < first || s.last_seq > stretch.last_seq);
            self.stretches.insert(first, stretch);
        }
    }

    /// The span to ask for so that all from an instant on is there; `newest` is the time of the newest tick.
    pub fn ask(&mut self, from: i64, newest: i64) -> Option<(i64, i64)> {
        let to = self.stretches.last_key_value().map(|(_, s)| s.to);
        // By whole hours: a live window begins now a little earlier, now later.
        let from = from.div_euclid(HOUR) * HOUR;
        let ask = match (self.from, to) {
            (None, _) => (from, newest),
            (Some(known), _) if from < known => (from, known),
            // Before the samples that a page keeps no longer reach back to it.
            (_, Some(to)) if to < newest - LONGEST_OF_SAMPLES / 2 && self.asked < newest - HOUR => (to + 1, newest),
            _ => return None,
        };
        self.asked = newest;
        Some(ask)
    }

    /// Drops what ends before an instant.
    pub fn forget(&mut self, before: i64) {
        self.stretches.retain(|_, s| s.to >= before);
    }

    /// Drops the minutes of a series.
    pub fn forget_series(&mut self, series: SeriesId) {
        for stretch in self.stretches.values_mut().chain(self.arriving.values_mut()) {
            stretch.columns.retain(|id, _| *id != series);
        }
    }

    /// Sequence of the newest tick that is in it; what comes after is read from samples.
    pub fn last_seq(&self) -> u64 {
        self.stretches.values().map(|s| s.last_seq).max().unwrap_or(0)
    }

    /// Calls `each` with the minutes of a series that reach beyond `from`, and when their last tick was, ms; oldest first.
    pub fn minutes(&self, series: SeriesId, from: i64, mut each: impl FnMut(&Bucket, i64)) {
        for stretch in self.stretches.values().filter(|s| s.to >= from) {
            let buckets = stretch.columns.get(&series).and_then(|bytes| tier::decode(bytes));
            for bucket in buckets.iter().flatten().filter(|b| b.t + TIER_MS > from) {
                each(bucket, (bucket.t + TIER_MS - 1).min(stretch.to).max(bucket.t.max(stretch.from)));
            }
        }
    }
}

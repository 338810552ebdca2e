//! Reading a stretch of the store outside its lock.
//!
//! Damage on the disk is a gap, and counted: an answer contains the sound data.

use super::{Block, Damages, Stretch};
use shared::rollup::{Bucket, mean};
use shared::series::SeriesId;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The step of the roll-ups stored on disk, milliseconds.
const MINUTE: i64 = 60_000;

/// All data of one source between two times; it holds pointers, not copies. Reading may read the disk.
pub struct Snapshot {
    pub(super) blocks: Vec<Block>,
    /// Unsealed frames, oldest first; the head is the last.
    pub(super) stretches: Vec<Arc<Stretch>>,
    pub(super) damages: Arc<Damages>,
    pub(super) from: i64,
    pub(super) to: i64,
}

impl Snapshot {
    /// Sealed blocks that reach into the span, in order of sequence. Blocks of late samples, which have no sequence,
    /// come first.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The blocks with ticks of these sequences, ascending; unsealed ticks are converted to columns here.
    pub fn blocks_of(self, range: &RangeInclusive<u64>) -> Vec<Block> {
        let reaches = |block: &Block| block.last_seq() >= *range.start() && block.first_seq() <= *range.end();
        let mut blocks: Vec<Block> = self.blocks.into_iter().filter(|block| !block.late() && reaches(block)).collect();
        for stretch in self.stretches.iter().filter(|s| s.frames.iter().any(|frame| range.contains(&frame.seq))) {
            match stretch.transpose() {
                Ok(chunks) => {
                    blocks.extend(chunks.into_iter().map(|chunk| Block::Memory(Arc::new(chunk))).filter(reaches))
                }
                Err(error) => tracing::error!("ticks in memory do not follow each other: {error}"),
            }
        }
        blocks.sort_by_key(Block::first_seq);
        blocks
    }

    /// The part between two times that lies within its span; none if there is none.
    pub fn part(&self, from: i64, to: i64) -> Option<Snapshot> {
        let (from, to) = (from.max(self.from), to.min(self.to));
        let reaches = |b: &&Block| b.to() >= from && b.from() <= to;
        (from <= to).then(|| Snapshot {
            blocks: self.blocks.iter().filter(reaches).cloned().collect(),
            stretches: self.stretches.clone(),
            damages: self.damages.clone(),
            from,
            to,
        })
    }

    fn within(&self, t: i64) -> bool {
        t >= self.from && t <= self.to
    }

    /// Samples (time in ms, value) of each of these series within the span, both ends included, in order of time. With
    /// two of one instant, the one that was taken first.
    pub fn samples(&self, ids: &[SeriesId]) -> Vec<Vec<(i64, f64)>> {
        let mut all = vec![Vec::new(); ids.len()];
        for block in &self.blocks {
            let Some(times) = self.damages.checked(block, None, block.read_times()) else { continue };
            for (samples, &id) in all.iter_mut().zip(ids) {
                let Some(Some(values)) = self.damages.checked(block, Some(id), block.read(id)) else { continue };
                samples.extend(times.iter().copied().zip(values).filter(|(t, v)| self.within(*t) && v.is_finite()));
            }
        }
        self.unsealed(|t, values| {
            for (samples, &id) in all.iter_mut().zip(ids) {
                samples.extend(values.get(id as usize).filter(|v| v.is_finite()).map(|v| (t, *v)));
            }
        });
        for samples in &mut all {
            if !samples.is_sorted_by(|a, b| a.0 < b.0) {
                samples.sort_by_key(|(t, _)| *t);
                samples.dedup_by_key(|(t, _)| *t);
            }
        }
        all
    }

    /// Time and values of each unsealed tick within the span.
    fn unsealed(&self, mut each: impl FnMut(i64, &[f64])) {
        for stretch in &self.stretches {
            if stretch.frames.iter().any(|f| self.within(f.t)) {
                let replayed = stretch.replay(|frame, state| {
                    if self.within(frame.t) {
                        each(frame.t, state.values());
                    }
                });
                if replayed.is_err() {
                    tracing::error!("ticks in memory do not follow each other");
                }
            }
        }
    }

    /// The same without unsealed ticks, which are read one by one whatever series are needed.
    pub fn sealed(mut self) -> Self {
        self.stretches.clear();
        self
    }

    /// Roll-ups of each of these series over the samples within the span, in buckets of `step_ms` that start at
    /// multiples of it, in order of time.
    ///
    /// Without `last`, whole minutes are read from the minutes on disk if the step is a multiple of a minute. Minima,
    /// maxima and counts are those of the samples, means are exact to single precision, and `last` may be NaN, for
    /// unknown.
    pub fn buckets(&self, ids: &[SeriesId], step_ms: i64, last: bool) -> Vec<Vec<Bucket>> {
        let step = step_ms.max(1);
        let mut all: Vec<Rolling> = ids.iter().map(|_| Rolling::new(step)).collect();
        let minutes = !last && step % MINUTE == 0;
        for block in &self.blocks {
            let mut times = None;
            for (rolling, &id) in all.iter_mut().zip(ids) {
                let stored = if minutes { block.minutes(id) } else { Ok(None) };
                let stored = self.damages.checked(block, Some(id), stored).flatten();
                // Minutes across an end of the span are rolled up from the samples, and so is all data without minutes.
                let whole = |t: i64| stored.is_some() && t >= self.from && t + MINUTE - 1 <= self.to;
                let part = |t: i64| !whole(t.div_euclid(MINUTE) * MINUTE);
                if stored.is_none() || part(block.from().max(self.from)) || part(block.to().min(self.to)) {
                    let read = || self.damages.checked(block, None, block.read_times());
                    let Some(times) = times.get_or_insert_with(read) else { break };
                    let values = self.damages.checked(block, Some(id), block.read(id)).flatten().unwrap_or_default();
                    for (&t, &v) in times.iter().zip(&values) {
                        if self.within(t) && (stored.is_none() || part(t)) {
                            rolling.sample(t, v);
                        }
                    }
                }
                stored.iter().flatten().filter(|b| whole(b.t)).for_each(|b| rolling.bucket(b));
            }
        }
        self.unsealed(|t, values| {
            for (rolling, &id) in all.iter_mut().zip(ids) {
                values.get(id as usize).into_iter().for_each(|v| rolling.sample(t, *v));
            }
        });
        all.into_iter().map(Rolling::end).collect()
    }
}

/// Buckets of one series; samples are usually, but not always, in order of time.
struct Rolling {
    step: i64,
    /// In order of time; means hold sums meanwhile.
    buckets: Vec<Bucket>,
    /// The time of the newest sample of each bucket.
    newest: Vec<i64>,
    /// Index of the bucket that was filled last.
    at: usize,
}

impl Rolling {
    fn new(step: i64) -> Self {
        Rolling { step, buckets: Vec::new(), newest: Vec::new(), at: 0 }
    }

    fn sample(&mut self, t: i64, v: f64) {
        if !v.is_finite() {
            return;
        }
        let one = Bucket { t, min: v, max: v, mean: v, last: v, count: 1 };
        match self.buckets.get_mut(self.at) {
            // The usual case, without a division.
            Some(bucket) if t >= bucket.t && t.saturating_sub(bucket.t) < self.step => {
                join(bucket, &mut self.newest[self.at], &one, t);
            }
            _ => self.add(t, one),
        }
    }

    fn bucket(&mut self, minute: &Bucket) {
        // The time of its last sample is not stored; the end of the minute orders it as well.
        self.add(minute.t + MINUTE - 1, Bucket { mean: minute.mean * f64::from(minute.count), ..*minute });
    }

    fn add(&mut self, newest: i64, more: Bucket) {
        let behind = self.buckets.last().map(|last| last.t.saturating_add(self.step));
        // Usually the next one, which is found without a division.
        if let Some(t) = behind.filter(|t| more.t >= *t && more.t.saturating_sub(*t) < self.step) {
            self.at = self.buckets.len();
            self.buckets.push(Bucket { t, ..more });
            self.newest.push(newest);
            return;
        }
        let t = more.t.div_euclid(self.step) * self.step;
        if self.buckets.get(self.at).is_none_or(|bucket| bucket.t != t) {
            self.at = match self.buckets.last() {
                Some(last) if last.t >= t => self.buckets.partition_point(|bucket| bucket.t < t),
                _ => self.buckets.len(),
            };
        }
        match self.buckets.get_mut(self.at) {
            Some(bucket) if bucket.t == t => join(bucket, &mut self.newest[self.at], &more, newest),
            _ => {
                self.buckets.insert(self.at, Bucket { t, ..more });
                self.newest.insert(self.at, newest);
            }
        }
    }

    fn end(mut self) -> Vec<Bucket> {
        self.buckets.iter_mut().for_each(|b| b.mean = mean(b.mean, b));
        self.buckets
    }
}

/// Merges `more`, with a newest sample at `newest`, into a bucket with its newest sample at `at`; means hold sums.
fn join(bucket: &mut Bucket, at: &mut i64, more: &Bucket, newest: i64) {
    bucket.min = bucket.min.min(more.min);
    bucket.max = bucket.max.max(more.max);
    bucket.mean += more.mean;
    bucket.count += more.count;
    if newest >= *at {
        (bucket.last, *at) = (more.last, newest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_huge_values_is_a_number() {
        let mut rolling = Rolling::new(2 * MINUTE);
        (0..3).for_each(|t| rolling.sample(t, f64::MAX));
        let minute = Bucket { t: MINUTE, min: f64::MAX, max: f64::MAX, mean: f64::MAX, last: f64::NAN, count: 60 };
        rolling.bucket(&minute);
        let buckets = rolling.end();
        assert_eq!((buckets.len(), buckets[0].mean, buckets[0].count), (1, f64::MAX, 63));
    }
}

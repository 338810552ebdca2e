//! Samples that come after their tick: of a machine that was cut off, or brought in from elsewhere.

use super::Store;
use super::kept::Kept;
use shared::series::SeriesId;
use shared::wire::SourceId;
use std::sync::Arc;

/// A sample further ahead of the wall clock than this, in milliseconds, is refused.
pub const AHEAD: i64 = 600_000;

/// What became of samples that came late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inserted {
    /// Stored.
    pub taken: u64,
    /// Left out: the series has a sample at that very instant.
    pub duplicate: u64,
    /// Left out: older than the retention.
    pub too_old: u64,
    /// Left out: more than 10 minutes ahead of the clock.
    pub future: u64,
}

impl Store {
    /// The samples that lie between the retention and the future, without those that are no numbers, and what became of
    /// the others; [`Store::insert`] wants them so. `now` is milliseconds since the Unix epoch.
    pub fn in_time(&mut self, samples: &[(SeriesId, i64, f64)], now: i64) -> (Vec<(SeriesId, i64, f64)>, Inserted) {
        let (mut fits, mut inserted) = (Vec::with_capacity(samples.len()), Inserted::default());
        for &sample in samples.iter().filter(|(.., v)| v.is_finite()) {
            match sample.1 {
                t if t > now + AHEAD => inserted.future += 1,
                t if t < now - self.limits.retention => inserted.too_old += 1,
                _ => fits.push(sample),
            }
        }
        self.counts.refused_future += inserted.future;
        self.counts.refused_old += inserted.too_old;
        (fits, inserted)
    }

    /// Stores late samples that nobody has at their instants.
    pub fn insert(&mut self, source: SourceId, samples: &[(SeriesId, i64, f64)]) {
        if let Some(kept) = self.sources.get_mut(usize::from(source)) {
            kept.insert(samples);
            self.counts.late += samples.len() as u64;
        }
    }

    /// The late samples of a source that are in no segment.
    pub fn late(&self, source: SourceId) -> Vec<(SeriesId, i64, f64)> {
        let all = self.kept(source).into_iter().flat_map(|kept| kept.late.iter());
        all.flat_map(|(id, all)| all.iter().map(|(t, v)| (*id, *t, *v))).collect()
    }

    /// Forgets late samples that are in a segment now.
    pub fn late_written(&mut self, source: SourceId, samples: &[(SeriesId, i64, f64)]) {
        if let Some(kept) = self.sources.get_mut(usize::from(source)) {
            let late = Arc::make_mut(&mut kept.late);
            for (id, t, _) in samples {
                if let Some(all) = late.get_mut(id) {
                    all.remove(t);
                }
            }
            late.retain(|_, all| !all.is_empty());
        }
    }

    /// Counts late samples that were there already.
    pub fn count_duplicates(&mut self, duplicates: u64) {
        self.counts.duplicates += duplicates;
    }
}

impl Kept {
    pub(super) fn insert(&mut self, samples: &[(SeriesId, i64, f64)]) {
        samples.iter().for_each(|(id, t, _)| self.series.seen(*id, *t, *t));
        let late = Arc::make_mut(&mut self.late);
        for &(id, t, v) in samples {
            late.entry(id).or_default().entry(t).or_insert(v);
        }
    }
}

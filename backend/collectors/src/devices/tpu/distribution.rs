//! Distributions: the values between two readings, and their percentiles.
//!
//! The runtime counts since its start. Percentiles of such counts hardly move after an hour, so they are computed from
//! the difference of two readings.

use super::messages::{BucketOptions, Distribution};

/// Maximum number of buckets; protects the memory from a malformed answer.
const MAX_BUCKETS: i32 = 10_000;

/// Counts by bucket. The first bucket ends at the first bound, and the last one begins at the last.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct BucketCounts {
    bounds: Vec<f64>,
    buckets: Vec<i64>,
    count: i64,
    sum: f64,
}

impl BucketCounts {
    /// Reads a distribution; none if its buckets are invalid.
    pub fn read(distribution: &Distribution) -> Option<BucketCounts> {
        let bounds = bounds(distribution.bucket_options.as_ref()?)?;
        let mut buckets = distribution.bucket_counts.clone();
        let rising = bounds.windows(2).all(|pair| pair[0] < pair[1]) && bounds.iter().all(|bound| bound.is_finite());
        if bounds.is_empty() || !rising || buckets.len() > bounds.len() + 1 || buckets.iter().any(|n| *n < 0) {
            return None;
        }
        // The encoding leaves out empty buckets at the end.
        buckets.resize(bounds.len() + 1, 0);
        let (count, sum) = (distribution.count, distribution.mean * distribution.count as f64);
        Some(BucketCounts { bounds, buckets, count, sum })
    }

    /// Adds another one; returns false if it has other bounds.
    pub fn add(&mut self, other: &BucketCounts) -> bool {
        if self.bounds != other.bounds {
            return false;
        }
        for (own, other) in self.buckets.iter_mut().zip(&other.buckets) {
            *own = own.saturating_add(*other);
        }
        self.count = self.count.saturating_add(other.count);
        self.sum += other.sum;
        true
    }

    /// The values since an earlier reading; none if there are none, or if the program restarted.
    pub fn since(&self, before: &BucketCounts) -> Option<BucketCounts> {
        let buckets: Vec<i64> = self.buckets.iter().zip(&before.buckets).map(|(now, then)| now - then).collect();
        let reset = self.bounds != before.bounds || buckets.iter().any(|n| *n < 0);
        let any = buckets.iter().any(|n| *n > 0);
        let (count, sum) = (self.count - before.count, self.sum - before.sum);
        (!reset && any).then(|| BucketCounts { bounds: self.bounds.clone(), buckets, count, sum })
    }

    /// Mean of all values.
    pub fn mean(&self) -> Option<f64> {
        Some(self.sum / self.count as f64).filter(|mean| self.count > 0 && mean.is_finite() && *mean >= 0.0)
    }

    /// The value below which this share (0 to 1) of the values is, interpolated linearly in its bucket. The first
    /// bucket begins at zero. Above the last bound the result is that bound.
    pub fn percentile(&self, share: f64) -> Option<f64> {
        let all: f64 = self.buckets.iter().map(|n| *n as f64).sum();
        let rank = share * all;
        let mut below = 0.0;
        for (i, inside) in self.buckets.iter().enumerate() {
            let inside = *inside as f64;
            if inside > 0.0 && below + inside >= rank {
                let Some(upper) = self.bounds.get(i) else { return self.bounds.last().copied() };
                let lower = if i == 0 { upper.min(0.0) } else { self.bounds[i - 1] };
                return Some(lower + (upper - lower) * ((rank - below) / inside).clamp(0.0, 1.0));
            }
            below += inside;
        }
        None
    }
}

fn bounds(options: &BucketOptions) -> Option<Vec<f64>> {
    let count = |finite: i32| (0..=MAX_BUCKETS).contains(&finite).then_some(0..=finite);
    if let Some(exponential) = &options.exponential {
        let bounds = count(exponential.finite)?.map(|i| exponential.scale * exponential.growth.powi(i));
        return Some(bounds.collect());
    }
    if let Some(linear) = &options.linear {
        return Some(count(linear.finite)?.map(|i| linear.offset + linear.width * f64::from(i)).collect());
    }
    let explicit = options.explicit.as_ref()?;
    (explicit.bounds.len() <= MAX_BUCKETS as usize).then(|| explicit.bounds.clone())
}

//! Buckets of min, max, mean, last and count, and the rate of counters.

use serde::{Deserialize, Serialize};

/// One bucket of a roll-up. `t` is the bucket's start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bucket {
    /// Start of the bucket, milliseconds since the Unix epoch.
    pub t: i64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Arithmetic mean of the samples.
    pub mean: f64,
    /// Value of the newest sample.
    pub last: f64,
    /// Number of samples; never 0.
    pub count: u32,
}

/// Rolls samples (time in ms, value) in time order into buckets of `step_ms` that start at multiples of it. Absent (not
/// finite) values are skipped; a bucket without samples does not exist.
pub fn roll(samples: impl IntoIterator<Item = (i64, f64)>, step_ms: i64) -> Vec<Bucket> {
    rolled(samples, step_ms).collect()
}

/// The buckets of [`roll`] one by one, so that neither samples nor buckets need to be held.
pub fn rolled(samples: impl IntoIterator<Item = (i64, f64)>, step_ms: i64) -> impl Iterator<Item = Bucket> {
    let step = step_ms.max(1);
    let mut samples = samples.into_iter().filter(|(_, v)| v.is_finite());
    let mut next = None;
    std::iter::from_fn(move || {
        let (t, v) = next.take().or_else(|| samples.next())?;
        let start = t.div_euclid(step) * step;
        let mut bucket = Bucket { t: start, min: v, max: v, mean: v, last: v, count: 1 };
        let mut sum = v;
        for (t, v) in samples.by_ref() {
            if t.div_euclid(step) * step != start {
                next = Some((t, v));
                break;
            }
            sum += v;
            bucket.min = bucket.min.min(v);
            bucket.max = bucket.max.max(v);
            bucket.last = v;
            bucket.count += 1;
            bucket.mean = mean(sum, &bucket);
        }
        Some(bucket)
    })
}

/// The mean of the values of a bucket with this sum. The sum of huge values is infinite, and their mean is not: then it
/// is the middle between the extremes.
pub fn mean(sum: f64, bucket: &Bucket) -> f64 {
    let mean = sum / f64::from(bucket.count);
    if mean.is_finite() { mean } else { bucket.min / 2.0 + bucket.max / 2.0 }
}

/// The rate of a counter per second between neighboring samples. A decrease is a reset: no value for that interval.
/// There is no value across a distance above `longest_ms` either: an average over a gap would hide the gap.
pub fn rate(samples: impl IntoIterator<Item = (i64, f64)>, longest_ms: i64) -> impl Iterator<Item = (i64, f64)> {
    let mut before: Option<(i64, f64)> = None;
    samples.into_iter().filter_map(move |(t, v)| {
        if !v.is_finite() {
            return None;
        }
        let (t0, v0) = before.replace((t, v))?;
        let ms = t - t0;
        (ms > 0 && ms <= longest_ms && v >= v0).then(|| (t, (v - v0) * 1000.0 / ms as f64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_keeps_the_extremes_the_mean_and_the_last() {
        let buckets = roll([(1_000, 1.0), (1_500, 9.0), (1_900, 2.0), (5_000, 4.0), (5_500, f64::NAN)], 1_000);
        assert_eq!(buckets.len(), 2);
        assert_eq!(buckets[0], Bucket { t: 1_000, min: 1.0, max: 9.0, mean: 4.0, last: 2.0, count: 3 });
        assert_eq!(buckets[1].count, 1);
    }

    #[test]
    fn the_mean_of_huge_values_is_a_number() {
        let means = |samples: [f64; 3]| roll((0..).zip(samples), 1_000)[0].mean;
        assert_eq!(means([f64::MAX; 3]), f64::MAX);
        assert_eq!(means([-f64::MAX; 3]), -f64::MAX);
        assert_eq!(means([f64::MAX, f64::MAX, -f64::MAX]), 0.0);
        assert_eq!(means([1.0, 2.0, 6.0]), 3.0);
    }

    #[test]
    fn a_reset_and_a_gap_have_no_rate() {
        let samples = [(0, 10.0), (1_000, 20.0), (2_000, 5.0), (3_000, 6.0), (60_000, 600.0), (61_000, 601.0)];
        let rates: Vec<_> = rate(samples, 2_000).collect();
        assert_eq!(rates, [(1_000, 10.0), (3_000, 1.0), (61_000, 1.0)]);
    }
}

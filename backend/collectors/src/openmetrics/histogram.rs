//! Quantiles of a histogram's counts since the previous scrape.

/// The reported quantiles, as in the `quantile` label.
pub(super) const QUANTILES: [(&str, f64); 3] = [("0.5", 0.5), ("0.9", 0.9), ("0.99", 0.99)];

/// One histogram: its buckets now and at the previous scrape.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    /// Upper bounds, ascending, with the position of the count.
    buckets: Vec<(f64, usize)>,
    before: Vec<f64>,
    now: Vec<f64>,
}

impl Histogram {
    /// Adds a bucket with this upper bound, whose count is at position `at`.
    pub(super) fn add(&mut self, bound: f64, at: usize) {
        let place = self.buckets.partition_point(|(b, _)| *b < bound);
        self.buckets.insert(place, (bound, at));
        self.before.clear();
    }

    /// Updates the positions of its counts: `to` has the new one, or none for an evicted count. Returns false if no
    /// bucket is left.
    pub(super) fn moved(&mut self, to: &[Option<usize>]) -> bool {
        let buckets = self.buckets.len();
        self.buckets = self.buckets.iter().filter_map(|(bound, at)| Some((*bound, to[*at]?))).collect();
        if self.buckets.len() < buckets {
            self.before.clear();
        }
        !self.buckets.is_empty()
    }

    /// The quantiles of the counts since the previous call. None at first, without a new count, if a bucket is missing,
    /// and after a reset.
    pub(super) fn quantiles(&mut self, counts: &[f64]) -> Option<[f64; 3]> {
        self.now.clear();
        self.now.extend(self.buckets.iter().map(|(_, at)| counts[*at]));
        std::mem::swap(&mut self.now, &mut self.before);
        let (now, before) = (&self.before, &mut self.now);
        if now.iter().any(|n| !n.is_finite()) {
            self.before.clear();
            return None;
        }
        if before.len() != now.len() || now.iter().zip(before.iter()).any(|(now, before)| now < before) {
            return None;
        }
        // Counts are cumulative, and so are their increases. A page read while the endpoint counts may be slightly
        // inconsistent.
        let mut least = 0f64;
        for (new, old) in now.iter().zip(before.iter_mut()) {
            least = least.max(new - *old);
            *old = least;
        }
        let increase = &*before;
        let total = *increase.last()?;
        if total <= 0.0 || self.buckets.last()?.0 != f64::INFINITY {
            return None;
        }
        let mut all = [0.0; 3];
        for (value, (_, q)) in all.iter_mut().zip(QUANTILES) {
            *value = quantile(&self.buckets, increase, q * total)?;
        }
        Some(all)
    }
}

/// Values in a bucket are assumed to be evenly spread. Above the last finite bound the result is that bound.
fn quantile(buckets: &[(f64, usize)], increase: &[f64], rank: f64) -> Option<f64> {
    let i = increase.partition_point(|n| *n < rank);
    let upper = buckets.get(i)?.0;
    let below = i.checked_sub(1).map(|i| (buckets[i].0, increase[i]));
    if upper == f64::INFINITY {
        return below.map(|(bound, _)| bound);
    }
    let (lower, under) = below.unwrap_or((upper.min(0.0), 0.0));
    let inside = increase[i] - under;
    Some(if inside > 0.0 { lower + (upper - lower) * (rank - under) / inside } else { upper })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(bounds: &[f64]) -> Histogram {
        let mut h = Histogram::default();
        bounds.iter().enumerate().for_each(|(i, b)| h.add(*b, i));
        h
    }

    #[test]
    fn quantiles_are_of_the_increase_alone() {
        let mut h = histogram(&[f64::INFINITY, 1.0, 2.0, 4.0]);
        assert_eq!(h.quantiles(&[1_000.0, 1_000.0, 1_000.0, 1_000.0]), None, "there is no scrape before");
        // 10 more: none up to 1, 5 up to 2, 9 up to 4, 1 beyond.
        assert_eq!(h.quantiles(&[1_010.0, 1_000.0, 1_005.0, 1_009.0]), Some([2.0, 4.0, 4.0]));
        assert_eq!(h.quantiles(&[1_010.0, 1_000.0, 1_005.0, 1_009.0]), None, "nothing was counted");
        assert_eq!(h.quantiles(&[1_014.0, 1_004.0, 1_009.0, 1_013.0]), Some([0.5, 0.9, 0.99]));
    }

    #[test]
    fn a_reset_or_a_missing_bucket_gives_nothing_and_the_next_scrape_counts_anew() {
        let mut h = histogram(&[1.0, f64::INFINITY]);
        h.quantiles(&[5.0, 5.0]);
        assert_eq!(h.quantiles(&[1.0, 1.0]), None);
        assert_eq!(h.quantiles(&[3.0, 3.0]), Some([0.5, 0.9, 0.99]));
        assert_eq!(h.quantiles(&[4.0, f64::NAN]), None);
        assert_eq!(h.quantiles(&[5.0, 5.0]), None);
        assert!(h.quantiles(&[6.0, 6.0]).is_some());
    }

    #[test]
    fn negative_bounds_and_disorder_give_no_nonsense() {
        let mut h = histogram(&[-2.0, -1.0, f64::INFINITY]);
        h.quantiles(&[0.0, 0.0, 0.0]);
        assert_eq!(h.quantiles(&[10.0, 10.0, 10.0]), Some([-2.0, -2.0, -2.0]));
        assert_eq!(h.quantiles(&[14.0, 12.0, 14.0]), Some([-2.0, -2.0, -2.0]));
        let mut h = histogram(&[1.0]);
        h.quantiles(&[0.0]);
        assert_eq!(h.quantiles(&[4.0]), None, "without +Inf the total is not known");
    }
}

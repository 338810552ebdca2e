//! Reduces samples to one column for each pixel: first, smallest, largest and last value. A line through these covers
//! exactly the pixels of a line through all samples (the M4 method). The mean is kept too, for spans in which a column
//! holds many samples.
//!
//! Columns begin at multiples of their width since the epoch. A finished column thus never changes while the shown span
//! moves on, and only new samples need work.

/// The samples of a series in the time of one pixel column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column {
    /// Number of the column: time in ms since the epoch divided by the width of a column.
    pub slot: i64,
    /// Time at which the column is drawn, ms since the epoch: that of its sample when it holds one, else its middle.
    pub t: i64,
    /// First value.
    pub first: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Last value.
    pub last: f64,
    /// True when the smallest comes before the largest.
    pub rising: bool,
    /// Sum of the values.
    pub sum: f64,
    /// Number of samples, at least 1.
    pub count: u32,
    /// Time of the first sample, ms since the epoch.
    pub first_t: i64,
    /// Time of the newest sample, ms since the epoch.
    pub last_t: i64,
    /// False when there is a gap between the previous column and this one.
    pub joined: bool,
}

impl Column {
    /// Arithmetic mean of the samples.
    pub fn mean(&self) -> f64 {
        self.sum / f64::from(self.count)
    }
}

/// Takes samples in order of time and reduces them to columns.
#[derive(Clone, Debug)]
pub struct Reducer {
    step: i64,
    longest: i64,
    columns: Vec<Column>,
    /// Start of the newest column, ms since the epoch. It is kept, because a division for each sample would be slow.
    begin: i64,
    broken: bool,
}

impl Reducer {
    /// Makes a reducer with columns of `step` ms (at least 1). Two neighbors are not joined when they are more than
    /// `longest` ms apart, or when an absent sample is between them.
    pub fn new(step: i64, longest: i64) -> Self {
        Reducer { step: step.max(1), longest, columns: Vec::new(), begin: 0, broken: true }
    }

    /// Width of a column in ms.
    pub fn step(&self) -> i64 {
        self.step
    }

    /// The columns so far, oldest first.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Drops columns whose newest sample is older than `from`, ms since the epoch. It drops none before there are more
    /// than 64.
    pub fn forget_before(&mut self, from: i64) {
        let old = self.columns.partition_point(|c| c.last_t < from);
        // Moving the other columns costs time, so old ones are dropped in large batches.
        if old > 64 {
            self.columns.drain(..old);
        }
    }

    /// Replaces all columns before the column number `slot` by the columns of `older`.
    pub fn precede(&mut self, older: Reducer, slot: i64) {
        let own = self.columns.partition_point(|c| c.slot < slot);
        self.columns.splice(..own, older.columns);
    }

    /// Takes samples in order of time, and multiplies each value by `factor`. `times` and `values` are equally long.
    pub fn extend(&mut self, times: &[i64], values: &[f64], factor: f64) {
        let (mut i, n) = (0, times.len().min(values.len()));
        while i < n {
            let t = times[i];
            self.push(t, values[i] * factor);
            i += 1;
            let end = self.begin + self.step;
            let Some(c) = self.columns.last_mut().filter(|c| c.last_t == t && self.step > 1) else { continue };
            // The other samples of this column are added at once, to a local copy. Their times need no further test.
            let (mut all, before) = (*c, i);
            let behind = i + times[i..n].partition_point(|t| *t < end);
            for v in values[i..behind].iter().map(|v| v * factor).take_while(|v| v.is_finite()) {
                if v < all.min {
                    (all.min, all.rising) = (v, false);
                }
                if v > all.max {
                    (all.max, all.rising) = (v, true);
                }
                all.sum += v;
                all.last = v;
                i += 1;
            }
            if i > before {
                *c = Column {
                    count: all.count + (i - before) as u32,
                    last_t: times[i - 1],
                    t: self.begin + self.step / 2,
                    ..all
                };
            }
        }
    }

    /// Takes one sample. A value that is NaN or infinite is absent and ends the line.
    pub fn push(&mut self, t: i64, v: f64) {
        if !v.is_finite() {
            self.broken = true;
            return;
        }
        let Some(c) = self.columns.last_mut() else {
            self.broken = false;
            return self.begin(t, v, false);
        };
        if (self.begin..self.begin + self.step).contains(&t) {
            if v < c.min {
                (c.min, c.rising) = (v, false);
            }
            if v > c.max {
                (c.max, c.rising) = (v, true);
            }
            c.last = v;
            c.sum += v;
            c.count += 1;
            c.last_t = t;
            c.t = self.begin + self.step / 2;
            self.broken = false;
            return;
        }
        // A gap that is narrower than a column cannot be seen, so it does not end the line.
        let apart = t - c.last_t;
        let gap = apart > self.longest || (self.broken && apart > self.step);
        let joined = !gap || apart <= self.step * 2 && self.step > self.longest;
        self.broken = false;
        self.begin(t, v, joined);
    }

    /// Adds `count` samples at once, of which only the smallest value, the largest value and the mean are known. They
    /// are between two times within one column, and come in order of time like single samples.
    pub fn push_many(&mut self, (from, to): (i64, i64), [min, max, mean]: [f64; 3], count: u32) {
        self.push(from, mean);
        if let Some(c) = self.columns.last_mut().filter(|_| mean.is_finite()) {
            (c.min, c.max) = (c.min.min(min), c.max.max(max));
            c.sum += mean * f64::from(count.saturating_sub(1));
            c.count += count.saturating_sub(1);
            c.last_t = c.last_t.max(to);
            c.t = self.begin + self.step / 2;
        }
    }

    fn begin(&mut self, t: i64, v: f64, joined: bool) {
        let slot = t.div_euclid(self.step);
        self.begin = slot * self.step;
        self.columns.push(one(slot, t, v, joined));
    }
}

fn one(slot: i64, t: i64, v: f64, joined: bool) -> Column {
    Column { slot, t, first: v, min: v, max: v, last: v, rising: true, sum: v, count: 1, first_t: t, last_t: t, joined }
}

/// Values of the line through a column: first, both extremes in the order in which they came, last. A single sample
/// gives one value.
pub fn four(c: &Column) -> impl Iterator<Item = f64> {
    let (a, b) = if c.rising { (c.min, c.max) } else { (c.max, c.min) };
    let n = if c.count == 1 { 1 } else { 4 };
    [c.first, a, b, c.last].into_iter().take(n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn reduce(samples: &[(i64, f64)], step: i64, longest: i64) -> Vec<Column> {
        let mut r = Reducer::new(step, longest);
        samples.iter().for_each(|&(t, v)| r.push(t, v));
        r.columns().to_vec()
    }

    #[test]
    fn an_absent_sample_and_a_missing_tick_end_the_line() {
        let samples = [(0, 1.0), (1000, 2.0), (2000, f64::NAN), (3000, 3.0), (4000, 4.0), (9000, 5.0)];
        let joined: Vec<bool> = reduce(&samples, 1, 1500).iter().map(|c| c.joined).collect();
        assert_eq!(joined, [false, true, false, true, false]);
    }

    #[test]
    fn a_gap_narrower_than_a_column_does_not_end_the_line() {
        let samples: Vec<_> = (0..100).filter(|i| *i != 50).map(|i| (i * 1000, 1.0)).collect();
        assert!(reduce(&samples, 10_000, 1500).iter().skip(1).all(|c| c.joined));
    }

    #[test]
    fn samples_taken_at_once_have_the_extremes_mean_and_gaps_of_single_ones() {
        let samples: Vec<(i64, f64)> =
            (0..600).filter(|i| !(200..400).contains(i)).map(|i| (i * 1000, f64::from(i as u32 * 37 % 101))).collect();
        let singly = reduce(&samples, 120_000, 90_000);
        let mut many = Reducer::new(120_000, 90_000);
        for minute in samples.chunk_by(|a, b| a.0 / 60_000 == b.0 / 60_000) {
            let values = || minute.iter().map(|(_, v)| *v);
            let (min, max) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
            let mean = values().sum::<f64>() / minute.len() as f64;
            many.push_many((minute[0].0, minute[minute.len() - 1].0), [min, max, mean], minute.len() as u32);
        }
        assert_eq!(singly.len(), many.columns().len());
        for (a, b) in singly.iter().zip(many.columns()) {
            let known = |c: &Column| (c.slot, c.t, c.min, c.max, c.count, c.first_t, c.last_t, c.joined);
            assert_eq!(known(a), known(b));
            assert!((a.mean() - b.mean()).abs() < 1e-9);
        }
    }

    /// Pixels that are covered by a line one pixel wide.
    fn raster(points: &[(i64, i64)]) -> BTreeSet<(i64, i64)> {
        let mut on = BTreeSet::new();
        on.extend(points);
        for w in points.windows(2) {
            let ((x0, y0), (x1, y1)) = (w[0], w[1]);
            let n = (x1 - x0).abs().max((y1 - y0).abs()).max(1);
            for i in 0..=n {
                let at = |a: i64, b: i64| (2 * a * n + 2 * (b - a) * i + n).div_euclid(2 * n);
                on.insert((at(x0, x1), at(y0, y1)));
            }
        }
        on
    }

    proptest! {
        #[test]
        fn the_reduced_line_covers_the_same_pixels(
            steps in prop::collection::vec((1i64..40, 0i64..100), 1..600),
            step in 1i64..90,
        ) {
            let mut t = 0;
            let samples: Vec<(i64, f64)> = steps.iter().map(|(dt, v)| { t += dt; (t, *v as f64) }).collect();
            let full: Vec<_> = samples.iter().map(|(t, v)| (t.div_euclid(step), *v as i64)).collect();
            let columns = reduce(&samples, step, i64::MAX);
            let few: Vec<_> = columns.iter().flat_map(|c| four(c).map(|v| (c.slot, v as i64))).collect();
            prop_assert_eq!(raster(&full), raster(&few));
        }

        #[test]
        fn samples_that_come_together_are_reduced_as_single_ones(
            steps in prop::collection::vec((1i64..40, 0i64..100), 1..300),
            step in 1i64..90,
        ) {
            let mut t = -1_000;
            let value = |v: i64| if v % 9 == 0 { f64::NAN } else { v as f64 };
            let samples: Vec<(i64, f64)> = steps.iter().map(|(dt, v)| { t += dt; (t, value(*v)) }).collect();
            let (times, values): (Vec<i64>, Vec<f64>) = samples.iter().copied().unzip();
            let mut together = Reducer::new(step, 30);
            for part in [0..times.len() / 3, times.len() / 3..times.len()] {
                together.extend(&times[part.clone()], &values[part], 1.0);
            }
            prop_assert_eq!(reduce(&samples, step, 30), together.columns());
        }

        #[test]
        fn no_sample_is_lost_and_no_extreme(values in prop::collection::vec(-50i32..50, 1..300), step in 1i64..5000) {
            let samples: Vec<_> = values.iter().enumerate().map(|(i, v)| (i as i64 * 1000, f64::from(*v))).collect();
            let columns = reduce(&samples, step, 1500);
            prop_assert_eq!(columns.iter().map(|c| c.count as usize).sum::<usize>(), samples.len());
            let max = columns.iter().map(|c| c.max).fold(f64::NEG_INFINITY, f64::max);
            prop_assert_eq!(max, f64::from(*values.iter().max().unwrap()));
        }
    }
}

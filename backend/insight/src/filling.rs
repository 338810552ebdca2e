//! Course of a fill level: rate of its rise, time until it is full, and earlier rises and falls.

/// Maximum number of buckets.
const BUCKETS: usize = 16;

/// The course of a share, percent, in buckets of equal length.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filling {
    values: [f32; BUCKETS],
    n: u32,
    length: i64,
    bucket: i64,
    sum: f64,
    count: u32,
    low: f64,
    high: f64,
    /// Start of the rise, second.
    pub began: i64,
    /// The largest rise that ended in a fall, and the highest value from which it fell, percent.
    largest: f64,
    fell_from: f64,
}

/// A straight rise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rise {
    /// Percent a second.
    pub slope: f64,
    /// Seconds until it is full.
    pub left: f64,
    /// Percent now.
    pub share: f64,
    /// Straightness, 0 to 1.
    pub fit: f64,
}

impl Filling {
    /// Adds the value of second `t`; buckets are `length` seconds long. Returns true when a bucket was closed.
    pub fn add(&mut self, t: i64, length: i64, value: f64) -> bool {
        let bucket = t.div_euclid(length.max(1));
        if length != self.length || bucket < self.bucket || bucket > self.bucket + 3 {
            self.restart();
            (self.length, self.bucket, self.began, self.low, self.high) = (length, bucket, t, value, value);
        }
        let mut closed = false;
        if bucket > self.bucket {
            // A bucket without samples is interpolated between its neighbors.
            let mean = if self.count > 0 { self.sum / f64::from(self.count) } else { value };
            let steps = (bucket - self.bucket) as f64;
            for empty in 0..bucket - self.bucket {
                self.close(mean + (value - mean) * empty as f64 / steps, t);
            }
            (self.bucket, self.sum, self.count) = (bucket, 0.0, 0);
            closed = true;
        }
        self.sum += value;
        self.count += 1;
        closed
    }

    fn close(&mut self, value: f64, t: i64) {
        self.values[self.n as usize % BUCKETS] = value as f32;
        self.n += 1;
        if value < self.high - (0.2 * (self.high - self.low)).max(1.0) {
            self.largest = self.largest.max(self.high - self.low);
            self.fell_from = self.fell_from.max(self.high);
            (self.low, self.high, self.began) = (value, value, t);
        } else if value <= self.low + 0.05 {
            (self.low, self.began) = (self.low.min(value), t);
        }
        self.high = self.high.max(value);
    }

    /// Restarts the course; earlier rises are kept.
    pub fn restart(&mut self) {
        let (largest, fell_from) = (self.largest, self.fell_from);
        *self = Filling { largest, fell_from, ..Filling::default() };
    }

    /// Forgets earlier rises: another job has begun.
    pub fn forget(&mut self) {
        *self = Filling::default();
    }

    /// The last `n` buckets, the newest last; none where there are fewer.
    fn last(&self, n: usize) -> Option<impl DoubleEndedIterator<Item = f64> + Clone + '_> {
        let all = self.n as usize;
        (all >= n && n <= BUCKETS).then(|| (all - n..all).map(|at| f64::from(self.values[at % BUCKETS])))
    }

    /// The slope over the last `n` buckets, for any course.
    pub fn slope(&self, n: usize) -> Option<f64> {
        self.line(n).map(|(slope, ..)| slope)
    }

    /// Slope a second, fit, and the value at the end.
    fn line(&self, n: usize) -> Option<(f64, f64, f64)> {
        let values = self.last(n)?;
        let mean = values.clone().sum::<f64>() / n as f64;
        let middle = (n as f64 - 1.0) / 2.0;
        let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
        for (x, y) in values.enumerate() {
            let (x, y) = (x as f64 - middle, y - mean);
            (xx, xy, yy) = (xx + x * x, xy + x * y, yy + y * y);
        }
        let slope = xy / xx;
        let fit = if yy > 0.0 { xy * xy / (xx * yy) } else { 0.0 };
        Some((slope / self.length as f64, fit, mean + slope * middle))
    }

    /// A rise over the last `n` buckets that never fell, straight or by steps, and is higher than before.
    pub fn climb(&self, n: usize) -> Option<Rise> {
        let (slope, fit, _) = self.line(n)?;
        let mut values = self.last(n)?;
        let share = values.next_back()?;
        (slope > 0.0 && fit >= 0.7 && self.began_before(n) && share > self.fell_from).then(|| Rise {
            slope,
            left: (100.0 - share) / slope,
            share,
            fit,
        })
    }

    /// Whether it has not fallen within the last `n` buckets.
    fn began_before(&self, n: usize) -> bool {
        self.last(n).is_some_and(|values| {
            let all: Vec<f64> = values.collect();
            all.windows(2).all(|pair| pair[1] >= pair[0] - 0.05)
        })
    }

    /// Percent at the start of the current rise.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// Points from the start of the rise to `share`.
    pub fn rose_by(&self, share: f64) -> f64 {
        share - self.low
    }

    /// A straight rise over the last `n` buckets. A sawtooth, and a rise that flattens before it is full, are excluded.
    pub fn rise(&self, n: usize) -> Option<Rise> {
        let (slope, fit, share) = self.line(n)?;
        let values = self.last(n)?;
        let part = (n / 6).max(1);
        let means: Vec<f64> =
            (0..6.min(n)).map(|at| values.clone().skip(at * part).take(part).sum::<f64>() / part as f64).collect();
        let rising = means.windows(2).filter(|pair| pair[1] > pair[0]).count();
        let rise = self.high - self.low;
        let beyond = if self.largest > 0.0 { rise >= 2.0 * self.largest || share > self.fell_from + 2.0 } else { true };
        if slope <= 0.0 || fit < 0.9 || rising + 1 < means.len().max(2) || !beyond {
            return None;
        }
        // A rise that flattens by a constant factor gains at most the sum of the geometric series.
        let half = n / 2;
        let (first, last) = (values.clone().take(half), values.skip(n - half));
        let gain = |mut v: Box<dyn Iterator<Item = f64> + '_>| {
            let begin = v.next().unwrap_or(0.0);
            v.last().unwrap_or(begin) - begin
        };
        let (first, last) = (gain(Box::new(first)), gain(Box::new(last)));
        let keeps = if first > 0.0 { last / first } else { 1.0 };
        let left = 100.0 - share;
        if keeps < 0.92 && last * keeps.max(0.0) / (1.0 - keeps) < left {
            return None;
        }
        Some(Rise { slope, left: left / slope, share, fit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(of: impl Fn(i64) -> f64, seconds: i64) -> Filling {
        let mut filling = Filling::default();
        for t in 0..seconds {
            filling.add(t, 10, of(t));
        }
        filling
    }

    #[test]
    fn a_straight_rise_has_an_end() {
        let rise = run(|t| 70.0 + 0.05 * t as f64, 400).rise(12).expect("it rises");
        assert!((rise.slope - 0.05).abs() < 1e-3 && rise.fit > 0.99);
        assert!((rise.left - 200.0).abs() < 20.0, "{rise:?}");
    }

    #[test]
    fn what_is_flat_or_flattens_has_none() {
        assert_eq!(run(|_| 97.0, 400).rise(12), None);
        for tau in [100.0, 200.0, 300.0] {
            for seconds in (150..900).step_by(10) {
                let rise = run(|t| 94.0 - 40.0 * (-(t as f64) / tau).exp(), seconds).rise(12);
                let soon = rise.filter(|rise| rise.share >= 80.0 && rise.left < 600.0);
                assert_eq!(soon, None, "tau {tau} at {seconds}");
            }
        }
    }

    #[test]
    fn teeth_of_a_saw_have_none_and_a_leak_beyond_them_has() {
        let saw = |t: i64| 60.0 + 30.0 * ((t % 300) as f64 / 300.0);
        for seconds in (320..3000).step_by(10) {
            assert_eq!(run(saw, seconds).rise(12), None, "at {seconds}");
        }
        let leak = |t: i64| if t < 900 { saw(t) } else { 60.0 + 0.03 * (t - 900) as f64 };
        assert!(run(leak, 900 + 1250).rise(12).is_some());
    }
}

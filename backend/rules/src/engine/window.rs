//! A function of the samples within a time range, from 60 sub-buckets; and a linear fit through them.

use serde::{Deserialize, Serialize};
use shared::rule::Function;

const CELLS: usize = 60;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Cell {
    /// Sum, extreme, increase or first value, depending on the function.
    a: f64,
    n: u32,
}

/// Ring buffer of sub-buckets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    function: u8,
    /// Length of a sub-bucket, milliseconds.
    bucket: i64,
    cells: Vec<Cell>,
    /// Number of the newest sub-bucket.
    head: i64,
    /// All sub-buckets but the newest.
    rest: Cell,
    /// Time of the first and of the newest sample since it was empty; the newest value.
    since: i64,
    t: i64,
    last: f64,
}

fn code(function: Function) -> u8 {
    Function::ALL.iter().position(|f| *f == function).unwrap_or(0) as u8
}

impl Window {
    /// A window for a function over this many seconds.
    pub fn new(function: Function, seconds: u32) -> Self {
        let bucket = (i64::from(seconds) * 1000 / CELLS as i64).max(1);
        let cells = vec![Cell::default(); CELLS];
        Window {
            function: code(function),
            bucket,
            cells,
            head: i64::MIN,
            rest: Cell::default(),
            since: 0,
            t: 0,
            last: f64::NAN,
        }
    }

    fn function(&self) -> Function {
        Function::ALL[usize::from(self.function).min(Function::ALL.len() - 1)]
    }

    fn span(&self) -> i64 {
        self.bucket * CELLS as i64
    }

    fn slot(bucket: i64) -> usize {
        bucket.rem_euclid(CELLS as i64) as usize
    }

    fn join(&self, a: Cell, b: Cell) -> Cell {
        match (a.n, b.n) {
            (0, _) => b,
            (_, 0) => a,
            _ => Cell {
                a: match self.function() {
                    Function::Min => a.a.min(b.a),
                    Function::Max => a.a.max(b.a),
                    // `a` is the older one.
                    Function::Change => a.a,
                    Function::Mean | Function::Rate | Function::Increase => a.a + b.a,
                },
                n: a.n + b.n,
            },
        }
    }

    /// Starts a new sub-bucket: the last one joins the rest, and expired ones leave it.
    fn roll(&mut self, bucket: i64) {
        self.rest = self.join(self.rest, self.cells[Self::slot(self.head)]);
        let sums = matches!(self.function(), Function::Mean | Function::Rate | Function::Increase);
        // Sums lose precision with each number subtracted, so they are recomputed periodically.
        let mut anew = sums && bucket.div_euclid(CELLS as i64) != self.head.div_euclid(CELLS as i64);
        for between in self.head + 1..=bucket {
            let old = std::mem::take(&mut self.cells[Self::slot(between)]);
            self.rest.n = self.rest.n.saturating_sub(old.n);
            if sums {
                self.rest.a -= old.a;
            } else {
                // Removing a value that was no extreme does not change the extreme.
                anew |= old.n > 0 && old.a == self.rest.a;
            }
        }
        self.head = bucket;
        if anew {
            self.rest = (bucket - CELLS as i64 + 1..bucket)
                .fold(Cell::default(), |all, one| self.join(all, self.cells[Self::slot(one)]));
        }
    }

    /// Adds a sample.
    pub fn push(&mut self, t: i64, value: f64) {
        let bucket = t.div_euclid(self.bucket);
        if bucket < self.head || bucket.saturating_sub(self.head) >= CELLS as i64 {
            // A clock set back, or a gap longer than the window.
            self.cells.fill(Cell::default());
            (self.head, self.since, self.last, self.rest) = (bucket, t, f64::NAN, Cell::default());
        } else if bucket > self.head {
            self.roll(bucket);
        }
        let one = match self.function() {
            // A counter that falls was reset: it has risen from 0.
            Function::Rate | Function::Increase if self.last.is_nan() => 0.0,
            Function::Rate | Function::Increase if value < self.last => value,
            Function::Rate | Function::Increase => value - self.last,
            _ => value,
        };
        let slot = Self::slot(bucket);
        self.cells[slot] = self.join(self.cells[slot], Cell { a: one, n: 1 });
        (self.t, self.last) = (t, value);
    }

    /// Its value; None until samples cover the whole range.
    pub fn value(&self) -> Option<f64> {
        let covered = self.t - self.since;
        if covered < self.span() - self.bucket {
            return None;
        }
        let all = self.join(self.rest, self.cells[Self::slot(self.head)]);
        Some(match self.function() {
            Function::Mean => all.a / f64::from(all.n.max(1)),
            Function::Rate => all.a * 1000.0 / covered.min(self.span()).max(1) as f64,
            Function::Change => self.last - all.a,
            Function::Min | Function::Max | Function::Increase => all.a,
        })
    }

    /// Means of its sub-buckets with the time of their middle, the oldest first.
    fn points(&self) -> Vec<(f64, f64)> {
        (self.head - CELLS as i64 + 1..=self.head)
            .map(|bucket| (bucket, self.cells[Self::slot(bucket)]))
            .filter(|(_, cell)| cell.n > 0)
            .map(|(bucket, cell)| {
                ((bucket * self.bucket + self.bucket / 2) as f64 / 1000.0, cell.a / f64::from(cell.n))
            })
            .collect()
    }

    /// Seconds until the value reaches the limit if the trend continues. None where it does not reach it, or the trend
    /// is not significant. 0: it has reached it.
    pub fn reaches(&self, limit: f64) -> Option<f64> {
        // The first point determines the side from which the value approaches.
        let points = self.points();
        let first = points.first()?.1;
        let rises = first < limit;
        if (rises && self.last >= limit) || (!rises && self.last <= limit) {
            return Some(0.0);
        }
        if points.len() < CELLS / 3 || self.t - self.since < self.span() / 2 {
            return None;
        }
        let scale = limit.abs().max(first.abs());
        if (self.last - first).abs() <= 0.005 * scale {
            return None;
        }
        let (low, slope, high) = theil_sen(&points)?;
        let agrees = if rises { low > 0.0 } else { high < 0.0 };
        agrees.then(|| (limit - self.last) / slope)
    }
}

/// The median of the slopes between all pairs of points (Theil-Sen), and the ends of its 80 % interval by Kendall's
/// variance.
fn theil_sen(points: &[(f64, f64)]) -> Option<(f64, f64, f64)> {
    let mut slopes: Vec<f64> = Vec::with_capacity(points.len() * points.len() / 2);
    for (i, (t0, v0)) in points.iter().enumerate() {
        slopes.extend(points[i + 1..].iter().filter(|(t, _)| t > t0).map(|(t, v)| (v - v0) / (t - t0)));
    }
    if slopes.len() < 3 {
        return None;
    }
    slopes.sort_by(f64::total_cmp);
    let (n, all) = (points.len() as f64, slopes.len() as f64);
    // The 90th percentile of the normal distribution leaves 10 % on each side.
    let reach = 1.281_551_6 * (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let at = |rank: f64| slopes[(rank.max(0.0) as usize).min(slopes.len() - 1)];
    let middle = slopes.len() / 2;
    let median = if slopes.len() % 2 == 1 { slopes[middle] } else { f64::midpoint(slopes[middle - 1], slopes[middle]) };
    Some((at(((all - reach) / 2.0).floor()), median, at(((all + reach) / 2.0).ceil())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(function: Function, seconds: u32, samples: impl IntoIterator<Item = (i64, f64)>) -> Window {
        let mut window = Window::new(function, seconds);
        samples.into_iter().for_each(|(t, v)| window.push(t * 1000, v));
        window
    }

    #[test]
    fn functions_have_a_value_once_their_time_is_seen() {
        let line = |n: i64| (0..=n).map(|t| (t, t as f64));
        assert_eq!(fed(Function::Mean, 60, line(50)).value(), None);
        let value = |function| fed(function, 60, line(600)).value().expect("full");
        assert_eq!(value(Function::Mean), (541..=600).sum::<i64>() as f64 / 60.0);
        assert_eq!(value(Function::Min), 541.0);
        assert_eq!(value(Function::Max), 600.0);
        assert_eq!(value(Function::Change), 59.0);
        assert_eq!(value(Function::Increase), 60.0);
        assert_eq!(value(Function::Rate), 1.0);
    }

    #[test]
    fn what_rolls_on_is_what_all_its_samples_give() {
        let samples: Vec<(i64, f64)> = (0..4000).map(|i| (i * 7 / 3, ((i * 7919) % 1009) as f64 / 3.0)).collect();
        for function in [Function::Mean, Function::Min, Function::Max, Function::Change] {
            let mut window = Window::new(function, 120);
            for (i, (t, v)) in samples.iter().enumerate() {
                window.push(t * 1000, *v);
                let Some(value) = window.value() else { continue };
                let first = t / 2 - 59;
                let inside: Vec<f64> = samples[..=i].iter().filter(|(t, _)| t / 2 >= first).map(|s| s.1).collect();
                let expected = match function {
                    Function::Mean => inside.iter().sum::<f64>() / inside.len() as f64,
                    Function::Min => inside.iter().copied().fold(f64::MAX, f64::min),
                    Function::Max => inside.iter().copied().fold(f64::MIN, f64::max),
                    _ => v - inside[0],
                };
                assert!((value - expected).abs() < 1e-9, "{function:?} at {t}: {value} is not {expected}");
            }
        }
    }

    #[test]
    fn a_reset_counts_from_zero_and_a_gap_begins_anew() {
        let reset = (0..=120).map(|t| (t, if t < 100 { t as f64 } else { (t - 100) as f64 }));
        // 39 steps before the reset, none with it, 20 after.
        assert_eq!(fed(Function::Increase, 60, reset).value(), Some(59.0));
        let gap = (0..100).chain(1000..1030).map(|t| (t, 1.0));
        assert_eq!(fed(Function::Mean, 60, gap).value(), None);
    }

    #[test]
    fn a_line_reaches_its_limit_and_noise_does_not() {
        // 0.01 a second: from 90 to 100 in 1000 s. The window is an hour, a point a minute.
        let line = |slope: f64| (0..=3600).step_by(10).map(move |t| (t, 50.0 + t as f64 * slope));
        let left = fed(Function::Mean, 3600, line(0.01)).reaches(100.0).expect("rises");
        assert!((left - 1400.0).abs() < 30.0, "{left}");
        assert_eq!(fed(Function::Mean, 3600, line(-0.01)).reaches(100.0), None);
        assert!(fed(Function::Mean, 3600, line(-0.01)).reaches(0.0).is_some());
        let noise = (0..=3600).step_by(10).map(|t| (t, 50.0 + ((t * 7919) % 601) as f64 / 100.0));
        assert_eq!(fed(Function::Mean, 3600, noise).reaches(100.0), None);
        // A single jump is no trend.
        let jump = (0..=3600).step_by(10).map(|t| (t, if t < 3500 { 50.0 } else { 90.0 }));
        assert_eq!(fed(Function::Mean, 3600, jump).reaches(100.0), None);
        assert_eq!(fed(Function::Mean, 3600, line(0.02)).reaches(100.0), Some(0.0));
    }
}

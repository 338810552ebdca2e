//! The spread of many series, and the series that differ most.

use charts::band::quantile;
use charts::reduce::Column;
use charts::{Band, order};
use std::ops::Range;

/// Largest number of series that are named in a band.
const MAX_NAMED_OUTLIERS: usize = 3;
/// A series stands out if its distance from the median exceeds two limits. They are this share of the axis, and 1.5
/// times the width of the middle 80 % of all series.
const OUTLIER_AXIS_SHARE: f64 = 0.05;
/// With so few series a single one moves the middle 80 %, so the middle half is used.
const FEW_SERIES: usize = 8;
/// A series must stand out for this share of the window to be named.
const OUTLIER_WINDOW_SHARE: f64 = 0.25;
/// A series that stood out keeps its color until it is below this share of both limits.
const OUTLIER_STAYS: f64 = 0.7;

/// The spread of many series in a window.
#[derive(Default)]
pub struct Spread {
    /// Columns of the spread, oldest first.
    pub band: Vec<Band>,
    /// Number of the first column that need not be computed again, and of the column after the last such one.
    known: (i64, i64),
}

impl Spread {
    /// Updates the spread to the columns whose numbers are in `slots`. Columns that are known from another window stay,
    /// except the last two, which may have grown.
    pub fn show(&mut self, series: &[&[Column]], slots: Range<i64>) {
        let edge = if series.len() > FEW_SERIES { 0.1 } else { 0.25 };
        let Range { start, end } = slots;
        let (from, to) = (self.known.0.max(start), self.known.1.min(end));
        if from >= to {
            self.band = spread(series, slots, edge);
        } else {
            let keep = |band: &[Band], slot: i64| band.partition_point(|b| b.slot < slot);
            self.band.truncate(keep(&self.band, to));
            self.band.splice(..keep(&self.band, from), spread(series, start..from, edge));
            self.band.extend(spread(series, to..end, edge));
        }
        let last = self.band.len().checked_sub(2).map_or(start, |i| self.band[i].slot);
        self.known = (start, last);
    }
}

/// Computes the spread of the columns in `slots`; its middle part lies between the quantiles `edge` and 1 - `edge`.
fn spread(series: &[&[Column]], slots: Range<i64>, edge: f64) -> Vec<Band> {
    let (mut band, mut means) = (Vec::new(), Vec::new());
    let mut rest: Vec<&[Column]> = series
        .iter()
        .map(|all| {
            let start = all.partition_point(|c| c.slot < slots.start);
            &all[start..all.partition_point(|c| c.slot < slots.end).max(start)]
        })
        .collect();
    while let Some(slot) = rest.iter().filter_map(|c| c.first()).map(|c| c.slot).min() {
        let mut b = Band { slot, t: 0, values: [f64::INFINITY, 0.0, 0.0, 0.0, f64::NEG_INFINITY], joined: false };
        means.clear();
        for columns in &mut rest {
            let [c, later @ ..] = columns else { continue };
            if c.slot != slot {
                continue;
            }
            if means.is_empty() {
                b.t = c.t;
            }
            b.joined |= c.joined;
            b.values[0] = b.values[0].min(c.min);
            b.values[4] = b.values[4].max(c.max);
            means.push(c.mean());
            *columns = later;
        }
        means.sort_unstable_by(f64::total_cmp);
        for (k, share) in [edge, 0.5, 1.0 - edge].into_iter().enumerate() {
            b.values[k + 1] = quantile(&means, share);
        }
        band.push(b);
    }
    band
}

/// The position of a series relative to the median in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stand {
    /// Mean of the series over the window.
    pub mean: f64,
    /// Mean distance from the median, above or below.
    pub distance: f64,
    /// Distance beyond the limits, summed over time; 0 if it stands out for too short a time.
    pub out: f64,
}

/// Computes the position of a series relative to the spread; `span` is the height of the axis. `odd` says that the
/// series stood out before.
pub fn stand(columns: &[Column], band: &[Band], span: f64, odd: bool) -> Stand {
    let limit = if odd { OUTLIER_STAYS } else { 1.0 };
    let (mut band, mut n) = (band.iter(), 0.0);
    let (mut stand, mut long) = (Stand::default(), 0.0);
    for c in columns {
        // The band has a column wherever a series has one.
        let Some(b) = band.find(|b| b.slot >= c.slot).filter(|b| b.slot == c.slot) else { break };
        let (mean, distance) = (c.mean(), (c.mean() - b.values[2]).abs());
        let beyond = distance - limit * (span * OUTLIER_AXIS_SHARE).max((b.values[3] - b.values[1]) * 1.5);
        stand.mean += mean;
        stand.distance += distance;
        if beyond > 0.0 {
            stand.out += beyond;
            long += 1.0;
        }
        n += 1.0;
    }
    if long < n * OUTLIER_WINDOW_SHARE * limit {
        stand.out = 0.0;
    }
    let n = f64::max(n, 1.0);
    Stand { mean: stand.mean / n, distance: stand.distance / n, ..stand }
}

/// Positions of the series that stand out most, the furthest first.
pub fn outliers(stands: &[Stand]) -> Vec<usize> {
    let far = order::by(stands.iter().map(|s| order::key(-s.out)));
    far.into_iter().filter(|i| stands[*i].out > 0.0).take(MAX_NAMED_OUTLIERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use charts::reduce::Reducer;

    fn series(value: impl Fn(i64) -> f64) -> Vec<Column> {
        let mut r = Reducer::new(1, 1_500);
        (0..100).for_each(|i| r.push(i * 1000, value(i)));
        r.columns().to_vec()
    }

    fn named(values: &[&dyn Fn(i64) -> f64]) -> Vec<usize> {
        let all: Vec<Vec<Column>> = values.iter().map(series).collect();
        let slices: Vec<&[Column]> = all.iter().map(Vec::as_slice).collect();
        let mut all = Spread::default();
        all.show(&slices, 0..100_000);
        let stands: Vec<Stand> = slices.iter().map(|c| stand(c, &all.band, 100.0, false)).collect();
        outliers(&stands)
    }

    #[test]
    fn who_is_far_for_long_is_named_and_who_was_far_for_a_moment_is_not() {
        let calm: &dyn Fn(i64) -> f64 = &|i| 97.0 + (i % 3) as f64;
        let slow: &dyn Fn(i64) -> f64 = &|_| 70.0;
        let mild: &dyn Fn(i64) -> f64 = &|_| 88.0;
        let brief: &dyn Fn(i64) -> f64 = &|i| if i < 10 { 0.0 } else { 98.0 };
        let mut all = vec![calm; 20];
        all.extend([mild, slow, brief]);
        assert_eq!(named(&all), [21, 20]);
        assert_eq!(named(&[calm; 20]), [] as [usize; 0]);
    }

    #[test]
    fn of_few_series_too_one_that_is_far_is_named() {
        let at = |v: f64| -> Box<dyn Fn(i64) -> f64> { Box::new(move |i| v + (i % 2) as f64) };
        let named = |values: &[f64]| {
            let all: Vec<_> = values.iter().map(|v| at(*v)).collect();
            named(&all.iter().map(|f| f.as_ref()).collect::<Vec<_>>())
        };
        assert_eq!(named(&[99.0, 98.0, 77.0, 99.0]), [2]);
        assert_eq!(named(&[99.0, 98.0, 77.0, 99.0, 98.0, 98.0, 99.0, 98.0]), [2]);
        assert_eq!(named(&[0.0, 30.0, 60.0, 90.0]), [] as [usize; 0]);
        assert_eq!(named(&[99.0, 98.0, 97.0, 99.0]), [] as [usize; 0], "within a twentieth of the axis");
    }

    #[test]
    fn what_stood_out_does_so_until_it_is_clearly_back() {
        let all: Vec<Vec<Column>> = [99.0, 99.0, 98.0, 94.2].iter().map(|v| series(|_| *v)).collect();
        let slices: Vec<&[Column]> = all.iter().map(Vec::as_slice).collect();
        let mut spread = Spread::default();
        spread.show(&slices, 0..100_000);
        let out = |odd| stand(slices[3], &spread.band, 100.0, odd).out > 0.0;
        assert!(!out(false) && out(true));
    }

    #[test]
    fn where_all_differ_nobody_is_named() {
        let wide: Vec<Box<dyn Fn(i64) -> f64>> = (0..40).map(|k| Box::new(move |_| k as f64 * 2.5) as _).collect();
        let wide: Vec<&dyn Fn(i64) -> f64> = wide.iter().map(|f| f.as_ref()).collect();
        assert_eq!(named(&wide), [] as [usize; 0]);
    }

    #[test]
    fn a_spread_that_grows_or_is_moved_equals_one_that_is_made_anew() {
        let all: Vec<Vec<Column>> = (0..9).map(|k| series(move |i| ((i * (k + 2)) % 31) as f64)).collect();
        let upto = |n: usize| all.iter().map(|c| &c[..n]).collect::<Vec<_>>();
        let mut grown = Spread::default();
        (1..=100).for_each(|n| grown.show(&upto(n), 20_000..100_000));
        for slots in [20_000..100_000, 10_000..60_000, 40_500..70_500, 0..20_000, 60_000..99_000, 0..100_000] {
            grown.show(&upto(100), slots.clone());
            assert_eq!(grown.band, spread(&upto(100), slots, 0.1));
        }
    }
}

//! Many series as a spread, and which of them stand out of it.

use charts::band::quantile;
use charts::reduce::Column;
use charts::{Band, order};

/// Series that are named in a band, at most.
const NAMED: usize = 3;
/// A series stands out where it is further from the median than this share of the axis, and than the middle is wide.
const FAR: f64 = 0.05;
/// It must do so in this share of the window.
const LONG: f64 = 0.25;

/// Brings a spread up to date: everything from the last finished column on is made anew. `from` is the start of the
/// window, `step` the width of a column, ms.
pub fn extend(band: &mut Vec<Band>, series: &[&[Column]], from: i64, step: i64) {
    // The last two columns of the time before may have grown.
    band.truncate(band.len().saturating_sub(2));
    let old = band.partition_point(|b| b.t < from).saturating_sub(1);
    band.drain(..old);
    let start = band.last().map_or(i64::MIN, |b| b.slot + 1);
    let mut cells: Vec<&Column> = Vec::new();
    for columns in series {
        let first = columns.partition_point(|c| c.slot < start || c.last_t < from - step * 2);
        cells.extend(&columns[first..]);
    }
    let cells: Vec<&Column> = order::by(cells.iter().map(|c| c.slot)).into_iter().map(|i| cells[i]).collect();
    let mut means = Vec::new();
    for group in cells.chunk_by(|a, b| a.slot == b.slot) {
        means.clear();
        means.extend(group.iter().map(|c| c.mean()));
        means.sort_unstable_by(f64::total_cmp);
        let min = group.iter().map(|c| c.min).fold(f64::INFINITY, f64::min);
        let max = group.iter().map(|c| c.max).fold(f64::NEG_INFINITY, f64::max);
        let values = [min, quantile(&means, 0.1), quantile(&means, 0.5), quantile(&means, 0.9), max];
        band.push(Band { slot: group[0].slot, t: group[0].t, values, joined: group.iter().any(|c| c.joined) });
    }
}

/// How a series lies to the median of its window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stand {
    /// Mean over the window.
    pub mean: f64,
    /// Mean distance from the median, either way.
    pub distance: f64,
    /// How far it stands out, summed over time; 0 when it does not for long enough.
    pub out: f64,
}

/// How a series lies in the spread. `span` is the height of the axis.
pub fn stand(columns: &[Column], band: &[Band], span: f64) -> Stand {
    let (mut rest, mut n) = (band, 0.0);
    let (mut stand, mut long) = (Stand::default(), 0.0);
    for c in columns {
        rest = &rest[rest.partition_point(|b| b.slot < c.slot)..];
        let Some(b) = rest.first().filter(|b| b.slot == c.slot) else { continue };
        let (mean, distance) = (c.mean(), (c.mean() - b.values[2]).abs());
        let beyond = distance - (span * FAR).max((b.values[3] - b.values[1]) * 1.5);
        stand.mean += mean;
        stand.distance += distance;
        if beyond > 0.0 {
            stand.out += beyond;
            long += 1.0;
        }
        n += 1.0;
    }
    if long < n * LONG {
        stand.out = 0.0;
    }
    let n = f64::max(n, 1.0);
    Stand { mean: stand.mean / n, distance: stand.distance / n, ..stand }
}

/// Positions of the series that stand out furthest for longest, the furthest first.
pub fn outliers(stands: &[Stand]) -> Vec<usize> {
    let far = order::by(stands.iter().map(|s| order::key(-s.out)));
    far.into_iter().filter(|i| stands[*i].out > 0.0).take(NAMED).collect()
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
        let all: Vec<Vec<Column>> = values.iter().map(|v| series(v)).collect();
        let slices: Vec<&[Column]> = all.iter().map(Vec::as_slice).collect();
        let mut band = Vec::new();
        extend(&mut band, &slices, 0, 1);
        let stands: Vec<Stand> = slices.iter().map(|c| stand(c, &band, 100.0)).collect();
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
    fn where_all_differ_nobody_is_named() {
        let wide: Vec<Box<dyn Fn(i64) -> f64>> = (0..40).map(|k| Box::new(move |_| k as f64 * 2.5) as _).collect();
        let wide: Vec<&dyn Fn(i64) -> f64> = wide.iter().map(|f| f.as_ref()).collect();
        assert_eq!(named(&wide), [] as [usize; 0]);
    }

    #[test]
    fn a_spread_that_grows_equals_one_that_is_made_anew() {
        let all: Vec<Vec<Column>> = (0..9).map(|k| series(move |i| ((i * (k + 2)) % 31) as f64)).collect();
        let upto = |n: usize| all.iter().map(|c| &c[..n]).collect::<Vec<_>>();
        let mut grown = Vec::new();
        (1..=100).for_each(|n| extend(&mut grown, &upto(n), 20_000, 1));
        let mut anew = Vec::new();
        extend(&mut anew, &upto(100), 20_000, 1);
        // One column more may stand before the window, from which a line reaches into view.
        assert_eq!(&grown[grown.len() - 80..], &anew[anew.len() - 80..]);
    }
}

//! What changed: the series of a span against those of the same length before it, by how far they moved in measures of
//! their own usual spread. Medians and percentiles, so that one odd sample decides nothing.

use super::source::Source;
use super::trace::{Rate, Trace};
use shared::catalog::Catalog;
use shared::segment::TIER_MS;
use shared::series::SeriesId;

/// Samples that each of both spans must have.
const LEAST: usize = 4;
/// Moves of less than this many spreads are nothing to speak of.
const NOTABLE: f64 = 1.0;
/// The shares that are compared, the median among them.
const SHARES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// How one series differs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Which.
    pub series: SeriesId,
    /// How far it moved, in spreads.
    pub score: f64,
    /// Where it moved most: `` for the median, `low` or `high` for the ends.
    pub what: &'static str,
    /// The value there before and in the span, base units.
    pub values: (f64, f64),
}

/// The series of a source that differ most, most first; none when there is nothing to compare. Of a span that is drawn
/// from minutes the means of minutes are compared.
pub fn rank(source: &Source, catalog: &Catalog, (from, to): (i64, i64)) -> Option<Vec<Difference>> {
    let (start, days) = (from - (to - from), source.in_days((from, to)));
    let (mut found, mut compared) = (Vec::new(), false);
    for (i, def) in source.defs.iter().enumerate() {
        let series = i as SeriesId;
        let Some(metric) = catalog.metric(def).filter(|m| !m.chart.is_empty()) else { continue };
        let mut both = [Vec::new(), Vec::new()];
        let mut take = |t: i64, v: f64| {
            if v.is_finite() && (start..=to).contains(&t) {
                both[usize::from(t > from)].push(v);
            }
        };
        if days {
            let mut minutes = Trace::of_days(series, TIER_MS, start, source, catalog);
            minutes.feed(source, start, to);
            minutes.columns().iter().for_each(|c| take(c.t, c.mean()));
        } else {
            let (cadence, factor) = (source.cadence(series), metric.unit.to_base());
            let mut rate = source.is_counter(series, catalog).then(Rate::default);
            source.samples(series, 0, (start - cadence * 2, to), |t, v| {
                take(t, rate.as_mut().map_or(v, |r| r.push(t, v, cadence * 3 / 2)) * factor);
            });
        }
        compared |= both.iter().all(|v| v.len() >= LEAST);
        found.extend(compare(both).map(|(score, what, values)| Difference { series, score, what, values }));
    }
    found.sort_unstable_by(|a, b| b.score.total_cmp(&a.score));
    compared.then_some(found)
}

/// How far samples moved from the first to the second span; none when they did not.
fn compare(mut both: [Vec<f64>; 2]) -> Option<(f64, &'static str, (f64, f64))> {
    if both.iter().any(|v| v.len() < LEAST) || ramps(&both) {
        return None;
    }
    both.iter_mut().for_each(|v| v.sort_unstable_by(f64::total_cmp));
    let at = |k: usize| SHARES.map(|share| quantile(&both[k], share));
    let (a, b) = (at(0), at(1));
    let moved = a.iter().zip(&b).map(|(a, b)| (b - a).abs()).sum::<f64>() / SHARES.len() as f64;
    // What never moves at all would otherwise be infinitely far with its first step.
    let size = a.iter().chain(&b).fold(0.0, |m: f64, v| m.max(v.abs()));
    let spread = (deviation(&both[0]) + deviation(&both[1])) / 2.0 + size * 0.01;
    let score = moved / spread;
    if score.is_nan() || score < NOTABLE {
        return None;
    }
    let gap = |k: usize| (b[k] - a[k]).abs();
    // The median speaks for the series unless another part of it moved much further.
    let furthest = [0, 4, 1, 3].into_iter().fold(2, |k, other| if gap(other) > gap(k) { other } else { k });
    let (k, what) = match furthest {
        far if gap(2) * 2.0 >= gap(far) => (2, ""),
        low @ ..2 => (low, "low"),
        high => (high, "high"),
    };
    Some((score, what, (a[k], b[k])))
}

/// True for what grows by itself, like an uptime: always by the same.
fn ramps(both: &[Vec<f64>; 2]) -> bool {
    let grown = both.each_ref().map(|v| {
        let steady = v.windows(2).all(|w| w[1] >= w[0]);
        if steady { (v[v.len() - 1] - v[0]) / (v.len() - 1) as f64 } else { 0.0 }
    });
    grown[0] > 0.0 && (grown[1] - grown[0]).abs() < grown[0] * 0.1
}

/// The value below which a share of sorted values lies.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

/// Median distance from the median, as a standard deviation.
fn deviation(sorted: &[f64]) -> f64 {
    let median = quantile(sorted, 0.5);
    let mut away: Vec<f64> = sorted.iter().map(|v| (v - median).abs()).collect();
    away.sort_unstable_by(f64::total_cmp);
    quantile(&away, 0.5) * 1.4826
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(level: f64, n: usize) -> Vec<f64> {
        (0..n).map(|i| level + [0.0, 1.0, -1.0, 2.0, -2.0][i % 5]).collect()
    }

    #[test]
    fn a_level_that_moved_beats_one_that_moved_less_and_noise_is_nothing() {
        let score = |a: Vec<f64>, b: Vec<f64>| compare([a, b]).map(|d| d.0);
        let far = score(wave(50.0, 60), wave(90.0, 60)).expect("a jump");
        let near = score(wave(50.0, 60), wave(60.0, 60)).expect("a step");
        assert!(far > near * 2.0, "{far} {near}");
        assert_eq!(score(wave(50.0, 60), wave(50.0, 61)), None);
        assert_eq!(score(vec![0.0; 60], vec![0.0; 60]), None, "what is always zero");
        assert_eq!(score(wave(1.0, 60), wave(9.0, 3)), None, "too few to say");
    }

    #[test]
    fn what_it_says_is_where_it_moved() {
        assert_eq!(compare([vec![50.0; 60], vec![80.0; 60]]).map(|d| (d.1, d.2)), Some(("", (50.0, 80.0))));
        let mut stalled = vec![98.0; 60];
        stalled[20..30].fill(2.0);
        assert_eq!(compare([vec![98.0; 60], stalled]).map(|d| (d.1, d.2)), Some(("low", (98.0, 2.0))));
        // Neither the median nor the ends moved: a state that is there for less of the time.
        let capped = |share: usize| (0..100).map(|i| if i < share { 4.0 } else { 0.0 }).collect::<Vec<_>>();
        assert_eq!(compare([capped(90), capped(60)]).map(|d| (d.1, d.2)), Some(("low", (4.0, 0.0))));
    }

    #[test]
    fn one_odd_sample_and_what_grows_by_itself_say_nothing() {
        let mut odd = wave(50.0, 60);
        odd[7] = 9_999.0;
        assert_eq!(compare([wave(50.0, 60), odd]), None);
        let uptime = |from: i32| (from..from + 60).map(f64::from).collect::<Vec<_>>();
        assert_eq!(compare([uptime(1000), uptime(1060)]), None);
    }
}

//! Detection of changes: the move of a series from one span to another, measured by its usual spread. Medians and
//! percentiles are compared, so that one odd sample decides nothing.

/// Number of samples that each of the two spans must have.
pub const MIN_SAMPLES: usize = 4;
/// Number of spreads; smaller moves do not count as a change.
const MIN_SPREADS: f64 = 1.0;
/// The quantiles that are compared; the middle one is the median.
const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// The move of a series from one span to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moved {
    /// As a multiple of its spread, at least 1.
    pub score: f64,
    /// The part that moved most: empty for the median, `low` or `high` for the ends.
    pub part: &'static str,
    /// The value of that part in the first span and in the second.
    pub values: (f64, f64),
}

/// The move of samples from the first span to the second; None if there is none, or if samples are too few.
pub fn compare(mut both: [Vec<f64>; 2]) -> Option<Moved> {
    if both.iter().any(|v| v.len() < MIN_SAMPLES) || ramps(&both) {
        return None;
    }
    both.iter_mut().for_each(|v| v.sort_unstable_by(f64::total_cmp));
    let at = |k: usize| QUANTILES.map(|share| quantile(&both[k], share));
    let (a, b) = (at(0), at(1));
    let moved = a.iter().zip(&b).map(|(a, b)| (b - a).abs()).sum::<f64>() / QUANTILES.len() as f64;
    // A share of the size is added. Without it a series that is always constant would move infinitely far with its
    // first step.
    let size = a.iter().chain(&b).fold(0.0, |m: f64, v| m.max(v.abs()));
    let spread = (deviation(&both[0]) + deviation(&both[1])) / 2.0 + size * 0.01;
    let score = moved / spread;
    if score.is_nan() || score < MIN_SPREADS {
        return None;
    }
    let gap = |k: usize| (b[k] - a[k]).abs();
    // The median represents the series unless another part of it moved more than twice as far.
    let furthest = [0, 4, 1, 3].into_iter().fold(2, |k, other| if gap(other) > gap(k) { other } else { k });
    let (k, part) = match furthest {
        far if gap(2) * 2.0 >= gap(far) => (2, ""),
        low @ ..2 => (low, "low"),
        high => (high, "high"),
    };
    Some(Moved { score, part, values: (a[k], b[k]) })
}

/// True for a series that always grows at the same rate, such as an uptime.
fn ramps(both: &[Vec<f64>; 2]) -> bool {
    let grown = both.each_ref().map(|v| {
        let steady = v.windows(2).all(|w| w[1] >= w[0]);
        if steady { (v[v.len() - 1] - v[0]) / (v.len() - 1) as f64 } else { 0.0 }
    });
    grown[0] > 0.0 && (grown[1] - grown[0]).abs() < grown[0] * 0.1
}

/// The value at a quantile, 0 to 1, of sorted samples.
///
/// # Panics
/// There are none.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

/// The median distance from the median, scaled to a standard deviation, of sorted samples.
///
/// # Panics
/// There are none.
pub fn deviation(sorted: &[f64]) -> f64 {
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
        let score = |a: Vec<f64>, b: Vec<f64>| compare([a, b]).map(|d| d.score);
        let far = score(wave(50.0, 60), wave(90.0, 60)).expect("a jump");
        let near = score(wave(50.0, 60), wave(60.0, 60)).expect("a step");
        assert!(far > near * 2.0, "{far} {near}");
        assert_eq!(score(wave(50.0, 60), wave(50.0, 61)), None);
        assert_eq!(score(vec![0.0; 60], vec![0.0; 60]), None, "what is always zero");
        assert_eq!(score(wave(1.0, 60), wave(9.0, 3)), None, "too few to say");
    }

    #[test]
    fn what_it_says_is_where_it_moved() {
        assert_eq!(compare([vec![50.0; 60], vec![80.0; 60]]).map(|d| (d.part, d.values)), Some(("", (50.0, 80.0))));
        let mut stalled = vec![98.0; 60];
        stalled[20..30].fill(2.0);
        assert_eq!(compare([vec![98.0; 60], stalled]).map(|d| (d.part, d.values)), Some(("low", (98.0, 2.0))));
        // Neither the median nor the ends moved here: a state was there for less of the time.
        let capped = |share: usize| (0..100).map(|i| if i < share { 4.0 } else { 0.0 }).collect::<Vec<_>>();
        assert_eq!(compare([capped(90), capped(60)]).map(|d| (d.part, d.values)), Some(("low", (4.0, 0.0))));
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

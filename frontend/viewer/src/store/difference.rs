//! What changed, and who differs: compares the series of a span with those of the span before, which is as long. The score of a series
//! says how far it moved, measured by its usual spread. Medians and percentiles are compared, so that one odd sample
//! decides nothing. Likewise each device of several is compared with the others.

use super::source::Source;
use super::trace::{Rate, Trace};
use shared::catalog::{Catalog, Draw, Kind, Metric};
use shared::segment::TIER_MS;
use shared::series::SeriesId;
use std::collections::BTreeMap;

/// Number of samples that each of the two spans must have.
const MIN_SAMPLES: usize = 4;
/// Number of spreads; smaller moves do not count as a change.
const MIN_SPREADS: f64 = 1.0;
/// A device is unlike its peers from this multiple of what is usual among them.
const MIN_DISSENT: f64 = 3.0;
/// The quantiles that are compared; the middle one is the median.
const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// The difference of one series between the two spans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The series.
    pub series: SeriesId,
    /// How far the series moved, as a multiple of its spread.
    pub score: f64,
    /// The part that moved most: empty for the median, `low` or `high` for the ends.
    pub what: &'static str,
    /// The value of that part in the span before and in the span, in base units.
    pub values: (f64, f64),
}

/// The series of a source that differ, those that differ most first; None when there are too few samples to compare.
/// For a span that is drawn from minutes, the means of minutes are compared.
pub fn rank(source: &Source, catalog: &Catalog, (from, to): (i64, i64)) -> Option<Vec<Difference>> {
    let (start, days) = (from - (to - from), source.in_days((from, to)));
    let (mut found, mut compared) = (Vec::new(), false);
    for (i, def) in source.defs.iter().enumerate() {
        let series = i as SeriesId;
        let Some(metric) = catalog.metric(def).filter(|m| !m.chart.is_empty()) else { continue };
        let mut both = [Vec::new(), Vec::new()];
        let take = |t: i64, v: f64| both[usize::from(t > from)].push(v);
        read(source, catalog, series, metric, (start, to), days, take);
        compared |= both.iter().all(|v| v.len() >= MIN_SAMPLES);
        found.extend(compare(both).map(|(score, what, values)| Difference { series, score, what, values }));
    }
    found.sort_unstable_by(|a, b| b.score.total_cmp(&a.score));
    compared.then_some(found)
}

/// Hands out the values of a series in a span, in base units; counters as rates, and for a span that is drawn from
/// minutes (`days`) the means of minutes.
fn read(
    source: &Source,
    catalog: &Catalog,
    series: SeriesId,
    metric: &Metric,
    (from, to): (i64, i64),
    days: bool,
    mut take: impl FnMut(i64, f64),
) {
    let mut fits = |t: i64, v: f64| {
        if v.is_finite() && (from..=to).contains(&t) {
            take(t, v);
        }
    };
    if days {
        let mut minutes = Trace::of_days(series, TIER_MS, from, source, catalog);
        minutes.feed(source, from, to);
        minutes.columns().iter().for_each(|c| fits(c.t, c.mean()));
    } else {
        let (cadence, factor) = (source.cadence(series), metric.unit.to_base());
        let mut rate = source.is_counter(series, catalog).then(Rate::default);
        source.samples(series, 0, (from - cadence * 2, to), |t, v| {
            fits(t, rate.as_mut().map_or(v, |r| r.push(t, v, cadence * 3 / 2)) * factor);
        });
    }
}

/// A device that is unlike its peers in a span.
#[derive(Clone, Debug, PartialEq)]
pub struct Dissenter {
    /// The series of the device.
    pub series: SeriesId,
    /// How far its median lies from that of its peers, as a multiple of what is usual among them.
    pub score: f64,
    /// Median of the device in the span, in base units.
    pub value: f64,
    /// Smallest and largest median of its peers, in base units; of a single peer its ends.
    pub peers: (f64, f64),
    /// Number of peers.
    pub count: usize,
}

/// For each metric of numbered devices the device that is furthest from its peers in a span, the furthest first. A device
/// within the range of its peers, or hardly outside of it, is none.
pub fn dissenters(source: &Source, catalog: &Catalog, span: (i64, i64)) -> Vec<Dissenter> {
    let days = source.in_days(span);
    let mut metrics: BTreeMap<u16, Vec<SeriesId>> = BTreeMap::new();
    for (i, def) in source.defs.iter().enumerate() {
        let numbered = !def.instance.is_empty() && def.instance.bytes().all(|b| b.is_ascii_digit());
        let drawn =
            catalog.metric(def).is_some_and(|m| !m.chart.is_empty() && m.kind != Kind::State && m.draw == Draw::Line);
        if numbered && drawn {
            metrics.entry(def.metric).or_default().push(i as SeriesId);
        }
    }
    let mut found: Vec<Dissenter> = metrics
        .values()
        .filter_map(|series| {
            let metric = catalog.metric(&source.defs[series[0] as usize])?;
            let devices = series.iter().filter_map(|id| {
                let mut values = Vec::new();
                read(source, catalog, *id, metric, span, days, |_, v| values.push(v));
                values.sort_unstable_by(f64::total_cmp);
                (values.len() >= MIN_SAMPLES).then_some((*id, values))
            });
            dissenter(&devices.collect::<Vec<_>>())
        })
        .collect();
    found.sort_unstable_by(|a, b| b.score.total_cmp(&a.score));
    found
}

/// The device that is furthest from the others, by its sorted values; None where all are alike.
fn dissenter(devices: &[(SeriesId, Vec<f64>)]) -> Option<Dissenter> {
    let medians: Vec<f64> = devices.iter().map(|(_, values)| quantile(values, 0.5)).collect();
    let noise: f64 = devices.iter().map(|(_, values)| deviation(values)).sum::<f64>() / devices.len().max(1) as f64;
    let size = medians.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let one = |i: usize| {
        let mut others: Vec<f64> = medians.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, m)| *m).collect();
        others.sort_unstable_by(f64::total_cmp);
        let peers = match others[..] {
            [] => return None,
            // One peer has no range but its own.
            [_] => {
                let values = &devices[usize::from(i == 0)].1;
                (quantile(values, 0.05), quantile(values, 0.95))
            }
            _ => (others[0], others[others.len() - 1]),
        };
        let usual = deviation(&others) + noise + size * 0.01;
        let score = (medians[i] - quantile(&others, 0.5)).abs() / usual;
        let outside = (peers.0 - medians[i]).max(medians[i] - peers.1);
        let far = outside >= usual && score >= MIN_DISSENT;
        far.then(|| Dissenter { series: devices[i].0, score, value: medians[i], peers, count: others.len() })
    };
    (0..devices.len()).filter_map(one).max_by(|a, b| a.score.total_cmp(&b.score))
}

/// How far samples moved from the first span to the second; None when they did not.
fn compare(mut both: [Vec<f64>; 2]) -> Option<(f64, &'static str, (f64, f64))> {
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
    // The median stands for the series unless another part of it moved more than twice as far.
    let furthest = [0, 4, 1, 3].into_iter().fold(2, |k, other| if gap(other) > gap(k) { other } else { k });
    let (k, what) = match furthest {
        far if gap(2) * 2.0 >= gap(far) => (2, ""),
        low @ ..2 => (low, "low"),
        high => (high, "high"),
    };
    Some((score, what, (a[k], b[k])))
}

/// True for a series that always grows at the same rate, such as an uptime.
fn ramps(both: &[Vec<f64>; 2]) -> bool {
    let grown = both.each_ref().map(|v| {
        let steady = v.windows(2).all(|w| w[1] >= w[0]);
        if steady { (v[v.len() - 1] - v[0]) / (v.len() - 1) as f64 } else { 0.0 }
    });
    grown[0] > 0.0 && (grown[1] - grown[0]).abs() < grown[0] * 0.1
}

/// The value at a quantile of sorted samples.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

/// The median distance from the median, scaled to a standard deviation.
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
        // Neither the median nor the ends moved here: a state was there for less of the time.
        let capped = |share: usize| (0..100).map(|i| if i < share { 4.0 } else { 0.0 }).collect::<Vec<_>>();
        assert_eq!(compare([capped(90), capped(60)]).map(|d| (d.1, d.2)), Some(("low", (4.0, 0.0))));
    }

    #[test]
    fn who_is_outside_of_its_peers_range_is_named_and_a_pair_needs_a_gap() {
        let devices = |levels: &[f64]| -> Vec<(SeriesId, Vec<f64>)> {
            let sorted = |level: &f64| {
                let mut values = wave(*level, 60);
                values.sort_unstable_by(f64::total_cmp);
                values
            };
            (0..).zip(levels.iter().map(sorted)).collect()
        };
        let found = dissenter(&devices(&[99.0, 98.0, 77.0, 99.0])).expect("the third");
        assert_eq!((found.series, found.value, found.peers, found.count), (2, 77.0, (98.0, 99.0), 3));
        assert_eq!(dissenter(&devices(&[99.0, 98.0, 97.0, 99.0])), None, "a little lower is no dissent");
        assert_eq!(dissenter(&devices(&[10.0, 40.0, 70.0, 100.0])), None, "where all differ nobody does");
        assert_eq!(dissenter(&devices(&[60.0, 90.0])).map(|d| d.count), Some(1));
        assert_eq!(dissenter(&devices(&[90.0, 91.0])), None);
        assert_eq!(dissenter(&devices(&[90.0])), None);
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

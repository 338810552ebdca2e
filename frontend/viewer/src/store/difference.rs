//! Changes over time, and differences between devices. The series of a span are compared with those of the equally long
//! span before, as in [`shared::changed`]. In the same way each device is compared with its peers.

use super::source::Source;
use super::trace::{Rate, Trace};
use charts::order;
use shared::catalog::{Catalog, Draw, Kind, Metric};
use shared::changed::{MIN_SAMPLES, Moved, compare, deviation, quantile};
use shared::segment::TIER_MS;
use shared::series::SeriesId;
use std::collections::BTreeMap;

/// Minimum score at which a device differs from its peers, as a multiple of their usual distance.
const MIN_DISSENT: f64 = 3.0;

/// The difference of one series between the two spans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The series.
    pub series: SeriesId,
    /// Distance that the series moved, as a multiple of its spread.
    pub score: f64,
    /// The part of the distribution that moved most: empty for the median, `low` or `high` for the ends.
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
        found.extend(compare(both).map(|Moved { score, part, values }| Difference {
            series,
            score,
            what: part,
            values,
        }));
    }
    order::sort_by(&mut found, |a, b| b.score.total_cmp(&a.score));
    compared.then_some(found)
}

/// Calls back with the values of a series in a span, in base units; counters as rates. For a span that is drawn from
/// minutes (`days`), these are the means of minutes.
pub fn read(
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

/// A device that differs from its peers in a span.
#[derive(Clone, Debug, PartialEq)]
pub struct Dissenter {
    /// The series of the device.
    pub series: SeriesId,
    /// Distance of its median from that of its peers, as a multiple of their usual distance.
    pub score: f64,
    /// Median of the device in the span, in base units.
    pub value: f64,
    /// Smallest and largest median of its peers, in base units; for a single peer, its 5th and 95th percentile.
    pub peers: (f64, f64),
    /// Number of peers.
    pub count: usize,
}

/// For each metric of numbered devices, the device that is furthest from its peers in a span, the furthest first. A
/// device within the range of its peers, or slightly outside of it, does not count.
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
    order::sort_by(&mut found, |a, b| b.score.total_cmp(&a.score));
    found
}

/// The device that is furthest from the others, by its sorted values; None if all are alike.
fn dissenter(devices: &[(SeriesId, Vec<f64>)]) -> Option<Dissenter> {
    let medians: Vec<f64> = devices.iter().map(|(_, values)| quantile(values, 0.5)).collect();
    let noise: f64 = devices.iter().map(|(_, values)| deviation(values)).sum::<f64>() / devices.len().max(1) as f64;
    let size = medians.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let one = |i: usize| {
        let mut others: Vec<f64> = medians.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, m)| *m).collect();
        others.sort_unstable_by(f64::total_cmp);
        let peers = match others[..] {
            [] => return None,
            // A single peer has only its own range.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(level: f64, n: usize) -> Vec<f64> {
        (0..n).map(|i| level + [0.0, 1.0, -1.0, 2.0, -2.0][i % 5]).collect()
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
}

//! The value of a series at an instant, for tiles: in base units, and as a rate for counters.

use super::source::Source;
use super::trace::Rate;
use shared::catalog::Catalog;
use shared::segment::TIER_MS;
use shared::series::SeriesId;

/// Maximum age of a value, as a number of samples.
const MAX_VALUE_AGE_SAMPLES: i64 = 3;

/// The newest value at `t` (ms since the epoch) or shortly before; None when there is none.
pub fn at(source: &Source, catalog: &Catalog, series: SeriesId, t: i64) -> Option<f64> {
    let metric = catalog.metric(source.defs.get(series as usize)?)?;
    let cadence = source.cadence(series);
    let counter = source.is_counter(series, catalog);
    let (mut rate, mut found) = (Rate::default(), None);
    let mut take = |at: i64, v: f64| {
        if at > t {
            return;
        }
        let v = if counter { rate.push(at, v, cadence * 3 / 2) } else { v };
        if v.is_finite() {
            found = Some(v);
        }
    };
    let from = t - cadence * MAX_VALUE_AGE_SAMPLES;
    if source.head.front().is_some_and(|tick| tick.t <= from) {
        // In most cases the last ticks of the head are enough, and no chunk is decoded.
        let start = source.head.partition_point(|tick| tick.t < from);
        for tick in source.head.range(start..) {
            take(tick.t, tick.values.get(series as usize).copied().unwrap_or(f64::NAN));
        }
    } else {
        source.samples(series, 0, (from, t), take);
    }
    if found.is_none() {
        // Before the stored samples there are minutes; those of counters are already rates.
        source.days.minutes(series, from.min(t - TIER_MS), |b, _| found = if b.t <= t { Some(b.mean) } else { found });
    }
    found.map(|v| v * metric.unit.to_base())
}

//! One row of the fleet's overview over time: one value per step and machine.

use super::Live;
use serde::{Deserialize, Serialize};
use shared::catalog::fleet::{Aggregate, FleetRow, Grain, rows};
use shared::rollup::{Bucket, rate, roll};
use shared::series::SeriesId;
use shared::wire::Source;

/// Maximum time before the span of the sample for the first rate, milliseconds.
const RATE_LEAD_MS: i64 = 60_000;

/// Request for a row over time. Hubs send it to each other unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowColumns {
    /// Id of the row.
    pub row: String,
    /// First instant, a multiple of the step, milliseconds since the Unix epoch.
    pub from: i64,
    /// Last instant.
    pub to: i64,
    /// Time between two columns, milliseconds; above 0.
    pub step: i64,
    /// Number of columns.
    pub count: usize,
    /// Whether unsealed ticks are read, too.
    pub whole: bool,
}

/// The rows that can be read over time.
pub fn rows_over_time() -> impl Iterator<Item = &'static FleetRow> {
    rows(Grain::Sources).iter().copied().filter(|row| !row.of.is_empty())
}

impl RowColumns {
    /// The row of a machine by step. A step without a value is none, and so is every step of an unknown row.
    pub fn read(&self, live: &Live, source: &Source) -> Vec<Option<f64>> {
        let RowColumns { from, to, step, .. } = *self;
        let Some(row) = rows_over_time().find(|row| row.id == self.row) else { return vec![None; self.count] };
        let lead = if row.is_rate() { RATE_LEAD_MS } else { 0 };
        let (ids, snapshot) = {
            let store = live.store();
            let mut positions = row.of.iter().filter_map(|metric| store.catalog().position(metric.tag));
            let own = |position: u16| -> Vec<SeriesId> {
                let defs = (0..).zip(store.series(source.id, 0));
                defs.filter(|(_, def)| def.metric == position).map(|(id, _)| id).collect()
            };
            // Among the alternatives of the row, the first that the machine has.
            let ids = positions.find_map(|position| Some(own(position)).filter(|ids| !ids.is_empty()));
            (ids.unwrap_or_default(), store.snapshot(source.id, from.saturating_sub(lead), to))
        };
        let Some(snapshot) = snapshot.filter(|_| !ids.is_empty()) else { return vec![None; self.count] };
        let snapshot = if self.whole { snapshot } else { snapshot.sealed() };
        let buckets = match row.is_rate() {
            false => snapshot.buckets(&ids, step, false),
            true => {
                let rates = |samples: Vec<(i64, f64)>| {
                    let gaps = samples.windows(2).map(|pair| pair[1].0 - pair[0].0).filter(|gap| *gap > 0);
                    let pace = gaps.min().unwrap_or(0).max(source.interval);
                    roll(rate(samples, pace * 3 / 2).filter(|(t, _)| *t >= from), step)
                };
                snapshot.samples(&ids).into_iter().map(rates).collect()
            }
        };
        self.folded(row, &buckets)
    }

    /// Aggregates series step by step.
    fn folded(&self, row: &FleetRow, series: &[Vec<Bucket>]) -> Vec<Option<f64>> {
        let mut steps: Vec<Vec<f64>> = vec![Vec::new(); self.count];
        for bucket in series.iter().flatten() {
            let at = usize::try_from((bucket.t - self.from).div_euclid(self.step)).ok();
            if let Some(values) = at.and_then(|at| steps.get_mut(at)) {
                values.push(match row.aggregate {
                    Aggregate::Min => bucket.min,
                    Aggregate::Max => bucket.max,
                    _ => bucket.mean,
                });
            }
        }
        steps.into_iter().map(|values| row.fold(values)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::catalog::fleet::{GPU_BUSY, GPU_MEMORY};

    #[test]
    fn a_step_is_made_of_all_series_that_have_a_value_in_it() {
        let bucket = |t, min, max, mean| Bucket { t, min, max, mean, last: mean, count: 60 };
        let of = RowColumns { row: "gpu".into(), from: 60_000, to: 239_999, step: 60_000, count: 3, whole: true };
        let series = [
            vec![bucket(0, 1.0, 1.0, 1.0), bucket(60_000, 10.0, 30.0, 20.0), bucket(120_000, 50.0, 90.0, 70.0)],
            vec![bucket(120_000, 20.0, 40.0, 30.0), bucket(240_000, 1.0, 1.0, 1.0)],
        ];
        assert_eq!(of.folded(&GPU_BUSY, &series), [Some(20.0), Some(50.0), None]);
        assert_eq!(of.folded(&GPU_MEMORY, &series), [Some(30.0), Some(90.0), None]);
    }
}

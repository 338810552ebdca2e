//! `GET /api/v1/fleet`: one row of the fleet's overview over time, of every machine.

use super::answer::{listed, stream};
use super::params::Params;
use super::{number, seconds};
use crate::config::step;
use crate::export::fitting;
use crate::http::admit::Asker;
use crate::http::{App, Refusal};
use crate::live::Live;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use serde_json::{Value, json as object};
use shared::catalog::fleet::{Aggregate, FleetRow, Grain, rows};
use shared::rollup::{Bucket, rate, roll};
use shared::scope::Bounds;
use shared::series::SeriesId;
use shared::wire::Source;
use std::sync::Arc;

/// How long before `to` an answer begins where `from` is not given, milliseconds.
const DEFAULT_SPAN_MS: i64 = 3_600_000;
/// The most steps of an answer: more than a screen has columns.
const MAX_STEPS: i64 = 4_000;
/// Of more machines than this only what is sealed is read, which ends at most half an hour ago: the ticks since then are
/// in the live overview, and reading them costs milliseconds a machine.
const MAX_WHOLE: usize = 128;
/// How long before the span the sample may lie with which its first rate is made, milliseconds.
const RATE_LEAD_MS: i64 = 60_000;

/// `?row=ID` chooses the row, `from`, `to` and `step` the columns, `source=` machines.
pub(in crate::http) async fn get(
    State(app): State<Arc<App>>,
    asker: Asker,
    params: Params,
) -> Result<Response<Body>, Refusal> {
    let row = chosen(params.last("row")).map_err(Refusal::bad)?;
    let now = app.live.clock.wall();
    let to = params.instant("to", now)?.unwrap_or(now);
    let from = params.instant("from", now)?.unwrap_or(to.saturating_sub(DEFAULT_SPAN_MS));
    let step = params.last("step").map(step).transpose().map_err(|why| Refusal::bad(format!("step {why}")))?;
    let step = step.unwrap_or(60_000).max(1);
    if from > to {
        return Err(Refusal::bad("from is later than to"));
    }
    let (first, to) = asker.within(now, from, to)?;
    // The first step begins before the span, but not before what may be seen.
    let from = match asker.bounds == Bounds::All {
        true => from.div_euclid(step) * step,
        false => first.saturating_add(step - 1).div_euclid(step) * step,
    };
    if from > to {
        return Err(Refusal::bad("this span is shorter than its step"));
    }
    let count = to.saturating_sub(from) / step + 1;
    if count > MAX_STEPS {
        let fits = (to.saturating_sub(from) / MAX_STEPS / 1_000 + 1).max(1);
        let sentence = format!("that are {count} steps, and an answer holds {MAX_STEPS}; ask for step={fits}s");
        return Err(Refusal::bad(sentence));
    }
    let names: Vec<String> = params.each("source").map(str::to_string).collect();
    let names = asker.sources(&app, names).await;
    let sources = fitting(&asker.reader(&app).sources(), &names);
    let sources = sources.map_err(|unknown| Refusal::bad(unknown.to_string()))?;
    if row.of.iter().any(|metric| asker.scope.hides(metric.chart)) {
        return Err(Refusal::new(StatusCode::FORBIDDEN, "this link does not show that chart"));
    }
    let columns = Columns { row, from, to, step, count: count as usize, whole: sources.len() <= MAX_WHOLE };
    let begin = format!(
        "{{\"row\":\"{}\",\"unit\":\"{}\",\"from\":{},\"step\":{},\"count\":{count},\"whole\":{},\"sources\":[",
        row.id,
        row.unit.name(),
        seconds(from),
        seconds(step),
        columns.whole,
    );
    let (slot, live) = (app.answers.history.take()?, app.live.clone());
    let mut left = sources.into_iter();
    let items = move || {
        let source = left.next()?;
        let values: Vec<Value> =
            columns.read(&live, &source).into_iter().map(|v| v.map_or(Value::Null, number)).collect();
        Some(vec![object!({ "id": source.id, "key": source.key, "name": source.name, "values": values })])
    };
    Ok(stream(slot, "application/json", listed(begin, items)).await)
}

/// The row of this id.
fn chosen(id: Option<&str>) -> Result<&'static FleetRow, String> {
    let known: Vec<&FleetRow> = rows(Grain::Sources).iter().copied().filter(|row| !row.of.is_empty()).collect();
    let names = known.iter().map(|row| row.id).collect::<Vec<_>>().join(", ");
    let id = id.ok_or_else(|| format!("say which: ?row=ID; there are {names}"))?;
    known.into_iter().find(|row| row.id == id).ok_or_else(|| format!("there is no row {id:?}; there are {names}"))
}

/// What is read of each machine.
struct Columns {
    row: &'static FleetRow,
    /// First instant, a multiple of the step, milliseconds since the Unix epoch.
    from: i64,
    /// Last instant.
    to: i64,
    step: i64,
    count: usize,
    /// Whether what is not sealed is read, too.
    whole: bool,
}

impl Columns {
    /// The row of a machine by step; none where it has no value.
    fn read(&self, live: &Live, source: &Source) -> Vec<Option<f64>> {
        let Columns { row, from, to, step, .. } = *self;
        let lead = if row.is_rate() { RATE_LEAD_MS } else { 0 };
        let (ids, snapshot) = {
            let store = live.store();
            let mut positions = row.of.iter().filter_map(|metric| store.catalog().position(metric.tag));
            let own = |position: u16| -> Vec<SeriesId> {
                let defs = (0..).zip(store.series(source.id, 0));
                defs.filter(|(_, def)| def.metric == position).map(|(id, _)| id).collect()
            };
            // Of those of which it may be made the first that the machine has.
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
        self.folded(&buckets)
    }

    /// Series together, step by step.
    fn folded(&self, series: &[Vec<Bucket>]) -> Vec<Option<f64>> {
        let mut steps: Vec<Vec<f64>> = vec![Vec::new(); self.count];
        for bucket in series.iter().flatten() {
            let at = usize::try_from((bucket.t - self.from).div_euclid(self.step)).ok();
            if let Some(values) = at.and_then(|at| steps.get_mut(at)) {
                values.push(match self.row.aggregate {
                    Aggregate::Min => bucket.min,
                    Aggregate::Max => bucket.max,
                    _ => bucket.mean,
                });
            }
        }
        steps.into_iter().map(|values| self.row.fold(values)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::catalog::fleet::{GPU_BUSY, GPU_MEMORY};

    #[test]
    fn a_step_is_made_of_all_series_that_have_a_value_in_it() {
        let bucket = |t, min, max, mean| Bucket { t, min, max, mean, last: mean, count: 60 };
        let of = |row| Columns { row, from: 60_000, to: 239_999, step: 60_000, count: 3, whole: true };
        let series = [
            vec![bucket(0, 1.0, 1.0, 1.0), bucket(60_000, 10.0, 30.0, 20.0), bucket(120_000, 50.0, 90.0, 70.0)],
            vec![bucket(120_000, 20.0, 40.0, 30.0), bucket(240_000, 1.0, 1.0, 1.0)],
        ];
        assert_eq!(of(&GPU_BUSY).folded(&series), [Some(20.0), Some(50.0), None]);
        assert_eq!(of(&GPU_MEMORY).folded(&series), [Some(30.0), Some(90.0), None]);
    }

    #[test]
    fn a_row_that_is_none_is_told_with_those_that_there_are() {
        assert!(chosen(None).is_err_and(|told| told.contains("gpu, gpu.min") && !told.contains("state")));
        assert!(chosen(Some("gpus")).is_err_and(|told| told.contains("gpu.temp")));
        assert_eq!(chosen(Some("cpu")).map(|row| row.id), Ok("cpu"));
    }
}

//! `GET /api/v1/fleet`: one row of the fleet's overview over time, of every machine.

use super::answer::{listed, stream};
use super::no_source;
use super::params::Params;
use crate::config::step;
use crate::export::fitting;
use crate::http::admit::Asker;
use crate::http::{App, Refusal};
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use cluster::Cluster;
use shared::answer::fleet::{FleetColumns, FleetMachine};
use shared::catalog::fleet::FleetRow;
use shared::json::{Number, Seconds};
use shared::scope::Bounds;
use shared::wire::{Source, SourceId};
use std::collections::HashMap;
use std::sync::Arc;
use stream::live::{Holder, RowColumns, rows_over_time};

/// Default span of a response without `from`, milliseconds.
const DEFAULT_SPAN_MS: i64 = 3_600_000;
/// Maximum number of steps of a response: more than a screen has columns.
const MAX_STEPS: i64 = 4_000;
/// Above this number of machines only sealed blocks are read, which end at most half an hour ago. The live overview
/// has the ticks since then, and reading them takes milliseconds per machine.
const MAX_WHOLE: usize = 128;

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
    let step = params.last("step").map(step).transpose().map_err(|why| Refusal::bad(format!("step: {why}")))?;
    let step = step.unwrap_or(60_000).max(1);
    if from > to {
        return Err(Refusal::bad("from is later than to"));
    }
    let (first, to) = asker.within(now, from, to)?;
    // The first step begins before the span, but not outside the times that may be seen.
    let from = match asker.bounds == Bounds::All {
        true => from.div_euclid(step) * step,
        false => first.saturating_add(step - 1).div_euclid(step) * step,
    };
    if from > to {
        return Err(Refusal::bad("the span is shorter than its step"));
    }
    let count = to.saturating_sub(from) / step + 1;
    if count > MAX_STEPS {
        let fits = (to.saturating_sub(from) / MAX_STEPS / 1_000 + 1).max(1);
        let sentence = format!("the response would have {count} steps, and the limit is {MAX_STEPS}; use step={fits}s");
        return Err(Refusal::bad(sentence));
    }
    let names: Vec<String> = params.each("source").map(str::to_string).collect();
    let names = asker.sources(&app, names).await;
    let sources = fitting(&asker.reader(&app).sources(), &names).map_err(no_source)?;
    if row.of.iter().any(|metric| asker.scope.hides(metric.chart)) {
        return Err(Refusal::new(StatusCode::FORBIDDEN, "this link does not include that chart"));
    }
    let whole = sources.len() <= MAX_WHOLE;
    let columns = RowColumns { row: row.id.into(), from, to, step, count: count as usize, whole };
    let head = FleetColumns {
        row: row.id.into(),
        unit: row.unit,
        from: Seconds(from),
        step: Seconds(step),
        count: count as u64,
        whole,
        sources: Vec::new(),
    };
    let (slot, live) = (app.answers.history.take()?, app.live.clone());
    let others = app.hub().ok().and_then(|hub| hub.cluster.clone());
    let mut elsewhere = Elsewhere { others, columns: columns.clone(), next: HashMap::new(), left: Vec::new() };
    if elsewhere.others.is_some() {
        let there = |source: &SourceId| live.holder(*source) == Holder::There && !live.is_brought(*source);
        elsewhere.left = sources.iter().map(|source| source.id).filter(there).rev().collect();
    }
    let mut left = sources.into_iter();
    let items = move || {
        let source = left.next()?;
        let (values, lacks) = match elsewhere.values_of(&source) {
            None => (columns.read(&live, &source), None),
            Some(Ok(values)) => (values, None),
            // Partial local data is better than none.
            Some(Err(why)) => (columns.read(&live, &source), Some(why)),
        };
        let values = values.into_iter().map(|value| value.map(Number)).collect();
        Some(vec![FleetMachine { id: source.id, key: source.key.clone(), name: source.name.clone(), values, lacks }])
    };
    Ok(stream(slot, "application/json", listed(&head, items)).await)
}

/// Machines of a response that other replicas hold, and the responses of those, fetched in batches.
struct Elsewhere {
    others: Option<Arc<Cluster>>,
    columns: RowColumns,
    /// Responses for the next machines.
    next: HashMap<SourceId, Result<Vec<Option<f64>>, String>>,
    /// Machines that were not requested yet, the next one last.
    left: Vec<SourceId>,
}

impl Elsewhere {
    /// The values of a machine, or the reason why those of another replica are unknown. None if the machine is read
    /// here. Blocks until the other replica has answered.
    fn values_of(&mut self, source: &Source) -> Option<Result<Vec<Option<f64>>, String>> {
        if self.left.last() == Some(&source.id)
            && let Some(others) = &self.others
        {
            let most = others.most_columns(&self.columns);
            let asked = self.left.split_off(self.left.len().saturating_sub(most));
            self.next = tokio::runtime::Handle::current().block_on(others.columns(&self.columns, &asked));
        }
        self.next.remove(&source.id)
    }
}

/// The row of this id.
fn chosen(id: Option<&str>) -> Result<&'static FleetRow, String> {
    let known: Vec<&FleetRow> = rows_over_time().collect();
    let names = known.iter().map(|row| row.id).collect::<Vec<_>>().join(", ");
    let id = id.ok_or_else(|| format!("a row is missing: use ?row=ID; rows are {names}"))?;
    known.into_iter().find(|row| row.id == id).ok_or_else(|| format!("there is no row {id:?}; rows are {names}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_none_is_told_with_those_that_there_are() {
        assert!(chosen(None).is_err_and(|told| told.contains("gpu, gpu.min") && !told.contains("state")));
        assert!(chosen(Some("gpus")).is_err_and(|told| told.contains("gpu.temp")));
        assert_eq!(chosen(Some("cpu")).map(|row| row.id), Ok("cpu"));
    }
}

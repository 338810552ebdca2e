//! `GET /api/v1/changed`: series of the machines that differ between a span and the one before.

use super::named;
use super::params::Params;
use crate::http::admit::Asker;
use crate::http::{App, Refusal};
use axum::Json;
use axum::extract::State;
use shared::answer::series::ChangedList;
use shared::finding::Change;
use shared::json::Seconds;
use std::sync::Arc;
use watch::findings::{Spans, changes};

/// Default and maximum span, milliseconds.
const DEFAULT_SPAN_MS: i64 = 300_000;
const MAX_SPAN_MS: i64 = 12 * 3_600_000;
/// Maximum number of machines and of changes in a response.
const MAX_MACHINES: usize = 64;
const MAX_CHANGES: usize = 100;

/// `?from=` and `to=` are the span, by default the last five minutes; the span before it has the same length.
/// `source=` chooses machines. Series are sorted by their change as a multiple of their usual spread, largest first.
pub(in crate::http) async fn get(
    State(app): State<Arc<App>>,
    asker: Asker,
    params: Params,
) -> Result<Json<ChangedList>, Refusal> {
    let now = app.live.clock.wall();
    let to = params.instant("to", now)?.unwrap_or(now);
    let from = params.instant("from", now)?.unwrap_or(to - DEFAULT_SPAN_MS);
    if from >= to || to - from > MAX_SPAN_MS {
        return Err(Refusal::bad("give from= and to=, at most 12 h apart"));
    }
    let (before, to) = asker.within(now, from - (to - from), to)?;
    let sources = named(&app, &asker, &params).await?;
    if sources.len() > MAX_MACHINES {
        return Err(Refusal::bad(format!(
            "{} machines are too many; name at most {MAX_MACHINES} with source=",
            sources.len()
        )));
    }
    let (slot, reader) = (app.answers.history.take()?, asker.reader(&app));
    let answered = move || {
        let spans = Spans { from: before, middle: from, to };
        let of = |source: &Arc<shared::wire::Source>| {
            changes(reader.live(), source.id, spans, |metric| !reader.scope().hides(&metric.chart))
        };
        let mut all: Vec<Change> = sources.iter().flat_map(of).collect();
        all.sort_by(|a, b| b.score.total_cmp(&a.score));
        let total = all.len() as u64;
        all.truncate(MAX_CHANGES);
        ChangedList { from: Seconds(from), to: Seconds(to), before: Seconds(before), total, changed: all }
    };
    Ok(Json(slot.blocking(answered).await?))
}

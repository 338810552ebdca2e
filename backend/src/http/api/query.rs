//! `GET /api/v1/query` and `GET /api/v1/export`: stored samples, streamed.

use super::answer::{AnswerSlot, history_slot, stream};
use super::holes::{holes, tell};
use super::older::{older, recalled};
use super::params::Params;
use crate::config::step;
use crate::export::openmetrics::OPENMETRICS;
use crate::export::{Ask, Count, Format, Look, Pieces, Refused, Selection, fitting, query as form, select};
use crate::http::admit::Asker;
use crate::http::notes;
use crate::http::{App, Refusal, error, json};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use jobs::runs::names_of;
use shared::answer::series::TooLarge;
use shared::catalog::{Catalog, LABEL, MetricDef, job, process};
use shared::run::Run;
use shared::scope::Bounds;
use shared::wire::Source;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stream::live::Reader;
use stream::store::Store;

/// Default tags of a query for a run: its GPUs,
const ALL_OF_GPUS: &str = "gpu.*";
/// the values that it logs, and the resources of its ranks.
static OF_RANKS: [&MetricDef; 3] = [&process::CPU, &process::RSS, &process::THREADS];
/// Maximum number of values in one response of `query`.
const MAX_VALUES: i64 = 5_000_000;
/// Default span of a response without `from`, milliseconds.
const DEFAULT_SPAN_MS: i64 = 300_000;
/// Time after which the count of values yields its permit; it also ends there after a disconnect.
const YIELD_INTERVAL: Duration = Duration::from_millis(50);

impl Look for Reader {
    fn with_store<T>(&self, look: impl FnOnce(&Store) -> T) -> T {
        look(&self.live().store())
    }

    fn catalog(&self) -> Arc<Catalog> {
        Reader::catalog(self)
    }

    fn sources(&self) -> Vec<Arc<Source>> {
        Reader::sources(self)
    }

    fn hides(&self, chart: &str) -> bool {
        self.scope().hides(chart)
    }

    fn hides_names_of(&self, key: &str) -> bool {
        self.scope().hides_names_of(key)
    }
}

pub(in crate::http) async fn query(
    State(app): State<Arc<App>>,
    asker: Asker,
    params: Params,
) -> Result<Response<Body>, Response<Body>> {
    let ask = asked(&app, &asker, &params).await?;
    let slot = history_slot(&app, &asker)?;
    let reader = asker.reader(&app);
    let theirs = reader.clone();
    let selection = Arc::new(slot.blocking(move || select(&theirs, ask)).await?.map_err(refusal)?);
    counted(&slot, &selection).await?;
    // Holes are determined before the samples are read: samples that arrive meanwhile are listed as missing, never the
    // reverse.
    let holes = holes(&reader, &selection.ask);
    let older = older(&app, &reader, &selection.ask).await;
    let form = form(&selection, older, &holes);
    let mut response = stream(slot, "application/json", text_chunks(Pieces::new(selection, form))).await;
    tell(response.headers_mut(), &holes);
    Ok(response)
}

/// Refuses a response with too many values.
async fn counted(slot: &AnswerSlot, selection: &Arc<Selection>) -> Result<(), Response<Body>> {
    let mut count = Count::new(selection.clone(), MAX_VALUES);
    loop {
        let some = move || {
            let begun = Instant::now();
            loop {
                match count.go_on() {
                    Ok(None) if begun.elapsed() < YIELD_INTERVAL => {}
                    known => return known.map(|known| (known, count)),
                }
            }
        };
        match slot.blocking(some).await?.map_err(refusal)? {
            (Some(()), _) => return Ok(()),
            (None, rest) => count = rest,
        }
    }
}

/// Text in chunks for a response.
fn text_chunks(mut pieces: Pieces) -> impl FnMut() -> (String, bool) + Send + 'static {
    move || (pieces.next().unwrap_or_default(), !pieces.ended())
}

/// A response that a browser saves as a file.
pub(in crate::http) async fn export(
    State(app): State<Arc<App>>,
    asker: Asker,
    params: Params,
) -> Result<Response<Body>, Response<Body>> {
    let ask = asked(&app, &asker, &params).await?;
    let format = params.last("format").unwrap_or("csv");
    let format = Format::from_name(format).map_err(|why| Refusal::bad(format!("format {why}")))?;
    let machines = if ask.sources.is_empty() { "all machines".into() } else { ask.sources.join(" ") };
    asker.takes(&app, "data.export", &machines, (ask.from, ask.to)).await?;
    let slot = history_slot(&app, &asker)?;
    let reader = asker.reader(&app);
    let holes = holes(&reader, &ask);
    let notes = match format {
        Format::Json => notes::exported(&app, &asker, &ask).await,
        _ => Vec::new(),
    };
    let chosen = move || {
        let mut selection: Selection = select(&reader, ask)?;
        let form = format.form(&mut selection)?;
        Ok(Pieces::new(selection, form).with_notes(notes))
    };
    let pieces = slot.blocking(chosen).await?.map_err(refusal)?;
    let (mime, name) = match format {
        // The page names this file, as all files that it saves.
        Format::Csv => ("text/csv; charset=utf-8", ""),
        Format::Json => ("application/x-ndjson", "watchglass.jsonl"),
        Format::OpenMetrics => (OPENMETRICS, "watchglass.txt"),
        Format::WandbJsonl => ("application/x-ndjson", "wandb-events.jsonl"),
    };
    let mut response = stream(slot, mime, text_chunks(pieces)).await;
    let value = match name {
        "" => HeaderValue::from_static("attachment"),
        name => format!("attachment; filename=\"{name}\"").try_into().expect("our names are plain"),
    };
    response.headers_mut().insert::<HeaderName>(header::CONTENT_DISPOSITION, value);
    tell(response.headers_mut(), &holes);
    Ok(response)
}

/// The parsed query. A source may be named by a former name.
pub(super) async fn asked(app: &App, asker: &Asker, params: &Params) -> Result<Ask, Refusal> {
    let now = app.live.clock.wall();
    let run = match params.last("run") {
        Some(_) if asker.bounds != Bounds::All => {
            return Err(Refusal::new(StatusCode::FORBIDDEN, "a share link does not include runs; leave run= out"));
        }
        Some(id) => Some(run(app, asker, id).await?),
        None => None,
    };
    let ask = ask(params, now, run.as_ref())?;
    let (from, to) = asker.within(now, ask.from, ask.to)?;
    let ask = Ask { from, to, ..ask };
    let ask = Ask { sources: asker.sources(app, ask.sources).await, ..ask };
    // The query itself refuses patterns without a match.
    let sources = fitting(&asker.reader(app).sources(), &ask.sources).unwrap_or_default();
    app.live.bring(&sources.iter().map(|source| source.id).collect::<Vec<_>>(), (ask.from, ask.to)).await;
    if !ask.sources.is_empty() {
        recalled(app, &sources).await;
    }
    Ok(ask)
}

/// The run of an id, if the caller may see it.
pub(super) async fn run(app: &App, asker: &Asker, id: &str) -> Result<Run, Refusal> {
    let now = app.live.clock.wall();
    let span = asker.within(now, 0, now)?;
    let (slot, sources) = (app.answers.history.take()?, asker.reader(app).sources());
    let (runs, live, wanted) = (app.runs.clone(), app.live.clone(), id.to_string());
    let found = slot.blocking(move || runs.find(&live, &sources, &wanted, span)).await?;
    let sentence = || format!("there is no run {id:?}; api/v1/runs lists them");
    found.ok_or_else(|| Refusal::new(StatusCode::NOT_FOUND, sentence()))
}

/// The query from the parameters. For a run: its time, its machines, and the GPUs that it holds.
fn ask(params: &Params, now: i64, run: Option<&Run>) -> Result<Ask, Refusal> {
    let end = run.and_then(|run| run.ended).unwrap_or(now);
    let to = params.instant("to", now)?.unwrap_or(end);
    let begin = run.map_or_else(|| to.saturating_sub(DEFAULT_SPAN_MS), |run| run.began.min(to));
    let from = params.instant("from", now)?.unwrap_or(begin);
    let owned = |name| params.each(name).map(str::to_string).collect();
    let step = params.last("step").map(step).transpose().map_err(|why| Refusal::bad(format!("step: {why}")))?;
    let rate = match params.last("fn") {
        None => false,
        Some("rate") => true,
        Some(other) => {
            return Err(Refusal::bad(format!("fn is rate, the increase of counters per second, not {other:?}")));
        }
    };
    let mut ask = Ask { tags: owned("tag"), sources: owned("source"), from, to, step, rate, ..Ask::default() };
    if let Some(run) = run {
        if ask.sources.is_empty() {
            let machines: BTreeSet<&String> = run.processes.iter().map(|process| &process.source).collect();
            ask.sources = machines.into_iter().cloned().collect();
        }
        if ask.tags.is_empty() {
            ask.tags.push(ALL_OF_GPUS.into());
            ask.tags.push(format!("{}*", job::PREFIX));
            ask.tags.extend(OF_RANKS.iter().map(|row| format!("{}{LABEL}*", row.tag)));
        }
        ask.run = Some(run.machine_id().to_string());
        for process in &run.processes {
            let held = process.rank.iter().flat_map(|rank| rank.gpus.iter().copied());
            held.for_each(|gpu| _ = ask.gpus.entry(process.source.clone()).or_default().insert(gpu));
            let rank = process.rank.as_ref().map(|rank| rank.rank);
            let names = names_of(process.label.as_deref(), rank, process.pid, &run.id);
            ask.ranks.entry(process.source.clone()).or_default().extend(names);
        }
    }
    Ok(ask)
}

/// A refusal as its status and sentence. The size limits are also numbers, for scripts.
pub(super) fn refusal(refused: Refused) -> Response<Body> {
    match &refused {
        Refused::Wrong(_) => error(StatusCode::BAD_REQUEST, refused.to_string()),
        Refused::Unknown(_) | Refused::NoSource(_) => error(StatusCode::NOT_FOUND, refused.to_string()),
        Refused::Large { series, values, most, step } => {
            let numbers = TooLarge {
                error: refused.to_string(),
                series: *series as u64,
                samples: *values,
                limit: *most,
                step: (step + 999) / 1000,
            };
            json(StatusCode::PAYLOAD_TOO_LARGE, &numbers)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_too_large_is_said_in_words_and_numbers() {
        let answer = refusal(Refused::Large { series: 1_200, values: 51_840_000, most: MAX_VALUES, step: 16_000 });
        assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let body = axum::body::to_bytes(answer.into_body(), 4_096).await.expect("a body");
        let said: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        let numbers = (&said["series"], &said["samples"], &said["limit"], &said["step"]);
        assert_eq!(numbers, (&1_200.into(), &51_840_000.into(), &MAX_VALUES.into(), &16.into()));
        assert!(said["error"].as_str().is_some_and(|text| text.contains("step=16s") && text.contains("source=")));
    }
}

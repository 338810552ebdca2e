//! `GET /api/v1/query` and `GET /api/v1/export`: stored samples, streamed.

use super::answer::{HISTORY, apart, stream};
use super::older::older;
use super::params::Params;
use super::{App, error, json};
use crate::config::{step, when};
use crate::export::openmetrics::OPENMETRICS;
use crate::export::{Ask, Count, Format, Look, Pieces, Refused, Selection, query as form, select};
use crate::live::Hub;
use crate::store::Store;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderName, Response, StatusCode, header};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// The most values in one answer of `query`.
const MOST: i64 = 5_000_000;
/// Questions to the server of remote write at once: it may take long, and each holds one of the threads.
static OLDER: Semaphore = Semaphore::const_new(2);
/// What `from` is without being given: this long before `to`, milliseconds.
const SPAN: i64 = 300_000;
/// How long values are counted before the turn is given away, and nothing more is done for a caller who has gone.
const COUNTING: Duration = Duration::from_millis(50);

impl Look for Hub {
    fn look<T>(&self, look: impl FnOnce(&Store) -> T) -> T {
        look(&self.store())
    }
}

pub(super) async fn query(State(app): State<Arc<App>>, params: Params) -> Response<Body> {
    match answer(app, params).await {
        Ok(answer) | Err(answer) => answer,
    }
}

async fn answer(app: Arc<App>, params: Params) -> Result<Response<Body>, Response<Body>> {
    let (ask, format) = ask(&params, app.hub.clock.wall()).map_err(refusal)?;
    if format.is_some() {
        return Err(refusal(Refused::Wrong("query answers JSON; other formats are at api/v1/export".into())));
    }
    let open = HISTORY.enter()?;
    let hub = app.hub.clone();
    let selection = Arc::new(apart(move || select(&*hub, ask)).await?.map_err(refusal)?);
    counted(&selection).await?;
    let older = match app.remote.as_ref().filter(|remote| remote.reads()) {
        Some(_) => {
            let (_turn, asked) = (OLDER.acquire().await, selection.ask.clone());
            tokio::task::spawn_blocking(move || older(&app, &asked)).await.ok().flatten()
        }
        None => None,
    };
    let form = form(&selection, older);
    Ok(stream(open, "application/json", told(Pieces::new(selection, form))).await)
}

/// Refuses an answer with too many values.
async fn counted(selection: &Arc<Selection>) -> Result<(), Response<Body>> {
    let mut count = Count::new(selection.clone(), MOST);
    loop {
        let some = move || {
            let begun = Instant::now();
            loop {
                match count.go_on() {
                    Ok(None) if begun.elapsed() < COUNTING => {}
                    known => return known.map(|known| (known, count)),
                }
            }
        };
        match apart(some).await?.map_err(refusal)? {
            (Some(()), _) => return Ok(()),
            (None, rest) => count = rest,
        }
    }
}

/// Text in pieces, as an answer is made of.
fn told(mut pieces: Pieces) -> impl FnMut() -> (String, bool) + Send + 'static {
    move || (pieces.next().unwrap_or_default(), !pieces.ended())
}

pub(super) async fn export(State(app): State<Arc<App>>, params: Params) -> Response<Body> {
    match file(app, params).await {
        Ok(answer) | Err(answer) => answer,
    }
}

/// An answer that a browser keeps under a name.
async fn file(app: Arc<App>, params: Params) -> Result<Response<Body>, Response<Body>> {
    let (ask, format) = ask(&params, app.hub.clock.wall()).map_err(refusal)?;
    let wrong = |why| refusal(Refused::Wrong(format!("format {why}")));
    let format = Format::of(format.as_deref().unwrap_or("csv")).map_err(wrong)?;
    let open = HISTORY.enter()?;
    let chosen = move || {
        let mut selection: Selection = select(&*app.hub, ask)?;
        let form = format.form(&mut selection)?;
        Ok(Pieces::new(selection, form))
    };
    let pieces = apart(chosen).await?.map_err(refusal)?;
    let (mime, name) = match format {
        Format::Csv => ("text/csv; charset=utf-8", "watchglass.csv"),
        Format::Json => ("application/x-ndjson", "watchglass.jsonl"),
        Format::OpenMetrics => (OPENMETRICS, "watchglass.txt"),
        Format::WandbJsonl => ("application/x-ndjson", "wandb-events.jsonl"),
    };
    let mut response = stream(open, mime, told(pieces)).await;
    let value = format!("attachment; filename=\"{name}\"").try_into().expect("our names are plain");
    response.headers_mut().insert::<HeaderName>(header::CONTENT_DISPOSITION, value);
    Ok(response)
}

/// Reads the parameters; the format comes beside the question.
fn ask(params: &Params, now: i64) -> Result<(Ask, Option<String>), Refused> {
    let mut ask = Ask { to: now, ..Ask::default() };
    let (mut from, mut format) = (None, None);
    let wrong = |key: &str, why: String| Refused::Wrong(format!("{key} {why}"));
    let instant = |key: &str, text: &str| when(text).map(|w| w.at(now)).map_err(|why| wrong(key, why));
    for (key, value) in params.all() {
        match key {
            "tag" => ask.tags.push(value.into()),
            "source" => ask.sources.push(value.into()),
            "from" => from = Some(instant(key, value)?),
            "to" => ask.to = instant(key, value)?,
            "step" => ask.step = Some(step(value).map_err(|why| wrong(key, why))?),
            "fn" if value == "rate" => ask.rate = true,
            "fn" => return Err(wrong(key, format!("is rate, the increase of counters per second, not {value:?}"))),
            "format" => format = Some(value.into()),
            other => {
                let known = "there are tag, source, from, to, step, fn and format";
                return Err(Refused::Wrong(format!("unknown parameter {other:?}; {known}")));
            }
        }
    }
    ask.from = from.unwrap_or(ask.to.saturating_sub(SPAN));
    Ok((ask, format))
}

/// A refusal as its status and sentence; what is too large also in numbers, for scripts.
fn refusal(refused: Refused) -> Response<Body> {
    match &refused {
        Refused::Wrong(_) => error(StatusCode::BAD_REQUEST, refused.to_string()),
        Refused::Unknown(_) => error(StatusCode::NOT_FOUND, refused.to_string()),
        Refused::Large { series, values, most, step } => {
            let numbers = serde_json::json!({
                "error": refused.to_string(), "series": series, "samples": values, "limit": most, "step": (step + 999) / 1000,
            });
            json(StatusCode::PAYLOAD_TOO_LARGE, &numbers)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_too_large_is_said_in_words_and_numbers() {
        let answer = refusal(Refused::Large { series: 1_200, values: 51_840_000, most: MOST, step: 16_000 });
        assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let body = axum::body::to_bytes(answer.into_body(), 4_096).await.expect("a body");
        let said: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        let numbers = (&said["series"], &said["samples"], &said["limit"], &said["step"]);
        assert_eq!(numbers, (&1_200.into(), &51_840_000.into(), &MOST.into(), &16.into()));
        assert!(said["error"].as_str().is_some_and(|text| text.contains("step=16s") && text.contains("source=")));
    }
}

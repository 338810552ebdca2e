//! `GET /api/v1/query` and `GET /api/v1/export`: stored samples, streamed.
//!
//! An answer holds no thread while it waits for its reader: each piece is made on the blocking pool when the one before
//! has gone. So a slow reader costs a few megabytes, and many of them cannot keep a page from its history.

use super::older::older;
use super::{App, error, json};
use crate::config::{step, when};
use crate::export::openmetrics::OPENMETRICS;
use crate::export::{Ask, Format, Pieces, Refused, Selection, query as answer, select};
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use std::sync::Arc;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The most values in one answer of `query`.
const MOST: i64 = 5_000_000;
/// Answers that are being read; each holds up to a few megabytes.
static OPEN: Semaphore = Semaphore::const_new(16);
/// Pieces that are made at once: half of the threads that read history.
static TURNS: Semaphore = Semaphore::const_new(4);
/// Questions to the server of remote write at once: it may take long, and each holds one of the threads.
static OLDER: Semaphore = Semaphore::const_new(2);
/// What `from` is without being given: this long before `to`, milliseconds.
const SPAN: i64 = 300_000;

type Params = Query<Vec<(String, String)>>;

pub(super) async fn query(State(app): State<Arc<App>>, Query(params): Params) -> Response<Body> {
    let selected = ask(&params, app.hub.clock.wall()).and_then(|(ask, format)| match format {
        Some(_) => Err(Refused::Wrong("query answers JSON; other formats are at api/v1/export".into())),
        None => select(&app.hub.store(), ask),
    });
    match selected.and_then(|selection| selection.limited(MOST).map(|()| selection)) {
        Ok(selection) => {
            let asked = selection.ask.clone();
            let older = match app.remote.as_ref().filter(|remote| remote.reads()) {
                Some(_) => {
                    let _turn = OLDER.acquire().await;
                    tokio::task::spawn_blocking(move || older(&app, &asked)).await.ok().flatten()
                }
                None => None,
            };
            let form = answer(&selection, older);
            stream(Pieces::new(selection, form), "application/json", None).await
        }
        Err(refused) => refusal(&refused),
    }
}

pub(super) async fn export(State(app): State<Arc<App>>, Query(params): Params) -> Response<Body> {
    let chosen = ask(&params, app.hub.clock.wall()).and_then(|(ask, format)| {
        let name = format.as_deref().unwrap_or("csv");
        let format = Format::of(name).map_err(|why| Refused::Wrong(format!("format {why}")))?;
        let mut selection: Selection = select(&app.hub.store(), ask)?;
        let form = format.form(&mut selection)?;
        Ok((format, Pieces::new(selection, form)))
    });
    let (format, pieces) = match chosen {
        Ok(chosen) => chosen,
        Err(refused) => return refusal(&refused),
    };
    let (mime, file) = match format {
        Format::Csv => ("text/csv; charset=utf-8", "watchglass.csv"),
        Format::Json => ("application/x-ndjson", "watchglass.jsonl"),
        Format::OpenMetrics => (OPENMETRICS, "watchglass.txt"),
        Format::WandbJsonl => ("application/x-ndjson", "wandb-events.jsonl"),
    };
    stream(pieces, mime, Some(file)).await
}

/// Reads the parameters; the format comes beside the question.
fn ask(params: &[(String, String)], now: i64) -> Result<(Ask, Option<String>), Refused> {
    let mut ask = Ask { to: now, ..Ask::default() };
    let (mut from, mut format) = (None, None);
    let wrong = |key: &str, why: String| Refused::Wrong(format!("{key} {why}"));
    let instant = |key: &str, text: &str| when(text).map(|w| w.at(now)).map_err(|why| wrong(key, why));
    for (key, value) in params {
        match key.as_str() {
            "tag" => ask.tags.push(value.clone()),
            "source" => ask.sources.push(value.clone()),
            "from" => from = Some(instant(key, value)?),
            "to" => ask.to = instant(key, value)?,
            "step" => ask.step = Some(step(value).map_err(|why| wrong(key, why))?),
            "fn" if value == "rate" => ask.rate = true,
            "fn" => return Err(wrong(key, format!("is rate, the increase of counters per second, not {value:?}"))),
            "format" => format = Some(value.clone()),
            other => {
                let known = "there are tag, source, from, to, step, fn and format";
                return Err(Refused::Wrong(format!("unknown parameter {other:?}; {known}")));
            }
        }
    }
    ask.from = from.unwrap_or(ask.to - SPAN);
    Ok((ask, format))
}

/// A refusal as its status and sentence; what is too large also in numbers, for scripts.
fn refusal(refused: &Refused) -> Response<Body> {
    match refused {
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

/// The next piece, made off the threads that serve the stream; the error is a panic, which the log has told of.
async fn next(mut pieces: Pieces) -> Result<(Option<String>, Pieces), std::io::Error> {
    let _turn = TURNS.acquire().await;
    let made = tokio::task::spawn_blocking(move || (pieces.next(), pieces));
    made.await.map_err(|_| std::io::Error::other("the answer broke off; the log says why"))
}

/// An answer of one piece with its length, a longer one in parts; `file` is the name under which a browser keeps it.
async fn stream(pieces: Pieces, mime: &'static str, file: Option<&str>) -> Response<Body> {
    let Ok(open) = OPEN.try_acquire() else {
        let sentence = "sixteen answers are being read; try again when one has ended";
        return error(StatusCode::TOO_MANY_REQUESTS, sentence);
    };
    let (first, pieces) = match next(pieces).await {
        Ok((first, pieces)) => (Bytes::from(first.unwrap_or_default()), pieces),
        Err(broken) => return error(StatusCode::INTERNAL_SERVER_ERROR, broken.to_string()),
    };
    let body = if pieces.ended() { Body::from(first) } else { parts(first, pieces, open) };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(mime));
    if let Some(file) = file {
        let value = format!("attachment; filename=\"{file}\"").try_into().expect("our names are plain");
        headers.insert::<HeaderName>(header::CONTENT_DISPOSITION, value);
    }
    response
}

fn parts(first: Bytes, pieces: Pieces, open: SemaphorePermit<'static>) -> Body {
    let state = (Some(first), Some(pieces), open);
    Body::from_stream(futures_util::stream::unfold(state, |(first, pieces, open)| async move {
        if let Some(first) = first {
            return Some((Ok(first), (None, pieces, open)));
        }
        match next(pieces?).await {
            Ok((Some(text), pieces)) => Some((Ok(Bytes::from(text)), (None, Some(pieces), open))),
            Ok((None, _)) => None,
            Err(broken) => Some((Err(broken), (None, None, open))),
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_too_large_is_said_in_words_and_numbers() {
        let answer = refusal(&Refused::Large { series: 1_200, values: 51_840_000, most: MOST, step: 16_000 });
        assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let body = axum::body::to_bytes(answer.into_body(), 4_096).await.expect("a body");
        let said: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        let numbers = (&said["series"], &said["samples"], &said["limit"], &said["step"]);
        assert_eq!(numbers, (&1_200.into(), &51_840_000.into(), &MOST.into(), &16.into()));
        assert!(said["error"].as_str().is_some_and(|text| text.contains("step=16s") && text.contains("source=")));
    }
}

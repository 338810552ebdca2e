//! `GET /api/v1/runs/{id}/report`: one run as a document, also when its samples have gone.

use super::answer::AnswerSlot;
use super::params::Params;
use super::{logs, seconds, unknown_run};
use crate::http::admit::Asker;
use crate::http::{App, Refusal, json};
use crate::report;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, Response, StatusCode, header};
use jobs::runs::{RunMark, RunSummary};
use serde_json::{Value, json as object};
use std::sync::Arc;

/// `?format=html` or `json`; HTML where nothing is said.
pub(in crate::http) async fn get(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response<Body>, Refusal> {
    let as_html = match params.last("format") {
        None | Some("html") => true,
        Some("json") => false,
        Some(other) => return Err(Refusal::bad(format!("format is html or json, not {other:?}"))),
    };
    let now = app.live.clock.wall();
    let span = asker.within(now, 0, now)?;
    let (slot, reader, theirs, wanted) = (app.answers.history.take()?, asker.reader(&app), app.clone(), id.clone());
    let summary = slot.blocking(move || theirs.runs.summary(&reader, &wanted, span)).await?;
    let Some(summary) = summary else { return Err(unknown_run(&id)) };
    // What it printed stands in the report of who may read it, and in no other.
    let printed = match logs::readable(&app, &asker, &summary.run).await {
        Some(readable) => Printed::of(&app, &slot, &summary, &readable).await,
        None => Printed::default(),
    };
    let made = move || match as_html {
        true => Ok(report::html(&summary, printed.words.as_deref(), &printed.lines)),
        false => Err(document(&summary, printed)),
    };
    match slot.blocking(made).await? {
        Err(document) => Ok(json(StatusCode::OK, &document)),
        Ok(html) => {
            let mut response = Response::new(Body::from(html));
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
            // Nothing in it asks for anything, and nothing in it acts.
            let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox");
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
            Ok(response)
        }
    }
}

/// What a run printed last, and the line that says best why it ended.
#[derive(Default)]
struct Printed {
    words: Option<String>,
    lines: Vec<(i64, String, String)>,
    rows: Vec<Value>,
}

impl Printed {
    async fn of(app: &Arc<App>, slot: &AnswerSlot, summary: &RunSummary, readable: &logs::Readable) -> Printed {
        let lines = logs::tail(app, slot, &summary.run, readable).await;
        Printed {
            words: logs::words_of(app, slot, &summary.run, readable).await,
            lines: lines.shown(readable),
            rows: lines.document(readable),
        }
    }
}

fn document(summary: &RunSummary, printed: Printed) -> Value {
    let curve = |curve: &jobs::runs::RunCurve| {
        let point = |(t, min, max, mean): &(i64, f64, f64, f64)| object!([seconds(*t), min, max, mean]);
        let points: Vec<Value> = curve.points.iter().map(point).collect();
        object!({ "tag": curve.tag, "series": curve.series, "columns": ["t", "min", "max", "mean"], "points": points })
    };
    let mut document = super::runs::run(&summary.run);
    if let Some(words) = printed.words {
        document["cause"]["line"] = words.into();
    }
    if let Some(fields) = document.as_object_mut() {
        let numbers = serde_json::to_value(&summary.numbers).unwrap_or_default();
        fields.extend(numbers.as_object().cloned().unwrap_or_default());
        fields.insert("step_seconds".into(), seconds(summary.step));
        fields.insert("made".into(), seconds(summary.made));
        if !printed.rows.is_empty() {
            fields.insert("logs".into(), printed.rows.into());
        }
        fields.insert("findings".into(), serde_json::to_value(&summary.findings).unwrap_or_default());
        fields.insert("markers".into(), summary.markers.iter().map(mark).collect());
        fields.insert("curves".into(), summary.curves.iter().map(curve).collect());
    }
    document
}

fn mark(mark: &RunMark) -> Value {
    let mut row = serde_json::to_value(mark).unwrap_or_default();
    row["t"] = seconds(mark.t);
    row
}

//! `GET /api/v1/runs/{id}/report`: one run as a document, even after its samples were deleted.

use super::answer::AnswerSlot;
use super::params::Params;
use super::{logs, unknown_run};
use crate::http::admit::Asker;
use crate::http::names::HiddenNames;
use crate::http::notes;
use crate::http::{App, Refusal, json};
use crate::report;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, Response, StatusCode, header};
use jobs::runs::{RunCurve, RunMark, RunSummary};
use serde::Serialize;
use serde::de::DeserializeOwned;
use shared::answer::logs::LogRow;
use shared::answer::runs::{ReportCurve, ReportMark, RunReport};
use shared::finding::Finding;
use shared::json::{Number, Seconds};
use std::sync::Arc;
use stream::names;

/// `?format=html` or `json`; HTML by default.
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
    let Some(mut summary) = summary else { return Err(unknown_run(&id)) };
    let is_nameless = HiddenNames::from_asker(&app, &asker).is_some_and(|names| names.hides_run(&summary.run));
    if is_nameless {
        summary.run.about.user = None;
        summary = nameless(&summary)?;
    }
    // Only accounts that may read the job's output get it in their report.
    let printed = match logs::readable(&app, &asker, &summary.run).await {
        Some(readable) => Printed::collect(&app, &slot, &summary, &readable).await,
        None => Printed::default(),
    };
    let mut notes = notes::of_run(&app, &asker, &summary.run.id).await;
    if is_nameless {
        notes = nameless(&notes)?;
    }
    let made = move || match as_html {
        true => Ok(report::html(&summary, printed.words.as_deref(), &printed.lines, &notes)),
        false => Err(Box::new(RunReport { notes, ..document(&summary, printed) })),
    };
    match slot.blocking(made).await? {
        Err(document) => Ok(json(StatusCode::OK, &document)),
        Ok(html) => {
            let mut response = Response::new(Body::from(html));
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
            // The document loads nothing and runs no script.
            let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox");
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
            Ok(response)
        }
    }
}

/// The same without names, as answers of JSON are; the document is made of it.
fn nameless<T: Serialize + DeserializeOwned>(of: &T) -> Result<T, Refusal> {
    let clean = || {
        let mut value = serde_json::to_value(of).ok()?;
        names::hide(&mut value, true, &|_| None);
        serde_json::from_value(value).ok()
    };
    let sentence = "the report could not be read to hide names; please report this bug";
    clean().ok_or_else(|| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, sentence))
}

/// The last output of a run, and the line that explains best why it ended.
#[derive(Default)]
struct Printed {
    words: Option<String>,
    lines: Vec<(i64, String, String)>,
    rows: Vec<LogRow>,
}

impl Printed {
    async fn collect(app: &Arc<App>, slot: &AnswerSlot, summary: &RunSummary, readable: &logs::Readable) -> Printed {
        let lines = logs::tail(app, slot, &summary.run, readable).await;
        Printed {
            words: logs::words_of(app, slot, &summary.run, readable).await,
            lines: lines.shown(readable),
            rows: lines.document(readable),
        }
    }
}

fn document(summary: &RunSummary, printed: Printed) -> RunReport {
    let curve = |curve: &RunCurve| ReportCurve {
        tag: curve.tag.clone(),
        series: curve.series,
        columns: ["t", "min", "max", "mean"].map(String::from),
        points: curve.points.iter().map(|(t, min, max, mean)| (Seconds(*t), *min, *max, *mean)).collect(),
    };
    let mut run = super::runs::run(&summary.run, summary.made);
    super::runs::fill_kept(&mut run, &summary.numbers);
    // The report has them in a section of their own.
    run.row.steps = None;
    if let Some(cause) = run.row.cause.as_mut() {
        cause.line = printed.words;
    }
    RunReport {
        run,
        step: summary.numbers.step,
        steps_per_second: summary.numbers.steps_per_second.map(Number),
        step_seconds: Seconds(summary.step),
        made: Seconds(summary.made),
        logs: printed.rows,
        findings: summary.findings.iter().cloned().map(Finding::into_answer).collect(),
        markers: summary.markers.iter().map(mark).collect(),
        notes: Vec::new(),
        curves: summary.curves.iter().map(curve).collect(),
    }
}

fn mark(mark: &RunMark) -> ReportMark {
    ReportMark {
        t: Seconds(mark.t),
        kind: mark.kind.clone(),
        text: mark.text.clone(),
        step: mark.step,
        rank: mark.rank,
        source: mark.source.clone(),
    }
}

//! `GET /api/v1/export`: every stored sample of a span as CSV, JSON lines or OpenMetrics, streamed.

use super::api::{Span, number, samples, seconds, span};
use super::{App, error, metrics};
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{Response, StatusCode, header};
use std::fmt::Write;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Sender, channel};

/// Exports at once. Each waits for its reader on a thread of the pool that queries need as well.
static SLOTS: Semaphore = Semaphore::const_new(4);

#[derive(Clone, Copy, PartialEq)]
enum Format {
    Csv,
    Json,
    OpenMetrics,
}

pub(super) async fn get(State(app): State<Arc<App>>, query: Query<Vec<(String, String)>>) -> Response<Body> {
    let span = match span(&app.hub, &query.0) {
        Ok(span) => span,
        Err(refused) => return *refused,
    };
    let (format, mime, file) = match span.format.as_deref() {
        None | Some("csv") => (Format::Csv, "text/csv; charset=utf-8", "watchglass.csv"),
        Some("json") => (Format::Json, "application/x-ndjson", "watchglass.jsonl"),
        Some("openmetrics") => (Format::OpenMetrics, metrics::OPENMETRICS, "watchglass.txt"),
        Some(other) => {
            return error(StatusCode::BAD_REQUEST, format!("format is csv, json or openmetrics, not {other:?}"));
        }
    };
    if span.step.is_some() {
        return error(StatusCode::BAD_REQUEST, "an export holds every sample; roll-ups are at api/v1/query?step=");
    }
    let Ok(slot) = SLOTS.try_acquire() else {
        return error(StatusCode::TOO_MANY_REQUESTS, "four exports are being read; try again when one has ended");
    };
    // Four pieces of a series each: the writer waits for the reader.
    let (pieces, mut ready) = channel::<Bytes>(4);
    tokio::task::spawn_blocking(move || {
        write(&app, span, format, &pieces);
        drop(slot);
    });
    let body = Body::from_stream(futures_util::stream::poll_fn(move |cx| {
        ready.poll_recv(cx).map(|piece| piece.map(Ok::<_, std::convert::Infallible>))
    }));
    Response::builder()
        .header(header::CONTENT_TYPE, mime)
        .header(header::CONTENT_DISPOSITION, format!("attachment; filename=\"{file}\""))
        .body(body)
        .expect("these headers are valid")
}

/// Writes series by series, so that memory holds one series at a time. Stops when the reader is gone.
fn write(app: &App, mut span: Span, format: Format, pieces: &Sender<Bytes>) {
    let catalog = app.hub.store().catalog().clone();
    let put = |text: String| pieces.blocking_send(text.into()).is_ok();
    if format == Format::Csv && !put("time,source,tag,value\n".into()) {
        return;
    }
    if format == Format::OpenMetrics {
        // A family's samples must stand together.
        span.asked.sort_by_key(|a| (a.metric, a.source, a.id));
    }
    let mut family = None;
    for asked in std::mem::take(&mut span.asked) {
        let one = Span { asked: vec![asked], step: None, format: None, ..span };
        let Ok(mut read) = samples(&app.hub, &one) else {
            tracing::warn!(tag = one.asked[0].tag, "a damaged column is left out of an export");
            continue;
        };
        let (asked, samples) = (&one.asked[0], read.remove(0));
        let mut text = String::with_capacity(samples.len() * 48);
        if format == Format::OpenMetrics && family != Some(asked.metric) && !samples.is_empty() {
            family = Some(asked.metric);
            metrics::head(&mut text, &catalog.metrics[usize::from(asked.metric)], true);
        }
        let (source, tag) = (cell(&asked.host), cell(&asked.tag));
        for (t, v) in samples {
            match format {
                Format::Csv => {
                    let _ = writeln!(text, "{},{source},{tag},{}", seconds(t), number(v));
                }
                Format::Json => {
                    let line = serde_json::json!({ "t": seconds(t), "source": asked.host, "tag": asked.tag, "value": number(v) });
                    let _ = writeln!(text, "{line}");
                }
                Format::OpenMetrics => {
                    let metric = &catalog.metrics[usize::from(asked.metric)];
                    metrics::sample(&mut text, metric, &asked.host, &asked.instance, v, Some(t));
                }
            }
            if text.len() > 256 * 1024 && !put(std::mem::take(&mut text)) {
                return;
            }
        }
        if !text.is_empty() && !put(text) {
            return;
        }
    }
    if format == Format::OpenMetrics {
        put("# EOF\n".into());
    }
}

/// A text as a CSV cell: quoted where needed, and never read as a formula by a spreadsheet.
fn cell(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if formula { format!("'{text}") } else { text.to_string() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn cells_are_quoted_and_never_formulas() {
        assert_eq!(cell("disk./a,b.usageGB"), "\"disk./a,b.usageGB\"");
        assert_eq!(cell("say \"hi\", then"), "\"say \"\"hi\"\", then\"");
        assert_eq!(cell("=1+1"), "'=1+1");
    }
}

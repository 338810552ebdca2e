//! `GET /api/v1/*`: the table, the machines, the series and their samples, as JSON.

use super::{App, error, json};
use crate::live::Hub;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{Response, StatusCode, Uri};
use serde_json::{Value, json as object};
use shared::catalog::{Range, glob, labels};
use shared::rollup::roll;
use shared::series::SeriesId;
use shared::unit::Unit;
use shared::wire::SourceId;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The most samples in one answer.
const MOST: i64 = 5_000_000;
/// Queries answered at once; further ones wait. Each may hold its samples and their text.
static TURNS: Semaphore = Semaphore::const_new(4);
/// What `from` is without being given: this long before `to`, milliseconds.
const SPAN: i64 = 300_000;

/// A number as JSON: integers without a fraction; absent is for the caller to leave out.
pub(super) fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { Value::from(value as i64) } else { Value::from(value) }
}

/// Milliseconds as Unix seconds with at most three decimals.
pub(super) fn seconds(ms: i64) -> Value {
    if ms % 1000 == 0 { Value::from(ms / 1000) } else { Value::from(ms as f64 / 1000.0) }
}

fn ok(value: &Value) -> Response<Body> {
    json(StatusCode::OK, value)
}

pub(super) async fn unknown(uri: Uri) -> Response<Body> {
    error(
        StatusCode::NOT_FOUND,
        format!(
            "there is no {}; there are api/v1/catalog, sources, series, query, export, processes, doctor and live",
            uri.path()
        ),
    )
}

fn range(range: Range) -> Value {
    match range {
        Range::Fixed(from, to) => object!([from, to]),
        Range::FromZero => object!("from_zero"),
        Range::Fit => object!("fit"),
    }
}

pub(super) async fn catalog(State(app): State<Arc<App>>) -> Response<Body> {
    let catalog = app.hub.store().catalog().clone();
    let section = |chart: &str| catalog.layout.charts.iter().find(|c| c.id == chart).map(|c| c.section.as_str());
    let metrics: Vec<Value> = catalog
        .metrics
        .iter()
        .map(|m| {
            object!({
                "tag": m.tag, "aliases": m.aliases, "title": m.title, "help": m.help, "unit": m.unit.name(),
                "kind": m.kind, "range": range(m.range), "chart": m.chart, "section": section(&m.chart),
            })
        })
        .collect();
    ok(&object!({ "metrics": metrics }))
}

/// `?at=TIME`: the largest users of CPU and memory at that time; without it the newest table, whole.
pub(super) async fn processes(State(app): State<Arc<App>>, query: Query<Vec<(String, String)>>) -> Response<Body> {
    let mut at = None;
    for (key, value) in &query.0 {
        match (key.as_str(), time(key, value)) {
            ("at", Ok(t)) => at = Some(t),
            ("at", Err(sentence)) => return error(StatusCode::BAD_REQUEST, sentence),
            (other, _) => {
                return error(StatusCode::BAD_REQUEST, format!("unknown parameter {other:?}; there is at=TIME"));
            }
        }
    }
    let Some(table) = app.processes(at) else {
        return error(
            StatusCode::SERVICE_UNAVAILABLE,
            "there is no process table yet; the first comes within seconds, if this system has one",
        );
    };
    let rows: Vec<Value> = table
        .rows
        .iter()
        .map(|p| {
            object!({
                "pid": p.pid, "parent": p.parent, "user": p.user, "name": p.name, "cpu": p.cpu, "rss": p.rss,
                "threads": p.threads, "watched": p.watched, "read": p.read, "written": p.written,
                "container": Some(&p.container).filter(|c| !c.is_empty()), "gpu_memory": p.gpu_memory, "gpu_share": p.gpu_share,
            })
        })
        .map(|mut row| {
            // What could not be read is left out.
            row.as_object_mut().expect("made above").retain(|_, value| !value.is_null());
            row
        })
        .collect();
    ok(&object!({ "t": seconds(table.t), "total": table.total, "whole": table.whole, "processes": rows }))
}

pub(super) async fn sources(State(app): State<Arc<App>>) -> Response<Body> {
    let store = app.hub.store();
    let sources: Vec<Value> = store
        .sources()
        .into_iter()
        .map(|s| {
            let facts: serde_json::Map<String, Value> = s.facts.into_iter().map(|(k, v)| (k, Value::from(v))).collect();
            let last = store.newest(s.id).map(|(t, _)| seconds(t));
            object!({ "id": s.id, "name": s.name, "interval": seconds(s.interval), "facts": facts, "last": last })
        })
        .collect();
    drop(store);
    ok(&object!({ "sources": sources }))
}

pub(super) async fn doctor(State(app): State<Arc<App>>) -> Response<Body> {
    let store = app.hub.store();
    let checks: Vec<_> = store.sources().iter().flat_map(|s| store.checks(s.id).0.to_vec()).collect();
    drop(store);
    ok(&object!({ "checks": crate::doctor::complete(checks) }))
}

/// A series that a request asked for.
pub(super) struct Asked {
    pub source: SourceId,
    pub host: String,
    pub id: SeriesId,
    pub tag: String,
    pub instance: String,
    pub metric: u16,
    pub unit: Unit,
}

/// Series of all sources that fit a tag in any spelling, or a pattern with `*`.
pub(super) fn asked(hub: &Hub, pattern: &str) -> Result<Vec<Asked>, shared::catalog::TagError> {
    let store = hub.store();
    let catalog = store.catalog().clone();
    let exact = if pattern.contains('*') { None } else { Some(catalog.find(pattern)?) };
    let mut all = Vec::new();
    for source in store.sources() {
        for (id, def) in store.series(source.id, 0).iter().enumerate() {
            let Some(metric) = catalog.metric(def) else { continue };
            let tag = catalog.tag(def);
            let fits = match &exact {
                // No source here has a label yet, so a labelled tag means none of them.
                Some(f) => f.label.is_none() && f.metric == def.metric && f.instance == def.instance,
                None => glob(pattern, &tag),
            };
            if fits {
                all.push(Asked {
                    source: source.id,
                    host: source.name.clone(),
                    id: id as SeriesId,
                    tag,
                    instance: def.instance.clone(),
                    metric: def.metric,
                    unit: metric.unit,
                });
            }
        }
    }
    Ok(all)
}

pub(super) async fn series(State(app): State<Arc<App>>, query: Query<Vec<(String, String)>>) -> Response<Body> {
    let mut patterns = Vec::new();
    for (key, value) in &query.0 {
        match key.as_str() {
            "match" => patterns.push(value.as_str()),
            other => {
                return error(StatusCode::BAD_REQUEST, format!("unknown parameter {other:?}; there is match=PATTERN"));
            }
        }
    }
    if patterns.is_empty() {
        patterns.push("*");
    }
    let mut series = Vec::new();
    for pattern in patterns {
        let found = match asked(&app.hub, pattern) {
            Ok(found) => found,
            Err(unknown) => return error(StatusCode::NOT_FOUND, unknown.to_string()),
        };
        let store = app.hub.store();
        let catalog = store.catalog().clone();
        series.extend(found.iter().map(|a| {
            let metric = &catalog.metrics[usize::from(a.metric)];
            let span = store.span(a.source, a.id);
            let labels: BTreeMap<_, _> = labels(&a.instance).into_iter().collect();
            object!({
                "tag": a.tag, "source": a.host, "metric": metric.tag, "labels": labels, "unit": a.unit.name(), "kind": metric.kind,
                "first": span.map(|s| seconds(s.0)), "last": span.map(|s| seconds(s.1)),
            })
        }));
    }
    ok(&object!({ "series": series }))
}

/// Tags, span and step of a query or an export.
pub(super) struct Span {
    pub asked: Vec<Asked>,
    pub from: i64,
    pub to: i64,
    pub step: Option<i64>,
    pub format: Option<String>,
}

fn time(key: &str, text: &str) -> Result<i64, String> {
    match text.parse::<f64>() {
        Ok(s) if s.is_finite() && s.abs() < 1e12 => Ok((s * 1000.0).round() as i64),
        _ => Err(format!("{key} is a time in Unix seconds, such as 1700000000 or 1700000000.5, not {text:?}")),
    }
}

fn step(text: &str) -> Result<i64, String> {
    let units = [("ms", 1.0), ("s", 1_000.0), ("m", 60_000.0), ("h", 3_600_000.0)];
    let (digits, factor) =
        units.iter().find_map(|&(unit, f)| Some((text.strip_suffix(unit)?, f))).unwrap_or((text, 1_000.0));
    match digits.parse::<f64>() {
        Ok(n) if n.is_finite() && n * factor >= 1.0 && n * factor < 1e12 => Ok((n * factor) as i64),
        _ => Err(format!("step is a duration above zero, such as 10s, 500ms or 5m, not {text:?}")),
    }
}

/// Reads the parameters of a query.
pub(super) fn span(hub: &Hub, query: &[(String, String)]) -> Result<Span, Box<Response<Body>>> {
    let bad = |sentence: String| Box::new(error(StatusCode::BAD_REQUEST, sentence));
    let mut span = Span { asked: Vec::new(), from: i64::MIN, to: hub.clock.wall(), step: None, format: None };
    let mut tags = 0;
    for (key, value) in query {
        match key.as_str() {
            "tag" => {
                tags += 1;
                let found = asked(hub, value).map_err(|e| Box::new(error(StatusCode::NOT_FOUND, e.to_string())))?;
                for one in found {
                    if !span.asked.iter().any(|a| (a.source, a.id) == (one.source, one.id)) {
                        span.asked.push(one);
                    }
                }
            }
            "from" => span.from = time(key, value).map_err(bad)?,
            "to" => span.to = time(key, value).map_err(bad)?,
            "step" => span.step = Some(step(value).map_err(bad)?),
            "format" => span.format = Some(value.clone()),
            other => {
                return Err(bad(format!("unknown parameter {other:?}; there are tag, from, to, step and format")));
            }
        }
    }
    if tags == 0 {
        return Err(bad("say which: ?tag=TAG, in any spelling, repeated, or with * for any text".into()));
    }
    if span.from == i64::MIN {
        span.from = span.to - SPAN;
    }
    if span.from > span.to {
        return Err(bad("from is later than to".into()));
    }
    let store = hub.store();
    let interval = store.sources().iter().map(|s| s.interval).min().unwrap_or(1_000).max(1);
    drop(store);
    let ticks = ((span.to - span.from).min(hub.retention) / interval).max(1);
    if ticks * span.asked.len() as i64 > MOST {
        return Err(Box::new(error(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!(
                "{} series over {ticks} ticks are more than {MOST} samples; ask for fewer tags or a shorter span",
                span.asked.len(),
            ),
        )));
    }
    Ok(span)
}

/// Samples of each asked series, in the order asked.
pub(super) fn samples(hub: &Hub, span: &Span) -> Result<Vec<Vec<(i64, f64)>>, shared::column::Damaged> {
    let mut all = vec![Vec::new(); span.asked.len()];
    let mut sources: Vec<SourceId> = span.asked.iter().map(|a| a.source).collect();
    sources.sort_unstable();
    sources.dedup();
    for source in sources {
        let of_source: Vec<usize> = (0..span.asked.len()).filter(|&i| span.asked[i].source == source).collect();
        let ids: Vec<SeriesId> = of_source.iter().map(|&i| span.asked[i].id).collect();
        let snapshot = hub.store().snapshot(source, span.from, span.to);
        if let Some(snapshot) = snapshot {
            for (i, samples) in of_source.into_iter().zip(snapshot.samples(&ids)?) {
                all[i] = samples;
            }
        }
    }
    Ok(all)
}

/// `,"name":[item,item]`
fn list<T>(text: &mut String, name: &str, items: &[T], mut item: impl FnMut(&mut String, &T)) {
    let _ = write!(text, ",\"{name}\":[");
    for (i, one) in items.iter().enumerate() {
        if i > 0 {
            text.push(',');
        }
        item(text, one);
    }
    text.push(']');
}

pub(super) async fn query(State(app): State<Arc<App>>, query: Query<Vec<(String, String)>>) -> Response<Body> {
    let span = match span(&app.hub, &query.0) {
        Ok(span) => span,
        Err(refused) => return *refused,
    };
    if span.format.is_some() {
        return error(StatusCode::BAD_REQUEST, "query answers JSON; other formats are at api/v1/export");
    }
    let _turn = TURNS.acquire().await;
    // Decoding 12 hours takes milliseconds of CPU: not on the threads that serve the stream.
    let answered = tokio::task::spawn_blocking(move || {
        let samples = samples(&app.hub, &span)?;
        let catalog = app.hub.store().catalog().clone();
        // Text, not a tree of values: a point of a tree takes ten times the memory.
        let mut text = format!("{{\"from\":{},\"to\":{},\"series\":[", seconds(span.from), seconds(span.to));
        let mut first = true;
        for (a, samples) in span.asked.iter().zip(samples).filter(|(_, samples)| !samples.is_empty()) {
            if !std::mem::take(&mut first) {
                text.push(',');
            }
            let kind = catalog.metrics[usize::from(a.metric)].kind;
            let about = object!({ "tag": a.tag, "source": a.host, "unit": a.unit.name(), "kind": kind }).to_string();
            text.push_str(about.trim_end_matches('}'));
            match span.step {
                None => list(&mut text, "points", &samples, |text, (t, v)| {
                    let _ = write!(text, "[{},{}]", seconds(*t), number(*v));
                }),
                Some(step) => list(&mut text, "buckets", &roll(samples, step), |text, b| {
                    let _ = write!(
                        text,
                        "{{\"t\":{},\"min\":{},\"max\":{},\"mean\":{},\"last\":{},\"count\":{}}}",
                        seconds(b.t),
                        number(b.min),
                        number(b.max),
                        number(b.mean),
                        number(b.last),
                        b.count
                    );
                }),
            }
            text.push('}');
        }
        text.push_str("]}");
        Ok::<_, shared::column::Damaged>(text)
    });
    match answered.await {
        Ok(Ok(text)) => super::json_text(StatusCode::OK, text),
        Ok(Err(damaged)) => error(StatusCode::INTERNAL_SERVER_ERROR, format!("{damaged}; ask for a span without it")),
        Err(_) => error(StatusCode::INTERNAL_SERVER_ERROR, "the query failed; the log says why"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_same_digits_everywhere() {
        assert_eq!(seconds(1_700_000_000_000).to_string(), "1700000000");
        assert_eq!(seconds(1_700_000_000_120).to_string(), "1700000000.12");
        assert_eq!(time("from", "1700000000.12"), Ok(1_700_000_000_120));
        assert!(time("from", "yesterday").unwrap_err().contains("Unix seconds"));
    }

    #[test]
    fn steps_are_durations() {
        assert_eq!(step("10"), Ok(10_000));
        assert_eq!(step("10s"), Ok(10_000));
        assert_eq!(step("500ms"), Ok(500));
        assert_eq!(step("5m"), Ok(300_000));
        assert!(step("10d").is_err() && step("10xs").is_err());
        assert!(step("0").is_err() && step("-3s").is_err() && step("").is_err());
    }

    #[test]
    fn numbers_lose_nothing() {
        assert_eq!(number(12.0).to_string(), "12");
        assert_eq!(number(0.1).to_string(), "0.1");
        assert_eq!(number(9_007_199_254_740_993e3).as_f64(), Some(9_007_199_254_740_993e3));
    }
}

//! `GET /api/v1/*`: the table, the machines, the series and how things stand, as JSON.

use super::{App, error, json};
use crate::config::when;
use crate::export::fitting;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{Response, StatusCode, Uri};
use serde_json::{Value, json as object};
use shared::catalog::{Range, labels, prometheus};
use std::collections::BTreeMap;
use std::sync::Arc;

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
        match (key.as_str(), when(value)) {
            ("at", Ok(t)) => at = Some(t.at(app.hub.clock.wall())),
            ("at", Err(why)) => return error(StatusCode::BAD_REQUEST, format!("at {why}")),
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

/// Every family of every source once, with the source's name.
pub(super) async fn doctor(State(app): State<Arc<App>>) -> Response<Body> {
    let store = app.hub.store();
    let all: Vec<_> = store.sources().into_iter().map(|s| (s.name, store.checks(s.id).0.to_vec())).collect();
    drop(store);
    let mut checks = Vec::new();
    for (source, own) in all {
        for check in crate::doctor::complete(own) {
            let mut check = serde_json::to_value(check).expect("a check is text and lists of it");
            check["source"] = Value::from(source.as_str());
            checks.push(check);
        }
    }
    ok(&object!({ "checks": checks }))
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
        let store = app.hub.store();
        let found = fitting(&store, pattern);
        let catalog = store.catalog().clone();
        drop(store);
        let found = match found {
            Ok(found) => found,
            Err(unknown) => return error(StatusCode::NOT_FOUND, unknown.to_string()),
        };
        series.extend(found.iter().map(|one| {
            let metric = &catalog.metrics[usize::from(one.def.metric)];
            let mut labels: BTreeMap<_, _> = labels(&one.def.instance).into_iter().collect();
            let own = prometheus::labels(metric, &one.def.instance);
            if let Some((_, number)) = own.iter().find(|(name, _)| name == "gpu") {
                labels.extend(super::gpus::labels(&app, one.source, number));
            }
            object!({
                "tag": one.tag, "source": *one.host, "metric": metric.tag, "labels": labels, "unit": metric.unit.name(),
                "kind": metric.kind, "first": seconds(one.span.0), "last": seconds(one.span.1),
            })
        }));
    }
    ok(&object!({ "series": series }))
}

//! `GET /api/v1/series`: the series that fit, each once, streamed in the order of machines.

use super::answer::{HISTORY, listed, stream};
use super::api::seconds;
use super::params::Params;
use super::{App, error, gpus};
use crate::export::{Look, Patterns, Place, Wanted};
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use serde_json::{Value, json as object};
use shared::catalog::{Catalog, labels, prometheus};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) async fn get(State(app): State<Arc<App>>, params: Params) -> Response<Body> {
    let mut texts = Vec::new();
    for (key, value) in params.all() {
        match key {
            "match" => texts.push(value),
            other => return Params::unknown(other, "there is match=PATTERN"),
        }
    }
    if texts.is_empty() {
        texts.push("*");
    }
    let (catalog, sources) = app.hub.look(|store| (store.catalog().clone(), store.sources()));
    let patterns = match Patterns::new(&catalog, texts) {
        Ok(patterns) => patterns,
        Err(unknown) => return error(StatusCode::NOT_FOUND, unknown.to_string()),
    };
    let open = match HISTORY.enter() {
        Ok(open) => open,
        Err(full) => return full.into(),
    };
    let mut place = Place::new(sources);
    let items = move || {
        let found = place.next(&*app.hub, &catalog, &patterns)?;
        Some(found.iter().map(|(_, one)| series(&app, &catalog, one)).collect())
    };
    stream(open, "application/json", listed("{\"series\":[".into(), items)).await
}

fn series(app: &App, catalog: &Catalog, one: &Wanted) -> Value {
    let metric = &catalog.metrics[usize::from(one.def.metric)];
    let mut labels: BTreeMap<_, _> = labels(&one.def.instance).into_iter().collect();
    let own = prometheus::labels(metric, &one.def.instance);
    if let Some((_, number)) = own.iter().find(|(name, _)| name == "gpu") {
        labels.extend(gpus::labels(app, one.source, number));
    }
    object!({
        "tag": one.tag, "source": *one.host, "metric": metric.tag, "labels": labels, "unit": metric.unit.name(),
        "kind": metric.kind, "first": seconds(one.span.0), "last": seconds(one.span.1),
    })
}

//! `GET /api/v1/series`: the matching series, each once, streamed in the order of machines.

use super::answer::{listed, stream};
use super::gpus;
use super::params::Params;
use crate::export::{Patterns, Search, Wanted};
use crate::http::admit::Asker;
use crate::http::{App, Refusal};
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use shared::answer::series::{SeriesList, SeriesRow};
use shared::catalog::{Catalog, labels, prometheus};
use shared::json::Seconds;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(in crate::http) async fn get(
    State(app): State<Arc<App>>,
    asker: Asker,
    params: Params,
) -> Result<Response<Body>, Refusal> {
    let mut texts: Vec<&str> = params.each("match").collect();
    if texts.is_empty() {
        texts.push("*");
    }
    let reader = asker.reader(&app);
    let catalog = reader.catalog();
    let sources = reader.sources();
    let patterns = Patterns::new(&catalog, texts);
    let patterns = patterns.map_err(|unknown| Refusal::new(StatusCode::NOT_FOUND, unknown.to_string()))?;
    let slot = app.answers.history.take()?;
    let mut search = Search::new(sources);
    let items = move || {
        let found = search.next(&reader, &catalog, &patterns)?;
        Some(found.iter().map(|(_, one)| series(&app, &catalog, one)).collect())
    };
    Ok(stream(slot, "application/json", listed(&SeriesList::default(), items)).await)
}

fn series(app: &App, catalog: &Catalog, one: &Wanted) -> SeriesRow {
    let metric = &catalog.metrics[usize::from(one.def.metric)];
    let mut labels: BTreeMap<_, _> = labels(&one.def.instance).into_iter().collect();
    let own = prometheus::labels(metric, &one.def.instance);
    if let Some((_, number)) = own.iter().find(|(name, _)| name == "gpu") {
        labels.extend(gpus::labels(app, one.source, number));
    }
    SeriesRow {
        tag: one.tag.clone(),
        source: one.host.to_string(),
        metric: metric.tag.clone(),
        labels: labels.into_iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        unit: metric.unit,
        kind: metric.kind,
        first: Seconds(one.span.0),
        last: Seconds(one.span.1),
    }
}

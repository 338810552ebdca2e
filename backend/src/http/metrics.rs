//! `GET /metrics`: every current value, and our own health, for Prometheus. Names and labels are those of
//! [`shared::catalog::prometheus`]; the text format 0.0.4, or OpenMetrics where the caller accepts it.

use super::App;
use crate::export::openmetrics::{Exposed, Families, OPENMETRICS, PROMETHEUS};
use crate::export::text::number;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response, header};
use shared::catalog::Catalog;
use shared::series::SeriesDef;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(super) async fn get(State(app): State<Arc<App>>, headers: HeaderMap) -> Response<Body> {
    let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or("");
    let open = accept.contains("application/openmetrics-text");
    let mut text = String::with_capacity(64 * 1024);
    let (catalog, current) = current(&app);
    values(&catalog, &current, &mut text, open);
    health(&app, &mut text, open);
    if open {
        text.push_str("# EOF\n");
    }
    Response::builder()
        .header(header::CONTENT_TYPE, if open { OPENMETRICS } else { PROMETHEUS })
        .body(Body::from(text))
        .expect("these headers are valid")
}

/// A series' current value: source, series, value.
type Current = (Arc<str>, SeriesDef, f64);

/// Values of the newest tick of every source.
fn current(app: &App) -> (Arc<Catalog>, Vec<Current>) {
    let store = app.hub.store();
    let catalog = store.catalog().clone();
    let mut all = Vec::new();
    for source in store.sources() {
        let (host, Some((_, values))) = (Arc::<str>::from(source.name), store.newest(source.id)) else { continue };
        let present = store.series(source.id, 0).iter().zip(values).filter(|(_, v)| v.is_finite());
        all.extend(present.map(|(def, v)| (host.clone(), def.clone(), v)));
    }
    (catalog, all)
}

/// Family by family, in the order of their names: a family's samples must stand together.
fn values(catalog: &Catalog, current: &[Current], text: &mut String, open: bool) {
    let mut exposed: Vec<(Exposed<'_>, &Current)> =
        current.iter().map(|one| (Exposed::of(catalog, &one.1), one)).collect();
    exposed.sort_by(|(a, _), (b, _)| a.family.name.cmp(&b.family.name));
    let mut families = Families::default();
    exposed.iter().for_each(|(series, _)| families.add(series));
    let mut family = "";
    for (series, (host, _, v)) in &exposed {
        if family != series.family.name {
            family = &series.family.name;
            families.head(text, series, open);
        }
        text.push_str(&series.key(host));
        text.push(' ');
        number(text, series.family.value(*v));
        text.push('\n');
    }
}

fn health(app: &App, text: &mut String, open: bool) {
    let (kept, live) = (app.hub.store().counts(), &app.hub.counts);
    let rows = [
        ("ticks", "counter", "Ticks appended to the store.", kept.ticks),
        ("samples", "counter", "Samples appended to the store.", kept.samples),
        ("stored_bytes", "gauge", "Bytes of sealed columns in memory.", kept.chunk_bytes as u64),
        ("stored_samples", "gauge", "Samples in sealed columns in memory.", kept.chunk_samples),
        ("chunks_dropped", "counter", "Chunks dropped before their time because memory was full.", kept.chunks_dropped),
        ("viewers", "gauge", "Pages and scripts connected now.", live.viewers.load(Ordering::Relaxed)),
        ("live_bytes", "counter", "Bytes sent to pages and scripts.", live.bytes.load(Ordering::Relaxed)),
        ("live_resyncs", "counter", "Times everything was sent anew.", live.resyncs.load(Ordering::Relaxed)),
        (
            "live_held_back",
            "counter",
            "Times ticks were held back for a slow page.",
            live.held_back.load(Ordering::Relaxed),
        ),
    ];
    let remote = app.remote.iter().flat_map(|remote| remote.figures());
    for (name, kind, help, value) in rows.into_iter().chain(remote) {
        let total = if kind == "counter" { "_total" } else { "" };
        let declared = if open { "" } else { total };
        let _ = writeln!(text, "# HELP watchglass_self_{name}{declared} {help}");
        let _ = writeln!(text, "# TYPE watchglass_self_{name}{declared} {kind}");
        let _ = writeln!(text, "watchglass_self_{name}{total} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::catalog::prometheus::Names;

    #[test]
    fn every_row_that_a_collector_names_has_a_name_of_its_own() {
        let catalog = collectors::catalog();
        let names = Names::new(&catalog);
        let mut seen = std::collections::HashMap::new();
        for (metric, row) in catalog.metrics.iter().enumerate() {
            let name = &names.family(metric as u16).expect("a row").name;
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'), "{name}");
            if let Some(other) = seen.insert(name.clone(), &row.tag) {
                panic!("{} and {other} are both {name}", row.tag);
            }
        }
    }

    #[test]
    fn a_family_stands_together_whoever_it_is_from() {
        let mut catalog = collectors::catalog();
        let sample = shared::catalog::Metric::from(&shared::catalog::openmetrics::SAMPLE);
        let first = catalog.metrics.len() as u16;
        for endpoint in ["a-b", "a_b"] {
            let mut metric = sample.clone();
            metric.tag = metric.tag.replace("{sample}", &format!("{endpoint}.load1{{labels}}"));
            catalog.metrics.push(metric);
        }
        let one = |host: &str, metric, v| (Arc::<str>::from(host), SeriesDef { metric, instance: String::new() }, v);
        let current = [one("x", first, 1.0), one("x", first + 1, 2.0), one("y", first, 3.0)];
        let mut text = String::new();
        values(&catalog, &current, &mut text, false);
        assert_eq!(text.matches("# TYPE load1 gauge").count(), 1);
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [("x", "a-b", 1), ("x", "a_b", 2), ("y", "a-b", 3)];
        let expected = expected.map(|(s, e, v)| format!("load1{{source=\"{s}\",endpoint=\"{e}\"}} {v}"));
        assert_eq!(lines, expected);
    }
}

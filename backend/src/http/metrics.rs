//! `GET /metrics`: every current value, and our own health, for Prometheus. Names and labels are those of
//! [`shared::catalog::prometheus`]; the text format 0.0.4, or OpenMetrics where the caller accepts it.

use super::{App, error, health::health};
use crate::export::openmetrics::{Exposed, Families, OPENMETRICS, PROMETHEUS};
use crate::export::text::number;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode, header};
use shared::catalog::Catalog;
use shared::series::{SeriesDef, SeriesId};
use std::sync::Arc;

pub(super) async fn get(State(app): State<Arc<App>>, headers: HeaderMap) -> Response<Body> {
    let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or("");
    let open = accept.contains("application/openmetrics-text");
    // Reading what slow series had last may take milliseconds.
    let page = tokio::task::spawn_blocking(move || {
        let mut text = String::with_capacity(64 * 1024);
        let (catalog, current) = current(&app);
        values(&catalog, &current, &mut text, open);
        super::gpus::rows(&app, &mut text);
        health(&app, &mut text, open);
        if open {
            text.push_str("# EOF\n");
        }
        text
    });
    let Ok(text) = page.await else {
        return error(StatusCode::INTERNAL_SERVER_ERROR, "the page could not be written; the log says why");
    };
    Response::builder()
        .header(header::CONTENT_TYPE, if open { OPENMETRICS } else { PROMETHEUS })
        .body(Body::from(text))
        .expect("these headers are valid")
}

/// A series' current value: source, series, value.
type Current = (Arc<str>, SeriesDef, f64);

/// How far back the newest sample of a slow series may lie, milliseconds: as far as Prometheus itself looks.
const BACK: i64 = 300_000;
/// By how much a source's newest tick may be late, or ahead of a clock that was set back, beyond two of its intervals, milliseconds.
const SLACK: i64 = 5_000;

/// Current values of every source. A value is current until two intervals of its series have gone by; a series that is
/// read less often than there are ticks keeps its value in between.
fn current(app: &App) -> (Arc<Catalog>, Vec<Current>) {
    let (mut all, mut slow) = (Vec::new(), Vec::new());
    let now = app.hub.clock.wall();
    let store = app.hub.store();
    let catalog = store.catalog().clone();
    for source in store.sources() {
        let Some((t, values)) = store.newest(source.id).filter(|(t, _)| (now - t).abs() <= 2 * source.interval + SLACK)
        else {
            continue;
        };
        let host = Arc::<str>::from(source.name);
        let (mut ids, mut defs) = (Vec::new(), Vec::new());
        for (id, (def, &v)) in store.series(source.id, 0).iter().zip(&values).enumerate() {
            if v.is_finite() {
                all.push((host.clone(), def.clone(), v));
            } else if store.span(source.id, id as SeriesId).is_some_and(|(_, last)| last >= t - BACK) {
                ids.push(id as SeriesId);
                defs.push(def.clone());
            }
        }
        let snapshot = if ids.is_empty() { None } else { store.snapshot(source.id, t - BACK, t) };
        slow.extend(snapshot.map(|snapshot| (host, t, ids, defs, snapshot)));
    }
    drop(store);
    for (host, t, ids, defs, snapshot) in slow {
        for (def, samples) in defs.into_iter().zip(snapshot.samples(&ids)) {
            all.extend(still(&samples, t).map(|v| (host.clone(), def, v)));
        }
    }
    (catalog, all)
}

/// The last of these values, when two intervals between them have not gone by.
fn still(samples: &[(i64, f64)], now: i64) -> Option<f64> {
    let [.., (before, _), (last, value)] = samples else { return None };
    (now - last <= 2 * (last - before)).then_some(*value)
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
    fn a_slow_series_keeps_its_value_for_two_of_its_intervals() {
        let slow = [(0, 1.0), (15_000, 2.0)];
        assert_eq!(still(&slow, 45_000), Some(2.0));
        assert_eq!(still(&slow, 45_001), None);
        assert_eq!(still(&slow[..1], 1), None, "nobody knows when the next is due");
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

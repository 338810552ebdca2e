//! `GET /metrics`: every current value, and our own health, for Prometheus. Names and labels are those of
//! [`shared::catalog::prometheus`]; the text format 0.0.4, or OpenMetrics where the caller accepts it.

mod current;
mod exposition;
mod findings;
mod runs;

use super::answer::stream;
use super::health::health;
use crate::export::openmetrics::{OPENMETRICS, PROMETHEUS};
use crate::http::admit::Asker;
use crate::http::{App, Refusal};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response, header};
use current::Gathering;
use exposition::Exposition;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(in crate::http) async fn get(
    State(app): State<Arc<App>>,
    asker: Asker,
    headers: HeaderMap,
) -> Result<Response<Body>, Refusal> {
    let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or("");
    let open = accept.contains("application/openmetrics-text");
    let slot = app.answers.metrics.take()?;
    Ok(stream(slot, if open { OPENMETRICS } else { PROMETHEUS }, page(app, asker, open)).await)
}

/// Time after which the work on a page yields its permit; it also ends there after a disconnect.
const YIELD_INTERVAL: Duration = Duration::from_millis(50);
/// Series between two reads of the clock.
const SERIES_AT_ONCE: usize = 1_000;

/// Makes the page in as many turns as needed; most servers need one.
fn page(app: Arc<App>, asker: Asker, open: bool) -> impl FnMut() -> (String, bool) + Send + 'static {
    let reader = asker.reader(&app);
    let mut gathering = Some(Gathering::new(&reader));
    let mut writing = None;
    move || {
        let begun = Instant::now();
        while let Some(values) = &mut gathering {
            if begun.elapsed() >= YIELD_INTERVAL {
                return (String::new(), true);
            }
            if !values.gather(&app.live) {
                let mut own = String::new();
                super::gpus::rows(&app, &reader, &mut own);
                runs::rows(&app, &asker, &reader, &mut own);
                findings::rows(&app.findings, &reader, &mut own, open);
                health(&app, &mut own, open);
                let (catalog, current) = std::mem::take(values).end();
                (gathering, writing) = (None, Some(Exposition::new(catalog, current, &own, open)));
            }
        }
        let Some(page) = &mut writing else { return (String::new(), false) };
        while page.expose() {
            if begun.elapsed() >= YIELD_INTERVAL {
                return (String::new(), true);
            }
        }
        page.piece()
    }
}

/// The families of `GET /metrics` outside the catalog, as the documentation lists them, by name.
pub fn reference() -> String {
    let mut families = super::health::families();
    let information = [
        ("watchglass_gpu_info", "gauge", super::gpus::GPU_INFO),
        ("watchglass_run_info", "gauge", runs::RUN_INFO),
        ("watchglass_rank_run", "gauge", runs::RANK_RUN),
        ("watchglass_gpu_run", "gauge", runs::GPU_RUN),
        ("watchglass_finding", "gauge", findings::FINDING),
        ("watchglass_findings_total", "counter", findings::FINDINGS),
        ("watchglass_self_findings_left_out_total", "counter", findings::LEFT_OUT),
        (exposition::UNEXPOSED_FAMILY, "gauge", exposition::UNEXPOSED_HELP),
    ];
    families.extend(information.map(|(name, kind, help)| (name.into(), kind, help)));
    families.sort();
    let mut page = REFERENCE_HEAD.to_owned();
    page.extend(families.iter().map(|(name, kind, help)| format!("| `{name}` | {kind} | {help} |\n")));
    page
}

const REFERENCE_HEAD: &str = "# Counters of Watchglass itself

`/metrics` has these families beside the [metrics](metrics.md). `watchglass_self_*` is about the process itself,
`watchglass_ingest_*`, `watchglass_usage_*` and `watchglass_audit_*` about a hub, and `watchglass_cluster_*` about several hubs.
Families of a part that is not in use are absent.

| family | type | meaning |
| --- | --- | --- |
";

#[cfg(test)]
mod tests;

//! `GET /metrics`: every current value, and our own health, for Prometheus.
//!
//! A family's name is `watchglass_`, the tag's template with its placeholder's name (`{i}` left out), and the unit;
//! the instance is a label named after the placeholder (`{i}`: after the tag's first word).

use super::App;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response, header};
use shared::catalog::{Kind, Metric, labels};
use shared::unit::Unit;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Content type of OpenMetrics.
pub(super) const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The tag of a scraped sample without its labels.
fn scraped(metric: &Metric) -> Option<&str> {
    metric.tag.strip_suffix("{labels}")
}

fn unit(metric: &Metric) -> &'static str {
    match metric.unit {
        // The endpoint's name of it says its unit, or does not.
        _ if scraped(metric).is_some() => "",
        Unit::Count | Unit::State => "",
        unit => unit.name(),
    }
}

/// Name of a metric's family, without `_total`.
pub(super) fn family(metric: &Metric) -> String {
    if let Some(tag) = scraped(metric) {
        // As printed there, so that two names stay two.
        let tag = if metric.kind == Kind::Counter { tag.strip_suffix("_total").unwrap_or(tag) } else { tag };
        return format!("watchglass_{}", tag.replace(['.', '-'], "_"));
    }
    let mut name = String::from("watchglass");
    let template = metric.tag.replace("{i}", "");
    for word in template.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()) {
        name.push('_');
        for (i, c) in word.char_indices() {
            if c.is_ascii_uppercase() && i > 0 && word[..i].ends_with(|p: char| p.is_ascii_lowercase()) {
                name.push('_');
            }
            name.push(c.to_ascii_lowercase());
        }
    }
    let unit = unit(metric);
    if !unit.is_empty() && !name.ends_with(unit) {
        name.push('_');
        name.push_str(unit);
    }
    name
}

fn label(metric: &Metric) -> Option<&str> {
    let open = metric.tag.find('{')?;
    let name = &metric.tag[open + 1..open + metric.tag[open..].find('}')?];
    Some(if name == "i" { metric.tag.split('.').next().unwrap_or(name) } else { name })
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// HELP, TYPE and (in OpenMetrics) UNIT of a family.
pub(super) fn head(text: &mut String, metric: &Metric, open: bool) {
    let counter = metric.kind == Kind::Counter;
    let mut name = family(metric);
    if counter && !open {
        name.push_str("_total");
    }
    let _ = writeln!(text, "# HELP {name} {}", metric.help.replace('\\', "\\\\").replace('\n', "\\n"));
    let _ = writeln!(text, "# TYPE {name} {}", if counter { "counter" } else { "gauge" });
    if open && !unit(metric).is_empty() {
        let _ = writeln!(text, "# UNIT {name} {}", unit(metric));
    }
}

/// One sample of a family.
pub(super) fn sample(text: &mut String, metric: &Metric, host: &str, instance: &str, v: f64, t: Option<i64>) {
    let total = if metric.kind == Kind::Counter { "_total" } else { "" };
    let _ = write!(text, "{}{total}{{source=\"{}\"", family(metric), escape(host));
    if scraped(metric).is_some() {
        for (name, value) in labels(instance) {
            let renamed = if name == "source" { "exported_" } else { "" };
            let _ = write!(text, ",{renamed}{name}=\"{}\"", escape(&value));
        }
    } else if let Some(label) = label(metric) {
        let _ = write!(text, ",{label}=\"{}\"", escape(instance));
    }
    let _ = write!(text, "}} {}", super::api::number(v));
    if let Some(t) = t {
        let _ = write!(text, " {}", super::api::seconds(t));
    }
    text.push('\n');
}

pub(super) async fn get(State(app): State<Arc<App>>, headers: HeaderMap) -> Response<Body> {
    let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or("");
    let open = accept.contains("application/openmetrics-text");
    let mut text = String::with_capacity(64 * 1024);
    values(&app, &mut text, open);
    health(&app, &mut text, open);
    if open {
        text.push_str("# EOF\n");
    }
    Response::builder()
        .header(header::CONTENT_TYPE, if open { OPENMETRICS } else { PROMETHEUS })
        .body(Body::from(text))
        .expect("these headers are valid")
}

fn values(app: &App, text: &mut String, open: bool) {
    let store = app.hub.store();
    let catalog = store.catalog().clone();
    let sources: Vec<_> = store
        .sources()
        .into_iter()
        .filter_map(|s| Some((store.series(s.id, 0).to_vec(), store.newest(s.id)?.1, s)))
        .collect();
    drop(store);
    for (position, metric) in catalog.metrics.iter().enumerate() {
        let mut begun = false;
        for (defs, values, source) in &sources {
            for (def, &v) in defs.iter().zip(values) {
                if usize::from(def.metric) == position && v.is_finite() {
                    if !std::mem::replace(&mut begun, true) {
                        head(text, metric, open);
                    }
                    sample(text, metric, &source.name, &def.instance, v, None);
                }
            }
        }
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
    for (name, kind, help, value) in rows {
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
    use std::collections::HashMap;

    #[test]
    fn families_are_unique_and_legal() {
        let mut seen: HashMap<String, String> = HashMap::new();
        for metric in &collectors::catalog().metrics {
            let name = family(metric);
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'), "{name}");
            if let Some(other) = seen.insert(name.clone(), metric.tag.clone()) {
                panic!("{} and {other} are both {name}", metric.tag);
            }
        }
    }

    #[test]
    fn scraped_samples_keep_their_name_and_labels() {
        let mut metric = Metric::from(&shared::catalog::openmetrics::SAMPLE);
        metric.tag = metric.tag.replace("{sample}", "my-node.node_cpu_seconds_total{labels}");
        metric.kind = Kind::Counter;
        let mut text = String::new();
        head(&mut text, &metric, true);
        assert!(text.contains("# TYPE watchglass_openmetrics_my_node_node_cpu_seconds counter"), "{text}");
        text.clear();
        sample(&mut text, &metric, "h", r#"{cpu="0",source="x \" y"}"#, 1.5, None);
        sample(&mut text, &metric, "h", "", 2.0, None);
        let name = "watchglass_openmetrics_my_node_node_cpu_seconds_total";
        assert_eq!(
            text,
            format!("{name}{{source=\"h\",cpu=\"0\",exported_source=\"x \\\" y\"}} 1.5\n{name}{{source=\"h\"}} 2\n")
        );
    }

    #[test]
    fn instances_are_labels_and_cannot_break_out() {
        let metric = Metric::from(&shared::catalog::disk::USAGE_PERCENT);
        let mut text = String::new();
        sample(&mut text, &metric, "node\"1", "/mnt/a\\b\n", 12.5, None);
        assert_eq!(text, "watchglass_disk_path_usage_percent{source=\"node\\\"1\",path=\"/mnt/a\\\\b\\n\"} 12.5\n");
    }
}

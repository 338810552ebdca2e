//! `GET /metrics`: every current value, and our own health, for Prometheus. Names and labels are those of
//! [`shared::catalog::prometheus`]; the text format 0.0.4, or OpenMetrics where the caller accepts it.

use super::answer::{METRICS, stream};
use super::{App, health::health};
use crate::export::openmetrics::{Exposed, Families, OPENMETRICS, PROMETHEUS, can_be};
use crate::export::text::number;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response, header};
use shared::catalog::Catalog;
use shared::catalog::prometheus::Type;
use shared::series::{SeriesDef, SeriesId};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

pub(super) async fn get(State(app): State<Arc<App>>, headers: HeaderMap) -> Response<Body> {
    let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or("");
    let open = accept.contains("application/openmetrics-text");
    let place = match METRICS.enter() {
        Ok(place) => place,
        Err(full) => return full.into(),
    };
    // Reading what slow series had last may take milliseconds.
    let page = move || {
        let (catalog, current) = current(&app);
        let mut own = String::new();
        super::gpus::rows(&app, &mut own);
        health(&app, &mut own, open);
        (written(&catalog, &current, &own, open), false)
    };
    stream(place, if open { OPENMETRICS } else { PROMETHEUS }, page).await
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

/// Families of our own that are written already, by the name of their samples, and whether they count.
fn blocks(own: &str) -> BTreeMap<String, (String, bool)> {
    let mut blocks = BTreeMap::new();
    for block in own.split_inclusive('\n').collect::<Vec<_>>().chunk_by(|_, next| !next.starts_with("# HELP ")) {
        let word = |line: &str, at: usize| line.split([' ', '{']).nth(at).unwrap_or("").to_string();
        let kind = block.iter().find(|line| line.starts_with("# TYPE ")).map(|line| word(line.trim_end(), 3));
        if let Some(sample) = block.iter().find(|line| !line.starts_with('#')) {
            blocks.insert(word(sample, 0), (block.concat(), kind.as_deref() == Some("counter")));
        }
    }
    blocks
}

/// The family that counts what this page cannot say.
const LEFT: &str = "watchglass_self_unexposed_series";
const LEFT_HELP: &str = "Series that this page leaves out since it cannot say them: a name or a label that is none for \
    Prometheus or is there twice, or, in OpenMetrics, a counter below zero.";

/// The page: family by family, in the order of their names, since a family's samples must stand together. `own` are
/// families that are written already; what another Watchglass printed under the same names stands with them.
fn written(catalog: &Catalog, current: &[Current], own: &str, open: bool) -> String {
    let mut blocks = blocks(own);
    blocks.insert(LEFT.into(), (String::new(), false));
    let mut families = Families::default();
    blocks.iter().for_each(|(name, (_, counts))| families.take(name, *counts));
    let (mut keys, mut exposed) = (HashSet::new(), Vec::new());
    for (host, def, v) in current {
        let Some(series) = Exposed::of(catalog, def) else { continue };
        let block = blocks.get(&series.family.name);
        let kind = if block.is_some_and(|(_, counts)| *counts) { Type::Counter } else { series.family.kind };
        let (key, value) = (series.key(host), series.family.value(*v));
        let said = (block.is_some() || families.has_room(&series)) && can_be(kind, value, open);
        if said && keys.insert(key.clone()) {
            families.add(&series);
            exposed.push((series, key, value));
        }
    }
    exposed.sort_by(|(a, ..), (b, ..)| a.family.name.cmp(&b.family.name));
    let left = current.len() - exposed.len();
    blocks.insert(LEFT.into(), (format!("# HELP {LEFT} {LEFT_HELP}\n# TYPE {LEFT} gauge\n{LEFT} {left}\n"), false));
    let (mut text, mut family) = (String::with_capacity(64 * 1024), "");
    for (series, key, value) in &exposed {
        if family != series.family.name {
            family = &series.family.name;
            match blocks.remove(family) {
                Some((block, _)) => text.push_str(&block),
                None => families.head(&mut text, series, open),
            }
        }
        text.push_str(key);
        text.push(' ');
        number(&mut text, *value);
        text.push('\n');
    }
    blocks.values().for_each(|(block, _)| text.push_str(block));
    text.push_str(if open { "# EOF\n" } else { "" });
    text
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
        let text = written(&catalog, &current, "", false);
        assert_eq!(text.matches("# TYPE load1 gauge").count(), 1);
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("load1")).collect();
        let expected = [("x", "a-b", 1), ("x", "a_b", 2), ("y", "a-b", 3)];
        let expected = expected.map(|(s, e, v)| format!("load1{{source=\"{s}\",endpoint=\"{e}\"}} {v}"));
        assert_eq!(lines, expected);
    }

    /// The page of what an endpoint printed, in one of the two forms.
    fn scraped(page: &str, open: bool) -> String {
        let (mut out, mut catalog, mut current) = (collectors::Out::default(), collectors::catalog(), Vec::new());
        out.begin(std::time::Duration::ZERO);
        let Some(_) = collectors::openmetrics::reader("e")(page, false, &mut out) else { return String::new() };
        for (slot, def, instance) in out.news() {
            let row = shared::catalog::Metric::from(def);
            let metric = catalog.position(def.tag).unwrap_or_else(|| {
                catalog.metrics.push(row);
                catalog.metrics.len() as u16 - 1
            });
            if out.values()[slot].is_finite() {
                current.push((Arc::<str>::from("a \"host\""), SeriesDef { metric, instance }, out.values()[slot]));
            }
        }
        let own = match open {
            true => {
                "# HELP watchglass_self_ticks Ticks.\n# TYPE watchglass_self_ticks counter\nwatchglass_self_ticks_total 5\n"
            }
            false => {
                "# HELP watchglass_self_ticks_total Ticks.\n# TYPE watchglass_self_ticks_total counter\nwatchglass_self_ticks_total 5\n"
            }
        };
        written(&catalog, &current, own, open)
    }

    /// Both forms are whole: OpenMetrics by its rules; in the text format each family is there once and its samples with
    /// it, and every sample is a series of its own.
    fn is_valid(page: &str) -> Result<(), String> {
        let fault = |what: &str, text: &str| Err(format!("{what}\n--- of\n{page}\n--- in\n{text}"));
        let open = scraped(page, true);
        if let Err(reason) = collectors::openmetrics::check(&open)
            && !open.is_empty()
        {
            return fault(&reason, &open);
        }
        let text = scraped(page, false);
        let (mut seen, mut family) = (HashSet::new(), "");
        for line in text.lines() {
            match line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
                Some((name, _)) if !seen.insert(name) => return fault(line, &text),
                Some((name, _)) => family = name,
                None if line.starts_with('#') || line.split(['{', ' ']).next() == Some(family) => {}
                None => return fault(line, &text),
            }
        }
        let left = collectors::openmetrics::reader("back")(&text, false, &mut collectors::Out::default());
        if left == Some(0) { Ok(()) } else { fault("samples that do not come back", &text) }
    }

    #[test]
    fn whatever_a_page_says_ours_is_valid() {
        for page in [
            "x{a=\"1\",a=\"2\"} 1\n",
            "x{__name__=\"y\"} 1\n",
            "# TYPE x_total counter\nx_total -1\nx_total{a=\"1\"} 2\n",
            "# TYPE x_total counter\nx_total 1\n# TYPE x_created gauge\nx_created 1.5\n",
            "# TYPE x counter\nx 1\nx_total 2\n",
            "# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_sum -1\nh_count 1\n",
            "x{source=\"1\",exported_source=\"2\",endpoint=\"3\"} 1\n",
            "watchglass_self_ticks 1\nwatchglass_self_ticks_total 7\nwatchglass_self_ticks_created 7\n",
            "watchglass_self_ticks_total -7\nwatchglass_self_unexposed_series 3\nwatchglass_gpu_energy_joules 2\n",
            "# HELP x \\ \"quoted\" \\n\nx{a=\"\\\\ \\\" \\n\"} 1\n{\"a b\",\"c d\"=\"e\"} 2\n",
        ] {
            is_valid(page).unwrap_or_else(|fault| panic!("{fault}"));
        }
        // What can be said is said, and the rest is counted.
        let page = "# TYPE x_total counter\nx_total -1\nwatchglass_self_ticks 1\nwatchglass_self_ticks_total 7\n";
        let (text, open) = (scraped(page, false), scraped(page, true));
        assert!(
            text.contains("\nx_total{source=\"a \\\"host\\\"\",endpoint=\"e\"} -1\n") && !open.contains("\nx_total{")
        );
        assert!(text.contains("\nwatchglass_self_unexposed_series 1\n"), "{text}");
        assert!(open.contains("\nwatchglass_self_unexposed_series 2\n"), "{open}");
        for text in [text, open] {
            assert!(text.contains("\nwatchglass_self_ticks_total 5\nwatchglass_self_ticks_total{source="), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_pages_say_ours_is_valid(
            lines in proptest::collection::vec(
                "# TYPE (x|y|x_total|y_total|watchglass_self_ticks_total) (counter|gauge|histogram|summary|untyped)\n\
                 |(x|y|watchglass_self_ticks|watchglass_cpu_utilization_ratio)(_total|_created|_info|_bucket|_sum|_count|_total_total)?\
                 (\\{((a|b|le|quantile|source|endpoint|exported_source|__name__|__x|\"c.d\")=\"[^\"\\\\\n]{0,3}\",){0,3}\\})? -?(1|0.5|NaN|[+]Inf)( [0-9])?\n",
                0..12,
            ),
        ) {
            let valid = is_valid(&lines.concat());
            proptest::prop_assert!(valid.is_ok(), "{}", valid.unwrap_err());
        }
    }
}

//! The text that Prometheus reads: heads of families, and samples under their names and labels. Both formats, the text
//! format 0.0.4 and OpenMetrics 1.0.

use shared::catalog::Catalog;
use shared::catalog::prometheus::{Family, SOURCE, Type, labels};
use shared::series::SeriesDef;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;

/// Content type of OpenMetrics.
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Content type of the text format 0.0.4.
pub const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A series as Prometheus has it.
pub struct Exposed<'a> {
    /// Its family.
    pub family: Family,
    help: &'a str,
    labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Exposed<'a> {
    /// A series of this table.
    pub fn of(catalog: &'a Catalog, def: &'a SeriesDef) -> Self {
        let metric = &catalog.metrics[usize::from(def.metric)];
        Exposed { family: Family::of(metric), help: &metric.help, labels: labels(metric, &def.instance) }
    }

    /// Name and labels of its samples: `name{source="here",gpu="0"}`.
    pub fn key(&self, host: &str) -> String {
        let mut text = format!("{}{{{SOURCE}=\"{}\"", self.family.name, escape(host, true));
        for (name, value) in &self.labels {
            let _ = write!(text, ",{name}=\"{}\"", escape(value, true));
        }
        text.push('}');
        text
    }
}

pub(crate) fn escape(text: &str, quotes: bool) -> Cow<'_, str> {
    let special = |c: char| c == '\\' || c == '\n' || (quotes && c == '"');
    if !text.contains(special) {
        return text.into();
    }
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quotes { text.replace('"', "\\\"").into() } else { text.into() }
}

/// The types of families, which several rows share where two endpoints print one name.
#[derive(Default)]
pub struct Families {
    types: HashMap<String, Type>,
}

impl Families {
    /// Takes a series into account.
    pub fn add(&mut self, series: &Exposed<'_>) {
        // Labels that belong to histograms and summaries, of which only samples are kept.
        let part = series.labels.iter().any(|(name, _)| name == "le" || name == "quantile");
        let kind = if part { Type::Unknown } else { series.family.kind };
        match self.types.get_mut(&series.family.name) {
            Some(known) if *known != kind => *known = Type::Unknown,
            Some(_) => {}
            None => {
                self.types.insert(series.family.name.clone(), kind);
            }
        }
    }

    /// HELP, TYPE and (in OpenMetrics) UNIT of a family, of which this series is the first.
    pub fn head(&self, text: &mut String, series: &Exposed<'_>, open: bool) {
        let family = &series.family;
        let mut kind = self.types.get(&family.name).copied().unwrap_or(family.kind);
        if open && kind == Type::Counter && self.types.contains_key(family.open_name()) {
            // Its name without `_total` is another's.
            kind = Type::Unknown;
        }
        let name = if open && kind == Type::Counter { family.open_name() } else { &family.name };
        let word = match kind {
            Type::Counter => "counter",
            Type::Gauge => "gauge",
            Type::Unknown if open => "unknown",
            Type::Unknown => "untyped",
        };
        let _ = writeln!(text, "# HELP {name} {}", escape(series.help, open));
        let _ = writeln!(text, "# TYPE {name} {word}");
        if open && !family.unit.is_empty() {
            let _ = writeln!(text, "# UNIT {name} {}", family.unit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::catalog::{Kind, Metric, openmetrics::SAMPLE};

    /// A table of scraped rows.
    fn scraped(rows: &[(&str, Kind)]) -> Catalog {
        let mut catalog = Catalog::default();
        for (name, kind) in rows {
            let mut metric = Metric::from(&SAMPLE);
            (metric.tag, metric.kind) = (format!("openmetrics.{name}{{labels}}"), *kind);
            catalog.metrics.push(metric);
        }
        catalog
    }

    fn def(metric: u16, instance: &str) -> SeriesDef {
        SeriesDef { metric, instance: instance.into() }
    }

    #[test]
    fn scraped_samples_keep_their_name_and_labels() {
        let catalog = scraped(&[("my-node.node_cpu_seconds_total", Kind::Counter)]);
        let def = def(0, r#"{cpu="0",source="x \" y"}"#);
        let exposed = Exposed::of(&catalog, &def);
        let key = r#"node_cpu_seconds_total{source="h\\",endpoint="my-node",cpu="0",exported_source="x \" y"}"#;
        assert_eq!(exposed.key("h\\"), key);
        let mut families = Families::default();
        families.add(&exposed);
        let mut text = String::new();
        families.head(&mut text, &exposed, true);
        assert!(text.contains("# TYPE node_cpu_seconds counter\n"), "{text}");
    }

    #[test]
    fn types_that_cannot_be_are_unknown() {
        let rows = [("a.x", Kind::Gauge), ("a.x_total", Kind::Counter), ("b.x", Kind::Counter), ("a.y", Kind::Gauge)];
        let catalog = scraped(&rows);
        let defs = [def(0, ""), def(1, ""), def(3, r#"{quantile="0.5"}"#)];
        let mut families = Families::default();
        let exposed: Vec<_> = defs.iter().map(|def| Exposed::of(&catalog, def)).collect();
        exposed.iter().for_each(|e| families.add(e));
        let head = |at: usize, open: bool| {
            let mut text = String::new();
            families.head(&mut text, &exposed[at], open);
            text.lines().nth(1).expect("a type").to_string()
        };
        assert_eq!(head(0, true), "# TYPE x gauge");
        assert_eq!(head(1, false), "# TYPE x_total counter");
        assert_eq!(head(1, true), "# TYPE x_total unknown", "x is taken");
        assert_eq!(head(2, false), "# TYPE y untyped");
        let other = def(2, "");
        families.add(&Exposed::of(&catalog, &other));
        let mut text = String::new();
        families.head(&mut text, &exposed[0], true);
        assert!(text.contains("# TYPE x unknown"), "two endpoints disagree: {text}");
    }

    #[test]
    fn instances_cannot_break_out() {
        let mut catalog = Catalog::default();
        catalog.metrics.push(Metric::from(&shared::catalog::disk::USAGE_PERCENT));
        let def = def(0, "/mnt/a\\b\n\"");
        let key = Exposed::of(&catalog, &def).key("node\"1");
        assert_eq!(key, "watchglass_filesystem_used_ratio{source=\"node\\\"1\",mountpoint=\"/mnt/a\\\\b\\n\\\"\"}");
    }
}

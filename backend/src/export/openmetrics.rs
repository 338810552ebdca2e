//! Text for Prometheus: heads of families, and samples under their names and labels. Both formats, the text format
//! 0.0.4 and OpenMetrics 1.0. Series that neither can express are left out, and the caller counts them: one invalid
//! name would make the whole page unreadable.

use shared::catalog::Catalog;
use shared::catalog::prometheus::{Family, SOURCE, Type, labels};
use shared::controls::replaced;
use shared::series::SeriesDef;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// Content type of OpenMetrics.
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Content type of the text format 0.0.4.
pub const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A series in the form of Prometheus.
pub struct Exposed<'a> {
    /// Its family.
    pub family: Family,
    help: &'a str,
    labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Exposed<'a> {
    /// A series of this catalog; none if its names are invalid in Prometheus, or a label is repeated.
    pub fn from_def(catalog: &'a Catalog, def: &'a SeriesDef) -> Option<Self> {
        let metric = catalog.metric(def)?;
        let labels = labels(metric, &def.instance);
        let mut names: Vec<&str> = labels.iter().map(|(name, _)| &**name).chain([SOURCE]).collect();
        names.sort_unstable();
        let twice = names.windows(2).any(|pair| pair[0] == pair[1]);
        let family = Family::from_metric(metric);
        let fits = !twice && names.iter().all(|name| is_name(name, false) && !name.starts_with("__"));
        (fits && is_name(&family.name, true)).then_some(Exposed { family, help: &metric.help, labels })
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

/// Whether such a family can have a value in the base unit: OpenMetrics has no counters below zero.
pub fn can_be(kind: Type, value: f64, open: bool) -> bool {
    !open || kind != Type::Counter || value >= 0.0
}

/// Whether a text is a valid name of a sample, or of a label.
fn is_name(text: &str, colons: bool) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || (colons && b == b':');
    text.bytes().all(fits) && text.bytes().next().is_some_and(|b| !b.is_ascii_digit())
}

/// The names that a family claims in OpenMetrics, for itself and for its samples.
fn claims(name: &str, counts: bool) -> Vec<String> {
    match name.strip_suffix("_total").filter(|_| counts) {
        Some(family) => vec![family.into(), name.into(), format!("{family}_created")],
        None => vec![name.into()],
    }
}

/// Escapes a text as a label's value or as help; terminal controls are replaced.
pub(crate) fn escape(text: &str, quotes: bool) -> Cow<'_, str> {
    let text = replaced(text);
    let special = |c: char| c == '\\' || c == '\n' || (quotes && c == '"');
    if !text.contains(special) {
        return text;
    }
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quotes { text.replace('"', "\\\"").into() } else { text.into() }
}

/// The types of families; several rows share a family if two endpoints print one name.
#[derive(Default)]
pub struct Families {
    types: HashMap<String, Type>,
    /// Names claimed by other families on the page, outside the catalog.
    taken: HashSet<String>,
}

impl Families {
    /// Adds a family on the page outside the catalog; `name` is that of its samples.
    pub fn take(&mut self, name: &str, counts: bool) {
        self.taken.extend(claims(name, counts));
    }

    /// Whether a series can be written beside the claimed names.
    pub fn has_room(&self, series: &Exposed<'_>) -> bool {
        !self.taken.contains(&series.family.name)
    }

    /// Whether a counter is the only one that claims its names.
    fn is_counter(&self, family: &Family) -> bool {
        let (own, open) = (family.name.as_str(), family.open_name());
        let others = [format!("{open}_created_total"), format!("{own}_total")];
        let of_which = open.strip_suffix("_created").map(|open| format!("{open}_total"));
        let met = |name: &String| name != own && (self.types.contains_key(name) || self.taken.contains(name));
        !claims(own, true).iter().chain(&others).chain(&of_which).any(met)
    }

    /// Adds a series.
    pub fn add(&mut self, series: &Exposed<'_>) {
        // Labels of histograms and summaries, of which only samples are kept.
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
        if open && kind == Type::Counter && !self.is_counter(family) {
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
        // A counter that is written as another type ends in `_total`, not in its unit, and gets no UNIT line.
        if open && !family.unit.is_empty() && name.ends_with(&format!("_{}", family.unit)) {
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
        let exposed = Exposed::from_def(&catalog, &def).expect("names");
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
        let exposed: Vec<_> = defs.iter().filter_map(|def| Exposed::from_def(&catalog, def)).collect();
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
        families.add(&Exposed::from_def(&catalog, &other).expect("names"));
        let mut text = String::new();
        families.head(&mut text, &exposed[0], true);
        assert!(text.contains("# TYPE x unknown"), "two endpoints disagree: {text}");
    }

    #[test]
    fn counters_whose_names_another_claims_are_unknown() {
        for (names, kind) in [
            (&["a.x_total", "a.y"] as &[&str], "# TYPE x counter"),
            (&["a.x_total", "a.x_created"], "# TYPE x_total unknown"),
            (&["a.x_total", "a.x_created_total"], "# TYPE x_total unknown"),
            (&["a.x_created_total", "a.x_total"], "# TYPE x_created_total unknown"),
            (&["a.x_total", "a.x_total_total"], "# TYPE x_total unknown"),
        ] {
            let rows: Vec<_> = names.iter().map(|name| (*name, Kind::Counter)).collect();
            let catalog = scraped(&rows);
            let defs: Vec<_> = (0..rows.len()).map(|i| def(i as u16, "")).collect();
            let exposed: Vec<_> = defs.iter().filter_map(|def| Exposed::from_def(&catalog, def)).collect();
            let mut families = Families::default();
            exposed.iter().for_each(|series| families.add(series));
            let mut text = String::new();
            families.head(&mut text, &exposed[0], true);
            assert!(text.contains(&format!("{kind}\n")), "{names:?}: {text}");
        }
    }

    #[test]
    fn what_is_no_name_is_not_said() {
        let catalog =
            scraped(&[("e.x", Kind::Gauge), ("e.x-y", Kind::Gauge), ("e.9", Kind::Gauge), ("e.", Kind::Gauge)]);
        let said = |metric, instance: &str| Exposed::from_def(&catalog, &def(metric, instance)).is_some();
        assert!(said(0, "") && said(0, "{a=\"1\",source=\"2\",exported_source=\"3\"}"));
        for instance in ["{a=\"1\",a=\"2\"}", "{__name__=\"y\"}", "{__a=\"y\"}", "{a.b=\"y\"}", "{=\"y\"}", "{1=\"y\"}"]
        {
            assert!(!said(0, instance), "{instance}");
        }
        assert!(!said(1, "") && !said(2, "") && !said(3, ""));
    }

    #[test]
    fn instances_cannot_break_out() {
        let mut catalog = Catalog::default();
        catalog.metrics.push(Metric::from(&shared::catalog::disk::USAGE_PERCENT));
        let def = def(0, "/mnt/a\\b\n\"");
        let key = Exposed::from_def(&catalog, &def).expect("names").key("node\"1");
        assert_eq!(key, "watchglass_filesystem_used_ratio{source=\"node\\\"1\",mountpoint=\"/mnt/a\\\\b\\n\\\"\"}");
    }
}

//! The catalogue row of a scraped sample's name. Rows live as long as the program, since collectors name a row by a
//! constant, so an endpoint makes [`MOST`] at most. Names that it prints beyond them stand under the row that stands for
//! any sample: under the same tag and with every value, but without a chart, a unit and a help of their own.

use super::key::{self, Labels};
use super::text::Type;
use shared::catalog::{Draw, Kind, MetricDef, Range, openmetrics::SAMPLE};
use shared::unit::Unit;
use std::collections::HashMap;

/// What a page says of a family.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Family<'a> {
    pub kind: Option<Type>,
    pub help: &'a str,
    pub unit: &'a str,
}

/// What one name is within its family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A reading.
    Gauge,
    /// A total.
    Counter,
    /// How often something happened: a count whatever the family's unit.
    Count,
    /// A constant, or the time at which counting began: kept, not drawn.
    Fact,
    /// A histogram's bucket.
    Bucket,
}

/// Endings of a sample's name that belong to a family without them, with what they are in which family.
const ENDINGS: &[(&str, &[Type], Part)] = &[
    ("_total", &[Type::Counter], Part::Counter),
    ("_created", &[Type::Counter, Type::Histogram, Type::Summary], Part::Fact),
    ("_bucket", &[Type::Histogram], Part::Bucket),
    ("_bucket", &[Type::GaugeHistogram], Part::Gauge),
    ("_count", &[Type::Histogram, Type::Summary], Part::Count),
    ("_sum", &[Type::Histogram, Type::Summary], Part::Counter),
    ("_gcount", &[Type::GaugeHistogram], Part::Gauge),
    ("_gsum", &[Type::GaugeHistogram], Part::Gauge),
    ("_info", &[Type::Info], Part::Fact),
];

/// Family and part of a sample. `family` looks up what the page says of a name.
pub(super) fn classify<'a>(name: &str, le: bool, family: impl Fn(&str) -> Option<Family<'a>>) -> (Family<'a>, Part) {
    if let Some(own) = family(name).filter(|f| f.kind.is_some()) {
        let part = match own.kind {
            Some(Type::Counter) => Part::Counter,
            _ if name.ends_with("_info") => Part::Fact,
            _ => Part::Gauge,
        };
        return (own, part);
    }
    for (ending, types, part) in ENDINGS {
        if let Some(base) = name.strip_suffix(ending)
            && let Some(found) = family(base)
            && found.kind.is_some_and(|kind| types.contains(&kind))
        {
            return (found, *part);
        }
    }
    // Nothing says what it is; these two endings mean the same wherever they are used.
    let part = match () {
        () if name.ends_with("_total") => Part::Counter,
        () if name.ends_with("_bucket") && le => Part::Bucket,
        () => Part::Gauge,
    };
    (family(name).unwrap_or_default(), part)
}

/// The unit by what the page says, else by the name's ending. Ratios stay what they are: a number.
fn unit(name: &str, said: &str, part: Part) -> Unit {
    if part == Part::Count || part == Part::Fact {
        return Unit::Count;
    }
    let bare = ["_total", "_sum", "_gsum"].iter().find_map(|e| name.strip_suffix(e)).unwrap_or(name);
    let word = if said.is_empty() { bare.rsplit(['_', ':']).next().unwrap_or("") } else { said };
    match word {
        "bytes" => Unit::Bytes,
        "seconds" => Unit::Seconds,
        "celsius" => Unit::Celsius,
        "watts" => Unit::Watts,
        "joules" => Unit::Joules,
        "percent" => Unit::Percent,
        _ => Unit::Count,
    }
}

/// The placeholder for a sample's labels.
const LABELS: &str = "{labels}";

/// Longest help that is kept, in characters.
const HELP: usize = 400;

/// The most rows that an endpoint makes.
pub(super) const MOST: usize = 2_000;

/// The rows of an endpoint.
pub(super) struct Rows {
    endpoint: String,
    made: HashMap<Box<str>, &'static MetricDef>,
}

impl Rows {
    pub(super) fn new(endpoint: &str) -> Self {
        Rows { endpoint: endpoint.into(), made: HashMap::new() }
    }

    /// Row and instance of a sample.
    pub(super) fn series(
        &mut self,
        name: &str,
        family: &Family<'_>,
        part: Part,
        labels: &Labels<'_>,
    ) -> (&'static MetricDef, Box<str>) {
        let labels = key::write_labels(labels);
        if !self.made.contains_key(name) && self.made.len() < MOST {
            self.made.insert(name.into(), make(&self.endpoint, name, family, part));
        }
        match self.made.get(name) {
            Some(def) => (def, labels.into()),
            None => (&SAMPLE, format!("{}.{name}{labels}", self.endpoint).into()),
        }
    }
}

/// The row of a sample's name at an endpoint.
fn make(endpoint: &str, name: &str, family: &Family<'_>, part: Part) -> &'static MetricDef {
    let unit = unit(name, family.unit, part);
    let keep = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let tag = keep(format!("{}{LABELS}", SAMPLE.tag_of(&format!("{endpoint}.{name}"))));
    let chart = &tag[..tag.len() - LABELS.len()];
    let said: String = family.help.replace("\\n", " ").replace("\\\\", "\\").chars().take(HELP).collect();
    let help = match said.trim() {
        "" => format!("Printed by the endpoint {endpoint}, which says nothing about it."),
        said if said.ends_with(['.', '!', '?']) => said.to_string(),
        said => format!("{said}."),
    };
    let kind = match part {
        Part::Counter | Part::Count => Kind::Counter,
        Part::Gauge | Part::Fact | Part::Bucket => Kind::Gauge,
    };
    let range = match (kind, unit) {
        (Kind::Gauge, Unit::Count | Unit::Celsius) => Range::Fit,
        // A percentage of another's making need not end at 100.
        _ => Range::FromZero,
    };
    let draw = if part == Part::Fact { Draw::Hidden } else { Draw::Line };
    // Values are kept as printed: nobody promised whole numbers.
    let def = MetricDef { tag, unit, kind, range, draw, ..SAMPLE };
    Box::leak(Box::new(def.title(keep(name.to_string())).on(chart, LABELS).help(keep(help))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: Type) -> Family<'static> {
        Family { kind: Some(kind), ..Family::default() }
    }

    #[test]
    fn names_are_what_their_families_make_them() {
        let family = |name: &str| match name {
            "requests" | "plain_total" => Some(of(Type::Counter)),
            "latency_seconds" => Some(of(Type::Histogram)),
            "rpc_seconds" => Some(of(Type::Summary)),
            "build" => Some(of(Type::Info)),
            "temp_celsius" | "python_info" => Some(of(Type::Gauge)),
            "described" => Some(Family { help: "Only described.", ..Family::default() }),
            _ => None,
        };
        for (name, part) in [
            ("requests_total", Part::Counter),
            ("requests_created", Part::Fact),
            ("plain_total", Part::Counter),
            ("latency_seconds_bucket", Part::Bucket),
            ("latency_seconds_count", Part::Count),
            ("latency_seconds_sum", Part::Counter),
            ("rpc_seconds", Part::Gauge),
            ("rpc_seconds_sum", Part::Counter),
            ("build_info", Part::Fact),
            ("python_info", Part::Fact),
            ("temp_celsius", Part::Gauge),
            ("ledger_total", Part::Counter),
            ("some_count", Part::Gauge),
            ("described", Part::Gauge),
        ] {
            assert_eq!(classify(name, false, family).1, part, "{name}");
        }
        assert_eq!(classify("unknown_bucket", true, family).1, Part::Bucket);
        assert_eq!(classify("unknown_bucket", false, family).1, Part::Gauge);
        assert_eq!(classify("described", false, family).0.help, "Only described.");
    }

    #[test]
    fn units_come_from_the_page_or_the_name() {
        for (name, said, part, expected) in [
            ("node_memory_bytes", "", Part::Gauge, Unit::Bytes),
            ("cpu_seconds_total", "", Part::Counter, Unit::Seconds),
            ("latency_seconds_count", "", Part::Count, Unit::Count),
            ("latency_seconds_sum", "", Part::Counter, Unit::Seconds),
            ("vllm:bytes", "", Part::Gauge, Unit::Bytes),
            ("power", "watts", Part::Gauge, Unit::Watts),
            ("usage_ratio", "", Part::Gauge, Unit::Count),
            ("megabytes", "", Part::Gauge, Unit::Count),
        ] {
            assert_eq!(unit(name, said, part), expected, "{name}");
        }
    }

    #[test]
    fn a_row_says_where_it_is_from() {
        let help = Family { help: "Load over \\n one minute", ..of(Type::Gauge) };
        let row = make("node", "node_load1", &help, Part::Gauge);
        assert_eq!(row.tag, "openmetrics.node.node_load1{labels}");
        assert_eq!((row.chart, row.label, row.title), ("openmetrics.node.node_load1", "{labels}", "node_load1"));
        assert_eq!((row.help, row.steps), ("Load over   one minute.", 0.0));
        let row = make("node", "x_total", &Family::default(), Part::Counter);
        assert_eq!(row.kind, Kind::Counter);
        assert!(row.help.contains("node"));
    }
}

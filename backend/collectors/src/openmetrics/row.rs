//! Catalog rows of scraped sample names. Rows live as long as the program, because collectors refer to a row by a
//! constant. So an endpoint creates at most [`MAX_ROWS`]. Further names use the general row for samples: same tag and
//! all values, but no chart, unit and help of their own.

use super::key::{self, Labels};
use super::text::Type;
use shared::catalog::{Draw, Kind, MetricDef, Range, openmetrics::SAMPLE};
use shared::unit::Unit;
use std::collections::HashMap;

/// Metadata of a family in a page.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct FamilyAbout<'a> {
    pub kind: Option<Type>,
    pub help: &'a str,
    pub unit: &'a str,
}

/// Role of a name within its family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SamplePart {
    /// A gauge.
    Gauge,
    /// A total.
    Counter,
    /// A number of events: a count in every unit of the family.
    Count,
    /// A constant, or the start time of counting: kept, not drawn.
    Fact,
    /// A histogram's bucket.
    Bucket,
}

/// Suffixes of sample names that belong to a family without the suffix, with their role by family type.
const ENDINGS: &[(&str, &[Type], SamplePart)] = &[
    ("_total", &[Type::Counter], SamplePart::Counter),
    ("_created", &[Type::Counter, Type::Histogram, Type::Summary], SamplePart::Fact),
    ("_bucket", &[Type::Histogram], SamplePart::Bucket),
    ("_bucket", &[Type::GaugeHistogram], SamplePart::Gauge),
    ("_count", &[Type::Histogram, Type::Summary], SamplePart::Count),
    ("_sum", &[Type::Histogram, Type::Summary], SamplePart::Counter),
    ("_gcount", &[Type::GaugeHistogram], SamplePart::Gauge),
    ("_gsum", &[Type::GaugeHistogram], SamplePart::Gauge),
    ("_info", &[Type::Info], SamplePart::Fact),
];

/// Family and part of a sample. `family` looks up the page's metadata of a name.
pub(super) fn classify<'a>(
    name: &str,
    le: bool,
    family: impl Fn(&str) -> Option<FamilyAbout<'a>>,
) -> (FamilyAbout<'a>, SamplePart) {
    if let Some(own) = family(name).filter(|f| f.kind.is_some()) {
        let part = match own.kind {
            Some(Type::Counter) => SamplePart::Counter,
            _ if name.ends_with("_info") => SamplePart::Fact,
            _ => SamplePart::Gauge,
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
    // The page has no type; these two suffixes always mean the same.
    let part = match () {
        () if name.ends_with("_total") => SamplePart::Counter,
        () if name.ends_with("_bucket") && le => SamplePart::Bucket,
        () => SamplePart::Gauge,
    };
    (family(name).unwrap_or_default(), part)
}

/// The unit from the page's metadata, else from the name's suffix. Ratios stay plain numbers.
fn unit(name: &str, said: &str, part: SamplePart) -> Unit {
    if part == SamplePart::Count || part == SamplePart::Fact {
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

/// Maximum length of the stored help, characters.
const MAX_HELP_CHARS: usize = 400;

/// Maximum number of rows that an endpoint creates.
pub(super) const MAX_ROWS: usize = 2_000;

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
        family: &FamilyAbout<'_>,
        part: SamplePart,
        labels: &Labels<'_>,
    ) -> (&'static MetricDef, Box<str>) {
        let labels = key::write_labels(labels);
        if !self.made.contains_key(name) && self.made.len() < MAX_ROWS {
            self.made.insert(name.into(), make(&self.endpoint, name, family, part));
        }
        match self.made.get(name) {
            Some(def) => (def, labels.into()),
            None => (&SAMPLE, format!("{}.{name}{labels}", self.endpoint).into()),
        }
    }
}

/// The row of a sample's name at an endpoint.
fn make(endpoint: &str, name: &str, family: &FamilyAbout<'_>, part: SamplePart) -> &'static MetricDef {
    let unit = unit(name, family.unit, part);
    let keep = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let tag = keep(format!("{}{LABELS}", SAMPLE.tag_of(&format!("{endpoint}.{name}"))));
    let chart = &tag[..tag.len() - LABELS.len()];
    let said: String = family.help.replace("\\n", " ").replace("\\\\", "\\").chars().take(MAX_HELP_CHARS).collect();
    let help = match said.trim() {
        "" => format!("Scraped from the endpoint {endpoint}, which gives no description."),
        said if said.ends_with(['.', '!', '?']) => said.to_string(),
        said => format!("{said}."),
    };
    let kind = match part {
        SamplePart::Counter | SamplePart::Count => Kind::Counter,
        SamplePart::Gauge | SamplePart::Fact | SamplePart::Bucket => Kind::Gauge,
    };
    let range = match (kind, unit) {
        (Kind::Gauge, Unit::Count | Unit::Celsius) => Range::Fit,
        // A percentage from elsewhere need not end at 100.
        _ => Range::FromZero,
    };
    let draw = if part == SamplePart::Fact { Draw::Hidden } else { Draw::Line };
    // Values are kept as printed, because whole numbers are not guaranteed.
    let def = MetricDef { tag, unit, kind, range, draw, ..SAMPLE };
    Box::leak(Box::new(def.title(keep(name.to_string())).on(chart, LABELS).help(keep(help))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family_of(kind: Type) -> FamilyAbout<'static> {
        FamilyAbout { kind: Some(kind), ..FamilyAbout::default() }
    }

    #[test]
    fn names_are_what_their_families_make_them() {
        let family = |name: &str| match name {
            "requests" | "plain_total" => Some(family_of(Type::Counter)),
            "latency_seconds" => Some(family_of(Type::Histogram)),
            "rpc_seconds" => Some(family_of(Type::Summary)),
            "build" => Some(family_of(Type::Info)),
            "temp_celsius" | "python_info" => Some(family_of(Type::Gauge)),
            "described" => Some(FamilyAbout { help: "Only described.", ..FamilyAbout::default() }),
            _ => None,
        };
        for (name, part) in [
            ("requests_total", SamplePart::Counter),
            ("requests_created", SamplePart::Fact),
            ("plain_total", SamplePart::Counter),
            ("latency_seconds_bucket", SamplePart::Bucket),
            ("latency_seconds_count", SamplePart::Count),
            ("latency_seconds_sum", SamplePart::Counter),
            ("rpc_seconds", SamplePart::Gauge),
            ("rpc_seconds_sum", SamplePart::Counter),
            ("build_info", SamplePart::Fact),
            ("python_info", SamplePart::Fact),
            ("temp_celsius", SamplePart::Gauge),
            ("ledger_total", SamplePart::Counter),
            ("some_count", SamplePart::Gauge),
            ("described", SamplePart::Gauge),
        ] {
            assert_eq!(classify(name, false, family).1, part, "{name}");
        }
        assert_eq!(classify("unknown_bucket", true, family).1, SamplePart::Bucket);
        assert_eq!(classify("unknown_bucket", false, family).1, SamplePart::Gauge);
        assert_eq!(classify("described", false, family).0.help, "Only described.");
    }

    #[test]
    fn units_come_from_the_page_or_the_name() {
        for (name, said, part, expected) in [
            ("node_memory_bytes", "", SamplePart::Gauge, Unit::Bytes),
            ("cpu_seconds_total", "", SamplePart::Counter, Unit::Seconds),
            ("latency_seconds_count", "", SamplePart::Count, Unit::Count),
            ("latency_seconds_sum", "", SamplePart::Counter, Unit::Seconds),
            ("vllm:bytes", "", SamplePart::Gauge, Unit::Bytes),
            ("power", "watts", SamplePart::Gauge, Unit::Watts),
            ("usage_ratio", "", SamplePart::Gauge, Unit::Count),
            ("megabytes", "", SamplePart::Gauge, Unit::Count),
        ] {
            assert_eq!(unit(name, said, part), expected, "{name}");
        }
    }

    #[test]
    fn a_row_says_where_it_is_from() {
        let help = FamilyAbout { help: "Load over \\n one minute", ..family_of(Type::Gauge) };
        let row = make("node", "node_load1", &help, SamplePart::Gauge);
        assert_eq!(row.tag, "openmetrics.node.node_load1{labels}");
        assert_eq!((row.chart, row.label, row.title), ("openmetrics.node.node_load1", "{labels}", "node_load1"));
        assert_eq!((row.help, row.steps), ("Load over   one minute.", 0.0));
        let row = make("node", "x_total", &FamilyAbout::default(), SamplePart::Counter);
        assert_eq!(row.kind, Kind::Counter);
        assert!(row.help.contains("node"));
    }
}

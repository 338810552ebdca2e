//! Tags as Prometheus names and labels, and back: the one table, for `/metrics`, exports, remote write and reading
//! back.
//!
//! A row of ours is `watchglass_` + its stem + its base unit (`bytes`, `seconds`, `hertz`, `celsius`, `ratio` ...), and
//! `_total` when it counts. Shares are ratios, 0 to 1, as Prometheus has them; in tags they are percent. The instance
//! is one label or two, named by the family: `gpu`, `mig`, `pid`, `core`, `device`, `mountpoint`. Most names follow
//! from the tag by a rule; exceptions are in a list ([`stem`]).
//!
//! A scraped row keeps its name, labels and values as the endpoint printed them, with the label [`ENDPOINT`] for the
//! endpoint's name: no row of ours has that label, so the two never meet. A scraped label with the name of one of ours
//! gets the prefix `exported_`. Every series also has [`SOURCE`], which the writer adds.

mod label;
mod stem;

use super::{Catalog, Kind, Metric, job};
use crate::series::{SeriesDef, quantize};
use crate::unit::Unit;
use std::borrow::Cow;
use std::collections::HashMap;

/// The label that names the machine.
pub const SOURCE: &str = "source";
/// The label that names the endpoint of a scraped series.
pub const ENDPOINT: &str = "endpoint";
/// Prefix of a scraped label whose name is one of these two.
const EXPORTED: &str = "exported_";
const TOTAL: &str = "_total";
/// The family of the values of jobs.
const JOB_VALUE: &str = "watchglass_job_value";

/// Type of a family in Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A total that only grows; its name ends in `_total`.
    Counter,
    /// A reading.
    Gauge,
    /// A scraped name that the rules for the other two do not allow.
    Unknown,
}

/// Conversion of a value to the base unit. Powers of ten are a way of their own, because neither 13.57 / 100 nor 13.57 x
/// 0.01 is the number 0.1357.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scale {
    Times(f64),
    /// Moves the decimal point by so many places to the right.
    Decimal(i32),
}

/// One row of the table as Prometheus has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// Name of the samples.
    pub name: String,
    /// Its type.
    pub kind: Type,
    /// The base unit at the end of the name, before `_total`; empty for plain numbers and scraped rows.
    pub unit: &'static str,
    scale: Scale,
    steps: f64,
    /// The label that distinguishes a row from others of the same name: the endpoint of a scraped row, the name of a
    /// job's value.
    own: Option<(&'static str, String)>,
}

impl Family {
    /// The family of a row.
    pub fn from_metric(metric: &Metric) -> Family {
        if let Some((endpoint, name)) = scraped(metric) {
            let reserved = [TOTAL, "_count", "_sum", "_bucket"].iter().any(|end| name.ends_with(end));
            let kind = match metric.kind {
                Kind::Counter if name.ends_with(TOTAL) => Type::Counter,
                Kind::Gauge | Kind::State if !reserved => Type::Gauge,
                _ => Type::Unknown,
            };
            let (name, own) = (name.to_string(), Some((ENDPOINT, endpoint.to_string())));
            return Family { name, kind, unit: "", scale: Scale::Times(1.0), steps: 0.0, own };
        }
        if let Some(value) = job::name(&metric.tag) {
            let (name, own) = (JOB_VALUE.to_string(), Some((job::NAME, value.to_string())));
            return Family { name, kind: Type::Gauge, unit: "", scale: Scale::Times(1.0), steps: 0.0, own };
        }
        let (unit, scale) = base(metric.unit);
        let mut name = format!("watchglass_{}", stem::stem(metric));
        if !unit.is_empty() && !name.ends_with(&format!("_{unit}")) {
            name = format!("{name}_{unit}");
        }
        let kind = if metric.kind == Kind::Counter { Type::Counter } else { Type::Gauge };
        if kind == Type::Counter {
            name += TOTAL;
        }
        Family { name, kind, unit, scale, steps: metric.steps, own: None }
    }

    /// The name of the family in OpenMetrics, where only a counter's samples end in `_total`.
    pub fn open_name(&self) -> &str {
        match self.kind {
            Type::Counter => self.name.strip_suffix(TOTAL).unwrap_or(&self.name),
            _ => &self.name,
        }
    }

    /// A stored value in the base unit.
    pub fn value(&self, stored: f64) -> f64 {
        match self.scale {
            Scale::Times(factor) => stored * factor,
            Scale::Decimal(places) => shifted(stored, places),
        }
    }

    /// The stored value of one in the base unit.
    pub fn stored(&self, value: f64) -> f64 {
        let stored = match self.scale {
            Scale::Times(factor) => value / factor,
            Scale::Decimal(places) => shifted(value, -places),
        };
        // Undoes only the rounding of the two conversions: a value reported between two steps stays there.
        let near = quantize(stored, self.steps);
        if (near - stored).abs() <= 4.0 * f64::EPSILON * stored.abs() { near } else { stored }
    }
}

/// Name of the endpoint and of the sample, of a row that was made for a scraped sample.
fn scraped(metric: &Metric) -> Option<(&str, &str)> {
    metric.tag.strip_suffix("{labels}")?.strip_prefix("openmetrics.")?.split_once('.')
}

/// The value whose shortest decimal is that of `value` with its point moved by so many places to the right.
fn shifted(value: f64, places: i32) -> f64 {
    let text = format!("{value:e}");
    let parts = text.split_once('e').and_then(|(digits, exponent)| Some((digits, exponent.parse::<i32>().ok()?)));
    let moved = parts.and_then(|(digits, exponent)| format!("{digits}e{}", exponent + places).parse().ok());
    // Neither NaN nor infinity has a decimal point.
    moved.unwrap_or(value)
}

/// Name of the base unit, and the conversion to it.
fn base(unit: Unit) -> (&'static str, Scale) {
    match unit {
        Unit::Percent => ("ratio", Scale::Decimal(-2)),
        Unit::Microseconds => ("seconds", Scale::Decimal(-6)),
        Unit::Megahertz => ("hertz", Scale::Decimal(6)),
        Unit::GigatransfersPerSecond => ("transfers_per_second", Scale::Decimal(9)),
        Unit::Count | Unit::State => ("", Scale::Times(1.0)),
        unit => (unit.base().name(), Scale::Times(unit.to_base())),
    }
}

/// Names and values of the labels of a series, without the source's.
pub fn labels<'a>(metric: &'a Metric, instance: &'a str) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
    if !metric.tag.ends_with(job::LABELS) {
        return label::parse_labels(&metric.tag, instance);
    }
    let row = scraped(metric).map(|(endpoint, _)| (ENDPOINT, endpoint));
    let row = row.or(job::name(&metric.tag).map(|name| (job::NAME, name)));
    let own = super::labels(instance).into_iter().map(|(name, value)| match label::plain(name) {
        SOURCE | ENDPOINT => (Cow::from(format!("{EXPORTED}{name}")), value.into()),
        _ => (name.into(), value.into()),
    });
    row.into_iter().map(|(label, value)| (label.into(), value.into())).chain(own).collect()
}

/// Name and labels of a row's series as a document shows them, without the source: `watchglass_gpu_power_watts{gpu}`.
pub fn written(metric: &Metric) -> String {
    let name = Family::from_metric(metric).name;
    match metric.tag.as_str() {
        // It stands for the rows that are created at run time.
        tag if tag == job::VALUE.tag => format!("{JOB_VALUE}{{name,rank,run}}"),
        tag if tag == job::NOT_A_NUMBER.tag => format!("{name}{{name,rank,run}}"),
        tag if tag == job::STEP.tag => format!("{name}{{rank,run}}"),
        tag => label::name(tag).map_or(name.clone(), |label| format!("{name}{{{label}}}")),
    }
}

/// The families of a catalog, for the way from names and labels back to series.
pub struct Names {
    families: Vec<Family>,
    tags: Vec<String>,
    by_name: HashMap<String, Vec<u16>>,
}

impl Names {
    /// The families of all rows.
    pub fn new(catalog: &Catalog) -> Self {
        let families: Vec<Family> = catalog.metrics.iter().map(Family::from_metric).collect();
        let mut by_name: HashMap<String, Vec<u16>> = HashMap::new();
        for (position, family) in families.iter().enumerate() {
            by_name.entry(family.name.clone()).or_default().push(position as u16);
        }
        Names { families, tags: catalog.metrics.iter().map(|m| m.tag.clone()).collect(), by_name }
    }

    /// The family of a row.
    pub fn family(&self, metric: u16) -> Option<&Family> {
        self.families.get(usize::from(metric))
    }

    /// The series of a name and its labels; None if no row has them. For our own rows, unknown labels are ignored,
    /// because Prometheus adds its own. For scraped rows and values of jobs, only [`SOURCE`] is ignored.
    pub fn find(&self, name: &str, labels: &[(&str, &str)]) -> Option<SeriesDef> {
        let has = |label: &str, value: &str| labels.contains(&(label, value));
        let fits = |metric: &&u16| match &self.families[usize::from(**metric)].own {
            Some((label, value)) => has(label, value),
            None => labels.iter().all(|(name, _)| *name != ENDPOINT),
        };
        let metric = *self.by_name.get(name)?.iter().find(fits)?;
        let (own, tag) = (&self.families[usize::from(metric)].own, &self.tags[usize::from(metric)]);
        let instance = match tag.ends_with(job::LABELS) {
            true => label::written(labels, own.as_ref().map(|(label, _)| *label)),
            false => label::instance(tag, labels)?,
        };
        Some(SeriesDef { metric, instance })
    }
}

#[cfg(test)]
mod tests;

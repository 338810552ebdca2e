//! From a page's lines to series.
//!
//! An endpoint prints the same lines in the same order each time, so the key of each line is kept and compared as bytes;
//! labels are parsed, sorted and matched against filters only when a line is new.

use super::dcgm::{self, Reading};
use super::filter::Filters;
use super::histogram::{Histogram, QUANTILES};
use super::row::{self, Family, Part};
use super::text::{self, About, Bad};
use crate::Out;
use crate::numbers::GpuNumbers;
use shared::catalog::MetricDef;
use std::collections::HashMap;
use std::sync::Arc;

/// A line that was seen before.
struct Known {
    /// Name and labels as printed.
    key: Box<str>,
    target: Target,
}

/// Where a line's value goes.
enum Target {
    Series(&'static MetricDef, Box<str>),
    /// DCGM's: absent when it is a sentinel.
    Dcgm(&'static MetricDef, Box<str>),
    /// A reading of a GPU; the series is for a GPU that a driver reports already.
    Gpu(Reading, &'static MetricDef, Box<str>),
    /// A histogram takes it in.
    Bucket,
    /// No filter keeps it.
    Left,
}

/// A histogram and the series of its quantiles.
struct Quantiles {
    def: &'static MetricDef,
    instances: [Box<str>; 3],
    histogram: Histogram,
}

/// What a page had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Samples printed.
    pub samples: usize,
    /// Samples left out because the endpoint has too many series.
    pub dropped: usize,
}

/// The series of one endpoint.
pub(super) struct Page {
    endpoint: String,
    filters: Filters,
    numbers: Arc<GpuNumbers>,
    /// The most lines and quantiles that are kept.
    limit: usize,
    known: Vec<Known>,
    by_key: HashMap<Box<str>, usize>,
    rows: HashMap<Box<str>, &'static MetricDef>,
    histograms: Vec<Quantiles>,
    by_histogram: HashMap<String, usize>,
    /// Series so far, quantiles too.
    series: usize,
    /// By known line, of this page.
    values: Vec<f64>,
}

impl Page {
    pub(super) fn new(endpoint: &str, filters: Filters, numbers: Arc<GpuNumbers>, limit: usize) -> Self {
        Page {
            endpoint: endpoint.into(),
            filters,
            numbers,
            limit,
            known: Vec::new(),
            by_key: HashMap::new(),
            rows: HashMap::new(),
            histograms: Vec::new(),
            by_histogram: HashMap::new(),
            series: 0,
            values: Vec::new(),
        }
    }

    /// Reads a page and puts what it says; a page that is not whole or not well-formed puts nothing.
    pub(super) fn read(&mut self, page: &str, open: bool, out: &mut Out) -> Result<Counts, Bad> {
        let counts = self.values_of(page, open)?;
        self.put(out);
        Ok(counts)
    }

    fn values_of(&mut self, page: &str, open: bool) -> Result<Counts, Bad> {
        text::whole(page, open)?;
        self.values.fill(f64::NAN);
        let mut counts = Counts::default();
        let mut families: Option<HashMap<&str, Family<'_>>> = None;
        let (mut rest, mut next) = (page, 0);
        while !rest.is_empty() {
            let bad = || Bad::Line(1 + page[..page.len() - rest.len()].matches('\n').count());
            match rest.as_bytes()[0] {
                b' ' | b'\t' | b'\r' | b'\n' => {
                    rest = &rest[1..];
                    continue;
                }
                b'#' => {
                    let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
                    if line.trim_end() == "# EOF" {
                        break;
                    }
                    rest = after;
                    continue;
                }
                _ => {}
            }
            let expected = self.known.get(next).map(|known| &*known.key);
            let begins =
                |key: &str| rest.starts_with(key) && matches!(rest.as_bytes().get(key.len()), Some(b' ' | b'\t'));
            let (len, found) = match expected.filter(|key| begins(key)) {
                Some(key) => (key.len(), Some(next)),
                None => {
                    let len = text::key(rest).ok_or_else(bad)?;
                    (len, self.by_key.get(&rest[..len]).copied())
                }
            };
            let (key, behind) = rest.split_at(len);
            let (value, taken) = text::value(behind).ok_or_else(bad)?;
            counts.samples += 1;
            let found = found.or_else(|| self.add(key, families.get_or_insert_with(|| families_of(page))));
            match found {
                Some(at) => {
                    self.values[at] = value;
                    next = at + 1;
                }
                None => counts.dropped += 1,
            }
            rest = &behind[taken..];
        }
        Ok(counts)
    }

    /// A line that is new. None when there are too many already.
    fn add(&mut self, key: &str, families: &HashMap<&str, Family<'_>>) -> Option<usize> {
        // Twice: lines that no filter keeps and buckets are remembered too.
        if self.series >= self.limit || self.known.len() >= 2 * self.limit {
            return None;
        }
        let (name, labels) = text::parts(key);
        let at = self.known.len();
        let target = self.target(at, name, &labels, families)?;
        if !matches!(target, Target::Left | Target::Bucket) {
            self.series += 1;
        }
        self.known.push(Known { key: key.into(), target });
        self.by_key.insert(key.into(), at);
        self.values.push(f64::NAN);
        Some(at)
    }

    fn target(
        &mut self,
        at: usize,
        name: &str,
        labels: &[(&str, String)],
        families: &HashMap<&str, Family<'_>>,
    ) -> Option<Target> {
        if !self.filters.keep(&format!("{}.{name}", self.endpoint), labels) {
            return Some(Target::Left);
        }
        let bound = labels.iter().find(|(l, _)| *l == "le").and_then(|(_, v)| v.parse::<f64>().ok());
        let (family, part) = row::classify(name, bound.is_some(), |name| families.get(name).copied());
        if let (Part::Bucket, Some(bound)) = (part, bound) {
            return self.bucket(at, name, bound, labels, &family).then_some(Target::Bucket);
        }
        let part = if part == Part::Bucket { Part::Gauge } else { part };
        let def = self.row(name, &family, part);
        let instance = text::write_labels(labels).into_boxed_str();
        Some(match Reading::of(&self.endpoint, name, labels) {
            Some(reading) => Target::Gpu(reading, def, instance),
            None if dcgm::is_dcgm(name) => Target::Dcgm(def, instance),
            None => Target::Series(def, instance),
        })
    }

    fn row(&mut self, name: &str, family: &Family<'_>, part: Part) -> &'static MetricDef {
        if let Some(def) = self.rows.get(name) {
            return def;
        }
        let def = row::make(&self.endpoint, name, family, part);
        self.rows.insert(name.into(), def);
        def
    }

    /// Takes a bucket into its histogram; false when there is no room for a new one.
    fn bucket(&mut self, at: usize, name: &str, bound: f64, labels: &[(&str, String)], family: &Family<'_>) -> bool {
        let base = name.strip_suffix("_bucket").unwrap_or(name);
        let mut others: Vec<_> = labels.iter().filter(|(l, _)| *l != "le").cloned().collect();
        let id = format!("{base}{}", text::write_labels(&others));
        let index = match self.by_histogram.get(&id) {
            Some(index) => *index,
            None => {
                if self.series + QUANTILES.len() > self.limit {
                    return false;
                }
                self.series += QUANTILES.len();
                let def = self.row(base, family, Part::Gauge);
                let instances = QUANTILES.map(|(q, _)| {
                    others.retain(|(l, _)| *l != "quantile");
                    others.push(("quantile", q.to_string()));
                    others.sort_by(|a, b| a.0.cmp(b.0));
                    text::write_labels(&others).into_boxed_str()
                });
                self.histograms.push(Quantiles { def, instances, histogram: Histogram::default() });
                self.by_histogram.insert(id, self.histograms.len() - 1);
                self.histograms.len() - 1
            }
        };
        self.histograms[index].histogram.add(bound, at);
        true
    }

    fn put(&mut self, out: &mut Out) {
        for (known, &value) in self.known.iter().zip(&self.values) {
            match &known.target {
                _ if value.is_nan() => {}
                Target::Series(def, instance) => out.put(def, &**instance, value),
                Target::Dcgm(..) | Target::Gpu(..) if dcgm::is_sentinel(value) => {}
                Target::Dcgm(def, instance) => out.put(def, &**instance, value),
                Target::Gpu(reading, def, instance) => {
                    match self.numbers.claim_scraped(&reading.identity, reading.index) {
                        Some(number) if reading.mig.is_none() => {
                            out.put_some(reading.def, number, reading.value(value))
                        }
                        Some(number) => out.put_some(reading.def, &*reading.instance(number), reading.value(value)),
                        None => out.put(def, &**instance, value),
                    }
                }
                Target::Bucket | Target::Left => {}
            }
        }
        for quantiles in &mut self.histograms {
            if let Some(values) = quantiles.histogram.quantiles(&self.values) {
                for (instance, value) in quantiles.instances.iter().zip(values) {
                    out.put(quantiles.def, &**instance, value);
                }
            }
        }
    }
}

/// What the comments of a page say, by family.
fn families_of(page: &str) -> HashMap<&str, Family<'_>> {
    let mut families: HashMap<&str, Family<'_>> = HashMap::new();
    for (name, about) in page.lines().filter(|line| line.starts_with('#')).filter_map(text::about) {
        let family = families.entry(name).or_default();
        match about {
            About::Type(kind) => family.kind = Some(kind),
            About::Help(help) => family.help = help,
            About::Unit(unit) => family.unit = unit,
        }
    }
    families
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;

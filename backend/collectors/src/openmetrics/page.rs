//! Converts a page's lines to series.
//!
//! An endpoint prints the same lines in the same order each time. So the key of each line is stored and compared as
//! bytes. Labels are parsed, sorted and matched against filters only for a new line. `known.rs` stores the lines, and
//! evicts those that were not seen for a while.

use super::dcgm::{self, DcgmReading};
use super::filter::Filters;
use super::gpus::{Added, GpuReadings, Machines};
use super::histogram::{Histogram, QUANTILES};
use super::key;
use super::known::{KnownLine, KnownPages, Quantiles, Target};
use super::left::{Left, Why};
use super::row::{self, FamilyAbout, Rows, SamplePart};
use super::strict;
use super::text::{self, About, Bad};
use crate::Out;
use inventory::{GpuNumbers, OtherMachines};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// Counts of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PageCounts {
    /// Number of samples.
    pub samples: usize,
    /// The dropped ones among them.
    pub left: Left,
}

/// Metadata of a page's comments, by family.
type Families<'a> = HashMap<Cow<'a, str>, FamilyAbout<'a>>;

/// The series of one endpoint.
pub(super) struct Page {
    endpoint: String,
    filters: Filters,
    numbers: Arc<GpuNumbers>,
    machines: Machines,
    known: KnownPages,
    rows: Rows,
}

impl Page {
    pub(super) fn new(endpoint: &str, filters: Filters, numbers: Arc<GpuNumbers>, limit: usize) -> Self {
        let (known, rows) = (KnownPages::new(limit), Rows::new(endpoint));
        Page { endpoint: endpoint.into(), filters, numbers, machines: Machines::default(), known, rows }
    }

    /// Tells of other machines there. `is_local`: the endpoint is on this machine. `every`: time between two pages.
    pub(super) fn telling(mut self, others: Option<Arc<OtherMachines>>, is_local: bool, every: Duration) -> Self {
        self.machines = Machines { others, is_local, every };
        self
    }

    /// Parses a page and puts its values. A page that is incomplete or malformed puts nothing.
    pub(super) fn read(&mut self, page: &str, open: bool, out: &mut Out) -> Result<PageCounts, Bad> {
        match open {
            true => strict::check(page)?,
            false => text::whole(page, false)?,
        }
        self.known.begin(out.at());
        let mut counts = self.values_of(page)?;
        self.put(page, out, &mut counts.left);
        Ok(counts)
    }

    fn values_of(&mut self, page: &str) -> Result<PageCounts, Bad> {
        let mut counts = PageCounts::default();
        let mut families: Option<Families<'_>> = None;
        let (mut rest, mut next) = (page, 0);
        while !rest.is_empty() {
            let line = || 1 + page[..page.len() - rest.len()].matches('\n').count();
            let bad = || Bad::Line(line());
            match rest.as_bytes()[0] {
                b' ' | b'\t' | b'\r' | b'\n' => {
                    rest = &rest[1..];
                    continue;
                }
                b'#' => {
                    rest = rest.split_once('\n').map_or("", |(_, after)| after);
                    continue;
                }
                _ => {}
            }
            let begins =
                |key: &str| rest.starts_with(key) && matches!(rest.as_bytes().get(key.len()), Some(b' ' | b'\t'));
            let (len, found) = match self.known.key(next).filter(|key| begins(key)) {
                Some(key) => (key.len(), Some(next)),
                None => {
                    let len = key::key(rest).ok_or_else(bad)?;
                    (len, self.known.find(&rest[..len]))
                }
            };
            let (key, behind) = rest.split_at(len);
            let value = text::value(behind).ok_or_else(bad)?;
            counts.samples += 1;
            if counts.samples > strict::MAX_SAMPLES {
                return Err(Bad::Rule(line(), "more than 1,000,000 samples"));
            }
            let found = match (found, value.number) {
                (Some(at), Some(_)) => Ok(Some(at)),
                (_, Some(_)) => self.add(key, families.get_or_insert_with(|| families_of(page))),
                (_, None) if self.is_left(key) => Ok(None),
                (_, None) => Err(Why::Native),
            };
            match (found, value.number) {
                (Ok(Some(at)), Some(number)) if self.known.take(at, number, value.stamp) => next = at + 1,
                (Ok(Some(at)), _) if self.known.is_left(at) => {}
                (Ok(Some(_)), _) => counts.left.add(Why::Again, line),
                (Err(why), _) => counts.left.add(why, line),
                (Ok(None), _) => {}
            }
            rest = &behind[value.taken..];
        }
        Ok(counts)
    }

    /// Whether no filter keeps the sample.
    fn is_left(&self, key: &str) -> bool {
        let (name, labels, _) = key::parts(key);
        !self.filters.keep(&format!("{}.{name}", self.endpoint), &labels)
    }

    /// Adds a new line. None if no filter keeps it and there is no room to remember that.
    fn add(&mut self, key: &str, families: &Families<'_>) -> Result<Option<usize>, Why> {
        let (name, labels, odd) = key::parts(key);
        let keep = self.filters.keep(&format!("{}.{name}", self.endpoint), &labels);
        if let Some(why) = Why::from_sample(&name, &labels, odd) {
            return if keep { Err(why) } else { Ok(None) };
        }
        let same = self.known.same((&name, &labels));
        if let Some(at) = self.known.find_same(same) {
            return Ok(Some(at));
        }
        if !keep {
            return Ok(self.known.has_room(0, key).then(|| self.known.push(key, same, Target::Left)));
        }
        let bound = labels.iter().find(|(l, _)| l == "le").and_then(|(_, v)| v.parse::<f64>().ok());
        let (family, part) = row::classify(&name, bound.is_some(), |name| families.get(name).copied());
        if let (SamplePart::Bucket, Some(bound)) = (part, bound) {
            return self.bucket(key, same, &name, bound, labels, &family).map(Some);
        }
        if !self.known.has_room(1, key) {
            return Err(Why::Series);
        }
        let part = if part == SamplePart::Bucket { SamplePart::Gauge } else { part };
        let (def, instance) = self.rows.series(&name, &family, part, &labels);
        let target = match DcgmReading::from_sample(&self.endpoint, &name, &labels) {
            Some(reading) => Target::Gpu(reading, def, instance),
            None if dcgm::is_dcgm(&name) => Target::Dcgm(def, instance),
            None => Target::Series(def, instance),
        };
        Ok(Some(self.known.push(key, same, target)))
    }

    /// Adds a bucket to its histogram.
    fn bucket(
        &mut self,
        key: &str,
        same: u64,
        name: &str,
        bound: f64,
        mut labels: key::Labels<'_>,
        family: &FamilyAbout<'_>,
    ) -> Result<usize, Why> {
        let base = name.strip_suffix("_bucket").unwrap_or(name);
        labels.retain(|(l, _)| l != "le");
        let id = format!("{base}{}", key::write_labels(&labels));
        let is_new = !self.known.histograms.contains_key(&id);
        if !self.known.has_room(if is_new { QUANTILES.len() } else { 0 }, key) {
            return Err(Why::Series);
        }
        if is_new {
            let mut series = QUANTILES.map(|(q, _)| {
                labels.retain(|(l, _)| l != "quantile");
                labels.push(("quantile".into(), q.to_string()));
                labels.sort_by(|a, b| a.0.cmp(&b.0));
                self.rows.series(base, family, SamplePart::Gauge, &labels)
            });
            let instances = series.each_mut().map(|(_, instance)| std::mem::take(instance));
            let quantiles = Quantiles { def: series[0].0, instances, histogram: Histogram::default() };
            self.known.push_histogram(id.clone(), quantiles);
        }
        let at = self.known.push(key, same, Target::Bucket);
        if let Some(quantiles) = self.known.histograms.get_mut(&id) {
            quantiles.histogram.add(bound, at);
        }
        Ok(at)
    }

    /// Puts the values of a page, and counts those whose machine has no room.
    fn put(&mut self, page: &str, out: &mut Out, left: &mut Left) {
        let now = out.at();
        let here = || self.known.lines.iter().zip(&self.known.values).filter(|(_, value)| !value.is_nan());
        let hosts: BTreeSet<&str> = here().filter_map(|(line, _)| host_of(line)).collect();
        let mut gpus = GpuReadings::new(&self.machines, &hosts);
        for (at, (line, &value)) in self.known.lines.iter().zip(&self.known.values).enumerate() {
            match &line.target {
                _ if value.is_nan() => {}
                Target::Series(def, instance) => out.put(def, &**instance, value),
                Target::Dcgm(..) | Target::Gpu(..) if dcgm::is_sentinel(value) => {}
                Target::Dcgm(def, instance) => out.put(def, &**instance, value),
                Target::Gpu(reading, def, instance) => {
                    match gpus.add(&self.numbers, now, reading, (def, instance, value)) {
                        Added::Taken => {}
                        Added::Reported => out.put(def, &**instance, value),
                        Added::NoMachine => left.add(Why::Machines, || line_of(page, self.known.key(at))),
                    }
                }
                Target::Bucket | Target::Left => {}
            }
        }
        gpus.put(out);
        for quantiles in self.known.histograms.values_mut() {
            if let Some(values) = quantiles.histogram.quantiles(&self.known.values) {
                for (instance, value) in quantiles.instances.iter().zip(values) {
                    out.put_rounded(quantiles.def, &**instance, value);
                }
            }
        }
    }
}

/// The number of the line with this key.
fn line_of(page: &str, key: Option<&str>) -> usize {
    let is_it = |line: &str| key.is_some_and(|key| line.trim_start().starts_with(key));
    1 + page.lines().position(is_it).unwrap_or_default()
}

/// The machine that a line's GPU sits in, if the page names it.
fn host_of(line: &KnownLine) -> Option<&str> {
    match &line.target {
        Target::Gpu(reading, ..) => reading.host.as_deref(),
        _ => None,
    }
}

/// Maximum number of families with stored metadata: each kept sample may have one.
const MAX_FAMILIES: usize = 2 * super::MAX_SERIES;

/// Metadata of a page's comments, by family.
fn families_of(page: &str) -> Families<'_> {
    let mut families = Families::new();
    for (name, about) in page.lines().filter(|line| line.starts_with('#')).filter_map(text::about) {
        if families.len() >= MAX_FAMILIES && !families.contains_key(&name) {
            continue;
        }
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

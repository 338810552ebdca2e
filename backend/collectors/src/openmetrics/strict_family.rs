//! State of one family in a page of OpenMetrics while its lines are checked.

use super::key::Labels;
use super::text::Type;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// A fault, as the rest of a sentence.
pub(super) type Fault = &'static str;

/// A sample of a family.
pub(super) struct StrictSample<'a> {
    pub name: &'a str,
    pub labels: &'a Labels<'a>,
    pub value: f64,
    pub stamp: Option<f64>,
    pub exemplar: bool,
}

impl StrictSample<'_> {
    fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.as_str())
    }
}

/// State of a family.
pub(super) struct StrictFamily {
    pub name: String,
    pub kind: Option<Type>,
    pub endings: &'static [&'static str],
    pub helped: bool,
    pub typed: bool,
    pub unit: Option<String>,
    /// Hash of the present group and its time; none before the first sample.
    group: Option<(u64, Option<f64>)>,
    groups: HashSet<u64>,
    native: bool,
    histogram: Option<Histogram>,
}

impl StrictFamily {
    pub(super) fn new(name: String, endings: &'static [&'static str]) -> Self {
        StrictFamily {
            name,
            kind: None,
            endings,
            helped: false,
            typed: false,
            unit: None,
            group: None,
            groups: HashSet::new(),
            native: false,
            histogram: None,
        }
    }

    pub(super) fn has_samples(&self) -> bool {
        self.group.is_some() || self.native
    }

    /// Checks a native histogram: its fields exist and are numbers.
    pub(super) fn native(&mut self, name: &str, text: &str) -> Result<(), Fault> {
        self.native = true;
        if self.endings.iter().any(|ending| name.ends_with(ending)) {
            return Err("a native histogram's name with an ending");
        }
        let inside = text.strip_prefix('{').and_then(|rest| rest.split_once('}')).map_or("", |(inside, _)| inside);
        let figure = |key: &str| inside.split(',').find_map(|part| part.trim().strip_prefix(key)?.strip_prefix(':'));
        let whole = |key: &str| figure(key).is_some_and(|text| text.trim().parse::<i64>().is_ok());
        let any = |key: &str| figure(key).is_some_and(|text| text.trim().parse::<f64>().is_ok());
        match whole("count") && any("sum") && whole("schema") && any("zero_threshold") && whole("zero_count") {
            true => Ok(()),
            false => Err("a native histogram without its figures"),
        }
    }

    /// Checks the next sample, whose name belongs to this family.
    pub(super) fn take(&mut self, sample: &StrictSample<'_>, hasher: &RandomState) -> Result<(), Fault> {
        let ending = &sample.name[self.name.len()..];
        self.labels(sample, ending)?;
        self.grouped(sample, ending, hasher)?;
        self.value(sample, ending)?;
        if matches!(self.kind, Some(Type::Histogram | Type::GaugeHistogram)) {
            let group = self.group.unwrap_or_default();
            if self.histogram.as_ref().is_some_and(|histogram| histogram.group != group) {
                self.histogram.take().map_or(Ok(()), |histogram| histogram.close())?;
            }
            self.histogram.get_or_insert_with(|| Histogram::new(group)).take(sample, ending)?;
        }
        Ok(())
    }

    /// Checks the labels that the type of the family requires.
    fn labels(&self, sample: &StrictSample<'_>, ending: &str) -> Result<(), Fault> {
        // Infinity has one spelling.
        let number = |text: &str| text.parse::<f64>().ok().filter(|n| *n != f64::INFINITY || text == "+Inf");
        match (self.kind, ending) {
            (Some(Type::StateSet), _) if sample.label(&self.name).is_none() => Err("a state without its label"),
            (_, "_bucket") if sample.label("le").and_then(number).is_none_or(f64::is_nan) => {
                Err("a bucket without a proper `le`")
            }
            (Some(Type::Summary), "") => {
                let quantile = sample.label("quantile").and_then(number);
                match quantile.is_some_and(|quantile| (0.0..=1.0).contains(&quantile)) {
                    true => Ok(()),
                    false => Err("a quantile that is not from 0 to 1"),
                }
            }
            _ => Ok(()),
        }
    }

    /// Checks that samples with one set of labels are adjacent, with times in order.
    fn grouped(&mut self, sample: &StrictSample<'_>, ending: &str, hasher: &RandomState) -> Result<(), Fault> {
        let left_out = match (self.kind, ending) {
            (Some(Type::Summary), "") => "quantile",
            (Some(Type::StateSet), _) => &self.name,
            (Some(Type::Histogram | Type::GaugeHistogram), "_bucket") => "le",
            _ => "",
        };
        let group = match self.kind {
            Some(Type::Info) => 0,
            _ => {
                let own = sample.labels.iter().filter(|(name, _)| name != left_out);
                own.fold(1u64, |sum, label| sum.wrapping_add(hasher.hash_one(label)))
            }
        };
        match self.group.replace((group, sample.stamp)) {
            Some((before, stamp)) if before == group => {
                if stamp.is_some() != sample.stamp.is_some() {
                    return Err("a time stamp on some samples of a group only");
                }
                if stamp > sample.stamp && self.kind != Some(Type::Info) {
                    return Err("a time stamp that goes back");
                }
            }
            Some(_) if self.groups.contains(&group) => {
                return Err("samples of one set of labels that do not stand together");
            }
            _ => {}
        }
        self.groups.insert(group);
        Ok(())
    }

    /// Checks that the type of the family allows the value.
    fn value(&self, sample: &StrictSample<'_>, ending: &str) -> Result<(), Fault> {
        let value = sample.value;
        let counts = matches!(ending, "_bucket" | "_count" | "_gcount");
        let grows = counts || matches!(ending, "_total" | "_sum");
        let may_have_exemplar = match self.kind {
            Some(Type::Histogram | Type::GaugeHistogram) => ending == "_bucket",
            Some(Type::Counter) => ending == "_total",
            _ => false,
        };
        match self.kind {
            _ if (grows || ending == "_gsum") && value.is_nan() => Err("a counter that is not a number"),
            _ if grows && value < 0.0 => Err("a counter below zero"),
            _ if counts && value.fract() != 0.0 => Err("a count that is not whole"),
            Some(Type::StateSet) if value != 0.0 && value != 1.0 => Err("a state that is neither 0 nor 1"),
            Some(Type::Info) if value != 1.0 => Err("an info that is not 1"),
            Some(Type::Summary) if ending.is_empty() && value < 0.0 => Err("a quantile below zero"),
            _ if sample.exemplar && !may_have_exemplar => Err("an exemplar on what may have none"),
            _ => Ok(()),
        }
    }

    /// Ends the family.
    pub(super) fn close(&mut self) -> Result<(), Fault> {
        if let Some(unit) = self.unit.as_deref().filter(|unit| !unit.is_empty()) {
            if matches!(self.kind, Some(Type::Info | Type::StateSet)) {
                return Err("a unit of what can have none");
            }
            if !self.name.strip_suffix(unit).is_some_and(|rest| rest.ends_with('_')) {
                return Err("a unit that the name of the family does not end with");
            }
        }
        self.histogram.take().map_or(Ok(()), |histogram| histogram.close())
    }
}

/// One histogram, for one group at one time.
struct Histogram {
    group: (u64, Option<f64>),
    /// Bound and count of the previous bucket.
    bucket: Option<(f64, f64)>,
    count: Option<f64>,
    sum: bool,
    gauge_sum: Option<f64>,
    below_zero: bool,
}

impl Histogram {
    fn new(group: (u64, Option<f64>)) -> Self {
        Histogram { group, bucket: None, count: None, sum: false, gauge_sum: None, below_zero: false }
    }

    fn take(&mut self, sample: &StrictSample<'_>, ending: &str) -> Result<(), Fault> {
        match ending {
            "_bucket" => {
                let bound = sample.label("le").and_then(|le| le.parse().ok()).unwrap_or(f64::NAN);
                self.below_zero |= bound < 0.0;
                match self.bucket {
                    Some((before, _)) if bound < before => return Err("buckets that are not in order"),
                    // A repeated bucket is a duplicate, which is ignored.
                    Some((before, _)) if bound == before => return Ok(()),
                    Some((_, count)) if sample.value < count => {
                        return Err("buckets that count less than those before");
                    }
                    _ => self.bucket = Some((bound, sample.value)),
                }
            }
            "_count" | "_gcount" => self.count = Some(sample.value),
            "_sum" => self.sum = true,
            "_gsum" => self.gauge_sum = Some(sample.value),
            _ => {}
        }
        Ok(())
    }

    fn close(self) -> Result<(), Fault> {
        let (bound, value) = self.bucket.unwrap_or((f64::NAN, 0.0));
        let sum = self.sum || self.gauge_sum.is_some();
        match self.count {
            _ if bound != f64::INFINITY => Err("a histogram without its last bucket, `+Inf`"),
            Some(count) if count != value => Err("a histogram whose count is not that of its last bucket"),
            None if sum => Err("a histogram with a sum and no count"),
            Some(_) if !sum => Err("a histogram with a count and no sum"),
            _ if self.below_zero && self.sum => Err("a sum of buckets below zero"),
            _ if !self.below_zero && self.gauge_sum.is_some_and(|sum| sum < 0.0) => {
                Err("a sum below zero of buckets that are not")
            }
            _ => Ok(()),
        }
    }
}

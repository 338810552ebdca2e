//! The formats of exports and responses.

use super::openmetrics::{self, Exposed};
use super::select::Selection;
use super::text::{number, quoted, record_body, seconds};
use shared::catalog::Kind;
use shared::catalog::prometheus::Family;
use shared::csv::cell;
use shared::note::SavedNote;
use shared::record::Record;
use shared::rollup::Bucket;
use std::collections::HashSet;
use std::fmt::Write;

/// Writes series one after another. Each series gets either points or buckets, at least one.
pub trait Form {
    /// In front of everything.
    fn begin(&mut self, _: &mut String, _: &Selection) {}
    /// A series begins: its position in the selection.
    fn series(&mut self, text: &mut String, selection: &Selection, wanted: usize);
    /// A sample: time in ms and value.
    fn point(&mut self, text: &mut String, t: i64, v: f64);
    /// A roll-up.
    fn bucket(&mut self, text: &mut String, bucket: &Bucket);
    /// The series has ended.
    fn series_end(&mut self, _: &mut String) {}
    /// After everything.
    fn end(&mut self, _: &mut String) {}
    /// Whether it writes records, once all series have ended.
    fn has_records(&self) -> bool {
        false
    }
    /// A record of the machine of this name.
    fn record(&mut self, _: &mut String, _host: &str, _: &Record) {}

    /// A note of a person.
    fn note(&mut self, _: &mut String, _: &SavedNote) {}
    /// Whether a line has all series at an instant: then no other method here is called.
    fn by_time(&self) -> bool {
        false
    }
}

/// CSV; see [`Format::Csv`](super::Format::Csv).
#[derive(Default)]
pub struct Csv {
    /// `,source,tag,` of the series at hand.
    about: String,
}

impl Form for Csv {
    fn begin(&mut self, text: &mut String, selection: &Selection) {
        text.push_str("time,source,tag,");
        text.push_str(if selection.ask.step.is_some() { "min,max,mean,last,count\n" } else { "value\n" });
    }

    fn series(&mut self, _: &mut String, selection: &Selection, wanted: usize) {
        let wanted = &selection.wanted[wanted];
        self.about = format!(",{},{},", cell(&wanted.host), cell(&wanted.tag));
    }

    fn point(&mut self, text: &mut String, t: i64, v: f64) {
        seconds(text, t);
        text.push_str(&self.about);
        number(text, v);
        text.push('\n');
    }

    fn bucket(&mut self, text: &mut String, b: &Bucket) {
        seconds(text, b.t);
        text.push_str(&self.about);
        for value in [b.min, b.max, b.mean, b.last] {
            number(text, value);
            text.push(',');
        }
        let _ = writeln!(text, "{}", b.count);
    }
}

/// `"t":..,"min":..,"max":..,"mean":..,"last":..,"count":..`
fn members(text: &mut String, b: &Bucket) {
    text.push_str("\"t\":");
    seconds(text, b.t);
    for (name, value) in [("min", b.min), ("max", b.max), ("mean", b.mean), ("last", b.last)] {
        let _ = write!(text, ",\"{name}\":");
        number(text, value);
    }
    let _ = write!(text, ",\"count\":{}", b.count);
}

/// W&B's lines; see [`Format::WandbJsonl`](super::Format::WandbJsonl).
pub struct EventLines;

impl Form for EventLines {
    fn series(&mut self, _: &mut String, _: &Selection, _: usize) {}
    fn point(&mut self, _: &mut String, _: i64, _: f64) {}
    fn bucket(&mut self, _: &mut String, _: &Bucket) {}
    fn by_time(&self) -> bool {
        true
    }
}

/// JSON lines; see [`Format::Json`](super::Format::Json).
#[derive(Default)]
pub struct JsonLines {
    /// The members that are the same for the whole series.
    about: String,
    /// Samples are rolled up, or rates, so records are not written.
    reduced: bool,
}

impl Form for JsonLines {
    fn begin(&mut self, _: &mut String, selection: &Selection) {
        self.reduced = selection.ask.step.is_some() || selection.ask.rate;
    }

    fn has_records(&self) -> bool {
        !self.reduced
    }

    fn record(&mut self, text: &mut String, host: &str, record: &Record) {
        text.push_str("{\"t\":");
        seconds(text, record.t);
        let (host, kind, body) = (quoted(host), quoted(&record.kind), record_body(&record.body));
        let _ = writeln!(text, ",\"source\":{host},\"record\":{kind},\"n\":{},\"body\":{body}}}", record.n);
    }

    fn note(&mut self, text: &mut String, note: &SavedNote) {
        text.push_str("{\"t\":");
        seconds(text, note.t.ms());
        let body = serde_json::to_vec(note).map_or_else(|_| "null".into(), |body| record_body(&body));
        let _ = writeln!(text, ",\"source\":{},\"record\":\"note\",\"body\":{body}}}", quoted(&note.source));
    }

    fn series(&mut self, _: &mut String, selection: &Selection, wanted: usize) {
        let wanted = &selection.wanted[wanted];
        self.about = format!(",\"source\":{},\"tag\":{}", quoted(&wanted.host), quoted(&wanted.tag));
    }

    fn point(&mut self, text: &mut String, t: i64, v: f64) {
        text.push_str("{\"t\":");
        seconds(text, t);
        text.push_str(&self.about);
        text.push_str(",\"value\":");
        number(text, v);
        text.push_str("}\n");
    }

    fn bucket(&mut self, text: &mut String, bucket: &Bucket) {
        text.push('{');
        members(text, bucket);
        text.push_str(&self.about);
        text.push_str("}\n");
    }
}

/// The JSON of `api/v1/query`.
pub struct Query {
    fixed: String,
    first_series: bool,
    first_value: bool,
}

impl Query {
    /// Begins with the requested span.
    pub fn new(selection: &Selection, older: Option<String>, holes: &[(i64, i64)]) -> Self {
        let mut fixed = String::from("{\"from\":");
        seconds(&mut fixed, selection.ask.from);
        fixed.push_str(",\"to\":");
        seconds(&mut fixed, selection.ask.to);
        if selection.ask.rate {
            fixed.push_str(",\"fn\":\"rate\"");
        }
        if let Some(older) = older {
            let _ = write!(fixed, ",\"older\":{older}");
        }
        for (at, (from, to)) in holes.iter().enumerate() {
            fixed.push_str(if at == 0 { ",\"holes\":[[" } else { "],[" });
            seconds(&mut fixed, *from);
            fixed.push(',');
            seconds(&mut fixed, *to);
        }
        fixed.push_str(if holes.is_empty() { "" } else { "]]" });
        fixed.push_str(",\"series\":[");
        Query { fixed, first_series: true, first_value: true }
    }

    fn comma(&mut self, text: &mut String) {
        if !std::mem::take(&mut self.first_value) {
            text.push(',');
        }
    }
}

impl Form for Query {
    fn begin(&mut self, text: &mut String, _: &Selection) {
        text.push_str(&self.fixed);
    }

    fn series(&mut self, text: &mut String, selection: &Selection, wanted: usize) {
        if !std::mem::take(&mut self.first_series) {
            text.push(',');
        }
        let wanted = &selection.wanted[wanted];
        let kind = match selection.metric(wanted).kind {
            _ if selection.ask.rate => "gauge",
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::State => "state",
        };
        let (tag, source, unit) = (quoted(&wanted.tag), quoted(&wanted.host), selection.unit(wanted).name());
        let values = if selection.ask.step.is_some() { "buckets" } else { "points" };
        let _ =
            write!(text, "{{\"tag\":{tag},\"source\":{source},\"unit\":\"{unit}\",\"kind\":\"{kind}\",\"{values}\":[");
        self.first_value = true;
    }

    fn point(&mut self, text: &mut String, t: i64, v: f64) {
        self.comma(text);
        text.push('[');
        seconds(text, t);
        text.push(',');
        number(text, v);
        text.push(']');
    }

    fn bucket(&mut self, text: &mut String, bucket: &Bucket) {
        self.comma(text);
        text.push('{');
        members(text, bucket);
        text.push('}');
    }

    fn series_end(&mut self, text: &mut String) {
        text.push_str("]}");
    }

    fn end(&mut self, text: &mut String) {
        text.push_str("]}");
    }
}

/// OpenMetrics; see [`Format::OpenMetrics`](super::Format::OpenMetrics).
pub struct Open {
    families: openmetrics::Families,
    /// The family at hand, by name.
    family: String,
    /// The current series: conversion of its values, and name with labels.
    scale: Option<Family>,
    about: String,
    /// Time of the sample before.
    last: i64,
    /// Series and samples that OpenMetrics cannot express.
    left: (usize, usize),
}

impl Open {
    /// Sorts the series by their families, since a family's samples must stand together.
    pub fn new(selection: &mut Selection) -> Self {
        let (mut families, mut keys) = (openmetrics::Families::default(), HashSet::new());
        let mut keyed: Vec<(String, super::Wanted)> = Vec::new();
        for wanted in &selection.wanted {
            let exposed = Exposed::from_def(&selection.catalog, &wanted.def);
            if let Some(exposed) = exposed.filter(|exposed| keys.insert(exposed.key(&wanted.host))) {
                families.add(&exposed);
                keyed.push((exposed.family.name, wanted.clone()));
            }
        }
        let left = (selection.wanted.len() - keyed.len(), 0);
        keyed.sort_by(|(a, x), (b, y)| (a, x.source, x.id).cmp(&(b, y.source, y.id)));
        selection.wanted = keyed.into_iter().map(|(_, wanted)| wanted).collect();
        Open { families, family: String::new(), scale: None, about: String::new(), last: i64::MIN, left }
    }
}

impl Form for Open {
    fn series(&mut self, text: &mut String, selection: &Selection, wanted: usize) {
        let wanted = &selection.wanted[wanted];
        // Series that cannot be expressed were removed from the selection.
        let Some(exposed) = Exposed::from_def(&selection.catalog, &wanted.def) else { return };
        self.last = i64::MIN;
        if self.family != exposed.family.name {
            self.family.clone_from(&exposed.family.name);
            self.families.head(text, &exposed, true);
        }
        self.about = exposed.key(&wanted.host);
        self.scale = Some(exposed.family);
    }

    fn point(&mut self, text: &mut String, t: i64, v: f64) {
        let Some(family) = &self.scale else { return };
        let value = family.value(v);
        // A counter is at least zero, and time does not go back.
        if !openmetrics::can_be(family.kind, value, true) || t <= self.last {
            self.left.1 += 1;
            return;
        }
        self.last = t;
        text.push_str(&self.about);
        text.push(' ');
        number(text, value);
        text.push(' ');
        seconds(text, t);
        text.push('\n');
    }

    // `Format::form` refuses roll-ups here.
    fn bucket(&mut self, text: &mut String, bucket: &Bucket) {
        self.point(text, bucket.t, bucket.last);
    }

    fn end(&mut self, text: &mut String) {
        let (series, samples) = self.left;
        if self.left != (0, 0) {
            tracing::warn!(series, samples, "OpenMetrics cannot say some of what was exported, and it was left out");
        }
        text.push_str("# EOF\n");
    }
}

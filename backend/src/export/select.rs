//! A query, and the matching series of a store.

use super::fit::{Look, Patterns, Search, Wanted, same_tag};
use parking_lot::Mutex;
use shared::catalog::job::{self, ValueSender};
use shared::catalog::{Catalog, Kind, LABEL, Metric, ResolvedTag, TagError, glob, process};
use shared::series::SeriesDef;
use shared::unit::Unit;
use shared::wire::{Source, SourceId};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use stream::store::{RecordsSnapshot, Snapshot};

/// A query for stored samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// Tags in any spelling, or patterns with `*`; a series that matches several is returned once.
    pub tags: Vec<String>,
    /// Names of sources, or patterns; empty: all.
    pub sources: Vec<String>,
    /// First instant, milliseconds since the Unix epoch.
    pub from: i64,
    /// Last instant.
    pub to: i64,
    /// Width of buckets in milliseconds, at least 1; none: every sample.
    pub step: Option<i64>,
    /// The increase per second of counters, in place of their totals.
    pub rate: bool,
    /// The GPUs of a machine, by its name, if not all are requested: those that a run holds.
    pub gpus: BTreeMap<String, BTreeSet<u32>>,
    /// The rank labels of a machine, by its name, if not all are requested: those of a run.
    pub ranks: BTreeMap<String, BTreeSet<String>>,
    /// The run whose logged values are requested, by its ID on its machines; none: those of all.
    pub run: Option<String>,
}

impl Ask {
    /// Whether a series is left out because it belongs to another GPU, rank or run.
    fn leaves_out(&self, catalog: &Catalog, wanted: &Wanted) -> bool {
        if let Some(label) = wanted.def.instance.strip_prefix(LABEL)
            && let Some(own) = self.ranks.get(&*wanted.host)
        {
            return !own.contains(label);
        }
        if let Some(run) = &self.run
            && catalog.metric(&wanted.def).is_some_and(|metric| job::is_labeled(&metric.tag))
        {
            return ValueSender::from_instance(&wanted.def.instance).0.run.as_ref() != Some(run);
        }
        let Some(own) = self.gpus.get(&*wanted.host) else { return false };
        let is_gpus = catalog.metric(&wanted.def).is_some_and(|metric| metric.tag.starts_with(GPU));
        let number = wanted.def.instance.split(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse().ok());
        is_gpus && number.is_some_and(|number: u32| !own.contains(&number))
    }
}

/// Prefix of the tags of a GPU.
const GPU: &str = "gpu.";

/// The error of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Refused {
    /// The query is invalid; the sentence gives the remedy.
    Wrong(String),
    /// No metric has such a tag.
    Unknown(TagError),
    /// No visible source has this name; the sentence names some.
    NoSource(String),
    /// The answer would be too large.
    Large {
        /// Number of matching series.
        series: usize,
        /// Approximate number of values of the response.
        values: i64,
        /// Maximum number of values of a response.
        most: i64,
        /// A step with which it would fit, milliseconds.
        step: i64,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Wrong(sentence) | Refused::NoSource(sentence) => f.write_str(sentence),
            Refused::Unknown(error) => error.fmt(f),
            Refused::Large { series, values, most, step } => write!(
                f,
                "the response would have about {values} values of {series} series, and the limit is {most}; use \
                fewer tags, one source=, a shorter span or step={}s. api/v1/export has no limit",
                (step + 999) / 1000
            ),
        }
    }
}

/// Series with the parts of the store that hold their samples. It holds pointers, not copies.
pub struct Selection {
    /// The query.
    pub ask: Ask,
    /// The catalog.
    pub catalog: Arc<Catalog>,
    /// Series with a sample in the span, in the order of the query.
    pub wanted: Vec<Wanted>,
    /// By source.
    pub(super) parts: HashMap<SourceId, SourceStretches>,
    /// The records of the span, by source, until they are written.
    pub(super) records: Mutex<Vec<SourceRecords>>,
}

/// The records of a source in the span.
pub(super) struct SourceRecords {
    /// The source's name.
    pub name: String,
    /// Whether names of people are hidden in them.
    pub is_nameless: bool,
    /// The records that are not written yet.
    pub left: RecordsSnapshot,
}

/// The stored parts of a source.
pub(super) struct SourceStretches {
    /// Time between its ticks, milliseconds.
    pub interval: i64,
    /// Stretches of the span, oldest first; a stretch has no more than [`MAX_HELD_SAMPLES`] ticks.
    pub stretches: Vec<Snapshot>,
}

/// Approximate number of samples in memory at once: 4 MiB.
pub(super) const MAX_HELD_SAMPLES: i64 = 1 << 18;
/// Maximum time before the span of the sample for its first rate, milliseconds.
pub(super) const RATE_LEAD_MS: i64 = 60_000;

impl Selection {
    /// The row of a series.
    pub fn metric(&self, wanted: &Wanted) -> &Metric {
        &self.catalog.metrics[usize::from(wanted.def.metric)]
    }

    /// Unit of the written values: that of the row, or of its rate.
    pub fn unit(&self, wanted: &Wanted) -> Unit {
        let unit = self.metric(wanted).unit;
        if self.ask.rate { unit.per_second() } else { unit }
    }

    /// Upper bound of the values of a response with this step: one for each of its steps, or for each interval of its
    /// machine. The stored number may be far lower.
    pub(super) fn at_most(&self, step: i64) -> i64 {
        let one = |wanted: &Wanted| {
            let width = step.max(self.parts.get(&wanted.source).map_or(1, |part| part.interval));
            (wanted.span.1 - wanted.span.0) / width + 1
        };
        self.wanted.iter().map(one).fold(0, i64::saturating_add)
    }

    /// The error of a response with this many values.
    pub(super) fn too_large(&self, values: i64, most: i64) -> Refused {
        let longest = self.wanted.iter().map(|w| w.span.1 - w.span.0).max().unwrap_or(0);
        let mut steps = std::iter::successors(Some(1_000), |step| Some(step * 2));
        let fits = steps.find(|step| self.at_most(*step) <= most || *step > longest);
        Refused::Large { series: self.wanted.len(), values, most, step: fits.unwrap_or(longest) }
    }
}

/// Chooses the series, and takes references to their stored samples. Nothing is read yet.
///
/// # Errors
/// [`Refused`], but never for the size of the response.
pub fn select(store: &impl Look, ask: Ask) -> Result<Selection, Refused> {
    if ask.tags.is_empty() {
        return Err(Refused::Wrong("a tag is missing; write ?tag=TAG, repeated, or with * for any text".into()));
    }
    if ask.from > ask.to {
        return Err(Refused::Wrong("from is later than to".into()));
    }
    let (catalog, sources) = (store.catalog(), store.sources());
    let wanted = chosen(store, &catalog, &sources, &ask)?;
    let asked = fitting(&sources, &ask.sources)?.into_iter();
    let records = asked.filter_map(|source| {
        let left = store.with_store(|store| store.records(source.id, ask.from, ask.to))?;
        let is_nameless = store.hides_names_of(&source.key);
        Some(SourceRecords { name: source.name.clone(), is_nameless, left })
    });
    let records = Mutex::new(records.collect());
    let mut parts = HashMap::new();
    for source in sources {
        let mut own = wanted.iter().filter(|w: &&Wanted| w.source == source.id).map(|w| w.span);
        let Some(first) = own.next() else { continue };
        let (mut from, to) = own.fold(first, |a, b| (a.0.min(b.0), a.1.max(b.1)));
        if ask.rate {
            from = from.saturating_sub(RATE_LEAD_MS);
        }
        let interval = source.interval.max(1);
        let stretches = stretches(from, to, MAX_HELD_SAMPLES * interval, ask.step.unwrap_or(1));
        let stretches =
            stretches.into_iter().filter_map(|(from, to)| store.with_store(|s| s.snapshot(source.id, from, to)));
        parts.insert(source.id, SourceStretches { interval, stretches: stretches.collect() });
    }
    Ok(Selection { ask, catalog, wanted, parts, records })
}

/// The sources that match one of these patterns; all without a pattern.
///
/// # Errors
/// [`Refused::NoSource`]: a pattern has no match.
pub fn fitting(sources: &[Arc<Source>], patterns: &[String]) -> Result<Vec<Arc<Source>>, Refused> {
    let means = |name: &String, source: &Source| glob(name, &source.name) || *name == source.key;
    let unfit = |name: &&String| !sources.iter().any(|source| means(name, source));
    if let Some(name) = patterns.iter().find(unfit) {
        return Err(no_source(name, sources));
    }
    let fits = |source: &&Arc<Source>| patterns.is_empty() || patterns.iter().any(|name| means(name, source));
    Ok(sources.iter().filter(fits).cloned().collect())
}

fn no_source(name: &str, sources: &[Arc<Source>]) -> Refused {
    let known: Vec<&str> = sources.iter().map(|s| s.name.as_str()).take(8).collect();
    Refused::NoSource(format!("there is no source {name:?}; sources are {}", known.join(", ")))
}

/// The series of a query with a sample in its span, each once, in the order of the query.
///
/// # Errors
/// As [`select`].
pub fn chosen(
    store: &impl Look,
    catalog: &Catalog,
    sources: &[Arc<Source>],
    ask: &Ask,
) -> Result<Vec<Wanted>, Refused> {
    let patterns = Patterns::new(catalog, ask.tags.iter().map(String::as_str)).map_err(Refused::Unknown)?;
    // Behind the rows of processes the label may be a rank's.
    let has_ranks = |found: &&ResolvedTag| {
        let tag = catalog.metrics.get(usize::from(found.metric)).map(|metric| metric.tag.as_str());
        found.of_rank().is_some() && process::ROWS.iter().any(|row| Some(row.tag) == tag)
    };
    let mut labels = patterns.written_out().filter(|found| !has_ranks(found)).filter_map(|found| found.label.as_ref());
    let from_here = fitting(sources, &ask.sources)?;
    if let Some(name) = labels.find(|name| !sources.iter().any(|source| source.name == **name)) {
        return Err(no_source(name, sources));
    }
    let counts = |metric: u16| catalog.metrics[usize::from(metric)].kind == Kind::Counter;
    // One counter among the rows of a tag suffices: the other rows are left out.
    let any_counts = |row: u16| (0..).take(catalog.metrics.len()).any(|one| same_tag(catalog, row, one) && counts(one));
    if let Some(gauge) = patterns.written_out().find(|found| ask.rate && !any_counts(found.metric)) {
        let tag = catalog.tag(&SeriesDef { metric: gauge.metric, instance: gauge.instance.clone() });
        return Err(Refused::Wrong(format!("{tag} is not a counter, so it has no rate; leave out fn=rate for it")));
    }
    let mut search = Search::new(from_here);
    let mut wanted = Vec::new();
    while let Some(found) = search.next(store, catalog, &patterns) {
        wanted.extend(found.into_iter().filter_map(|(at, mut one)| {
            one.span = (one.span.0.max(ask.from), one.span.1.min(ask.to));
            (one.span.0 <= one.span.1 && !ask.leaves_out(catalog, &one) && (!ask.rate || counts(one.def.metric)))
                .then_some((at, one))
        }));
    }
    // In the order of the query; within a pattern in their own order.
    wanted.sort_by_key(|(at, _)| *at);
    Ok(wanted.into_iter().map(|(_, one)| one).collect())
}

/// Cuts a span into parts of about this length whose ends are ends of buckets.
fn stretches(from: i64, to: i64, length: i64, step: i64) -> Vec<(i64, i64)> {
    let (mut all, mut from) = (Vec::new(), from);
    while from <= to {
        let last = from.saturating_add(length).div_euclid(step).saturating_mul(step).saturating_add(step - 1).min(to);
        all.push((from, last));
        from = last.saturating_add(1);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::stretches;

    #[test]
    fn a_span_is_cut_where_buckets_end() {
        assert_eq!(stretches(5, 95, 30, 10), [(5, 39), (40, 79), (80, 95)]);
        assert_eq!(stretches(5, 95, 1_000, 10), [(5, 95)]);
        assert_eq!(stretches(-15, 5, 5, i64::MAX), [(-15, -1), (0, 5)]);
        assert_eq!(stretches(7, 7, 1, 1), [(7, 7)]);
    }
}

//! What is asked for, and the series of a store that fit.

use crate::store::{Snapshot, Store};
use shared::catalog::{Catalog, Kind, Metric, TagError, glob};
use shared::series::{SeriesDef, SeriesId};
use shared::unit::Unit;
use shared::wire::SourceId;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

/// A question about stored samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// Tags in any spelling, or patterns with `*`; a series that several fit comes once.
    pub tags: Vec<String>,
    /// Names of sources, or patterns; empty is all.
    pub sources: Vec<String>,
    /// First instant, milliseconds since the Unix epoch.
    pub from: i64,
    /// Last instant.
    pub to: i64,
    /// Width of buckets in milliseconds, at least 1; none is every sample.
    pub step: Option<i64>,
    /// The increase per second of counters, in place of their totals.
    pub rate: bool,
}

/// Why a question is not answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Refused {
    /// It cannot be answered as it stands; the sentence says what to write.
    Wrong(String),
    /// No metric has such a tag.
    Unknown(TagError),
    /// The answer would be too large.
    Large {
        /// Series that fit.
        series: usize,
        /// Values that the answer would hold, about.
        values: i64,
        /// Values that an answer may hold.
        most: i64,
        /// A step with which it would fit, milliseconds.
        step: i64,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Wrong(sentence) => f.write_str(sentence),
            Refused::Unknown(error) => error.fmt(f),
            Refused::Large { series, values, most, step } => write!(
                f,
                "{series} series have about {values} values in this span, and an answer holds {most} at most; ask for \
                 fewer tags, for one source=, for a shorter span, or for step={}s; api/v1/export has no limit",
                (step + 999) / 1000
            ),
        }
    }
}

/// A series that was asked for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The machine's number and name.
    pub source: SourceId,
    /// Its name.
    pub host: Arc<str>,
    /// The series' number there.
    pub id: SeriesId,
    /// What it is.
    pub def: SeriesDef,
    /// Its tag, canonical.
    pub tag: String,
    /// Times of its first and last sample within the question's span.
    pub span: (i64, i64),
}

/// Series with the parts of the store that hold their samples. It holds pointers, not copies.
pub struct Selection {
    /// The question.
    pub ask: Ask,
    /// The table.
    pub catalog: Arc<Catalog>,
    /// Series with a sample in the span, in the order asked.
    pub wanted: Vec<Wanted>,
    /// By source.
    pub(super) parts: HashMap<SourceId, Part>,
}

/// What of a source is read.
pub(super) struct Part {
    /// Time between its ticks, milliseconds.
    pub interval: i64,
    /// Stretches of the span, oldest first; a stretch has no more than [`HELD`] ticks.
    pub stretches: Vec<Snapshot>,
}

/// Samples that are held at once, about: 4 MiB of them.
pub(super) const HELD: i64 = 1 << 18;
/// How long before the span the sample may lie with which its first rate is made, milliseconds.
pub(super) const LEAD: i64 = 60_000;

impl Selection {
    /// The row of a series.
    pub fn metric(&self, wanted: &Wanted) -> &Metric {
        &self.catalog.metrics[usize::from(wanted.def.metric)]
    }

    /// Unit of the values that are written: that of the row, or of its rate.
    pub fn unit(&self, wanted: &Wanted) -> Unit {
        let unit = self.metric(wanted).unit;
        if self.ask.rate { unit.per_second() } else { unit }
    }

    /// Refuses what has more than `most` values.
    ///
    /// # Errors
    /// [`Refused::Large`], with what to narrow.
    pub fn limited(&self, most: i64) -> Result<(), Refused> {
        let values = |step: i64| -> i64 {
            let one = |wanted: &Wanted| {
                let width = step.max(self.parts.get(&wanted.source).map_or(1, |part| part.interval));
                (wanted.span.1 - wanted.span.0) / width + 1
            };
            self.wanted.iter().map(one).sum()
        };
        let asked = values(self.ask.step.unwrap_or(1));
        if asked <= most {
            return Ok(());
        }
        let longest = self.wanted.iter().map(|w| w.span.1 - w.span.0).max().unwrap_or(0);
        let fits =
            std::iter::successors(Some(1_000), |step| Some(step * 2)).find(|s| values(*s) <= most || *s > longest);
        Err(Refused::Large { series: self.wanted.len(), values: asked, most, step: fits.unwrap_or(longest) })
    }
}

/// Series of all sources that fit a tag in any spelling, or a pattern with `*`, with the times of their first and last
/// sample.
///
/// # Errors
/// The table cannot have such a tag.
pub fn fitting(store: &Store, pattern: &str) -> Result<Vec<Wanted>, TagError> {
    let catalog = store.catalog();
    let exact = if pattern.contains('*') { None } else { Some(catalog.find(pattern)?) };
    let mut all = Vec::new();
    for source in store.sources() {
        let host: Arc<str> = source.name.into();
        for (id, def) in store.series(source.id, 0).iter().enumerate() {
            // No source here has a label yet, so a labelled tag means none of them.
            let fits = exact
                .as_ref()
                .is_none_or(|f| f.label.is_none() && f.metric == def.metric && f.instance == def.instance);
            if !fits || catalog.metric(def).is_none() {
                continue;
            }
            let tag = catalog.tag(def);
            let Some(span) = store.span(source.id, id as SeriesId) else { continue };
            if exact.is_some() || glob(pattern, &tag) {
                all.push(Wanted {
                    source: source.id,
                    host: host.clone(),
                    id: id as SeriesId,
                    def: def.clone(),
                    tag,
                    span,
                });
            }
        }
    }
    Ok(all)
}

/// Chooses the series, and takes hold of what they have stored. Nothing is read yet.
///
/// # Errors
/// [`Refused`], but never for the size of the answer.
pub fn select(store: &Store, ask: Ask) -> Result<Selection, Refused> {
    if ask.tags.is_empty() {
        return Err(Refused::Wrong("say which: ?tag=TAG, in any spelling, repeated, or with * for any text".into()));
    }
    if ask.from > ask.to {
        return Err(Refused::Wrong("from is later than to".into()));
    }
    let catalog = store.catalog().clone();
    let (mut wanted, mut seen) = (Vec::new(), HashSet::new());
    for pattern in &ask.tags {
        let found = fitting(store, pattern).map_err(Refused::Unknown)?;
        let from_here = |host: &str| ask.sources.is_empty() || ask.sources.iter().any(|pattern| glob(pattern, host));
        let exact = !pattern.contains('*');
        for mut one in found.into_iter().filter(|one| from_here(&one.host)) {
            if ask.rate && catalog.metrics[usize::from(one.def.metric)].kind != Kind::Counter {
                if exact {
                    let sentence = format!("{} does not count, so it has no rate; leave out fn=rate for it", one.tag);
                    return Err(Refused::Wrong(sentence));
                }
                continue;
            }
            one.span = (one.span.0.max(ask.from), one.span.1.min(ask.to));
            if one.span.0 <= one.span.1 && seen.insert((one.source, one.id)) {
                wanted.push(one);
            }
        }
    }
    if let Some(name) = ask.sources.iter().find(|name| !store.sources().iter().any(|s| glob(name, &s.name))) {
        let known: Vec<String> = store.sources().into_iter().map(|s| s.name).take(8).collect();
        return Err(Refused::Wrong(format!("there is no source {name:?}; there are {}", known.join(", "))));
    }
    let mut parts = HashMap::new();
    for source in store.sources() {
        let mut own = wanted.iter().filter(|w: &&Wanted| w.source == source.id).map(|w| w.span);
        let Some(first) = own.next() else { continue };
        let (mut from, to) = own.fold(first, |a, b| (a.0.min(b.0), a.1.max(b.1)));
        if ask.rate {
            from = from.saturating_sub(LEAD);
        }
        let interval = source.interval.max(1);
        let stretches = stretches(from, to, HELD * interval, ask.step.unwrap_or(1));
        let stretches = stretches.into_iter().filter_map(|(from, to)| store.snapshot(source.id, from, to));
        parts.insert(source.id, Part { interval, stretches: stretches.collect() });
    }
    Ok(Selection { ask, catalog, wanted, parts })
}

/// Cuts a span into parts of about this length that end where a bucket does.
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

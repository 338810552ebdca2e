//! Series that match a query: tags in any spelling, W&B's `/l:LABEL` behind them, and patterns with `*`.
//!
//! All patterns are matched in one pass, a few series at a time, so that a shared store is locked only briefly. Each
//! series is returned once, however many patterns it matches.

use shared::catalog::{Catalog, Metric, ResolvedTag, TagError, glob, job};
use shared::series::{SeriesDef, SeriesId};
use shared::wire::{Source, SourceId};
use std::sync::Arc;
use stream::store::Store;

/// A store that may be shared: it is locked briefly at a time.
pub trait Look {
    /// Calls `look` with the store. It must be quick: others may wait.
    fn with_store<T>(&self, look: impl FnOnce(&Store) -> T) -> T;

    /// The catalog, limited to the caller's scope.
    fn catalog(&self) -> Arc<Catalog> {
        self.with_store(|store| store.catalog().clone())
    }

    /// The sources that the caller sees.
    fn sources(&self) -> Vec<Arc<Source>> {
        self.with_store(Store::sources)
    }

    /// Whether names of people are hidden from the caller in the records of a source, by its key.
    fn hides_names_of(&self, _key: &str) -> bool {
        false
    }

    /// Whether the series of a chart, by its id, are hidden from the caller.
    fn hides(&self, _chart: &str) -> bool {
        false
    }
}

impl Look for Store {
    fn with_store<T>(&self, look: impl FnOnce(&Store) -> T) -> T {
        look(self)
    }
}

/// A requested series.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The machine's number.
    pub source: SourceId,
    /// Its name.
    pub host: Arc<str>,
    /// The series' number there.
    pub id: SeriesId,
    /// Its definition.
    pub def: SeriesDef,
    /// Its tag, canonical.
    pub tag: String,
    /// Times of its first and last sample within the query's span.
    pub span: (i64, i64),
}

/// Series that are read from a store under one lock.
const MAX_SERIES_A_LOOK: usize = 1_000;

/// The patterns of a query.
pub struct Patterns(Vec<Pattern>);

enum Pattern {
    /// One tag; its label, where it has one, is the machine's name.
    One(ResolvedTag),
    /// A pattern, and, with W&B's label, also its two parts: the pattern of a tag and that of a machine's name.
    Any(String, Option<(String, String)>),
}

/// Whether two rows have one tag: two machines may define it differently.
pub(super) fn same_tag(catalog: &Catalog, one: u16, other: u16) -> bool {
    let tag = |row: u16| catalog.metrics.get(usize::from(row)).map(|metric| &metric.tag);
    one == other || tag(one) == tag(other)
}

impl Pattern {
    fn fits(&self, catalog: &Catalog, host: &str, def: &SeriesDef, tag: &str) -> bool {
        match self {
            Pattern::One(found) => {
                let of_source =
                    || found.instance == def.instance && found.label.as_ref().is_none_or(|label| label == host);
                // The name of a job's value means those of all ranks and runs.
                let of_any = || {
                    let row = catalog.metrics.get(usize::from(found.metric));
                    found.instance.is_empty() && row.is_some_and(|row| job::is_labeled(&row.tag))
                };
                same_tag(catalog, found.metric, def.metric)
                    && (of_source() || of_any() || found.of_rank().is_some_and(|instance| instance == def.instance))
            }
            Pattern::Any(whole, labeled) => {
                let with_label = || labeled.as_ref().is_some_and(|(t, label)| glob(t, tag) && glob(label, host));
                glob(whole, tag) || with_label()
            }
        }
    }
}

impl Patterns {
    /// Parses tags and patterns.
    ///
    /// # Errors
    /// The catalog cannot have such a tag.
    pub fn new<'a>(catalog: &Catalog, texts: impl IntoIterator<Item = &'a str>) -> Result<Self, TagError> {
        let read = |text: &str| {
            Ok(match text.contains('*') {
                false => Pattern::One(catalog.find(text)?),
                true => {
                    Pattern::Any(text.into(), text.split_once("/l:").map(|(tag, label)| (tag.into(), label.into())))
                }
            })
        };
        Ok(Patterns(texts.into_iter().map(read).collect::<Result<_, TagError>>()?))
    }

    /// The tags among them that are no patterns.
    pub fn written_out(&self) -> impl Iterator<Item = &ResolvedTag> {
        self.0.iter().filter_map(|pattern| match pattern {
            Pattern::One(found) => Some(found),
            Pattern::Any(..) => None,
        })
    }

    /// The position of the first pattern that the series matches.
    fn first(&self, catalog: &Catalog, host: &str, def: &SeriesDef, tag: &str) -> Option<usize> {
        self.0.iter().position(|pattern| pattern.fits(catalog, host, def, tag))
    }
}

/// Position of a search through the series of some sources. Series come in the order of sources and of their numbers;
/// those without a sample are left out.
pub struct Search {
    sources: Vec<(SourceId, Arc<str>)>,
    source: usize,
    series: usize,
}

impl Search {
    /// Starts a search.
    pub fn new(sources: impl IntoIterator<Item = Arc<Source>>) -> Self {
        let sources = sources.into_iter().map(|source| (source.id, source.name.as_str().into())).collect();
        Search { sources, source: 0, series: 0 }
    }

    /// The next matching series, perhaps none, each with the position of the first pattern that it matches; `None` at
    /// the end.
    pub fn next(&mut self, store: &impl Look, catalog: &Catalog, patterns: &Patterns) -> Option<Vec<(usize, Wanted)>> {
        let (source, host) = self.sources.get(self.source)?.clone();
        let first = self.series;
        let taken = store.with_store(|store| {
            let defs = store.series(source, first);
            let defs = &defs[..defs.len().min(MAX_SERIES_A_LOOK)];
            defs.iter().cloned().zip(store.spans(source, first)).collect::<Vec<_>>()
        });
        match taken.len() < MAX_SERIES_A_LOOK {
            true => (self.source, self.series) = (self.source + 1, 0),
            false => self.series += MAX_SERIES_A_LOOK,
        }
        let fits = |(i, (def, span)): (usize, (SeriesDef, Option<(i64, i64)>))| {
            // Rows added after this copy of the catalog belong to the next query.
            let is_shown = |metric: &&Metric| !metric.tag.is_empty() && !store.hides(&metric.chart);
            let (span, _) = (span?, catalog.metric(&def).filter(is_shown)?);
            let tag = catalog.tag(&def);
            let at = patterns.first(catalog, &host, &def, &tag)?;
            Some((at, Wanted { source, host: host.clone(), id: (first + i) as SeriesId, def, tag, span }))
        };
        Some(taken.into_iter().enumerate().filter_map(fits).collect())
    }
}

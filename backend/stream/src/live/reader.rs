//! What one reader may see of the stream.

use super::{KnownIndex, Live};
use shared::catalog::Catalog;
use shared::scope::Scope;
use shared::wire::{IndexEntry, Source, SourceId};
use std::sync::Arc;

/// The stream as one reader sees it: a source beyond its scope is not there. Everything that answers a request asks this for
/// the sources that there are, and nothing else.
#[derive(Clone)]
pub struct Reader {
    live: Arc<Live>,
    scope: Scope,
}

impl Reader {
    /// The stream within a scope.
    pub fn new(live: Arc<Live>, scope: Scope) -> Self {
        Reader { live, scope }
    }

    /// The stream itself, for what is known of a source that was found here.
    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// What may be seen.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The sources, in their order.
    pub fn sources(&self) -> Vec<Arc<Source>> {
        let mut sources = self.live.store().sources();
        sources.retain(|source| self.scope.sees(&source.key));
        sources
    }

    /// The table: the rows of the collectors, and those that a series of one of the sources names.
    pub fn catalog(&self) -> Arc<Catalog> {
        let store = self.live.store();
        match &self.scope {
            Scope::All => store.catalog().clone(),
            scope => store.catalog_of(|source| scope.sees(&source.key), |chart| scope.hides(chart)),
        }
    }

    /// How each of the sources stands, in their order.
    pub fn index(&self) -> Vec<IndexEntry> {
        self.live.find_late();
        self.live.index(&self.scope, &mut KnownIndex::default())
    }

    /// Whether a source is there, by its number.
    pub fn sees(&self, source: SourceId) -> bool {
        self.live.store().source(source).is_some_and(|(source, _)| self.scope.sees(&source.key))
    }
}

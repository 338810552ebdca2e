//! The part of the stream that one reader may see.

use super::{KnownIndex, Live};
use shared::catalog::Catalog;
use shared::scope::Scope;
use shared::wire::{IndexEntry, Source, SourceId};
use std::sync::Arc;

/// The stream as one reader sees it: sources outside its scope do not exist for it. Every request handler gets its
/// sources from here, and from nowhere else.
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

    /// The stream itself, for data of a source that was looked up here.
    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// The scope of this reader.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The sources, in their order.
    pub fn sources(&self) -> Vec<Arc<Source>> {
        let mut sources = self.live.store().sources();
        sources.retain(|source| self.scope.sees(&source.key));
        sources
    }

    /// The table: the rows of the collectors, and those used by a series of one of the sources.
    pub fn catalog(&self) -> Arc<Catalog> {
        let store = self.live.store();
        match &self.scope {
            Scope::All => store.catalog().clone(),
            scope => store.catalog_of(|source| scope.sees(&source.key), |chart| scope.hides(chart)),
        }
    }

    /// State of each of the sources, in their order.
    pub fn index(&self) -> Vec<IndexEntry> {
        self.live.find_late();
        self.live.index(&self.scope, &mut KnownIndex::default())
    }

    /// Whether a source is visible, by its number.
    pub fn sees(&self, source: SourceId) -> bool {
        self.live.store().source(source).is_some_and(|(source, _)| self.scope.sees(&source.key))
    }
}

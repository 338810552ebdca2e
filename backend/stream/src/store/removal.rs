//! Sources that were removed: of them nothing is read and nothing is taken any more.

use super::Store;
use shared::wire::SourceId;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Store {
    /// Removes the sources of these keys for good: what memory has of them goes at once. Segments that have some of them
    /// still are to be written anew without them. Keys of no source are remembered as well, for what is found of them.
    pub fn remove_sources(&mut self, keys: impl IntoIterator<Item = String>) {
        let new: Vec<String> = keys.into_iter().filter(|key| !self.removed.contains(key)).collect();
        let sources: Vec<SourceId> = new.iter().filter_map(|key| self.named(key)).collect();
        for source in sources {
            self.change(source, super::kept::Kept::remove_all);
        }
        if !new.is_empty() {
            Arc::make_mut(&mut self.removed).extend(new);
        }
    }

    /// Keys of the sources that were removed.
    pub fn removed(&self) -> &Arc<BTreeSet<String>> {
        &self.removed
    }

    /// Whether a source was removed.
    pub fn is_removed(&self, source: SourceId) -> bool {
        self.kept(source).is_some_and(|kept| kept.removed)
    }
}

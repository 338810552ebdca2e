//! Removed sources: their data is neither read nor accepted any more.

use super::Store;
use shared::wire::SourceId;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Store {
    /// Removes the sources of these keys for good. Their data in memory is dropped at once. Segments with data of them
    /// have to be rewritten. Keys without a source are stored as well, for data found later.
    pub fn remove_sources(&mut self, keys: impl IntoIterator<Item = String>) {
        let new: Vec<String> = keys.into_iter().filter(|key| !self.removed.contains(key)).collect();
        let sources: Vec<SourceId> = new.iter().filter_map(|key| self.named(key)).collect();
        for source in sources {
            self.change(source, super::kept::KeptSource::remove_all);
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

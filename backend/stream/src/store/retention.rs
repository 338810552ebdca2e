//! How long each source is kept, where not all are kept equally long.

use super::Store;
use shared::wire::SourceId;
use std::collections::HashMap;
use std::sync::Arc;

/// Milliseconds by key, of the sources that are kept for another time than all.
pub type Retentions = HashMap<String, i64>;

impl Store {
    /// Says which sources are kept for another time than all. What they had goes by the new time; what of it lies in a file
    /// beside others stays as long as those.
    pub fn set_retentions(&mut self, retentions: Retentions) {
        if *self.retentions != retentions {
            self.retentions = Arc::new(retentions);
        }
    }

    /// Which sources are kept for another time than all.
    pub fn retentions(&self) -> &Arc<Retentions> {
        &self.retentions
    }

    /// How long a source is kept, milliseconds.
    pub fn retention(&self, source: SourceId) -> i64 {
        let own = |kept: &super::Kept| self.retentions.get(&kept.info.key).copied();
        let own = if self.retentions.is_empty() { None } else { self.kept(source).and_then(own) };
        own.unwrap_or(self.limits.retention)
    }
}

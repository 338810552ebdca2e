//! Retention of each source, if it differs between sources.

use super::Store;
use shared::wire::SourceId;
use std::collections::HashMap;
use std::sync::Arc;

/// Milliseconds by key, of the sources with a retention of their own.
pub type Retentions = HashMap<String, i64>;

impl Store {
    /// Sets the sources with a retention of their own. It applies to their existing data, too. Data in a file shared
    /// with other sources stays as long as theirs.
    pub fn set_retentions(&mut self, retentions: Retentions) {
        if *self.retentions != retentions {
            self.retentions = Arc::new(retentions);
        }
    }

    /// The sources with a retention of their own.
    pub fn retentions(&self) -> &Arc<Retentions> {
        &self.retentions
    }

    /// Retention of a source, milliseconds.
    pub fn retention(&self, source: SourceId) -> i64 {
        let own = |kept: &super::KeptSource| self.retentions.get(&kept.info.key).copied();
        let own = if self.retentions.is_empty() { None } else { self.kept(source).and_then(own) };
        own.unwrap_or(self.limits.retention)
    }
}

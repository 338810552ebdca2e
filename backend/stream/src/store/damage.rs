//! Damaged parts of the history on disk: counted once, logged once, never shown as a value.

use super::{Block, Unread};
use parking_lot::Mutex;
use shared::series::SeriesId;
use std::collections::BTreeSet;

/// Maximum number of remembered places; further ones are not counted.
const MAX_PLACES: usize = 10_000;

/// Damaged places that readers met: the place of the block, and the series, none for the whole block.
#[derive(Debug, Default)]
pub struct Damages(Mutex<BTreeSet<(String, Option<SeriesId>)>>);

impl Damages {
    /// Number of columns and whole blocks that could not be read.
    pub fn count(&self) -> u64 {
        self.0.lock().len() as u64
    }

    /// The data, or none if it is damaged. `id` is the series, none for data of the whole block.
    pub fn checked<T>(&self, block: &Block, id: Option<SeriesId>, read: Result<T, Unread>) -> Option<T> {
        read.inspect_err(|_| self.met(block, id)).ok()
    }

    /// Whether any part of a block is damaged.
    pub fn contains_block(&self, block: &Block) -> bool {
        let known = self.0.lock();
        if known.is_empty() {
            return false;
        }
        let place = block.place();
        known.range((place.clone(), None)..).next().is_some_and(|(known, _)| *known == place)
    }

    /// Counts a damaged place.
    pub fn met(&self, block: &Block, id: Option<SeriesId>) {
        self.met_at(block.place(), id);
    }

    /// Counts a damaged place by name.
    pub(super) fn met_at(&self, place: String, id: Option<SeriesId>) {
        let mut known = self.0.lock();
        if known.len() < MAX_PLACES && known.insert((place.clone(), id)) {
            tracing::warn!(place, series = id, "damaged on disk: left out, and shown as a gap");
        }
    }
}

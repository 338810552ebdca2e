//! Segments by retention. Sources with different retentions are in separate files, so that whole files expire.

use super::Batch;
use crate::live::Live;
use crate::store::{Retentions, Unwritten};
use history::Segment;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Retention of each segment.
pub(super) struct Classes {
    /// Retention of sources without one of their own, milliseconds.
    usual: i64,
    own: Arc<Retentions>,
    /// Computed retentions, milliseconds, by serial of the segment. There are hundreds of segments of a thousand
    /// sources each, and each is looked up every second.
    found: HashMap<u64, i64>,
}

impl Classes {
    pub fn new(usual: i64) -> Self {
        Classes { usual, own: Arc::default(), found: HashMap::new() }
    }

    /// Reads the current retentions of the sources. `segments` are all existing segments.
    pub fn renew(&mut self, live: &Live, segments: &[Arc<Segment>]) {
        let own = live.store().retentions().clone();
        if !Arc::ptr_eq(&own, &self.own) {
            (self.own, self.found) = (own, HashMap::new());
        }
        let known = std::mem::take(&mut self.found);
        for segment in segments {
            let serial = segment.name().serial;
            let found = known.get(&serial).copied().unwrap_or_else(|| self.find(segment));
            self.found.insert(serial, found);
        }
    }

    /// Retention of a segment, milliseconds: the longest among its sources.
    pub fn class_of(&self, segment: &Segment) -> i64 {
        self.found.get(&segment.name().serial).copied().unwrap_or_else(|| self.find(segment))
    }

    fn find(&self, segment: &Segment) -> i64 {
        let all = segment.contents().sources.iter().map(|source| self.own.get(&source.name).copied());
        all.map(|own| own.unwrap_or(self.usual)).max().unwrap_or(self.usual)
    }

    /// The segments of each class.
    pub fn split(&self, segments: Vec<Arc<Segment>>) -> impl Iterator<Item = Vec<Arc<Segment>>> + use<> {
        let mut classes: BTreeMap<i64, Vec<Arc<Segment>>> = BTreeMap::new();
        segments.into_iter().for_each(|segment| classes.entry(self.class_of(&segment)).or_default().push(segment));
        classes.into_values()
    }
}

/// The parts of a batch by retention. Only the last part carries the log number, because the log is needed until that
/// part is written.
pub(super) fn split(live: &Live, batch: Batch) -> Vec<Batch> {
    let mut classes: BTreeMap<i64, Vec<Unwritten>> = BTreeMap::new();
    for unwritten in batch.sources.into_iter().filter(|unwritten| !unwritten.is_empty()) {
        let kept = live.store().retention(unwritten.source);
        classes.entry(kept).or_default().push(unwritten);
    }
    let last = classes.pop_last().map(|(_, sources)| sources).unwrap_or_default();
    let others = classes.into_values().map(|sources| Batch { start: batch.start, through: 0, sources });
    others.chain([Batch { start: batch.start, through: batch.through, sources: last }]).collect()
}

//! Segments by how long they are kept: what is kept for another time is in files of its own, so that whole files expire.

use super::Batch;
use crate::live::Live;
use crate::store::{Retentions, Unwritten};
use history::Segment;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// How long each segment is kept.
pub(super) struct Classes {
    /// Of sources of which nothing else is said, milliseconds.
    usual: i64,
    own: Arc<Retentions>,
    /// What was found for segments, by serial: there are hundreds of a thousand sources each, and it is asked every second.
    found: HashMap<u64, i64>,
}

impl Classes {
    pub fn new(usual: i64) -> Self {
        Classes { usual, own: Arc::default(), found: HashMap::new() }
    }

    /// Learns how long sources are kept now. `segments` are those that there are.
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

    /// How long a segment is kept, milliseconds: as long as the source in it that is kept longest.
    pub fn of(&self, segment: &Segment) -> i64 {
        self.found.get(&segment.name().serial).copied().unwrap_or_else(|| self.find(segment))
    }

    fn find(&self, segment: &Segment) -> i64 {
        let all = segment.contents().sources.iter().map(|source| self.own.get(&source.name).copied());
        all.map(|own| own.unwrap_or(self.usual)).max().unwrap_or(self.usual)
    }

    /// The segments of each class.
    pub fn split(&self, segments: Vec<Arc<Segment>>) -> impl Iterator<Item = Vec<Arc<Segment>>> + use<> {
        let mut classes: BTreeMap<i64, Vec<Arc<Segment>>> = BTreeMap::new();
        segments.into_iter().for_each(|segment| classes.entry(self.of(&segment)).or_default().push(segment));
        classes.into_values()
    }
}

/// The parts of a batch that are kept equally long. The last alone speaks of the log, which is needed until it is written.
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

//! Log records of a store, such that each file can be read alone.
//!
//! A file begins with an opening: each source that has ticked, its series, and a keyframe. Series are defined with
//! their first value in the file, so idle ones cost nothing. [`Journal`] decides about repeated definitions.

use super::kept::KeptSource;
use super::{Encoded, EncodedRecord, Store};
use history::Journal;
use shared::series::SeriesId;
use shared::wire::SourceId;
use std::collections::BTreeSet;

/// Definitions written to the current file.
#[derive(Debug, Default)]
pub struct AnnouncedSeries(Journal);

impl AnnouncedSeries {
    /// The opening of a new file: every source that has ticked, in its present state. With `unsealed`, the state before
    /// the unsealed ticks, followed by those ticks and the records that no cut has returned.
    pub fn opening(&mut self, store: &Store, unsealed: bool) -> Vec<u8> {
        self.opening_of(store, unsealed, |_| true)
    }

    /// The opening of a new file at a cut. Only `idle` sources, which have had no tick since, are in it. The others are
    /// defined with their next tick, if there is one: all at once would delay every tick of a thousand machines. Their
    /// earlier data is in the segment of this cut.
    pub fn opening_at_cut(&mut self, store: &Store, idle: &BTreeSet<SourceId>) -> Vec<u8> {
        self.opening_of(store, false, |source| idle.contains(&source))
    }

    fn opening_of(&mut self, store: &Store, unsealed: bool, wanted: impl Fn(SourceId) -> bool) -> Vec<u8> {
        self.0 = Journal::default();
        let mut out = Vec::new();
        let begun = |kept: &KeptSource| kept.state.seq() > 0 || kept.records.uncut().next().is_some();
        let told = |(source, kept): &(SourceId, &KeptSource)| begun(kept) && !kept.removed && wanted(*source);
        for (source, kept) in (0..).zip(&store.sources).filter(told) {
            let base = if unsealed { kept.base_of_unsealed() } else { &kept.state };
            let mut present: BTreeSet<SeriesId> = finite(base.values()).collect();
            let stretches = if unsealed { kept.unsealed(i64::MIN) } else { Vec::new() };
            for stretch in &stretches {
                // The store's own frames always follow each other, here and below.
                let _ = stretch.replay(|_, state| present.extend(finite(state.values())));
            }
            self.define(&mut out, store, source, kept, present);
            self.0.keyframe(&mut out, source, &base.keyframe());
            for stretch in &stretches {
                let _ =
                    stretch.replay(|frame, state| self.0.tick(&mut out, source, frame.bytes(), || state.keyframe()));
            }
            if unsealed {
                kept.records.uncut().for_each(|record| self.0.record(&mut out, source, record));
            }
        }
        out
    }

    /// The log records for a tick that is about to be pushed.
    pub fn tick(&mut self, store: &Store, encoded: &Encoded) -> Vec<u8> {
        let (source, mut out) = (encoded.source, Vec::with_capacity(encoded.bytes().len() + 32));
        let Some(kept) = store.kept(source) else { return out };
        let first = !self.0.knows(source);
        if first {
            // Its keyframe contains series that may be absent in this tick.
            self.define(&mut out, store, source, kept, finite(kept.state.values()));
        }
        self.define(&mut out, store, source, kept, finite(kept.encoder.values()));
        if first {
            self.0.keyframe(&mut out, source, &kept.state.keyframe());
        }
        self.0.tick(&mut out, source, encoded.bytes(), || kept.encoder.keyframe());
        out
    }

    /// The log records for a record that is about to be pushed.
    pub fn record(&mut self, store: &Store, encoded: &EncodedRecord) -> Vec<u8> {
        let (source, mut out) = (encoded.source, Vec::with_capacity(encoded.record.size() + 32));
        let Some(kept) = store.kept(source) else { return out };
        if !self.0.knows(source) {
            self.define(&mut out, store, source, kept, finite(kept.state.values()));
            self.0.keyframe(&mut out, source, &kept.state.keyframe());
        }
        self.0.record(&mut out, source, &encoded.record);
        out
    }

    /// Writes the definitions of a source and these of its series, unless they are written.
    fn define(
        &mut self,
        out: &mut Vec<u8>,
        store: &Store,
        source: SourceId,
        kept: &KeptSource,
        ids: impl IntoIterator<Item = SeriesId>,
    ) {
        let info = &kept.info;
        if !self.0.knows(source) {
            self.0.source(out, source, &info.key, info.interval, &info.facts);
        }
        // A frame contains the number of series, so its reader needs the definition of the last.
        let last = kept.series.defs().len().checked_sub(1).map(|last| last as SeriesId);
        let defs = ids.into_iter().chain(last).filter_map(|id| Some((id, kept.series.defs().get(id as usize)?)));
        self.0.series(out, source, store.catalog(), defs);
    }
}

fn finite(values: &[f64]) -> impl Iterator<Item = SeriesId> + '_ {
    (0..).zip(values).filter(|(_, v)| v.is_finite()).map(|(id, _)| id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Limits;
    use history::log::Entry;
    use shared::catalog::cpu;
    use shared::series::SeriesDef;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    fn store() -> (Store, SourceId) {
        let catalog = Arc::new(shared::catalog::Catalog::new(cpu::ROWS.iter().copied()));
        let mut store = Store::new(catalog, Limits { retention: i64::MAX / 2, bytes: usize::MAX });
        let source = store.add_source("machine".into(), 1_000, Vec::new());
        (store, source)
    }

    #[test]
    fn ticks_that_are_written_again_have_a_keyframe_a_minute() {
        let (mut store, source) = store();
        store.intern(source, SeriesDef { metric: 0, instance: "0".into() }).unwrap();
        for t in 0..150 {
            store.append(source, 1_000 * t, false, &[t as f64]).unwrap();
        }
        let log = AnnouncedSeries::default().opening(&store, true);
        let (records, _) = history::log::scan(&log);
        let count = |wanted: fn(&Entry<'_>) -> bool| records.iter().filter(|(_, r)| wanted(r)).count();
        assert_eq!(count(|r| matches!(r, Entry::Tick { .. })), 150);
        assert_eq!(count(|r| matches!(r, Entry::Keyframe { .. })), 1 + 150 / 60);
    }

    #[test]
    fn every_series_is_told_twice_whenever_it_comes() {
        let (mut store, source) = store();
        let (mut told, mut log) = (AnnouncedSeries::default(), Vec::new());
        for tick in 0..240 {
            if tick % 50 == 0 {
                store.intern(source, SeriesDef { metric: 0, instance: format!("from {tick}") }).unwrap();
            }
            let values = vec![tick as f64; 1 + tick as usize / 50];
            let encoded = store.encode(source, 1_000 * tick as i64, false, &values).unwrap();
            log.extend(told.tick(&store, &encoded));
            store.push(encoded);
        }
        let (records, gaps) = history::log::scan(&log);
        assert_eq!(gaps, []);
        let mut times: BTreeMap<SeriesId, usize> = BTreeMap::new();
        for (_, record) in records {
            if let Entry::Series { series, .. } = record {
                series.iter().for_each(|(id, ..)| *times.entry(*id).or_default() += 1);
            }
        }
        assert_eq!(times.len(), 5);
        assert!(times.iter().all(|(id, times)| *times >= 2 || *id == 4), "{times:?}");
    }
}

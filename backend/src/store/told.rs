//! What a log file has been told: every tick as a record, and ahead of it what a reader of that file needs to know to
//! understand it.
//!
//! A file begins with an opening: each source that has ticked, its series, and a keyframe. Series are told with the first
//! value they have in the file, so idle ones cost nothing. A keyframe is repeated every [`KEYFRAME`] ticks, and ahead of it
//! all definitions since the one before, so that one damaged stretch costs at most that many ticks of a source.

use super::{Encoded, Store};
use history::log::{Record, Table, put};
use shared::catalog::Chart;
use shared::series::SeriesId;
use shared::tick::TickState;
use shared::wire::SourceId;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Ticks between two keyframes of a source.
const KEYFRAME: u64 = 60;

/// Rows or series in one record, which is far below the longest record.
const MOST: usize = 5_000;

/// What the present file has been told.
#[derive(Debug, Default)]
pub struct Told {
    sources: Vec<Option<ToldSource>>,
    rows: BTreeSet<u16>,
}

#[derive(Debug, Default)]
struct ToldSource {
    series: Vec<bool>,
    /// A keyframe of it stands in the file.
    begun: bool,
    /// Ticks since the first keyframe.
    ticks: u64,
    /// Told once; again with the next keyframe.
    once: BTreeSet<SeriesId>,
}

impl Told {
    /// The opening of a new file: every source that has ticked, as it stands now. With `unsealed` as it stood before what
    /// is not sealed, and then those ticks and the late samples.
    pub fn opening(&mut self, store: &Store, unsealed: bool) -> Vec<u8> {
        *self = Told::default();
        let mut out = Vec::new();
        for (source, kept) in (0..).zip(&store.sources).filter(|(_, kept)| kept.state.seq() > 0) {
            let base = if unsealed { kept.base_of_unsealed() } else { &kept.state };
            let mut present: BTreeSet<SeriesId> = finite(base.values()).collect();
            let stretches = if unsealed { kept.unsealed(i64::MIN) } else { Vec::new() };
            for stretch in &stretches {
                // This store's own frames follow each other.
                let _ = stretch.replay(|_, values| present.extend(finite(values)));
            }
            if unsealed {
                present.extend(kept.late.keys());
            }
            self.define(&mut out, store, source, present, false);
            put(&mut out, &Record::Keyframe { source, frame: &base.keyframe() });
            self.source(source).begun = true;
            for frame in stretches.iter().flat_map(|stretch| &stretch.frames) {
                put(&mut out, &Record::Tick { source, frame: frame.bytes() });
            }
            let late = kept.late.iter().flat_map(|(id, all)| all.iter().map(|(t, v)| (*id, *t, *v)));
            if unsealed {
                late_records(&mut out, source, late.collect());
            }
        }
        out
    }

    /// The records of a tick that is about to be pushed.
    pub fn tick(&mut self, store: &Store, encoded: &Encoded) -> Vec<u8> {
        let (source, mut out) = (encoded.source, Vec::with_capacity(encoded.bytes().len() + 32));
        let Some(kept) = store.kept(source) else { return out };
        let known = self.source(source);
        let (ticks, first) = (known.ticks, !std::mem::replace(&mut known.begun, true));
        let keyframe = first || (ticks > 0 && ticks.is_multiple_of(KEYFRAME));
        known.ticks += 1;
        let new = |known: &ToldSource, state: &TickState| {
            let told = |id: &SeriesId| known.series.get(*id as usize).is_some_and(|told| *told);
            finite(state.values()).filter(|id| !told(id)).collect::<BTreeSet<_>>()
        };
        let new = new(known, &kept.encoder);
        let once = if keyframe && !first { std::mem::take(&mut known.once) } else { BTreeSet::new() };
        if first || !new.is_empty() || known.series.len() < kept.encoder.steps().len() {
            self.define(&mut out, store, source, new, false);
        }
        if !once.is_empty() {
            self.define(&mut out, store, source, once, true);
        }
        if keyframe {
            put(&mut out, &Record::Keyframe { source, frame: &kept.state.keyframe() });
        }
        put(&mut out, &Record::Tick { source, frame: encoded.bytes() });
        out
    }

    /// The records of late samples.
    pub fn late(&mut self, store: &Store, source: SourceId, samples: &[(SeriesId, i64, f64)]) -> Vec<u8> {
        let mut out = Vec::new();
        let known = self.source(source);
        let told = |id: &SeriesId| known.series.get(*id as usize).is_some_and(|told| *told);
        let new: BTreeSet<SeriesId> = samples.iter().map(|(id, ..)| *id).filter(|id| !told(id)).collect();
        if !new.is_empty() {
            self.define(&mut out, store, source, new, false);
        }
        late_records(&mut out, source, samples.to_vec());
        out
    }

    fn source(&mut self, source: SourceId) -> &mut ToldSource {
        let at = usize::from(source);
        if self.sources.len() <= at {
            self.sources.resize_with(at + 1, || None);
        }
        self.sources[at].get_or_insert_default()
    }

    /// Tells of a source and these of its series, and of the rows that they name; `again` though they have been told.
    fn define(&mut self, out: &mut Vec<u8>, store: &Store, source: SourceId, mut ids: BTreeSet<SeriesId>, again: bool) {
        let Some(kept) = store.kept(source) else { return };
        // A frame says how many series there are: its reader must have heard of the last.
        ids.extend(kept.defs.len().checked_sub(1).map(|last| last as SeriesId));
        let info = &kept.info;
        let (name, facts) = (Cow::Borrowed(&info.name[..]), info.facts.clone());
        put(out, &Record::Source { source, name, interval: info.interval, facts });
        let defs: Vec<_> = ids.iter().filter_map(|&id| Some((id, kept.defs.get(id as usize)?))).collect();
        let catalog = store.catalog();
        let named: BTreeSet<u16> = defs.iter().map(|(_, def)| def.metric).collect();
        let new = named.into_iter().filter(|row| self.rows.insert(*row) || again);
        let rows: Vec<_> = new.filter_map(|row| Some((row, catalog.metrics.get(usize::from(row))?.clone()))).collect();
        for rows in rows.chunks(MOST) {
            let drawn: BTreeSet<&str> = rows.iter().map(|(_, metric)| &metric.chart[..]).collect();
            let charts: Vec<Chart> =
                catalog.layout.charts.iter().filter(|chart| drawn.contains(&chart.id[..])).cloned().collect();
            put(out, &Record::Rows(Table { rows: rows.to_vec(), charts }));
        }
        for defs in defs.chunks(MOST) {
            let series = defs.iter().map(|(id, def)| (*id, def.metric, Cow::Borrowed(&def.instance[..])));
            put(out, &Record::Series { source, series: series.collect() });
        }
        let known = self.source(source);
        known.series.resize(known.series.len().max(kept.defs.len()), false);
        ids.iter().for_each(|id| known.series[*id as usize] = true);
        if !again {
            known.once.append(&mut ids);
        }
    }
}

fn finite(values: &[f64]) -> impl Iterator<Item = SeriesId> + '_ {
    (0..).zip(values).filter(|(_, v)| v.is_finite()).map(|(id, _)| id)
}

fn late_records(out: &mut Vec<u8>, source: SourceId, samples: Vec<(SeriesId, i64, f64)>) {
    for samples in samples.chunks(10 * MOST) {
        put(out, &Record::Late { source, samples: samples.to_vec() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Limits;
    use shared::catalog::cpu;
    use shared::series::SeriesDef;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    #[test]
    fn every_series_is_told_twice_whenever_it_comes() {
        let catalog = Arc::new(shared::catalog::Catalog::new(cpu::ROWS.iter().copied()));
        let mut store = Store::new(catalog, Limits { retention: i64::MAX / 2, bytes: usize::MAX });
        let source = store.add_source("machine".into(), 1_000, Vec::new());
        let (mut told, mut log) = (Told::default(), Vec::new());
        for tick in 0..4 * KEYFRAME {
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
            if let Record::Series { series, .. } = record {
                series.iter().for_each(|(id, ..)| *times.entry(*id).or_default() += 1);
            }
        }
        assert_eq!(times.len(), 5);
        assert!(times.iter().all(|(id, times)| *times >= 2 || *id == 4), "{times:?}");
    }
}

//! Appending ticks, alone and in groups, and records. Each is logged, if there is a log, before a reader sees it.

use super::{Live, Writing};
use crate::store::{Encoded, EncodedRecord, RecordRefused, Store};
use shared::wire::SourceId;
use std::sync::atomic::Ordering;

/// Maximum number of ticks encoded under one lock: others wait about a millisecond for it.
const MAX_GROUP: usize = 64;

/// A tick that is to be appended.
#[derive(Clone, Copy, Debug)]
pub struct NewTick<'a> {
    /// The source.
    pub source: SourceId,
    /// Its sequence, if assigned elsewhere: above the newest; see [`Store::encode_at`](crate::store::Store::encode_at).
    pub seq: Option<u64>,
    /// Its time, milliseconds since the Unix epoch.
    pub t: i64,
    /// The wall clock was set between the tick before and this one.
    pub clock_step: bool,
    /// By series id; NaN is absent.
    pub values: &'a [f64],
}

impl Live {
    /// Appends a tick of a source. `values` are by series id, NaN is absent.
    ///
    /// Returns its sequence. None for an unknown source, at an instant that already has a tick, and after
    /// [`close`](Self::close). Readers are notified by the next [`announce`](Self::announce).
    pub fn append(&self, source: SourceId, t: i64, clock_step: bool, values: &[f64]) -> Option<u64> {
        self.append_all(&[NewTick { source, seq: None, t, clock_step, values }]).pop()?
    }

    /// Likewise a tick with a sequence assigned elsewhere, above the newest; see
    /// [`Store::encode_at`](crate::store::Store::encode_at).
    pub fn append_at(&self, source: SourceId, seq: u64, t: i64, clock_step: bool, values: &[f64]) -> Option<u64> {
        self.append_all(&[NewTick { source, seq: Some(seq), t, clock_step, values }]).pop()?
    }

    /// Appends ticks in this order, also of many sources. They are encoded under one lock, logged by one write, and
    /// then made visible.
    ///
    /// Returns the sequence of each. None as for [`append`](Self::append), and for a given sequence that is not above
    /// the newest.
    pub fn append_all(&self, ticks: &[NewTick]) -> Vec<Option<u64>> {
        let mut sequences = Vec::with_capacity(ticks.len());
        while sequences.len() < ticks.len() {
            let left = &ticks[sequences.len()..];
            // A tick is encoded after the one before it is visible, so a group has one tick of each source.
            let alone = |at: &usize| !left[..*at].iter().any(|before| before.source == left[*at].source);
            let count = (0..left.len().min(MAX_GROUP)).take_while(alone).count();
            self.append_group(&left[..count], &mut sequences);
        }
        sequences
    }

    fn append_group(&self, ticks: &[NewTick], sequences: &mut Vec<Option<u64>>) {
        let mut writing = self.writing();
        let mut encoded: Vec<Option<Encoded>> = Vec::with_capacity(ticks.len());
        let mut records = Vec::new();
        if !writing.closed {
            let mut store = self.store();
            let Writing { log, told, .. } = &mut *writing;
            for tick in ticks {
                let NewTick { source, seq, t, clock_step, values } = *tick;
                let new = match seq {
                    None => store.encode(source, t, clock_step, values),
                    Some(seq) => store.encode_at(source, seq, t, clock_step, values),
                };
                if let (Some(new), true) = (&new, log.is_some()) {
                    match records.is_empty() {
                        true => records = told.tick(&store, new),
                        false => records.extend(told.tick(&store, new)),
                    }
                }
                encoded.push(new);
            }
        }
        encoded.resize_with(ticks.len(), || None);
        if let (Some(log), false) = (&writing.log, records.is_empty()) {
            // The archive handles a disk that hangs or fails: the page continues.
            log.write(records);
        }
        for (tick, _) in ticks.iter().zip(&encoded).filter(|(_, new)| new.is_some()) {
            let samples = tick.values.iter().filter(|value| value.is_finite()).count();
            self.source(tick.source).taken.samples.fetch_add(samples as u64, Ordering::Relaxed);
        }
        let mut store = self.store();
        sequences.extend(encoded.into_iter().map(|new| new.map(|new| store.push(new))));
    }

    /// Appends a record to a source and returns its number. `t` is its time, milliseconds since the Unix epoch.
    /// [`shared::record::check`] defines valid values of `kind` and `body`. Readers are notified by the next
    /// [`announce`](Self::announce).
    ///
    /// # Errors
    /// [`RecordRefused`].
    pub fn append_record(&self, source: SourceId, t: i64, kind: &str, body: Vec<u8>) -> Result<u64, RecordRefused> {
        // Always a number: it is the next one.
        self.append_encoded(|store| store.encode_record(source, t, kind, body).map(Some)).map(Option::unwrap_or_default)
    }

    /// Likewise a record with a number assigned elsewhere; none if that is not above the newest.
    ///
    /// # Errors
    /// [`RecordRefused`].
    pub fn append_record_at(
        &self,
        source: SourceId,
        n: u64,
        t: i64,
        kind: &str,
        body: Vec<u8>,
    ) -> Result<Option<u64>, RecordRefused> {
        self.append_encoded(|store| store.encode_record_at(source, n, t, kind, body))
    }

    fn append_encoded(
        &self,
        encode: impl FnOnce(&Store) -> Result<Option<EncodedRecord>, RecordRefused>,
    ) -> Result<Option<u64>, RecordRefused> {
        let mut writing = self.writing();
        if writing.closed {
            return Err(RecordRefused::Closed);
        }
        let (encoded, bytes) = {
            let store = self.store();
            let Some(encoded) = encode(&store)? else { return Ok(None) };
            let Writing { log, told, .. } = &mut *writing;
            let bytes = log.as_ref().map(|_| told.record(&store, &encoded));
            (encoded, bytes)
        };
        if let (Some(log), Some(bytes)) = (&writing.log, bytes) {
            log.write(bytes);
        }
        Ok(Some(self.store().push_record(encoded)))
    }

    /// Whether all appended data is in the log, as far as is known; true without a data folder.
    pub fn is_logged(&self) -> bool {
        self.writing().log.as_ref().is_none_or(|log| log.health().failing.is_none())
    }

    /// Ends the log in order; nothing is appended after it. Waits for the disk at most as long as
    /// [`Log::close`](history::Log::close) does.
    pub fn close(&self) {
        let mut writing = self.writing();
        writing.closed = true;
        if let Some(log) = writing.log.take()
            && !log.close()
        {
            tracing::warn!("the disk did not take the last ticks in time");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Manual;
    use crate::store::Limits;
    use shared::catalog::{Catalog, cpu};
    use shared::series::SeriesDef;
    use std::sync::Arc;
    use std::time::Duration;

    fn live(sources: u16) -> Arc<Live> {
        let catalog = Arc::new(Catalog::new(cpu::ROWS.iter().copied()));
        let mut store = Store::new(catalog, Limits { retention: 3_600_000, bytes: usize::MAX });
        for n in 0..sources {
            let source = store.add_source(n.to_string(), 1_000, Vec::new());
            store.intern(source, SeriesDef { metric: 0, instance: String::new() }).expect("room");
        }
        Live::new(store, Arc::new(Manual::at(0, Duration::ZERO)), 1, 3_600_000)
    }

    #[test]
    fn a_group_becomes_what_its_ticks_become_one_by_one() {
        let (together, alone) = (live(100), live(100));
        for round in 0..5i64 {
            let value = |n: i64| [(n * 7 + round) as f64];
            let values: Vec<[f64; 1]> = (0..250).map(value).collect();
            let tick = |n: i64| NewTick {
                // Two or three ticks of most sources in a group, and some sources that do not exist.
                source: (n % 103) as u16,
                seq: (n % 5 == 0).then_some((round * 50 + n) as u64),
                t: round * 10_000 + n,
                clock_step: n == 7,
                values: &values[n as usize],
            };
            let ticks: Vec<NewTick> = (0..250).map(tick).collect();
            let one_by_one: Vec<Option<u64>> =
                ticks.iter().flat_map(|tick| alone.append_all(std::slice::from_ref(tick))).collect();
            assert_eq!(together.append_all(&ticks), one_by_one);
            assert!(one_by_one.iter().filter(|seq| seq.is_none()).count() > 3, "some are refused");
        }
        for source in 0..100 {
            let all = |live: &Live| live.store().snapshot(source, i64::MIN, i64::MAX).expect("a source").samples(&[0]);
            assert_eq!(all(&together), all(&alone));
            assert_eq!(together.store().coverage(source), alone.store().coverage(source));
        }
        together.close();
        assert_eq!(
            together.append_all(&[NewTick { source: 0, seq: None, t: 1 << 40, clock_step: false, values: &[] }]),
            [None]
        );
    }
}

//! Records of an agent: each is stored once, in order, under the number from its agent.
//!
//! An agent sends the records after the newest one that the hub has. Records that arrive before its clock is known
//! wait, because their timestamps may be wrong.

use super::Inner;
use super::limits::{self, Cause, Refusals};
use shared::record::Record;
use shared::wire::SourceId;
use std::sync::atomic::Ordering;
use stream::store::MAX_SEQUENCE;

/// Maximum size of records that wait for their agent's clock, bytes; above it they are stored uncorrected.
const MAX_WAITING_BYTES: usize = 1 << 20;

/// Records of a link that wait until its agent's clock is known.
#[derive(Debug, Default)]
pub(super) struct WaitingRecords {
    records: Vec<Record>,
    bytes: usize,
}

impl WaitingRecords {
    /// Takes records; returns those to store now.
    pub fn take(&mut self, new: Vec<Record>, knows_clock: bool) -> Vec<Record> {
        self.bytes += new.iter().map(Record::size).sum::<usize>();
        self.records.extend(new);
        if !knows_clock && self.bytes <= MAX_WAITING_BYTES {
            return Vec::new();
        }
        self.bytes = 0;
        std::mem::take(&mut self.records)
    }
}

/// Stores records of a source, with timestamps moved by `shift` milliseconds. Duplicates and invalid records are
/// dropped; both are counted.
pub(super) fn keep(ingest: &Inner, source: SourceId, shift: i64, records: Vec<Record>, refusals: &Refusals) {
    let (live, mut any) = (&ingest.live, false);
    let retention = live.store().retention(source);
    for Record { n, t, kind, body } in records {
        let t = t.saturating_add(shift);
        if !limits::is_time(t, live.clock.wall(), retention) {
            refusals.add(Cause::Time, 1);
            continue;
        }
        let kept = (n <= MAX_SEQUENCE).then(|| live.append_record_at(source, n, t, &kind, body));
        match kept {
            Some(Ok(Some(_))) => any = true,
            Some(Ok(None)) => drop(ingest.totals.duplicates.fetch_add(1, Ordering::Relaxed)),
            Some(Err(_)) | None => refusals.add(Cause::Record, 1),
        }
    }
    if any {
        live.announce(&[source]);
    }
}

//! Records in a segment: chunks beside the blocks, which the directory lists.

use super::entry::Blob;
use super::list::{put_list, put_section, put_text, take_list, take_section, take_text};
use crate::record::Record;
use crate::varint::{put, take, unzigzag, zigzag};

/// A chunk ends after the record with which it reaches this many bytes: the cost of one damaged byte.
pub(super) const CHUNK_BYTES: usize = 64 << 10;

/// Records of one source that are stored together, rising by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordsEntry {
    /// Their machine: position in [`super::Contents::sources`].
    pub source: u16,
    /// Number of the first.
    pub first: u64,
    /// Number of the last; some between the two may never have been stored.
    pub last: u64,
    /// Number of records.
    pub count: u64,
    /// The earliest time, ms.
    pub from: i64,
    /// The latest time, ms.
    pub to: i64,
    /// Position of the records in the file.
    pub(super) offset: u64,
    pub(super) bytes: Blob,
}

impl RecordsEntry {
    /// The entry of these records and their bytes; None if there are none, or their numbers do not rise.
    pub(super) fn from_records(source: u16, records: &[&Record]) -> Option<(RecordsEntry, Vec<u8>)> {
        let (first, last) = (records.first()?.n, records.last()?.n);
        if !records.is_sorted_by(|a, b| a.n < b.n) {
            return None;
        }
        let mut bytes = Vec::new();
        let mut before = first;
        put_list(&mut bytes, records.iter(), |out, record| {
            put(out, record.n - before);
            put(out, zigzag(record.t));
            put_text(out, &record.kind);
            put_section(out, &record.body);
            before = record.n;
        });
        let times = || records.iter().map(|record| record.t);
        let (from, to) = (times().min()?, times().max()?);
        let (count, blob) = (records.len() as u64, Blob::from_bytes(&bytes));
        Some((RecordsEntry { source, first, last, count, from, to, offset: 0, bytes: blob }, bytes))
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put(out, u64::from(self.source));
        put(out, self.first);
        put(out, self.last - self.first);
        put(out, self.count);
        put(out, zigzag(self.from));
        put(out, self.to.abs_diff(self.from));
        self.bytes.put(out);
    }

    pub(super) fn take(bytes: &mut &[u8], offset: u64) -> Option<RecordsEntry> {
        let source = u16::try_from(take(bytes)?).ok()?;
        let first = take(bytes)?;
        let last = first.checked_add(take(bytes)?)?;
        let count = take(bytes)?;
        let from = unzigzag(take(bytes)?);
        let to = from.checked_add_unsigned(take(bytes)?)?;
        let bytes = Blob::take(bytes)?;
        Some(RecordsEntry { source, first, last, count, from, to, offset, bytes })
    }

    /// The records; None if the bytes do not match this entry.
    pub(super) fn records(&self, mut bytes: &[u8]) -> Option<Vec<Record>> {
        let mut n = self.first;
        let records = take_list(&mut bytes, |bytes| {
            n = n.checked_add(take(bytes)?)?;
            let t = unzigzag(take(bytes)?);
            Some(Record { n, t, kind: take_text(bytes)?, body: take_section(bytes)?.to_vec() })
        })?;
        let sound = bytes.is_empty()
            && records.len() as u64 == self.count
            && records.is_sorted_by(|a, b| a.n < b.n)
            && records.last().is_some_and(|last| last.n == self.last);
        sound.then_some(records)
    }
}

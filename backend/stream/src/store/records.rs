//! Records of a source: the newest in memory, the others in segments.
//!
//! As a tick, a record is appended in two steps, so that it is logged before a reader sees it:
//! [`Store::encode_record`], then [`Store::push_record`]. A cut returns the records since the last cut, to be written.
//! Records that no longer fit into memory are read from segments. A record that is in no segment yet is then dropped
//! and counted.

use super::{Damages, Store, first_number};
use history::Segment;
use shared::record::{BadRecord, Record, check};
use shared::segment::RecordsEntry;
use shared::wire::SourceId;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// Maximum number of records of one source in memory.
pub const MAX_RECORDS: usize = 10_000;

/// Maximum bytes of the records of one source in memory.
pub const MAX_RECORD_BYTES: usize = 4 << 20;

/// A record in memory, and the newest tick at its arrival.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Sequence of that tick: in order with ticks, the record comes after it and before the next. 0: before the first.
    pub after: u64,
    /// The record; a clone is a pointer.
    pub record: Arc<Record>,
}

/// A record that is not visible yet.
#[derive(Debug)]
pub struct EncodedRecord {
    pub(super) source: SourceId,
    pub(super) record: Arc<Record>,
}

/// Reason why a record was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordRefused {
    /// It is invalid.
    Bad(BadRecord),
    /// There is no such source.
    Unknown,
    /// The server is ending.
    Closed,
}

impl fmt::Display for RecordRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordRefused::Bad(why) => why.fmt(f),
            RecordRefused::Unknown => f.write_str("there is no such machine"),
            RecordRefused::Closed => f.write_str("the server is shutting down; retry when it is back"),
        }
    }
}
impl std::error::Error for RecordRefused {}

/// Records in a segment.
#[derive(Clone)]
struct OnDisk {
    segment: Arc<Segment>,
    at: usize,
}

impl OnDisk {
    fn entry(&self) -> &RecordsEntry {
        &self.segment.contents().records[self.at]
    }
}

/// Data about the records of one source.
#[derive(Default)]
pub(super) struct Records {
    /// Oldest first.
    recent: VecDeque<Placed>,
    bytes: usize,
    /// Number of the newest; 0 without records.
    last: u64,
    /// The lowest number that the next may have.
    first_of_life: u64,
    /// Records up to this number have been returned by a cut, to be written.
    cut: u64,
    /// Number of times that all were dropped.
    forgotten: u64,
    /// In the order of their numbers.
    on_disk: Vec<OnDisk>,
}

impl Records {
    /// Sets the lowest number of the next record: that of a life that begins at this time, milliseconds since the Unix
    /// epoch.
    pub fn begin_life(&mut self, now: i64) {
        self.first_of_life = first_number(now);
    }

    fn next(&self) -> u64 {
        self.first_of_life.max(self.last + 1)
    }

    /// Appends a record; returns the number of oldest ones lost by it.
    fn push(&mut self, after: u64, record: Arc<Record>) -> u64 {
        self.last = record.n;
        self.bytes += record.size();
        self.recent.push_back(Placed { after, record });
        let mut lost = 0;
        while self.recent.len() > MAX_RECORDS || self.bytes > MAX_RECORD_BYTES {
            lost += u64::from(self.pop().is_some_and(|n| !self.stored(n)));
        }
        lost
    }

    /// Drops all of them; their numbers are not reused.
    pub fn clear(&mut self) {
        self.recent.clear();
        self.on_disk.clear();
        (self.bytes, self.cut) = (0, self.last);
        self.forgotten += 1;
    }

    /// Drops the oldest in memory; returns its number.
    fn pop(&mut self) -> Option<u64> {
        let Placed { record, .. } = self.recent.pop_front()?;
        self.bytes -= record.size();
        Some(record.n)
    }

    /// Whether the record of this number is in a segment.
    fn stored(&self, n: u64) -> bool {
        self.on_disk.iter().rev().any(|part| (part.entry().first..=part.entry().last).contains(&n))
    }

    /// Records that no cut has returned.
    pub fn uncut(&self) -> impl Iterator<Item = &Arc<Record>> {
        let first = self.recent.partition_point(|placed| placed.record.n <= self.cut);
        self.recent.range(first..).map(|placed| &placed.record)
    }

    /// Drops records before this time, milliseconds since the Unix epoch; never those that no cut has returned.
    pub fn drop_old(&mut self, before: i64) {
        let cut = self.cut;
        while self.recent.front().is_some_and(|placed| placed.record.n <= cut && placed.record.t < before) {
            self.pop();
        }
    }

    /// Restores the records found in a folder: those in segments, and those in logs alone, which are returned.
    pub fn restore(&mut self, found: &history::FoundSource, segments: &[Arc<Segment>]) -> (Vec<Arc<Record>>, u64) {
        segments.iter().for_each(|segment| self.add(segment, &found.name));
        let unwritten: Vec<Arc<Record>> = found.records.iter().cloned().map(Arc::new).collect();
        let lost = unwritten.iter().map(|record| self.push(found.last_seq(), record.clone())).sum();
        (self.last, self.cut) = (found.last_record, found.last_record);
        (unwritten, lost)
    }

    /// Adds the records of the source of this name in a segment.
    fn add(&mut self, segment: &Arc<Segment>, name: &str) {
        let contents = segment.contents();
        let own = |entry: &RecordsEntry| contents.sources[usize::from(entry.source)].name == name;
        let places = contents.records.iter().enumerate().filter(|(_, entry)| own(entry));
        self.on_disk.extend(places.map(|(at, _)| OnDisk { segment: segment.clone(), at }));
        self.on_disk.sort_by_key(|part| part.entry().first);
    }

    /// Replaces segments by another.
    pub fn replace(&mut self, name: &str, old: impl Fn(&Segment) -> bool, new: Option<&Arc<Segment>>) {
        self.on_disk.retain(|part| !old(&part.segment));
        if let Some(new) = new {
            self.add(new, name);
        }
    }

    /// Adds all records of a recording; its file bounds their number.
    pub fn hold(&mut self, records: Vec<Record>) {
        for record in records {
            self.last = record.n;
            self.bytes += record.size();
            self.recent.push_back(Placed { after: 0, record: Arc::new(record) });
        }
    }
}

/// Records of a source between two times, both included; a part of them at a time, ascending by number. It holds
/// pointers, and reading may read the disk, so never read under a lock. Unreadable records are left out and counted.
pub struct RecordsSnapshot {
    on_disk: std::vec::IntoIter<OnDisk>,
    recent: Option<Vec<Arc<Record>>>,
    damages: Arc<Damages>,
    /// The lowest number that was not returned yet.
    next: u64,
    from: i64,
    to: i64,
}

impl Iterator for RecordsSnapshot {
    type Item = Vec<Arc<Record>>;

    fn next(&mut self) -> Option<Vec<Arc<Record>>> {
        let (from, to) = (self.from, self.to);
        for part in self.on_disk.by_ref() {
            let read = part.segment.reader().records(part.at);
            let Ok(read) = read else {
                self.damages.met_at(format!("records {} of {}", part.at, part.segment.name()), None);
                continue;
            };
            let new = read.into_iter().filter(|record| record.n >= self.next);
            let records: Vec<_> = new.filter(|record| (from..=to).contains(&record.t)).map(Arc::new).collect();
            self.next = self.next.max(part.entry().last + 1);
            if !records.is_empty() {
                return Some(records);
            }
        }
        let mut recent = self.recent.take()?;
        recent.retain(|record| record.n >= self.next && (from..=to).contains(&record.t));
        (!recent.is_empty()).then_some(recent)
    }
}

impl Store {
    /// Assigns the next number to a record of a source, which becomes visible when it is [pushed](Self::push_record).
    /// Each encoded record is pushed before the next is encoded, as ticks. `t` is milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// [`RecordRefused`].
    pub fn encode_record(
        &self,
        source: SourceId,
        t: i64,
        kind: &str,
        body: Vec<u8>,
    ) -> Result<EncodedRecord, RecordRefused> {
        check(kind, &body).map_err(RecordRefused::Bad)?;
        let n = self.kept(source).ok_or(RecordRefused::Unknown)?.records.next();
        Ok(EncodedRecord { source, record: Arc::new(Record { n, t, kind: kind.into(), body }) })
    }

    /// Likewise a record with a number assigned elsewhere; none if that is not above the newest.
    ///
    /// # Errors
    /// [`RecordRefused`].
    pub fn encode_record_at(
        &self,
        source: SourceId,
        n: u64,
        t: i64,
        kind: &str,
        body: Vec<u8>,
    ) -> Result<Option<EncodedRecord>, RecordRefused> {
        check(kind, &body).map_err(RecordRefused::Bad)?;
        let newest = self.kept(source).ok_or(RecordRefused::Unknown)?.records.last;
        let record = || EncodedRecord { source, record: Arc::new(Record { n, t, kind: kind.into(), body }) };
        Ok((n > newest).then(record))
    }

    /// Numbers the next record of a source above this number.
    pub fn number_records_above(&mut self, source: SourceId, n: u64) {
        if let Some(kept) = self.sources.get_mut(usize::from(source)) {
            kept.records.first_of_life = kept.records.first_of_life.max(n.saturating_add(1));
        }
    }

    /// Makes a record the newest; returns its number.
    pub fn push_record(&mut self, EncodedRecord { source, record }: EncodedRecord) -> u64 {
        let (n, kept) = (record.n, &mut self.sources[usize::from(source)]);
        self.counts.records += 1;
        self.counts.records_dropped += kept.records.push(kept.state.seq(), record);
        n
    }

    /// The records of a source after number `n` that are in memory, oldest first; 0: all of them.
    pub fn records_since(&self, source: SourceId, n: u64) -> Vec<Placed> {
        let Some(kept) = self.kept(source) else { return Vec::new() };
        let recent = &kept.records.recent;
        recent.range(recent.partition_point(|placed| placed.record.n <= n)..).cloned().collect()
    }

    /// Number of the newest record of a source; 0 without records.
    pub fn last_record(&self, source: SourceId) -> u64 {
        self.kept(source).map_or(0, |kept| kept.records.last)
    }

    /// The records of a source between two times, to be read outside the lock.
    pub fn records(&self, source: SourceId, from: i64, to: i64) -> Option<RecordsSnapshot> {
        let records = &self.kept(source)?.records;
        let reaches = |part: &&OnDisk| part.entry().to >= from && part.entry().from <= to;
        let on_disk: Vec<OnDisk> = records.on_disk.iter().filter(reaches).cloned().collect();
        let recent = records.recent.iter().map(|placed| placed.record.clone()).collect();
        let damages = self.damages.clone();
        Some(RecordsSnapshot { on_disk: on_disk.into_iter(), recent: Some(recent), damages, next: 0, from, to })
    }

    /// The records of a source after number `n`, to be read outside the lock.
    pub fn records_behind(&self, source: SourceId, n: u64) -> Option<RecordsSnapshot> {
        let records = &self.kept(source)?.records;
        let reaches = |part: &&OnDisk| part.entry().last > n;
        let on_disk: Vec<OnDisk> = records.on_disk.iter().filter(reaches).cloned().collect();
        let recent = records.recent.iter().map(|placed| placed.record.clone()).collect();
        let (damages, next) = (self.damages.clone(), n + 1);
        let (from, to) = (i64::MIN, i64::MAX);
        Some(RecordsSnapshot { on_disk: on_disk.into_iter(), recent: Some(recent), damages, next, from, to })
    }

    /// Number of times that the records of a source were dropped, as when it was removed. State derived from them is
    /// dropped, too.
    pub fn records_forgotten(&self, source: SourceId) -> u64 {
        self.kept(source).map_or(0, |kept| kept.records.forgotten)
    }

    /// The records of a source since the last cut, for this cut.
    pub fn cut_records(&mut self, source: SourceId) -> Vec<Arc<Record>> {
        let Some(kept) = self.sources.get_mut(usize::from(source)) else { return Vec::new() };
        let records = kept.records.uncut().cloned().collect();
        kept.records.cut = kept.records.last;
        records
    }

    /// Notes that records are in a segment now: a new one, or one that replaces those for which `old` returns true.
    pub fn records_written(&mut self, segment: &Arc<Segment>, old: impl Fn(&Segment) -> bool) {
        for kept in &mut self.sources {
            kept.records.replace(&kept.info.key, &old, Some(segment));
        }
    }

    /// Adds the records of a recording to a source.
    pub fn hold_records(&mut self, source: SourceId, records: Vec<Record>) {
        if let Some(kept) = self.sources.get_mut(usize::from(source)) {
            kept.records.hold(records);
        }
    }
}

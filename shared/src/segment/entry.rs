//! Entries of blocks and of columns, and their bytes.

use crate::series::SeriesId;
use crate::varint::{put, take, take_array, unzigzag, zigzag};
use std::ops::Range;

/// Series in one group of a block's index: the unit that a reader of one column reads.
pub(super) const GROUP: usize = 32;

const CLOCK_STEP: u8 = 1;
const AFTER_GAP: u8 = 2;

/// A span of ticks of one source with rising times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockEntry {
    /// Its machine: position in [`super::Contents::sources`].
    pub source: u16,
    /// Sequence of the first tick; 0 in a block of late samples.
    pub first_seq: u64,
    /// Sequence of the last tick; 0 in a block of late samples.
    pub last_seq: u64,
    /// Number of ticks.
    pub ticks: u32,
    /// Time of the first, ms.
    pub from: i64,
    /// Time of the last, ms.
    pub to: i64,
    /// Samples of all series.
    pub samples: u64,
    /// The clock was set just before it.
    pub clock_step: bool,
    /// No tick has the sequences between the tick before it and its first: they are not missing.
    pub after_gap: bool,
    /// Position of its payload in the file.
    pub(super) offset: u64,
    pub(super) times: Blob,
    pub(super) groups: Vec<Group>,
}

/// Whether a block may have these sequences: one a tick, or none at all.
pub(super) fn sequences(first: u64, last: u64, ticks: usize) -> bool {
    (first, last) == (0, 0) || first > 0 && last.checked_sub(first).and_then(|n| n.checked_add(1)) == Some(ticks as u64)
}

/// Length and checksum of some bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Blob {
    pub len: u64,
    pub crc: u32,
}

impl Blob {
    pub fn from_bytes(bytes: &[u8]) -> Blob {
        Blob { len: bytes.len() as u64, crc: crate::crc32c::crc32c(bytes) }
    }

    pub(super) fn put(self, out: &mut Vec<u8>) {
        put(out, self.len);
        out.extend(self.crc.to_le_bytes());
    }

    pub(super) fn take(bytes: &mut &[u8]) -> Option<Blob> {
        Some(Blob { len: take(bytes)?, crc: u32::from_le_bytes(take_array(bytes)?) })
    }
}

/// Part of a block's index, and the columns that it describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub first: SeriesId,
    pub index: Blob,
    pub columns: u64,
}

impl BlockEntry {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put(out, u64::from(self.source));
        put(out, self.first_seq);
        put(out, self.last_seq - self.first_seq);
        put(out, u64::from(self.ticks));
        put(out, zigzag(self.from));
        put(out, self.to.abs_diff(self.from));
        put(out, self.samples);
        out.push(if self.clock_step { CLOCK_STEP } else { 0 } | if self.after_gap { AFTER_GAP } else { 0 });
        self.times.put(out);
        put(out, self.groups.len() as u64);
        let mut before = 0;
        for group in &self.groups {
            put(out, u64::from(group.first - before));
            group.index.put(out);
            put(out, group.columns);
            before = group.first;
        }
    }

    pub(super) fn take(bytes: &mut &[u8], offset: u64) -> Option<BlockEntry> {
        let source = u16::try_from(take(bytes)?).ok()?;
        let first_seq = take(bytes)?;
        let last_seq = first_seq.checked_add(take(bytes)?)?;
        let ticks = u32::try_from(take(bytes)?).ok()?;
        let from = unzigzag(take(bytes)?);
        let to = from.checked_add_unsigned(take(bytes)?)?;
        let samples = take(bytes)?;
        let [flags] = take_array(bytes)?;
        let times = Blob::take(bytes)?;
        let mut first: SeriesId = 0;
        let mut groups = Vec::new();
        for _ in 0..take(bytes)? {
            first = u32::try_from(take(bytes)?).ok().and_then(|d| first.checked_add(d))?;
            groups.push(Group { first, index: Blob::take(bytes)?, columns: take(bytes)? });
        }
        let (clock_step, after_gap) = (flags & CLOCK_STEP != 0, flags & AFTER_GAP != 0);
        if ticks == 0 || !sequences(first_seq, last_seq, ticks as usize) {
            return None;
        }
        Some(BlockEntry {
            source,
            first_seq,
            last_seq,
            ticks,
            from,
            to,
            samples,
            clock_step,
            after_gap,
            offset,
            times,
            groups,
        })
    }

    /// Whether its samples came late and so have no sequence.
    pub fn late(&self) -> bool {
        self.first_seq == 0
    }

    /// Its size in the file, bytes.
    pub fn bytes(&self) -> u64 {
        self.len().unwrap_or(0)
    }

    /// Length of the whole payload; None if the lengths are invalid.
    pub(super) fn len(&self) -> Option<u64> {
        self.groups.iter().try_fold(self.times.len, |sum, g| sum.checked_add(g.index.len)?.checked_add(g.columns))
    }

    /// Positions of the index and of the columns of each group in the file.
    pub(super) fn places(&self) -> impl Iterator<Item = (u64, u64)> {
        let index = self.offset + self.times.len;
        let columns = index + self.groups.iter().map(|g| g.index.len).sum::<u64>();
        self.groups.iter().scan((index, columns), |next, group| {
            let place = *next;
            *next = (next.0 + group.index.len, next.1 + group.columns);
            Some(place)
        })
    }
}

/// Position of the samples of a series in a block, and the times of the first and the last of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnEntry {
    /// The series.
    pub id: SeriesId,
    /// Time of its first sample in the block, ms.
    pub first: i64,
    /// Time of its last, ms.
    pub last: i64,
    pub(super) offset: u64,
    pub(super) raw: Blob,
    pub(super) tier: Option<Blob>,
}

impl ColumnEntry {
    /// Bytes of its column and of its tier.
    pub fn bytes(&self) -> (u64, u64) {
        (self.raw.len, self.tier.map_or(0, |tier| tier.len))
    }

    /// Position after the entry's data.
    fn end(&self) -> u64 {
        self.offset + self.raw.len + self.tier.map_or(0, |tier| tier.len)
    }

    /// Appends the entry after that of series `before`; offsets follow from lengths.
    pub(super) fn put(&self, out: &mut Vec<u8>, before: SeriesId, (from, to): (i64, i64)) {
        put(out, u64::from(self.id - before));
        self.raw.put(out);
        put(out, self.first.abs_diff(from));
        put(out, to.abs_diff(self.last));
        match self.tier {
            Some(tier) => tier.put(out),
            None => put(out, 0),
        }
    }

    /// The entries of a group whose columns are in `columns`, in sequence. A damaged entry gives None and is the last.
    pub(super) fn take_each(
        mut bytes: &[u8],
        (from, to): (i64, i64),
        first: SeriesId,
        columns: Range<u64>,
    ) -> impl Iterator<Item = Option<ColumnEntry>> {
        let (mut id, mut offset) = (first, columns.start);
        std::iter::from_fn(move || {
            (!bytes.is_empty()).then(|| {
                let entry = Self::take(&mut bytes, (from, to), id, offset).filter(|entry| entry.end() <= columns.end);
                match &entry {
                    Some(entry) => {
                        id = entry.id;
                        offset = entry.end();
                    }
                    None => bytes = &[],
                }
                entry
            })
        })
    }

    fn take(bytes: &mut &[u8], (from, to): (i64, i64), before: SeriesId, offset: u64) -> Option<ColumnEntry> {
        let id = u32::try_from(take(bytes)?).ok().and_then(|d| before.checked_add(d))?;
        let raw = Blob::take(bytes)?;
        let first = from.checked_add_unsigned(take(bytes)?)?;
        let last = to.checked_sub_unsigned(take(bytes)?)?;
        let tier = match take(bytes)? {
            0 => None,
            len => Some(Blob { len, crc: u32::from_le_bytes(take_array(bytes)?) }),
        };
        offset.checked_add(raw.len)?.checked_add(tier.map_or(0, |t| t.len))?;
        Some(ColumnEntry { id, first, last, offset, raw, tier })
    }
}

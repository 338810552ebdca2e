//! Entries of blocks and of columns.

use crate::series::SeriesId;

/// Series in one group of a block's index.
pub(super) const GROUP: usize = 64;

/// A run of ticks of one source with rising times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockEntry {
    /// Its machine: position in [`super::Contents::sources`].
    pub source: u16,
    /// Sequence of the first tick; 0 in a block of late samples.
    pub first_seq: u64,
    /// Sequence of the last tick; 0 in a block of late samples.
    pub last_seq: u64,
    /// How many.
    pub ticks: u32,
    /// Time of the first, ms.
    pub from: i64,
    /// Time of the last, ms.
    pub to: i64,
    /// Samples of all series.
    pub samples: u64,
    /// The clock was set just before it.
    pub clock_step: bool,
    pub(super) offset: u64,
    pub(super) times: Blob,
    pub(super) groups: Vec<Group>,
}

/// Length and checksum of some bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Blob {
    pub len: u64,
    pub crc: u32,
}

/// Part of a block's index, and the columns that it speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub first: SeriesId,
    pub index: Blob,
    pub columns: u64,
}

/// Where the samples of a series stand in a block, and when the first and the last of them was.
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

//! A sealed span of ticks, in memory or on disk.

use super::Chunk;
use history::Segment;
use shared::column::{self, Damaged};
use shared::rollup::Bucket;
use shared::segment::{BlockEntry, Damage, Part};
use shared::series::SeriesId;
use std::borrow::Cow;
use std::sync::Arc;

/// A sealed span of ticks of one source; a clone is a pointer. Reading one may read the disk, so never read under a
/// lock.
#[derive(Clone)]
pub enum Block {
    /// In memory.
    Memory(Arc<Chunk>),
    /// In a segment on disk, with the index of the block.
    Disk(Arc<Segment>, usize),
}

fn entry(segment: &Segment, at: usize) -> &BlockEntry {
    &segment.contents().blocks[at]
}

/// Reason why bytes of a block were not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// They were read, and differ from those written.
    Damaged,
    /// The system returned an error; a later read may succeed.
    Refused,
}

impl From<Damaged> for Unread {
    fn from(_: Damaged) -> Self {
        Unread::Damaged
    }
}

impl Block {
    /// Sequence of the first tick; 0 in a block of late samples, which earlier versions wrote.
    pub fn first_seq(&self) -> u64 {
        match self {
            Block::Memory(chunk) => chunk.first_seq,
            Block::Disk(segment, at) => entry(segment, *at).first_seq,
        }
    }

    /// Sequence of the last tick; 0 in a block of late samples.
    pub fn last_seq(&self) -> u64 {
        match self {
            Block::Memory(chunk) => chunk.last_seq(),
            Block::Disk(segment, at) => entry(segment, *at).last_seq,
        }
    }

    /// Whether it holds late samples of an earlier version: they arrived after the tick of their time, and have no
    /// sequence.
    pub fn late(&self) -> bool {
        self.first_seq() == 0
    }

    /// Number of ticks.
    pub fn ticks(&self) -> usize {
        match self {
            Block::Memory(chunk) => chunk.ticks,
            Block::Disk(segment, at) => entry(segment, *at).ticks as usize,
        }
    }

    /// Time of the first tick, milliseconds since the Unix epoch.
    pub fn from(&self) -> i64 {
        match self {
            Block::Memory(chunk) => chunk.from,
            Block::Disk(segment, at) => entry(segment, *at).from,
        }
    }

    /// Time of the last tick.
    pub fn to(&self) -> i64 {
        match self {
            Block::Memory(chunk) => chunk.to,
            Block::Disk(segment, at) => entry(segment, *at).to,
        }
    }

    /// Whether the wall clock was set just before the first tick.
    pub fn clock_step(&self) -> bool {
        match self {
            Block::Memory(chunk) => chunk.clock_step,
            Block::Disk(segment, at) => entry(segment, *at).clock_step,
        }
    }

    /// Samples present; those of a chunk are not counted before it [is made](Chunk::is_made).
    pub fn samples(&self) -> u64 {
        match self {
            Block::Memory(chunk) => chunk.samples(),
            Block::Disk(segment, at) => entry(segment, *at).samples,
        }
    }

    /// Bytes that it takes in memory.
    pub fn bytes(&self) -> usize {
        match self {
            Block::Memory(chunk) => chunk.bytes(),
            Block::Disk(..) => 0,
        }
    }

    /// Bytes that it takes of a disk.
    pub fn disk_bytes(&self) -> u64 {
        match self {
            Block::Memory(_) => 0,
            Block::Disk(segment, at) => entry(segment, *at).bytes(),
        }
    }

    /// Its place, for the log.
    pub fn place(&self) -> String {
        match self {
            Block::Memory(_) => "memory".into(),
            Block::Disk(segment, at) => format!("block {at} of {}", segment.name()),
        }
    }

    /// Whether it is in memory alone.
    pub fn in_memory(&self) -> bool {
        matches!(self, Block::Memory(_))
    }

    /// Whether its columns are available at once: they are in memory, and made.
    pub fn at_hand(&self) -> bool {
        matches!(self, Block::Memory(chunk) if chunk.is_made())
    }

    /// Whether it is in this segment.
    pub fn lies_in(&self, other: &Segment) -> bool {
        matches!(self, Block::Disk(segment, _) if segment.name() == other.name())
    }

    /// The time column as it is stored.
    ///
    /// # Errors
    /// [`Unread`] when it cannot be read.
    pub fn times(&self) -> Result<Cow<'_, [u8]>, Unread> {
        match self {
            Block::Memory(chunk) => Ok(Cow::Borrowed(&chunk.times)),
            Block::Disk(segment, at) => log_damage(segment, segment.reader().times_bytes(*at)).map(Cow::Owned),
        }
    }

    /// The stored columns after the first `skip`, in order of id, until `each` returns false. Damaged columns are
    /// reported in their place. The series of a damaged part of the index are unknown.
    pub fn columns(&self, skip: usize, mut each: impl FnMut(Result<(SeriesId, Cow<'_, [u8]>), Part>) -> bool) {
        match self {
            Block::Memory(chunk) => {
                let columns = chunk.columns().iter().skip(skip);
                columns.map(|(id, bytes)| Ok((*id, Cow::Borrowed(&bytes[..])))).all(each);
            }
            Block::Disk(segment, at) => {
                let (entries, damages) = segment.reader().entries(*at);
                for damage in damages.into_iter().filter(|_| skip == 0) {
                    each(Err(damage.part));
                }
                entries.iter().skip(skip).all(|entry| match segment.reader().read(*at, entry) {
                    Ok(bytes) => each(Ok((entry.id, Cow::Owned(bytes)))),
                    Err(damage) => each(Err(damage.part)),
                });
            }
        }
    }

    /// The column of a series as it is stored; none when it has no sample here.
    ///
    /// # Errors
    /// [`Unread`] when it cannot be read.
    pub fn column(&self, id: SeriesId) -> Result<Option<Cow<'_, [u8]>>, Unread> {
        match self {
            Block::Memory(chunk) => Ok(chunk.column(id).map(Cow::Borrowed)),
            Block::Disk(segment, at) => Ok(log_damage(segment, segment.reader().column(*at, id))?.map(Cow::Owned)),
        }
    }

    /// Series with a sample here, in order; those in a damaged part of the index are not known.
    pub fn series(&self) -> Vec<SeriesId> {
        match self {
            Block::Memory(chunk) => chunk.columns().iter().map(|(id, _)| *id).collect(),
            Block::Disk(segment, at) => segment.reader().entries(*at).0.iter().map(|entry| entry.id).collect(),
        }
    }

    /// The minutes of a series as [`shared::segment::tier`] bytes, if they are stored.
    pub fn kept_minutes(&self, id: SeriesId) -> Option<Vec<u8>> {
        let Block::Disk(segment, at) = self else { return None };
        let entry = segment.reader().entry(*at, id).ok()??;
        segment.reader().tier_bytes(*at, &entry)
    }

    /// The minutes of a series on disk, as buckets of 60 s whose `last` is unknown.
    ///
    /// # Errors
    /// [`Unread`] when they cannot be read.
    pub fn minutes(&self, id: SeriesId) -> Result<Option<Vec<Bucket>>, Unread> {
        match self {
            Block::Memory(_) => Ok(None),
            Block::Disk(segment, at) => log_damage(segment, segment.reader().tier(*at, id)),
        }
    }

    /// Times of the ticks, decoded.
    ///
    /// # Errors
    /// [`Unread`] when they cannot be read.
    pub fn read_times(&self) -> Result<Vec<i64>, Unread> {
        Ok(column::decode_times(&self.times()?, self.ticks())?)
    }

    /// Values of a series by tick, decoded; NaN is absent.
    ///
    /// # Errors
    /// [`Unread`] when they cannot be read.
    pub fn read(&self, id: SeriesId) -> Result<Option<Vec<f64>>, Unread> {
        Ok(self.column(id)?.map(|bytes| column::decode(&bytes, self.ticks())).transpose()?)
    }
}

/// The result of a read; the place of damage is logged.
fn log_damage<T>(segment: &Segment, read: Result<T, Damage>) -> Result<T, Unread> {
    read.map_err(|damage| {
        tracing::debug!("{}: {damage}", segment.name());
        if damage.io.is_some() { Unread::Refused } else { Unread::Damaged }
    })
}

//! A segment: sealed ticks of one or more sources in one file, column by column. The server stores its history in
//! segments, a recording is one, and the page opens one that is dropped on it.
//!
//! # Format, version 2
//!
//! Integers are little-endian; *varint* is LEB128 of at most 64 bits, *zigzag* a signed number as
//! `(v << 1) ^ (v >> 63)` in a varint, *text* a varint length and that many bytes of UTF-8. A *list* is a varint count
//! and so many elements. Times are milliseconds since the Unix epoch. Checksums are CRC32C.
//!
//! ```text
//! file    = header chunk... trailer trailer
//! header  = magic (6 bytes, "WGseg" 0x1a)  version u16  crc u32 (of the 8 bytes before)
//! chunk   = kind u8  head length u32  payload length u64  crc u32 (of the 13 bytes before and the head)  head  payload
//! trailer = first directory u64  second directory u64 (offsets of their chunks)  version u16  magic (6 bytes)
//!           crc u32 (of the 24 bytes before)
//! ```
//!
//! Kinds are `B` a block, `R` records, `D` a directory, `O` an opening (a directory without blocks, at the start of a
//! recording that may be cut off). A reader skips unknown kinds. Directory and trailer are both written twice, at the
//! end of the file. A wrong byte in times or index is corrected by their checksum, so that one damaged byte costs at
//! most one column of one block. Several damaged bytes together cost 32 columns in a block's index, or one block in its
//! times. If no directory is sound, the chunks from the front give the blocks, and the opening gives their sources and
//! rows. A truncated block keeps its first columns.
//!
//! ```text
//! directory = log through varint  replaces list(text)  about list(text text)
//!             rows section  charts section  sources list(source)  blocks list(offset varint  entry)
//!             records list(offset varint  records entry)      not in version 1
//! section   = varint length and that many bytes (equal in neighboring files, which a reader may use)
//! rows      = list(fields)   fields = list(key u8  text)      see `table`
//! charts    = list(fields)
//! source    = name text  interval zigzag (ms)  facts list(text text)  series section
//! series    = list(id varint (less the id before it, less 1)  row varint  instance text)      rising by id
//! ```
//!
//! A block is a span of ticks of one source whose times rise; times go back between blocks only. Its chunk's head is
//! its entry, and its payload the time column ([`crate::column::encode_times`]), the index, the columns. `offset` is
//! the position of the payload in the file; blocks are stored in the order of the directory.
//!
//! ```text
//! entry = source varint (into the directory's)  first sequence varint  last sequence varint (less the first)
//!         ticks varint  from zigzag  to varint (less from)  samples varint
//!         flags u8 (1: the clock was set before it, 2: no tick has the sequences between the one before and its first)
//!         times length varint  times crc u32  groups list(group)
//! group = first id varint (less that of the group before)  index length varint  index crc u32  columns length varint
//! index = entry of one series, one after the other, of at most 32 a group, rising by id:
//!         id varint (less the id before, in the group's first less the group's first id)
//!         column length varint  column crc u32
//!         head varint (first sample's time less from)  tail varint (to less last sample's time)
//!         tier length varint (0: none)  tier crc u32 (only where there is one)
//! columns = per series in the index's order: column ([`crate::column::encode`]), tier ([`tier`])
//! ```
//!
//! Records are stored in chunks of some 64 KiB, each of one source and with rising numbers. The chunk's head is its
//! entry and its payload the records.
//!
//! ```text
//! records entry = source varint  first number varint  last number varint (less the first)  how many varint
//!                 from zigzag  to varint (less from)  length varint  crc u32
//! records       = list(number varint (less that before, in the first 0)  time zigzag  kind text  body section)
//! ```
//!
//! The groups of a block are in sequence, indexes after the times and columns after the indexes, so all positions
//! follow from lengths. Sequences rise by one a tick; both are 0 in a block of samples that came late, which have none.

mod chunk;
mod directory;
mod entry;
mod list;
mod reader;
mod records;
pub mod table;
pub mod tier;
mod writer;

pub use directory::Dictionaries;
pub use entry::{BlockEntry, ColumnEntry};
pub use reader::Reader;
pub use records::RecordsEntry;
pub use writer::{NewColumn, TickSpan, Writer};

use crate::catalog::{Chart, Metric};
use crate::series::SeriesId;
use std::fmt;
use std::io;
use std::sync::Arc;

/// The version that is written, and the newest that is read.
pub const VERSION: u16 = 2;

/// Length of the buckets of a tier, ms.
pub const TIER_MS: i64 = 60_000;

/// Bytes that can be read at any place: a file, or a recording that was dropped on the page.
pub trait ReadAt {
    /// Number of bytes.
    fn size(&self) -> u64;

    /// Exactly `len` bytes from `offset` on.
    ///
    /// # Errors
    /// The error of the system; `UnexpectedEof` if the bytes end before.
    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>>;

    /// The same for a part of a block's index, which every reader of one of its series requests: implementations may
    /// cache it.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at).
    fn read_index(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.read_at(offset, len)
    }
}

impl ReadAt for [u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let from = usize::try_from(offset).ok();
        let part = from.and_then(|from| self.get(from..from.checked_add(len)?));
        part.map(<[u8]>::to_vec).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

impl ReadAt for Vec<u8> {
    fn size(&self) -> u64 {
        self.as_slice().size()
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.as_slice().read_at(offset, len)
    }
}

impl<R: ReadAt + ?Sized> ReadAt for &R {
    fn size(&self) -> u64 {
        (**self).size()
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        (**self).read_at(offset, len)
    }
}

impl<R: ReadAt + ?Sized> ReadAt for Box<R> {
    fn size(&self) -> u64 {
        (**self).size()
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        (**self).read_at(offset, len)
    }
}

impl<R: ReadAt + ?Sized> ReadAt for Arc<R> {
    fn size(&self) -> u64 {
        (**self).size()
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        (**self).read_at(offset, len)
    }
}

/// Contents of a segment, without the columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    /// Version of the format.
    pub version: u16,
    /// The rows of the catalog that its series use.
    pub rows: Arc<[Metric]>,
    /// Charts of these rows.
    pub charts: Vec<Chart>,
    /// Machines.
    pub sources: Vec<SourceEntry>,
    /// Runs of ticks, in the order in which they were written.
    pub blocks: Vec<BlockEntry>,
    /// Records, in the order in which they were written.
    pub records: Vec<RecordsEntry>,
    /// Log files up to this number are in segments; 0: none.
    pub log_through: u64,
    /// Names of the files that this one replaces.
    pub replaces: Vec<String>,
    /// Facts of a recording: title, version. Key and value.
    pub about: Vec<(String, String)>,
}

/// A machine, and its series that have a sample here.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceEntry {
    /// Its name, which is unique; its number is its position in this file.
    pub name: String,
    /// Time between its ticks, ms.
    pub interval: i64,
    /// Constant facts: key and value.
    pub facts: Vec<(String, String)>,
    /// Its series, rising by id.
    pub series: Arc<[SeriesEntry]>,
}

impl SourceEntry {
    /// The series of this id.
    pub fn series(&self, id: SeriesId) -> Option<&SeriesEntry> {
        self.series.binary_search_by_key(&id, |s| s.id).ok().map(|i| &self.series[i])
    }
}

/// A series of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesEntry {
    /// Its number in the source; stable for the life of a data folder, with holes.
    pub id: SeriesId,
    /// Its metric: position in [`Contents::rows`].
    pub row: u16,
    /// Text in the place of the tag's placeholder.
    pub instance: String,
}

/// Reason why a file was not opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentError {
    /// It does not begin or end like a segment.
    NotASegment,
    /// A later version of the format.
    Newer {
        /// Its version.
        version: u16,
    },
    /// It is a segment, but has no sound directory: it was truncated, or both copies are damaged.
    Incomplete,
    /// It could not be read.
    Read(String),
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SegmentError::NotASegment => f.write_str("not a file of recorded history"),
            SegmentError::Newer { version } => write!(
                f,
                "a newer version of Watchglass wrote it (format {version}); this version reads up to {VERSION}: \
                update Watchglass"
            ),
            SegmentError::Incomplete => f.write_str("the end of the file is missing or damaged"),
            SegmentError::Read(error) => write!(f, "cannot be read: {error}"),
        }
    }
}
impl std::error::Error for SegmentError {}

/// Damaged bytes of a segment, and the part that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Position in [`Contents::blocks`], or for records in [`Contents::records`].
    pub block: usize,
    /// The lost part.
    pub part: Part,
    /// Position of the bytes in the file.
    pub offset: u64,
    /// The error of the system when they were read; None: they were read and their checksum is wrong.
    pub io: Option<String>,
}

/// Parts of a segment that can be damaged by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The times: nothing of the block can be read.
    Times,
    /// The index of up to 32 series, from this one on.
    Index(SeriesId),
    /// The samples of a series.
    Column(SeriesId),
    /// The buckets of a series; they can be computed from its samples.
    Tier(SeriesId),
    /// Records, from this number on.
    Records(u64),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            Part::Times => write!(f, "times of block {}", self.block)?,
            Part::Index(id) => write!(f, "index of block {} from series {id} on", self.block)?,
            Part::Column(id) => write!(f, "series {id} in block {}", self.block)?,
            Part::Tier(id) => write!(f, "roll-up of series {id} in block {}", self.block)?,
            Part::Records(n) => write!(f, "records from number {n} on")?,
        }
        write!(f, " at byte {}: {}", self.offset, self.io.as_deref().unwrap_or("damaged"))
    }
}
impl std::error::Error for Damage {}

#[cfg(test)]
mod tests;

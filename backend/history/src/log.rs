//! The bytes of a log file.
//!
//! A file is a header (`WGLOG` and three zero bytes, version `u16`, two zero bytes, CRC32C of these twelve) and
//! records. A record is [`MAGIC`], the length of its body `u32`, the CRC32C of length and body `u32`, and the body. The
//! body is an [`Entry`] in postcard's encoding, in which a [`Table`] is one run of bytes ([`shared::segment::table`]).
//! Numbers are little-endian.
//!
//! Records are independent of each other, so reading continues after a damaged one at the next magic with a valid
//! checksum. The magic is no UTF-8, so that no name in a record can be mistaken for it.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use shared::catalog::{Chart, Metric};
use shared::crc32c::{crc32c, extend};
use shared::record::Record;
use shared::segment::table;
use shared::series::SeriesId;
use std::borrow::Cow;

/// Version of this format. Incremented with every change of [`Entry`] or of a frame; a test contains the present bytes.
/// Version 1 has no [`Entry::Record`], and its frames skip no sequences.
pub const VERSION: u16 = 2;

/// First bytes of a record.
pub const MAGIC: [u8; 2] = [0xff, 0xd7];

/// Maximum bytes of a body; a longer one is damage. A keyframe of 100,000 series has a million bytes.
pub const MAX_BODY_BYTES: usize = 8 << 20;

const HEAD_BYTES: usize = 10;
const FILE_MAGIC: [u8; 8] = *b"WGLOG\0\0\0";

/// Bytes of the header of a file.
pub const HEADER_BYTES: usize = 16;

/// An entry of a log. Numbers of sources and rows are valid within one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Entry<'a> {
    /// A machine that reports.
    Source {
        /// Its number.
        source: u16,
        /// Host name, which identifies a source across files.
        name: Cow<'a, str>,
        /// Time between its ticks, milliseconds.
        interval: i64,
        /// Constant facts.
        facts: Vec<(String, String)>,
    },
    /// Rows of the catalog that series of this file use.
    Rows(Table),
    /// Series of a source.
    Series {
        /// Number of its source in this file.
        source: u16,
        /// Id, number of the row, instance.
        series: Vec<(SeriesId, u16, Cow<'a, str>)>,
    },
    /// A frame against the empty state: the state after the tick of its sequence.
    Keyframe {
        /// Number of its source in this file.
        source: u16,
        /// [`shared::tick::TickState::keyframe`].
        #[serde(borrow, with = "serde_bytes")]
        frame: &'a [u8],
    },
    /// A tick, as it was broadcast.
    Tick {
        /// Number of its source in this file.
        source: u16,
        /// [`shared::tick::TickState::encode`].
        #[serde(borrow, with = "serde_bytes")]
        frame: &'a [u8],
    },
    /// Samples that arrived after their tick. Earlier versions wrote them; this one only reads them.
    Late {
        /// Number of its source in this file.
        source: u16,
        /// Series, time in milliseconds since the Unix epoch, value.
        samples: Vec<(SeriesId, i64, f64)>,
    },
    /// The log was closed in order; nothing follows.
    End,
    /// A record of a source, after the ticks before it.
    Record {
        /// The machine of the record.
        source: u16,
        /// The record.
        record: Record,
    },
}

/// Rows by number, and their charts. They are encoded by name instead of postcard's order of fields and variants, so
/// that an older log can be read after the catalog has grown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Number and row.
    pub rows: Vec<(u16, Metric)>,
    /// Charts of these rows.
    pub charts: Vec<Chart>,
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&table::encode(&self.rows, &self.charts))
    }
}

impl<'de> Deserialize<'de> for Table {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = table::decode(<&[u8]>::deserialize(deserializer)?);
        let (rows, charts) = table.ok_or_else(|| D::Error::custom("no table"))?;
        Ok(Table { rows, charts })
    }
}

/// Appends the header of a file.
pub fn put_header(out: &mut Vec<u8>) {
    let at = out.len();
    out.extend(FILE_MAGIC);
    out.extend(VERSION.to_le_bytes());
    out.extend([0; 2]);
    let crc = crc32c(&out[at..]);
    out.extend(crc.to_le_bytes());
}

/// The version of a file; none with a damaged header, and its records are then read as those of this version.
pub fn version(bytes: &[u8]) -> Option<u16> {
    let (head, crc) = bytes.first_chunk::<HEADER_BYTES>()?.split_at(12);
    (head[..8] == FILE_MAGIC && crc == crc32c(head).to_le_bytes()).then(|| u16::from_le_bytes([head[8], head[9]]))
}

/// Appends a record.
///
/// # Panics
/// If its body is longer than [`MAX_BODY_BYTES`]: long lists of series and rows are split into several records.
pub fn put(out: &mut Vec<u8>, record: &Entry<'_>) {
    let at = out.len();
    out.extend([0; HEAD_BYTES]);
    *out = postcard::to_extend(record, std::mem::take(out)).expect("records hold only what postcard can write");
    let body = out.len() - at - HEAD_BYTES;
    assert!(body <= MAX_BODY_BYTES, "a record of {body} bytes");
    let len = (body as u32).to_le_bytes();
    let crc = extend(crc32c(&len), &out[at + HEAD_BYTES..]);
    out[at..at + 2].copy_from_slice(&MAGIC);
    out[at + 2..at + 6].copy_from_slice(&len);
    out[at + 6..at + HEAD_BYTES].copy_from_slice(&crc.to_le_bytes());
}

/// A stretch of a file that is no record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Its offset.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
    /// Nothing sound follows: the last record was cut off, as by a kill, a power cut or a full disk. Otherwise it is
    /// damage.
    pub tail: bool,
}

/// All sound records of a file with their offsets, in order, and the gaps between them.
pub fn scan(bytes: &[u8]) -> (Vec<(u64, Entry<'_>)>, Vec<Gap>) {
    let (mut records, mut gaps) = (Vec::new(), Vec::new());
    let mut at = if version(bytes).is_some() { HEADER_BYTES } else { 0 };
    let mut sound = at;
    while at < bytes.len() {
        let Some((record, len)) = record(&bytes[at..]) else {
            at += 1;
            at += bytes[at..].iter().position(|&b| b == MAGIC[0]).unwrap_or(bytes.len() - at);
            continue;
        };
        if at > sound {
            gaps.push(Gap { offset: sound as u64, bytes: (at - sound) as u64, tail: false });
        }
        records.push((at as u64, record));
        at += len;
        sound = at;
    }
    if sound < bytes.len() {
        gaps.push(Gap { offset: sound as u64, bytes: (bytes.len() - sound) as u64, tail: true });
    }
    (records, gaps)
}

/// The record that begins here, and its length including the head.
fn record(bytes: &[u8]) -> Option<(Entry<'_>, usize)> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
    if head[..2] != MAGIC {
        return None;
    }
    let len = u32::from_le_bytes([head[2], head[3], head[4], head[5]]) as usize;
    let body = rest.get(..len).filter(|_| len <= MAX_BODY_BYTES)?;
    if extend(crc32c(&head[2..6]), body).to_le_bytes() != head[6..] {
        return None;
    }
    match postcard::take_from_bytes(body) {
        Ok((record, [])) => Some((record, HEAD_BYTES + len)),
        _ => None,
    }
}

//! Header, chunks and trailers: the framing of the parts of a segment.

use super::{ReadAt, SegmentError, VERSION};
use crate::crc32c::{crc32c, extend};
use crate::varint::take_array;

const MAGIC: [u8; 6] = *b"WGseg\x1a";

pub(super) const HEADER: u64 = 12;
pub(super) const TRAILER: u64 = 28;
/// Bytes at the front of a chunk: kind, two lengths, checksum.
pub(super) const FRONT: u64 = 17;

pub(super) const BLOCK: u8 = b'B';
pub(super) const RECORDS: u8 = b'R';
pub(super) const DIRECTORY: u8 = b'D';
pub(super) const OPENING: u8 = b'O';

fn checked(mut bytes: Vec<u8>) -> Vec<u8> {
    let crc = crc32c(&bytes);
    bytes.extend(crc.to_le_bytes());
    bytes
}

/// The bytes before their own checksum, if it is correct.
fn check(bytes: &[u8]) -> Option<&[u8]> {
    let (body, crc) = bytes.split_last_chunk::<4>()?;
    (u32::from_le_bytes(*crc) == crc32c(body)).then_some(body)
}

pub(super) fn header() -> Vec<u8> {
    checked([&MAGIC[..], &VERSION.to_le_bytes()].concat())
}

pub(super) fn trailer(directories: [u64; 2]) -> Vec<u8> {
    let [first, second] = directories.map(u64::to_le_bytes);
    checked([&first[..], &second, &VERSION.to_le_bytes(), &MAGIC].concat())
}

/// The front of a chunk and its head; `payload` bytes are to follow.
pub(super) fn chunk(kind: u8, head: &[u8], payload: u64) -> Vec<u8> {
    let mut out = vec![kind];
    out.extend((head.len() as u32).to_le_bytes());
    out.extend(payload.to_le_bytes());
    let crc = extend(crc32c(&out), head);
    out.extend(crc.to_le_bytes());
    out.extend(head);
    out
}

/// A chunk that was read: its kind, its head, and the position of its payload, which may be truncated.
pub(super) struct Chunk {
    pub kind: u8,
    pub head: Vec<u8>,
    pub payload: u64,
    pub end: u64,
}

/// The chunk at this position; None if there is no sound one.
pub(super) fn read_chunk(bytes: &impl ReadAt, offset: u64) -> std::io::Result<Option<Chunk>> {
    let fits = |from: u64, len: u64| from.checked_add(len).is_some_and(|end| end <= bytes.size());
    if !fits(offset, FRONT) {
        return Ok(None);
    }
    let front = bytes.read_at(offset, FRONT as usize)?;
    let Some((kind, head_len, payload_len, crc)) = parts(&front) else { return Ok(None) };
    if !fits(offset + FRONT, u64::from(head_len)) {
        return Ok(None);
    }
    let head = bytes.read_at(offset + FRONT, head_len as usize)?;
    let payload = offset + FRONT + u64::from(head_len);
    let sound = extend(crc32c(&front[..13]), &head) == crc;
    Ok(payload.checked_add(payload_len).filter(|_| sound).map(|end| Chunk { kind, head, payload, end }))
}

/// Sound chunks from the front of a file on. After damage, every byte is tried as the start of the next one.
pub(super) struct Chunks<'a, R> {
    bytes: &'a R,
    next: u64,
    /// Remaining bytes that may be read for invalid chunks. If the file looks like chunk fronts everywhere, the search
    /// gives up, since each could claim the whole file.
    left: u64,
}

/// Size of the first search in bytes; it doubles after each search without a result.
const FIRST_SEARCH_BYTES: u64 = 256;

impl<'a, R: ReadAt> Chunks<'a, R> {
    pub fn new(bytes: &'a R) -> Self {
        Chunks { bytes, next: HEADER, left: 4 * bytes.size() }
    }

    /// The next sound chunk; None at the end.
    pub fn next(&mut self) -> std::io::Result<Option<Chunk>> {
        let size = self.bytes.size();
        let mut chunk = self.at(self.next)?;
        let (mut place, mut len) = (self.next.saturating_add(1), FIRST_SEARCH_BYTES);
        while chunk.is_none() && place < size {
            let window = self.bytes.read_at(place, len.min(size - place) as usize)?;
            for (at, kind) in window.iter().enumerate() {
                if [BLOCK, RECORDS, DIRECTORY, OPENING].contains(kind) {
                    chunk = self.at(place + at as u64)?;
                    if chunk.is_some() {
                        break;
                    }
                }
            }
            place += window.len() as u64;
            len *= 2;
        }
        self.next = chunk.as_ref().map_or(size, |chunk| chunk.end);
        Ok(chunk)
    }

    fn at(&mut self, place: u64) -> std::io::Result<Option<Chunk>> {
        if place.checked_add(FRONT).is_none_or(|end| end > self.bytes.size()) {
            return Ok(None);
        }
        let front = self.bytes.read_at(place, FRONT as usize)?;
        let head = parts(&front).map_or(0, |(_, head, ..)| u64::from(head));
        if head > self.bytes.size() - place - FRONT || head > self.left {
            return Ok(None);
        }
        let chunk = read_chunk(self.bytes, place)?;
        if chunk.is_none() {
            self.left -= head;
        }
        Ok(chunk)
    }
}

fn parts(mut front: &[u8]) -> Option<(u8, u32, u64, u32)> {
    let front = &mut front;
    let [kind] = take_array(front)?;
    let head = u32::from_le_bytes(take_array(front)?);
    let payload = u64::from_le_bytes(take_array(front)?);
    Some((kind, head, payload, u32::from_le_bytes(take_array(front)?)))
}

/// Positions of the directories, from either of the two trailers that is sound; None if neither is.
///
/// # Errors
/// [`SegmentError`]: no segment, a newer one, or one that cannot be read.
pub(super) fn directories(bytes: &impl ReadAt) -> Result<Option<[u64; 2]>, SegmentError> {
    let read = |offset, len: u64| bytes.read_at(offset, len as usize).map_err(|e| SegmentError::Read(e.to_string()));
    let size = bytes.size();
    let known = |version: u16| if version > VERSION { Err(SegmentError::Newer { version }) } else { Ok(()) };
    let head = read(0, size.min(HEADER))?;
    let header = check(&head).and_then(|h| h.strip_prefix(&MAGIC));
    if let Some(&[a, b]) = header {
        known(u16::from_le_bytes([a, b]))?;
    }
    for back in [TRAILER, 2 * TRAILER] {
        let Some(at) = size.checked_sub(back).filter(|&at| at >= HEADER) else { continue };
        let bytes = read(at, TRAILER)?;
        let Some(mut body) = check(&bytes).and_then(|b| b.strip_suffix(&MAGIC)) else { continue };
        let mut offset = || take_array(&mut body).map(u64::from_le_bytes);
        let (Some(first), Some(second)) = (offset(), offset()) else { continue };
        let Some(version) = take_array(&mut body).map(u16::from_le_bytes) else { continue };
        known(version)?;
        return Ok(Some([first, second]));
    }
    // A file that was truncated within its header cannot be read.
    if header.is_some() || (size > HEADER && head.starts_with(&MAGIC)) {
        Ok(None)
    } else {
        Err(SegmentError::NotASegment)
    }
}

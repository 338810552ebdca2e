//! Reads a segment: the directory when it is opened, everything else on request.

use super::chunk::{self, Chunks, read_chunk};
use super::directory::{self, Dictionaries};
use super::entry::{Blob, Group};
use super::records::RecordsEntry;
use super::{BlockEntry, ColumnEntry, Contents, Damage, Part, ReadAt, SegmentError, TIER_MS, VERSION, tier};
use crate::column;
use crate::crc32c::mend;
use crate::record::Record;
use crate::rollup::{Bucket, roll};
use crate::series::SeriesId;

/// An open segment. Only its directory is in memory. Every method with a block panics if [`Contents::blocks`] has no
/// such position, as an index would.
#[derive(Debug)]
pub struct Reader<R> {
    bytes: R,
    contents: Contents,
    complete: bool,
}

impl<R: ReadAt> Reader<R> {
    /// Opens a segment.
    ///
    /// # Errors
    /// [`SegmentError`] if it is no segment, or has no sound directory.
    pub fn open(bytes: R) -> Result<Self, SegmentError> {
        Self::open_with(bytes, &mut Dictionaries::default())
    }

    /// Opens one of several segments: equal parts of them are parsed and stored once.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(bytes: R, known: &mut Dictionaries) -> Result<Self, SegmentError> {
        let contents = contents(&bytes, known)?;
        Ok(Reader { bytes, contents, complete: true })
    }

    /// Opens a segment, or the rest of a recording that was truncated or has no sound directory: its blocks from the
    /// front on, except those with a damaged head. The part of a truncated block after the end of the file counts as
    /// [`Damage`].
    ///
    /// # Errors
    /// [`SegmentError::Incomplete`] when it does not begin with an opening, else as [`open`](Self::open).
    pub fn rescue(bytes: R) -> Result<Self, SegmentError> {
        let known = &mut Dictionaries::default();
        match contents(&bytes, known) {
            Ok(contents) => return Ok(Reader { bytes, contents, complete: true }),
            Err(SegmentError::Incomplete) => {}
            Err(error) => return Err(error),
        }
        let mut contents = None::<Contents>;
        let mut chunks = Chunks::new(&bytes);
        while let Some(chunk) = chunks.next().map_err(|e| SegmentError::Read(e.to_string()))? {
            match (chunk.kind, &mut contents) {
                (chunk::OPENING, none @ None) => {
                    let opening = directory::decode(&chunk.head, known);
                    *none = opening.map(|contents| Contents { blocks: Vec::new(), records: Vec::new(), ..contents });
                }
                (chunk::BLOCK, Some(contents)) => {
                    let sources = contents.sources.len();
                    let block = BlockEntry::take(&mut chunk.head.as_slice(), chunk.payload);
                    let len = chunk.end - chunk.payload;
                    let sound = |b: &BlockEntry| usize::from(b.source) < sources && b.len() == Some(len);
                    contents.blocks.extend(block.filter(sound));
                }
                (chunk::RECORDS, Some(contents)) => {
                    let sources = contents.sources.len();
                    let records = RecordsEntry::take(&mut chunk.head.as_slice(), chunk.payload);
                    let len = chunk.end - chunk.payload;
                    let sound = |r: &RecordsEntry| usize::from(r.source) < sources && r.bytes.len == len;
                    contents.records.extend(records.filter(sound));
                }
                _ => {}
            }
        }
        let contents = contents.ok_or(SegmentError::Incomplete)?;
        Ok(Reader { bytes, contents: Contents { version: VERSION, ..contents }, complete: false })
    }

    /// False if the end was missing and the part before it was [rescued](Self::rescue).
    pub fn complete(&self) -> bool {
        self.complete
    }

    /// Its contents.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Its length in bytes.
    pub fn size(&self) -> u64 {
        self.bytes.size()
    }

    /// Times of a block's ticks, ms, rising.
    ///
    /// # Errors
    /// [`Damage`]: nothing of this block can be read.
    pub fn times(&self, block: usize) -> Result<Vec<i64>, Damage> {
        let bytes = self.times_bytes(block)?;
        let entry = &self.contents.blocks[block];
        let times = column::decode_times(&bytes, entry.ticks as usize).ok();
        let sound = |times: &Vec<i64>| {
            times.is_sorted_by(|a, b| a < b) && times.first() == Some(&entry.from) && times.last() == Some(&entry.to)
        };
        times.filter(sound).ok_or(Damage { block, part: Part::Times, offset: entry.offset, io: None })
    }

    /// Times of a block's ticks in the encoding of [`column::encode_times`].
    ///
    /// # Errors
    /// As [`times`](Self::times).
    pub fn times_bytes(&self, block: usize) -> Result<Vec<u8>, Damage> {
        let entry = &self.contents.blocks[block];
        self.part(block, Part::Times, entry.offset, entry.times)
    }

    /// All columns of a block by id, and the damaged parts of its index. [`read`](Self::read) returns the bytes of a
    /// column.
    pub fn entries(&self, block: usize) -> (Vec<ColumnEntry>, Vec<Damage>) {
        let (mut entries, mut damages) = (Vec::new(), Vec::new());
        for (group, place) in self.contents.blocks[block].places().enumerate() {
            let more = self.index(block, group, place).and_then(|(bytes, columns, damage)| {
                let more: Option<Vec<_>> = self.group(block, group, &bytes, columns).collect();
                more.ok_or(damage)
            });
            match more {
                Ok(more) => entries.extend(more),
                Err(damage) => damages.push(damage),
            }
        }
        (entries, damages)
    }

    /// Position of the column of a series; None without a sample in the block.
    ///
    /// # Errors
    /// [`Damage`] of the index.
    pub fn entry(&self, block: usize, id: SeriesId) -> Result<Option<ColumnEntry>, Damage> {
        let behind = self.contents.blocks[block].groups.partition_point(|g| g.first <= id);
        let Some(group) = behind.checked_sub(1) else { return Ok(None) };
        let Some(place) = self.contents.blocks[block].places().nth(group) else { return Ok(None) };
        let (bytes, columns, damage) = self.index(block, group, place)?;
        for entry in self.group(block, group, &bytes, columns) {
            match entry {
                Some(entry) if entry.id == id => return Ok(Some(entry)),
                Some(_) => {}
                None => return Err(damage),
            }
        }
        Ok(None)
    }

    /// The bytes of a column in the encoding of [`column::encode`].
    ///
    /// # Errors
    /// [`Damage`] of this column.
    pub fn read(&self, block: usize, entry: &ColumnEntry) -> Result<Vec<u8>, Damage> {
        self.part(block, Part::Column(entry.id), entry.offset, entry.raw)
    }

    /// The bytes of the column of a series; None without a sample in the block.
    ///
    /// # Errors
    /// [`Damage`] of the index or of this column.
    pub fn column(&self, block: usize, id: SeriesId) -> Result<Option<Vec<u8>>, Damage> {
        self.entry(block, id)?.map(|entry| self.read(block, &entry)).transpose()
    }

    /// Times of the first and the last sample of a series in a block, ms; None without one.
    ///
    /// # Errors
    /// [`Damage`] of the index.
    pub fn span(&self, block: usize, id: SeriesId) -> Result<Option<(i64, i64)>, Damage> {
        Ok(self.entry(block, id)?.map(|entry| (entry.first, entry.last)))
    }

    /// The values of a column, one a tick of the block; NaN is absent.
    ///
    /// # Errors
    /// [`Damage`] of this column.
    pub fn values(&self, block: usize, entry: &ColumnEntry) -> Result<Vec<f64>, Damage> {
        let bytes = self.read(block, entry)?;
        column::decode(&bytes, self.contents.blocks[block].ticks as usize).map_err(|_| Damage {
            block,
            part: Part::Column(entry.id),
            offset: entry.offset,
            io: None,
        })
    }

    /// The buckets of [`TIER_MS`] of a series in a block; None without a sample. `last` is NaN in a tier, because tiers
    /// do not store it. If there is no tier, or it is damaged, the buckets are computed from the column.
    ///
    /// # Errors
    /// [`Damage`] of the index, or of the column or the times if the tier is missing.
    pub fn tier(&self, block: usize, id: SeriesId) -> Result<Option<Vec<Bucket>>, Damage> {
        let Some(entry) = self.entry(block, id)? else { return Ok(None) };
        if let Ok(Some(buckets)) = self.kept_tier(block, &entry) {
            return Ok(Some(buckets));
        }
        let values = self.values(block, &entry)?;
        Ok(Some(roll(self.times(block)?.into_iter().zip(values), TIER_MS)))
    }

    /// The bytes of a column's tier as they are stored; None if none is stored, or it is damaged. Then it is computed
    /// from the column.
    pub fn tier_bytes(&self, block: usize, entry: &ColumnEntry) -> Option<Vec<u8>> {
        self.part(block, Part::Tier(entry.id), entry.offset + entry.raw.len, entry.tier?).ok()
    }

    fn kept_tier(&self, block: usize, entry: &ColumnEntry) -> Result<Option<Vec<Bucket>>, Damage> {
        let Some(blob) = entry.tier else { return Ok(None) };
        let (part, offset) = (Part::Tier(entry.id), entry.offset + entry.raw.len);
        let bytes = self.part(block, part, offset, blob)?;
        tier::decode(&bytes).map(Some).ok_or(Damage { block, part, offset, io: None })
    }

    /// Records at a place of [`Contents::records`], rising by number.
    ///
    /// # Errors
    /// [`Damage`]: none of them can be read.
    pub fn records(&self, at: usize) -> Result<Vec<Record>, Damage> {
        let entry = &self.contents.records[at];
        let part = Part::Records(entry.first);
        let bytes = self.part(at, part, entry.offset, entry.bytes)?;
        entry.records(&bytes).ok_or(Damage { block: at, part, offset: entry.offset, io: None })
    }

    /// Reads everything, and returns the damage.
    pub fn verify(&self) -> Vec<Damage> {
        let mut damages: Vec<Damage> =
            (0..self.contents.records.len()).filter_map(|at| self.records(at).err()).collect();
        for block in 0..self.contents.blocks.len() {
            damages.extend(self.times(block).err());
            let (entries, index) = self.entries(block);
            damages.extend(index);
            for entry in entries {
                damages.extend(self.values(block, &entry).err());
                damages.extend(self.kept_tier(block, &entry).err());
            }
        }
        damages
    }

    /// Bytes of a group's index, the position of its columns, and the damage if the bytes are invalid. `place` is the
    /// group's of [`BlockEntry::places`].
    fn index(
        &self,
        block: usize,
        group: usize,
        (offset, columns): (u64, u64),
    ) -> Result<(Vec<u8>, u64, Damage), Damage> {
        let Group { first, index, .. } = self.contents.blocks[block].groups[group];
        let part = Part::Index(first);
        Ok((self.part(block, part, offset, index)?, columns, Damage { block, part, offset, io: None }))
    }

    fn group<'a>(
        &self,
        block: usize,
        group: usize,
        bytes: &'a [u8],
        columns: u64,
    ) -> impl Iterator<Item = Option<ColumnEntry>> + use<'a, R> {
        let entry = &self.contents.blocks[block];
        let Group { first, columns: len, .. } = entry.groups[group];
        ColumnEntry::take_each(bytes, (entry.from, entry.to), first, columns..columns + len)
    }

    fn part(&self, block: usize, part: Part, offset: u64, blob: Blob) -> Result<Vec<u8>, Damage> {
        let damage = |io| Damage { block, part, offset, io };
        let len = usize::try_from(blob.len).map_err(|_| damage(None))?;
        let bytes = match part {
            Part::Index(_) => self.bytes.read_index(offset, len),
            _ => self.bytes.read_at(offset, len),
        };
        let mut bytes = bytes.map_err(|e| damage(Some(e.to_string())))?;
        let sound = Blob::from_bytes(&bytes) == blob
            // Many columns depend on these bytes, and their content is checked again: by the order of the times and by
            // the checksums of the columns.
            || matches!(part, Part::Times | Part::Index(_)) && mend(&mut bytes, blob.crc);
        if sound { Ok(bytes) } else { Err(damage(None)) }
    }
}

/// The contents, from either directory that is sound.
fn contents(bytes: &impl ReadAt, known: &mut Dictionaries) -> Result<Contents, SegmentError> {
    for place in chunk::directories(bytes)?.into_iter().flatten() {
        let chunk = read_chunk(bytes, place).map_err(|e| SegmentError::Read(e.to_string()))?;
        let Some(chunk) = chunk.filter(|c| c.kind == chunk::DIRECTORY) else { continue };
        let contents = directory::decode(&chunk.head, known);
        if let Some(contents) = contents.filter(|c| fit(c, bytes.size())) {
            return Ok(contents);
        }
    }
    Err(SegmentError::Incomplete)
}

/// Whether blocks and records are in the file, one after the other: bytes that are shared by many would be read many
/// times.
pub(super) fn fit(contents: &Contents, size: u64) -> bool {
    let blocks = contents.blocks.iter().map(|block| (block.offset, block.len()));
    let records = contents.records.iter().map(|records| (records.offset, Some(records.bytes.len)));
    in_order(blocks, size) && in_order(records, size)
}

/// Whether parts with these positions and lengths are in sequence within `size` bytes.
fn in_order(mut places: impl Iterator<Item = (u64, Option<u64>)>, size: u64) -> bool {
    let mut before = chunk::HEADER;
    places.all(|(offset, len)| {
        let end = len.and_then(|len| len.checked_add(offset)).filter(|end| *end <= size);
        offset >= std::mem::replace(&mut before, end.unwrap_or(u64::MAX)) && end.is_some()
    })
}

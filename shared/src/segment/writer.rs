//! Writes a segment, block by block.

use super::entry::{Blob, GROUP, Group, sequences};
use super::records::{CHUNK_BYTES, RecordsEntry};
use super::{BlockEntry, ColumnEntry, Contents, TIER_MS, chunk, directory, tier};
use crate::column::{self, MAX_TICKS};
use crate::record::Record;
use crate::rollup::roll;
use crate::series::{SeriesId, Steps};
use std::io::{self, Write};

/// The ticks of a new block.
#[derive(Clone, Copy, Debug)]
pub struct TickSpan<'a> {
    /// Machine: position in [`Contents::sources`].
    pub source: u16,
    /// Sequence of the first tick; 0 for late samples.
    pub first_seq: u64,
    /// Sequence of the last tick; 0 for late samples.
    pub last_seq: u64,
    /// Times, ms, each above the one before; 1 to [`MAX_TICKS`] of them.
    pub times: &'a [i64],
    /// The clock was set just before it.
    pub clock_step: bool,
    /// No tick has the sequences between the tick before it and its first.
    pub after_gap: bool,
}

/// A column of a new block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewColumn {
    /// Its series.
    pub id: SeriesId,
    /// [`column::encode`], one value a tick.
    pub raw: Vec<u8>,
    /// [`tier::encode`]; None in a quarter.
    pub tier: Option<Vec<u8>>,
}

impl NewColumn {
    /// A column without a tier.
    pub fn new(id: SeriesId, values: &[f64], steps: Steps) -> NewColumn {
        NewColumn { id, raw: column::encode(values, steps), tier: None }
    }

    /// A column with its tier, unless the tier is not worth its bytes: that of a constant is computed faster than it is
    /// read.
    pub fn with_tier(id: SeriesId, times: &[i64], values: &[f64], steps: Steps) -> NewColumn {
        let column = NewColumn::new(id, values, steps);
        let tier = || tier::encode(&roll(times.iter().copied().zip(values.iter().copied()), TIER_MS), steps);
        NewColumn { tier: (!column::is_constant(&column.raw)).then(tier), ..column }
    }
}

/// A segment that is being written. Only one block is in memory, compressed.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    at: u64,
    blocks: Vec<BlockEntry>,
    records: Vec<RecordsEntry>,
}

impl<W: Write> Writer<W> {
    /// Begins a segment.
    ///
    /// # Errors
    /// The error of the system, here and in later calls.
    pub fn begin(out: W) -> io::Result<Self> {
        let mut writer = Writer { out, at: 0, blocks: Vec::new(), records: Vec::new() };
        writer.put(&chunk::header())?;
        Ok(writer)
    }

    /// Writes the contents known before the blocks, for a recording that may be truncated. It may have series that
    /// never get samples; its blocks are ignored.
    ///
    /// # Errors
    /// The error of the system.
    pub fn opening(&mut self, contents: &Contents) -> io::Result<()> {
        self.put(&chunk::chunk(chunk::OPENING, &directory::encode(contents, &[], &[]), 0))
    }

    /// Writes a block. Columns come rising by id; those without a sample are left out.
    ///
    /// # Errors
    /// The error of the system; `InvalidInput` when there are no times, times or ids do not rise, sequences are not as
    /// many as times, or a column is damaged.
    pub fn block(&mut self, span: TickSpan<'_>, columns: impl IntoIterator<Item = NewColumn>) -> io::Result<()> {
        let (Some(&from), Some(&to)) = (span.times.first(), span.times.last()) else {
            return Err(invalid("a block without ticks"));
        };
        let ticks = span.times.len();
        if ticks > MAX_TICKS
            || !span.times.is_sorted_by(|a, b| a < b)
            || !sequences(span.first_seq, span.last_seq, ticks)
        {
            return Err(invalid("a block whose ticks are too many or do not rise"));
        }
        let (mut samples, mut groups) = (0u64, Vec::<Group>::new());
        let (mut index, mut group, mut data) = (Vec::new(), Vec::new(), Vec::new());
        let (mut before, mut in_group) = (None::<SeriesId>, 0);
        for NewColumn { id, raw, tier } in columns {
            let presence = column::presence(&raw, span.times.len()).map_err(|_| invalid("a damaged column"))?;
            let Some(presence) = presence else { continue };
            if before.is_some_and(|before| before >= id) {
                return Err(invalid("columns that do not rise by id"));
            }
            if in_group % GROUP == 0 {
                close(&mut groups, &mut group, &mut index);
                groups.push(Group { first: id, index: Blob::default(), columns: 0 });
                before = Some(id);
            }
            in_group += 1;
            samples += presence.samples as u64;
            let entry = ColumnEntry {
                id,
                first: span.times[presence.first],
                last: span.times[presence.last],
                offset: 0,
                raw: Blob::from_bytes(&raw),
                tier: tier.as_deref().map(Blob::from_bytes),
            };
            entry.put(&mut group, before.unwrap_or(id), (from, to));
            before = Some(id);
            data.extend(&raw);
            data.extend(tier.iter().flatten());
            if let Some(group) = groups.last_mut() {
                group.columns += (raw.len() + tier.map_or(0, |t| t.len())) as u64;
            }
        }
        close(&mut groups, &mut group, &mut index);
        let times = column::encode_times(span.times);
        let mut entry = BlockEntry {
            source: span.source,
            first_seq: span.first_seq,
            last_seq: span.last_seq,
            ticks: span.times.len() as u32,
            from,
            to,
            samples,
            clock_step: span.clock_step,
            after_gap: span.after_gap,
            offset: 0,
            times: Blob::from_bytes(&times),
            groups,
        };
        let mut head = Vec::new();
        entry.put(&mut head);
        self.put(&chunk::chunk(chunk::BLOCK, &head, (times.len() + index.len() + data.len()) as u64))?;
        entry.offset = self.at;
        self.blocks.push(entry);
        [times, index, data].iter().try_for_each(|part| self.put(part))
    }

    /// Writes records of a source, rising by number.
    ///
    /// # Errors
    /// The error of the system; `InvalidInput` when their numbers do not rise.
    pub fn records<'a>(&mut self, source: u16, records: impl IntoIterator<Item = &'a Record>) -> io::Result<()> {
        let records: Vec<&Record> = records.into_iter().collect();
        let mut rest = &records[..];
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = rest.iter().take_while(|record| {
                let fits = bytes < CHUNK_BYTES;
                bytes += record.kind.len() + record.body.len();
                fits
            });
            let (together, later) = rest.split_at(fits.count());
            let Some((mut entry, bytes)) = RecordsEntry::from_records(source, together) else {
                return Err(invalid("records whose numbers do not rise"));
            };
            let mut head = Vec::new();
            entry.put(&mut head);
            self.put(&chunk::chunk(chunk::RECORDS, &head, bytes.len() as u64))?;
            entry.offset = self.at;
            self.records.push(entry);
            self.put(&bytes)?;
            rest = later;
        }
        Ok(())
    }

    /// Writes the directory, twice, and ends the segment. Version, blocks and records of `contents` are ignored: the
    /// writer uses its own.
    ///
    /// # Errors
    /// The error of the system; `InvalidInput` if a block or a series refers to an entry that `contents` lacks, or ids
    /// do not rise.
    pub fn finish(mut self, contents: &Contents) -> io::Result<W> {
        let mut sources = self.blocks.iter().map(|b| b.source).chain(self.records.iter().map(|r| r.source));
        let named = sources.all(|source| usize::from(source) < contents.sources.len());
        let listed = contents.sources.iter().all(|source| {
            source.series.is_sorted_by(|a, b| a.id < b.id)
                && source.series.iter().all(|s| usize::from(s.row) < contents.rows.len())
        });
        if !named || !listed {
            return Err(invalid("a directory that lacks what its blocks name"));
        }
        let directory = directory::encode(contents, &self.blocks, &self.records);
        let directory = chunk::chunk(chunk::DIRECTORY, &directory, 0);
        let places = [self.at, self.at + directory.len() as u64];
        let trailer = chunk::trailer(places);
        [&directory, &directory, &trailer, &trailer].into_iter().try_for_each(|part| self.put(part))?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }
}

/// Ends the group that was begun last: its index is complete.
fn close(groups: &mut [Group], group: &mut Vec<u8>, index: &mut Vec<u8>) {
    if let Some(last) = groups.last_mut() {
        last.index = Blob::from_bytes(group);
        index.append(group);
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

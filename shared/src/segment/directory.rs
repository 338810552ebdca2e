//! The directory of a segment as bytes.

use super::entry::BlockEntry;
use super::list::{put_list, put_section, put_text, take_list, take_section, take_text};
use super::records::RecordsEntry;
use super::table::{put_chart, put_row, take_chart, take_row};
use super::{Contents, SeriesEntry, SourceEntry, VERSION};
use crate::catalog::Metric;
use crate::crc32c::crc32c;
use crate::varint::{put, take, unzigzag, zigzag};
use std::collections::HashMap;
use std::sync::Arc;

fn put_pairs(out: &mut Vec<u8>, pairs: &[(String, String)]) {
    put_list(out, pairs.iter(), |out, (key, value)| {
        put_text(out, key);
        put_text(out, value);
    });
}

fn take_pairs(bytes: &mut &[u8]) -> Option<Vec<(String, String)>> {
    take_list(bytes, |bytes| Some((take_text(bytes)?, take_text(bytes)?)))
}

/// The bytes of a directory; an opening has no blocks and records.
pub(super) fn encode(contents: &Contents, blocks: &[BlockEntry], records: &[RecordsEntry]) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, contents.log_through);
    put_list(&mut out, contents.replaces.iter(), |out, name| put_text(out, name));
    put_pairs(&mut out, &contents.about);
    let mut section = Vec::new();
    put_list(&mut section, contents.rows.iter(), put_row);
    put_section(&mut out, &section);
    section.clear();
    put_list(&mut section, contents.charts.iter(), put_chart);
    put_section(&mut out, &section);
    put_list(&mut out, contents.sources.iter(), |out, source| {
        put_text(out, &source.name);
        put(out, zigzag(source.interval));
        put_pairs(out, &source.facts);
        section.clear();
        let mut next = 0;
        put_list(&mut section, source.series.iter(), |out, series| {
            put(out, u64::from(series.id - next));
            put(out, u64::from(series.row));
            put_text(out, &series.instance);
            next = series.id + 1;
        });
        put_section(out, &section);
    });
    put_list(&mut out, blocks.iter(), |out, block| {
        put(out, block.offset);
        block.put(out);
    });
    put_list(&mut out, records.iter(), |out, records| {
        put(out, records.offset);
        records.put(out);
    });
    out
}

/// Reads a directory. None if the bytes are invalid, or refer to a row or a source that is not in them.
pub(super) fn decode(mut bytes: &[u8], known: &mut Dictionaries) -> Option<Contents> {
    let bytes = &mut bytes;
    let log_through = take(bytes)?;
    let replaces = take_list(bytes, take_text)?;
    let about = take_pairs(bytes)?;
    let rows = known.rows.get(take_section(bytes)?, |bytes| take_list(bytes, take_row))?;
    let charts = take_list(&mut take_section(bytes)?, take_chart)?;
    let sources = take_list(bytes, |bytes| {
        let name = take_text(bytes)?;
        let interval = unzigzag(take(bytes)?);
        let facts = take_pairs(bytes)?;
        let series = known.series.get(take_section(bytes)?, take_series)?;
        let sound = series.iter().all(|s| usize::from(s.row) < rows.len());
        sound.then_some(SourceEntry { name, interval, facts, series })
    })?;
    let blocks = take_list(bytes, |bytes| {
        let offset = take(bytes)?;
        BlockEntry::take(bytes, offset)
    })?;
    // Version 1 ends here.
    let records = match bytes.is_empty() {
        true => Vec::new(),
        false => take_list(bytes, |bytes| {
            let offset = take(bytes)?;
            RecordsEntry::take(bytes, offset)
        })?,
    };
    let mut named = blocks.iter().map(|b| b.source).chain(records.iter().map(|r| r.source));
    let sound = bytes.is_empty() && named.all(|source| usize::from(source) < sources.len());
    sound.then_some(Contents { version: VERSION, rows, charts, sources, blocks, records, log_through, replaces, about })
}

fn take_series(bytes: &mut &[u8]) -> Option<Vec<SeriesEntry>> {
    let mut next = 0u64;
    take_list(bytes, |bytes| {
        let id = u32::try_from(next.checked_add(take(bytes)?)?).ok()?;
        next = u64::from(id) + 1;
        Some(SeriesEntry { id, row: u16::try_from(take(bytes)?).ok()?, instance: take_text(bytes)? })
    })
}

/// Rows and dictionaries that were read last. Neighboring segments mostly hold the same bytes; these are parsed and
/// stored once. Hold one while a folder is opened, then drop it.
#[derive(Debug, Default)]
pub struct Dictionaries {
    rows: RecentEntries<Metric>,
    series: RecentEntries<SeriesEntry>,
}

/// Bytes of sections that are remembered, twice at most; a folder with more of them in one segment opens more slowly.
const MAX_REMEMBERED_BYTES: usize = 32 << 20;

/// Sections and their parsed form, by checksum and length.
type Parsed<T> = HashMap<(u32, usize), (Box<[u8]>, Arc<[T]>)>;

/// Recently used ones, and older ones.
#[derive(Debug)]
struct RecentEntries<T> {
    young: Parsed<T>,
    old: Parsed<T>,
    /// Bytes of the young.
    bytes: usize,
}

impl<T> Default for RecentEntries<T> {
    fn default() -> Self {
        RecentEntries { young: HashMap::new(), old: HashMap::new(), bytes: 0 }
    }
}

impl<T> RecentEntries<T> {
    fn get(&mut self, section: &[u8], parse: impl FnOnce(&mut &[u8]) -> Option<Vec<T>>) -> Option<Arc<[T]>> {
        let key = (crc32c(section), section.len());
        // Two sections may have one checksum.
        let same = |found: &&(Box<[u8]>, Arc<[T]>)| *found.0 == *section;
        if let Some((_, parsed)) = self.young.get(&key).filter(same) {
            return Some(parsed.clone());
        }
        let parsed = match self.old.remove(&key).filter(|found| same(&found)) {
            Some((_, parsed)) => parsed,
            None => {
                let rest = &mut &*section;
                parse(rest).filter(|_| rest.is_empty())?.into()
            }
        };
        self.bytes += section.len();
        if self.bytes > MAX_REMEMBERED_BYTES {
            (self.old, self.bytes) = (std::mem::take(&mut self.young), section.len());
        }
        self.young.insert(key, (section.into(), parsed.clone()));
        Some(parsed)
    }
}

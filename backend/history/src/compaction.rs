//! Compaction: the quarters of an hour are merged to one segment, whose columns are longer and so smaller, and have a
//! tier.
//!
//! Records are written in the order of their numbers, each once. Consecutive blocks of a source become one block, if
//! their sequences are adjacent and their times rise. A new block starts where the clock was set, or ticks are missing.
//! A tick in two blocks is taken once.
//!
//! Late samples of earlier versions are added to a tick of their source at their time that lacks their series. The
//! others stay in a block of their own, because an additional tick would be a gap in every other series. Data removed
//! from a hub leaves a segment in the same way: the segment is rewritten without it.

use crate::files::Files;
use crate::indexes::Indexes;
use crate::segments::{self, Kind, Name, Out, Segment};
use crate::table::JoinedTable;
use shared::column::MAX_TICKS;
use shared::segment::{
    BlockEntry, ColumnEntry, Contents, Damage, NewColumn, RecordsEntry, SeriesEntry, SourceEntry, TickSpan, VERSION,
    Writer,
};
use shared::series::{SeriesId, Steps};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// Result of [`merge`].
pub struct Merged {
    /// The hour.
    pub segment: Arc<Segment>,
    /// Names of the files that it replaces; to be removed with [`segments::remove`].
    pub replaced: Vec<String>,
    /// Unreadable parts, which it lacks, with the file's name.
    pub damages: Vec<(String, Damage)>,
}

const HOUR_S: i64 = 3_600;
const QUARTERS_AN_HOUR: usize = 4;
/// Delay after its end before an hour is merged that lacks a quarter, s.
const LATE_QUARTER_GRACE_S: i64 = 120;

/// The segments of the oldest hour that is over at `now` (ms) and has quarters, including its earlier merges; none when
/// there is nothing to do.
pub fn due(now: i64, segments: &[Arc<Segment>]) -> Option<Vec<Arc<Segment>>> {
    let names: Vec<Name> = segments.iter().map(|s| s.name()).collect();
    Some(choose(now.div_euclid(1_000), &names)?.into_iter().map(|i| segments[i].clone()).collect())
}

fn choose(now: i64, names: &[Name]) -> Option<Vec<usize>> {
    let hour = |name: &Name| name.start.div_euclid(HOUR_S);
    let mut quarters: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
    for name in names.iter().filter(|name| name.kind == Kind::Quarter) {
        quarters.entry(hour(name)).or_default().insert(name.start);
    }
    let over = |(hour, quarters): &(&i64, &BTreeSet<i64>)| {
        let end = (*hour + 1).saturating_mul(HOUR_S);
        now >= if quarters.len() >= QUARTERS_AN_HOUR { end } else { end.saturating_add(LATE_QUARTER_GRACE_S) }
    };
    let (first, _) = quarters.iter().find(over)?;
    let mut parts: Vec<usize> = (0..names.len()).filter(|&i| hour(&names[i]) == *first).collect();
    parts.sort_by_key(|&i| names[i].serial);
    Some(parts)
}

/// Free space that merging leaves.
const SPARE_BYTES: u64 = 100_000_000;

/// Whether there is space for an hour of this size beside the segments that it replaces.
fn room(free: u64, bytes: u64) -> bool {
    free >= SPARE_BYTES.saturating_add(bytes.saturating_mul(2))
}

/// Merges segments into the hour of the first. They stay unchanged and readable until they are removed.
///
/// # Errors
/// `StorageFull` while there is too little space; [`unread`] names the part that could not be read; otherwise the error
/// of the system. Then nothing has changed, and it may be tried again.
pub fn merge(files: &dyn Files, indexes: &Arc<Indexes>, serial: u64, parts: &[Arc<Segment>]) -> io::Result<Merged> {
    let Some(first) = parts.first() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let start = first.name().start.div_euclid(HOUR_S) * HOUR_S;
    write(files, indexes, Name { kind: Kind::Hour, start, serial }, parts, &BTreeSet::new())
}

/// Whether a segment has data of one of these sources.
pub fn has_any(segment: &Segment, sources: &BTreeSet<String>) -> bool {
    !sources.is_empty() && segment.contents().sources.iter().any(|source| sources.contains(&source.name))
}

/// Rewrites a segment without these sources. None if it has no others: then it is to be removed.
///
/// # Errors
/// As [`merge`].
pub fn without(
    files: &dyn Files,
    indexes: &Arc<Indexes>,
    serial: u64,
    part: &Arc<Segment>,
    removed: &BTreeSet<String>,
) -> io::Result<Option<Merged>> {
    if part.contents().sources.iter().all(|source| removed.contains(&source.name)) {
        return Ok(None);
    }
    let name = Name { serial, ..part.name() };
    write(files, indexes, name, std::slice::from_ref(part), removed).map(Some)
}

/// Writes the data of these parts as one segment, without some sources.
fn write(
    files: &dyn Files,
    indexes: &Arc<Indexes>,
    name: Name,
    parts: &[Arc<Segment>],
    removed: &BTreeSet<String>,
) -> io::Result<Merged> {
    if !room(files.free()?, parts.iter().map(|s| s.bytes()).sum()) {
        return Err(io::ErrorKind::StorageFull.into());
    }
    let mut damages = Vec::new();
    let segment = segments::write(files, indexes, name, |writer| {
        let mut contents = merged(parts, removed);
        for source in 0..contents.sources.len() {
            let SourceEntry { name, series, .. } = &contents.sources[source];
            let row = |s: &SeriesEntry| (s.id, contents.rows[usize::from(s.row)].steps);
            let steps: HashMap<SeriesId, Steps> = series.iter().map(row).collect();
            let mut written = BTreeSet::new();
            for strand in strands(parts, name, &mut damages)? {
                let mut failed = Ok(());
                let columns = strand.ids().into_iter().map_while(|id| {
                    let values = strand.values(id, &mut damages).map_err(|error| failed = Err(error)).ok()?;
                    if values.iter().any(|v| v.is_finite()) {
                        written.insert(id);
                    }
                    Some(NewColumn::with_tier(id, &strand.times, &values, steps.get(&id).copied().unwrap_or(0.0)))
                });
                writer.block(strand.span(source as u16), columns)?;
                failed?;
            }
            merge_records(writer, source as u16, parts, name, &mut damages)?;
            contents.sources[source].series = series.iter().filter(|s| written.contains(&s.id)).cloned().collect();
        }
        Ok(contents)
    })?;
    let replaced = segment.contents().replaces.clone();
    Ok(Merged { segment, replaced, damages })
}

/// Writes the records of a source, each once, a chunk of a part at a time.
fn merge_records(
    writer: &mut Writer<Out>,
    number: u16,
    parts: &[Arc<Segment>],
    source: &str,
    damages: &mut Damages,
) -> io::Result<()> {
    let mut all: Vec<(&Segment, usize, &RecordsEntry)> = Vec::new();
    for segment in parts {
        let contents = segment.contents();
        let own = |r: &RecordsEntry| contents.sources[usize::from(r.source)].name == source;
        all.extend(contents.records.iter().enumerate().filter(|(_, r)| own(r)).map(|(at, r)| (&**segment, at, r)));
    }
    all.sort_by_key(|(_, _, entry)| (entry.first, Reverse(entry.last)));
    let mut next = 0;
    for (segment, at, entry) in all {
        if entry.last < next {
            continue;
        }
        let Some(mut records) = sound(segment, segment.reader().records(at), damages)? else { continue };
        records.retain(|record| record.n >= next);
        writer.records(number, &records)?;
        next = entry.last + 1;
    }
    Ok(())
}

/// Contents of all parts together, without blocks and some sources. The newest of two equal entries is used.
fn merged(parts: &[Arc<Segment>], removed: &BTreeSet<String>) -> Contents {
    let mut table = JoinedTable::default();
    let mut contents = Contents { version: VERSION, ..Contents::default() };
    let mut series: Vec<BTreeMap<SeriesId, SeriesEntry>> = Vec::new();
    for part in parts.iter().rev() {
        let from = part.contents();
        contents.log_through = contents.log_through.max(from.log_through);
        contents.replaces.push(part.name().to_string());
        // Their replaced files too, which may not have been removed.
        contents.replaces.extend(from.replaces.iter().cloned());
        let mut places: Vec<Option<u16>> = vec![None; from.rows.len()];
        for source in from.sources.iter().filter(|source| !removed.contains(&source.name)) {
            let place = contents.sources.iter().position(|s| s.name == source.name).unwrap_or_else(|| {
                contents.sources.push(SourceEntry { series: Arc::default(), ..source.clone() });
                series.push(BTreeMap::new());
                series.len() - 1
            });
            for entry in source.series.iter() {
                let at = usize::from(entry.row);
                places[at] = places[at].or_else(|| table.place(&from.rows[at], &from.charts));
                let Some(row) = places[at] else { continue };
                series[place].entry(entry.id).or_insert_with(|| SeriesEntry { row, ..entry.clone() });
            }
        }
    }
    (contents.rows, contents.charts) = (table.rows.into(), table.charts);
    for (source, series) in contents.sources.iter_mut().zip(series) {
        source.series = series.into_values().collect();
    }
    contents
}

/// A block of a part.
struct Piece<'a> {
    segment: &'a Segment,
    block: usize,
    times: Vec<i64>,
    columns: Vec<ColumnEntry>,
}

impl Piece<'_> {
    fn entry(&self) -> &BlockEntry {
        &self.segment.contents().blocks[self.block]
    }
}

/// A new block, and its pieces in order of precedence: each with its ticks and their positions in the block.
struct Strand<'a> {
    first_seq: u64,
    last_seq: u64,
    clock_step: bool,
    after_gap: bool,
    times: Vec<i64>,
    pieces: Vec<(Rc<Piece<'a>>, Moves)>,
}

/// Tick of a piece, tick of the new block.
type Moves = Vec<(usize, usize)>;

impl Strand<'_> {
    fn span(&self, source: u16) -> TickSpan<'_> {
        let Strand { first_seq, last_seq, clock_step, after_gap, ref times, .. } = *self;
        TickSpan { source, first_seq, last_seq, times, clock_step, after_gap }
    }

    fn ids(&self) -> BTreeSet<SeriesId> {
        self.pieces.iter().flat_map(|(piece, _)| piece.columns.iter().map(|c| c.id)).collect()
    }

    /// The values of a series, one per tick; damaged ones are absent.
    fn values(&self, id: SeriesId, damages: &mut Damages) -> io::Result<Vec<f64>> {
        let mut values = vec![f64::NAN; self.times.len()];
        for (piece, moves) in &self.pieces {
            let Ok(at) = piece.columns.binary_search_by_key(&id, |c| c.id) else { continue };
            let read = piece.segment.reader().values(piece.block, &piece.columns[at]);
            let Some(old) = sound(piece.segment, read, damages)? else { continue };
            for &(from, to) in moves {
                if !values[to].is_finite() {
                    values[to] = old[from];
                }
            }
        }
        Ok(values)
    }
}

type Damages = Vec<(String, Damage)>;

/// A file that could not be read while it was merged.
#[derive(Debug)]
struct Unread {
    file: Name,
    damage: Damage,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.damage)
    }
}

impl std::error::Error for Unread {}

/// The part that made [`merge`] fail because the system could not read it. The others can be merged without it.
pub fn unread(error: &io::Error) -> Option<Name> {
    error.get_ref()?.downcast_ref::<Unread>().map(|unread| unread.file)
}

/// The data; none when it is damaged. Data that the system cannot read now may be readable later, so that is an error.
fn sound<T>(segment: &Segment, read: Result<T, Damage>, damages: &mut Damages) -> io::Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(damage) if damage.io.is_some() => Err(io::Error::other(Unread { file: segment.name(), damage })),
        Err(damage) => {
            damages.push((segment.name().to_string(), damage));
            Ok(None)
        }
    }
}

/// The new blocks of a source.
fn strands<'a>(parts: &'a [Arc<Segment>], source: &str, damages: &mut Damages) -> io::Result<Vec<Strand<'a>>> {
    let (mut spans, mut late) = (Vec::new(), Vec::new());
    for segment in parts {
        let contents = segment.contents();
        for block in 0..contents.blocks.len() {
            let entry = &contents.blocks[block];
            if contents.sources[usize::from(entry.source)].name != source {
                continue;
            }
            let Some(times) = sound(segment, segment.reader().times(block), damages)? else { continue };
            let (columns, index) = segment.reader().entries(block);
            for damage in index {
                sound(segment, Err::<(), _>(damage), damages)?;
            }
            let list = if entry.late() { &mut late } else { &mut spans };
            list.push(Rc::new(Piece { segment, block, times, columns }));
        }
    }
    let mut strands = join(spans);
    let left = fold(late, &mut strands);
    strands.extend(left);
    Ok(strands)
}

/// Joins blocks where sequence and time allow, each sequence once.
fn join(mut spans: Vec<Rc<Piece<'_>>>) -> Vec<Strand<'_>> {
    spans.sort_by_key(|piece| (piece.entry().first_seq, Reverse(piece.entry().last_seq)));
    let mut strands: Vec<Strand<'_>> = Vec::new();
    let mut next = 0;
    for piece in spans {
        let &BlockEntry { first_seq, last_seq, clock_step, after_gap, .. } = piece.entry();
        let skip = next.max(first_seq) - first_seq;
        if next > last_seq {
            continue;
        }
        next = last_seq + 1;
        let (first_seq, skip) = (first_seq + skip, skip as usize);
        let (clock_step, after_gap) = (clock_step && skip == 0, after_gap && skip == 0);
        let fresh = &piece.times[skip..];
        let follows = |s: &Strand<'_>| {
            s.last_seq + 1 == first_seq && s.times.last() < fresh.first() && s.times.len() + fresh.len() <= MAX_TICKS
        };
        if clock_step || !strands.last().is_some_and(follows) {
            let (times, pieces) = (Vec::new(), Vec::new());
            strands.push(Strand { first_seq, last_seq, clock_step, after_gap, times, pieces });
        }
        if let Some(strand) = strands.last_mut() {
            let moves = (skip..piece.times.len()).zip(strand.times.len()..).collect();
            strand.times.extend(fresh);
            strand.last_seq = last_seq;
            strand.pieces.push((piece, moves));
        }
    }
    strands
}

/// Adds late samples to ticks of their time; the others become blocks of their own.
fn fold<'a>(late: Vec<Rc<Piece<'a>>>, strands: &mut [Strand<'a>]) -> Vec<Strand<'a>> {
    let mut left: BTreeMap<i64, Vec<(usize, usize)>> = BTreeMap::new();
    for (number, piece) in late.iter().enumerate() {
        let mut moves: BTreeMap<usize, Moves> = BTreeMap::new();
        for (tick, time) in piece.times.iter().enumerate() {
            let place = strands.iter().enumerate().find_map(|(i, s)| Some((i, s.times.binary_search(time).ok()?)));
            match place {
                Some((strand, to)) => moves.entry(strand).or_default().push((tick, to)),
                None => left.entry(*time).or_default().push((number, tick)),
            }
        }
        for (strand, moves) in moves {
            strands[strand].pieces.push((piece.clone(), moves));
        }
    }
    let left: Vec<(i64, Vec<(usize, usize)>)> = left.into_iter().collect();
    let strand = |ticks: &[(i64, Vec<(usize, usize)>)]| {
        let mut moves: BTreeMap<usize, Moves> = BTreeMap::new();
        for (to, (_, from)) in ticks.iter().enumerate() {
            from.iter().for_each(|&(number, tick)| moves.entry(number).or_default().push((tick, to)));
        }
        Strand {
            first_seq: 0,
            last_seq: 0,
            clock_step: false,
            after_gap: false,
            times: ticks.iter().map(|(time, _)| *time).collect(),
            pieces: moves.into_iter().map(|(number, moves)| (late[number].clone(), moves)).collect(),
        }
    };
    left.chunks(MAX_TICKS).map(strand).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[(Kind, i64)]) -> Vec<Name> {
        let name = |(i, &(kind, start)): (usize, &(Kind, i64))| Name { kind, start, serial: i as u64 + 1 };
        list.iter().enumerate().map(name).collect()
    }

    #[test]
    fn an_hour_is_due_when_it_is_over_and_whole_or_its_grace_is_over() {
        use Kind::{Hour, Quarter};
        let whole = names(&[(Quarter, 7_200), (Quarter, 8_100), (Quarter, 9_000), (Quarter, 9_900), (Quarter, 10_800)]);
        assert_eq!(choose(10_799, &whole), None);
        assert_eq!(choose(10_800, &whole), Some(vec![0, 1, 2, 3]));
        let part = names(&[(Hour, 3_600), (Hour, 7_200), (Quarter, 8_100)]);
        assert_eq!(choose(10_919, &part), None);
        assert_eq!(choose(10_920, &part), Some(vec![1, 2]));
        assert_eq!(choose(1 << 40, &names(&[(Hour, 0), (Hour, 3_600)])), None);
        // A clock that was far off must not overflow a sum.
        assert_eq!(choose(0, &names(&[(Quarter, i64::MAX - 5)])), None);
        assert!(choose(i64::MAX, &names(&[(Quarter, i64::MIN + 5)])).is_some());
    }

    #[test]
    fn merging_leaves_space_to_others() {
        assert!(room(SPARE_BYTES + 20, 10) && !room(SPARE_BYTES + 19, 10) && !room(u64::MAX - 1, u64::MAX));
    }
}

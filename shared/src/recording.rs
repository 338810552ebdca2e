//! A recording: a self-contained [segment](crate::segment), as one value. The server that replays it and the page on
//! which it is dropped open it alike. Both pass it on as the messages that a live machine would have sent.

use crate::catalog::{Catalog, Chart, Metric};
use crate::column;
use crate::connection_state::ConnectionState;
use crate::record::Record;
use crate::segment::{
    Contents, Damage, NewColumn, ReadAt, Reader, SegmentError, SeriesEntry, SourceEntry, TickSpan, Writer,
};
use crate::series::{SeriesDef, SeriesId, Steps};
use crate::wire::{
    self, ColumnBytes, Columns, Hello, MAX_SOURCES, PROTOCOL, Recorded, ServerMessage, Source, SourceId,
};
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

/// Maximum ticks in a block that is made here.
pub const MAX_BLOCK_TICKS: usize = 3600;

/// Name of the notes about damaged or omitted parts, among the facts of a recording.
pub const NOTE: &str = "note";
/// Name of the title among the facts of a recording.
pub const TITLE: &str = "title";

/// Name of the fact that the machines of a recording were simulated.
pub const SIMULATED: &str = "simulated";

/// The recorded data, still compressed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// The table, and the layout of the page.
    pub catalog: Catalog,
    /// The machines, by number.
    pub machines: Vec<Machine>,
    /// Facts of the whole: name and text.
    pub about: Vec<(String, String)>,
    /// Damaged or omitted parts: sentences for the person who opened it.
    pub notes: Vec<String>,
}

/// One machine of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Its name, interval and facts.
    pub info: Source,
    /// Its series; an id is a place in this list.
    pub series: Vec<SeriesDef>,
    /// Runs of ticks, in order of time, without overlaps.
    pub blocks: Vec<Columns>,
    /// Its records, rising by number, each once.
    pub records: Vec<Record>,
}

/// A span of ticks that is read from a file.
struct Piece {
    from: i64,
    to: i64,
    ticks: u32,
    /// The times as stored in the file.
    times: Vec<u8>,
    columns: Vec<(SeriesId, Vec<u8>)>,
}

/// Unreadable places: their number, and the first in words.
#[derive(Default)]
struct Damages {
    places: u64,
    first: Option<String>,
}

impl Damages {
    fn met(&mut self, text: impl std::fmt::Display) {
        self.places += 1;
        self.first.get_or_insert_with(|| text.to_string());
    }
}

/// Maximum ticks of columns that are unpacked for sorting, for each byte of a file, and for any file: ten times the
/// usual amount for samples of machines. A crafted file could claim any number.
const MAX_UNPACKED_TICKS: (u64, u64) = (128, 1 << 22);

impl Recording {
    /// Opens the bytes of a recording, or of any segment. Damaged parts are left out and named in the notes.
    ///
    /// # Errors
    /// [`SegmentError`] when nothing of it can be read.
    pub fn open(bytes: impl ReadAt) -> Result<Recording, SegmentError> {
        let reader = Reader::rescue(bytes)?;
        let contents = reader.contents();
        let mut catalog = Catalog::new([]);
        catalog.extend(0, contents.rows.to_vec(), contents.charts.clone());
        let mut damages = Damages::default();
        let mut of_source: Vec<Vec<usize>> = vec![Vec::new(); contents.sources.len()];
        for (at, block) in contents.blocks.iter().enumerate() {
            of_source[usize::from(block.source)].push(at);
        }
        let mut records = records(&reader, &mut damages);
        let mut unpacked = MAX_UNPACKED_TICKS.0.saturating_mul(reader.size()).saturating_add(MAX_UNPACKED_TICKS.1);
        let mut machines = Vec::new();
        for (number, (source, blocks)) in contents.sources.iter().zip(of_source).take(MAX_SOURCES).enumerate() {
            let ids: HashMap<SeriesId, SeriesId> =
                source.series.iter().enumerate().map(|(i, s)| (s.id, i as SeriesId)).collect();
            let pieces = blocks.into_iter().filter_map(|at| piece(&reader, at, &ids, &mut damages)).collect();
            let series: Vec<SeriesDef> =
                source.series.iter().map(|s| SeriesDef { metric: s.row, instance: s.instance.clone() }).collect();
            let SourceEntry { name, interval, facts, .. } = source.clone();
            let info = Source::new(number as SourceId, name, interval, facts);
            let steps = steps(&catalog, &series);
            let blocks = in_order(info.id, pieces, &steps, &mut unpacked, &mut damages);
            let records = records.remove(&info.id).unwrap_or_default();
            machines.push(Machine { info, series, blocks, records });
        }
        let (noted, about) = contents.about.iter().cloned().partition::<Vec<_>, _>(|(name, _)| name == NOTE);
        let mut notes: Vec<String> = noted.into_iter().map(|(_, text)| text).collect();
        if contents.sources.len() > MAX_SOURCES {
            let count = contents.sources.len();
            notes.push(format!("the file has {count} machines; the first {MAX_SOURCES} are read"));
        }
        let any = machines.iter().any(|machine: &Machine| !machine.blocks.is_empty());
        if !reader.complete() {
            notes.push(match any {
                true => "the end of the file is missing: later samples are lost".into(),
                false => "the file ends before its first sample".into(),
            });
        }
        if let Some(first) = damages.first {
            let n = damages.places;
            let places = if n == 1 { "1 place is".into() } else { format!("{n} places are") };
            let rest = if any { "; the rest is intact" } else { "" };
            notes.push(format!("{places} damaged and skipped, the first: {first}{rest}"));
        }
        Ok(Recording { catalog, machines, about, notes })
    }

    /// Times of the first and the last tick, ms; None in an empty one.
    pub fn span(&self) -> Option<(i64, i64)> {
        let blocks = self.machines.iter().flat_map(|m| &m.blocks);
        let spans = blocks.filter_map(|b| {
            let times = column::decode_times(&b.times, b.ticks as usize).ok()?;
            Some((*times.first()?, *times.last()?))
        });
        spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Its description for a page; None for an empty one.
    pub fn describe(&self) -> Option<Recorded> {
        let (from, to) = self.span()?;
        let title = self.about.iter().find(|(name, _)| name == TITLE).map_or(String::new(), |(_, title)| title.clone());
        Some(Recorded { from, to, title, notes: self.notes.clone() })
    }

    /// Whether its machines were simulated.
    pub fn simulated(&self) -> bool {
        self.about.iter().any(|(name, _)| name == SIMULATED)
    }

    /// Writes it as a file.
    ///
    /// # Errors
    /// The error of the system; `InvalidInput` if one of its blocks is invalid.
    pub fn write<W: Write>(&self, out: W) -> io::Result<W> {
        let notes = self.notes.iter().map(|note| (NOTE.to_string(), note.clone()));
        let about = self.about.iter().cloned().chain(notes).collect();
        let machines: Vec<(Source, Vec<SeriesDef>)> =
            self.machines.iter().map(|m| (m.info.clone(), m.series.clone())).collect();
        let contents = contents(&self.catalog, &machines, about);
        let mut writer = Writer::begin(out)?;
        writer.opening(&contents)?;
        for (number, machine) in self.machines.iter().enumerate() {
            for block in &machine.blocks {
                let times = column::decode_times(&block.times, block.ticks as usize);
                let times = times.map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "damaged times"))?;
                let (first_seq, last_seq) = (block.first_seq, block.last_seq);
                let span = TickSpan {
                    source: number as u16,
                    first_seq,
                    last_seq,
                    times: &times,
                    clock_step: false,
                    after_gap: false,
                };
                writer.block(
                    span,
                    block.columns.iter().map(|(id, raw)| NewColumn { id: *id, raw: raw.0.clone(), tier: None }),
                )?;
            }
            writer.records(number as u16, &machine.records)?;
        }
        writer.finish(&contents)
    }

    /// The messages that a page would have received from these machines, from the first on; empty for an empty one.
    pub fn messages(self) -> Vec<ServerMessage> {
        let Some(recorded) = self.describe() else { return Vec::new() };
        let simulated = self.simulated();
        let (from, to) = (recorded.from, recorded.to);
        let hello = Hello {
            protocol: PROTOCOL,
            version: String::new(),
            boot: 0,
            now: to,
            retention: to - from,
            simulated,
            recorded: Some(recorded),
            accounts: false,
        };
        let mut messages = vec![
            ServerMessage::Hello(hello),
            ServerMessage::Catalog(self.catalog),
            ServerMessage::Sources(
                self.machines.iter().map(|m| m.info.entry(ConnectionState::Ended, to, Vec::new())).collect(),
            ),
        ];
        for Machine { info, series, blocks, records } in self.machines {
            messages.push(ServerMessage::Facts { source: info.id, facts: info.facts });
            messages.push(ServerMessage::Series { source: info.id, first: 0, defs: series });
            messages.extend(blocks.into_iter().map(ServerMessage::Columns));
            messages.push(ServerMessage::HistoryEnd { source: info.id, from, to: i64::MAX, more: false });
            messages.extend(wire::record_messages(info.id, records));
        }
        messages
    }
}

/// Steps of series, by id.
pub fn steps(catalog: &Catalog, series: &[SeriesDef]) -> Vec<Steps> {
    series.iter().map(|def| catalog.metric(def).map_or(0.0, |m| m.steps)).collect()
}

/// The contents of a recording of these machines, without its blocks. Series ids are positions in the machines' lists.
pub fn contents(catalog: &Catalog, machines: &[(Source, Vec<SeriesDef>)], about: Vec<(String, String)>) -> Contents {
    let mut used: Vec<u16> = machines.iter().flat_map(|(_, series)| series.iter().map(|def| def.metric)).collect();
    used.sort_unstable();
    used.dedup();
    let rows: Vec<Metric> = used.iter().filter_map(|row| catalog.metrics.get(usize::from(*row)).cloned()).collect();
    let drawn: HashSet<&str> = rows.iter().map(|row| row.chart.as_str()).collect();
    let charts: Vec<Chart> = catalog.layout.charts.iter().filter(|c| drawn.contains(c.id.as_str())).cloned().collect();
    let source = |(info, series): &(Source, Vec<SeriesDef>)| {
        let entry = |(id, def): (usize, &SeriesDef)| {
            let row = used.binary_search(&def.metric).unwrap_or(0) as u16;
            SeriesEntry { id: id as SeriesId, row, instance: def.instance.clone() }
        };
        let (name, interval, facts) = (info.key.clone(), info.interval, info.facts.clone());
        SourceEntry { name, interval, facts, series: series.iter().enumerate().map(entry).collect() }
    };
    Contents { charts, sources: machines.iter().map(source).collect(), rows: rows.into(), about, ..Contents::default() }
}

/// Blocks of samples (time in ms, value) by series id, each list rising in time: of at most [`MAX_BLOCK_TICKS`] ticks,
/// the first tick having this sequence.
pub fn blocks(source: SourceId, mut first_seq: u64, samples: &[Vec<(i64, f64)>], steps: &[Steps]) -> Vec<Columns> {
    let mut times: Vec<i64> = samples.iter().flatten().map(|(t, _)| *t).collect();
    times.sort_unstable();
    times.dedup();
    let mut next = vec![0; samples.len()];
    let mut blocks = Vec::new();
    for times in times.chunks(MAX_BLOCK_TICKS) {
        let mut columns = Vec::new();
        for (id, samples) in samples.iter().enumerate() {
            let within = samples[next[id]..].partition_point(|(t, _)| times.last().is_some_and(|last| t <= last));
            let here = &samples[next[id]..next[id] + within];
            next[id] += within;
            if !here.is_empty() {
                let place = |(t, v): &(i64, f64)| (times.partition_point(|at| at < t), *v);
                let here: Vec<(usize, f64)> = here.iter().map(place).collect();
                let encoded = column::encode_sparse(&here, times.len(), steps.get(id).copied().unwrap_or(0.0));
                columns.push((id as SeriesId, ColumnBytes(encoded)));
            }
        }
        let last_seq = first_seq + times.len() as u64 - 1;
        let ticks = times.len() as u32;
        blocks.push(Columns { source, first_seq, last_seq, ticks, times: column::encode_times(times), columns });
        first_seq = last_seq + 1;
    }
    blocks
}

/// The records of each machine, each once.
fn records<R: ReadAt>(reader: &Reader<R>, damages: &mut Damages) -> HashMap<SourceId, Vec<Record>> {
    let mut records: HashMap<SourceId, Vec<Record>> = HashMap::new();
    for (at, entry) in reader.contents().records.iter().enumerate() {
        match reader.records(at) {
            Ok(more) => records.entry(entry.source).or_default().extend(more),
            Err(damage) if reader.complete() || damage.io.is_none() => damages.met(&damage),
            Err(_) => {}
        }
    }
    for of_source in records.values_mut() {
        of_source.sort_by_key(|record| record.n);
        of_source.dedup_by_key(|record| record.n);
    }
    records
}

/// The readable part of a block; None if there is none.
fn piece<R: ReadAt>(
    reader: &Reader<R>,
    at: usize,
    ids: &HashMap<SeriesId, SeriesId>,
    damages: &mut Damages,
) -> Option<Piece> {
    // Data after the end of a truncated file is missing, not damaged: all is in memory, and can be read otherwise.
    let mut damaged = |damage: &Damage| {
        if reader.complete() || damage.io.is_none() {
            damages.met(damage);
        }
    };
    let block = &reader.contents().blocks[at];
    let times = reader.times(at).and_then(|_| reader.times_bytes(at)).inspect_err(&mut damaged).ok()?;
    let (entries, index) = reader.entries(at);
    index.iter().for_each(&mut damaged);
    let mut columns = Vec::with_capacity(entries.len());
    let mut nameless = Vec::new();
    for entry in &entries {
        match (ids.get(&entry.id), reader.read(at, entry)) {
            (Some(id), Ok(bytes)) => columns.push((*id, bytes)),
            (_, Err(damage)) => damaged(&damage),
            (None, Ok(_)) => nameless.push(entry.id),
        }
    }
    nameless.iter().for_each(|id| damages.met(format!("series {id} has no name")));
    let (from, to, ticks) = (block.from, block.to, block.ticks);
    (!columns.is_empty()).then_some(Piece { from, to, ticks, times, columns })
}

/// Sorts pieces by time. Overlapping pieces (late samples; a clock that was set back) are rebuilt as one; of two
/// samples of one instant, the first counts. `unpacked` is the number of ticks that may still be unpacked for it.
fn in_order(
    source: SourceId,
    mut pieces: Vec<Piece>,
    steps: &[Steps],
    unpacked: &mut u64,
    damages: &mut Damages,
) -> Vec<Columns> {
    pieces.sort_by_key(|piece| piece.from);
    let mut groups: Vec<(i64, Vec<Piece>)> = Vec::new();
    for piece in pieces {
        match groups.last_mut() {
            Some((end, group)) if piece.from <= *end => {
                *end = piece.to.max(*end);
                group.push(piece);
            }
            _ => groups.push((piece.to, vec![piece])),
        }
    }
    let (mut all, mut first_seq) = (Vec::new(), 1);
    for (_, mut group) in groups {
        let made: Vec<Columns> = match group.len() {
            1 => group.pop().into_iter().map(|piece| whole(source, first_seq, piece)).collect(),
            _ => blocks(source, first_seq, &merged(&group, steps.len(), unpacked, damages), steps),
        };
        first_seq = made.last().map_or(first_seq, |block| block.last_seq + 1);
        all.extend(made);
    }
    all
}

fn whole(source: SourceId, first_seq: u64, piece: Piece) -> Columns {
    let Piece { ticks, times, columns, .. } = piece;
    let columns = columns.into_iter().map(|(id, bytes)| (id, ColumnBytes(bytes)));
    let last_seq = first_seq + u64::from(ticks) - 1;
    Columns { source, first_seq, last_seq, ticks, times, columns: columns.collect() }
}

fn merged(pieces: &[Piece], series: usize, unpacked: &mut u64, damages: &mut Damages) -> Vec<Vec<(i64, f64)>> {
    let mut all = vec![Vec::new(); series];
    for Piece { ticks, times, columns, .. } in pieces {
        let Ok(times) = column::decode_times(times, *ticks as usize) else { continue };
        for (id, bytes) in columns {
            let Some(left) = unpacked.checked_sub(u64::from(*ticks)) else {
                damages.met(format!("series {id} where blocks reach into each other: far more than a machine sends"));
                continue;
            };
            *unpacked = left;
            match (column::decode(bytes, times.len()), all.get_mut(*id as usize)) {
                (Ok(values), Some(samples)) => {
                    samples.extend(times.iter().copied().zip(values).filter(|(_, v)| v.is_finite()));
                }
                _ => damages.met(format!("the samples of series {id}")),
            }
        }
    }
    for samples in &mut all {
        samples.sort_by_key(|(t, _)| *t);
        samples.dedup_by_key(|(t, _)| *t);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::VOCABULARY;

    fn table() -> Catalog {
        Catalog::new(VOCABULARY.iter().copied().flatten().copied())
    }

    fn def(catalog: &Catalog, tag: &str) -> SeriesDef {
        let found = catalog.find(tag).expect("known");
        SeriesDef { metric: found.metric, instance: found.instance }
    }

    /// Two series over two blocks and a bit, one of them with a hole.
    fn samples() -> Vec<Vec<(i64, f64)>> {
        let at = |i: usize| 1_714_566_896_000 + i as i64 * 1000;
        let all = 0..MAX_BLOCK_TICKS * 2 + 50;
        vec![
            all.clone().map(|i| (at(i), (i % 97) as f64)).collect(),
            all.filter(|i| i % 700 > 30).map(|i| (at(i), i as f64 / 4.0)).collect(),
        ]
    }

    fn recording() -> Recording {
        recording_of(&[samples()])
    }

    /// Each span is blocks of its own.
    fn recording_of(spans: &[Vec<Vec<(i64, f64)>>]) -> Recording {
        let catalog = table();
        let series = vec![def(&catalog, "gpu.3.temp"), def(&catalog, "disk./mnt/x.usageGB")];
        let info = Source::new(0, "node-7".into(), 1000, vec![("os".into(), "Linux".into())]);
        let blocks = spans.iter().flat_map(|samples| blocks(0, 1, samples, &steps(&catalog, &series))).collect();
        let record = |n: u64| Record { n, t: 1_000 * n as i64, kind: "marker".into(), body: vec![b'x'; n as usize] };
        let records = vec![record(3), record(7)];
        let about = vec![(TITLE.to_string(), "a span".to_string())];
        Recording {
            catalog,
            machines: vec![Machine { info, series, blocks, records }],
            about,
            notes: vec!["mind the gap".into()],
        }
    }

    /// Three blocks of a few ticks, to be cut and flipped at every byte.
    fn small() -> Recording {
        let at = |i: i64| 1_714_566_896_000 + i * 1000 + i % 3;
        let span = |from: i64| {
            let all = from..from + 40;
            vec![
                all.clone().map(|i| (at(i), (i * i % 97) as f64)).collect(),
                all.map(|i| (at(i), i as f64 / 3.0)).collect(),
            ]
        };
        recording_of(&[span(0), span(100), span(200)])
    }

    fn read(recording: &Recording) -> Vec<(String, Vec<(i64, f64)>)> {
        let mut all = Vec::new();
        for machine in &recording.machines {
            for (id, def) in machine.series.iter().enumerate() {
                let mut samples = Vec::new();
                for block in &machine.blocks {
                    let times = column::decode_times(&block.times, block.ticks as usize).expect("times");
                    for (_, bytes) in block.columns.iter().filter(|(i, _)| *i as usize == id) {
                        let values = column::decode(&bytes.0, times.len()).expect("values");
                        samples.extend(times.iter().copied().zip(values).filter(|(_, v)| v.is_finite()));
                    }
                }
                all.push((recording.catalog.tag(def), samples));
            }
        }
        all
    }

    #[test]
    fn a_recording_comes_back_from_its_file() {
        let written = recording();
        let opened = Recording::open(written.write(Vec::new()).expect("memory")).expect("sound");
        assert_eq!(read(&opened), read(&written));
        let samples = samples();
        assert_eq!(read(&opened)[0], ("gpu.3.temp".to_string(), samples[0].clone()));
        assert_eq!(read(&opened)[1], ("disk./mnt/x.usageGB".to_string(), samples[1].clone()));
        assert_eq!((&opened.about, &opened.notes), (&written.about, &written.notes));
        assert_eq!(opened.machines[0].info, written.machines[0].info);
        assert_eq!(opened.span(), Some((samples[0][0].0, samples[0][samples[0].len() - 1].0)));
        assert_eq!(opened.catalog.metrics.len(), 2, "only the rows that it names");
    }

    /// Samples of each series of the whole, if the rest of the file has any.
    fn left(bytes: Vec<u8>, whole: &[(String, Vec<(i64, f64)>)]) -> Option<(Vec<usize>, Recording)> {
        let opened = Recording::open(bytes).ok()?;
        let found = read(&opened);
        let counts = whole.iter().map(|(tag, known)| {
            let (_, samples) = found.iter().find(|(t, _)| t == tag)?;
            let mut known = known.iter();
            assert!(samples.iter().all(|sample| known.any(|k| k == sample)), "an invented sample of {tag}");
            Some(samples.len())
        });
        Some((counts.map(Option::unwrap_or_default).collect(), opened))
    }

    #[test]
    fn a_recording_cut_anywhere_gives_every_column_that_is_whole_and_says_so() {
        let whole = small();
        let bytes = whole.write(Vec::new()).expect("memory");
        let known = read(&whole);
        let mut seen = Vec::new();
        for cut in 0..bytes.len() {
            let Some((counts, opened)) = left(bytes[..cut].to_vec(), &known) else {
                assert!(seen.is_empty(), "cut at {cut}: it was read when it was shorter");
                continue;
            };
            let end = "the end of the file is missing: later samples are lost";
            let said =
                opened.notes.iter().map(String::as_str).filter(|note| *note != "mind the gap").collect::<Vec<_>>();
            match counts.iter().sum::<usize>() {
                0 => assert_eq!((said, opened.describe()), (vec!["the file ends before its first sample"], None)),
                // One of its two trailers is left.
                _ if cut == bytes.len() - 28 => assert!(said.is_empty()),
                _ => assert_eq!(said, [end], "cut at {cut}"),
            }
            if seen.last() != Some(&counts) {
                assert!(seen.last().is_none_or(|last: &Vec<usize>| last.iter().zip(&counts).all(|(a, b)| a <= b)));
                seen.push(counts);
            }
        }
        // Column by column: two series over three blocks.
        assert_eq!(seen.len(), 7, "{seen:?}");
        assert_eq!(seen.last(), Some(&known.iter().map(|(_, samples)| samples.len()).collect()));
    }

    #[test]
    fn a_flipped_byte_costs_one_column_of_one_block_and_is_told() {
        let whole = small();
        let bytes = whole.write(Vec::new()).expect("memory");
        let known = read(&whole);
        let all: Vec<usize> = known.iter().map(|(_, samples)| samples.len()).collect();
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 0x21;
            let (counts, opened) = left(bad, &known).expect("one of two directories is sound");
            let lost: Vec<usize> = all.iter().zip(&counts).map(|(all, found)| all - found).collect();
            assert!(lost.iter().filter(|lost| **lost > 0).count() <= 1, "byte {at}: {lost:?}");
            assert!(lost.iter().all(|lost| *lost <= 40), "byte {at}: {lost:?}");
            let said = opened.notes.iter().any(|note| note.starts_with("1 place is damaged and skipped"));
            let fewer = opened.machines[0].records.len() < whole.machines[0].records.len();
            assert!(lost.iter().all(|lost| *lost == 0) || !fewer, "byte {at}: a column and the records");
            assert_eq!(said, counts != all || fewer, "byte {at}: {:?}", opened.notes);
        }
    }

    #[test]
    fn of_a_file_of_very_many_machines_the_first_are_read() {
        let catalog = table();
        let count = 3 * usize::from(u16::MAX);
        let machines: Vec<_> = (0..count)
            .map(|n| (Source::new(0, format!("m{n}"), 1000, Vec::new()), vec![def(&catalog, "gpu.3.temp")]))
            .collect();
        let mut writer = Writer::begin(Vec::new()).expect("memory");
        let span =
            TickSpan { source: 9, first_seq: 1, last_seq: 1, times: &[1_000], clock_step: false, after_gap: false };
        let steps = steps(&catalog, &machines[9].1);
        writer.block(span, [NewColumn::new(0, &[7.0], steps[0])]).expect("memory");
        let bytes = writer.finish(&contents(&catalog, &machines, Vec::new())).expect("memory");
        let opened = Recording::open(bytes).expect("a recording");
        let blocks: Vec<usize> = opened.machines.iter().map(|machine| machine.blocks.len()).collect();
        assert_eq!((blocks.len(), blocks.iter().sum::<usize>(), blocks[9]), (MAX_SOURCES, 1, 1));
        assert_eq!(opened.notes, [format!("the file has {count} machines; the first {MAX_SOURCES} are read")]);
    }

    #[test]
    fn what_a_crafted_file_unpacks_is_bounded_by_its_length() {
        let catalog = table();
        let series = vec![def(&catalog, "gpu.3.temp")];
        let steps = steps(&catalog, &series);
        let source = Source::new(0, "a".into(), 1000, Vec::new());
        let contents = contents(&catalog, &[(source, series)], Vec::new());
        let mut writer = Writer::begin(Vec::new()).expect("memory");
        let (ticks, blocks) = (column::MAX_TICKS, 48);
        let column = NewColumn::new(0, &vec![7.0; ticks], steps[0]);
        for from in 0..blocks {
            let times: Vec<i64> = (from..from + ticks as i64).collect();
            let span =
                TickSpan { source: 0, first_seq: 0, last_seq: 0, times: &times, clock_step: false, after_gap: false };
            writer.block(span, [column.clone()]).expect("memory");
        }
        let bytes = writer.finish(&contents).expect("memory");
        let most = MAX_UNPACKED_TICKS.1 + MAX_UNPACKED_TICKS.0 * bytes.len() as u64;
        assert!(most < blocks as u64 * ticks as u64, "{} bytes", bytes.len());
        let opened = Recording::open(bytes).expect("a recording");
        let lost = blocks as u64 - most / ticks as u64;
        assert!(opened.notes[0].starts_with(&format!("{lost} places are damaged")), "{:?}", opened.notes);
    }

    #[test]
    fn blocks_that_reach_into_each_other_become_one() {
        let catalog = table();
        let series = vec![def(&catalog, "gpu.3.temp")];
        let steps = steps(&catalog, &series);
        let contents =
            contents(&catalog, &[(Source::new(0, "a".into(), 1000, Vec::new()), series.clone())], Vec::new());
        let mut writer = Writer::begin(Vec::new()).expect("memory");
        for (first_seq, last_seq, times, values) in
            [(1, 3, [1000, 2000, 4000], [1.0, 2.0, 4.0]), (0, 0, [2000, 3000, 9000], [7.0, 3.0, 9.0])]
        {
            let span = TickSpan { source: 0, first_seq, last_seq, times: &times, clock_step: false, after_gap: false };
            writer.block(span, [NewColumn::new(0, &values, steps[0])]).expect("memory");
        }
        let bytes = writer.finish(&contents).expect("memory");
        let opened = Recording::open(bytes.clone()).expect("sound");
        let expected = [(1000, 1.0), (2000, 2.0), (3000, 3.0), (4000, 4.0), (9000, 9.0)];
        assert_eq!(read(&opened)[0].1, expected);
        assert_eq!(opened.machines[0].blocks.len(), 1);
    }

    #[test]
    fn what_is_no_recording_is_refused() {
        for bytes in [&b""[..], b"hello", &[0; 500]] {
            assert!(Recording::open(bytes.to_vec()).is_err());
        }
    }
}

//! A recording: a [segment](crate::segment) that stands for itself, as one value. The server that replays it and the page
//! that it is dropped on open it alike, and hand it on as the messages that a live machine would have sent.

use crate::catalog::{Catalog, Metric};
use crate::column;
use crate::segment::{Contents, NewColumn, ReadAt, Reader, Run, SegmentError, SeriesEntry, SourceEntry, Writer};
use crate::series::{SeriesDef, SeriesId, Steps};
use crate::wire::{ColumnBytes, Columns, Hello, PROTOCOL, Recorded, ServerMessage, Source, SourceId};
use std::collections::HashMap;
use std::io::{self, Write};

/// Ticks in a block that is made here.
pub const BLOCK: usize = 3600;

/// Name of what was left out or is damaged, among the facts of a recording.
pub const NOTE: &str = "note";
/// Name of the title among the facts of a recording.
pub const TITLE: &str = "title";

/// Name of the fact that the machines of a recording were simulated.
pub const SIMULATED: &str = "simulated";

/// What was recorded, still compressed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// The table, and the layout of the page.
    pub catalog: Catalog,
    /// The machines, by number.
    pub machines: Vec<Machine>,
    /// Facts of the whole: name and text.
    pub about: Vec<(String, String)>,
    /// What is damaged or was left out: sentences for the person who opened it.
    pub notes: Vec<String>,
}

/// One machine of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Its name, interval and facts.
    pub info: Source,
    /// Its series; an id is a place in this list.
    pub series: Vec<SeriesDef>,
    /// Runs of ticks, in order of time, none reaching into another.
    pub blocks: Vec<Columns>,
}

/// A run of ticks that is read from a file.
struct Piece {
    times: Vec<i64>,
    /// The times as they stand in the file.
    encoded: Vec<u8>,
    columns: Vec<(SeriesId, Vec<u8>)>,
}

impl Recording {
    /// Opens the bytes of a recording, or of any segment. What is damaged is left out and told in the notes.
    ///
    /// # Errors
    /// [`SegmentError`] when nothing of it can be read.
    pub fn open(bytes: impl ReadAt) -> Result<Recording, SegmentError> {
        let reader = Reader::rescue(bytes)?;
        let contents = reader.contents();
        let mut catalog = Catalog::new([]);
        catalog.extend(0, contents.rows.to_vec(), contents.charts.clone());
        let mut damages = 0;
        let mut first = None;
        let mut damaged = |text: String| {
            damages += 1;
            first.get_or_insert(text);
        };
        let mut machines = Vec::new();
        for (number, source) in contents.sources.iter().enumerate() {
            let ids: HashMap<SeriesId, SeriesId> =
                source.series.iter().enumerate().map(|(i, s)| (s.id, i as SeriesId)).collect();
            let mut pieces = Vec::new();
            for (at, _) in contents.blocks.iter().enumerate().filter(|(_, b)| usize::from(b.source) == number) {
                let (times, encoded) = match reader.times(at).and_then(|times| Ok((times, reader.times_bytes(at)?))) {
                    Ok(times) => times,
                    Err(damage) => {
                        damaged(damage.to_string());
                        continue;
                    }
                };
                let (entries, index) = reader.entries(at);
                index.iter().for_each(|damage| damaged(damage.to_string()));
                let mut columns = Vec::with_capacity(entries.len());
                for entry in &entries {
                    match (ids.get(&entry.id), reader.read(at, entry)) {
                        (Some(id), Ok(bytes)) => columns.push((*id, bytes)),
                        (_, Err(damage)) => damaged(damage.to_string()),
                        (None, Ok(_)) => damaged(format!("series {} has no name", entry.id)),
                    }
                }
                pieces.push(Piece { times, encoded, columns });
            }
            let series: Vec<SeriesDef> =
                source.series.iter().map(|s| SeriesDef { metric: s.row, instance: s.instance.clone() }).collect();
            let SourceEntry { name, interval, facts, .. } = source.clone();
            let info = Source { id: number as SourceId, name, interval, facts };
            let steps = steps(&catalog, &series);
            let blocks = in_order(info.id, pieces, &steps, &mut damaged);
            machines.push(Machine { info, series, blocks });
        }
        let (noted, about) = contents.about.iter().cloned().partition::<Vec<_>, _>(|(name, _)| name == NOTE);
        let mut notes: Vec<String> = noted.into_iter().map(|(_, text)| text).collect();
        if !reader.complete() {
            notes.push("the end of the file is missing: this is what came before".into());
        }
        if let Some(first) = first {
            let places = if damages == 1 { "1 place is".into() } else { format!("{damages} places are") };
            notes.push(format!("{places} damaged and left out, the first: {first}; the rest is sound"));
        }
        Ok(Recording { catalog, machines, about, notes })
    }

    /// Times of the first and the last tick, ms; none in an empty one.
    pub fn span(&self) -> Option<(i64, i64)> {
        let blocks = self.machines.iter().flat_map(|m| &m.blocks);
        let spans = blocks.filter_map(|b| {
            let times = column::decode_times(&b.times, b.ticks as usize).ok()?;
            Some((*times.first()?, *times.last()?))
        });
        spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// What a page is told of it; none of an empty one.
    pub fn told(&self) -> Option<Recorded> {
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
    /// What the system said; `InvalidInput` when a block of it is none.
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
                let run = Run { source: number as u16, first_seq, last_seq, times: &times, clock_step: false };
                writer.block(
                    run,
                    block.columns.iter().map(|(id, raw)| NewColumn { id: *id, raw: raw.0.clone(), tier: None }),
                )?;
            }
        }
        writer.finish(&contents)
    }

    /// What a page would have heard of these machines, from the first message on; nothing of an empty one.
    pub fn messages(self) -> Vec<ServerMessage> {
        let Some(recorded) = self.told() else { return Vec::new() };
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
        };
        let mut messages = vec![
            ServerMessage::Hello(hello),
            ServerMessage::Catalog(self.catalog),
            ServerMessage::Sources(self.machines.iter().map(|m| m.info.clone()).collect()),
        ];
        for Machine { info, series, blocks } in self.machines {
            messages.push(ServerMessage::Series { source: info.id, first: 0, defs: series });
            messages.extend(blocks.into_iter().map(ServerMessage::Columns));
            messages.push(ServerMessage::HistoryEnd { source: info.id, from, to: i64::MAX });
        }
        messages
    }
}

/// Steps of series, by id.
pub fn steps(catalog: &Catalog, series: &[SeriesDef]) -> Vec<Steps> {
    series.iter().map(|def| catalog.metric(def).map_or(0.0, |m| m.steps)).collect()
}

/// The contents of a recording of these machines, whose series' ids are places in their lists, but for its blocks.
pub fn contents(catalog: &Catalog, machines: &[(Source, Vec<SeriesDef>)], about: Vec<(String, String)>) -> Contents {
    let mut used: Vec<u16> = machines.iter().flat_map(|(_, series)| series.iter().map(|def| def.metric)).collect();
    used.sort_unstable();
    used.dedup();
    let rows: Vec<Metric> = used.iter().filter_map(|row| catalog.metrics.get(usize::from(*row)).cloned()).collect();
    let charts = catalog.layout.charts.iter().filter(|chart| rows.iter().any(|row| row.chart == chart.id));
    let source = |(info, series): &(Source, Vec<SeriesDef>)| {
        let entry = |(id, def): (usize, &SeriesDef)| {
            let row = used.binary_search(&def.metric).unwrap_or(0) as u16;
            SeriesEntry { id: id as SeriesId, row, instance: def.instance.clone() }
        };
        let (name, interval, facts) = (info.name.clone(), info.interval, info.facts.clone());
        SourceEntry { name, interval, facts, series: series.iter().enumerate().map(entry).collect() }
    };
    Contents {
        charts: charts.cloned().collect(),
        sources: machines.iter().map(source).collect(),
        rows: rows.into(),
        about,
        ..Contents::default()
    }
}

/// Blocks of samples (time in ms, value) by series id, each list rising in time: of at most [`BLOCK`] ticks, the first tick
/// having this sequence.
pub fn blocks(source: SourceId, mut first_seq: u64, samples: &[Vec<(i64, f64)>], steps: &[Steps]) -> Vec<Columns> {
    let mut times: Vec<i64> = samples.iter().flatten().map(|(t, _)| *t).collect();
    times.sort_unstable();
    times.dedup();
    let mut next = vec![0; samples.len()];
    let mut blocks = Vec::new();
    for times in times.chunks(BLOCK) {
        let mut columns = Vec::new();
        for (id, samples) in samples.iter().enumerate() {
            let within = samples[next[id]..].partition_point(|(t, _)| times.last().is_some_and(|last| t <= last));
            let mut here = samples[next[id]..next[id] + within].iter().peekable();
            next[id] += within;
            if here.peek().is_some() {
                let value = |t: &i64| here.next_if(|(at, _)| at == t).map_or(f64::NAN, |(_, v)| *v);
                let values: Vec<f64> = times.iter().map(value).collect();
                let encoded = column::encode(&values, steps.get(id).copied().unwrap_or(0.0));
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

/// Puts pieces in order of time. Where some reach into each other (late samples; a clock that was set back) they are made
/// anew as one; of two samples of one instant the first counts.
fn in_order(
    source: SourceId,
    mut pieces: Vec<Piece>,
    steps: &[Steps],
    damaged: &mut dyn FnMut(String),
) -> Vec<Columns> {
    pieces.sort_by_key(|piece| piece.times.first().copied());
    let mut groups: Vec<(i64, Vec<Piece>)> = Vec::new();
    for piece in pieces {
        let (from, to) = (piece.times.first().copied().unwrap_or(0), piece.times.last().copied().unwrap_or(0));
        match groups.last_mut() {
            Some((end, group)) if from <= *end => {
                *end = to.max(*end);
                group.push(piece);
            }
            _ => groups.push((to, vec![piece])),
        }
    }
    let (mut all, mut first_seq) = (Vec::new(), 1);
    for (_, mut group) in groups {
        let made: Vec<Columns> = match group.len() {
            1 => group.pop().into_iter().map(|piece| whole(source, first_seq, piece)).collect(),
            _ => blocks(source, first_seq, &merged(&group, steps.len(), damaged), steps),
        };
        first_seq = made.last().map_or(first_seq, |block| block.last_seq + 1);
        all.extend(made);
    }
    all
}

fn whole(source: SourceId, first_seq: u64, piece: Piece) -> Columns {
    let columns = piece.columns.into_iter().map(|(id, bytes)| (id, ColumnBytes(bytes)));
    let ticks = piece.times.len() as u32;
    let last_seq = first_seq + u64::from(ticks) - 1;
    Columns { source, first_seq, last_seq, ticks, times: piece.encoded, columns: columns.collect() }
}

fn merged(pieces: &[Piece], series: usize, damaged: &mut dyn FnMut(String)) -> Vec<Vec<(i64, f64)>> {
    let mut all = vec![Vec::new(); series];
    for Piece { times, columns, .. } in pieces {
        for (id, bytes) in columns {
            match (column::decode(bytes, times.len()), all.get_mut(*id as usize)) {
                (Ok(values), Some(samples)) => {
                    samples.extend(times.iter().copied().zip(values).filter(|(_, v)| v.is_finite()));
                }
                _ => damaged(format!("the samples of series {id}")),
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
        let all = 0..BLOCK * 2 + 50;
        vec![
            all.clone().map(|i| (at(i), (i % 97) as f64)).collect(),
            all.filter(|i| i % 700 > 30).map(|i| (at(i), i as f64 / 4.0)).collect(),
        ]
    }

    fn recording() -> Recording {
        let catalog = table();
        let series = vec![def(&catalog, "gpu.3.temp"), def(&catalog, "disk./mnt/x.usageGB")];
        let info = Source { id: 0, name: "node-7".into(), interval: 1000, facts: vec![("os".into(), "Linux".into())] };
        let blocks = blocks(0, 1, &samples(), &steps(&catalog, &series));
        let about = vec![(TITLE.to_string(), "a run".to_string())];
        Recording {
            catalog,
            machines: vec![Machine { info, series, blocks }],
            about,
            notes: vec!["mind the gap".into()],
        }
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

    #[test]
    fn a_cut_recording_gives_the_blocks_that_are_whole_and_says_so() {
        let whole = recording();
        let bytes = whole.write(Vec::new()).expect("memory");
        let mut blocks_seen = std::collections::BTreeSet::new();
        for cut in (0..bytes.len()).step_by(7) {
            let Ok(opened) = Recording::open(bytes[..cut].to_vec()) else { continue };
            let n = opened.machines[0].blocks.len();
            blocks_seen.insert(n);
            assert_eq!(opened.machines[0].blocks, whole.machines[0].blocks[..n], "cut at {cut}");
            assert!(
                n == 3 || opened.notes.iter().any(|note| note.contains("missing")),
                "cut at {cut}: {:?}",
                opened.notes
            );
        }
        assert_eq!(blocks_seen.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn a_flipped_byte_costs_one_block_of_one_series_or_one_block_and_is_told() {
        let whole = recording();
        let bytes = whole.write(Vec::new()).expect("memory");
        let known = read(&whole);
        for at in (0..bytes.len()).step_by(5) {
            let mut bad = bytes.clone();
            bad[at] ^= 0x21;
            let Ok(opened) = Recording::open(bad) else { continue };
            let found = read(&opened);
            for (tag, samples) in &found {
                let (_, known) = known.iter().find(|(t, _)| t == tag).expect("a tag that was written");
                let mut all = known.iter();
                assert!(
                    samples.iter().all(|sample| all.any(|k| k == sample)),
                    "byte {at}: an invented sample of {tag}"
                );
                assert!(known.len() - samples.len() <= BLOCK, "byte {at}: more than a block lost");
            }
            assert!(found == known || opened.notes.len() > 1, "byte {at}: silent loss");
        }
    }

    #[test]
    fn blocks_that_reach_into_each_other_become_one() {
        let catalog = table();
        let series = vec![def(&catalog, "gpu.3.temp")];
        let steps = steps(&catalog, &series);
        let contents = contents(
            &catalog,
            &[(Source { id: 0, name: "a".into(), interval: 1000, facts: Vec::new() }, series.clone())],
            Vec::new(),
        );
        let mut writer = Writer::begin(Vec::new()).expect("memory");
        for (first_seq, last_seq, times, values) in
            [(1, 3, [1000, 2000, 4000], [1.0, 2.0, 4.0]), (0, 0, [2000, 3000, 9000], [7.0, 3.0, 9.0])]
        {
            let run = Run { source: 0, first_seq, last_seq, times: &times, clock_step: false };
            writer.block(run, [NewColumn::new(0, &values, steps[0])]).expect("memory");
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

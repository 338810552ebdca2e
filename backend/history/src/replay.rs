//! Combines segments and logs, file by file.
//!
//! A log file is read twice: first its definitions of sources, rows and series, then its ticks. Definitions are read at
//! any offset. Each is written twice, so that a damaged one costs nothing.

use crate::files::Content;
use crate::found::{Damage, Found, FoundSource, Report};
use crate::log::{self, Entry, Table};
use crate::segments::Segment;
use crate::spans::{Placed, Reading, Spans};
use crate::table::JoinedTable;
use shared::record::Record;
use shared::series::{SeriesDef, SeriesId, Steps};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Ids above this are rejected: they would need memory for all ids below.
const MAX_SERIES_ID: SeriesId = 1 << 20;

/// Bytes read at once of a file that cannot be read as a whole: a page of the system's cache.
const PART_BYTES: u64 = 4096;

#[derive(Default)]
pub(crate) struct Replay {
    table: JoinedTable,
    sources: Vec<ReplayedSource>,
    source_of: HashMap<String, usize>,
    segments: Vec<Arc<Segment>>,
    pub(crate) report: Report,
}

struct ReplayedSource {
    source: FoundSource,
    spans: Spans,
    late: HashSet<(SeriesId, i64)>,
    /// Records of logs, by number: one in several files is taken once.
    records: BTreeMap<u64, Record>,
    /// First and last numbers of the records in segments.
    sealed_records: Vec<(u64, u64)>,
}

impl Replay {
    fn source(&mut self, name: &str, interval: i64, facts: &[(String, String)]) -> usize {
        let known = *self.source_of.entry(name.into()).or_insert_with(|| {
            self.sources.push(ReplayedSource {
                source: FoundSource { name: name.into(), ..FoundSource::default() },
                spans: Spans::default(),
                late: HashSet::new(),
                records: BTreeMap::new(),
                sealed_records: Vec::new(),
            });
            self.sources.len() - 1
        });
        let source = &mut self.sources[known].source;
        source.interval = interval;
        if source.facts != facts {
            source.facts = facts.to_vec();
        }
        known
    }

    fn series(&mut self, source: usize, id: SeriesId, metric: u16, instance: &str) {
        let series = &mut self.sources[source].source.series;
        let at = id as usize;
        if series.len() <= at {
            series.resize(at + 1, None);
        }
        if !series[at].as_ref().is_some_and(|def| def.metric == metric && def.instance == instance) {
            series[at] = Some(SeriesDef { metric, instance: instance.into() });
        }
    }

    /// Adds a sound segment.
    pub(crate) fn segment(&mut self, segment: Arc<Segment>) {
        let contents = segment.contents();
        let rows: Vec<Option<u16>> = contents.rows.iter().map(|row| self.table.place(row, &contents.charts)).collect();
        let mut known = Vec::new();
        for entry in &contents.sources {
            let source = self.source(&entry.name, entry.interval, &entry.facts);
            for series in entry.series.iter().filter(|series| series.id < MAX_SERIES_ID) {
                if let Some(&Some(row)) = rows.get(usize::from(series.row)) {
                    self.series(source, series.id, row, &series.instance);
                }
            }
            known.push(source);
        }
        for block in contents.blocks.iter().filter(|block| !block.late()) {
            if let Some(&source) = known.get(usize::from(block.source)) {
                self.sources[source].spans.seal(block.first_seq, block.last_seq, block.after_gap, block.to);
            }
        }
        for records in &contents.records {
            if let Some(&source) = known.get(usize::from(records.source)) {
                self.sources[source].sealed_records.push((records.first, records.last));
            }
        }
        self.segments.push(segment);
    }

    fn damage(&mut self, file: &str, offset: u64, what: String) {
        self.report.damages.push(Damage { file: file.into(), offset, what });
    }

    /// Adds a log file; files come in the order of their numbers.
    pub(crate) fn file(&mut self, name: &str, content: &dyn Content, size: u64) {
        let bytes = match content.read_at(0, size as usize) {
            Ok(bytes) => bytes,
            Err(whole) => {
                self.damage(name, 0, format!("cannot be read: {whole}"));
                by_parts(content, size)
            }
        };
        self.log(name, &bytes);
    }

    /// Adds ticks of a source that are in a segment.
    #[cfg(test)]
    pub(crate) fn seal(&mut self, name: &str, first: u64, last: u64, after_gap: bool, to: i64) {
        let source = self.source(name, 1_000, &[]);
        self.sources[source].spans.seal(first, last, after_gap, to);
    }

    /// Reads the bytes of a log.
    pub(crate) fn log(&mut self, file: &str, bytes: &[u8]) {
        let (records, gaps) = log::scan(bytes);
        self.report.unclean = !matches!(records.last(), Some((_, Entry::End)));
        for gap in gaps {
            self.report.skipped_bytes += gap.bytes;
            if gap.tail {
                self.report.torn.push((file.into(), gap.offset));
            } else {
                self.damage(file, gap.offset, format!("{} bytes are damaged", gap.bytes));
            }
        }
        let mut readings = self.definitions(&records);
        for (offset, record) in &records {
            let (source, placed) = match record {
                Entry::Keyframe { source, frame } => {
                    (source, self.frame(&mut readings, *source, frame, Spans::keyframe))
                }
                Entry::Tick { source, frame } => (source, self.frame(&mut readings, *source, frame, Spans::tick)),
                Entry::Late { source, samples } => {
                    if let Some((known, _)) = readings.get(source) {
                        self.sources[*known].late(samples);
                    }
                    continue;
                }
                Entry::Record { source, record } => {
                    if let Some((known, _)) = readings.get(source) {
                        self.sources[*known].records.entry(record.n).or_insert_with(|| record.clone());
                    }
                    continue;
                }
                Entry::Source { .. } | Entry::Rows(_) | Entry::Series { .. } | Entry::End => continue,
            };
            match placed {
                Placed::New => self.report.ticks += 1,
                Placed::Known => {}
                Placed::Lost => self.report.skipped_ticks += 1,
                Placed::Misfit => {
                    self.damage(file, *offset, format!("a frame of source {source} with the wrong schema"))
                }
            }
        }
        for (known, reading) in readings.into_values() {
            self.sources[known].spans.end(reading);
        }
    }

    fn frame(
        &mut self,
        readings: &mut HashMap<u16, (usize, Reading)>,
        source: u16,
        frame: &[u8],
        place: fn(&mut Spans, &mut Reading, &[u8]) -> Placed,
    ) -> Placed {
        match readings.get_mut(&source) {
            Some((known, reading)) => place(&mut self.sources[*known].spans, reading, frame),
            None => Placed::Lost,
        }
    }

    /// Reads the definitions of sources and series in a file. Returns their numbers in this file, and the steps of
    /// their series there.
    fn definitions(&mut self, records: &[(u64, Entry<'_>)]) -> HashMap<u16, (usize, Reading)> {
        let mut rows: HashMap<u16, (Option<u16>, Steps)> = HashMap::new();
        let mut sources: HashMap<u16, usize> = HashMap::new();
        for (_, record) in records {
            match record {
                Entry::Source { source, name, interval, facts } => {
                    sources.insert(*source, self.source(name, *interval, facts));
                }
                Entry::Rows(Table { rows: more, charts }) => {
                    rows.extend(
                        more.iter().map(|(number, metric)| (*number, (self.table.place(metric, charts), metric.steps))),
                    );
                }
                _ => {}
            }
        }
        let mut steps: HashMap<u16, Vec<Steps>> = HashMap::new();
        for (_, record) in records {
            let Entry::Series { source, series } = record else { continue };
            let Some(&known) = sources.get(source) else { continue };
            let steps = steps.entry(*source).or_default();
            for (id, row, instance) in series.iter().filter(|(id, ..)| *id < MAX_SERIES_ID) {
                let Some(&(Some(row), of_row)) = rows.get(row) else { continue };
                self.series(known, *id, row, instance);
                // Ids without a series are absent in every frame, so any steps are fine.
                steps.resize(steps.len().max(*id as usize + 1), 0.0);
                steps[*id as usize] = of_row;
            }
        }
        let reading = |(number, known)| (number, (known, Reading::new(steps.remove(&number).unwrap_or_default())));
        sources.into_iter().map(reading).collect()
    }

    /// Returns the result.
    pub(crate) fn finish(mut self) -> Found {
        self.report.missing_ticks = self.sources.iter().map(|known| known.spans.missing()).sum();
        let sources = self.sources.into_iter().map(|known| {
            let ReplayedSource { mut source, spans, mut records, sealed_records, .. } = known;
            (source.spans, source.state) = spans.finish();
            let newest = sealed_records.iter().map(|(_, last)| *last).chain(records.keys().next_back().copied());
            source.last_record = newest.max().unwrap_or(0);
            records.retain(|n, _| !sealed_records.iter().any(|(first, last)| (first..=last).contains(&n)));
            source.records = records.into_values().collect();
            source
        });
        let sources = sources.collect();
        Found {
            segments: self.segments,
            sources,
            rows: self.table.rows,
            charts: self.table.charts,
            log: 0,
            report: self.report,
        }
    }
}

/// A file with bad sectors, which are read as zeros: the data between them is readable.
fn by_parts(content: &dyn Content, size: u64) -> Vec<u8> {
    let part = |at: u64| {
        let len = PART_BYTES.min(size - at) as usize;
        content.read_at(at, len).unwrap_or_else(|_| vec![0; len])
    };
    (0..size.div_ceil(PART_BYTES)).flat_map(|i| part(i * PART_BYTES)).collect()
}

impl ReplayedSource {
    fn late(&mut self, samples: &[(SeriesId, i64, f64)]) {
        let new = samples.iter().filter(|(id, t, _)| self.late.insert((*id, *t)));
        self.source.late.extend(new);
    }
}

//! Writes a span of a store as a recording, an hour of a machine at a time.

use crate::names;
use crate::store::{RecordsSnapshot, Snapshot, Store};
use parking_lot::Mutex;
use shared::record::Record;
use shared::recording::{SIMULATED, TITLE, contents};
use shared::scope::Scope;
use shared::segment::{Contents, NewColumn, TickSpan, Writer};
use shared::series::{SeriesDef, SeriesId, Steps};
use shared::wire::Source;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

/// Length of a read, ms: one block, unless its ticks exceed the maximum of a block.
const HOUR_MS: i64 = 3_600_000;
/// Maximum number of ticks of a block.
const MAX_BLOCK_TICKS: i64 = 36_000;
/// Approximate number of samples decoded at once.
const MAX_DECODED_SAMPLES: usize = 1 << 21;

/// There is no sample in the span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nothing;

impl std::fmt::Display for Nothing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("there is no data in that time")
    }
}
impl std::error::Error for Nothing {}

/// A recording that is being written. It holds pointers into the store, and one block at a time.
pub struct Recorder {
    contents: Contents,
    steps: Vec<Vec<Steps>>,
    next_seq: Vec<u64>,
    parts: VecDeque<MachinePart>,
    writer: Option<Writer<Sink>>,
    sink: Sink,
}

/// The unwritten data of a machine: one snapshot of the store, however long the span.
struct MachinePart {
    machine: usize,
    /// Key of the machine.
    key: String,
    snapshot: Snapshot,
    records: RecordsSnapshot,
    /// Both included, ms.
    from: i64,
    to: i64,
    /// Length of a read, ms.
    length: i64,
    /// Whether names of people are hidden in its records.
    is_nameless: bool,
}

impl Iterator for MachinePart {
    type Item = Snapshot;

    fn next(&mut self) -> Option<Snapshot> {
        let last = (self.from.div_euclid(self.length) * self.length + self.length - 1).min(self.to);
        let stretch = self.snapshot.part(self.from, last)?;
        self.from = last + 1;
        Some(stretch)
    }
}

impl Recorder {
    /// A recording of these machines of a store from `from` to `to`, both included, ms since the epoch. `simulated` is
    /// set if no machine was measured. Nothing is read yet.
    ///
    /// # Errors
    /// [`Nothing`] when there is no sample.
    pub fn new(
        store: &Store,
        sources: &[Arc<Source>],
        from: i64,
        to: i64,
        simulated: bool,
    ) -> Result<Recorder, Nothing> {
        let (mut machines, mut parts) = (Vec::new(), VecDeque::new());
        for source in sources {
            let series = store.series(source.id, 0);
            let spans = (0..series.len()).filter_map(|id| store.span(source.id, id as SeriesId));
            let Some((first, last)) = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else { continue };
            let length = HOUR_MS.min(MAX_BLOCK_TICKS * source.interval.max(1));
            // Records after the newest tick belong to the span as well.
            let (records_from, records_to) = (from, to);
            let (from, to) = (first.max(from), last.min(to));
            let Some(snapshot) = store.snapshot(source.id, from, to).filter(|_| from <= to) else { continue };
            let Some(records) = store.records(source.id, records_from, records_to) else { continue };
            let (machine, key, is_nameless) = (machines.len(), source.key.clone(), false);
            parts.push_back(MachinePart { machine, key, snapshot, records, from, to, length, is_nameless });
            machines.push((Source::clone(source), series.to_vec()));
        }
        let names: Vec<&str> = machines.iter().map(|(source, _)| source.name.as_str()).collect();
        let title = match names.as_slice() {
            [] => return Err(Nothing),
            [one] => (*one).to_string(),
            [first, rest @ ..] => format!("{first} and {} more", rest.len()),
        };
        let mut about = vec![
            (TITLE.to_string(), title),
            ("version".to_string(), format!("Watchglass {}", env!("CARGO_PKG_VERSION"))),
        ];
        about.extend(simulated.then(|| (SIMULATED.to_string(), "yes".to_string())));
        let catalog = store.catalog();
        let steps = |(_, series): &(Source, Vec<SeriesDef>)| shared::recording::steps(catalog, series);
        let steps: Vec<Vec<Steps>> = machines.iter().map(steps).collect();
        Ok(Recorder {
            contents: contents(catalog, &machines, about),
            next_seq: vec![1; machines.len()],
            steps,
            parts,
            writer: None,
            sink: Sink::default(),
        })
    }

    /// The same without the names of people that a reader may not see.
    pub fn seen_by(mut self, scope: &Scope) -> Recorder {
        for part in &mut self.parts {
            part.is_nameless = scope.hides_names_of(&part.key);
        }
        self
    }

    /// The next bytes of the file; none after its end.
    ///
    /// # Errors
    /// A block could not be made: the stored data contradicts itself.
    pub fn piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        if self.writer.is_none() {
            if self.contents.sources.is_empty() {
                return Ok(None);
            }
            let mut writer = Writer::begin(self.sink.clone())?;
            writer.opening(&self.contents)?;
            self.writer = Some(writer);
        }
        while let Some(part) = self.parts.front_mut() {
            let machine = part.machine;
            match part.next() {
                Some(stretch) => self.block(machine, &stretch)?,
                None => match (part.records.next(), &mut self.writer) {
                    (Some(records), Some(writer)) if part.is_nameless => {
                        let clean: Vec<Record> = records.iter().map(|record| names::hide_in_record(record)).collect();
                        writer.records(machine as u16, &clean)?;
                    }
                    (Some(records), Some(writer)) => writer.records(machine as u16, records.iter().map(|r| &**r))?,
                    _ => {
                        self.parts.pop_front();
                        continue;
                    }
                },
            }
            let bytes = self.sink.take();
            if !bytes.is_empty() {
                return Ok(Some(bytes));
            }
        }
        if let Some(writer) = self.writer.take() {
            writer.finish(&self.contents)?;
        }
        // Without machines nothing more is written.
        self.contents.sources.clear();
        Ok(Some(self.sink.take()).filter(|bytes| !bytes.is_empty()))
    }

    fn block(&mut self, machine: usize, part: &Snapshot) -> io::Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let steps = &self.steps[machine];
        let read = |ids: Range<usize>| {
            let mut samples = part.samples(&ids.map(|id| id as SeriesId).collect::<Vec<_>>());
            // If the clock was set back, an instant may have two samples: the first counts.
            samples.iter_mut().for_each(|samples| samples.dedup_by_key(|(t, _)| *t));
            samples
        };
        // The first read finds the times. The data of a single band is kept from it for the second read.
        let mut times: Vec<i64> = Vec::new();
        let mut band = 64.min(steps.len().max(1));
        let mut kept = None;
        let mut first = 0;
        while first < steps.len() {
            let ids = first..(first + band).min(steps.len());
            let samples = read(ids.clone());
            let mut more: Vec<i64> = samples.iter().flatten().map(|(t, _)| *t).collect();
            more.sort_unstable();
            more.dedup();
            if more != times {
                times.append(&mut more);
                times.sort_unstable();
                times.dedup();
            }
            first = ids.end;
            if ids.start == 0 {
                band = (MAX_DECODED_SAMPLES / times.len().max(1)).clamp(64, steps.len().max(64));
            }
            kept = Some((ids, samples));
        }
        if times.is_empty() {
            return Ok(());
        }
        let bands = (0..steps.len()).step_by(band).map(|first| first..(first + band).min(steps.len()));
        let columns = bands.flat_map(|ids| {
            let samples = match kept.take() {
                Some((known, samples)) if known == ids => samples,
                _ => read(ids.clone()),
            };
            let times = &times;
            ids.zip(samples).filter(|(_, samples)| !samples.is_empty()).map(move |(id, samples)| {
                let mut next = samples.into_iter().peekable();
                let value = |t: &i64| next.next_if(|(at, _)| at == t).map_or(f64::NAN, |(_, v)| v);
                let values: Vec<f64> = times.iter().map(value).collect();
                NewColumn::with_tier(id as SeriesId, times, &values, steps[id])
            })
        });
        let first_seq = self.next_seq[machine];
        let last_seq = first_seq + times.len() as u64 - 1;
        self.next_seq[machine] = last_seq + 1;
        writer.block(
            TickSpan {
                source: machine as u16,
                first_seq,
                last_seq,
                times: &times,
                clock_step: false,
                after_gap: false,
            },
            columns,
        )
    }
}

/// Buffer of the writer's bytes until they are taken.
#[derive(Clone, Debug, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

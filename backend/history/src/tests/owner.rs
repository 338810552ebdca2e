//! A small owner of a log: sources with ticks, the data that is in no segment, and the expected data.

use crate::files::Files;
use crate::journal::Journal;
use crate::segments::{self, Name};
use crate::{Found, Log, Segment, Written, log};
use shared::catalog::{Catalog, cpu};
use shared::record::Record;
use shared::segment::{Contents, NewColumn, SeriesEntry, SourceEntry, TickSpan};
use shared::series::{SeriesDef, quantize};
use shared::tick::{Applied, TickState, follows, sequence};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const T0: i64 = 1_700_000_000_000;
/// Interval of ticks, ms: six to a minute, so that small logs have several keyframes.
const INTERVAL: i64 = 10_000;

/// As [`Log::write`], but with patience for a machine so busy that the log's thread is not scheduled in time.
fn write(log: &Log, records: Vec<u8>) -> Written {
    let before = log.health();
    if log.write(records) == Written::Done {
        return Written::Done;
    }
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        // In this order: a job that left the queue is running, or done.
        let waiting = log.waiting();
        let health = log.health();
        if (health.failures, health.dropped) != (before.failures, before.dropped) {
            return Written::Later;
        }
        if waiting == 0 && health.waiting_for.is_none() {
            return Written::Done;
        }
        assert!(Instant::now() < end, "neither written nor failing: {health:?}");
        std::thread::yield_now();
    }
}

/// As [`Log::close`], with the same patience.
pub fn close(log: Log) -> bool {
    let end = Instant::now() + Duration::from_secs(20);
    while !log.finish() {
        if log.health().failing.is_some() || Instant::now() > end {
            return false;
        }
    }
    true
}

pub struct Owner {
    pub catalog: Catalog,
    pub sources: Vec<Machine>,
    /// Every third tick skips some sequences.
    pub gaps: bool,
    /// A record follows every second tick.
    pub records: bool,
    journal: Journal,
}

#[derive(Default)]
pub struct Machine {
    pub name: String,
    defs: Vec<SeriesDef>,
    pub state: TickState,
    base: TickState,
    head: Vec<Vec<u8>>,
    head_records: Vec<Record>,
    /// All records, by number.
    pub recorded: BTreeMap<u64, Record>,
    /// A series without a value, which is not defined.
    pub idle: Option<usize>,
    /// Time and values of every tick, by sequence.
    pub truth: BTreeMap<u64, (i64, Vec<f64>)>,
}

impl Machine {
    /// The state before the head, with all series.
    fn before_head(&self) -> TickState {
        let mut state = self.base.clone();
        state.extend(self.state.steps()[state.steps().len()..].iter().copied());
        state
    }
}

impl Owner {
    /// Machines with two series each.
    pub fn new(machines: usize) -> Owner {
        let catalog = Catalog::new(cpu::ROWS.iter().take(2).copied());
        let machine = |i| Machine { name: format!("machine-{i}"), ..Machine::default() };
        let mut owner = Owner {
            catalog,
            sources: (0..machines).map(machine).collect(),
            gaps: false,
            records: false,
            journal: Journal::default(),
        };
        for source in 0..machines {
            owner.announce(source, "0");
            owner.announce(source, "1");
        }
        owner
    }

    /// Adds a series; returns its records.
    pub fn announce(&mut self, source: usize, instance: &str) -> Vec<u8> {
        let machine = &mut self.sources[source];
        let id = machine.defs.len();
        let def = SeriesDef { metric: (id % self.catalog.metrics.len()) as u16, instance: instance.into() };
        machine.state.extend([self.catalog.metrics[usize::from(def.metric)].steps]);
        machine.defs.push(def);
        let mut out = Vec::new();
        self.journal.series(&mut out, source as u16, &self.catalog, [(id as u32, &machine.defs[id])]);
        out
    }

    /// The opening of a new file: all data that is in no segment.
    pub fn opening(&mut self) -> Vec<u8> {
        let (mut out, mut journal) = (Vec::new(), Journal::default());
        for (i, machine) in self.sources.iter().enumerate() {
            let number = i as u16;
            journal.source(&mut out, number, &machine.name, INTERVAL, &[("os".into(), "test".into())]);
            let series = machine.defs.iter().enumerate().filter(|(id, _)| machine.idle != Some(*id));
            let series = series.map(|(id, def)| (id as u32, def));
            journal.series(&mut out, number, &self.catalog, series);
            journal.keyframe(&mut out, number, &machine.base.keyframe());
            let mut state = machine.before_head();
            for frame in &machine.head {
                state.apply(frame).unwrap();
                journal.tick(&mut out, number, frame, || state.keyframe());
            }
            machine.head_records.iter().for_each(|record| journal.record(&mut out, number, record));
        }
        self.journal = journal;
        out
    }

    /// The next tick of a source; returns its records.
    pub fn tick(&mut self, source: usize) -> Vec<u8> {
        let machine = &mut self.sources[source];
        let skipped = if self.gaps && machine.truth.len() % 3 == 2 { 1_000 } else { 0 };
        let seq = machine.state.seq() + 1 + skipped;
        let t = T0 + seq as i64 * INTERVAL + (seq % 7) as i64;
        let value = |id: usize| match (seq + id as u64 * 3) % 11 {
            0 => f64::NAN,
            _ if machine.idle == Some(id) => f64::NAN,
            1 => 1.0 / (seq as f64 + 1.7),
            k => quantize((seq * k + id as u64) as f64 / 3.0, machine.state.steps()[id]),
        };
        let values: Vec<f64> = (0..machine.defs.len()).map(value).collect();
        let frame = machine.state.encode_at(seq, t, false, &values);
        machine.truth.insert(seq, (t, values));
        let mut out = Vec::new();
        self.journal.tick(&mut out, source as u16, &frame, || machine.state.keyframe());
        machine.head.push(frame);
        if self.records && machine.truth.len().is_multiple_of(2) {
            let n = machine.truth.len() as u64;
            let record = Record { n, t, kind: "marker".into(), body: format!("{source} {n}").into_bytes() };
            self.journal.record(&mut out, source as u16, &record);
            machine.head_records.push(record.clone());
            machine.recorded.insert(n, record);
        }
        out
    }

    /// Pretends that all data so far is in a segment.
    pub fn cut(&mut self) {
        for machine in &mut self.sources {
            machine.base = machine.state.clone();
            machine.head.clear();
            machine.head_records.clear();
        }
    }

    /// Cuts the data that is in no segment and writes it as one; log files up to `through` have it too.
    pub fn seal(&mut self, files: &dyn Files, name: Name, through: u64) -> io::Result<Arc<Segment>> {
        let heads: Vec<_> = self.sources.iter().map(|m| (m.before_head(), m.head.clone())).collect();
        let records: Vec<_> = self.sources.iter().map(|m| m.head_records.clone()).collect();
        self.cut();
        let entry = |m: &Machine| SourceEntry {
            name: m.name.clone(),
            interval: INTERVAL,
            facts: Vec::new(),
            series: (0..)
                .zip(&m.defs)
                .map(|(id, d)| SeriesEntry { id, row: d.metric, instance: d.instance.clone() })
                .collect(),
        };
        let contents = Contents {
            rows: self.catalog.metrics.clone().into(),
            sources: self.sources.iter().map(entry).collect(),
            log_through: through,
            ..Contents::default()
        };
        segments::write(files, &Arc::default(), name, |writer| {
            for (source, (mut state, frames)) in (0..).zip(heads) {
                // A block has no gap.
                let mut first = true;
                for frames in frames.chunk_by(|_, b| follows(b).map(|before| before + 1) == sequence(b)) {
                    let after_gap = follows(&frames[0]).map(|before| before + 1) != sequence(&frames[0]);
                    assert!(first || after_gap);
                    first = false;
                    let (mut times, mut columns) = (Vec::new(), vec![Vec::new(); state.steps().len()]);
                    for frame in frames {
                        state.apply(frame).expect("frames of the head follow each other");
                        times.push(state.t());
                        columns.iter_mut().zip(state.values()).for_each(|(column, v)| column.push(*v));
                    }
                    let (first_seq, last_seq) = (state.seq() + 1 - times.len() as u64, state.seq());
                    let span = TickSpan { source, first_seq, last_seq, times: &times, clock_step: false, after_gap };
                    let columns = (0..).zip(&columns).zip(state.steps());
                    writer.block(span, columns.map(|((id, values), steps)| NewColumn::new(id, values, *steps)))?;
                }
            }
            for (source, records) in (0..).zip(&records) {
                writer.records(source, records)?;
            }
            Ok(contents)
        })
    }

    fn check_segment(&self, segment: &Segment, seen: &mut [BTreeSet<u64>]) {
        for (at, block) in segment.contents().blocks.iter().enumerate() {
            let name = &segment.contents().sources[usize::from(block.source)].name;
            let source =
                self.sources.iter().position(|m| m.name == *name).expect("no machine of that name was written");
            let times = segment.reader().times(at).unwrap();
            let value = |id: u32| match segment.reader().column(at, id).unwrap() {
                Some(column) => shared::column::decode(&column, times.len()).unwrap(),
                None => vec![f64::NAN; times.len()],
            };
            let values: Vec<Vec<f64>> = (0..self.sources[source].defs.len() as u32).map(value).collect();
            for (i, seq) in (block.first_seq..=block.last_seq).enumerate() {
                let (t, truth) = &self.sources[source].truth[&seq];
                assert_eq!(times[i], *t);
                assert!(
                    truth
                        .iter()
                        .zip(&values)
                        .all(|(a, b)| a.to_bits() == b[i].to_bits() || a.is_nan() && b[i].is_nan())
                );
                assert!(seen[source].insert(seq), "tick {seq} stands in two segments");
            }
        }
    }

    /// A whole log file with this number of ticks of each source.
    pub fn file(&mut self, ticks: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        log::put_header(&mut bytes);
        bytes.extend(self.opening());
        for _ in 0..ticks {
            for source in 0..self.sources.len() {
                bytes.extend(self.tick(source));
            }
        }
        bytes
    }

    /// Writes ticks of all sources to a log, in sequence; returns the result of each write.
    pub fn write(&mut self, log: &Log, ticks: usize) -> Vec<Written> {
        (0..ticks * self.sources.len()).map(|i| write(log, self.tick(i % self.sources.len()))).collect()
    }

    /// The sequences found, by source. Asserts that every value found was written.
    pub fn check(&self, found: &Found) -> Vec<BTreeSet<u64>> {
        let mut seen = vec![BTreeSet::new(); self.sources.len()];
        found.segments.iter().for_each(|segment| self.check_segment(segment, &mut seen));
        for source in &found.sources {
            let i =
                self.sources.iter().position(|m| m.name == source.name).expect("no machine of that name was written");
            let machine = &self.sources[i];
            for (id, def) in source.series.iter().enumerate().filter_map(|(id, def)| Some((id, def.as_ref()?))) {
                let (truth, row) = (&machine.defs[id], &found.rows[usize::from(def.metric)]);
                assert_eq!((row, &def.instance), (&self.catalog.metrics[usize::from(truth.metric)], &truth.instance));
            }
            for span in &source.spans {
                let mut state = span.base.clone();
                let mut present = vec![false; span.present.len()];
                for tick in &span.ticks {
                    let before = state.seq();
                    let applied = state.apply(&tick.frame).expect("frames of a span follow each other");
                    assert!(matches!(applied, Applied::Tick { clock_step, .. } if clock_step == tick.clock_step));
                    assert_eq!((tick.before, tick.seq, tick.t), (before, state.seq(), state.t()));
                    present.iter_mut().zip(state.values()).for_each(|(present, v)| *present |= v.is_finite());
                    let (t, values) = &machine.truth[&state.seq()];
                    assert_eq!(state.t(), *t);
                    for (id, value) in state.values().iter().enumerate() {
                        let truth = values.get(id).copied().unwrap_or(f64::NAN);
                        assert!(
                            value.to_bits() == truth.to_bits() || value.is_nan() && truth.is_nan(),
                            "{value} {truth}"
                        );
                    }
                    assert!(state.values().len() >= values.len());
                    assert!(seen[i].insert(state.seq()), "tick {} stands twice", state.seq());
                }
                assert_eq!(span.present, present);
            }
            assert!(source.last_seq() >= seen[i].last().copied().unwrap_or(0), "a sequence would be given again");
        }
        seen
    }

    /// The numbers of the records found, by source. Asserts that each was written, and occurs once.
    pub fn check_records(&self, found: &Found) -> Vec<BTreeSet<u64>> {
        let mut seen = vec![BTreeSet::new(); self.sources.len()];
        let mut met = |name: &str, record: &Record| {
            let i = self.sources.iter().position(|m| m.name == name).expect("no machine of that name was written");
            assert_eq!(self.sources[i].recorded.get(&record.n), Some(record));
            assert!(seen[i].insert(record.n), "record {} stands twice", record.n);
        };
        for segment in &found.segments {
            for (at, entry) in segment.contents().records.iter().enumerate() {
                let name = &segment.contents().sources[usize::from(entry.source)].name;
                segment.reader().records(at).unwrap().iter().for_each(|record| met(name, record));
            }
        }
        for source in &found.sources {
            assert!(source.records.is_sorted_by(|a, b| a.n < b.n));
            source.records.iter().for_each(|record| met(&source.name, record));
        }
        for (source, seen) in found.sources.iter().zip(&seen) {
            assert!(source.last_record >= seen.last().copied().unwrap_or(0), "a number would be given again");
        }
        seen
    }

    /// The records that follow these ticks.
    pub fn records_of(&self, ticks: &[BTreeSet<u64>]) -> Vec<BTreeSet<u64>> {
        let one = |(machine, ticks): (&Machine, &BTreeSet<u64>)| {
            let place = |seq: &u64| machine.truth.keys().position(|own| own == seq).map(|at| at as u64 + 1);
            ticks.iter().filter_map(place).filter(|n| machine.recorded.contains_key(n)).collect()
        };
        self.sources.iter().zip(ticks).map(one).collect()
    }

    /// All sequences that were written, by source.
    pub fn all(&self) -> Vec<BTreeSet<u64>> {
        self.sources.iter().map(|m| m.truth.keys().copied().collect()).collect()
    }
}

//! Resources of a run, read from the history of its machines.

use super::series::names_of;
use super::sums::{HeldGpu, HeldSpan, Sums, Together, line, merged, within};
use shared::catalog::{LABEL, MetricDef, cpu, gpu, memory, process};
use shared::rollup::Bucket;
use shared::run::{Run, RunProcess};
use shared::series::SeriesId;
use shared::unit::Unit;
use shared::wire::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stream::live::Live;

/// Approximate maximum number of roll-ups that are read per series.
const MAX_BUCKETS: i64 = 4_096;
/// Up to this length samples are read; for longer runs, the minute roll-ups on the disk.
const SAMPLES_MS: i64 = 6 * 3_600_000;
const MINUTE: i64 = 60_000;
/// Maximum number of lines of one measure; further ranks are counted.
const MAX_LINES: usize = 512;
/// Maximum number of values of all lines: with more lines, each has fewer points.
const MAX_VALUES: usize = 120_000;
/// Minimum number of points of a line.
const MIN_POINTS: usize = 60;

/// Source of one chart of a run.
struct ChartSource {
    id: &'static str,
    of: &'static MetricDef,
    together: Together,
}

const fn row(id: &'static str, of: &'static MetricDef, together: Together) -> ChartSource {
    ChartSource { id, of, together }
}

/// Charts per rank, from its GPUs. The first one is the sparkline of the list.
static GPU_ROWS: [ChartSource; 5] = [
    row("gpu", &gpu::UTILIZATION, Together::Mean),
    row("gpu_memory", &gpu::MEMORY_ALLOCATED_BYTES, Together::Sum),
    row("gpu_power", &gpu::POWER_WATTS, Together::Sum),
    row("gpu_clock", &gpu::SM_CLOCK, Together::Mean),
    row("gpu_temp", &gpu::TEMP, Together::Max),
];
/// Charts per rank of a run without GPUs, from the series of its processes.
static RANK_ROWS: [ChartSource; 2] =
    [row("rank_cpu", &process::CPU, Together::Max), row("rank_memory", &process::RSS, Together::Max)];
/// Charts per machine.
static HOST_ROWS: [ChartSource; 2] =
    [row("cpu", &cpu::CPU_PERCENT, Together::Mean), row("memory", &memory::PERCENT, Together::Mean)];

/// The chart of the machine's page with the series of a measure, by its ID; None for a value of the job.
pub fn chart_of(measure: &str) -> Option<&'static str> {
    let mut rows = GPU_ROWS.iter().chain(&RANK_ROWS).chain(&HOST_ROWS);
    rows.find(|row| row.id == measure).map(|row| row.of.chart)
}

/// The charts of the machine's page with the series of all measures, but values of the job.
pub fn charts() -> impl Iterator<Item = &'static str> {
    GPU_ROWS.iter().chain(&RANK_ROWS).chain(&HOST_ROWS).map(|row| row.of.chart)
}

/// Measures of a run.
#[derive(Clone, Debug)]
pub struct RunMeasures {
    /// GPU time, energy and other sums.
    pub sums: Sums,
    /// Start of the lines, milliseconds since the Unix epoch.
    pub from: i64,
    /// Width of a column, milliseconds.
    pub step: i64,
    /// Charts; those without a value are absent.
    pub measures: Vec<Measure>,
    /// Number of ranks without a line, because of the maximum.
    pub left_out: usize,
}

/// One chart.
#[derive(Clone, Debug)]
pub struct Measure {
    /// Its ID in the API.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Aggregation of a rank's GPUs into one line.
    pub together: Together,
    /// One line per rank, in the order of machines and ranks; for a measure of machines, one per machine.
    pub lines: Vec<Line>,
}

/// One line.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its machine.
    pub source: String,
    /// The rank; None for a machine.
    pub rank: Option<u32>,
    /// Label of the rank, if that is not its number.
    pub label: Option<String>,
    /// One value per column.
    pub values: Vec<Option<f64>>,
}

impl RunMeasures {
    /// Joins the lines of a rank that a launcher started again on another machine: one line over all its machines, which
    /// has the name of the newest. A rank number that two machines have at the same time stays two lines.
    pub fn join_moved(&mut self, run: &Run) {
        let moved = moved_ranks(run);
        for measure in &mut self.measures {
            let mut joined: Vec<Line> = Vec::with_capacity(measure.lines.len());
            for line in std::mem::take(&mut measure.lines) {
                let newest = line.rank.and_then(|rank| moved.get(&rank));
                let Some(newest) = newest.filter(|newest| newest.order.contains(&line.source)) else {
                    joined.push(line);
                    continue;
                };
                match joined.iter_mut().find(|known| known.rank == line.rank && known.label == line.label) {
                    Some(known) => newest.merge(known, line),
                    None => joined.push(line),
                }
            }
            measure.lines = joined;
        }
    }
}

/// The machines of a rank one after the other, oldest first.
struct MovedRank {
    order: Vec<String>,
}

impl MovedRank {
    /// Adds the line of another machine. In a column that has both, the value of the newer machine counts.
    fn merge(&self, known: &mut Line, other: Line) {
        let at = |line: &Line| self.order.iter().rposition(|source| *source == line.source);
        let is_newer = at(&other) > at(known);
        for (value, other) in known.values.iter_mut().zip(&other.values) {
            *value = if is_newer { other.or(*value) } else { value.or(*other) };
        }
        if is_newer {
            known.source = other.source;
        }
    }
}

/// Ranks that ran on several machines, never on two of them at the same time, by number.
fn moved_ranks(run: &Run) -> BTreeMap<u32, MovedRank> {
    let mut lives: BTreeMap<u32, Vec<(i64, i64, &str)>> = BTreeMap::new();
    for process in &run.processes {
        if let Some(rank) = &process.rank {
            let life = (process.began, process.ended.unwrap_or(i64::MAX), process.source.as_str());
            lives.entry(rank.rank).or_default().push(life);
        }
    }
    let moved = |mut lives: Vec<(i64, i64, &str)>| {
        lives.sort_unstable();
        let overlap = lives.windows(2).any(|pair| pair[0].2 != pair[1].2 && pair[1].0 < pair[0].1);
        let order: Vec<String> = lives.iter().map(|life| life.2.to_string()).collect();
        let several = order.iter().any(|source| *source != order[0]);
        (several && !overlap).then_some(MovedRank { order })
    };
    lives.into_iter().filter_map(|(rank, lives)| Some((rank, moved(lives)?))).collect()
}

/// A rank on a machine: its GPUs and the spans in which it held them, over all its lives.
#[derive(Default)]
struct Ranked {
    label: Option<String>,
    spans: Vec<HeldSpan>,
    gpus: Vec<u32>,
    /// Possible names of the series of each life, the most specific last, with its span.
    lives: Vec<(HeldSpan, Vec<String>)>,
}

/// The series read of one machine.
struct Read {
    step: i64,
    gpus: BTreeMap<u32, (HeldGpu, Vec<Vec<Bucket>>)>,
    host: Vec<Vec<Bucket>>,
    /// Rows of the ranks' processes by the name of their series.
    processes: BTreeMap<String, Vec<Vec<Bucket>>>,
}

impl Read {
    /// The line of a rank's processes for one row, in the base unit; `columns` are start, width and number.
    fn of_process(
        &self,
        ranked: &Ranked,
        row: &ChartSource,
        at: usize,
        columns: (i64, i64, usize),
    ) -> Vec<Option<f64>> {
        let lives = ranked.lives.iter().filter_map(|(span, names)| {
            let rows = names.iter().rev().find_map(|name| self.processes.get(name))?;
            Some(within(rows.get(at)?, self.step, std::slice::from_ref(span)).collect::<Vec<&Bucket>>())
        });
        let series: Vec<Vec<&Bucket>> = lives.collect();
        let mut values = line(&series, row.together, columns.0, columns.1, columns.2);
        values.iter_mut().flatten().for_each(|value| *value *= row.of.unit.to_base());
        values
    }
}

/// The names of series of a process, the most specific last: another job may have the first one.
pub(super) fn series_of(process: &RunProcess, run: &str) -> Vec<String> {
    let rank = process.rank.as_ref().map(|rank| rank.rank);
    names_of(process.label.as_deref(), rank, process.pid, run).map(|name| format!("{LABEL}{name}")).collect()
}

/// Ranks by machine and number.
type Ranks<'a> = BTreeMap<(&'a str, u32), Ranked>;
/// GPUs of a machine by number, each with the spans in which it was held, and whether that is only assumed.
type GpuSpans = BTreeMap<u32, (Vec<HeldSpan>, bool)>;
/// The same by machine.
type HeldGpus<'a> = BTreeMap<&'a str, GpuSpans>;

/// The ranks of a run, and the GPUs that they held.
fn ranks_of(run: &Run, span: HeldSpan) -> (Ranks<'_>, HeldGpus<'_>) {
    let (mut ranks, mut held) = (Ranks::new(), HeldGpus::new());
    for process in &run.processes {
        held.entry(&process.source).or_default();
        let Some(rank) = &process.rank else { continue };
        let own = life(process, span);
        let ranked = ranks.entry((&process.source, rank.rank)).or_default();
        ranked.spans.push(own);
        ranked.label = process.label.clone().or(ranked.label.take());
        ranked.lives.push((own, series_of(process, &run.id)));
        for gpu in &rank.gpus {
            let (spans, assumed) = held.entry(&process.source).or_default().entry(*gpu).or_default();
            spans.push(own);
            *assumed |= rank.assumed;
            if !ranked.gpus.contains(gpu) {
                ranked.gpus.push(*gpu);
            }
        }
    }
    (ranks, held)
}

/// GPU-seconds that a scheduler reserved for a run in a span: the time of its processes, times the GPUs reserved for
/// them. A GPU counts once. None if no reservation is known.
fn reserved_seconds(run: &Run, span: HeldSpan) -> Option<f64> {
    let mut gpus: BTreeMap<(&str, u32), Vec<HeldSpan>> = BTreeMap::new();
    for process in &run.processes {
        for gpu in process.reserved.iter().flat_map(|reserved| &reserved.gpus) {
            gpus.entry((&process.source, *gpu)).or_default().push(life(process, span));
        }
    }
    let spans = gpus.into_values().flat_map(merged);
    spans.map(|(from, to)| (to - from) as f64 / 1_000.0).reduce(|a, b| a + b)
}

/// The GPU time of a run from its records alone, without samples.
pub(super) fn held_sums(run: &Run, now: i64) -> Sums {
    let span = (run.began, run.ended.unwrap_or(now).max(run.began + 1));
    let mut sums = Sums { reserved_s: reserved_seconds(run, span), ..Sums::default() };
    for (spans, assumed) in ranks_of(run, span).1.into_values().flat_map(BTreeMap::into_values) {
        sums.add(&HeldGpu { spans: merged(spans), assumed, ..HeldGpu::default() });
    }
    sums
}

/// Reads a run on these machines up to `now`, milliseconds since the Unix epoch. `points` is the number of columns of a
/// line. Unless `wholly` is set, only the first chart is made. It may read the disk.
pub fn measure(
    live: &Live,
    sources: &[Arc<Source>],
    run: &Run,
    now: i64,
    (points, wholly): (usize, bool),
) -> RunMeasures {
    let span = (run.began, run.ended.unwrap_or(now).max(run.began + 1));
    let (ranks, held) = ranks_of(run, span);
    let left_out = ranks.len().saturating_sub(MAX_LINES);
    let lines = ranks.len().clamp(1, MAX_LINES) * GPU_ROWS.len();
    let points = points.min((MAX_VALUES / lines).max(MIN_POINTS));

    let mut sums = Sums { reserved_s: reserved_seconds(run, span), ..Sums::default() };
    let mut read: BTreeMap<&str, Read> = BTreeMap::new();
    for (name, gpus) in held {
        let Some(source) = sources.iter().find(|source| source.name == name) else { continue };
        let lives = ranks.range((name, 0)..=(name, u32::MAX)).take(MAX_LINES).flat_map(|(_, ranked)| &ranked.lives);
        let names = lives.filter(|_| wholly).flat_map(|(_, names)| names.iter().cloned()).collect();
        let one = read_source(live, source, span, (gpus, names), wholly);
        one.gpus.values().for_each(|(held, _)| sums.add(held));
        read.insert(name, one);
    }
    let coarsest = read.values().map(|one| one.step).max().unwrap_or(1_000);
    let step = ((span.1 - span.0) / points as i64 + 1).max(coarsest);
    let points = ((span.1 - span.0) / step + 1) as usize;

    let of_rank = |at: usize, ((source, rank), ranked): (&(&str, u32), &Ranked)| {
        let one = read.get(source)?;
        let spans = merged(ranked.spans.clone());
        let series: Vec<Vec<&Bucket>> = ranked
            .gpus
            .iter()
            .filter_map(|gpu| one.gpus.get(gpu))
            .map(|(_, rows)| rows.get(at).map_or_else(Vec::new, |row| within(row, one.step, &spans).collect()))
            .collect();
        let values = line(&series, GPU_ROWS[at].together, span.0, step, points);
        Some(Line { source: source.to_string(), rank: Some(*rank), label: ranked.label.clone(), values })
    };
    let of_process = |at: usize, ((source, rank), ranked): (&(&str, u32), &Ranked)| {
        let values = read.get(source)?.of_process(ranked, &RANK_ROWS[at], at, (span.0, step, points));
        Some(Line { source: source.to_string(), rank: Some(*rank), label: ranked.label.clone(), values })
    };
    let of_host = |at: usize, (source, one): (&&str, &Read)| {
        let series = [one.host.get(at)?.iter().collect()];
        let values = line(&series, HOST_ROWS[at].together, span.0, step, points);
        Some(Line { source: source.to_string(), rank: None, label: None, values })
    };
    let gpu_rows = if wholly { &GPU_ROWS[..] } else { &GPU_ROWS[..1] };
    let gpus = gpu_rows.iter().enumerate().map(|(at, row)| {
        measure_of(row, ranks.iter().take(MAX_LINES).filter_map(|ranked| of_rank(at, ranked)).collect())
    });
    let hosts =
        HOST_ROWS.iter().enumerate().filter(|_| wholly).map(|(at, row)| {
            measure_of(row, read.iter().take(MAX_LINES).filter_map(|host| of_host(at, host)).collect())
        });
    let processes = RANK_ROWS.iter().enumerate().filter(|_| wholly).map(|(at, row)| {
        let lines = ranks.iter().take(MAX_LINES).filter_map(|ranked| of_process(at, ranked)).collect();
        Measure { unit: row.of.unit.base(), ..measure_of(row, lines) }
    });
    let known = |measure: &Measure| measure.lines.iter().any(|line| line.values.iter().any(Option::is_some));
    let measures = gpus.chain(processes).chain(hosts).filter(known).collect();
    RunMeasures { sums, from: span.0, step, measures, left_out }
}

/// Model names of a machine's GPUs.
struct Models {
    by_number: BTreeMap<u32, String>,
    /// The model of all GPUs, if they have the same one.
    of_all: Option<String>,
}

impl Models {
    fn read(live: &Live, source: &Source) -> Models {
        let name = |(number, labels): (u32, Vec<(&str, String)>)| {
            Some((number, labels.into_iter().find(|(label, _)| *label == "name")?.1))
        };
        let by_number = live.source(source.id).gpus.known().into_iter().filter_map(name).collect();
        // For a machine that this hub does not measure, the fact is used: `8 × H100`, or `L4 + 2 × H200` for several
        // models.
        let fact = source.facts.iter().find(|(word, _)| word == "gpus").map(|(_, fact)| fact.as_str());
        let one = fact.filter(|fact| !fact.contains(" + ") && fact.parse::<u32>().is_err());
        let of_all = one.map(|fact| fact.split_once(" × ").map_or(fact, |(_, model)| model).to_string());
        Models { by_number, of_all }
    }

    fn of_gpu(&self, number: u32) -> String {
        self.by_number.get(&number).or(self.of_all.as_ref()).cloned().unwrap_or_default()
    }
}

fn measure_of(row: &ChartSource, lines: Vec<Line>) -> Measure {
    Measure { id: row.id.into(), title: row.of.title.into(), unit: row.of.unit, together: row.together, lines }
}

/// Span in which a process ran, within the span of its run.
pub(super) fn life(process: &RunProcess, (from, to): HeldSpan) -> HeldSpan {
    (process.began.clamp(from, to), process.ended.unwrap_or(to).clamp(from, to))
}

/// Width of the roll-ups that are read of a span, milliseconds.
pub(super) fn read_step((from, to): HeldSpan, interval: i64) -> i64 {
    let length = to - from;
    match length <= SAMPLES_MS {
        true => (length / MAX_BUCKETS).max(interval),
        false => (length / MAX_BUCKETS / MINUTE + 1) * MINUTE,
    }
}

/// Reads the machine's own rows, those of GPUs, each with the spans in which it was held, and those of processes by the
/// names of their series.
fn read_source(
    live: &Live,
    source: &Source,
    span: HeldSpan,
    (gpus, names): (GpuSpans, BTreeSet<String>),
    wholly: bool,
) -> Read {
    let interval = source.interval.max(1);
    let step = read_step(span, interval);
    // The store is locked once; everything else is read outside of the lock.
    let mut known: BTreeMap<(&str, String), SeriesId> = BTreeMap::new();
    let snapshot = {
        let store = live.store();
        let catalog = store.catalog().clone();
        let rows =
            GPU_ROWS.iter().chain(&HOST_ROWS).chain(&RANK_ROWS).map(|row| row.of.tag).chain([gpu::ENERGY_JOULES.tag]);
        let rows: Vec<&'static str> = rows.collect();
        for (id, def) in (0..).zip(store.series(source.id, 0)) {
            let tag = catalog.metric(def).and_then(|metric| rows.iter().copied().find(|tag| *tag == metric.tag));
            if let Some(tag) = tag {
                known.insert((tag, def.instance.clone()), id);
            }
        }
        store.snapshot(source.id, span.0, span.1)
    };
    let id = |of: &MetricDef, instance: &str| known.get(&(of.tag, instance.to_string())).copied();
    // An unknown series reads as empty.
    let read = |wanted: Vec<Option<SeriesId>>, last| {
        let ids: Vec<SeriesId> = wanted.iter().flatten().copied().collect();
        let all = snapshot.as_ref().map(|snapshot| snapshot.buckets(&ids, step, last)).unwrap_or_default();
        let mut all = all.into_iter();
        wanted.iter().map(|id| id.and_then(|_| all.next()).unwrap_or_default()).collect::<Vec<Vec<Bucket>>>()
    };
    // The lines read GPUs say more, so processes are read only where the run has none that is measured.
    let has_gpus = gpus.keys().any(|number| id(&gpu::UTILIZATION, &number.to_string()).is_some());
    let models = Models::read(live, source);
    let gpus = gpus.into_iter().map(|(number, (spans, assumed))| {
        let model = models.of_gpu(number);
        let instance = number.to_string();
        let rows = read(GPU_ROWS.iter().map(|row| id(row.of, &instance)).collect(), false);
        let energy = read(vec![id(&gpu::ENERGY_JOULES, &instance)], true).pop().unwrap_or_default();
        let [utilization, memory, power] = [rows[0].clone(), rows[1].clone(), rows[2].clone()];
        let held = HeldGpu { spans: merged(spans), assumed, model, interval, step, utilization, memory, power, energy };
        (number, (held, rows))
    });
    let gpus = gpus.collect();
    let host = if wholly { read(HOST_ROWS.iter().map(|row| id(row.of, "")).collect(), false) } else { Vec::new() };
    let known_names = names.into_iter().filter(|name| !has_gpus && id(&process::CPU, name).is_some());
    let processes = known_names.map(|name| {
        let rows = read(RANK_ROWS.iter().map(|row| id(row.of, &name)).collect(), false);
        (name, rows)
    });
    let processes = processes.collect();
    Read { step, gpus, host, processes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::run::{Rank, Reserved};

    fn process(source: &str, rank: u32, began: i64, ended: Option<i64>) -> RunProcess {
        let rank = Some(Rank { rank, ..Rank::default() });
        RunProcess { source: source.into(), began, ended, rank, ..RunProcess::default() }
    }

    fn line(source: &str, rank: u32, values: [Option<f64>; 4]) -> Line {
        Line { source: source.into(), rank: Some(rank), label: None, values: values.to_vec() }
    }

    #[test]
    fn reserved_gpus_count_while_a_process_of_the_run_is_there() {
        let reserved = |gpus: &[u32]| Some(Reserved { gpus: gpus.to_vec(), ..Reserved::default() });
        let mut processes = vec![
            process("node-1", 0, 0, Some(10_000)),
            process("node-1", 1, 5_000, None),
            process("node-2", 2, 0, None),
        ];
        let run = |processes: &[RunProcess]| Run { processes: processes.to_vec(), ..Run::default() };
        assert_eq!(reserved_seconds(&run(&processes), (0, 20_000)), None, "an unknown reservation is not zero");
        (processes[0].reserved, processes[1].reserved) = (reserved(&[0, 1]), reserved(&[1]));
        // GPU 0 for ten seconds and GPU 1 for twenty.
        assert_eq!(reserved_seconds(&run(&processes), (0, 20_000)), Some(30.0));
        assert_eq!(held_sums(&run(&processes), 20_000).reserved_s, Some(30.0));
    }

    #[test]
    fn a_rank_that_moved_to_another_machine_has_one_line_over_both() {
        let processes = vec![
            process("node-1", 0, 0, None),
            process("node-2", 1, 0, Some(20)),
            process("node-3", 1, 20, None),
            // Two machines have this number at the same time.
            process("node-1", 2, 0, Some(30)),
            process("node-3", 2, 10, None),
        ];
        let run = Run { processes, ..Run::default() };
        let (a, b, c) = (Some(1.0), Some(2.0), Some(3.0));
        let lines = vec![
            line("node-1", 0, [a, a, a, a]),
            line("node-1", 2, [c, c, c, None]),
            line("node-2", 1, [a, a, a, None]),
            line("node-3", 1, [None, None, b, b]),
            line("node-3", 2, [None, c, c, c]),
        ];
        let measure = Measure { lines, ..measure_of(&GPU_ROWS[0], Vec::new()) };
        let mut measured =
            RunMeasures { sums: Sums::default(), from: 0, step: 10, measures: vec![measure], left_out: 0 };
        measured.join_moved(&run);
        let lines = &measured.measures[0].lines;
        let shown: Vec<(&str, Option<u32>)> = lines.iter().map(|line| (line.source.as_str(), line.rank)).collect();
        let expected = [("node-1", 0), ("node-1", 2), ("node-3", 1), ("node-3", 2)];
        assert_eq!(shown, expected.map(|(source, rank)| (source, Some(rank))));
        assert_eq!(lines[2].values, [a, a, b, b], "the newer machine counts where both have a value");
    }
}

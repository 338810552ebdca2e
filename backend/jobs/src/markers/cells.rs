//! The runs of a notebook's cells, made of their markers and of the samples during them.

use shared::answer::markers::{CellGpu, CellPhase, Marker};
use shared::catalog::{gpu, kernel};
use shared::rollup::Bucket;
use shared::series::SeriesId;
use shared::wire::SourceId;
use std::collections::BTreeSet;
use stream::live::Live;
use stream::store::Snapshot;

/// Maximum number of samples of one series in a read; longer spans are read as buckets.
const MAX_BUCKETS: i64 = 4_096;
/// Cells within this time are read together, milliseconds.
const READ_TOGETHER_MS: i64 = 30 * 60_000;
/// Maximum age of the last sample before a cell that counts as the state before it, milliseconds.
const BEFORE_MS: i64 = 10_000;
/// Below this utilization a GPU is idle, percent.
const IDLE_PERCENT: f64 = 5.0;
/// With fewer samples in a cell, its peaks are lower bounds.
const MIN_SAMPLES: usize = 3;

/// One run of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// The kernel's id.
    pub kernel: String,
    /// The cell's id in the notebook.
    pub cell: Option<String>,
    /// Execution number in the cell's brackets.
    pub n: Option<u64>,
    /// Its start, milliseconds since the Unix epoch.
    pub from: i64,
    /// Its end; None while it runs.
    pub to: Option<i64>,
    /// Its duration, so far or in total, seconds.
    pub seconds: f64,
    /// Whether it ended without an error.
    pub ok: Option<bool>,
    /// The name of its error.
    pub error: Option<String>,
    /// A line of its code, if its user wants it stored.
    pub label: Option<String>,
    /// Used CPU time, seconds.
    pub cpu_seconds: Option<f64>,
    /// Mean number of busy cores, and the number of cores that it may use.
    pub cores: Option<f64>,
    #[allow(missing_docs, reason = "see cores")]
    pub cores_of: Option<f64>,
    /// Memory of its kernel before, at most, and after, bytes.
    pub before: Option<u64>,
    #[allow(missing_docs, reason = "see before")]
    pub peak: Option<u64>,
    #[allow(missing_docs, reason = "see before")]
    pub after: Option<u64>,
    /// Memory limit of its kernel, bytes.
    pub limit: Option<u64>,
    /// The peaks are lower bounds: there are few samples.
    pub at_least: bool,
    /// GPUs of its kernel; if those are unknown, the GPUs that were busy.
    pub gpus: Vec<CellGpu>,
}

impl Cell {
    /// Its name, such as `[7]`.
    pub fn name(&self) -> String {
        self.n.map_or_else(|| "[ ]".into(), |n| format!("[{n}]"))
    }
}

/// Runs of cells from their markers, which are sorted by time, the oldest first. An end belongs to the previous start
/// of the same kernel. A start without an end ran until the next start, or runs at `now`, milliseconds since the Unix
/// epoch. `ended` returns the end of a kernel that has ended.
pub fn runs(
    markers: &[(u64, i64, Marker)],
    now: i64,
    ended: impl Fn(&str) -> Option<i64>,
) -> Vec<(Cell, Marker, Option<Marker>)> {
    let mut runs: Vec<(Cell, Marker, Option<Marker>)> = Vec::new();
    let mut open: std::collections::HashMap<&str, usize> = std::collections::HashMap::new();
    for (_, t, marker) in markers {
        let Some(kernel) = marker.kernel.as_deref() else { continue };
        match marker.phase {
            Some(CellPhase::Start) => {
                if let Some(before) = open.insert(kernel, runs.len()) {
                    if is_told_again(&runs[before].1, marker) {
                        runs.remove(before);
                        open.values_mut().filter(|at| **at > before).for_each(|at| *at -= 1);
                    } else {
                        // Its end was never reported.
                        runs[before].0.to = Some(*t);
                    }
                }
                let cell = Cell {
                    kernel: kernel.into(),
                    cell: marker.cell.clone(),
                    n: marker.n,
                    from: *t,
                    label: marker.label.clone(),
                    limit: marker.limit,
                    cores_of: marker.cores,
                    ..Cell::default()
                };
                runs.push((cell, marker.clone(), None));
            }
            Some(CellPhase::End) => {
                let Some(at) = open.remove(kernel) else { continue };
                let (cell, _, end) = &mut runs[at];
                (cell.to, cell.ok, cell.error) = (Some(*t), marker.ok, marker.error.clone());
                cell.n = marker.n.or(cell.n);
                cell.cell = marker.cell.clone().or(cell.cell.take());
                cell.limit = marker.limit.or(cell.limit);
                *end = Some(marker.clone());
            }
            None => {}
        }
    }
    for (kernel, at) in open {
        let cell = &mut runs[at].0;
        if let Some(end) = ended(kernel).filter(|end| *end >= cell.from) {
            (cell.to, cell.ok, cell.error) = (Some(end), Some(false), Some("kernel ended".into()));
        }
    }
    for (cell, start, end) in &mut runs {
        cell.seconds = (cell.to.unwrap_or(now) - cell.from).max(0) as f64 / 1_000.0;
        cell.before = start.memory;
        cell.after = end.as_ref().and_then(|end| end.memory);
        let used = start.cpu_seconds.zip(end.as_ref().and_then(|end| end.cpu_seconds));
        cell.cpu_seconds = used.map(|(before, after)| after - before).filter(|seconds| *seconds >= 0.0);
        cell.cores = cell.cpu_seconds.filter(|_| cell.seconds > 0.0).map(|used| used / cell.seconds);
    }
    runs
}

/// Whether a kernel's own marker repeats the run of a cell that Lab has reported.
fn is_told_again(lab: &Marker, own: &Marker) -> bool {
    lab.by.is_some() && own.by.is_none() && lab.cell.is_some() && lab.cell == own.cell
}

/// The series of one kernel and of its machine's GPUs.
struct Ids {
    memory: Option<SeriesId>,
    cpu: Option<SeriesId>,
    gpus: Vec<(u32, [Option<SeriesId>; 4])>,
}

fn ids(live: &Live, source: SourceId, kernel: &str) -> Ids {
    let store = live.store();
    let catalog = store.catalog().clone();
    let row = |tag: &str| catalog.position(tag);
    let short = kernel::short(kernel);
    let series = store.series(source, 0);
    let find = |row: Option<u16>, instance: &str| {
        let at = series.iter().position(|def| Some(def.metric) == row && def.instance == instance)?;
        SeriesId::try_from(at).ok()
    };
    let utilization = row(gpu::UTILIZATION.tag);
    let own = series.iter().filter(|def| Some(def.metric) == utilization);
    let numbers: BTreeSet<u32> = own.filter_map(|def| def.instance.parse().ok()).collect();
    let gpus = numbers.into_iter().map(|number| {
        let text = number.to_string();
        let of = |tag: &str| find(row(tag), &text);
        let held = find(row(kernel::GPU_MEMORY.tag), &format!("{short}.gpu.{number}"));
        let used = of(gpu::MEMORY_ALLOCATED_BYTES.tag);
        (number, [of(gpu::UTILIZATION.tag), used, of(gpu::MEMORY_TOTAL_BYTES.tag), held])
    });
    let gpus = gpus.collect();
    Ids { memory: find(row(kernel::MEMORY.tag), short), cpu: find(row(kernel::CPU.tag), short), gpus }
}

/// Adds the samples of one kernel to runs of its cells, which are sorted by time. It may read the disk.
pub fn measure(live: &Live, source: SourceId, cells: &mut [Cell], now: i64) {
    let Some(first) = cells.first() else { return };
    let ids = ids(live, source, &first.kernel);
    let interval = live.store().source(source).map_or(1_000, |(source, _)| source.interval.max(1));
    let end = |cell: &Cell| cell.to.unwrap_or(now);
    let mut begin = 0;
    while begin < cells.len() {
        let from = cells[begin].from;
        let count = cells[begin..].iter().take_while(|cell| end(cell) - from <= READ_TOGETHER_MS).count().max(1);
        let (part, span) =
            (begin..begin + count, (from - BEFORE_MS, cells[begin..begin + count].iter().map(end).max()));
        let to = span.1.unwrap_or(from) + 2 * interval;
        let snapshot = live.store().snapshot(source, span.0, to);
        if let Some(snapshot) = snapshot {
            let read = Read::from_snapshot(&snapshot, &ids, interval, to - span.0);
            cells[part].iter_mut().for_each(|cell| read.measure(cell, now));
        }
        begin += count;
    }
}

/// The samples of a span.
struct Read {
    memory: Vec<Bucket>,
    cpu: Vec<Bucket>,
    gpus: Vec<(u32, [Vec<Bucket>; 4])>,
    step: i64,
}

impl Read {
    fn from_snapshot(snapshot: &Snapshot, ids: &Ids, interval: i64, span: i64) -> Read {
        let step = interval.max(span / MAX_BUCKETS);
        let wanted: Vec<Option<SeriesId>> =
            [ids.memory, ids.cpu].into_iter().chain(ids.gpus.iter().flat_map(|(_, ids)| *ids)).collect();
        let known: Vec<SeriesId> = wanted.iter().copied().flatten().collect();
        let mut read = snapshot.buckets(&known, step, true).into_iter();
        let mut next = wanted.into_iter().map(|id| id.and_then(|_| read.next()).unwrap_or_default());
        let mut take = || next.next().unwrap_or_default();
        let (memory, cpu) = (take(), take());
        let gpus = ids.gpus.iter().map(|(gpu, _)| (*gpu, [take(), take(), take(), take()])).collect();
        Read { memory, cpu, gpus, step }
    }

    /// Buckets that begin within a cell.
    fn within<'a>(&self, all: &'a [Bucket], cell: &Cell, now: i64) -> &'a [Bucket] {
        let to = cell.to.unwrap_or(now);
        let from = all.partition_point(|bucket| bucket.t < cell.from);
        &all[from..all.partition_point(|bucket| bucket.t <= to).max(from)]
    }

    /// The last bucket before an instant, if it is recent.
    fn before(all: &[Bucket], t: i64) -> Option<&Bucket> {
        all[..all.partition_point(|bucket| bucket.t < t)].last().filter(|bucket| t - bucket.t <= BEFORE_MS)
    }

    /// The first bucket after an instant.
    fn behind<'a>(&self, all: &'a [Bucket], t: i64) -> Option<&'a Bucket> {
        all.get(all.partition_point(|bucket| bucket.t < t)).filter(|bucket| bucket.t - t <= 2 * self.step)
    }

    fn measure(&self, cell: &mut Cell, now: i64) {
        let largest = |buckets: &[Bucket]| buckets.iter().map(|bucket| bucket.max).reduce(f64::max);
        let memory = self.within(&self.memory, cell, now);
        cell.before = cell.before.or_else(|| Self::before(&self.memory, cell.from).map(|bucket| bucket.last as u64));
        let after = cell.to.and_then(|to| self.behind(&self.memory, to)).or_else(|| memory.last());
        cell.after = cell.after.or_else(|| after.map(|bucket| bucket.last as u64));
        let peak = largest(memory).map(|bytes| bytes as u64);
        cell.peak = [cell.before, peak, cell.after].into_iter().flatten().max();
        cell.at_least = memory.len() < MIN_SAMPLES;
        if cell.cpu_seconds.is_none() && cell.cores.is_none() {
            let cpu = self.within(&self.cpu, cell, now);
            let mean = mean(cpu).filter(|_| cpu.len() >= MIN_SAMPLES);
            cell.cores = mean.zip(cell.cores_of).map(|(percent, cores)| percent / 100.0 * cores);
            cell.cpu_seconds = cell.cores.map(|cores| cores * cell.seconds);
        }
        let joined = self.gpus.iter().any(|(_, [.., held])| !self.within(held, cell, now).is_empty());
        for (gpu, [busy, used, total, held]) in &self.gpus {
            let own = self.within(held, cell, now);
            let busy = self.within(busy, cell, now);
            let used_now = self.within(used, cell, now);
            let (before, peak) = (Self::before(used, cell.from), largest(used_now));
            let after = cell.to.and_then(|to| self.behind(used, to)).or_else(|| used_now.last());
            let grew = before.zip(peak).is_some_and(|(before, peak)| peak > before.last * 1.01);
            let worked = mean(busy).is_some_and(|mean| mean >= 1.0) || grew;
            if if joined { own.is_empty() } else { !worked } {
                continue;
            }
            let waited: f64 =
                busy.iter().filter(|bucket| bucket.mean < IDLE_PERCENT).map(|_| self.step as f64 / 1_000.0).sum();
            let last = self.within(total, cell, now).last().or(Self::before(total, cell.from));
            cell.gpus.push(CellGpu {
                gpu: *gpu,
                before: before.map(|bucket| bucket.last as u64),
                peak: peak.map(|bytes| bytes as u64),
                after: after.map(|bucket| bucket.last as u64),
                total: last.map(|bucket| bucket.last as u64),
                mean: mean(busy),
                idle: (!busy.is_empty()).then_some(waited.min(cell.seconds)),
                kernel: largest(own).map(|bytes| bytes as u64),
            });
        }
    }
}

fn mean(buckets: &[Bucket]) -> Option<f64> {
    let count: f64 = buckets.iter().map(|bucket| f64::from(bucket.count)).sum();
    let sum: f64 = buckets.iter().map(|bucket| bucket.mean * f64::from(bucket.count)).sum();
    (count > 0.0).then(|| (sum / count * 100.0).round() / 100.0)
}

//! Measures the cost of a thousand machines on a hub: ticks, their log and segments, memory, the overview, and the
//! delay of a tick at a quarter of an hour. It runs in one process on a clock that the bench moves, without sockets or
//! TLS.

use crate::cost::{cpu_of, thread_cpu};
use crate::history::{RETENTION, START, on_disk, rss};
use crate::table::Table;
use history::{Folder, Options, retain};
use shared::catalog::fleet::{Grain, rows};
use shared::catalog::{MetricDef, cpu, disk, gpu, memory, network};
use shared::scope::Scope;
use shared::series::SeriesDef;
use shared::wire::SourceId;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use stream::archive::{Archive, Disk};
use stream::clock::{Clock, Manual};
use stream::live::{Live, NewTick, OverviewPlace};
use stream::store::{Limits, Store};

/// Machines of the goal, series of each, and the number of these that change.
const MACHINES: u16 = 1_000;
const SERIES: usize = 500;
const MOVING_SERIES: usize = 150;
/// Ticks of a quarter of an hour.
const QUARTER: usize = 900;
/// Readers of the overview.
const VIEWERS: usize = 10_000;

/// Measures all figures in another process, so that its memory is its own.
pub fn measure(table: &mut Table) {
    let figures = match child() {
        Ok(figures) => figures,
        Err(why) => return table.missing("a hub with 1,000 machines", "", &why),
    };
    let on =
        format!("{MACHINES} machines x {SERIES} series, of which {MOVING_SERIES} walk at random; no sockets, no TLS");
    let mut row = |what: &str, name: &str, unit, most, goal| match figures.get(name) {
        Some(figure) => table.at_most(what, *figure, unit, most, goal, "", &on),
        None => table.missing(what, goal, "it was not told"),
    };
    row("1,000 machines at 1 Hz: ticks and log", "append", "% of a core", 6.0, "6 %");
    row("... and columns and segments", "all", "% of a core", 30.0, "30 %");
    row("... memory before the first cut", "head", "MiB", 1_024.0, "1 GiB");
    row("... memory after it", "cut", "MiB", 1_024.0, "1 GiB");
    row("... a sample in the log", "log", "B", 0.80, "0.80 B");
    row("... sealed", "sealed", "B", 0.40, "0.40 B");
    row("... longest wait of a tick at a quarter", "wait", "ms", 50.0, "50 ms");
    row("overview of 1,000 machines, a beat", "beat", "ms", 20.0, "20 ms");
    row("... on the wire", "wire", "B", 10_240.0, "10 KiB");
    row("... its keyframe", "keyframe", "B", 20_480.0, "20 KiB");
    row("... a beat for each of 10,000 viewers", "viewer", "µs", 8.7, "8.7 µs");
}

/// Figures of the child process by name.
fn child() -> Result<BTreeMap<String, f64>, String> {
    let exe = std::env::current_exe().map_err(|e| e.to_string())?;
    #[allow(clippy::disallowed_methods, reason = "a process of its own, so that only the hub counts")]
    let output = Command::new(exe).arg("hub").output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let figure = |line: &str| line.split_once(' ').and_then(|(name, v)| Some((name.to_string(), v.parse().ok()?)));
    match output.status.success() {
        true => Ok(text.lines().filter_map(figure).collect()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// The machines, with the state from which the bench makes their values.
struct Hub {
    clock: Arc<Manual>,
    live: Arc<Live>,
    values: Vec<Vec<f64>>,
    chance: u64,
    /// CPU time spent on making the values.
    made: Duration,
}

impl Hub {
    fn open(path: &Path) -> (Self, Archive) {
        let (folder, found) = Folder::open(path, Options::default()).expect("a temporary folder can be used");
        let limits = Limits { retention: RETENTION, bytes: 2 << 30 };
        let (mut store, unwritten) = Store::of_found(Arc::new(collectors::catalog()), &found, limits, None);
        for n in 0..MACHINES {
            let facts = vec![("name".to_string(), format!("node-{n}"))];
            let source = store.add_source(format!("{n:0>26}"), 1_000, facts);
            for def in series(&store) {
                store.intern(source, def).expect("room");
            }
        }
        let clock = Arc::new(Manual::at(*START, Duration::ZERO));
        let live = Live::new(store, clock.clone(), 1, RETENTION);
        let limits = retain::Limits { retention: RETENTION, bytes: None };
        let disk = Disk::new(path.into(), folder, found, limits);
        let archive = Archive::on_disk(live.clone(), disk, unwritten).expect("threads can be started");
        let values = vec![vec![50.0; SERIES]; usize::from(MACHINES)];
        (Hub { clock, live, values, chance: 0x9e37_79b9_7f4a_7c15, made: Duration::ZERO }, archive)
    }

    /// Advances one second: the values of all machines take a random step.
    fn walk(&mut self) {
        let before = thread_cpu();
        self.clock.pass(Duration::from_secs(1));
        for values in &mut self.values {
            for value in &mut values[..MOVING_SERIES] {
                self.chance ^= self.chance << 13;
                self.chance ^= self.chance >> 7;
                self.chance ^= self.chance << 17;
                let step = (self.chance % 201) as f64 - 100.0;
                *value = ((*value * 100.0 + step).round().clamp(0.0, 10_000.0)) / 100.0;
            }
        }
        self.made += thread_cpu() - before;
    }

    /// Appends a tick of each machine in groups, as they come from a thousand connections.
    fn tick(&mut self) {
        self.walk();
        let t = self.clock.wall();
        let tick = |(source, values)| NewTick { source, seq: None, t, clock_step: false, values };
        let all = self.values.iter().map(Vec::as_slice);
        let ticks: Vec<NewTick> = (0..).zip(all).map(tick).collect();
        let appended = self.live.append_all(&ticks);
        assert!(appended.iter().all(Option::is_some), "every tick is new");
        self.live.announce(&(0..MACHINES).collect::<Vec<_>>());
    }
}

/// The series of a machine: the eight GPUs and the machine as the overview shows them, and others.
fn series(store: &Store) -> Vec<SeriesDef> {
    let catalog = store.catalog();
    let of = |metric: &MetricDef, instance: String| {
        let metric = catalog.position(metric.tag).expect("a row of the collectors");
        SeriesDef { metric, instance }
    };
    let each = [&gpu::UTILIZATION, &gpu::MEMORY_ALLOCATED, &gpu::TEMP, &gpu::POWER_WATTS];
    let gpus = each.iter().flat_map(|metric| (0..8).map(|n| of(metric, n.to_string())));
    let alone = [&cpu::CPU_PERCENT, &memory::PERCENT, &network::RECEIVED, &network::SENT];
    let alone = alone.iter().map(|metric| of(metric, String::new()));
    let disks = ["/", "/data"].map(|path| of(&disk::USAGE_PERCENT, path.to_string()));
    let mut all: Vec<SeriesDef> = gpus.chain(alone).chain(disks).collect();
    all.extend((all.len()..SERIES).map(|n| of(&cpu::CORE_PERCENT, n.to_string())));
    all
}

/// The child process of [`child`]: prints one figure per line.
#[allow(clippy::print_stdout, reason = "its lines are read by the parent")]
pub fn hub() -> ExitCode {
    let Ok(folder) = tempfile::tempdir() else { return ExitCode::FAILURE };
    let (mut hub, mut archive) = Hub::open(folder.path());
    let samples = f64::from(MACHINES) * (SERIES * QUARTER) as f64;
    let (begun, made) = (cpu_of("self"), hub.made);
    // The quarter begins with the first tick. The last tick is that of its end.
    (0..QUARTER - 1).for_each(|_| hub.tick());
    let spent = (cpu_of("self") - begun) - (hub.made - made);
    println!("append {}", spent.as_secs_f64() / QUARTER as f64 * 100.0);
    println!("head {}", rss("self").unwrap_or(f64::NAN));
    println!("log {}", on_disk(folder.path()) as f64 / samples);

    overview(&hub);

    // The cut, with its columns and its segment, while ticks go on.
    hub.tick();
    let (done, mut cut) = (AtomicBool::new(false), Duration::ZERO);
    let (mut longest, mut ticks) = (Duration::ZERO, 0u32);
    std::thread::scope(|scope| {
        let cutting = scope.spawn(|| {
            let before = thread_cpu();
            archive.step();
            done.store(true, Ordering::Relaxed);
            thread_cpu() - before
        });
        let mut t = hub.clock.wall();
        while !done.load(Ordering::Relaxed) {
            // Connections deliver ticks continuously: a group of a fiftieth of the machines every 20 ms.
            t += 20;
            let group = (0..20).map(|n| ((ticks * 20 + n) % u32::from(MACHINES)) as SourceId);
            let tick = |source: SourceId| NewTick {
                source,
                seq: None,
                t,
                clock_step: false,
                values: &hub.values[usize::from(source)],
            };
            let group: Vec<NewTick> = group.map(tick).collect();
            let begun = Instant::now();
            std::hint::black_box(hub.live.append_all(&group));
            longest = longest.max(begun.elapsed());
            ticks += 1;
            std::thread::sleep(Duration::from_millis(20));
        }
        cut = cutting.join().unwrap_or_default();
    });
    println!("all {}", (spent + cut).as_secs_f64() / QUARTER as f64 * 100.0);
    println!("wait {}", longest.as_secs_f64() * 1e3);
    println!("cut {}", rss("self").unwrap_or(f64::NAN));
    let segments = std::fs::read_dir(folder.path()).into_iter().flatten().flatten();
    let segments = segments.filter(|file| file.file_name().to_string_lossy().starts_with("q-"));
    let bytes: u64 = segments.filter_map(|file| file.metadata().ok()).map(|meta| meta.len()).sum();
    println!("sealed {}", bytes as f64 / samples);
    ExitCode::SUCCESS
}

/// Cost of the overview: a beat, its bytes, and its delivery to each viewer.
#[allow(clippy::print_stdout, reason = "as above")]
fn overview(hub: &Hub) {
    const BEAT_COUNT: usize = 20;
    let (overview, _) = hub.live.overview(Grain::Sources, &Scope::All);
    overview.beat(&hub.live);
    let mut places: Vec<OverviewPlace> = (0..VIEWERS).map(|_| OverviewPlace::default()).collect();
    let keyframe = overview.next(&mut places[0]).map_or(0, |(_, frames)| frames.len());
    println!("keyframe {keyframe}");
    places.iter_mut().skip(1).for_each(|place| drop(overview.next(place)));
    let (mut beats, mut viewers, mut bytes) = (Duration::ZERO, Duration::ZERO, 0);
    let mut chance = 7u64;
    let mut values = hub.values.clone();
    for _ in 0..BEAT_COUNT {
        // Between two beats, all values of a machine that the overview shows have changed by some percent.
        hub.clock.pass(Duration::from_secs(2));
        let t = hub.clock.wall();
        for values in &mut values {
            for value in &mut values[..48] {
                chance ^= chance << 13;
                chance ^= chance >> 7;
                chance ^= chance << 17;
                *value = (*value + (chance % 7) as f64 - 3.0).clamp(0.0, 100.0);
            }
        }
        let tick = |(source, values)| NewTick { source, seq: None, t, clock_step: false, values };
        let ticks: Vec<NewTick> = (0..).zip(values.iter().map(Vec::as_slice)).map(tick).collect();
        hub.live.append_all(&ticks);
        hub.live.announce(&(0..MACHINES).collect::<Vec<_>>());
        let begun = thread_cpu();
        overview.beat(&hub.live);
        beats += thread_cpu() - begun;
        let begun = thread_cpu();
        for place in &mut places {
            bytes = overview.next(place).map_or(0, |(_, frames)| frames.len());
        }
        viewers += thread_cpu() - begun;
    }
    println!("beat {}", beats.as_secs_f64() * 1e3 / BEAT_COUNT as f64);
    println!("wire {bytes}");
    println!("viewer {}", viewers.as_secs_f64() * 1e6 / (BEAT_COUNT * VIEWERS) as f64);
    assert_eq!(rows(Grain::Sources).len(), 11, "the goal is of as many rows");
}

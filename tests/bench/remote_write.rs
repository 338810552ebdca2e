//! Measures the cost of remote write: bytes of a sample on the wire, and CPU of its thread.

use crate::record::Recording;
use crate::table::Table;
use backend::config::RemoteWrite;
use backend::remote_write::RemoteWriter;
use shared::catalog::{Kind, Metric};
use shared::series::SeriesDef;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use stream::clock::{Clock, System};
use stream::live::Live;
use stream::store::{Limits, Store};
use watchglass_tests::programs::{Program, found};
use watchglass_tests::receiver::{Receiver, ReceiverAnswer};

/// Number of ticks in one request.
const TICKS: usize = 15;
/// Number of requests in the measurement, after the first.
const REQUESTS: usize = 7;

/// Sends a recording, 15 s per request, to a receiver in this process that accepts everything.
pub fn measure(table: &mut Table, procfs: &Recording) {
    let series = procfs.steps.len();
    let on = format!("{series} series, requests of {TICKS} s, names as node_exporter's");
    let wire = "a sample by remote write";
    let cpu = "CPU of remote write, a tick of 500";
    match sent(procfs) {
        Some((bytes, micros)) => {
            table.at_most(wire, bytes, "B", 3.5, "3.5 B", "", &on);
            let micros = micros * 500.0 / series as f64;
            table.at_most(cpu, micros, "µs", f64::INFINITY, "", "", &format!("{on}, scaled to 500"));
        }
        None => table.missing(wire, "3.5 B", "the recording is too short, or the requests were not taken"),
    }
    let (share, many) =
        ("CPU of remote write, 1,000 machines of 500 series, of one core", "machines that its thread keeps up with");
    let on = format!(
        "{MACHINES} machines of {series} series each, {ROUNDS} rounds of {TICKS} s, progress on this disk, scaled to 500"
    );
    let receiver = Receiver::start(|_| ReceiverAnswer::Take);
    match of_many(procfs, receiver.url(), || None) {
        Some((cpu, wall, _)) => {
            // Seconds per second of data of one machine.
            let scale = 500.0 / series as f64;
            table.at_most(share, cpu * scale * 1_000.0 * 100.0, "%", f64::INFINITY, "", "", &on);
            table.at_most(many, 1.0 / (wall * scale), "machines", f64::INFINITY, "", "", &on);
        }
        None => table.missing(share, "", "the recording is too short, or the requests were not taken"),
    }
    let theirs = "CPU of VictoriaMetrics that takes it, 1,000 machines of 500 series, of one core";
    if found("victoria-metrics").is_none() {
        return table.missing(theirs, "", "victoria-metrics is not on PATH");
    }
    let data = tempfile::tempdir().expect("a folder");
    let server = Program::start("victoria-metrics", |addr| {
        let data = format!("-storageDataPath={}", data.path().display());
        vec![format!("-httpListenAddr={addr}"), data, "-dedup.minScrapeInterval=1ms".into()]
    });
    match of_many(procfs, format!("http://{}/api/v1/write", server.addr), || cpu_of(server.id())) {
        Some((_, _, Some(cpu))) => {
            let share = cpu * 500.0 / series as f64 * 1_000.0 * 100.0;
            table.at_most(theirs, share, "%", f64::INFINITY, "", "", &on);
        }
        _ => table.missing(theirs, "", "not all was taken"),
    }
}

/// CPU time that all threads of a process have used.
fn cpu_of(process: u32) -> Option<Duration> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).ok()?.flatten();
    let one = |task: std::fs::DirEntry| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    };
    Some(Duration::from_nanos(tasks.filter_map(one).sum()))
}

/// Machines of a hub that sends, and the number of sends of each after the first.
const MACHINES: usize = 300;
const ROUNDS: usize = 4;

/// CPU and time of the sender's thread, and CPU of the `other` end where it is known. All are in seconds, for one
/// second of data of one machine. None when not all samples were accepted.
fn of_many(
    recording: &Recording,
    url: String,
    other: impl Fn() -> Option<Duration>,
) -> Option<(f64, f64, Option<f64>)> {
    let mut store = Store::new(Arc::new(collectors::catalog()), Limits { retention: 86_400_000, bytes: 1 << 30 });
    let chart = store.catalog().layout.charts.first()?.clone();
    let mut sources = Vec::new();
    for machine in 0..MACHINES {
        let source = store.add_source(format!("a-host-of-usual-length-{machine}"), 1_000, Vec::new());
        for (i, steps) in recording.steps.iter().enumerate() {
            let mut metric = Metric::from(&shared::catalog::openmetrics::SAMPLE);
            metric.tag = metric.tag.replace("{sample}", &format!("node.node_procfs_{}_total{{labels}}", i / 20));
            (metric.kind, metric.steps) = (Kind::Counter, *steps);
            let metric = store.add_row(metric, chart.clone())?;
            store.intern(source, SeriesDef { metric, instance: format!("{{cpu=\"{}\",mode=\"user\"}}", i % 20) })?;
        }
        sources.push(source);
    }
    let live = Live::new(store, Arc::new(System), 1, 86_400_000);
    let settings = RemoteWrite { url, read_url: None, headers: Vec::new(), ..RemoteWrite::default() };
    let from = System.wall() - 3_600_000;
    let feed = |round: usize| {
        let ticks = recording.ticks.get(round * TICKS..(round + 1) * TICKS)?;
        let mut store = live.store();
        let mut samples = 0;
        for source in &sources {
            for (i, values) in ticks.iter().enumerate() {
                store.append(*source, from + (round * TICKS + i) as i64 * 1_000, false, values)?;
                samples += values.iter().filter(|v| v.is_finite()).count() as u64;
            }
        }
        Some(samples)
    };
    let folder = tempfile::tempdir().ok()?;
    let mut all = feed(0)?;
    let remote = RemoteWriter::start(&live, settings, Some(folder.path()));
    let taken = |n: u64| {
        let begin = Instant::now();
        while remote.counts.sent.load(Relaxed) < n {
            if begin.elapsed() > Duration::from_secs(300) {
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Some(())
    };
    taken(all)?;
    let (before, of_other, mut wall) = (cpu()?, other(), Duration::ZERO);
    for round in 1..=ROUNDS {
        let requests = remote.counts.requests.load(Relaxed);
        all += feed(round)?;
        // It checks once a second whether data is due. That wait is not part of the work.
        while remote.counts.requests.load(Relaxed) == requests {
            std::thread::sleep(Duration::from_millis(1));
        }
        let begun = Instant::now();
        taken(all)?;
        wall += begun.elapsed();
    }
    let used = cpu()?.checked_sub(before)?;
    remote.stop();
    let seconds = (MACHINES * ROUNDS * TICKS) as f64;
    let theirs = other().zip(of_other).map(|(after, before)| after.saturating_sub(before).as_secs_f64() / seconds);
    Some((used.as_secs_f64() / seconds, wall.as_secs_f64() / seconds, theirs))
}

/// Bytes per sample, and microseconds of CPU per tick; None when the recording is too short.
fn sent(recording: &Recording) -> Option<(f64, f64)> {
    let mut store = Store::new(Arc::new(collectors::catalog()), Limits { retention: 86_400_000, bytes: 64 << 20 });
    let source = store.add_source("a-host-of-usual-length".into(), 1_000, Vec::new());
    let chart = store.catalog().layout.charts.first()?.clone();
    for (i, steps) in recording.steps.iter().enumerate() {
        let mut metric = Metric::from(&shared::catalog::openmetrics::SAMPLE);
        // There are a few names with many labels, as in real exporters.
        metric.tag = metric.tag.replace("{sample}", &format!("node.node_procfs_{}_total{{labels}}", i / 20));
        (metric.kind, metric.steps) = (Kind::Counter, *steps);
        let metric = store.add_row(metric, chart.clone())?;
        store.intern(source, SeriesDef { metric, instance: format!("{{cpu=\"{}\",mode=\"user\"}}", i % 20) })?;
    }
    let live = Live::new(store, Arc::new(System), 1, 86_400_000);
    let receiver = Receiver::start(|_| ReceiverAnswer::Take);
    let settings = RemoteWrite { url: receiver.url(), read_url: None, headers: Vec::new(), ..RemoteWrite::default() };
    let from = System.wall() - 3_600_000;
    let mut ticks = recording.ticks.iter().enumerate();
    // Feeds the next ticks and returns the number of their samples; None at the end of the recording.
    let mut feed = || {
        let mut store = live.store();
        let mut samples = 0;
        for (i, values) in ticks.by_ref().take(TICKS) {
            store.append(source, from + i as i64 * 1_000, false, values)?;
            samples += values.iter().filter(|v| v.is_finite()).count() as u64;
        }
        (samples > 0).then_some(samples)
    };
    let mut all = feed()?;
    let remote = RemoteWriter::start(&live, settings, None);
    let taken = |n: u64| {
        let begin = Instant::now();
        while remote.counts.sent.load(Relaxed) < n && begin.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    // The first request is not measured, because it sets everything up.
    taken(all);
    let (bytes, before, samples) = (remote.counts.bytes.load(Relaxed), cpu()?, remote.counts.sent.load(Relaxed));
    for _ in 0..REQUESTS {
        all += feed()?;
        taken(all);
    }
    let samples = remote.counts.sent.load(Relaxed) - samples;
    let bytes = (remote.counts.bytes.load(Relaxed) - bytes) as f64 / samples as f64;
    let used = cpu()?.checked_sub(before)?;
    remote.stop();
    (samples > 0).then_some((bytes, used.as_secs_f64() * 1e6 / (REQUESTS * TICKS) as f64))
}

/// CPU time of the most recently started sender thread.
fn cpu() -> Option<Duration> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?.flatten();
    let mut tasks: Vec<_> = tasks.map(|task| task.path()).collect();
    tasks.sort_by_key(|task| task.file_name().and_then(|id| id.to_str()?.parse::<u32>().ok()));
    let sender = tasks
        .into_iter()
        .rev()
        .find(|task| std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "remote-write"))?;
    let used = std::fs::read_to_string(sender.join("schedstat")).ok()?;
    Some(Duration::from_nanos(used.split(' ').next()?.parse().ok()?))
}

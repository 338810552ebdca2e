//! Measures the cost of Watchglass: CPU of a host sample and of the whole process, and memory after 12 hours.

use crate::record::Recording;
use crate::table::Table;
use backend::config::Config;
use collectors::{COLLECTORS, Options, Out, Roots};
use shared::series::SeriesDef;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use stream::live::Live;
use stream::store::{Limits, Store};

/// Collectors of the four sources that the goal names, and of our own process.
const HOST: &[&str] = &["cpu", "memory", "disk", "network", "monitor"];
/// Number of ticks in 12 hours.
const TWELVE_HOURS: i64 = 43_200;
/// Number of processes for which the goal of the process table is stated.
const PROCESSES: usize = 500;

/// Measures all figures of this file.
pub fn measure(table: &mut Table, own: &Recording, folder: &Path) {
    let micros = host_sample();
    table.at_most(
        "CPU of a host sample",
        micros,
        "µs",
        100.0,
        "100 µs",
        "node_exporter 1,400 µs",
        &format!("{} cores, median of 500", std::thread::available_parallelism().map_or(0, |n| n.get())),
    );
    table.at_most(
        "CPU of collectors without a device, a tick",
        no_devices(),
        "µs",
        10.0,
        "10 µs",
        "",
        "nvidia, amd, intel, graphcore, tpu, trainium; tried again every 300 s",
    );
    match process_table() {
        Some((ms, total)) => table.at_most(
            "CPU of a process table of 500",
            ms,
            "ms",
            3.5,
            "3.5 ms",
            "W&B 0.31: 11 ms a second",
            &format!("{total} processes, most asleep; median of 60; every 5 s"),
        ),
        None => table.missing("CPU of a process table of 500", "3.5 ms", "no table on this system"),
    }
    match running(30, &[]) {
        Ok(seconds) => table.at_most(
            "CPU of the process at 1 Hz, a minute",
            seconds,
            "s",
            0.06,
            "0.06 s",
            "W&B 0.31: 0.304 s",
            "30 s without a viewer, doubled",
        ),
        Err(why) => table.missing("CPU of the process at 1 Hz, a minute", "0.06 s", &why),
    }
    match after_twelve_hours(folder) {
        Ok(mib) => table.at_most(
            "RSS after 12 h of ticks",
            mib,
            "MiB",
            25.0,
            "25 MB",
            "W&B 0.31: 41 MB",
            &format!("{} series of our own, repeated", own.steps.len()),
        ),
        Err(why) => table.missing("RSS after 12 h of ticks", "25 MB", &why),
    }
}

/// Median CPU time of one sample of the host collectors in microseconds.
fn host_sample() -> f64 {
    let options = Options::default();
    let mut parts: Vec<_> = COLLECTORS
        .iter()
        .filter(|entry| HOST.contains(&entry.name))
        .filter_map(|entry| entry.open_here(&options, &Roots::default()).ok())
        .flatten()
        .map(|part| (part.collector, Out::default()))
        .collect();
    let start = Instant::now();
    let mut costs: Vec<Duration> = (0..500)
        .map(|_| {
            let before = thread_cpu();
            for (collector, out) in &mut parts {
                out.begin(start.elapsed());
                let _ = collector.collect(out);
            }
            thread_cpu() - before
        })
        .collect();
    costs.sort_unstable();
    costs[costs.len() / 2].as_secs_f64() * 1e6
}

/// CPU of a tick at 1 Hz, in microseconds, for the device collectors on a machine without devices. An open collector is
/// read at each tick. A collector that did not open is retried every five minutes.
fn no_devices() -> f64 {
    const DEVICES: &[&str] = &["nvidia", "amd", "intel", "ascend", "graphcore", "tpu", "trainium"];
    const MAX_ATTEMPTS: u32 = 50;
    let empty = Roots::below(Path::new("/nonexistent"));
    let mut tick = Duration::ZERO;
    for entry in COLLECTORS.iter().filter(|entry| DEVICES.contains(&entry.name)) {
        let options = Options::default();
        let before = thread_cpu();
        let open = || entry.open_here(&options, &empty).ok();
        let parts = (1..MAX_ATTEMPTS).fold(open(), |_, _| open());
        match parts {
            None => tick += (thread_cpu() - before) / MAX_ATTEMPTS / 300,
            Some(mut parts) => {
                let mut out = Out::default();
                let before = thread_cpu();
                for second in 0..MAX_ATTEMPTS {
                    out.begin(Duration::from_secs(second.into()));
                    for part in &mut parts {
                        // This measures readings that find nothing.
                        let _ = part.collector.collect(&mut out);
                    }
                }
                tick += (thread_cpu() - before) / MAX_ATTEMPTS;
            }
        }
    }
    tick.as_secs_f64() * 1e6
}

/// CPU time of this thread so far.
pub fn thread_cpu() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0))
}

/// CPU time of all threads of a process (`self` for this one); zero when there is no such process.
pub fn cpu_of(process: &str) -> Duration {
    // The file schedstat of a process covers only its main thread. The other threads have files of their own.
    let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { return Duration::ZERO };
    let one = |task: fs::DirEntry| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    Duration::from_nanos(tasks.flatten().filter_map(one).sum())
}

/// CPU of one process table in milliseconds, and its number of processes. The machine is filled with sleeping processes
/// up to [`PROCESSES`].
fn process_table() -> Option<(f64, u32)> {
    let running =
        fs::read_dir("/proc").ok()?.flatten().filter(|e| e.file_name().as_encoded_bytes()[0].is_ascii_digit());
    #[allow(clippy::disallowed_methods, reason = "processes to be listed; each ends with the measurement")]
    let mut sleeping: Vec<Child> =
        (running.count()..PROCESSES).filter_map(|_| Command::new("sleep").arg("60").spawn().ok()).collect();
    let measured = measure_table();
    for child in &mut sleeping {
        let _ = child.kill();
        let _ = child.wait();
    }
    measured
}

fn measure_table() -> Option<(f64, u32)> {
    let options = Options::default();
    let entry = COLLECTORS.iter().find(|entry| entry.name == "processes")?;
    let mut part = entry.open_here(&options, &Roots::default()).ok()?.remove(0);
    let mut out = Out::default();
    let mut costs: Vec<Duration> = (0..60)
        .map(|i| {
            out.begin(Duration::from_secs(i * 5));
            let before = thread_cpu();
            let _ = part.collector.collect(&mut out);
            thread_cpu() - before
        })
        .collect();
    costs.sort_unstable();
    let total = options.processes.newest()?.total;
    Some((costs[costs.len() / 2].as_secs_f64() * 1e3, total))
}

/// A process that is killed when this value is dropped.
pub struct Ended(pub Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Both calls fail only when the process has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Path of the server's executable, which must be beside this one.
pub fn server() -> Result<std::path::PathBuf, String> {
    let path = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("watchglass");
    if path.exists() { Ok(path) } else { Err("build the server first: cargo xtask build".into()) }
}

/// CPU seconds per minute of the server at 1 Hz without a viewer. `seconds` is the time of the measurement.
pub fn running(seconds: u64, args: &[&str]) -> Result<f64, String> {
    #[allow(clippy::disallowed_methods, reason = "the bench starts the server itself")]
    let mut child = Command::new(server()?)
        .args(["--port", "0"])
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    // The start of the server is not measured.
    std::thread::sleep(Duration::from_secs(5));
    let process = child.id().to_string();
    let before = cpu_of(&process);
    std::thread::sleep(Duration::from_secs(seconds));
    let after = cpu_of(&process);
    let _ = child.kill();
    let _ = child.wait();
    if after < before {
        return Err("the server ended early".into());
    }
    Ok((after - before).as_secs_f64() * 60.0 / seconds as f64)
}

/// Resident memory in MiB of a server that was fed 12 hours of ticks.
fn after_twelve_hours(folder: &Path) -> Result<f64, String> {
    let exe = std::env::current_exe().map_err(|e| e.to_string())?;
    #[allow(clippy::disallowed_methods, reason = "a process of its own, so that only the server's memory counts")]
    let output = Command::new(exe).arg("feed").arg(folder).output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| format!("the fed server said {:?}", String::from_utf8_lossy(&output.stderr)))
}

/// The child process of [`after_twelve_hours`]: feeds a store, serves it for a while, and prints its resident memory in
/// MiB.
#[allow(clippy::print_stdout, reason = "its one line is read by the parent")]
pub fn fed(args: &[String]) -> ExitCode {
    let Some(Ok((_, own))) = args.first().map(|folder| crate::record::recordings(Path::new(folder), None)) else {
        return ExitCode::FAILURE;
    };
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() else {
        return ExitCode::FAILURE;
    };
    let config = Config { port: 0, ..Config::default() };
    let (stopping, stop) = tokio::sync::watch::channel(false);
    let mut store = Store::new(Arc::new(collectors::catalog()), Limits { retention: i64::MAX / 4, bytes: 256 << 20 });
    let source = store.add_source("fed".into(), 1_000, Vec::new());
    feed(&mut store, source, &own);
    drop(own);
    let clock = Arc::new(stream::clock::System);
    let live = Live::new(store, clock, 1, TWELVE_HOURS * 1_000);
    let served = runtime.spawn(async move {
        let listeners = backend::modes::bind(&config).await?;
        let archive = stream::archive::Archive::in_memory(live.clone());
        let (answering, _) = tokio::sync::oneshot::channel();
        let serving =
            backend::modes::Serving { listeners, unix: None, within: None, stop, page: ::page::PAGE, answering };
        backend::modes::machine::sample(&config, live, archive, source, serving).await;
        Ok::<_, std::io::Error>(())
    });
    std::thread::sleep(Duration::from_secs(5));
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let rss =
        status.lines().find_map(|l| l.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok());
    let _ = stopping.send(true);
    let _ = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(2), served).await });
    match rss {
        Some(kib) => {
            println!("{}", kib / 1024.0);
            ExitCode::SUCCESS
        }
        None => ExitCode::FAILURE,
    }
}

/// Adds the series of a recording to a store. Each gets a row of the catalog with the same steps, if there is one.
pub fn intern(store: &mut Store, source: u16, recording: &Recording) {
    let catalog = store.catalog().clone();
    for (i, &steps) in recording.steps.iter().enumerate() {
        let with_place = |m: &&shared::catalog::Metric| m.steps == steps && m.tag.contains("{i}");
        let metric = catalog.metrics.iter().find(with_place).or(catalog.metrics.iter().find(|m| m.tag.contains("{i}")));
        let Some(metric) = metric.and_then(|m| catalog.position(&m.tag)) else { continue };
        store.intern(source, SeriesDef { metric, instance: i.to_string() });
    }
}

/// Feeds 12 hours of ticks by repeating the recording.
fn feed(store: &mut Store, source: u16, own: &Recording) {
    intern(store, source, own);
    for i in 0..TWELVE_HOURS {
        let tick = &own.ticks[i as usize % own.ticks.len()];
        store.append(source, 1_700_000_000_000 + i * 1_000, false, tick);
    }
}

//! Measures the cost of history on disk: bytes, CPU of a tick with its log, time to read and to open, memory.
//!
//! The real archive makes the folders, and the bench sets its clock. Folders that would take an hour to make (a fleet,
//! 10,000 series) are written segment by segment. Everything runs on this thread, except the two threads of the log.

use crate::cost::{cpu_of, intern, server, thread_cpu};
use crate::record::Recording;
use crate::table::Table;
use history::{Folder, Options, retain};
use shared::series::SeriesId;
use shared::wire::SourceId;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use stream::archive::{Archive, Disk};
use stream::clock::{Clock, Manual, System};
use stream::live::Live;
use stream::store::{Limits, Store};

/// Start of an hour, at least 13 hours ago, in ms since the epoch. It is recent, so that a started server keeps all
/// data.
pub static START: LazyLock<i64> = LazyLock::new(|| (System.wall() / HOUR - 13) * HOUR);
/// An hour in ms.
pub const HOUR: i64 = 3_600_000;
/// Retention of the history in ms.
pub const RETENTION: i64 = 12 * HOUR;
/// Number of repetitions of a reading. The 95th percentile is the third slowest.
const READ_REPEATS: usize = 60;

/// Measures all figures of this file. Returns false when that failed.
pub fn measure(table: &mut Table, procfs: &Recording) -> bool {
    let temp = match tempfile::tempdir() {
        Ok(temp) => temp,
        Err(error) => {
            table.missing("history on disk", "", &error.to_string());
            return false;
        }
    };
    let series = procfs.steps.len();
    let on = format!("{series} series, 12 h of {} ticks recorded here, totals running on", procfs.ticks.len());
    let folder = temp.path().join("procfs");
    if procfs.ticks.len() < crate::record::COLUMN {
        let needs = format!("cargo xtask bench -- --record {}", crate::record::COLUMN);
        table.missing("history on disk", "", &format!("needs a longer recording: {needs}"));
        return false;
    }
    let mut kept = Keeping::open(&folder, "bench");
    intern(&mut kept.live.store(), kept.source, procfs);
    let samples = kept.feed(procfs, RETENTION / 1_000);
    let bytes = on_disk(&folder) as f64 / samples as f64;
    let peer = "VictoriaMetrics 0.40, Prometheus 1.59 (another recording)";
    table.at_most("a sample on disk, everything included", bytes, "B", 0.40, "0.40 B", peer, &on);
    let (quick, paced) = kept.tick_cost(procfs);
    let what = "CPU of a tick of 500, with log and sync";
    table.at_most(what, quick, "µs", 20.0, "20 µs", "", &format!("{series} series, ticks one after the other"));
    let paced_on = format!("{series} series, once a second, caches cold, 30 s");
    table.at_most("the same once a second", paced, "µs", f64::INFINITY, "", "", &paced_on);

    let moving = |i: &usize| procfs.ticks.iter().any(|tick| tick[*i] != procfs.ticks[0][*i]);
    let ids: Vec<SeriesId> = (0..series).filter(moving).map(|i| i as SeriesId).collect();
    let ids: Vec<SeriesId> = ids.iter().step_by((ids.len() / 24).max(1)).take(24).copied().collect();
    let now = kept.clock.wall();
    let ms = p95(|| {
        let snapshot = kept.live.store().snapshot(kept.source, now - RETENTION, now).expect("a source");
        snapshot.buckets(&ids, 30_000, true)
    });
    let on = format!("{} series that move, buckets of 30 s of every sample; CPU, p95 of {READ_REPEATS}", ids.len());
    table.at_most(
        "24 series x 12 h, read and reduced",
        ms,
        "ms",
        15.0,
        "15 ms",
        "VictoriaMetrics 10.9 ms, two cores",
        &on,
    );
    drop(kept);
    match started(&folder) {
        Ok(start) => {
            let on = format!("{series} series x 12 h on disk");
            table.at_most("RSS of a server with history", start.rss, "MiB", 25.0, "25 MB", "", &on);
        }
        Err(why) => table.missing("RSS of a server with history", "25 MB", &why),
    }
    true
}

/// 95th percentile of the CPU time of this thread in milliseconds.
pub fn p95<T>(mut run: impl FnMut() -> T) -> f64 {
    let mut times: Vec<Duration> = (0..READ_REPEATS)
        .map(|_| {
            let before = thread_cpu();
            std::hint::black_box(run());
            thread_cpu() - before
        })
        .collect();
    times.sort_unstable();
    times[READ_REPEATS * 95 / 100].as_secs_f64() * 1e3
}

/// Size in bytes of all files in a folder.
pub fn on_disk(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|meta| meta.len()).sum()
}

/// The store, the live stream and the archive of a server on a data folder, without sockets.
pub struct Keeping {
    /// The clock, which the bench moves.
    pub clock: Arc<Manual>,
    /// The live stream to which ticks are appended.
    pub live: Arc<Live>,
    /// The archive that cuts, writes and merges.
    pub archive: Archive,
    /// Number of the machine.
    pub source: SourceId,
}

impl Keeping {
    /// Opens a folder; `name` is the name of the machine.
    pub fn open(path: &Path, name: &str) -> Self {
        let (folder, found) = Folder::open(path, Options::default()).expect("a temporary folder can be used");
        let limits = Limits { retention: RETENTION, bytes: 256 << 20 };
        let (store, unwritten) = Store::of_found(Arc::new(collectors::catalog()), &found, limits, Some(name));
        let source = store.named(name).expect("it is added where it was not found");
        let newest = store.state(source).map_or(0, |state| state.t());
        let clock = Arc::new(Manual::at(newest.max(*START), Duration::ZERO));
        let live = Live::new(store, clock.clone(), 1, RETENTION);
        let limits = retain::Limits { retention: RETENTION, bytes: None };
        let disk = Disk::new(path.into(), folder, found, limits);
        let archive = Archive::on_disk(live.clone(), disk, unwritten).expect("threads can be started");
        Keeping { clock, live, archive, source }
    }

    /// Appends a tick, one second after the last. Returns the number of its samples.
    pub fn tick(&self, values: &[f64]) -> u64 {
        self.clock.pass(Duration::from_secs(1));
        self.live.append(self.source, self.clock.wall(), false, values).expect("it is not closed");
        values.iter().filter(|v| v.is_finite()).count() as u64
    }

    /// Feeds `ticks` ticks by repeating a recording. Totals keep rising across repetitions. Returns the number of
    /// samples.
    pub fn feed(&mut self, recording: &Recording, ticks: i64) -> u64 {
        let mut samples = 0;
        for (i, values) in repeated(recording).take(ticks as usize).enumerate() {
            samples += self.tick(&values);
            if i % 60 == 59 {
                self.archive.step();
            }
        }
        self.clock.pass(Duration::from_secs(1));
        self.archive.step();
        samples
    }

    /// CPU time of a tick in microseconds, over all threads of this process: for ticks without a pause, and for one
    /// tick a second.
    fn tick_cost(&self, recording: &Recording) -> (f64, f64) {
        const QUICK: u32 = 840;
        let mut all = repeated(recording);
        let ticks: Vec<Vec<f64>> = all.by_ref().take(QUICK as usize).collect();
        // The first tick announces all series to the log.
        self.tick(&ticks[0]);
        let before = cpu_of("self");
        for values in &ticks {
            self.tick(values);
        }
        let quick = (cpu_of("self") - before) / QUICK;
        let seconds = 30;
        let ticks: Vec<Vec<f64>> = all.take(seconds as usize).collect();
        let before = cpu_of("self");
        for values in &ticks {
            std::thread::sleep(Duration::from_secs(1));
            self.tick(values);
        }
        let paced = (cpu_of("self") - before) / seconds;
        (quick.as_secs_f64() * 1e6, paced.as_secs_f64() * 1e6)
    }
}

/// The ticks of a recording, repeated endlessly. A counter continues from its last value.
fn repeated(recording: &Recording) -> impl Iterator<Item = Vec<f64>> + '_ {
    let (first, last) = (&recording.ticks[0], &recording.ticks[recording.ticks.len() - 1]);
    let rises = |i: usize| recording.ticks.windows(2).all(|pair| pair[0][i] <= pair[1][i]);
    let laps: Vec<f64> = (0..recording.steps.len()).map(|i| if rises(i) { last[i] - first[i] } else { 0.0 }).collect();
    (0..).flat_map(move |lap| {
        let laps = laps.clone();
        let more = move |(i, v): (usize, &f64)| v + laps[i] * f64::from(lap);
        recording.ticks.iter().map(move |tick| tick.iter().enumerate().map(&more).collect())
    })
}

/// Figures of the start of a server.
pub struct Start {
    /// Seconds from the start to the first answer.
    pub wall: f64,
    /// CPU seconds until the first answer.
    pub cpu: f64,
    /// Resident memory five seconds later in MiB.
    pub rss: f64,
}

/// Starts the real server on copies of a folder, and returns the fastest of three starts.
pub fn started(folder: &Path) -> Result<Start, String> {
    let once = |n: u32| {
        let copy = folder.with_extension(n.to_string());
        linked(folder, &copy).map_err(|e| e.to_string())?;
        start(&copy)
    };
    let starts: Result<Vec<Start>, String> = (0..3).map(once).collect();
    starts?.into_iter().min_by(|a, b| a.wall.total_cmp(&b.wall)).ok_or_else(|| "it was never started".into())
}

/// Hard-links all files of a folder into another. This is enough, because no file changes after it was written.
fn linked(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir(to)?;
    for file in std::fs::read_dir(from)?.flatten().filter(|file| file.file_name() != "lock") {
        std::fs::hard_link(file.path(), to.join(file.file_name()))?;
    }
    Ok(())
}

fn start(folder: &Path) -> Result<Start, String> {
    let begin = Instant::now();
    #[allow(clippy::disallowed_methods, reason = "the bench starts the server itself")]
    let mut child = Command::new(server()?)
        .args(["--port", "0", "--collectors", "cpu", "--retention", "24h", "--data-dir"])
        .arg(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    let mut ask = || -> Result<Start, String> {
        let mut line = String::new();
        let stdout = child.stdout.take().ok_or("no output")?;
        BufReader::new(stdout).read_line(&mut line).map_err(|e| e.to_string())?;
        let authority = line.trim().strip_prefix("http://").and_then(|url| url.split('/').next()).unwrap_or_default();
        let mut stream = std::net::TcpStream::connect(authority).map_err(|e| format!("{authority:?}: {e}"))?;
        let request = format!("GET /api/v1/sources HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
        let mut answer = String::new();
        stream
            .write_all(request.as_bytes())
            .and_then(|()| stream.read_to_string(&mut answer))
            .map_err(|e| e.to_string())?;
        let wall = begin.elapsed().as_secs_f64();
        let process = child.id().to_string();
        let cpu = cpu_of(&process).as_secs_f64();
        if !answer.starts_with("HTTP/1.1 200") {
            return Err(answer);
        }
        std::thread::sleep(Duration::from_secs(5));
        Ok(Start { wall, cpu, rss: rss(&process).ok_or("it ended early")? })
    };
    let start = ask();
    let _ = child.kill();
    let _ = child.wait();
    start
}

/// Resident memory of a process in MiB; None when there is no such process.
pub fn rss(process: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let kib = status.lines().find_map(|l| l.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"))?;
    Some(kib.trim().parse::<f64>().ok()? / 1024.0) // The kernel writes KiB.
}

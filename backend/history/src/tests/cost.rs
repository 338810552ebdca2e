//! Cost of writing and replaying. Run alone, with optimization: `cargo test --release -p watchglass-history --lib cost
//! -- --ignored --nocapture`.

use crate::files::{Disk, Files};
use crate::journal::Journal;
use crate::log;
use crate::replay::Replay;
use crate::{Log, Written};
use shared::catalog::{Catalog, cpu};
use shared::series::SeriesDef;
use shared::tick::TickState;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// CPU time of this process.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that the call fills.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
#[ignore = "a measurement"]
fn cost_of_a_write() {
    let temp = TempDir::new().unwrap();
    let disk = Disk::new(temp.path());
    let lock = disk.lock().unwrap();
    let log = Log::start(Arc::new(disk), lock, BTreeMap::new(), Duration::from_secs(5)).unwrap();
    log.begin(Vec::new());
    let mut record = Vec::new();
    log::put(&mut record, &log::Entry::Tick { source: 0, frame: &[7; 130] });
    for (what, n, pause) in [("one after the other", 50_000u32, 0), ("every 2 ms", 3_000, 2)] {
        let cpu = cpu_time();
        for _ in 0..n.min(1_000) * u32::from(pause > 0) {
            std::thread::sleep(Duration::from_millis(pause));
        }
        let asleep = (cpu_time() - cpu) / n.min(1_000);
        let (cpu, wall) = (cpu_time(), Instant::now());
        let mut slowest = Duration::ZERO;
        let mut waited = Duration::ZERO;
        for _ in 0..n {
            let now = Instant::now();
            assert_eq!(log.write(record.clone()), Written::Done);
            slowest = slowest.max(now.elapsed());
            waited += now.elapsed();
            if pause > 0 {
                std::thread::sleep(Duration::from_millis(pause));
            }
        }
        let cpu = cpu_time() - cpu - asleep * n;
        println!(
            "write, {what}: {:?} CPU, waited {:?}, slowest {slowest:?} ({:?})",
            cpu / n,
            waited / n,
            wall.elapsed()
        );
    }
    log.close();
}

#[test]
#[ignore = "a measurement"]
fn cost_of_a_replay() {
    const SERIES: usize = 10_000;
    let catalog = Catalog::new(cpu::ROWS.iter().copied());
    let rows = catalog.metrics.len();
    let def = |id: usize| SeriesDef { metric: (id % rows) as u16, instance: format!("instance-{id}") };
    let defs: Vec<SeriesDef> = (0..SERIES).map(def).collect();
    let (mut state, mut journal, mut bytes) = (TickState::default(), Journal::default(), Vec::new());
    state.extend(defs.iter().map(|def| catalog.metrics[usize::from(def.metric)].steps));
    log::put_header(&mut bytes);
    journal.source(&mut bytes, 0, "machine", 1_000, &[]);
    journal.series(&mut bytes, 0, &catalog, defs.iter().enumerate().map(|(id, def)| (id as u32, def)));
    journal.keyframe(&mut bytes, 0, &state.keyframe());
    let mut values = vec![0.0; SERIES];
    let (cpu, before) = (cpu_time(), bytes.len());
    for tick in 0..900usize {
        // A quarter of the series changes, as with procfs.
        for id in (tick % 4..SERIES).step_by(4) {
            values[id] = ((tick * 31 + id * 17) % 10_000) as f64 / 100.0;
        }
        let frame = state.encode(1_700_000_000_000 + tick as i64 * 1_000, false, &values);
        journal.tick(&mut bytes, 0, &frame, || state.keyframe());
    }
    println!("encoding with its records: {:?} a tick, {} B", (cpu_time() - cpu) / 900, (bytes.len() - before) / 900);
    let cpu = cpu_time();
    let mut replay = Replay::default();
    replay.log("log-1", &bytes);
    let found = replay.finish();
    println!("replay of 900 ticks of {SERIES} series, {} bytes: {:?} CPU", bytes.len(), cpu_time() - cpu);
    assert_eq!((found.report.ticks, found.sources[0].spans.len()), (900, 1));
}

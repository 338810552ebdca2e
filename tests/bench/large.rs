//! Measures the cost of a fleet of 100 machines, and of a machine with 10,000 series.

use crate::history::{HOUR, Keeping, RETENTION, START, p95, rss, started};
use crate::record::Recording;
use crate::table::Table;
use history::files::Disk;
use history::segments::{self, Kind, Name};
use history::{Folder, Options};
use shared::catalog::{Metric, cpu};
use shared::segment::{Contents, NewColumn, SeriesEntry, SourceEntry, TickSpan};
use shared::series::{SeriesDef, SeriesId};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Number of machines in the fleet.
const MACHINES: u16 = 100;
/// Number of series of each machine in the fleet.
const SERIES_EACH: u32 = 20;
/// Number of series of the large machine.
const MANY_SERIES: u32 = 10_000;
/// Number of ticks in an hour.
const TICKS: usize = 3_600;

/// Measures the fleet and the large machine.
pub fn measure(table: &mut Table, procfs: &Recording) {
    fleet(table, procfs);
    match tempfile::tempdir() {
        Ok(temp) => machine(table, procfs, temp.path()),
        Err(error) => table.missing("open a folder, all sealed", "50 ms", &error.to_string()),
    }
}

/// Measures one metric over every machine of the fleet.
pub fn fleet(table: &mut Table, procfs: &Recording) {
    let temp = match tempfile::tempdir() {
        Ok(temp) => temp,
        Err(error) => return table.missing("one metric over 100 sources", "5 ms", &error.to_string()),
    };
    let fleet = temp.path().join("fleet");
    hours(&fleet, MACHINES, SERIES_EACH, procfs).expect("a temporary folder can be written to");
    let kept = Keeping::open(&fleet, "machine-0");
    let ms = p95(|| {
        let all = 0..MACHINES;
        all.map(|source| {
            let snapshot = kept.live.store().snapshot(source, *START, *START + RETENTION - 1).expect("a source");
            snapshot.buckets(&[7], 60_000, false)
        })
        .collect::<Vec<_>>()
    });
    let on = format!("12 h by the minute; CPU, p95; {SERIES_EACH} series a machine");
    table.at_most("one metric over 100 sources", ms, "ms", 5.0, "5 ms", "", &on);
}

/// Measures a machine with many series.
fn machine(table: &mut Table, procfs: &Recording, temp: &Path) {
    let large = temp.join("large");
    // It has the name of this machine, so that the server accepts the folder as its own.
    let name = collectors::host_name().unwrap_or_else(|| "this machine".into());
    hours_of(&large, &[name], MANY_SERIES, procfs).expect("a temporary folder can be written to");
    let open = || Folder::open(&large, Options::default()).map(|(_, found)| found.segments.len());
    let on = format!("{MANY_SERIES} series x 12 h; CPU, p95");
    table.at_most("open a folder, all sealed", p95(open), "ms", 50.0, "50 ms", "", &on);
    match child(&large) {
        Ok(kib) => {
            let on = format!("{MANY_SERIES} series that move, 900 ticks in memory, 12 h on disk");
            table.at_most("memory of a live series", kib, "KiB", 2.0, "2 KiB", "", &on);
        }
        Err(why) => table.missing("memory of a live series", "2 KiB", &why),
    }
    // The 900 ticks are in the log now, as after a kill at the end of a quarter of an hour.
    let ms = p95(open);
    let on = format!("{MANY_SERIES} series x 12 h, and 900 ticks in the log; CPU, p95");
    table.at_most("open a folder after a kill", ms, "ms", f64::INFINITY, "", "", &on);
    match started(&large) {
        Ok(start) => {
            let on = format!("likewise, to its first answer; {:.2} s of CPU; the best of 3", start.cpu);
            table.at_most("start of the server after a kill", start.wall, "s", 2.0, "2 s", "", &on);
            let on = format!("{MANY_SERIES} series x 12 h on disk");
            table.at_most("RSS of that server", start.rss, "MiB", f64::INFINITY, "", "", &on);
        }
        Err(why) => table.missing("start of the server after a kill", "2 s", &why),
    }
}

fn hours(path: &Path, machines: u16, series: u32, recording: &Recording) -> std::io::Result<()> {
    let names: Vec<String> = (0..machines).map(|n| format!("machine-{n}")).collect();
    hours_of(path, &names, series, recording)
}

/// Writes 12 hours of these machines. Each column of the recording is used for many series.
fn hours_of(path: &Path, names: &[String], series: u32, recording: &Recording) -> std::io::Result<()> {
    let disk = Disk::new(path);
    disk.make()?;
    let moves = |i: &usize| recording.ticks.iter().any(|tick| tick[*i] != recording.ticks[0][*i]);
    let moving: Vec<usize> = (0..recording.steps.len()).filter(moves).take(24).collect();
    let row = Metric::from(cpu::ROWS.iter().find(|row| row.tag.contains("{i}")).copied().expect("cores have rows"));
    let of = |id: u32| SeriesEntry { id, row: 0, instance: id.to_string() };
    let all: Arc<[SeriesEntry]> = (0..series).map(of).collect();
    for h in 0..12i64 {
        let times: Vec<i64> = (0..TICKS as i64).map(|i| *START + h * HOUR + i * 1_000).collect();
        let columns: Vec<NewColumn> = moving
            .iter()
            .map(|&i| {
                let values: Vec<f64> = (0..TICKS).map(|t| recording.ticks[t % recording.ticks.len()][i]).collect();
                NewColumn::with_tier(0, &times, &values, row.steps)
            })
            .collect();
        let name = Name { kind: Kind::Hour, start: (*START + h * HOUR) / 1_000, serial: h as u64 + 1 };
        segments::write(&disk, &Arc::default(), name, |writer| {
            for source in 0..names.len() as u16 {
                let first_seq = h as u64 * TICKS as u64 + 1;
                let last_seq = first_seq + TICKS as u64 - 1;
                let span = TickSpan { source, first_seq, last_seq, times: &times, clock_step: false, after_gap: false };
                let column = |id: u32| NewColumn { id, ..columns[id as usize % columns.len()].clone() };
                writer.block(span, (0..series).map(column))?;
            }
            let source = |name: &String| SourceEntry {
                name: name.clone(),
                interval: 1_000,
                facts: Vec::new(),
                series: all.clone(),
            };
            let sources = names.iter().map(source).collect();
            Ok(Contents { rows: vec![row.clone()].into(), sources, ..Contents::default() })
        })?;
    }
    Ok(())
}

/// Memory of a live series in KiB. It is measured in another process, which ends without closing its log.
fn child(folder: &Path) -> Result<f64, String> {
    let exe = std::env::current_exe().map_err(|e| e.to_string())?;
    #[allow(clippy::disallowed_methods, reason = "a process of its own, so that only these series count")]
    let output = std::process::Command::new(exe).arg("live").arg(folder).output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The child process of [`child`]: takes 900 ticks of many series and prints the memory per series in KiB.
#[allow(clippy::print_stdout, reason = "its one line is read by the parent")]
pub fn live(args: &[String]) -> ExitCode {
    let (Some(folder), Some(before)) = (args.first(), rss("self")) else { return ExitCode::FAILURE };
    let kept = Keeping::open(Path::new(folder), &collectors::host_name().unwrap_or_else(|| "this machine".into()));
    {
        let mut store = kept.live.store();
        let metric = store.series(kept.source, 0).first().map_or(0, |def| def.metric);
        for id in 0..MANY_SERIES {
            let def = SeriesDef { metric, instance: id.to_string() };
            if store.intern(kept.source, def) != Some(id as SeriesId) {
                return ExitCode::FAILURE;
            }
        }
    }
    let mut values = vec![0.0; MANY_SERIES as usize];
    for tick in 0..900 {
        // A quarter of the series changes in each tick, as in procfs.
        for id in (tick % 4..values.len()).step_by(4) {
            values[id] = ((tick * 31 + id * 17) % 10_000) as f64 / 100.0;
        }
        kept.tick(&values);
    }
    let Some(after) = rss("self") else { return ExitCode::FAILURE };
    println!("{}", (after - before) * 1024.0 / f64::from(MANY_SERIES)); // The figure is converted from MiB to KiB.
    // The process ends without closing anything, as after a kill.
    std::process::exit(0)
}

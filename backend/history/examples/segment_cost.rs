//! Cost of segments, measured on a recording of real counters:
//! `cargo run --release -p watchglass-history --example segment_cost -- RECORDING`.
//!
//! The recording is text. Each tick is a line `t MILLISECONDS` and a line `NAME VALUE` per series, with an empty line
//! between ticks. It is repeated to an hour, with counters running on. Figures of an hour are slightly too good for a
//! shorter recording.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for developers that reports and may stop")]

use history::compaction;
use history::files::Disk;
use history::segments::{self, Kind, Name, Segment};
use shared::catalog::{Metric, cpu};
use shared::column;
use shared::segment::{Contents, NewColumn, SeriesEntry, SourceEntry, TickSpan};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

const HOUR: i64 = 472_222 * 3_600;

/// Series by position: steps and one value a second for an hour.
struct Hour {
    times: Vec<i64>,
    series: Vec<(f64, Vec<f64>)>,
}

fn read(path: &str) -> Hour {
    let (mut times, mut series) = (Vec::new(), BTreeMap::<String, Vec<f64>>::new());
    for tick in std::fs::read_to_string(path).unwrap().split("\n\n").filter(|t| t.ends_with(char::is_numeric)) {
        for line in tick.lines() {
            let (name, value) = line.split_once(' ').unwrap();
            match name {
                "t" => times.push(value.parse::<i64>().unwrap()),
                _ => series.entry(name.into()).or_default().push(value.parse().unwrap()),
            }
        }
    }
    let n = times.len();
    println!("recording: {n} ticks of {} series", series.len());
    let jitter: Vec<i64> = times.iter().map(|t| t.rem_euclid(1_000)).collect();
    let repeat = |values: Vec<f64>| {
        let grows = values.is_sorted() && values[0] < values[n - 1];
        let lap =
            if grows { values[n - 1] - values[0] + ((values[n - 1] - values[0]) / n as f64).round() } else { 0.0 };
        let steps = if values.iter().all(|v| v.fract() == 0.0) { 1.0 } else { 100.0 };
        (steps, (0..3_600).map(|i| values[i % n] + (i / n) as f64 * lap).collect())
    };
    Hour {
        times: (0..3_600).map(|i| (HOUR + i) * 1_000 + jitter[i as usize % n]).collect(),
        series: series.into_values().filter(|v| v.len() == n).map(repeat).collect(),
    }
}

fn contents(sources: u16, series: u32) -> Contents {
    let series = (0..series).map(|id| SeriesEntry { id, row: (id % 80) as u16, instance: format!("dev{}", id / 80) });
    let series: Arc<[SeriesEntry]> = series.collect();
    // As many rows as a machine without accelerators has, with their help texts.
    let rows = shared::catalog::VOCABULARY.iter().copied().flatten().chain(cpu::ROWS).take(80);
    let facts = vec![("os".into(), "Linux".into())];
    let source =
        |n| SourceEntry { name: format!("host-{n}"), interval: 1_000, facts: facts.clone(), series: series.clone() };
    Contents {
        rows: rows.map(|def| Metric::from(*def)).collect(),
        sources: (0..sources).map(source).collect(),
        ..Contents::default()
    }
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a timespec that the call fills.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) }, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn timed<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let (cpu, wall) = (cpu_time(), Instant::now());
    let result = run();
    println!(
        "{what}: {:.2} ms of CPU, {:.2} ms",
        (cpu_time() - cpu).as_secs_f64() * 1e3,
        wall.elapsed().as_secs_f64() * 1e3
    );
    result
}

/// Runs a function many times: median and 95th percentile of its wall time, and of its CPU time.
fn often<T>(what: &str, mut run: impl FnMut() -> T) {
    let (mut walls, mut cpus) = (Vec::new(), Vec::new());
    for _ in 0..60 {
        let (cpu, wall) = (cpu_time(), Instant::now());
        std::hint::black_box(run());
        walls.push(wall.elapsed().as_secs_f64() * 1e3);
        cpus.push((cpu_time() - cpu).as_secs_f64() * 1e3);
    }
    for times in [&mut walls, &mut cpus] {
        times.sort_by(f64::total_cmp);
    }
    println!(
        "{what}: median {:.2} ms, p95 {:.2} ms; of CPU {:.2} and {:.2} ms",
        walls[30], walls[57], cpus[30], cpus[57]
    );
}

fn sizes(what: &str, segment: &Segment) {
    let (reader, mut raw, mut tier, mut samples) = (segment.reader(), 0, 0, 0);
    for (i, block) in segment.contents().blocks.iter().enumerate() {
        samples += block.samples;
        reader.entries(i).0.iter().for_each(|e| {
            raw += e.bytes().0;
            tier += e.bytes().1;
        });
    }
    let each = |bytes: u64| bytes as f64 / samples as f64;
    let rest = segment.bytes() - raw - tier;
    println!(
        "{what}: {samples} samples, {:.4} B each: columns {:.4}, tiers {:.4}, the rest {:.4} ({rest} B)",
        each(segment.bytes()),
        each(raw),
        each(tier),
        each(rest)
    );
}

fn main() {
    let hour = read(&std::env::args().nth(1).expect("a recording"));
    let n = hour.series.len() as u32;
    let folder: PathBuf = std::env::temp_dir().join(format!("segment-cost-{}", std::process::id()));
    let part = |name: &str| {
        let disk = Disk::new(folder.join(name));
        disk.make().unwrap();
        disk
    };
    let hours = write_hours(&part("hours"), &hour);
    let moving = |&i: &usize| hour.series[i].1.iter().any(|v| *v != hour.series[i].1[0]);
    let wanted: Vec<u32> = (0..n as usize).filter(moving).step_by(7).take(24).map(|i| i as u32).collect();
    read_hours(&hours, &wanted);
    measure_fleet(&part("fleet"), &hour, &wanted);
    measure_many(&part("many"));
    std::fs::remove_dir_all(folder).unwrap();
}

/// Seals quarters of the recording for twelve hours, and merges them.
fn write_hours(disk: &Disk, hour: &Hour) -> Vec<Arc<Segment>> {
    let n = hour.series.len() as u32;
    let mut hours = Vec::new();
    for h in 0..12i64 {
        let quarters: Vec<Arc<Segment>> = (0..4)
            .map(|q| {
                let ticks = q * 900..(q + 1) * 900;
                let times: Vec<i64> = hour.times[ticks.clone()].iter().map(|t| t + h * 3_600_000).collect();
                let first_seq = h as u64 * 3_600 + ticks.start as u64 + 1;
                let (start, serial) = (HOUR + h * 3_600 + q as i64 * 900, h as u64 * 5 + q as u64 + 1);
                let name = Name { kind: Kind::Quarter, start, serial };
                let seal = || {
                    segments::write(disk, &Arc::default(), name, |writer| {
                        let span = TickSpan {
                            source: 0,
                            first_seq,
                            last_seq: first_seq + 899,
                            times: &times,
                            clock_step: false,
                            after_gap: false,
                        };
                        let columns = hour.series.iter().enumerate();
                        let columns =
                            columns.map(|(id, (steps, v))| NewColumn::new(id as u32, &v[ticks.clone()], *steps));
                        writer.block(span, columns)?;
                        Ok(contents(1, n))
                    })
                };
                if (h, q) == (0, 0) { timed("seal a quarter", seal) } else { seal() }.unwrap()
            })
            .collect();
        let join = || compaction::merge(disk, &Arc::default(), h as u64 * 5 + 5, &quarters).unwrap();
        let merged = if h == 0 { timed("merge an hour", join) } else { join() };
        if h == 0 {
            sizes("quarter", &quarters[0]);
            sizes("hour", &merged.segment);
        }
        segments::remove(disk, merged.replaced.iter().map(String::as_str)).unwrap();
        hours.push(merged.segment);
    }
    hours
}

/// Reads series of twelve hours.
fn read_hours(hours: &[Arc<Segment>], wanted: &[u32]) {
    let fetch = |decode: bool| {
        for hour in hours {
            let reader = hour.reader();
            let times = reader.times_bytes(0).unwrap();
            if decode {
                std::hint::black_box(column::decode_times(&times, 3_600).unwrap());
            }
            for &id in wanted {
                let bytes = reader.column(0, id).unwrap().unwrap();
                if decode {
                    std::hint::black_box(column::decode(&bytes, 3_600).unwrap());
                }
            }
        }
    };
    often(&format!("{} series x 12 h, bytes", wanted.len()), || fetch(false));
    often(&format!("{} series x 12 h, decoded", wanted.len()), || fetch(true));
    often("the tiers of the same", || {
        hours.iter().for_each(|h| wanted.iter().for_each(|&id| drop(h.reader().tier(0, id).unwrap())));
    });
}

/// Reads one metric of a hundred machines.
fn measure_fleet(disk: &Disk, hour: &Hour, wanted: &[u32]) {
    let fleet: Vec<Arc<Segment>> = (0..12i64)
        .map(|h| {
            let name = Name { kind: Kind::Hour, start: HOUR + h * 3_600, serial: h as u64 + 1 };
            let times: Vec<i64> = hour.times.iter().map(|t| t + h * 3_600_000).collect();
            let columns: Vec<NewColumn> = (0..130)
                .map(|id| {
                    let (steps, values) = &hour.series[wanted[id as usize % 24] as usize];
                    NewColumn::with_tier(id, &times, values, *steps)
                })
                .collect();
            let fill = |writer: &mut shared::segment::Writer<segments::Out>| {
                for source in 0..100 {
                    let first_seq = h as u64 * 3_600 + 1;
                    let span = TickSpan {
                        source,
                        first_seq,
                        last_seq: first_seq + 3_599,
                        times: &times,
                        clock_step: false,
                        after_gap: false,
                    };
                    writer.block(span, columns.iter().cloned())?;
                }
                Ok(contents(100, 130))
            };
            segments::write(disk, &Arc::default(), name, fill).unwrap()
        })
        .collect();
    often("one metric x 100 sources x 12 h, tiers", || {
        fleet.iter().for_each(|s| (0..100).for_each(|b| drop(s.reader().tier(b, 77).unwrap())));
    });
    often("open 12 files of 100 sources x 130 series", || segments::open(disk, &Arc::default()).unwrap());
}

/// Opens files with very many series.
fn measure_many(disk: &Disk) {
    for i in 0..16 {
        let name = Name { kind: Kind::Hour, start: HOUR + i * 3_600, serial: i as u64 + 1 };
        segments::write(disk, &Arc::default(), name, |writer| {
            let times = [(HOUR + i * 3_600) * 1_000, (HOUR + i * 3_600) * 1_000 + 1];
            let span = TickSpan {
                source: 0,
                first_seq: i as u64 * 2 + 1,
                last_seq: i as u64 * 2 + 2,
                times: &times,
                clock_step: false,
                after_gap: false,
            };
            writer.block(span, (0..10_000).map(|id| NewColumn::new(id, &[1.0, 2.0], 1.0)))?;
            Ok(contents(1, 10_000))
        })
        .unwrap();
    }
    often("open 16 files of 10,000 series", || segments::open(disk, &Arc::default()).unwrap());
}

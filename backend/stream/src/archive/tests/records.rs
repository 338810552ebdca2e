//! Records beside ticks: each once and in order, in memory, in the log, in segments, and after a kill.

use super::*;
use crate::recording::{self, Recorder};
use crate::store::{MAX_RECORD_BYTES, MAX_RECORDS, RecordRefused, first_number};
use crate::testing::bench::{Bench, RETENTION, T0, clock};
use history::faults::Fault;
use shared::record::{BadRecord, MAX_BODY_BYTES, Record};
use shared::wire::CheckState;
use tempfile::TempDir;

/// Ticks for this many seconds, with a record after every seventh.
fn ticks(bench: &mut Bench, seconds: i64, all: &mut Vec<Record>) {
    for _ in 0..seconds {
        bench.ticks(1);
        let t = bench.live.clock.wall();
        if t / 1_000 % 7 == 0 {
            let body = format!("{{\"text\":\"{t}\"}}").into_bytes();
            let n = bench.live.append_record(bench.source, t, "marker", body.clone()).expect("it is open");
            all.push(Record { n, t, kind: "marker".into(), body });
        }
    }
}

fn read(bench: &Bench, from: i64, to: i64) -> Vec<Record> {
    let snapshot = bench.live.store().records(bench.source, from, to).expect("a source");
    snapshot.flatten().map(|record| (*record).clone()).collect()
}

#[track_caller]
fn holds(bench: &Bench, all: &[Record]) {
    assert_eq!(read(bench, 0, i64::MAX), all);
    if let [.., before, last] = all {
        assert_eq!(read(bench, before.t, last.t - 1), std::slice::from_ref(before));
        assert_eq!(bench.live.store().last_record(bench.source), last.n);
    }
}

#[test]
fn records_come_back_from_the_log_from_quarters_and_from_hours_alike() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::open(folder.path(), &clock);
    let mut all = Vec::new();
    ticks(&mut bench, 100, &mut all);
    assert_eq!(all[0].n, first_number(T0));
    assert!(all.windows(2).all(|pair| pair[1].n == pair[0].n + 1), "one by one");
    for more in [1_000, 1_500, 5_000] {
        drop(bench);
        bench = Bench::open(folder.path(), &clock);
        holds(&bench, &all);
        ticks(&mut bench, more, &mut all);
        holds(&bench, &all);
    }
    assert!(all.windows(2).all(|pair| pair[1].n > pair[0].n), "no number is given twice");
    assert_eq!(bench.live.store().counts().records_dropped, 0);
    let names = bench.faulty.operations();
    assert!(names.iter().any(|name| name.starts_with("create h-")), "an hour was merged");
    bench.holds(T0, 7_600);
}

#[test]
fn a_disk_that_fails_once_anywhere_loses_no_record() {
    for n in (0..60).step_by(4) {
        let (folder, clock) = (TempDir::new().expect("a folder"), clock());
        let mut bench = Bench::open(folder.path(), &clock);
        let mut all = Vec::new();
        ticks(&mut bench, 880, &mut all);
        bench.faulty.fail(n, Fault::Io);
        ticks(&mut bench, 40, &mut all);
        bench.until(CheckState::Ok);
        holds(&bench, &all);
        drop(bench);
        holds(&Bench::open(folder.path(), &clock), &all);
    }
}

#[test]
fn records_without_ticks_are_kept_as_well() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let bench = Bench::open(folder.path(), &clock);
    let n = bench.live.append_record(bench.source, T0, "run.begin", Vec::new()).expect("it is open");
    drop(bench);
    for cut in [true, false] {
        let mut bench = Bench::open(folder.path(), &clock);
        assert_eq!(read(&bench, T0, T0), [Record { n, t: T0, kind: "run.begin".into(), body: Vec::new() }]);
        if cut {
            bench.archive.step();
        }
    }
    // The log starts at the first tick from a keyframe, even if the source had a record before.
    let mut bench = Bench::open(folder.path(), &clock);
    bench.live.append_record(bench.source, T0, "run.end", Vec::new()).expect("it is open");
    bench.ticks(20);
    drop(bench);
    Bench::open(folder.path(), &clock).holds(T0, 20);
}

#[test]
fn records_in_memory_are_bounded_and_what_is_lost_is_counted() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::open(folder.path(), &clock);
    let append = |bench: &Bench, body: usize| {
        bench.live.append_record(bench.source, T0, "logs", vec![0; body]).expect("it is open");
    };
    let in_memory = |bench: &Bench| bench.live.store().records_since(bench.source, 0);
    (0..MAX_RECORDS + 50).for_each(|_| append(&bench, 1));
    assert_eq!((in_memory(&bench).len(), bench.live.store().counts().records_dropped), (MAX_RECORDS, 50));
    // Those that are in a segment are not lost.
    bench.archive.cut();
    bench.archive.step();
    (0..MAX_RECORDS).for_each(|_| append(&bench, 1));
    assert_eq!(bench.live.store().counts().records_dropped, 50);
    assert_eq!(read(&bench, 0, i64::MAX).len(), 2 * MAX_RECORDS);
    (0..100).for_each(|_| append(&bench, MAX_BODY_BYTES));
    let bytes: usize = in_memory(&bench).iter().map(|placed| placed.record.size()).sum();
    assert!(bytes <= MAX_RECORD_BYTES && bytes > MAX_RECORD_BYTES / 2, "{bytes} bytes");
    // Records older than the retention leave memory, too.
    clock.pass(Duration::from_millis(RETENTION as u64));
    bench.ticks(2);
    assert_eq!(in_memory(&bench).len(), 0);
}

#[test]
fn what_cannot_be_a_record_is_refused_and_a_reader_goes_on_where_it_was() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::open(folder.path(), &clock);
    let append = |bench: &Bench, source, kind: &str| bench.live.append_record(source, T0, kind, Vec::new());
    assert_eq!(append(&bench, bench.source, "No kind"), Err(RecordRefused::Bad(BadRecord::Kind)));
    assert_eq!(append(&bench, 99, "marker"), Err(RecordRefused::Unknown));
    let first = append(&bench, bench.source, "marker").expect("sound");
    bench.ticks(2);
    let seq = bench.live.store().state(bench.source).expect("a source").seq();
    append(&bench, bench.source, "marker").expect("sound");
    let placed: Vec<u64> = bench.live.store().records_since(bench.source, 0).iter().map(|p| p.after).collect();
    assert_eq!(placed, [0, seq], "in order with ticks");
    assert_eq!(bench.live.store().records_since(bench.source, first).len(), 1);
    assert!(bench.live.store().records_since(bench.source, first + 1).is_empty());
    bench.live.close();
    assert_eq!(append(&bench, bench.source, "marker"), Err(RecordRefused::Closed));
}

#[test]
fn a_recording_has_the_records_of_its_span() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::open(folder.path(), &clock);
    let mut all = Vec::new();
    ticks(&mut bench, 2_000, &mut all);
    let (from, to) = (T0 + 500_000, T0 + 1_500_000);
    let sources = bench.live.store().sources();
    let mut recorder = Recorder::new(&bench.live.store(), &sources, from, to, false).expect("samples");
    let mut bytes = Vec::new();
    while let Some(piece) = recorder.piece().expect("what is stored is sound") {
        bytes.extend(piece);
    }
    let recording = shared::recording::Recording::open(bytes.as_slice()).expect("a recording");
    let expected: Vec<Record> = all.into_iter().filter(|record| (from..=to).contains(&record.t)).collect();
    assert!(expected.len() > 100);
    assert_eq!(recording.machines[0].records, expected);
    let store = recording::store(recording, &shared::catalog::Catalog::new([]));
    let held: Vec<Record> = store.records_since(0, 0).iter().map(|placed| (*placed.record).clone()).collect();
    assert_eq!(held, expected);
}

#[test]
fn damaged_records_are_left_out_and_counted_once() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::open(folder.path(), &clock);
    let mut all = Vec::new();
    ticks(&mut bench, 1_000, &mut all);
    let quarter = std::fs::read_dir(folder.path()).expect("a folder").flatten().map(|file| file.path());
    let quarter = quarter.into_iter().find(|path| path.extension().is_some_and(|end| end == "seg")).expect("a segment");
    let mut bytes = std::fs::read(&quarter).expect("a segment");
    let at = bytes.windows(6).position(|window| window == b"marker").expect("a record");
    bytes[at] = b'M';
    std::fs::write(&quarter, bytes).expect("it is written");
    for _ in 0..2 {
        let left = read(&bench, 0, i64::MAX);
        assert_eq!(left, all, "those in memory are read from there");
    }
    drop(bench);
    let bench = Bench::open(folder.path(), &clock);
    for _ in 0..2 {
        let left = read(&bench, 0, i64::MAX);
        assert!(!left.is_empty() && left.len() < all.len() && all.ends_with(&left));
        assert_eq!(bench.live.store().counts().damaged, 1);
    }
    bench.holds(T0, 1_000);
}

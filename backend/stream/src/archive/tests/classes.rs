//! Machines with a retention of their own.

use crate::store::{QUARTER, Retentions};
use crate::testing::bench::{Bench, T0, clock};
use history::faults::Fault;
use shared::series::SeriesDef;
use shared::wire::SourceId;
use std::path::Path;
use tempfile::TempDir;

const HOUR: i64 = 3_600_000;
const QUARTER_S: i64 = QUARTER / 1_000;

/// A machine with this retention, milliseconds.
fn other(bench: &Bench, retention: i64) -> SourceId {
    let mut store = bench.live.store();
    let other = store.named("other").unwrap_or_else(|| store.add_source("other".into(), 1_000, Vec::new()));
    store.intern(other, SeriesDef { metric: 0, instance: "0".into() });
    store.set_retentions(Retentions::from([("other".to_owned(), retention)]));
    other
}

fn ticks(bench: &mut Bench, other: SourceId, seconds: i64) {
    for _ in 0..seconds {
        bench.ticks(1);
        let t = bench.live.clock.wall();
        bench.live.append(other, t, false, &[t as f64]);
    }
}

fn samples(bench: &Bench, source: SourceId) -> Vec<(i64, f64)> {
    let snapshot = bench.live.store().snapshot(source, 0, i64::MAX).expect("a source");
    snapshot.samples(&[0]).remove(0)
}

/// The names of the sources of each segment.
fn segments(folder: &Path) -> Vec<Vec<String>> {
    let found = history::Folder::read_only(folder).expect("it can be read");
    found.segments.iter().map(|s| s.contents().sources.iter().map(|source| source.name.clone()).collect()).collect()
}

#[test]
fn each_is_kept_for_its_own_time_in_files_of_its_own() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::open(folder.path(), &clock);
    let source = other(&bench, HOUR);
    ticks(&mut bench, source, 4 * 4 * QUARTER_S);
    let seconds = 4 * 4 * QUARTER_S;
    bench.holds(T0, seconds);
    let now = bench.live.clock.wall();
    let kept = samples(&bench, source);
    let (oldest, newest) = (kept.first().expect("samples").0, kept.last().expect("samples").0);
    // Whole hours are removed, an hour after their expiry.
    assert!((HOUR..=3 * HOUR + QUARTER).contains(&(now - oldest)), "{}", now - oldest);
    assert_eq!((newest, kept.len() as i64), (now, (now - oldest) / 1_000 + 1), "each second of what is kept is there");
    let all = segments(folder.path());
    assert!(all.iter().all(|sources| sources.len() == 1), "{all:?}");
    drop(bench); // as by a kill
    let mut bench = Bench::open(folder.path(), &clock);
    bench.holds(T0, seconds);
    let source = other(&bench, 24 * HOUR);
    assert_eq!(samples(&bench, source), kept);
    // From now on its retention is longer, and that of its existing files, too.
    ticks(&mut bench, source, 4 * 4 * QUARTER_S);
    assert_eq!(samples(&bench, source).first().map(|(t, _)| *t), Some(oldest));
    bench.holds(T0, seconds * 2);
}

#[test]
fn a_kill_between_the_files_of_a_cut_loses_nothing() {
    // Kills at each operation, until some fell between the two files.
    let (mut stopped, mut n) = (0, 0);
    while stopped < 2 {
        let (folder, clock) = (TempDir::new().expect("a folder"), clock());
        let mut bench = Bench::open(folder.path(), &clock);
        let source = other(&bench, HOUR);
        ticks(&mut bench, source, QUARTER_S - 2);
        // Operations of the log's own threads are counted too. The assertions hold wherever the kill falls.
        bench.faulty.fail(n, Fault::Kill);
        ticks(&mut bench, source, 1);
        let before = bench.live.clock.wall();
        ticks(&mut bench, source, 4);
        let written = segments(folder.path()).len();
        stopped += usize::from(written == 1);
        assert!(n < 200, "no kill was between the two files");
        n += 1;
        drop(bench);
        let bench = Bench::open(folder.path(), &clock);
        for (id, samples) in [(bench.source, samples(&bench, bench.source)), (source, samples(&bench, source))] {
            let until = samples.last().expect("samples").0;
            let times: Vec<i64> = samples.iter().map(|(t, _)| *t).collect();
            let all: Vec<i64> = (1..=(until - T0) / 1_000).map(|s| T0 + s * 1_000).collect();
            assert_eq!(times, all, "killed at {n}, {written} files, source {id}");
            if written > 0 {
                assert!(until >= before, "killed at {n}: what was cut is there");
            }
        }
    }
}

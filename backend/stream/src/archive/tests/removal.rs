//! A machine that is removed: its samples leave memory and disk, and those of others stay.

use crate::store::QUARTER;
use crate::testing::bench::{Bench, T0, clock};
use shared::series::SeriesDef;
use shared::wire::SourceId;
use std::path::Path;
use tempfile::TempDir;

const QUARTER_S: i64 = QUARTER / 1_000;

/// The value of the machine that is removed: its text occurs in no other sample.
const VALUE: f64 = 77.25;

/// Appends ticks of both machines for this many seconds.
fn ticks(bench: &mut Bench, other: SourceId, seconds: i64) {
    for _ in 0..seconds {
        bench.ticks(1);
        let t = bench.live.clock.wall();
        bench.live.append(other, t, false, &[VALUE]);
    }
}

fn other(bench: &Bench) -> SourceId {
    let mut store = bench.live.store();
    let other = store.named("other").unwrap_or_else(|| store.add_source("other".into(), 1_000, Vec::new()));
    store.intern(other, SeriesDef { metric: 0, instance: "0".into() });
    other
}

fn samples(bench: &Bench, source: SourceId) -> usize {
    let snapshot = bench.live.store().snapshot(source, 0, i64::MAX).expect("a source");
    snapshot.samples(&[0])[0].len()
}

/// Number of segments and logs that name the machine, and of all segments.
fn naming(folder: &Path) -> (usize, usize) {
    let found = history::Folder::read_only(folder).expect("it can be read");
    let named = found.segments.iter().filter(|s| s.contents().sources.iter().any(|source| source.name == "other"));
    (named.count(), found.segments.len())
}

#[test]
fn what_is_removed_leaves_memory_at_once_and_each_segment_and_the_others_stay() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::open(folder.path(), &clock);
    let source = other(&bench);
    // A merged hour, a quarter, a cut, and the head.
    ticks(&mut bench, source, 4 * QUARTER_S + 200);
    ticks(&mut bench, source, QUARTER_S);
    assert!(naming(folder.path()).0 >= 2, "{:?}", naming(folder.path()));
    assert_eq!(samples(&bench, source) as i64, 5 * QUARTER_S + 200);
    bench.live.store().remove_sources(["other".to_owned(), "another".to_owned()]);
    assert_eq!(samples(&bench, source), 0);
    assert_eq!(bench.live.append(source, clock_now(&bench), false, &[VALUE]), None, "nothing more is taken");
    bench.ticks(9);
    assert_eq!(naming(folder.path()).0, 0);
    let seconds = 5 * QUARTER_S + 209;
    bench.holds(T0, seconds);
    // Later cuts and merges bring nothing back.
    bench.ticks(4 * QUARTER_S);
    assert_eq!((naming(folder.path()).0, samples(&bench, source)), (0, 0));
    bench.holds(T0, seconds + 4 * QUARTER_S);
    drop(bench);
    let bench = Bench::open(folder.path(), &clock);
    assert_eq!(bench.live.store().named("other"), None, "it is found no more");
    bench.holds(T0, seconds + 4 * QUARTER_S);
}

fn clock_now(bench: &Bench) -> i64 {
    bench.live.clock.wall() + 1
}

#[test]
fn what_a_log_has_of_a_machine_that_was_removed_is_found_and_forgotten() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::open(folder.path(), &clock);
    let source = other(&bench);
    ticks(&mut bench, source, QUARTER_S + 100);
    drop(bench); // as by a kill
    let mut bench = Bench::open(folder.path(), &clock);
    let source = bench.live.store().named("other").expect("its ticks are found");
    assert!(samples(&bench, source) > 0);
    bench.live.store().remove_sources(["other".to_owned()]);
    bench.ticks(2 * QUARTER_S);
    assert_eq!((naming(folder.path()).0, samples(&bench, source)), (0, 0));
    bench.holds(T0, 3 * QUARTER_S + 100);
}

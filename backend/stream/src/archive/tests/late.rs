//! Late data on a hub: it can be read at once, is written separately, and is fetched again if it was not written.

use crate::store::{Chunk, Column};
use crate::testing::bench::{Bench, T0, clock};
use std::sync::Arc;
use tempfile::TempDir;

/// Ticks 1 to 600 of the first series, one per second, from two hours before [`T0`] on.
fn chunk(bench: &Bench) -> Arc<Chunk> {
    let times: Vec<i64> = (1..=600).map(|n| T0 - 7_200_000 + n * 1_000).collect();
    let values: Vec<f64> = (1..=600).map(f64::from).collect();
    let raw = shared::column::encode(&values, 100.0).into_boxed_slice();
    let columns = vec![Column { id: bench.ids[0], raw, samples: 600 }];
    Arc::new(Chunk::new(1, &times, columns).after_gap(false))
}

fn segments(folder: &TempDir) -> usize {
    let names = std::fs::read_dir(folder.path()).expect("a folder").flatten();
    names.filter(|entry| entry.file_name().to_string_lossy().ends_with(".seg")).count()
}

fn covers(bench: &Bench) -> bool {
    bench.live.store().coverage(bench.source).contains(&(1, 600))
}

#[test]
fn what_came_late_is_on_disk_by_itself_once_nothing_more_comes_and_merges_with_its_hour() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::open(folder.path(), &clock);
    bench.ticks(10);
    bench.live.fill(bench.source, vec![chunk(&bench)]);
    assert_eq!(bench.read()[0].len(), 610, "it can be read at once");
    assert!(covers(&bench));
    bench.ticks(2);
    assert_eq!(segments(&folder), 0, "more may come");
    drop(bench); // as by a kill
    let mut bench = Bench::open(folder.path(), &clock);
    assert!(!covers(&bench), "it was in no log: it is to be fetched again");
    bench.ticks(1);
    let known = segments(&folder);
    bench.live.fill(bench.source, vec![chunk(&bench)]);
    bench.live.complete_fills();
    bench.ticks(1);
    assert_eq!((segments(&folder), bench.live.store().counts().chunk_bytes), (known + 1, 0));
    drop(bench);
    let mut bench = Bench::open(folder.path(), &clock);
    assert!(covers(&bench));
    let before = bench.read();
    // The hour is over, so it is merged after a minute without late data. Apart from late blocks nothing has changed.
    bench.ticks(70);
    let names: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").flatten().map(|e| e.file_name()).collect();
    assert!(names.iter().any(|name| name.to_string_lossy().starts_with("h-")), "{names:?}");
    assert!(covers(&bench));
    assert_eq!(bench.read()[0][..before[0].len()], before[0][..]);
}

#[test]
fn what_came_late_waits_half_a_minute_at_most() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::open(folder.path(), &clock);
    bench.ticks(1);
    bench.live.fill(bench.source, vec![chunk(&bench)]);
    bench.ticks(29);
    assert_eq!(segments(&folder), 0);
    bench.ticks(2);
    assert_eq!(segments(&folder), 1);
}

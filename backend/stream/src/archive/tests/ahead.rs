//! A wall clock that is far ahead for a while.

use crate::testing::bench::{Bench, T0, clock};
use std::time::Duration;
use tempfile::TempDir;

const DAYS: i64 = 3 * 86_400_000;

/// Number of ticks until a number of seconds after the start.
fn ticks_until(bench: &Bench, seconds: i64) -> usize {
    bench.read()[0].iter().filter(|(t, _)| *t <= T0 + seconds * 1_000).count()
}

#[test]
fn a_clock_that_is_days_ahead_for_a_while_takes_no_history_along() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::open(folder.path(), &clock);
    bench.ticks(2_000);
    clock.step(DAYS);
    bench.ticks(100);
    clock.step(-DAYS);
    bench.ticks(1_000);
    // The ticks of the hundred seconds have the time that the clock had.
    assert_eq!(ticks_until(&bench, 3_100), 3_000);
    drop(bench); // as by a kill
    assert_eq!(ticks_until(&Bench::open(folder.path(), &clock), 3_100), 3_000);
}

#[test]
fn a_server_that_starts_with_a_clock_that_is_days_ahead_keeps_its_history_for_an_hour() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::open(folder.path(), &clock);
    bench.ticks(2_000);
    drop(bench); // as by a kill
    clock.step(DAYS);
    let mut bench = Bench::open(folder.path(), &clock);
    bench.ticks(1_000);
    assert_eq!(ticks_until(&bench, 2_000), 2_000);
    clock.pass(Duration::from_secs(3_600));
    bench.ticks(10);
    // The last ticks before the start were in the log alone, and are in a file with later ones.
    assert_eq!(ticks_until(&bench, 1_700), 0, "the clock is right, it seems");
}

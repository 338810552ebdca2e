//! A server without sockets whose clock is set by hand and whose disk fails when it is told to.

use super::*;
use crate::clock::Manual;
use crate::store::{Inserted, Limits, Store};
use history::faults::{Fault, Faulty};
use history::files::Disk as Real;
use history::{Folder, Options, retain};
use shared::catalog::{Catalog, cpu};
use shared::series::{SeriesDef, SeriesId};
use shared::wire::CheckState;
use std::path::Path;
use std::time::Instant;
use tempfile::TempDir;

const RETENTION: i64 = 43_200_000;
/// The beginning of an hour.
const T0: i64 = 1_700_000_000_000 / 3_600_000 * 3_600_000;

struct Bench {
    clock: Arc<Manual>,
    hub: Arc<Hub>,
    keeper: Keeper,
    faulty: Faulty,
    source: SourceId,
    ids: Vec<SeriesId>,
}

fn value(t: i64, id: SeriesId) -> f64 {
    ((t / 1_000 * 7 + i64::from(id) * 13) % 10_000) as f64 / 100.0
}

impl Bench {
    fn open(path: &Path, clock: &Arc<Manual>) -> Self {
        Self::with_limit(path, clock, usize::MAX)
    }

    /// The store may hold so many bytes of sealed blocks in memory.
    fn with_limit(path: &Path, clock: &Arc<Manual>, bytes: usize) -> Self {
        let faulty = Faulty::new(Arc::new(Real::new(path)));
        let (folder, found) = Folder::open_with(Arc::new(faulty.clone()), Options::default()).expect("a folder");
        let catalog = Arc::new(Catalog::new(cpu::ROWS.iter().copied()));
        let limits = Limits { retention: RETENTION, bytes };
        let (mut store, unwritten) = Store::of_found(catalog, &found, limits, Some("here"));
        let source = store.named("here").expect("it is added where it was not found");
        let def = |core: u32| SeriesDef { metric: 0, instance: core.to_string() };
        let ids = (0..5).map(|core| store.intern(source, def(core)).expect("a row")).collect();
        let hub = Hub::new(store, clock.clone(), 1, RETENTION);
        let limits = retain::Limits { retention: RETENTION, bytes: None };
        let disk = Disk::new(path.into(), folder, found, limits);
        let keeper = Keeper::on_disk(hub.clone(), disk, unwritten).expect("threads");
        Bench { clock: clock.clone(), hub, keeper, faulty, source, ids }
    }

    /// Ticks of so many seconds, with everything that the keeper does meanwhile.
    fn ticks(&mut self, seconds: i64) {
        for _ in 0..seconds {
            self.clock.pass(Duration::from_secs(1));
            let t = self.hub.clock.wall();
            let values: Vec<f64> = self.ids.iter().map(|id| value(t, *id)).collect();
            self.hub.append(self.source, t, false, &values).expect("it is not closed");
            self.keeper.step();
        }
    }

    fn read(&self) -> Vec<Vec<(i64, f64)>> {
        let snapshot = self.hub.store().snapshot(self.source, 0, i64::MAX).expect("a source");
        snapshot.samples(&self.ids)
    }

    /// Every second from `from` on for so many seconds is there, once, with its value.
    #[track_caller]
    fn holds(&self, from: i64, seconds: i64) {
        for (id, samples) in self.ids.iter().zip(self.read()) {
            let times = (1..=seconds).map(|s| from + s * 1_000);
            let expected: Vec<(i64, f64)> = times.map(|t| (t, value(t, *id))).collect();
            assert_eq!(samples.len(), expected.len(), "series {id}");
            assert_eq!(samples, expected, "series {id}");
        }
    }

    fn state(&self) -> (CheckState, String) {
        let (checks, _) = self.hub.store().checks(self.source);
        let check = checks.iter().find(|check| check.id == "history").expect("the history is checked");
        (check.state, format!("{}; {}", check.reason, check.remedy))
    }

    /// Looks until the history stands so; the log's threads work on their own.
    #[track_caller]
    fn until(&mut self, state: CheckState) -> String {
        let begin = Instant::now();
        loop {
            self.keeper.step();
            let (now, words) = self.state();
            if now == state {
                return words;
            }
            assert!(begin.elapsed() < Duration::from_secs(10), "{now:?}: {words}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn clock() -> Arc<Manual> {
    Arc::new(Manual::at(T0, Duration::ZERO))
}

#[test]
fn history_comes_back_from_logs_quarters_and_hours_alike() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::open(folder.path(), &clock);
    bench.ticks(1_000);
    let mut seconds = 1_000;
    for (more, segments) in [(1_500, 2), (5_000, 2)] {
        drop(bench); // as by a kill: the log is not ended by its owner
        bench = Bench::open(folder.path(), &clock);
        bench.holds(T0, seconds);
        bench.ticks(more);
        seconds += more;
        bench.holds(T0, seconds);
        let figures = bench.hub.store().counts().history.expect("figures");
        assert!(figures.segments >= segments && figures.failing == 0, "{figures:?}");
    }
    let names: Vec<String> = std::fs::read_dir(folder.path())
        .expect("a folder")
        .flatten()
        .map(|e| e.file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().any(|name| name.starts_with("h-")), "an hour was merged: {names:?}");
    assert!(names.iter().filter(|name| name.starts_with("log-")).count() <= 2, "logs of sealed quarters go: {names:?}");
    let in_memory = bench.hub.store().counts().chunk_bytes;
    assert_eq!(in_memory, 0, "what is on disk is not in memory as well");
    // A sequence means one tick for ever.
    assert_eq!(bench.hub.store().state(bench.source).expect("a state").seq(), seconds as u64);
}

#[test]
fn a_full_disk_is_told_and_costs_nothing_once_there_is_room() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::open(folder.path(), &clock);
    bench.ticks(100);
    bench.faulty.fail(0, Fault::Full);
    bench.ticks(1);
    let words = bench.until(CheckState::Failed);
    assert!(words.contains("history is not being written") && words.contains("make room"), "{words}");
    bench.ticks(2_000); // two cuts among them
    bench.holds(T0, 2_101);
    assert_eq!(bench.state().0, CheckState::Failed);
    bench.faulty.heal();
    bench.ticks(11);
    bench.until(CheckState::Ok);
    bench.ticks(20);
    drop(bench);
    let bench = Bench::open(folder.path(), &clock);
    bench.holds(T0, 2_132);
}

#[test]
fn a_disk_that_fails_for_long_takes_no_more_memory_than_the_store_may() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::with_limit(folder.path(), &clock, 1_000);
    bench.ticks(100);
    bench.faulty.fail(0, Fault::Full);
    bench.ticks(3_000);
    bench.until(CheckState::Failed);
    let counts = bench.hub.store().counts();
    assert!(counts.chunk_bytes <= 1_000 && counts.chunks_dropped > 0, "{counts:?}");
    let waiting = bench.keeper.disk.as_ref().expect("a disk").waiting();
    assert!(waiting <= 1_000, "{waiting} bytes wait for the disk");
}

#[test]
fn a_disk_that_fails_once_anywhere_loses_nothing_that_was_seen() {
    for n in (0..60).step_by(3) {
        let (folder, clock) = (TempDir::new().expect("a folder"), clock());
        let mut bench = Bench::open(folder.path(), &clock);
        bench.ticks(880);
        bench.faulty.fail(n, Fault::Io);
        bench.ticks(40);
        bench.until(CheckState::Ok);
        bench.holds(T0, 920);
        drop(bench);
        Bench::open(folder.path(), &clock).holds(T0, 920);
    }
}

#[test]
fn late_samples_are_stored_once_and_come_back() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::open(folder.path(), &clock);
    bench.ticks(100);
    let now = T0 + 100_000;
    let samples = [
        (0, T0 + 50_500, 1.5),
        (0, T0 + 50_500, 1.5),
        (1, T0 + 50_000, 9.0),
        (1, now + 700_000, 2.0),
        (1, now - RETENTION - 1, 2.0),
    ];
    let inserted = bench.hub.insert(bench.source, &samples);
    assert_eq!(inserted, Inserted { taken: 1, duplicate: 2, too_old: 1, future: 1 });
    let within = |bench: &Bench| bench.read()[0].iter().filter(|(t, _)| *t == T0 + 50_500).count();
    assert_eq!((within(&bench), bench.read()[1].len()), (1, 100));
    for more in [10, 900, 4_000] {
        drop(bench);
        bench = Bench::open(folder.path(), &clock);
        assert_eq!(within(&bench), 1, "before {more} more");
        assert!(bench.read()[0].is_sorted_by_key(|(t, _)| *t));
        assert_eq!(bench.hub.insert(bench.source, &samples[..1]).duplicate, 1);
        bench.ticks(more);
        assert_eq!(within(&bench), 1, "after {more} more");
    }
}

#[test]
fn a_clock_that_is_set_by_an_hour_and_back_loses_nothing_and_leaves_a_mark() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::open(folder.path(), &clock);
    let tick = |bench: &mut Bench, t: i64, step: bool| {
        bench.hub.append(bench.source, t, step, &[1.0]).expect("open");
    };
    for (at, step) in [(0, false), (3_600, true), (0, true)] {
        for s in 0..60 {
            tick(&mut bench, T0 + (at + s) * 1_000, step && s == 0);
        }
    }
    bench.keeper.cut();
    bench.keeper.step();
    drop(bench);
    let bench = Bench::open(folder.path(), &clock);
    let snapshot = bench.hub.store().snapshot(bench.source, 0, i64::MAX).expect("a source");
    let samples = snapshot.samples(&bench.ids[..1]).remove(0);
    assert_eq!(samples.len(), 180);
    let steps: Vec<bool> = snapshot.blocks().iter().map(Block::clock_step).collect();
    assert_eq!(steps, [false, true, true]);
}

//! History over years, on a disk with injected faults.

mod ahead;
mod classes;
mod late;
mod records;
mod removal;

use super::*;
use crate::clock::Clock;
use crate::live::NewTick;
use crate::testing::bench::{Bench, RETENTION, T0, clock};
use history::faults::Fault;
use shared::wire::CheckState;
use tempfile::TempDir;

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
        let figures = bench.live.store().counts().history.expect("figures");
        assert!(figures.segments >= segments && figures.failing == 0, "{figures:?}");
    }
    let names: Vec<String> = std::fs::read_dir(folder.path())
        .expect("a folder")
        .flatten()
        .map(|e| e.file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().any(|name| name.starts_with("h-")), "an hour was merged: {names:?}");
    assert!(names.iter().filter(|name| name.starts_with("log-")).count() <= 2, "logs of sealed quarters go: {names:?}");
    let in_memory = bench.live.store().counts().chunk_bytes;
    assert_eq!(in_memory, 0, "what is on disk is not in memory as well");
    // A sequence stands for one tick for ever.
    let covered = bench.live.store().coverage(bench.source);
    assert_eq!((covered.len(), covered.iter().map(|(first, last)| last - first + 1).sum::<u64>()), (3, seconds as u64));
}

#[test]
fn a_full_disk_is_told_and_costs_nothing_once_there_is_room() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::open(folder.path(), &clock);
    bench.ticks(100);
    bench.faulty.fail(0, Fault::Full);
    bench.ticks(1);
    let words = bench.until(CheckState::Failed);
    assert!(words.contains("history is not being written") && words.contains("free space"), "{words}");
    bench.ticks(2_000); // two cuts among them
    bench.holds(T0, 2_101);
    assert_eq!(bench.state().0, CheckState::Failed);
    let tries = |bench: &Bench| bench.faulty.operations().iter().filter(|o| o.starts_with("create log-")).count();
    let so_far = tries(&bench);
    // After 10, 20, 40, 80, 160 and then each 300 s, and at the cuts.
    assert!((10..=15).contains(&so_far), "{so_far} tries in 2,000 s");
    bench.ticks(900);
    assert!((3..=5).contains(&(tries(&bench) - so_far)), "{} tries in 900 s", tries(&bench) - so_far);
    bench.faulty.heal();
    bench.ticks(300);
    bench.until(CheckState::Ok);
    bench.ticks(20);
    drop(bench);
    let bench = Bench::open(folder.path(), &clock);
    bench.holds(T0, 3_321);
}

#[test]
fn a_segment_that_cannot_be_read_stays_and_neither_merging_nor_retention_waits_for_it() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::open(folder.path(), &clock);
    bench.ticks(1_000);
    let names = |kind: &str| -> Vec<String> {
        let all = std::fs::read_dir(folder.path()).expect("a folder").flatten();
        let mut all: Vec<_> = all.filter_map(|e| e.file_name().into_string().ok()).collect();
        all.retain(|name| name.starts_with(kind) && name.ends_with(".seg"));
        all.sort();
        all
    };
    let broken = names("q-").remove(0);
    bench.faulty.unread(&broken);
    bench.ticks(2 * 3_600);
    assert_eq!(names("h-").len(), 2, "the other quarters are hours: {:?} {:?}", names("h-"), names("q-"));
    assert!(names("q-").contains(&broken) && names("q-").len() <= 2, "{:?}", names("q-"));
    assert_eq!(bench.state().0, CheckState::Ok, "{}", bench.state().1);
    bench.faulty.heal();
    bench.ticks(3_600);
    assert!(!names("q-").contains(&broken), "it is merged once it can be read");
    bench.holds(T0, 1_000 + 3 * 3_600);
    // A segment that stays broken is removed when it has expired.
    let broken = names("h-").remove(0);
    bench.faulty.unread(&broken);
    bench.ticks(1_000);
    bench.clock.pass(Duration::from_millis(RETENTION as u64 + 3_600_000));
    bench.ticks(1_000);
    assert!(!names("").contains(&broken), "{:?}", names(""));
}

#[test]
fn a_disk_that_fails_for_long_takes_no_more_memory_than_the_store_may() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::with_limit(folder.path(), &clock, 1_000);
    bench.ticks(100);
    bench.faulty.fail(0, Fault::Full);
    bench.ticks(3_000);
    bench.until(CheckState::Failed);
    let counts = bench.live.store().counts();
    assert!(counts.chunk_bytes <= 1_000 && counts.chunks_dropped > 0, "{counts:?}");
    let waiting = bench.archive.disk.as_ref().expect("a disk").waiting();
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
fn late_samples_in_the_log_of_an_earlier_version_are_kept_once() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::open(folder.path(), &clock);
    bench.ticks(100);
    // Data as such a version wrote it, one of the samples twice.
    for samples in [[(0, T0 + 50_500, 1.5), (1, T0 + 50_500, 9.0)], [(0, T0 + 50_500, 2.5), (0, T0 + 51_500, 3.5)]] {
        let mut late = Vec::new();
        history::log::put(&mut late, &history::log::Entry::Late { source: bench.source, samples: samples.to_vec() });
        bench.live.writing().log.as_ref().expect("a log").write(late);
    }
    let late = |bench: &Bench| {
        let samples = bench.read();
        assert!(samples[0].is_sorted_by(|a, b| a.0 < b.0) && samples[1].is_sorted_by(|a, b| a.0 < b.0));
        samples[0].iter().copied().filter(|(t, _)| t % 1_000 != 0).collect::<Vec<_>>()
    };
    for more in [10, 900, 4_000] {
        drop(bench);
        bench = Bench::open(folder.path(), &clock);
        assert_eq!(late(&bench), [(T0 + 50_500, 1.5), (T0 + 51_500, 3.5)], "before {more} more");
        bench.ticks(more);
        assert_eq!(late(&bench), [(T0 + 50_500, 1.5), (T0 + 51_500, 3.5)], "after {more} more");
    }
}

#[test]
fn a_clock_that_is_set_by_an_hour_and_back_loses_nothing_and_leaves_a_mark() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::open(folder.path(), &clock);
    let tick = |bench: &mut Bench, t: i64, step: bool| {
        bench.live.append(bench.source, t, step, &[1.0]).expect("open");
    };
    for (at, step) in [(0, false), (3_600, true), (60, true)] {
        for s in 0..60 {
            tick(&mut bench, T0 + (at + s) * 1_000, step && s == 0);
        }
    }
    bench.archive.cut();
    bench.archive.step();
    drop(bench);
    let bench = Bench::open(folder.path(), &clock);
    let snapshot = bench.live.store().snapshot(bench.source, 0, i64::MAX).expect("a source");
    let samples = snapshot.samples(&bench.ids[..1]).remove(0);
    assert_eq!(samples.len(), 180);
    let steps: Vec<bool> = snapshot.blocks().iter().map(Block::clock_step).collect();
    assert_eq!(steps, [false, true, true]);
}

/// A clock that is set at random, over cuts, merges and kills: each instant keeps one value, the first.
#[test]
fn one_instant_has_one_value_in_memory_in_the_log_in_segments_and_after_a_kill() {
    for seed in 0..4u64 {
        let (folder, clock) = (TempDir::new().expect("a folder"), clock());
        let mut bench = Bench::open(folder.path(), &clock);
        let (mut known, mut again) = (std::collections::BTreeMap::new(), 0);
        let mut random = seed;
        let mut next = |n: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % n
        };
        let (mut t, mut number) = (T0, 0.0);
        for round in 0..60 {
            // Usually on, often back by seconds, now and then by quarters of an hour.
            t += [0, 0, -7_000, -30_000, -900_000, 1_800_000][next(6) as usize];
            for _ in 0..next(40) {
                (t, number) = (t + 1_000, number + 1.0);
                // The third series is there in half of the ticks.
                let third = if next(2) == 0 { number } else { f64::NAN };
                let values = [number, number, third];
                let seq = bench.live.append(bench.source, t, false, &values);
                match known.entry(t) {
                    std::collections::btree_map::Entry::Vacant(place) => {
                        assert!(seq.is_some());
                        place.insert(values);
                    }
                    std::collections::btree_map::Entry::Occupied(_) => {
                        assert_eq!(seq, None);
                        again += values.iter().filter(|v| v.is_finite()).count() as u64;
                    }
                }
            }
            match round % 12 {
                3 | 9 => bench.archive.cut(),
                6 => {
                    clock.pass(Duration::from_secs(3_600));
                    bench.archive.step();
                }
                10 => {
                    assert_eq!(bench.live.store().counts().refused_again, std::mem::take(&mut again));
                    drop(bench);
                    bench = Bench::open(folder.path(), &clock);
                }
                _ => {}
            }
            if round % 4 == 3 {
                for (series, samples) in bench.read()[..3].iter().enumerate() {
                    let first = known.iter().map(|(t, values)| (*t, values[series])).filter(|(_, v)| v.is_finite());
                    assert_eq!(*samples, first.collect::<Vec<_>>(), "seed {seed}, round {round}, series {series}");
                }
                let snapshot = bench.live.store().snapshot(bench.source, i64::MIN, i64::MAX).expect("a source");
                let counts: u32 =
                    snapshot.buckets(&bench.ids[..1], 60_000, false).remove(0).iter().map(|b| b.count).sum();
                assert_eq!(known.len() as u32, counts, "in buckets, too");
            }
        }
        assert_eq!(bench.live.store().counts().refused_again, again);
    }
}

#[test]
fn a_clock_that_was_set_back_is_told_until_it_is_where_it_was() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::open(folder.path(), &clock);
    bench.ticks(10);
    clock.step(-5_000);
    let told = |bench: &Bench| {
        let (checks, _) = bench.live.store().checks(bench.source);
        checks.iter().find(|check| check.id == "clock").map(|check| (check.state, check.reason.clone()))
    };
    for second in 0..5 {
        clock.pass(Duration::from_secs(1));
        assert_eq!(bench.live.append(bench.source, bench.live.clock.wall(), second == 0, &[7.0]), None);
        let (state, reason) = told(&bench).expect("it is told");
        assert!(state == CheckState::Partial && reason.contains("about 5 s"), "{reason}");
    }
    bench.ticks(5);
    bench.holds(T0, 15);
    assert_eq!(told(&bench), Some((CheckState::Ok, String::new())));
    bench.archive.cut();
    let snapshot = bench.live.store().snapshot(bench.source, 0, i64::MAX).expect("a source");
    let steps: Vec<_> = snapshot.blocks().iter().map(|b| (b.ticks(), b.clock_step())).collect();
    assert_eq!(steps, [(10, false), (5, true)], "the mark is where values go on");
}

#[test]
fn a_disk_that_hangs_is_told_in_bounded_time_whoever_waits_for_it() {
    // The log's writing and syncing, and the archive's own segment.
    for what in ["append log-", "sync log-", "create q-", "append q-", "sync q-"] {
        let (folder, clock) = (TempDir::new().expect("a folder"), clock());
        let mut bench = Bench::open(folder.path(), &clock);
        bench.ticks(890);
        let Bench { live, mut archive, faulty, source, .. } = bench;
        let health = archive.disk.as_ref().expect("a disk").health().clone();
        let failing = || {
            health.check_disk(&live);
            live.store().counts().history.expect("figures").failing
        };
        assert_eq!(failing(), 0);
        let before = faulty.operations().len();
        faulty.hang(what);
        assert!(live.append(source, live.clock.wall() + 1, false, &[1.0]).is_some());
        let keeping = std::thread::spawn(move || {
            archive.cut();
            archive.step();
            archive
        });
        let until = |what: &str, so: &mut dyn FnMut() -> bool| {
            let begin = std::time::Instant::now();
            while !so() {
                assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
                std::thread::sleep(Duration::from_millis(2));
            }
        };
        until(what, &mut || faulty.operations()[before..].iter().any(|operation| operation.starts_with(what)));
        assert_eq!(failing(), 0, "{what}: it has just begun");
        // A short step may be running at one check, and not at the next.
        until(what, &mut || {
            clock.pass(health::HUNG_AFTER);
            failing() == 1
        });
        let (checks, _) = live.store().checks(source);
        let check = checks.iter().find(|check| check.id == "history").expect("a check");
        assert!(check.state == CheckState::Hung && check.reason.contains("does not respond"), "{check:?}");
        // The next tick is accepted all the same.
        assert!(live.append(source, live.clock.wall() + 2, false, &[2.0]).is_some());
        faulty.heal();
        let mut archive = keeping.join().expect("it goes on");
        until(what, &mut || {
            clock.pass(Duration::from_secs(1));
            archive.step();
            failing() == 0
        });
    }
}

#[test]
fn series_that_come_and_go_keep_their_history_on_disk_over_kills_though_ids_are_given_anew() {
    const MINUTE: i64 = 60_000;
    const LIFE: usize = 5;
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::open(folder.path(), &clock);
    let def = |n: usize| shared::series::SeriesDef { metric: (n % 3) as u16, instance: format!("n{n}") };
    let value = |n: usize, tick: usize| ((n * 31 + tick * 7) % 9_973) as f64;
    // A quarter has 15 ticks, the retention 720, and three series come with each.
    let (ticks, new) = (20 * 60usize, 3);
    let mut most = 0;
    for tick in 0..ticks {
        clock.pass(Duration::from_millis(MINUTE as u64));
        let mut values = Vec::new();
        {
            let mut store = bench.live.store();
            store.renew(bench.source, MINUTE, Vec::new());
            for n in (tick + 1).saturating_sub(LIFE) * new..(tick + 1) * new {
                let id = store.intern(bench.source, def(n)).expect("room") as usize;
                values.resize(values.len().max(id + 1), f64::NAN);
                values[id] = value(n, tick);
            }
            most = most.max(store.series(bench.source, 0).len());
        }
        let t = T0 + (tick as i64 + 1) * MINUTE;
        assert!(bench.live.append(bench.source, t, false, &values).is_some());
        bench.archive.step();
        if tick % 97 == 96 || tick + 1 == ticks {
            drop(bench); // as by a kill
            bench = Bench::open(folder.path(), &clock);
            let store = bench.live.store();
            let series = store.series(bench.source, 0).to_vec();
            let snapshot = store.snapshot(bench.source, i64::MIN, i64::MAX).expect("a source");
            drop(store);
            let mut seen = 0;
            for (id, known) in (0..).zip(&series) {
                let Some(n) = known.instance.strip_prefix('n').and_then(|n| n.parse::<usize>().ok()) else { continue };
                let born = n / new;
                let expected =
                    (born..(born + LIFE).min(tick + 1)).map(|at| (T0 + (at as i64 + 1) * MINUTE, value(n, at)));
                let samples = snapshot.samples(&[id]).remove(0);
                // Expired series are not checked; all others must be there.
                if born + 700 > tick {
                    assert_eq!((samples, known), (expected.collect(), &def(n)), "series {n} after tick {tick}");
                    seen += 1;
                }
            }
            assert_eq!(seen, (tick + 1).min(700) * new, "each of them, once");
        }
    }
    // 14 h, which includes the slack of segments; not 20 h.
    assert!(most < 15 * 60 * new + 30 * new, "{most} ids");
}

#[test]
fn a_log_that_begins_at_a_cut_is_read_alone_although_it_is_told_of_each_machine_by_its_next_tick() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let mut bench = Bench::open(folder.path(), &clock);
    let others: Vec<SourceId> =
        ["busy", "idle"].map(|key| bench.live.store().add_source(key.into(), 1_000, Vec::new())).into();
    for source in &others {
        (0..3).for_each(|core| {
            let def = shared::series::SeriesDef { metric: 0, instance: core.to_string() };
            bench.live.store().intern(*source, def).expect("a row");
        });
    }
    let append = |bench: &Bench, sources: &[SourceId], values: &[f64]| {
        let t = bench.clock.wall();
        let tick = |source: &SourceId| NewTick { source: *source, seq: None, t, clock_step: false, values };
        let appended = bench.live.append_all(&sources.iter().map(tick).collect::<Vec<_>>());
        assert!(appended.iter().all(Option::is_some));
    };
    // Two cuts, so that the log before the last one is gone.
    for second in 1..=2_000 {
        bench.ticks(1);
        match second {
            0..1_795 => append(&bench, &others, &[second as f64, 7.0, 9.0]),
            // The idle source has no tick after the last cut. The busy one lacks a series from its first tick on.
            1_795..1_800 => append(&bench, &others[..1], &[second as f64, 7.0, 9.0]),
            _ => append(&bench, &others[..1], &[second as f64, 7.0]),
        }
    }
    drop(bench); // as by a kill
    let bench = Bench::open(folder.path(), &clock);
    bench.holds(T0, 2_000);
    let store = bench.live.store();
    let samples = |key: &str| {
        let source = store.named(key).expect("it is known");
        store
            .snapshot(source, 0, i64::MAX)
            .expect("a source")
            .samples(&[0, 2])
            .into_iter()
            .map(|all| all.len())
            .collect::<Vec<_>>()
    };
    assert_eq!((samples("busy"), samples("idle")), (vec![2_000, 1_799], vec![1_794, 1_794]));
    assert_eq!(store.named("idle").and_then(|source| store.state(source)).map(|state| state.seq()), Some(1_794));
}

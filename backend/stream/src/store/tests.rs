//! The store returns all appended data, in order and within its limits.

mod gaps;
mod restored;

use super::*;
use shared::catalog::{MetricDef, VOCABULARY};

fn store(limits: Limits) -> (Store, SourceId) {
    let rows = VOCABULARY.iter().copied().flatten().copied();
    let mut store = Store::new(Arc::new(Catalog::new(rows)), limits);
    let source = store.add_source("here".into(), 1_000, Vec::new());
    (store, source)
}

const DAY: Limits = Limits { retention: 86_400_000, bytes: usize::MAX };
const T0: i64 = 1_700_000_000_000;
/// Ticks after which these tests cut.
const SEAL: usize = 900;

/// Appends a tick, and seals a long head.
fn append(store: &mut Store, source: SourceId, t: i64, values: &[f64]) -> Option<u64> {
    let seq = store.append(source, t, false, values)?;
    if seq.is_multiple_of(SEAL as u64) {
        store.seal(source);
    }
    Some(seq)
}

fn series(store: &mut Store, source: SourceId, def: &MetricDef, instance: &str) -> SeriesId {
    let metric = store.catalog().position(def.tag).unwrap();
    store.intern(source, SeriesDef { metric, instance: instance.into() }).unwrap()
}

fn value(id: SeriesId, tick: i64) -> f64 {
    if tick % 37 == 3 { f64::NAN } else { f64::from((tick as i32 * 13 + id as i32) % 9_700) / 100.0 }
}

#[test]
fn every_sample_comes_back_from_chunks_and_head_alike() {
    let (mut store, source) = store(DAY);
    let a = series(&mut store, source, &shared::catalog::cpu::CPU_PERCENT, "");
    let mut b = None;
    let ticks = 2 * SEAL as i64 + 123;
    for i in 0..ticks {
        if i == 1_000 {
            b = Some(series(&mut store, source, &shared::catalog::cpu::CORE_PERCENT, "7"));
        }
        let values: Vec<f64> = (0..=b.unwrap_or(a)).map(|id| value(id, i)).collect();
        assert_eq!(append(&mut store, source, T0 + i * 1_000, &values), Some(i as u64 + 1));
    }
    let (from, to) = (T0 + 500_000, T0 + (ticks - 7) * 1_000);
    let read = store.snapshot(source, from, to).unwrap().samples(&[a, b.unwrap()]);
    for (id, first, samples) in [(a, 500, &read[0]), (b.unwrap(), 1_000, &read[1])] {
        let expected: Vec<_> =
            (first..=ticks - 7).map(|i| (T0 + i * 1_000, value(id, i))).filter(|(_, v)| v.is_finite()).collect();
        assert_eq!(*samples, expected);
    }
    assert_eq!(store.newest(source).unwrap().0, T0 + (ticks - 1) * 1_000);
}

#[test]
fn a_reader_resumes_from_any_frame_in_memory_and_is_told_when_its_place_is_gone() {
    let (mut store, source) = store(DAY);
    let id = series(&mut store, source, &shared::catalog::cpu::CPU_PERCENT, "");
    let ticks = 3 * SEAL as i64 + 5;
    for i in 0..ticks {
        append(&mut store, source, T0 + i * 1_000, &[value(id, i)]);
    }
    assert!(matches!(store.since(source, ticks as u64), Since::Frames(f) if f.is_empty()));
    let place = ticks as u64 - SEAL as u64;
    match store.since(source, place) {
        Since::Frames(frames) => {
            assert_eq!(frames.len(), SEAL);
            assert_eq!(frames[0].seq, place + 1);
        }
        Since::Lost => panic!("the last {SEAL} ticks are always in memory"),
    }
    assert!(matches!(store.since(source, 3), Since::Lost));
    assert!(matches!(store.since(source, ticks as u64 + 1), Since::Lost), "a place in the future is another run's");
}

#[test]
fn a_page_that_opens_gets_every_sample_once() {
    let (mut store, source) = store(DAY);
    let id = series(&mut store, source, &shared::catalog::cpu::CPU_PERCENT, "");
    let ticks = SEAL as i64 + 40;
    for i in 0..ticks {
        append(&mut store, source, T0 + i * 1_000, &[value(id, i)]);
    }
    let (blocks, keyframe, seq) = store.opening(source, 0).unwrap();
    let mut seen: Vec<u64> = blocks.iter().flat_map(|b| b.first_seq()..=b.last_seq()).collect();
    let mut state = TickState::default();
    state.extend([100.0]);
    state.apply(&keyframe).unwrap();
    let Since::Frames(frames) = store.since(source, seq) else { panic!("the head is in memory") };
    for frame in frames {
        state.apply(frame.bytes()).unwrap();
        seen.push(state.seq());
    }
    assert_eq!(seen, (1..=ticks as u64).collect::<Vec<_>>());
}

#[test]
fn old_chunks_go_by_age_and_by_size() {
    let (mut store, source) = store(Limits { retention: 1_000_000, bytes: usize::MAX });
    series(&mut store, source, &shared::catalog::cpu::CPU_PERCENT, "");
    for i in 0..4 * SEAL as i64 {
        append(&mut store, source, T0 + i * 1_000, &[value(0, i)]);
    }
    let all = store.snapshot(source, 0, i64::MAX).unwrap();
    let newest = T0 + (4 * SEAL as i64 - 1) * 1_000;
    assert!(all.blocks()[0].to() >= newest - 1_000_000);
    assert_eq!(store.counts().chunks_dropped, 0);

    let (mut store, source) = super::tests::store(Limits { retention: i64::MAX / 2, bytes: 1_500 });
    series(&mut store, source, &shared::catalog::cpu::CPU_PERCENT, "");
    for i in 0..9 * SEAL as i64 {
        append(&mut store, source, T0 + i * 1_000, &[value(0, i)]);
    }
    assert!(store.counts().chunk_bytes <= 1_500);
    assert!(store.counts().chunks_dropped > 0);
}

#[test]
fn a_clock_that_steps_back_loses_nothing() {
    let (mut store, source) = store(DAY);
    let id = series(&mut store, source, &shared::catalog::cpu::CPU_PERCENT, "");
    for i in 0..10 {
        store.append(source, T0 + i * 1_000, false, &[1.0]);
    }
    store.append(source, T0 - 3_600_000, true, &[2.0]);
    store.append(source, T0 - 3_599_000, false, &[3.0]);
    let samples = store.snapshot(source, 0, i64::MAX).unwrap().samples(&[id]).remove(0);
    assert_eq!(store.span(source, id), Some((T0 - 3_600_000, T0 + 9_000)), "a query finds them all");
    assert_eq!(samples.len(), 12);
    assert_eq!(samples[..2], [(T0 - 3_600_000, 2.0), (T0 - 3_599_000, 3.0)], "in order of time");
    // Sealed, they are two chunks, and the second has the mark of the set clock.
    let before = samples;
    store.seal(source);
    let snapshot = store.snapshot(source, 0, i64::MAX).unwrap();
    assert_eq!(snapshot.samples(&[id]).remove(0), before);
    let steps: Vec<_> = snapshot.blocks().iter().map(|b| (b.ticks(), b.clock_step())).collect();
    assert_eq!(steps, [(10, false), (2, true)]);
}

#[test]
fn a_clock_that_was_a_year_ahead_does_not_keep_history_for_a_year() {
    let (mut store, source) = store(Limits { retention: 1_000_000, bytes: usize::MAX });
    series(&mut store, source, &shared::catalog::cpu::CPU_PERCENT, "");
    for i in 0..5 * SEAL as i64 {
        let ahead = if i < SEAL as i64 { 31_536_000_000 } else { 0 };
        append(&mut store, source, T0 + ahead + i * 1_000, &[value(0, i)]);
    }
    let kept: usize = store.snapshot(source, 0, i64::MAX).unwrap().blocks().iter().map(Block::ticks).sum();
    assert!(kept <= 1_000 + SEAL, "{kept} ticks");
}

#[test]
fn a_check_of_the_server_stays_beside_those_of_collectors() {
    let mut store = Store::new(
        Arc::new(Catalog::new(VOCABULARY.iter().copied().flatten().copied())),
        Limits { retention: 60_000, bytes: 1 << 20 },
    );
    let source = store.add_source("a".into(), 1_000, Vec::new());
    let check = |id: &str, reason: &str| Check {
        id: id.into(),
        state: shared::wire::CheckState::Ok,
        tried: Vec::new(),
        found: String::new(),
        reason: reason.into(),
        remedy: String::new(),
    };
    store.set_check(&check("own", "1"));
    store.set_checks(source, vec![check("cpu", ""), check("disk", "")]);
    let (_, version) = store.checks(source);
    store.set_check(&check("own", "1"));
    assert_eq!(store.checks(source).1, version, "nothing is new");
    store.set_check(&check("own", "2"));
    store.set_checks(source, vec![check("cpu", "x")]);
    let (checks, later) = store.checks(source);
    assert_eq!(*checks, [check("cpu", "x"), check("own", "2")]);
    assert!(later > version);
}

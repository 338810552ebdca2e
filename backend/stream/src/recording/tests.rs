//! A store is recorded, opened and replayed, and compared sample for sample.

use super::*;
use crate::store::Store;
use crate::testing::machines::{self, START, samples};
use shared::catalog::{Catalog, Kind, VOCABULARY};
use shared::recording::Recording;

fn catalog() -> Catalog {
    Catalog::new(VOCABULARY.iter().copied().flatten().copied())
}

fn filled() -> Store {
    machines::two(catalog())
}

fn record(store: &Store, from: i64, to: i64) -> Vec<u8> {
    let mut recorder = Recorder::new(store, &store.sources(), from, to, false).expect("samples");
    let mut bytes = Vec::new();
    while let Some(piece) = recorder.piece().expect("sound") {
        bytes.extend(piece);
    }
    assert!(matches!(recorder.piece(), Ok(None)));
    bytes
}

fn replayed(bytes: Vec<u8>) -> Store {
    super::store(Recording::open(bytes).expect("a recording"), &catalog())
}

#[test]
fn a_recording_of_all_holds_every_sample_of_every_machine() {
    let store = filled();
    let again = replayed(record(&store, i64::MIN, i64::MAX));
    assert_eq!(samples(&again, 0, i64::MAX), samples(&store, 0, i64::MAX));
    let facts = |store: &Store| {
        store.sources().into_iter().map(|s| (s.name.clone(), s.interval, s.facts.clone())).collect::<Vec<_>>()
    };
    assert_eq!(facts(&again), facts(&store));
}

#[test]
fn a_recording_of_a_span_holds_that_span_to_the_millisecond() {
    let store = filled();
    let (from, to) = (START + 1_234_500, START + 4_000_000);
    let again = replayed(record(&store, from, to));
    assert_eq!(samples(&again, 0, i64::MAX), samples(&store, from, to));
    assert_eq!(Recorder::new(&store, &store.sources(), 0, START - 1, false).err(), Some(Nothing));
}

#[test]
fn a_recording_of_a_recording_is_the_same() {
    let store = filled();
    let first = record(&store, i64::MIN, i64::MAX);
    let second = record(&replayed(first.clone()), i64::MIN, i64::MAX);
    assert_eq!(samples(&replayed(second), 0, i64::MAX), samples(&replayed(first), 0, i64::MAX));
}

#[test]
fn spans_and_kinds_survive_so_that_the_api_answers_as_before() {
    let store = filled();
    let again = replayed(record(&store, i64::MIN, i64::MAX));
    for source in store.sources() {
        for (id, def) in store.series(source.id, 0).iter().enumerate() {
            assert_eq!(again.span(source.id, id as u32), store.span(source.id, id as u32));
            let theirs = &again.series(source.id, 0)[id];
            assert_eq!(again.catalog().metric(theirs), store.catalog().metric(def));
        }
    }
    let counters = |store: &Store| store.catalog().metrics.iter().filter(|m| m.kind == Kind::Counter).count();
    assert_eq!(counters(&again), counters(&store), "rows that have no series here are known all the same");
}

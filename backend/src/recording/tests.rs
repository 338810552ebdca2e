//! A store is recorded, opened and replayed, and compared sample for sample.

use super::*;
use crate::store::{Limits, Store};
use shared::catalog::{Catalog, Kind};
use shared::recording::Recording;
use shared::series::SeriesDef;
use std::sync::Arc;

/// Samples by machine and tag.
type Found = Vec<(String, String, Vec<(i64, f64)>)>;

const START: i64 = 1_714_566_896_000;

fn catalog() -> Catalog {
    collectors::catalog()
}

fn def(catalog: &Catalog, tag: &str) -> SeriesDef {
    let found = catalog.find(tag).expect("known");
    SeriesDef { metric: found.metric, instance: found.instance }
}

/// Two machines over two hours and more, with a hole, a series that comes late, and the clock set back once.
fn filled() -> Store {
    let mut store = Store::new(Arc::new(catalog()), Limits { retention: i64::MAX, bytes: usize::MAX });
    for (machine, tags) in
        [("a", ["gpu.0.temp", "cpu", "disk./mnt/x.usageGB"]), ("b", ["cpu", "memory_percent", "network.recv"])]
    {
        let source = store.add_source(machine.into(), 1000, vec![("os".into(), "Linux".into())]);
        let mut t = START;
        for second in 0..8000i64 {
            if second == 300 {
                for tag in tags {
                    store.intern(source, def(&catalog(), tag));
                }
            } else if second == 0 {
                store.intern(source, def(&catalog(), tags[0]));
            }
            let step = second == 5000;
            t += if step { -60_000 } else { 1000 };
            let known = store.series(source, 0).len();
            let values: Vec<f64> =
                (0..known)
                    .map(|i| {
                        if second % 900 < 10 && i == 1 { f64::NAN } else { (second * 7 % 1000) as f64 + i as f64 / 4.0 }
                    })
                    .collect();
            store.append(source, t, step, &values);
            if second % 900 == 899 {
                store.seal(source);
            }
        }
    }
    store
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

/// All samples by machine and tag; of two of one instant the first.
fn all(store: &Store, from: i64, to: i64) -> Found {
    let mut all = Vec::new();
    for source in store.sources() {
        for (id, def) in store.series(source.id, 0).iter().enumerate() {
            let mut samples = store.snapshot(source.id, from, to).expect("a source").samples(&[id as u32]).remove(0);
            samples.dedup_by_key(|(t, _)| *t);
            all.push((source.name.clone(), store.catalog().tag(def), samples));
        }
    }
    all
}

fn replayed(bytes: Vec<u8>) -> Store {
    super::store(Recording::open(bytes).expect("a recording"), &catalog())
}

#[test]
fn a_recording_of_all_holds_every_sample_of_every_machine() {
    let store = filled();
    let again = replayed(record(&store, i64::MIN, i64::MAX));
    assert_eq!(all(&again, 0, i64::MAX), all(&store, 0, i64::MAX));
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
    assert_eq!(all(&again, 0, i64::MAX), all(&store, from, to));
    assert_eq!(Recorder::new(&store, &store.sources(), 0, START - 1, false).err(), Some(Nothing));
}

#[test]
fn a_recording_of_a_recording_is_the_same() {
    let store = filled();
    let first = record(&store, i64::MIN, i64::MAX);
    let second = record(&replayed(first.clone()), i64::MIN, i64::MAX);
    assert_eq!(all(&replayed(second), 0, i64::MAX), all(&replayed(first), 0, i64::MAX));
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

#[test]
fn what_others_recorded_opens_like_a_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("export.csv");
    std::fs::write(&path, "time,source,tag,value\n1714566896,h,gpu.0.temp,63\n1714566911,h,gpu.0.temp,64\n")
        .expect("written");
    let recording = imports::open(&path, crate::file::open, catalog()).expect("a table");
    let told = recording.told().expect("not empty");
    assert_eq!((told.from, told.to, told.title.as_str()), (START, START + 15_000, "export.csv"));
    let bytes = recording.write(Vec::new()).expect("memory");
    let expected = [("h".to_string(), "gpu.0.temp".to_string(), vec![(START, 63.0), (START + 15_000, 64.0)])];
    assert_eq!(all(&replayed(bytes.clone()), 0, i64::MAX), expected);
    std::fs::write(&path, &bytes).expect("written");
    assert_eq!(imports::open(&path, crate::file::open, catalog()).expect("a recording").told(), Some(told));
    std::fs::write(&path, &bytes[..20]).expect("written");
    assert!(
        imports::open(&path, crate::file::open, catalog()).expect_err("cut").to_string().contains("what can be opened")
    );
}

#[test]
fn lines_for_w_and_b_come_back_as_the_same_samples() {
    use crate::export::{Ask, Format, Pieces, select};
    let store = filled();
    let (from, to) = (START + 1_000, START + 4_500_000);
    let lines = |sources: Vec<String>| -> String {
        let ask = Ask { tags: vec!["*".into()], sources, from, to, ..Ask::default() };
        let mut selection = select(&store, ask).expect("known");
        let form = Format::WandbJsonl.form(&mut selection).expect("samples");
        Pieces::new(selection, form).collect()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let imported = |text: String| {
        let path = folder.path().join("wandb-events.jsonl");
        std::fs::write(&path, text).expect("written");
        let recording = imports::open(&path, crate::file::open, catalog()).expect("lines");
        assert_eq!(recording.notes, Vec::<String>::new());
        super::store(recording, &catalog())
    };
    let sorted = |mut all: Found| {
        all.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        all
    };
    // Two machines are told apart by labels, one stands for itself.
    let expected = sorted(all(&store, from, to));
    assert_eq!(sorted(all(&imported(lines(Vec::new())), 0, i64::MAX)), expected);
    let alone = imported(lines(vec!["b".into()]));
    let only_b: Vec<_> =
        expected.into_iter().filter(|(machine, ..)| machine == "b").map(|(_, tag, s)| (tag, s)).collect();
    let found: Vec<_> = sorted(all(&alone, 0, i64::MAX)).into_iter().map(|(_, tag, samples)| (tag, samples)).collect();
    assert_eq!(found, only_b);
}

//! Files of other programs and our own exports: imported, and replayed as recordings.

use super::{Ask, Format, Pieces, select};
use shared::recording::Recording;
use stream::recording;
use stream::store::Store;
use stream::testing::machines::{self, START, Samples, samples};

fn replayed(bytes: Vec<u8>) -> Store {
    recording::store(Recording::open(bytes).expect("a recording"), &collectors::catalog())
}

#[test]
fn what_others_recorded_opens_like_a_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("export.csv");
    std::fs::write(&path, "time,source,tag,value\n1714566896,h,gpu.0.temp,63\n1714566911,h,gpu.0.temp,64\n")
        .expect("written");
    let opened = imports::open(&path, system::file::open, collectors::catalog()).expect("a table");
    let told = opened.describe().expect("not empty");
    assert_eq!((told.from, told.to, told.title.as_str()), (START, START + 15_000, "export.csv"));
    let bytes = opened.write(Vec::new()).expect("memory");
    let expected = [("h".to_string(), "gpu.0.temp".to_string(), vec![(START, 63.0), (START + 15_000, 64.0)])];
    assert_eq!(samples(&replayed(bytes.clone()), 0, i64::MAX), expected);
    std::fs::write(&path, &bytes).expect("written");
    assert_eq!(
        imports::open(&path, system::file::open, collectors::catalog()).expect("a recording").describe(),
        Some(told)
    );
    std::fs::write(&path, &bytes[..20]).expect("written");
    assert!(
        imports::open(&path, system::file::open, collectors::catalog())
            .expect_err("cut")
            .to_string()
            .contains("what can be opened")
    );
}

#[test]
fn lines_for_w_and_b_come_back_as_the_same_samples() {
    let store = machines::two(collectors::catalog());
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
        let opened = imports::open(&path, system::file::open, collectors::catalog()).expect("lines");
        assert_eq!(opened.notes, Vec::<String>::new());
        recording::store(opened, &collectors::catalog())
    };
    let sorted = |mut all: Samples| {
        all.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        all
    };
    // Labels distinguish two machines; a single machine needs none.
    let expected = sorted(samples(&store, from, to));
    assert_eq!(sorted(samples(&imported(lines(Vec::new())), 0, i64::MAX)), expected);
    let alone = imported(lines(vec!["b".into()]));
    let only_b: Vec<_> =
        expected.into_iter().filter(|(machine, ..)| machine == "b").map(|(_, tag, s)| (tag, s)).collect();
    let found: Vec<_> =
        sorted(samples(&alone, 0, i64::MAX)).into_iter().map(|(_, tag, samples)| (tag, samples)).collect();
    assert_eq!(found, only_b);
}

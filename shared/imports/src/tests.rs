//! Tests with runs of W&B, tables and lines, as their programs write them, and also cut and damaged.

use super::records::{Header, Item, Record, Run, Stats, Time, Version};
use super::*;
use proptest::prelude::*;
use prost::Message;
use shared::catalog::{Draw, VOCABULARY};

fn catalog() -> Catalog {
    Catalog::new(VOCABULARY.iter().copied().flatten().copied())
}

fn stats(ms: i64, items: &[(&str, &str)]) -> Vec<u8> {
    let items = items.iter().map(|(key, value)| Item { key: key.to_string(), value: value.to_string() }).collect();
    let timestamp = Some(Time { seconds: ms / 1000, nanos: (ms % 1000) as i32 * 1_000_000 });
    Record { stats: Some(Stats { timestamp, items }), ..Record::default() }.encode_to_vec()
}

/// The records of a run: version, host, then readings every 15 s.
fn run(version: &str, readings: &[&[(&str, &str)]]) -> Vec<Vec<u8>> {
    let version = Some(Version { producer: version.into() });
    let run = Run { id: "3c1".into(), project: "mnist".into(), name: "brisk-sun-3".into(), host: "node-7".into() };
    let head = [
        Record { header: Some(Header { version }), ..Record::default() }.encode_to_vec(),
        Record { run: Some(run), ..Record::default() }.encode_to_vec(),
    ];
    let readings = readings.iter().enumerate().map(|(i, items)| stats(START + i as i64 * 15_000, items));
    head.into_iter().chain(readings).collect()
}

/// Name of the machine, tag, and samples.
type ReadSeries = Vec<(String, String, Vec<(i64, f64)>)>;

const START: i64 = 1_714_566_896_789;

/// All samples by machine and canonical tag.
fn all(recorded: &Recorded) -> ReadSeries {
    let mut all = Vec::new();
    for source in &recorded.sources {
        for (def, samples) in &source.series {
            all.push((source.name.clone(), recorded.catalog.tag(def), samples.clone()));
        }
    }
    all
}

fn read_all(bytes: &[u8]) -> Recorded {
    imported(bytes, "file", Raw::default(), catalog()).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_run_file_gives_its_readings_its_host_and_its_facts() {
    let file = log::tests::write(&run(
        "0.31.0",
        &[
            &[("gpu.0.temp", "63"), ("cpu", "12.5"), ("memory", "40"), ("what.is.this", "1")],
            &[("gpu.0.temp", "64"), ("cpu", "NaN"), ("network", r#"{"sent": 10, "recv": 20}"#), ("gpu.0.gpu", "null")],
            &[("gpu.0.temp", "65.5")],
        ],
    ));
    let recorded = read_all(&file);
    let at = |i: i64| START + i * 15_000;
    let expected = [
        ("gpu.0.temp", vec![(at(0), 63.0), (at(1), 64.0), (at(2), 65.5)]),
        ("cpu", vec![(at(0), 12.5)]),
        ("memory_percent", vec![(at(0), 40.0)]),
        ("network.recv", vec![(at(1), 20.0)]),
        ("network.sent", vec![(at(1), 10.0)]),
    ];
    let mut found = all(&recorded);
    for (tag, samples) in expected {
        let place = found.iter().position(|(source, t, _)| source == "node-7" && t == tag).expect(tag);
        assert_eq!(found.remove(place).2, samples, "{tag}");
    }
    assert_eq!(found, []);
    assert_eq!(recorded.sources[0].interval, 15_000);
    assert!(recorded.about.contains(&("run".into(), "brisk-sun-3".into())));
    assert_eq!(recorded.notes, ["1 tag is not known and is left out: what.is.this"]);
}

#[test]
fn every_spelling_of_every_row_is_read_with_and_without_prefix_and_label() {
    let catalog = catalog();
    for metric in &catalog.metrics {
        let spellings = std::iter::once(metric.tag.clone()).chain(metric.aliases.iter().cloned());
        for spelling in spellings {
            let spelling = spelling.split(" => ").next().unwrap_or("").to_string();
            let filled = match (spelling.find('{'), spelling.find('}')) {
                (Some(open), Some(close)) => {
                    let instance = match &spelling[open + 1..close] {
                        "i" => "3".to_string(),
                        "labels" => String::new(),
                        name if name.starts_with("i.") => name.replacen('i', "3", 1).replace(".j", ".1"),
                        _ => continue, // The tests of the catalog's table fill these with every difficult text.
                    };
                    format!("{}{instance}{}", &spelling[..open], &spelling[close + 1..])
                }
                _ => spelling,
            };
            let wanted = catalog.find(&filled).unwrap_or_else(|e| panic!("{filled}: {e}"));
            for (text, source) in [
                (filled.clone(), "node-7"),
                (format!("system.{filled}"), "node-7"),
                (format!("{filled}/l:rank_1"), "rank_1"),
                (format!("system.{filled}/l:node-1/rank0"), "node-1/rank0"),
            ] {
                let recorded = read_all(&log::tests::write(&run("0.31.0", &[&[(text.as_str(), "1")]])));
                let [only] = &recorded.sources[..] else { panic!("{text}: one machine") };
                assert_eq!(only.name, source, "{text}");
                assert_eq!(only.series.len(), 1, "{text}");
                let def = &only.series[0].0;
                assert_eq!((def.metric, &def.instance), (wanted.metric, &wanted.instance), "{text}");
            }
        }
    }
}

#[test]
fn labels_are_machines_of_their_own() {
    let file = log::tests::write(&run("0.31.0", &[&[("cpu/l:a", "1"), ("cpu/l:b", "2"), ("cpu", "3")]]));
    let found: Vec<(String, f64)> = all(&read_all(&file)).into_iter().map(|(name, _, s)| (name, s[0].1)).collect();
    assert_eq!(found, [("node-7".to_string(), 3.0), ("a".into(), 1.0), ("b".into(), 2.0)]);
}

#[test]
fn units_that_a_version_or_an_exporter_had_otherwise_are_ours() {
    let value = |version: &str, items: &[(&str, &str)], tag: &str| {
        let recorded = read_all(&log::tests::write(&run(version, &[items])));
        let found = all(&recorded).into_iter().find(|(_, t, _)| t == tag);
        found.map(|(.., samples)| samples[0].1).expect(tag)
    };
    let pcie = [("gpu.0.pcieTxBytes", "3.5")];
    assert_eq!(value("0.28.2", &pcie, "gpu.0.pcieTxBytes"), 3.5 * 1_048_576.0);
    assert_eq!(value("0.31.0", &pcie, "gpu.0.pcieTxBytes"), 3.5);
    let dcgm =
        [("gpu.0.totalEnergyConsumption/l:n", "1234567"), ("gpu.0.smActive/l:n", "0.5"), ("gpu.0.memoryUsed/l:n", "2")];
    assert_eq!(value("0.28.2", &dcgm, "gpu.0.energyJoules"), 1234.567);
    assert_eq!(value("0.28.2", &dcgm, "gpu.0.smActive"), 50.0);
    assert_eq!(value("0.28.2", &dcgm, "gpu.0.memoryUsed"), 2_097_152.0);
}

#[test]
fn two_spellings_of_one_series_are_one_series() {
    let file =
        log::tests::write(&run("0.20.1", &[&[("memory", "1"), ("memory_percent", "2")], &[("memory_percent", "3")]]));
    let found = all(&read_all(&file));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].2, [(START, 1.0), (START + 15_000, 3.0)]);
}

const LINES: &str = concat!(
    r#"{"system.gpu.0.gpu": 50, "system.cpu": NaN, "system.note": "a NaN \" Infinity", "_wandb": true, "_timestamp": 1714566896.789, "_runtime": 1}"#,
    "\n",
    r#"{"system.gpu.0.gpu": 60, "system.cpu/l:r": -Infinity, "system.network": {"sent": 5}, "_wandb": true, "_timestamp": 1714566911.789, "_runtime": 16}"#,
    "\n",
    r#"{"_wandb": true, "_timestamp": 1714566912, "_runtime": 16}"#,
    "\n",
);

#[test]
fn event_lines_are_read_with_what_is_no_json_in_them() {
    let recorded = read_all(LINES.as_bytes());
    assert_eq!(
        all(&recorded),
        [
            ("file".to_string(), "gpu.0.gpu".to_string(), vec![(START, 50.0), (START + 15_000, 60.0)]),
            ("file".into(), "network.sent".into(), vec![(START + 15_000, 5.0)]),
        ]
    );
    assert_eq!(recorded.notes, Vec::<String>::new());
}

#[test]
fn a_chart_of_w_and_b_is_read_by_run() {
    let csv = "\"Relative Time (Process)\",\"a - b - system/gpu.0.temp\",\"a - b - system/gpu.0.temp__MIN\",\"a - b - system/gpu.0.temp__MAX\",\"c - system.cpu\",\"c - _step\"\n\
               15.5,63,60,66,,0\n30.5,,,,7,1\n";
    let recorded = read_all(csv.as_bytes());
    assert_eq!(
        all(&recorded),
        [
            ("a - b".to_string(), "gpu.0.temp".to_string(), vec![(15_500, 63.0)]),
            ("c".into(), "cpu".into(), vec![(30_500, 7.0)]),
        ]
    );
    assert!(recorded.notes[0].contains("no dates"), "{:?}", recorded.notes);
    let by_wall = read_all(b"Wall Time,a - system/cpu\r\n1714566896.789,5\r\n");
    assert_eq!(all(&by_wall)[0].2, [(START, 5.0)]);
    let of_api = read_all(b",_wandb,_runtime,_timestamp,system.cpu\n0,True,1,1714566896.789,5\n");
    assert_eq!(all(&of_api), [("file".to_string(), "cpu".to_string(), vec![(START, 5.0)])]);
    let by_step = imported(&b"Step,a - system/cpu\n1,5\n"[..], "file", Raw::default(), catalog()).unwrap_err();
    assert!(by_step.to_string().contains("Wall Time"), "{by_step}");
}

#[test]
fn our_own_exports_come_back() {
    let csv = "time,source,tag,value\n1714566896.789,\"node, 7\",\"disk./a,b.usageGB\",2.5\n1714566897,'=x,gpu.0.temp,63\nbroken\n";
    let recorded = read_all(csv.as_bytes());
    assert_eq!(
        all(&recorded),
        [
            ("=x".to_string(), "gpu.0.temp".to_string(), vec![(1_714_566_897_000, 63.0)]),
            ("node, 7".into(), "disk./a,b.usageGB".into(), vec![(START, 2.5)]),
        ]
    );
    assert!(recorded.notes[0].starts_with("1 place is damaged"), "{:?}", recorded.notes);
    let json = r#"{"t":1714566896.789,"source":"h","tag":"gpu.0.temp","value":63}"#;
    assert_eq!(all(&read_all(json.as_bytes())), [("h".to_string(), "gpu.0.temp".to_string(), vec![(START, 63.0)])]);
}

#[test]
fn what_is_no_recording_is_told_what_would_be() {
    for bytes in
        [&b""[..], b"\n\n", b"\x89PNG\r\n\x1a\n\0\0", b"hello, world\n1,2\n", b"{}\n", b"[1]\n", b":W&B\xe1\xbe\0"]
    {
        let error = imported(bytes, "file", Raw::default(), catalog()).expect_err("no recording").to_string();
        assert!(error.contains("what can be opened") || error.contains("no reading"), "{error}");
    }
}

#[test]
fn the_folder_of_a_run_is_enough() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = folder.path().join("files");
    std::fs::create_dir(&files).expect("a folder");
    let write = |path: PathBuf, bytes: &[u8]| std::fs::write(path, bytes).expect("written");
    assert!(
        open(folder.path(), |path| File::open(path), catalog()).expect_err("empty").to_string().contains("wandb/run-")
    );
    write(files.join("wandb-events.jsonl"), LINES.as_bytes());
    write(files.join("wandb-metadata.json"), br#"{"host": "node-9", "gpu": "H100", "gpu_count": 8}"#);
    let recorded = open(folder.path(), |path| File::open(path), catalog()).expect("lines");
    assert_eq!(recorded.machines[0].info.name, "node-9");
    assert!(recorded.about.contains(&("gpus".into(), "8".into())), "{:?}", recorded.about);
    write(folder.path().join("run-3c1.wandb"), &log::tests::write(&run("0.31.0", &[&[("cpu", "1")]])));
    let recorded = open(folder.path(), |path| File::open(path), catalog()).expect("run");
    assert_eq!(recorded.machines[0].series.len(), 1);
    assert_eq!(recorded.about[0], (TITLE.to_string(), "run-3c1.wandb".to_string()));
    assert_eq!(recorded.machines[0].blocks[0].ticks, 1);
}

#[test]
fn memory_in_use_is_drawn_where_w_and_b_told_nothing_better() {
    let drawn = |items: &[(&str, &str)]| -> Vec<(String, Draw)> {
        let recorded = read_all(&log::tests::write(&run("0.15.12", &[items])));
        let row = |def: &SeriesDef| &recorded.catalog.metrics[usize::from(def.metric)];
        let mut all: Vec<_> =
            recorded.sources[0].series.iter().map(|(def, _)| (recorded.catalog.tag(def), row(def).draw)).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    };
    let line = |tag: &str| (tag.to_string(), Draw::Line);
    let hidden = |tag: &str| (tag.to_string(), Draw::Hidden);
    for spelling in ["memory", "memory_percent", "system.memory", "system.memory_percent"] {
        assert_eq!(drawn(&[(spelling, "40")]), [line("memory_percent")]);
    }
    // The utilization of a GPU's memory is another metric. The copies for a process stay hidden beside the GPU itself.
    let gpu = [("gpu.0.memory", "7"), ("gpu.process.0.memory", "7"), ("memory", "40")];
    assert_eq!(drawn(&gpu), [line("gpu.0.memory"), hidden("gpu.process.0.memory"), line("memory_percent")]);
    let both = [("memory_percent", "40"), ("memory.working_set_percent", "30")];
    assert_eq!(drawn(&both), [line("memory.working_set_percent"), hidden("memory_percent")]);
    // The row is drawn in a recording made of the file too.
    let file = log::tests::write(&run("0.15.12", &[&[("memory", "40"), (r"disk.\.usageGB", "5")]]));
    let recording = from_bytes(&file, "file", catalog(), &mut |_| {}).expect("a run");
    let again =
        from_bytes(&recording.write(Vec::new()).expect("memory"), "file", catalog(), &mut |_| {}).expect("a recording");
    let tags =
        again.machines[0].series.iter().map(|def| (again.catalog.tag(def), again.catalog.metric(def).map(|m| m.draw)));
    let mut tags: Vec<_> = tags.collect();
    tags.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(tags, [("disk./.usageGB".to_string(), Some(Draw::Line)), ("memory_percent".into(), Some(Draw::Line))]);
}

#[test]
fn a_line_of_200_000_keys_is_read_once_and_no_more_series_than_a_source_may_have_are_kept() {
    let keys: Vec<String> = (0..200_000).map(|i| format!(r#""gpu.{i}.temp":{i}"#)).collect();
    let line = format!(r#"{{"_timestamp":1714566896.789,{}}}"#, keys.join(","));
    let mut raw = Raw::default();
    let steps = steps::count_steps(|| read(line.as_bytes(), &mut raw).expect("lines"));
    assert!(steps <= line.len() as u64, "{steps} letters of names were looked at in {}", line.len());
    assert_eq!((raw.series.len(), raw.left_out), (MAX_SERIES, 100_000));
    // Another test counts the work of understanding tags. Here the known ones are kept, and the others are named.
    raw.series.truncate(1_000);
    let recorded = tags::assemble(raw, "file", catalog()).expect("known");
    assert_eq!(recorded.sources[0].series.len(), 1_000);
    assert_eq!(
        recorded.notes,
        ["100000 samples are left out: of more than 100000 series, or of tags that are too long"]
    );
}

#[test]
fn names_are_not_looked_at_for_every_cell_nor_put_together_without_end() {
    let long = |len: usize| "x".repeat(len);
    // One table has a long name and one that is too long over many rows; the other text has names nested in names.
    let table = |rows: usize| format!("time,{},{}\n{}", long(4_000), long(5_000), "1714566896,1,1\n".repeat(rows));
    let nested = |leaves: usize| {
        let leaves: Vec<String> = (0..leaves).map(|i| format!(r#""{i}":1"#)).collect();
        let (inner, long) = (leaves.join(","), long(10_000));
        format!(r#"{{"_timestamp":1,"{long}":{{{inner}}},"a":{{"b":{{"c":{{{inner}}}}}}}}}"#)
    };
    for (n, make) in [(1_000, &table as &dyn Fn(usize) -> String), (1_000, &nested)] {
        let work = |n: usize| {
            let (text, mut raw) = (make(n), Raw::default());
            let steps = steps::count_steps(|| read(text.as_bytes(), &mut raw).expect("text"));
            assert!(raw.samples > 0);
            (steps, text.len() as u64)
        };
        let ((once, len), (four, _)) = (work(n), work(4 * n));
        assert!(once <= 2 * len && four <= 5 * once, "{once} of {len}, then {four}");
    }
}

#[test]
fn what_a_file_names_is_fit_for_a_terminal() {
    let names = ["\u{1b}]52;c;eA==\u{7}", "\u{9b}2J", &"y".repeat(3_000)];
    let keys: Vec<String> = names.iter().map(|name| format!("{}:1", Value::from(*name))).collect();
    let known = format!(r#"{{"_timestamp":1,"gpu.0.temp":1,{}}}"#, keys.join(","));
    let unknown = format!(r#"{{"_timestamp":1,{}}}"#, keys.join(","));
    let error = from_bytes(unknown.as_bytes(), "file", catalog(), &mut |_| {}).expect_err("no tag").to_string();
    let note = from_bytes(known.as_bytes(), "file", catalog(), &mut |_| {}).expect("a tag").notes.join("\n");
    // A recording brings notes of its own.
    let mut recording = from_bytes(known.as_bytes(), "file", catalog(), &mut |_| {}).expect("a tag");
    recording.notes = vec![names.join(" ")];
    let opened =
        from_bytes(&recording.write(Vec::new()).expect("memory"), "file", catalog(), &mut |_| {}).expect("a recording");
    for text in [&error, &note, &opened.notes.join("\n")] {
        assert!(!text.chars().any(|c| c.is_control() && c != '\n') && text.contains("\\u{1b}"), "{text:?}");
        assert!(text.len() < 1_500, "{} letters", text.len());
    }
}

/// True when every sample of the damaged file is in the whole file too.
fn none_is_invented(whole: &Recorded, damaged: &Recorded) -> bool {
    let whole = all(whole);
    all(damaged).iter().all(|(_, tag, samples)| {
        whole.iter().any(|(_, t, known)| t == tag && samples.iter().all(|sample| known.contains(sample)))
    })
}

#[test]
fn a_run_file_cut_or_flipped_anywhere_gives_what_is_sound_and_invents_nothing() {
    let readings: Vec<[(&str, &str); 3]> =
        (0..8).map(|_| [("gpu.0.temp", "63.25"), ("cpu", "17"), ("disk./mnt/x.usageGB", "5")]).collect();
    let readings: Vec<&[(&str, &str)]> = readings.iter().map(|r| &r[..]).collect();
    let file = log::tests::write(&run("0.31.0", &readings));
    let whole = read_all(&file);
    for at in 0..file.len() {
        let mut bad = file.clone();
        bad[at] ^= 0x11;
        for bytes in [&file[..at], &bad] {
            let Ok(recorded) = imported(bytes, "file", Raw::default(), catalog()) else { continue };
            assert!(none_is_invented(&whole, &recorded), "byte {at}");
        }
        // One byte costs one record, so 7 readings of 8 are there, with a note.
        if at > 7 {
            let recorded = read_all(&bad);
            assert!(all(&recorded).iter().all(|(.., samples)| samples.len() >= 7), "byte {at}");
            assert!(!recorded.notes.is_empty(), "byte {at}");
        }
    }
}

#[test]
fn lines_cut_anywhere_give_what_is_whole() {
    let whole = read_all(LINES.as_bytes());
    for at in 0..LINES.len() {
        if let Ok(recorded) = imported(&LINES.as_bytes()[..at], "file", Raw::default(), catalog()) {
            assert!(none_is_invented(&whole, &recorded), "byte {at}");
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_read_but_never_panic(kind in 0usize..4, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let head: [&[u8]; 4] = [b"", b":W&B\xe1\xbe\0", b"{\"_timestamp\": 1, ", b"time,tag,value\n"];
        let _ = imported(&*[head[kind], &bytes].concat(), "file", Raw::default(), catalog());
    }
}

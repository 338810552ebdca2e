//! Queries to a store, and their output.

use super::select::MAX_HELD_SAMPLES;
use super::*;
use serde_json::Value;
use shared::catalog::{Catalog, Chart, Kind, Metric, MetricDef, VOCABULARY, cpu, disk, gpu, network, process};
use shared::series::SeriesDef;
use shared::unit::Unit;
use stream::store::{Limits, Store};

const T0: i64 = 1_700_000_000_000;

/// Two sources with a gauge of two instances and a counter, a tick a second.
fn store(ticks: i64) -> Store {
    let rows = VOCABULARY.iter().copied().flatten().copied();
    let mut store = Store::new(Arc::new(Catalog::new(rows)), Limits { retention: 10 * 86_400_000, bytes: usize::MAX });
    for host in ["alpha", "=beta"] {
        let source = store.add_source(host.into(), 1_000, Vec::new());
        let series: [(&MetricDef, &str); 4] =
            [(&gpu::TEMP, "0"), (&gpu::TEMP, "1"), (&network::RECEIVED, ""), (&disk::READ, "")];
        for (def, instance) in series {
            let metric = store.catalog().position(def.tag).expect("a row");
            store.intern(source, SeriesDef { metric, instance: instance.into() });
        }
        for i in 0..ticks {
            // The second GPU appears later; the counter is reset once.
            let late = if i < 10 { f64::NAN } else { 70.5 };
            let total = if i < 50 { i * 100 } else { (i - 50) * 100 };
            store.append(source, T0 + i * 1_000, false, &[40.0 + (i % 10) as f64, late, total as f64, i as f64 * 0.5]);
        }
    }
    store
}

fn question(tags: &[&str]) -> Ask {
    let tags = tags.iter().map(|tag| (*tag).to_string()).collect();
    Ask { tags, from: T0, to: T0 + 1_000_000_000, ..Ask::default() }
}

fn text(store: &Store, ask: Ask, format: Option<Format>) -> String {
    let mut selection = select(store, ask).expect("it can be asked");
    let form = match format {
        None => query(&selection, None, &[]),
        Some(format) => format.form(&mut selection).expect("it can be written"),
    };
    Pieces::new(selection, form).collect()
}

fn answer(store: &Store, ask: Ask) -> Value {
    serde_json::from_str(&text(store, ask, None)).expect("JSON")
}

#[test]
fn an_answer_names_each_series_once_whoever_asked_for_it() {
    let store = store(20);
    let both = answer(&store, question(&["gpu.*.temp", "gpu.0.temp", "system.gpu.0.temp"]));
    let named: Vec<_> = both["series"].as_array().expect("series").iter().map(|s| (&s["source"], &s["tag"])).collect();
    assert_eq!(named.len(), 4, "{named:?}");
    assert_eq!(both["series"][1]["points"][0], serde_json::json!([T0 / 1000 + 10, 70.5]));
    let one = answer(&store, Ask { sources: vec!["al*".into()], ..question(&["gpu.1.temp"]) });
    assert_eq!(one["series"].as_array().map(Vec::len), Some(1));
    assert_eq!(one["series"][0]["source"], "alpha");
    let none = answer(&store, question(&["gpu.7.temp", "tpu.*"]));
    assert_eq!(none["series"], Value::Array(Vec::new()));
}

#[test]
fn of_a_run_only_its_gpus_are_answered() {
    let store = store(20);
    let gpus = [("alpha".to_string(), [1].into())].into();
    let own = answer(&store, Ask { gpus, ..question(&["*"]) });
    let named = own["series"].as_array().expect("series").iter();
    let named: Vec<_> = named.map(|one| format!("{} {}", one["source"], one["tag"]).replace('"', "")).collect();
    assert!(named.contains(&"alpha gpu.1.temp".into()) && !named.contains(&"alpha gpu.0.temp".into()), "{named:?}");
    let others = named.iter().filter(|name| !name.starts_with("alpha gpu")).count();
    assert_eq!(others + 1, named.len(), "what is no GPU's stays, and so does another machine's: {named:?}");
}

#[test]
fn ranks_have_series_with_their_labels_and_of_a_run_only_its_own_are_answered() {
    let rows = VOCABULARY.iter().copied().flatten().copied();
    let mut store = Store::new(Arc::new(Catalog::new(rows)), Limits { retention: 10 * 86_400_000, bytes: usize::MAX });
    let source = store.add_source("alpha".into(), 1_000, Vec::new());
    let metric = store.catalog().position(process::CPU.tag).expect("a row");
    for instance in ["", "/l:rank_0", "/l:rank_1", "/l:loader"] {
        store.intern(source, SeriesDef { metric, instance: instance.into() });
    }
    for i in 0..5 {
        store.append(source, T0 + i * 1_000, false, &[1.0, 2.0, 3.0, 4.0]);
    }
    let tags = |ask: Ask| -> Vec<String> {
        let answer = answer(&store, ask);
        answer["series"]
            .as_array()
            .expect("series")
            .iter()
            .map(|one| one["tag"].as_str().unwrap_or("").into())
            .collect()
    };
    assert_eq!(tags(question(&["cpu"])), ["cpu"]);
    assert_eq!(tags(question(&["cpu/l:rank_1"])), ["cpu/l:rank_1"]);
    assert_eq!(tags(question(&["cpu/l:alpha"])), ["cpu"], "W&B's way to name a machine");
    assert_eq!(tags(question(&["cpu/l:nobody"])), [""; 0]);
    let ranks = [("alpha".to_string(), ["rank_0".to_string(), "loader".into()].into())].into();
    // Any label also matches any machine: the usage of its watched processes is included.
    assert_eq!(tags(Ask { ranks, ..question(&["cpu/l:*"]) }), ["cpu", "cpu/l:rank_0", "cpu/l:loader"]);
}

#[test]
fn buckets_hold_min_max_mean_last_and_count() {
    let store = store(30);
    let ask = Ask { sources: vec!["alpha".into()], step: Some(10_000), ..question(&["gpu.0.temp"]) };
    let rolled = answer(&store, ask.clone());
    let expected = serde_json::json!({"t": T0 / 1000, "min": 40, "max": 49, "mean": 44.5, "last": 49, "count": 10});
    assert_eq!(rolled["series"][0]["buckets"][0], expected);
    assert_eq!(rolled["series"][0]["buckets"].as_array().map(Vec::len), Some(3));
    let csv = text(&store, ask, Some(Format::Csv));
    assert_eq!(csv.lines().next(), Some("time,source,tag,min,max,mean,last,count"));
    assert_eq!(csv.lines().nth(1), Some(&*format!("{},alpha,gpu.0.temp,40,49,44.5,49,10", T0 / 1000)));
}

#[test]
fn rates_are_of_counters_in_base_units_without_resets() {
    let store = store(100);
    let alpha = |tags: &[&str]| Ask { sources: vec!["alpha".into()], rate: true, ..question(tags) };
    let rates = answer(&store, Ask { from: T0 + 40_000, ..alpha(&["network.recv"]) });
    let series = &rates["series"][0];
    assert_eq!(
        (&rates["fn"], &series["unit"], &series["kind"]),
        (&"rate".into(), &"bytes_per_second".into(), &"gauge".into())
    );
    let points = series["points"].as_array().expect("points");
    assert_eq!(points[0], serde_json::json!([T0 / 1000 + 40, 100]), "the sample before the span counts");
    assert_eq!(points.len(), 59, "the reset has no rate");
    assert!(points.iter().all(|p| p[1] == 100));
    let disk = answer(&store, Ask { step: Some(60_000), ..alpha(&["disk.in"]) });
    let bucket = &disk["series"][0]["buckets"][0];
    assert_eq!((&bucket["min"], &bucket["max"]), (&Value::from(524_288), &Value::from(524_288)), "MiB are bytes now");
    let gauge = select(&store, alpha(&["gpu.0.temp"])).err().expect("not a counter");
    assert!(gauge.to_string().contains("fn=rate"), "{gauge}");
    let all = answer(&store, alpha(&["*"]));
    assert_eq!(all["series"].as_array().map(Vec::len), Some(2), "a pattern takes what counts");
}

#[test]
fn every_form_holds_every_sample_and_no_formula() {
    let store = store(25);
    let ask = question(&["gpu.*.temp", "network.recv"]);
    let samples = 2 * (25 + 15 + 25);
    let csv = text(&store, ask.clone(), Some(Format::Csv));
    assert_eq!(csv.lines().count(), samples + 1);
    assert!(csv.contains(",'=beta,gpu.0.temp,") && !csv.contains(",=beta"));
    let lines = text(&store, ask.clone(), Some(Format::Json));
    let parsed: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(parsed.len(), samples);
    assert!(
        parsed.iter().any(|line| line["source"] == "=beta" && line["tag"] == "network.recv" && line["value"] == 2400)
    );
    let open = text(&store, ask.clone(), Some(Format::OpenMetrics));
    assert_eq!(open.lines().filter(|line| !line.starts_with('#')).count(), samples);
    assert_eq!(open.matches("# TYPE ").count(), 2);
    assert!(open.ends_with("# EOF\n"));
    assert!(
        open.contains(&format!("watchglass_gpu_temperature_celsius{{source=\"alpha\",gpu=\"0\"}} 40 {}\n", T0 / 1000))
    );
    let mut selection = select(&store, Ask { step: Some(1_000), ..ask }).expect("it can be asked");
    assert!(Format::OpenMetrics.form(&mut selection).is_err(), "roll-ups are no samples");
}

#[test]
fn long_spans_come_in_parts_and_are_the_same() {
    // Two stretches: the first ends at the end of a bucket, not at its size limit.
    let rows = VOCABULARY.iter().copied().flatten().copied();
    let mut store = Store::new(Arc::new(Catalog::new(rows)), Limits { retention: i64::MAX / 4, bytes: usize::MAX });
    let source = store.add_source("here".into(), 100, Vec::new());
    let metric = store.catalog().position(cpu::CPU_PERCENT.tag).expect("a row");
    store.intern(source, SeriesDef { metric, instance: String::new() });
    let ticks = MAX_HELD_SAMPLES + 1_234;
    for i in 0..ticks {
        store.append(source, T0 + i * 100, false, &[(i % 97) as f64]);
    }
    let ask = question(&[cpu::CPU_PERCENT.tag]);
    let selection = select(&store, ask.clone()).expect("it can be asked");
    assert_eq!(selection.parts[&source].stretches.len(), 2);
    let mut pieces = 0;
    let mut rows = 0;
    let form = Format::Csv.form(&mut select(&store, ask.clone()).expect("asked")).expect("CSV");
    for piece in Pieces::new(selection, form) {
        assert!(piece.len() < 2 * PIECE_BYTES);
        pieces += 1;
        rows += piece.lines().count() as i64;
    }
    assert_eq!(rows, ticks + 1);
    assert!(pieces > 50);
    let rolled = answer(&store, Ask { step: Some(7_000), ..ask });
    let buckets = rolled["series"][0]["buckets"].as_array().expect("buckets");
    assert!(buckets.windows(2).all(|pair| pair[0]["t"].as_i64() < pair[1]["t"].as_i64()), "no bucket comes twice");
    assert_eq!(buckets.iter().filter_map(|b| b["count"].as_i64()).sum::<i64>(), ticks);
}

/// Whether a response with at most this many values can hold it.
fn limited(selection: Selection, most: i64) -> Result<(), Refused> {
    let mut count = Count::new(Arc::new(selection), most);
    loop {
        if let Some(()) = count.go_on()? {
            return Ok(());
        }
    }
}

#[test]
fn what_is_too_large_says_what_to_narrow() {
    let store = store(200);
    let all = || select(&store, question(&["*"])).expect("it can be asked");
    assert_eq!(limited(all(), 1_600), Ok(()));
    let Err(Refused::Large { series, values, step, .. }) = limited(all(), 200) else { panic!("too large") };
    assert_eq!(series, 8);
    assert!((1_500..=1_600).contains(&values), "about the 1,580 that there are: {values}");
    let with_step = select(&store, Ask { step: Some(step), ..question(&["*"]) }).expect("it can be asked");
    assert_eq!(limited(with_step, 200), Ok(()), "the step that it names is enough");
    let sentence = limited(all(), 200).expect_err("too large").to_string();
    assert!(sentence.contains("8 series") && sentence.contains(&format!("step={}s", step / 1000)), "{sentence}");
    let wrong = |ask: Ask| select(&store, ask).err().expect("refused").to_string();
    assert!(wrong(Ask { sources: vec!["gamma".into()], ..question(&["*"]) }).contains("alpha"));
    assert!(wrong(question(&[])).contains("tag"));
    assert!(wrong(question(&["gpu.0.tmp"])).contains("gpu.{i}.temp"));
    assert!(wrong(Ask { from: 2, to: 1, ..question(&["*"]) }).contains("later"));
}

#[test]
fn what_is_stored_counts_and_not_how_long_it_spans() {
    let mut store = store(10);
    // A machine that was off for a week has no more samples than one that was always on.
    for source in 0..2 {
        store.append(source, T0 + 600_000_000, false, &[1.0, 2.0, 3.0, 4.0]).expect("a tick");
    }
    let selection = select(&store, question(&["*"])).expect("it can be asked");
    assert!(selection.at_most(1) > 1_000_000);
    assert_eq!(limited(selection, 80), Ok(()), "2 machines, 3 series of 11 samples and one of one");
    let stepped = Ask { step: Some(1_000), ..question(&["*"]) };
    assert_eq!(limited(select(&store, stepped).expect("it can be asked"), 80), Ok(()));
    assert!(limited(select(&store, question(&["*"])).expect("it can be asked"), 60).is_err());
}

#[test]
fn the_label_of_a_tag_names_a_machine() {
    let store = store(20);
    let named = |tags: &[&str]| -> Vec<(String, String)> {
        let chosen = select(&store, question(tags)).expect("it can be asked").wanted;
        chosen.into_iter().map(|w| (w.host.to_string(), w.tag)).collect()
    };
    let pair = |host: &str, tag: &str| (host.to_string(), tag.to_string());
    assert_eq!(named(&["gpu.0.temp/l:alpha"]), [pair("alpha", "gpu.0.temp")]);
    assert_eq!(named(&["system.gpu.1.temp/l:=beta"]), [pair("=beta", "gpu.1.temp")]);
    assert_eq!(named(&["gpu.*.temp/l:al*"]), [pair("alpha", "gpu.0.temp"), pair("alpha", "gpu.1.temp")]);
    assert_eq!(named(&["gpu.0.temp/l:=beta", "gpu.0.temp"]).len(), 2, "each once");
    let wrong = select(&store, question(&["gpu.0.temp/l:gamma"])).err().expect("refused").to_string();
    assert!(wrong.contains("\"gamma\"") && wrong.contains("alpha"), "{wrong}");
}

#[test]
fn json_lines_have_the_records_of_the_span_behind_the_samples_and_the_others_have_none() {
    let mut store = store(5);
    for (source, t, kind, body) in [
        (0, T0 + 1_000, "marker", &b"{\"text\":\n \"epoch 3\"}"[..]),
        (1, T0 + 2_500, "logs", &[0, 255]),
        (0, T0 + 2_000_000_000, "marker", b"later than the span"),
    ] {
        let encoded = store.encode_record(source, t, kind, body.to_vec()).expect("sound");
        store.push_record(encoded);
    }
    let lines = text(&store, question(&["gpu.0.temp"]), Some(Format::Json));
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 2 * 5 + 2);
    let marker =
        format!(r#"{{"t":{},"source":"alpha","record":"marker","n":1,"body":{{"text":"epoch 3"}}}}"#, T0 / 1_000 + 1);
    assert_eq!(lines[10], marker);
    assert!(lines[11].ends_with(r#""source":"=beta","record":"logs","n":1,"body":[0,255]}"#), "{}", lines[11]);
    let one = Ask { sources: vec!["alpha".into()], ..question(&["gpu.0.temp"]) };
    assert_eq!(text(&store, one, Some(Format::Json)).lines().count(), 5 + 1);
    let stepped = Ask { step: Some(1_000), ..question(&["gpu.0.temp"]) };
    assert!(!text(&store, stepped, Some(Format::Json)).contains("record"));
    for format in [Format::Csv, Format::OpenMetrics, Format::WandbJsonl] {
        assert!(!text(&store, question(&["gpu.0.temp"]), Some(format)).contains("epoch"));
    }
}

#[test]
fn one_tag_may_mean_different_things_on_two_machines_and_each_is_read_as_its_own() {
    let mut store = store(0);
    let row = |unit, kind| {
        let def = MetricDef::gauge("own.{x}.level", unit).title("Own").on("own", "");
        Metric { kind, ..Metric::from(&def) }
    };
    let chart = Chart { id: "own".into(), title: "Own".into(), section: String::new() };
    for (source, unit, kind) in [(0, Unit::Celsius, Kind::Counter), (1, Unit::Percent, Kind::Gauge)] {
        let metric = store.add_row(row(unit, kind), chart.clone()).expect("room");
        let id = store.intern(source, SeriesDef { metric, instance: "k".into() }).expect("room");
        let mut values = vec![f64::NAN; id as usize];
        values.push(7.0);
        store.append(source, T0, false, &values).expect("a source");
    }
    let both = answer(&store, question(&["own.k.level"]));
    let units: Vec<_> = both["series"].as_array().expect("series").iter().map(|s| (&s["source"], &s["unit"])).collect();
    assert_eq!(units, [(&"alpha".into(), &"celsius".into()), (&"=beta".into(), &"percent".into())]);
    let rates = select(&store, Ask { rate: true, ..question(&["own.k.level"]) }).expect("one of them counts");
    assert_eq!(rates.wanted.len(), 1);
}

#[test]
fn huge_values_are_answered_as_numbers() {
    let mut store = store(20);
    let source = store.named("alpha").expect("a source");
    for i in 20..25 {
        store.append(source, T0 + i * 1_000, false, &[f64::MAX, f64::NAN, f64::MAX, 1.0]);
    }
    let rolled = answer(&store, Ask { step: Some(60_000), ..question(&["gpu.0.temp"]) });
    let bucket = &rolled["series"][0]["buckets"][0];
    assert!(bucket["mean"].as_f64().is_some_and(|mean| mean > 1e300) && bucket["count"] == 25, "{bucket}");
    let rates = answer(&store, Ask { rate: true, ..question(&[network::RECEIVED.tag]) });
    assert_eq!(rates["series"][0]["points"].as_array().map(Vec::len), Some(23), "all but the first and the jump");
}

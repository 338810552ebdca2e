//! Rules are read, printed, evaluated and described.

use super::*;
use crate::alert::Rule;
use crate::catalog::{Catalog, VOCABULARY};
use proptest::prelude::*;

fn catalog() -> Catalog {
    Catalog::new(VOCABULARY.iter().copied().flatten().copied())
}

#[test]
fn each_form_is_read_written_again_and_said() {
    let catalog = catalog();
    for (when, again, words) in [
        (
            "gpu.*.temp > 85 C for 2m, until < 82 C",
            "gpu.*.temp > 85 °C for 2m, until < 82 °C",
            "GPU temperature above 85 °C for 2 min, until below 82 °C",
        ),
        ("gpu.temp>=85 for 120 s", "gpu.*.temp >= 85 °C for 2m", "GPU temperature at least 85 °C for 2 min"),
        ("gpu.{i}.temp > 85", "gpu.*.temp > 85 °C", "GPU temperature above 85 °C"),
        (
            "gpu.3.memoryAllocatedBytes > 2 GiB for 0s",
            "gpu.3.memoryAllocatedBytes > 2147483648 B",
            "GPU memory used (gpu.3.memoryAllocatedBytes) above 2 GiB",
        ),
        (
            "mean over run of gpu.*.gpu < 50 for 10m, until > 70 for 5m",
            "mean over run of gpu.*.gpu < 50 % for 10m, until > 70 % for 5m",
            "mean GPU utilization of a run below 50 % for 10 min, until above 70 % for 5 min",
        ),
        (
            "share < 5 over source of gpu.*.gpu > 50 for 1h30m",
            "share < 5 % over source of gpu.*.gpu > 50 % for 90m",
            "share of a source with GPU utilization below 5 % above 50 % for 1 h 30 min",
        ),
        (
            "rate(network.sent, 1m) > 1.5 GB/s for 5m",
            "rate(network.sent, 1m) > 1500000000 B/s for 5m",
            "rate of Sent over 1 min above 1.5 GB/s for 5 min",
        ),
        ("mean(cpu, 10 min) > 90 %", "mean(cpu, 10m) > 90 %", "mean of Process CPU over 10 min above 90 %"),
        (
            "memory_percent > 97 % for 5m and pressure.memory.full_percent > 10",
            "memory_percent > 97 % and pressure.memory.full_percent > 10 % for 5m",
            "",
        ),
        ("disk.*.usagePercent missing for 5m", "disk.*.usagePercent missing for 5m", ""),
        (
            "disk./mnt/data.v2.usagePercent reaches 100 % within 8h",
            "disk./mnt/data.v2.usagePercent reaches 100 % within 8h",
            "",
        ),
        ("memory.oom_kills increases", "memory.oom_kills increases", ""),
        ("source lost", "source lost for 1m", "machine not reporting for 1 min"),
        ("source joined", "source joined", ""),
        ("run crashed", "run crashed", "run crashed"),
        ("run unreachable,failed", "run unreachable, failed", ""),
        ("run preempted, crashed", "run crashed, preempted", ""),
        ("run longer than 2d", "run longer than 2d", ""),
        ("run without marker for 30m", "run without marker for 30m", ""),
        ("run idle for 30m", "run idle for 30m", ""),
        ("gpus held idle for 30m", "gpus held idle for 30m", ""),
        (
            "finding hang.spin, critical for 2m",
            "finding hang.spin, critical for 2m",
            "finding hang.spin, critical, still open after 2 min",
        ),
        ("finding *", "finding *", "any finding"),
        ("xid 79, 48,79", "xid 48, 79", "XID error 48, 79"),
        ("xid *", "xid *", ""),
        ("collector failed for 10m", "collector failed for 10m", ""),
        ("hub behind", "hub behind", ""),
        ("history failed", "history failed", ""),
        ("gpu hours above 85%", "gpu hours above 85 %", "GPU-hours of the month at 85 % of the limit"),
        ("alert from code", "alert from code", ""),
        (r#""openmetrics.n.load{a=\"x, y\"}" > 3"#, r#""openmetrics.n.load{a=\"x, y\"}" > 3"#, ""),
        ("openmetrics.l.flap > 0.5", "openmetrics.l.flap > 0.5", ""),
    ] {
        is_read(&catalog, when, again, words);
    }
}

/// Reads a condition, writes it again and describes it; without words only the first two.
fn is_read(catalog: &Catalog, when: &str, again: &str, words: &str) {
    let condition = parse(when, catalog).unwrap_or_else(|e| panic!("{when}: {e}"));
    assert_eq!(condition.to_string(), again, "{when}");
    assert_eq!(parse(again, catalog).as_ref(), Ok(&condition), "{again}");
    if !words.is_empty() {
        assert_eq!(condition.words(), words);
    }
}

#[test]
fn forms_for_values_of_jobs_are_read_written_again_and_said() {
    let catalog = catalog();
    for (when, again, words) in [
        ("job.loss is not a number", "job.loss is not a number", "job.loss not a number"),
        (
            "job.train/loss is not a number for 1m",
            "job.train/loss is not a number for 1m",
            "job.train/loss not a number for 1 min",
        ),
        (
            "job.tokens_per_s < 0.8 x its mean for 2m",
            "job.tokens_per_s < 0.8 x its mean over 10m for 2m",
            "job.tokens_per_s relative to its mean over 10 min below 0.8 for 2 min",
        ),
        (
            "gpu.*.powerWatts > 1.5 x its mean over 1h, until < 1.2",
            "gpu.*.powerWatts > 1.5 x its mean over 1h, until < 1.2",
            "GPU power relative to its mean over 1 h above 1.5, until below 1.2",
        ),
        ("job.step > 1000", "job.step > 1000", ""),
    ] {
        is_read(&catalog, when, again, words);
    }
}

#[test]
fn a_fault_says_where_it_is_and_what_to_write() {
    let catalog = catalog();
    for (when, at, part) in [
        ("gpu.*.temp > 2 GiB for 2m", 13, "gpu.*.temp is in °C: write it as 2 °C"),
        ("gpu.*.temp > 85 furlongs", 13, "not a known unit; gpu.*.temp is in °C"),
        ("gpu.*.tmp > 85", 0, "the nearest is \"gpu.*.temp\""),
        ("gpu.*.temp 85", 11, "one of > >= < <= == !="),
        ("gpu.*.temp > hot", 13, "expected a number"),
        ("gpu.*.temp > 85 for ever", 20, "expected a duration"),
        ("gpu.*.temp > 85 for 8d", 20, "at most 7d"),
        ("gpu.*.temp > 85 C for 2m, until < 88", 31, "does not fire"),
        ("gpu.*.temp > 85 C for 2m until > 82", 30, "does not fire"),
        ("gpu.*.temp > 85, but", 17, "expected `until`"),
        ("cpu > 1 and cpu > 2 and cpu > 3", 23, "at most two"),
        ("rate(cpu, 5m) > 1", 0, "is not a counter"),
        ("mean(cpu) > 1", 8, "a comma and a duration"),
        ("gpu.*.temp is not a number", 11, "needs the name of a job's value"),
        ("mean(cpu, 5m) > 2 x its mean", 28, "compares the samples of a tag"),
        ("mean over rack of cpu > 1", 10, "source, run, gpu"),
        ("run exploded", 4, "not a state of a run"),
        ("finding", 7, "such as hang"),
        ("xid many", 4, "numbers of XID errors"),
        ("cpu > 1 cpu", 8, "not a known unit"),
        ("cpu > 1 %%", 8, "unit"),
        ("cpu > 1e300", 6, "too large"),
        ("cpu > 1 % or more", 10, "has one condition"),
        ("", 0, "the tag of a metric"),
    ] {
        let fault = parse(when, &catalog).expect_err(when);
        assert!(fault.sentence.contains(part), "{when}: {fault}");
        // A fault of a unit is at the start of its number.
        assert!(fault.at == at || fault.at == at.saturating_sub(2), "{when}: {} is not {at}", fault.at);
    }
}

#[test]
fn series_fit_their_tags() {
    let catalog = catalog();
    let fits = |when: &str, template: &str, instance: &str| {
        parse(when, &catalog).expect(when).tags()[0].fits(template, instance)
    };
    assert!(fits("gpu.*.temp > 1", "gpu.{i}.temp", "3"));
    assert!(fits("gpu.1*.temp > 1", "gpu.{i}.temp", "12") && !fits("gpu.1*.temp > 1", "gpu.{i}.temp", "21"));
    assert!(!fits("gpu.*.temp > 1", "gpu.process.{i}.temp", "3"));
    assert!(fits("system.gpu.0.temp > 1", "gpu.{i}.temp", "0"));
    assert!(fits("openmetrics.l.flap > 1", "openmetrics.l.flap{labels}", "{a=\"1\"}"));
    assert!(!fits("openmetrics.l.flap > 1", "openmetrics.l.flaps{labels}", "{a=\"1\"}"));
}

#[test]
fn a_whole_rule_is_judged() {
    let catalog = catalog();
    let good = || Rule { name: "Hot".into(), when: "gpu.*.temp > 85".into(), ..Rule::default() };
    assert!(check(&good(), &catalog).is_ok());
    let wrong = |change: fn(&mut Rule)| {
        let mut rule = good();
        change(&mut rule);
        check(&rule, &catalog).expect_err("wrong")
    };
    assert!(wrong(|r| r.name = " ".into()).starts_with("name:"));
    assert!(wrong(|r| r.name = "a\nb".into()).starts_with("name:"));
    assert!(wrong(|r| r.when = "gpu".into()).starts_with("when: at letter"));
    assert!(wrong(|r| r.title = Some("{host} is hot".into())).contains("{host} is unknown"));
    assert!(wrong(|r| r.note = Some("{run".into())).contains("not closed"));
    assert!(wrong(|r| r.link = Some("http://x".into())).starts_with("link:"));
    assert!(wrong(|r| r.link = Some("https://a@b/".into())).starts_with("link:"));
    assert!(wrong(|r| r.repeat = Some("10s".into())).starts_with("repeat:"));
    assert!(wrong(|r| drop(r.on.insert("Source".into(), "x".into()))).starts_with("on:"));
    assert!(wrong(|r| drop(r.on.insert("source".into(), "a,,b".into()))).starts_with("on:"));
}

#[test]
fn values_are_data_and_stay_what_they_are() {
    let value = |name: &str| match name {
        "run" => "{source}\u{202e}\n{{x}".to_string(),
        name => name.to_uppercase(),
    };
    assert_eq!(fill("{run} on {source}: {{run} {nothing", value), "{source} {{x} on SOURCE: {run} {nothing");
    assert_eq!(clean(&"é".repeat(200), 200, false).len(), 199);
    assert_eq!(clean("a\u{1b}[2J\nb", 20, true), "a[2J\nb");
}

fn tag() -> impl Strategy<Value = Tag> {
    let rows: Vec<&str> = vec![
        "gpu.*.temp",
        "gpu.7.gpu",
        "cpu",
        "disk./mnt/a b.usagePercent",
        "disk.in",
        "openmetrics.x.y{a=\"b\"}",
        "memory.used",
        "network.sent",
        "gpu.*.pcieLinkSpeed",
    ];
    let known: Vec<Tag> = rows
        .into_iter()
        .filter_map(|text| {
            let quoted = format!("\"{}\" > 1", text.replace('"', "\\\""));
            parse(&quoted, &catalog()).ok().map(|c| c.tags()[0].clone())
        })
        .collect();
    proptest::sample::select(known)
}

fn limit() -> impl Strategy<Value = f64> {
    prop_oneof![
        (-1_000_000i64..1_000_000).prop_map(|v| v as f64 / 1000.0),
        (0u64..9_000_000_000_000_000).prop_map(|v| v as f64)
    ]
    .prop_map(|v| number_text(v).parse::<f64>().expect("a number") + 0.0)
}

fn op() -> impl Strategy<Value = Op> {
    proptest::sample::select(Op::ALL.to_vec())
}

fn comparison(groups: bool) -> impl Strategy<Value = Comparison> {
    let by = || proptest::sample::select(By::ALL.to_vec());
    let value = (tag(), 0..if groups { 9 } else { 4 }, by(), op(), limit(), 1..MAX_DURATION).prop_map(
        |(tag, which, by, op, limit, over)| match which {
            0 => Value::Of(tag),
            1 if tag.kind == Kind::Counter => Value::In(Function::Rate, tag, over),
            1 => Value::In(Function::Max, tag, over),
            2 => Value::In(Function::Change, tag, over),
            3 => Value::OfMean(tag, over),
            4 => Value::Over(Across::Mean, by, tag),
            5 => Value::Over(Across::Min, by, tag),
            6 => Value::Over(Across::Max, by, tag),
            7 => Value::Over(Across::Spread, by, tag),
            _ => Value::Over(Across::Share(op, limit), by, tag),
        },
    );
    (value, op(), limit()).prop_map(|(value, op, limit)| Comparison { value, op, limit })
}

fn condition() -> impl Strategy<Value = Condition> {
    let dur = || 0..=MAX_DURATION;
    let threshold = prop_oneof![
        (comparison(true), Just(None)).boxed(),
        (comparison(false), comparison(false).prop_map(Some)).boxed(),
    ];
    prop_oneof![
        4 => (threshold, dur(), proptest::option::of((0.0..9.0f64, dur()))).prop_map(|((first, and), hold, until)| {
            let until = until.and_then(|(gap, hold)| {
                let gap = number_text(gap).parse::<f64>().expect("a number");
                let (op, limit) = match first.op {
                    Op::Above | Op::AtLeast => (Op::Below, first.limit - gap),
                    Op::Below | Op::AtMost => (Op::AtLeast, first.limit + gap),
                    Op::Is => (Op::IsNot, first.limit),
                    Op::IsNot => (Op::Is, first.limit),
                };
                let limit = number_text(limit).parse::<f64>().expect("a number") + 0.0;
                (limit == 0.0 || limit.abs() >= 1e-9).then_some(Until { op, limit, hold })
            });
            Condition::Threshold(Threshold { first, and, hold, until })
        }),
        1 => (tag(), dur()).prop_map(|(tag, hold)| Condition::Missing { tag, hold }),
        1 => (tag(), limit(), 60..=MAX_DURATION).prop_map(|(tag, limit, within)| Condition::Reaches { tag, limit, within }),
        1 => tag().prop_map(|tag| Condition::Increases { tag }),
        1 => (1..=MAX_DURATION).prop_map(Condition::SourceLost),
        1 => Just(Condition::SourceJoined),
        1 => proptest::sample::subsequence(RunState::ALL.to_vec(), 1..13).prop_map(|mut states| {
            // One word means all five.
            if states.contains(&RunState::Crashed) {
                states.extend(RunState::CRASHED);
            }
            states.sort_unstable();
            states.dedup();
            Condition::Run(states)
        }),
        1 => dur().prop_map(Condition::RunLonger),
        1 => (1..=1_000u32).prop_map(Condition::GpuHours),
        1 => dur().prop_map(Condition::RunSilent),
        1 => proptest::collection::btree_set(1u32..200, 0..5).prop_map(|n| Condition::Xid(n.into_iter().collect())),
        1 => (proptest::collection::vec("[a-z_]{1,9}(\\.[a-z]{1,5})?", 1..4), dur())
            .prop_map(|(what, hold)| Condition::Finding { what, hold }),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(condition in condition()) {
        let text = condition.to_string();
        prop_assert_eq!(parse(&text, &catalog()).map_err(|e| format!("{text}: {e}")), Ok(condition));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(gpu\\.\\*\\.temp|run|finding|share|mean\\(|cpu)?[ -~é°]{0,40}") {
        if let Ok(condition) = parse(&text, &catalog()) {
            prop_assert_eq!(parse(&condition.to_string(), &catalog()), Ok(condition));
        }
    }

    #[test]
    fn durations_come_back(seconds in 0..=MAX_DURATION) {
        prop_assert_eq!(duration(&duration_text(seconds)), Ok(seconds));
        prop_assert_eq!(duration(&duration_words(seconds)), Ok(seconds));
    }
}

//! Measures the cost of rules.

use crate::cost::thread_cpu;
use crate::history::rss;
use crate::table::Table;
use rules::{Engine, Machine, Tick};
use shared::alert::Rule;
use shared::catalog::{Catalog, VOCABULARY};
use shared::series::SeriesDef;
use std::collections::BTreeMap;

/// Number of watched series.
const SERIES: u32 = 10_000;
/// GPUs of a machine. One series of each is watched.
const GPUS: u32 = 8;
/// Series of a machine that no rule matches.
const OTHERS: u32 = 492;
/// Seconds that are measured, and warm-up seconds.
const SECONDS: i64 = 300;
const WARM_UP_TICKS: i64 = 20;
/// Rules over the same series, for the memory of a subject.
const RULES: u32 = 10;
const T0: i64 = 1_790_000_000_000;

fn catalog() -> Catalog {
    Catalog::new(VOCABULARY.iter().copied().flatten().copied())
}

fn rule(limit: u32) -> Rule {
    let when = format!("gpu.*.temp > {limit} C for 2m, until < {} C", limit - 3);
    Rule {
        id: format!("rule-{limit}"),
        name: format!("hot {limit}"),
        when,
        resolved: true,
        enabled: true,
        ..Rule::default()
    }
}

/// An engine with machines for which no rule fires, and the names of the machines.
fn engine(rules: &[Rule], catalog: &Catalog) -> (Engine, Vec<String>) {
    let mut engine = Engine::new(T0);
    let wrong = engine.set_rules(rules, catalog, T0);
    assert!(wrong.is_empty(), "{wrong:?}");
    let position = |tag: &str| catalog.position(tag).expect("a row of the catalog");
    let (temp, other) = (position("gpu.{i}.temp"), position("cpu.{i}.cpu_percent"));
    let names: Vec<String> = (0..SERIES / GPUS).map(|n| format!("node-{n}")).collect();
    for name in &names {
        let machine = Machine { id: name.clone(), name: name.clone(), interval_ms: 1_000, labels: BTreeMap::new() };
        engine.source(&machine);
        for index in 0..GPUS {
            engine.define(name, index, &SeriesDef { metric: temp, instance: index.to_string() }, catalog);
        }
        for index in GPUS..GPUS + OTHERS {
            engine.define(name, index, &SeriesDef { metric: other, instance: index.to_string() }, catalog);
        }
    }
    (engine, names)
}

/// Feeds the engine this many seconds of data, and returns its CPU seconds.
fn fed(engine: &mut Engine, names: &[String], from: i64, seconds: i64) -> f64 {
    let mut values = vec![50.0; (GPUS + OTHERS) as usize];
    let begun = thread_cpu();
    for second in from..from + seconds {
        let t = T0 + second * 1_000;
        // Some GPUs are warm for a moment, so that more than the first comparison is measured.
        values[0] = if second % 7 == 0 { 90.0 } else { 60.0 };
        for source in names {
            engine.tick(&Tick { source, t, now: t, clock_step: false, values: &values });
        }
        engine.poll(T0 + second * 1_000);
    }
    (thread_cpu() - begun).as_secs_f64()
}

/// Measures 10,000 watched series of 1,250 machines with 500 series each.
pub fn measure(table: &mut Table) {
    let catalog = catalog();
    memory(table, &catalog);
    let (mut one, names) = engine(&[rule(85)], &catalog);
    fed(&mut one, &names, 0, WARM_UP_TICKS);
    assert_eq!(one.subjects(), SERIES as usize, "each GPU is a subject");
    let took = fed(&mut one, &names, WARM_UP_TICKS, SECONDS);
    let fired = one.take().iter().filter(|change| change.what == rules::What::Fired).count();
    assert_eq!(fired, 0, "nobody is hot for two minutes");
    let on = format!("{} machines of {} series, {SECONDS} s, simulated", names.len(), GPUS + OTHERS);
    let of = took / (f64::from(SERIES) * SECONDS as f64);
    table.at_most("a rule, per watched series and sample", of * 1e9, "ns", 100.0, "100 ns", "", &on);
    table.at_most(
        "10,000 watched series at 1 Hz, of one core",
        100.0 * took / SECONDS as f64,
        "%",
        0.1,
        "0.1 %",
        "",
        &on,
    );
}

/// Memory of rules without that of the machines: the same machines are watched by more rules. It is measured first,
/// before any memory was freed and can be reused.
fn memory(table: &mut Table, catalog: &Catalog) {
    let all: Vec<Rule> = (0..RULES).map(|n| rule(90 + n)).collect();
    let (mut few, names) = engine(&all[..1], catalog);
    fed(&mut few, &names, 0, 3);
    let before = rss("self");
    let (mut many, _) = engine(&all, catalog);
    fed(&mut many, &names, 0, 3);
    let with_many = rss("self");
    let (mut again, _) = engine(&all[..1], catalog);
    fed(&mut again, &names, 0, 3);
    let (subjects, goal) = (f64::from(SERIES * (RULES - 1)), "200 B");
    let on = format!("{} subjects", many.subjects());
    match (before, with_many, rss("self")) {
        (Some(before), Some(with_many), Some(with_one)) => {
            let more_mib = (with_many - before) - (with_one - with_many);
            table.at_most(
                "a rule, memory per subject",
                more_mib * 1024.0 * 1024.0 / subjects,
                "B",
                200.0,
                goal,
                "",
                &on,
            );
        }
        _ => table.missing("a rule, memory per subject", goal, "the system does not say what a process holds"),
    }
}

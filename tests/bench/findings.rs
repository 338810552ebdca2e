//! Measures the cost of detecting findings.

use crate::cost::thread_cpu;
use crate::table::Table;
use backend::config::Fleet;
use backend::demo::Demo;
use insight::{Insight, Settings};
use shared::series::SeriesId;
use std::sync::Arc;
use std::time::Duration;
use stream::clock::Manual;
use stream::store::{Limits, Store};

/// Seconds of data in the measurement.
const SECONDS: i64 = 900;
/// Seconds of data for many machines.
const SHORT_SPAN_S: i64 = 120;
const MACHINES: u32 = 1_000;
const T0: i64 = 1_790_000_000_000;

/// One machine of 8 GPUs during training, tick by tick.
struct Machine {
    store: Store,
    ticks: Vec<(i64, Vec<(SeriesId, f64)>)>,
}

fn machine() -> Machine {
    let retention = SECONDS * 1_000;
    let mut store = Store::new(Arc::new(collectors::catalog()), Limits { retention, bytes: usize::MAX });
    let fleet = Fleet { gpus: 8, hosts: 1, fail: None, seed: 1 };
    let clock = Manual::at(T0, Duration::ZERO);
    Demo::new(&mut store, &fleet, 1_000, T0).fill(&mut store, &fleet, (retention, usize::MAX), &clock);
    let ids: Vec<SeriesId> = (0..store.series(0, 0).len() as SeriesId).collect();
    let samples = store.snapshot(0, i64::MIN / 4, i64::MAX / 4).expect("it is there").samples(&ids);
    let mut ticks: std::collections::BTreeMap<i64, Vec<(SeriesId, f64)>> = std::collections::BTreeMap::new();
    for (id, samples) in ids.iter().zip(samples) {
        samples.into_iter().for_each(|(t, value)| ticks.entry(t).or_default().push((*id, value)));
    }
    Machine { ticks: ticks.into_iter().collect(), store }
}

fn announced(machine: &Machine, sources: u32) -> Insight {
    let mut insight = Insight::new(Settings::default());
    for source in 0..sources {
        insight.source(source, &format!("node-{source}"), 1_000);
        for (id, def) in (0..).zip(machine.store.series(0, 0)) {
            if let Some(metric) = machine.store.catalog().metric(def) {
                insight.series(source, id, metric, &def.instance);
            }
        }
    }
    insight
}

/// CPU seconds for these ticks of this many machines.
fn looked(machine: &Machine, ticks: &[(i64, Vec<(SeriesId, f64)>)], sources: u32) -> f64 {
    let mut insight = announced(machine, sources);
    let mut found = Vec::new();
    let begun = thread_cpu();
    for (t, samples) in ticks {
        for source in 0..sources {
            insight.tick(source, *t, samples.iter().copied());
        }
        insight.judge(t + 1_000, &mut found);
    }
    let took = (thread_cpu() - begun).as_secs_f64();
    assert!(found.iter().all(|one| one.until.is_some()), "a machine that is well");
    took
}

/// Measures one machine, and a thousand.
pub fn measure(table: &mut Table) {
    let machine = machine();
    let series = machine.store.series(0, 0).len();
    let of = looked(&machine, &machine.ticks, 1) / machine.ticks.len() as f64;
    let on = format!("{series} series, 8 GPUs, {} ticks, simulated", machine.ticks.len());
    let scaled = of * 1e6 * 500.0 / series as f64;
    table.at_most("a tick of 500 series, looked at for what is wrong", scaled, "us", 20.0, "20 us", "", &on);
    let short = &machine.ticks[..machine.ticks.len().min(SHORT_SPAN_S as usize)];
    let share = looked(&machine, short, MACHINES) / short.len() as f64;
    let on = format!("{series} series and 8 GPUs each, {SHORT_SPAN_S} s, simulated");
    table.at_most("1,000 machines looked at, of one core", 100.0 * share, "%", 5.0, "5 %", "", &on);
}

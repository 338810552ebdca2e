//! `watchglass doctor`: for every family the attempt, the result, the reason, and the remedy.
//!
//! It runs the real sampler for a moment, so its results are those of the server. Read [`examine`], then `families.rs`
//! (the whole list, on every platform), `report.rs` (for a person) and `bundle.rs` (to be passed on).

mod bundle;
mod families;
mod report;
mod scrub;

pub use bundle::{Bundle, Tail, names};
pub use families::complete;
pub use report::{report, servers};
pub use scrub::Scrub;

use crate::config::Config;
use crate::sampler::{self, Plan};
use collectors::{COLLECTORS, monitor};
use shared::catalog::{MetricDef, gpu, gpu_health};
use shared::series::{SeriesDef, SeriesId};
use shared::unit::Unit;
use shared::wire::{Check, CheckState, SourceId};
use shared::xid::Action;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use stream::clock::System;
use stream::live::Live;
use stream::store::{Limits, Store};

/// Maximum wait for a second tick.
const SECOND_TICK_TIMEOUT: Duration = Duration::from_millis(2_200);

/// Results of the checks.
pub struct Examination {
    /// Every family, in the order of the registration table.
    pub checks: Vec<Check>,
    /// Failures of requested collectors, and of those whose hardware is present: the family and a sentence.
    pub faults: Vec<(String, String)>,
    /// Cost of the collectors and of the program: tag, value, unit.
    pub health: Vec<(String, f64, Unit)>,
}

/// Opens every collector, waits until each has answered or its deadline has passed, and returns their states.
pub fn examine(config: &Config, plan: Plan) -> Examination {
    let most = collectors::deadline(plan.interval) + Duration::from_secs(1);
    let limits = Limits { retention: 60_000, bytes: 1 << 20 };
    let mut store = Store::new(Arc::new(collectors::catalog()), limits);
    let source = store.add_source(String::new(), plan.interval.as_millis() as i64, Vec::new());
    let live = Live::new(store, Arc::new(System), 0, limits.retention);
    let stop = Arc::new(AtomicBool::new(false));
    let (theirs, asked) = (live.clone(), stop.clone());
    // Never joined: a collector that hangs must not hang the doctor.
    std::thread::spawn(move || sampler::run(theirs, source, plan, asked));
    let begin = Instant::now();
    let checks = loop {
        let (checks, _) = live.store().checks(source);
        let waiting = checks.is_empty() || checks.iter().any(|c| c.state == CheckState::Starting);
        // Rates take two ticks; a long interval is not awaited.
        let twice =
            live.store().state(source).is_some_and(|state| state.seq() >= 2) || begin.elapsed() > SECOND_TICK_TIMEOUT;
        if (!waiting && twice) || begin.elapsed() > most {
            break checks.to_vec();
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    stop.store(true, Ordering::Relaxed);
    let store = live.store();
    let checks = counted(&store, source, complete(checks));
    let mut faults = faults(&checks, config, &gpus(&store, source));
    faults.extend(needs(&store, source).into_iter().map(|need| ("nvidia".to_string(), need)));
    faults.extend(stacks(config).map(|why| ("stacks".to_string(), why)));
    Examination { checks, faults, health: health(&store, source) }
}

impl Examination {
    /// Whether everything that was requested, and everything that is present, works. An absent family that was not
    /// requested is no fault.
    pub fn healthy(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Adds the number of values to the checks. Rows that several collectors fill are counted if one of them is present.
fn counted(store: &Store, source: SourceId, mut checks: Vec<Check>) -> Vec<Check> {
    let works = |c: &Check| matches!(c.state, CheckState::Ok | CheckState::Partial);
    let here: BTreeSet<String> = checks.iter().filter(|c| works(c)).map(|c| c.id.clone()).collect();
    for check in checks.iter_mut().filter(|c| works(c)) {
        let fills = |id: &str, tag: &str| {
            let of = COLLECTORS.iter().filter(|entry| entry.name == id).flat_map(|entry| entry.metrics);
            of.copied().flatten().any(|row| row.tag == tag)
        };
        let own = |tag: &str| fills(&check.id, tag) && !here.iter().any(|id| *id != check.id && fills(id, tag));
        let series = store.series(source, 0).iter().filter_map(|def| store.catalog().metric(def));
        match series.filter(|metric| own(&metric.tag)).count() {
            0 => {}
            1 => check.found = format!("1 value. {}", check.found),
            n => check.found = format!("{n} values. {}", check.found),
        }
    }
    checks
}

/// Instances of the series of these rows, in any order.
fn instances<'a>(store: &'a Store, source: SourceId, rows: &'a [&MetricDef]) -> impl Iterator<Item = &'a str> {
    let of_rows = |metric: &str| rows.iter().any(|row| row.tag == metric);
    let series = store.series(source, 0).iter();
    series.filter(move |def| store.catalog().metric(def).is_some_and(|m| of_rows(&m.tag))).map(|d| d.instance.as_str())
}

/// GPUs whose driver requires an action, each with its need and the next step.
fn needs(store: &Store, source: SourceId) -> Vec<String> {
    let catalog = store.catalog();
    let need = |(id, def): (SeriesId, &SeriesDef)| {
        catalog.metric(def).filter(|metric| metric.tag == gpu_health::RECOVERY_ACTION.tag)?;
        // It is read rarely, so the newest tick may be without it.
        let action = Action::of_recovery(store.current(source, id)? as u8)?;
        Some(format!("GPU {} needs {}, as its driver reports: {}", def.instance, action.need()?, action.next()))
    };
    (0..).zip(store.series(source, 0)).filter_map(need).collect()
}

/// The reason why no stacks can be taken at a hang, if they are wanted.
fn stacks(config: &Config) -> Option<String> {
    #[cfg(target_os = "linux")]
    let checked = launch::stacks::check_tool(&config.insight.py_spy());
    #[cfg(not(target_os = "linux"))]
    let checked = Err("insight.stacks: only Linux has them; leave it out".to_string());
    checked.err().filter(|_| config.insight.stacks)
}

/// Numbers of the GPUs with values.
fn gpus(store: &Store, source: SourceId) -> BTreeSet<u32> {
    instances(store, source, gpu::ROWS).filter_map(|instance| instance.parse().ok()).collect()
}

/// Names in flags or the configuration, with the family that each refers to.
fn asked(config: &Config) -> Vec<(&'static str, String)> {
    let mut asked = Vec::new();
    if !config.pids.is_empty() {
        let pids: Vec<String> = config.pids.iter().map(u32::to_string).collect();
        asked.push(("process", format!("--pid {}", pids.join(","))));
    }
    let own = collectors::default_disk_path(cfg!(windows), std::env::var("SystemDrive").ok().as_deref());
    if config.disk_paths != [own] {
        asked.push(("disk_usage", "--disk-path".into()));
    }
    if !config.endpoints.is_empty() {
        asked.push(("openmetrics", "the endpoints".into()));
    }
    for entry in COLLECTORS {
        let own = config.collector(entry.name).own;
        let named = own.iter().filter(|(_, texts)| !texts.is_empty());
        asked.extend(named.map(|(key, _)| (entry.name, format!("{key} of [collectors.{}]", entry.name))));
    }
    asked
}

fn faults(checks: &[Check], config: &Config, gpus: &BTreeSet<u32>) -> Vec<(String, String)> {
    let asked = asked(config);
    let mut faults = Vec::new();
    for check in checks {
        let words = asked.iter().find(|(id, _)| *id == check.id).map(|(_, words)| words);
        let reason = if check.state == CheckState::Starting { "no result yet" } else { &check.reason };
        let sentence = match (check.state, words) {
            (CheckState::Ok, _) | (CheckState::Absent, None) => continue,
            (_, Some(words)) => format!("{}, requested by {words}: {reason}", check.id),
            (_, None) => format!("{}: {reason}", check.id),
        };
        faults.push((check.id.clone(), sentence));
    }
    let missing: Vec<String> = config.gpus.iter().filter(|gpu| !gpus.contains(gpu)).map(u32::to_string).collect();
    if !missing.is_empty() {
        let here: Vec<String> = gpus.iter().map(u32::to_string).collect();
        let here = if here.is_empty() {
            "the machine has none".into()
        } else {
            format!("the machine has {}", here.join(", "))
        };
        faults.push((String::new(), format!("GPU {}, requested by --gpu: {here}", missing.join(", "))));
    }
    faults
}

/// Values of our own rows.
fn health(store: &Store, source: SourceId) -> Vec<(String, f64, Unit)> {
    let Some((_, values)) = store.newest(source) else { return Vec::new() };
    let catalog = store.catalog();
    let own = store.series(source, 0).iter().zip(values).filter(|(_, value)| value.is_finite());
    own.filter_map(|(def, value)| {
        let metric = catalog.metric(def)?;
        monitor::ROWS.iter().any(|row| row.tag == metric.tag).then(|| (catalog.tag(def), value, metric.unit))
    })
    .collect()
}

#[cfg(test)]
mod tests;

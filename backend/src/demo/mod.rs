//! `watchglass demo`: simulated machines through the real pipe, for people without a GPU, for pictures and for load.
//!
//! Each machine is a source of the store. Its readings are a function of the seed, the machine, the device and the time
//! alone: history is filled in at the start, and two runs agree at the same instants. Read `job.rs` (what the fleet
//! trains), then `drive.rs` and `machine.rs` (what that is on one machine), `gpu.rs`, `host.rs` and `processes.rs` (what
//! follows from it), then `fault.rs` (what goes wrong).
//!
//! It adds no metric of its own, and reads nothing of the machine that it runs on.

mod drive;
mod fault;
mod gpu;
mod host;
mod job;
mod machine;
mod noise;
mod processes;

use crate::clock::Clock;
use crate::config::{Fail, Fleet};
use crate::live::Live;
use crate::store::{Limits, QUARTER, Store};
use collectors::{COLLECTORS, Out};
use machine::Machine;
use shared::series::SeriesDef;
use shared::standing::Standing;
use shared::unit::{Unit, quantity};
use shared::wire::{Check, CheckState, SourceId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long before the start a fault had its moment, milliseconds.
const FAULT_AGO_MS: i64 = 180_000;
/// Likewise one that is told only when it has lasted.
const IDLE_AGO_MS: i64 = 20 * 60_000;
/// A fleet whose whole retention takes longer than this to fill in is large.
const SMALL_FLEET_TIME: Duration = Duration::from_secs(3);
/// A large fleet gets as much history as can be filled in within this.
const LARGE_FLEET_TIME: Duration = Duration::from_secs(1);
/// History that every fleet gets, so that a fault's moment can be seen: milliseconds.
const MIN_HISTORY_MS: i64 = 240_000;
/// Ticks that a single machine gets however slow this one is: what a page compares with is there.
const MIN_TICKS_ALONE: i64 = 4_500;
/// Ticks by which the pace of filling in is measured.
const TRIAL_TICKS: i64 = 60;
/// Between two process tables: milliseconds.
const PROCESSES_INTERVAL_MS: i64 = 5_000;
/// Process tables of the time before the start, over all machines; more would delay it.
const MAX_TABLES_BEFORE: i64 = 720;

/// Machines of a simulated rack.
const HOSTS_A_RACK: usize = 8;

/// Collectors whose families the demo simulates.
const SIMULATED_COLLECTORS: &[&str] =
    &["cpu", "memory", "pressure", "disk", "disk_usage", "network", "process", "nvidia"];

/// A machine and its source.
struct Feed {
    machine: Machine,
    source: SourceId,
    out: Out,
    last: i64,
    /// Times between which its samples are not here,
    missing: Option<(i64, i64)>,
    /// and how it stands then.
    standing: Option<Standing>,
}

/// A simulated fleet whose sources are in a store.
pub struct Demo {
    feeds: Vec<Feed>,
    interval: i64,
    /// How far back the history goes, milliseconds.
    back: i64,
}

impl Demo {
    /// Adds a source for each machine. `now` is milliseconds since the Unix epoch, `interval` the milliseconds between
    /// ticks.
    pub fn new(store: &mut Store, fleet: &Fleet, interval: i64, now: i64) -> Self {
        let ago = if fleet.fail == Some(Fail::Idle) { IDLE_AGO_MS } else { FAULT_AGO_MS };
        let feed = |number| {
            let machine = Machine::new(fleet, number, now - ago);
            let source = store.add_source(machine.name(), interval, facts(fleet, &machine));
            store.set_checks(source, checks(fleet, &machine, number));
            let (missing, standing) = machine.fault().and_then(|fault| fault.away(number)).unzip();
            Feed { machine, source, out: Out::default(), last: i64::MIN, missing, standing: standing.flatten() }
        };
        Demo { feeds: (0..fleet.hosts).map(feed).collect(), interval, back: 0 }
    }

    /// Fills in the ticks up to `now`, `retention` milliseconds of them where the fleet is small, and says in the log how
    /// many. Returns how far back they go, milliseconds.
    pub fn fill(&mut self, store: &mut Store, fleet: &Fleet, retention: i64, clock: &dyn Clock) -> i64 {
        let begin = clock.steady();
        let now = clock.wall();
        let all = retention / self.interval;
        let each = self.pace(store, fleet, now, clock);
        let ticks = match all as f64 * each <= SMALL_FLEET_TIME.as_secs_f64() {
            true => all,
            false => {
                let affordable = (LARGE_FLEET_TIME.as_secs_f64() / each) as i64 * self.interval;
                // Whole minutes read better.
                let ticks = (affordable - affordable % 60_000).max(MIN_HISTORY_MS) / self.interval;
                ticks.max(if fleet.hosts == 1 { MIN_TICKS_ALONE } else { 0 }).min(all)
            }
        };
        for feed in &mut self.feeds {
            let last = now.div_euclid(self.interval);
            for t in (last - ticks..=last).map(|n| n * self.interval) {
                if t.div_euclid(QUARTER) != (t - self.interval).div_euclid(QUARTER) {
                    store.seal(feed.source);
                }
                feed.tick(store, t, false);
            }
        }
        let (back, took) = (ticks * self.interval, (clock.steady() - begin).as_secs_f64());
        self.back = back;
        let history = crate::config::show_duration(Duration::from_millis(back as u64));
        let Fleet { gpus, hosts, seed, .. } = *fleet;
        let whole = if back >= retention - self.interval { "all of the retention" } else { "the rest comes with time" };
        tracing::info!(gpus, hosts, seed, "simulated; {history} of history in {took:.1} s, {whole}");
        back
    }

    /// Seconds that it takes to fill in a tick of the whole fleet, by a trial on one machine.
    fn pace(&self, store: &Store, fleet: &Fleet, now: i64, clock: &dyn Clock) -> f64 {
        let limits = Limits { retention: i64::MAX / 2, bytes: usize::MAX };
        let mut trial = Store::new(store.catalog().clone(), limits);
        let mut one = Demo::new(&mut trial, &Fleet { hosts: 1, ..*fleet }, self.interval, now);
        // The first tick gives the series their numbers, which no other has to.
        one.feeds[0].tick(&mut trial, now, false);
        let begin = clock.steady();
        (1..=TRIAL_TICKS).for_each(|n| one.feeds[0].tick(&mut trial, now + n * self.interval, false));
        // Sealing a tick into columns takes about as long as encoding it.
        let each = 2.0 * (clock.steady() - begin).as_secs_f64() / TRIAL_TICKS as f64 * self.feeds.len() as f64;
        each.max(1e-9)
    }

    /// Appends what went by since the last tick, in order.
    pub fn catch_up(&mut self, live: &Live) {
        for feed in self.feeds.iter_mut().filter(|feed| feed.last > i64::MIN) {
            while feed.last + self.interval <= live.clock.wall() {
                feed.tick(&mut live.store(), feed.last + self.interval, false);
            }
        }
    }

    /// The process tables of the time before the start: the fewer the more machines there are.
    fn recall(&self, live: &Live) {
        let now = live.clock.wall();
        let each = (MAX_TABLES_BEFORE / self.feeds.len().max(1) as i64).max(1);
        let step = (self.back / each).max(PROCESSES_INTERVAL_MS);
        for feed in &self.feeds {
            let state = live.source(feed.source);
            let times = (0..=self.back / step).rev().map(|n| now - n * step);
            times.for_each(|t| state.processes.put(feed.machine.processes(t)));
        }
    }

    /// Puts the machines of a fleet into racks, by which pages group and filter.
    fn label(&self, live: &Live) {
        for (n, feed) in self.feeds.iter().enumerate().filter(|_| self.feeds.len() > 1) {
            live.set_labels(feed.source, vec![("rack".into(), format!("r{:02}", n / HOSTS_A_RACK + 1))]);
        }
    }

    /// Appends a tick at each boundary until `stop`.
    pub fn run(mut self, live: Arc<Live>, stop: Arc<AtomicBool>) {
        self.label(&live);
        self.recall(&live);
        self.catch_up(&live);
        let mut listed = live.clock.wall();
        for feed in &self.feeds {
            feed.standing.iter().for_each(|standing| live.set_standing(feed.source, standing.clone()));
        }
        while !stop.load(Ordering::Relaxed) {
            let wall = live.clock.wall();
            let t = wall.div_euclid(self.interval) * self.interval;
            let behind = self.feeds.first().map_or(t, |feed| feed.last);
            // Set back by less than a tick is no step: the tick is there already.
            if t > behind || t < behind - self.interval {
                for feed in &mut self.feeds {
                    // One machine at a time, so that readers of the store need not wait for all.
                    feed.tick(&mut live.store(), t, t < behind);
                }
                let heard = self.feeds.iter().filter(|feed| !feed.is_missing(t));
                live.announce(&heard.map(|feed| feed.source).collect::<Vec<_>>());
                if (t - listed).abs() >= PROCESSES_INTERVAL_MS {
                    listed = t;
                    self.feeds.iter().for_each(|f| live.source(f.source).processes.put(f.machine.processes(t)));
                }
            }
            let wait = self.interval - live.clock.wall().rem_euclid(self.interval);
            std::thread::sleep(Duration::from_millis(wait.min(200) as u64));
        }
    }
}

impl Feed {
    fn is_missing(&self, t: i64) -> bool {
        self.missing.is_some_and(|(from, to)| from < t && t < to)
    }

    fn tick(&mut self, store: &mut Store, t: i64, clock_step: bool) {
        if self.is_missing(t) {
            self.last = t;
            return;
        }
        self.out.begin(Duration::ZERO);
        self.machine.read(t, &mut self.out);
        // Series get their numbers in the order of the slots, and nobody else adds any to this source.
        for (_, def, instance) in self.out.news() {
            if let Some(metric) = store.catalog().position(def.tag) {
                store.intern(self.source, SeriesDef { metric, instance });
            }
        }
        store.append(self.source, t, clock_step, self.out.values());
        self.last = t;
    }
}

/// What does not change about a simulated machine, and that it is one.
fn facts(fleet: &Fleet, machine: &Machine) -> Vec<(String, String)> {
    let (size, symbol) = quantity(machine.host().memory(), Unit::Bytes);
    let place = if fleet.hosts > 1 && fleet.fail != Some(Fail::Links) { " of demo-01" } else { "" };
    let gone = machine.fault().map_or(String::new(), |fault| format!(", {}{place}", fault.what()));
    let facts = [
        ("gpus", format!("{} × {}", fleet.gpus, gpu::NAME)),
        ("cores", machine.host().cores().to_string()),
        ("memory", format!("{size} {symbol}")),
        ("simulated", format!("seed {}{gone}", fleet.seed)),
    ];
    facts.map(|(word, value)| (word.to_string(), value)).to_vec()
}

/// How the collectors would stand on such a machine.
fn checks(fleet: &Fleet, machine: &Machine, number: u32) -> Vec<Check> {
    let broken = machine.fault().and_then(|fault| fault.words(number));
    let check = |entry: &collectors::Entry| {
        let simulated = SIMULATED_COLLECTORS.contains(&entry.name);
        let found = match (simulated, entry.name) {
            (true, "nvidia") => format!("{} simulated GPUs", fleet.gpus),
            (true, _) => "simulated".to_string(),
            _ => String::new(),
        };
        let (state, reason, remedy) = match &broken {
            _ if !simulated => {
                let reason = "this machine is simulated, and its accelerators are NVIDIA's";
                (CheckState::Absent, reason.to_string(), "watchglass serve".to_string())
            }
            Some((reason, remedy)) if entry.name == "nvidia" => (CheckState::Partial, reason.clone(), remedy.clone()),
            _ => (CheckState::Ok, String::new(), String::new()),
        };
        Check { id: entry.name.into(), state, tried: Vec::new(), found, reason, remedy }
    };
    COLLECTORS.iter().map(check).collect()
}

#[cfg(test)]
mod tests;

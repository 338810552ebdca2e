//! `watchglass demo`: simulated machines through the real pipeline, for people without a GPU, for screenshots and for
//! load tests.
//!
//! Each machine is a source of the store. Its readings are a function of the seed, the machine, the device and the
//! time, and the timetable of its job fits the start. So their past is simulated too. Read `job.rs` (the job of a rack),
//! then `drive.rs` and `machine.rs` (its state on one machine), `gpu.rs`, `host.rs` and `processes.rs` (the readings),
//! then `fault.rs` (faults), `runs.rs` (records of launchers), `values.rs` (values of the job), `past.rs` (the history)
//! and `pace.rs` (warnings when this machine is too slow).
//!
//! It adds no metric of its own, and reads nothing of the machine that it runs on.

mod drive;
mod fault;
mod gpu;
mod host;
mod job;
mod machine;
mod noise;
mod pace;
mod past;
mod processes;
mod runs;
mod slots;
mod values;

use crate::config::{Fail, Fleet};
use collectors::COLLECTORS;
use machine::Machine;
use pace::Pace;
use past::{FINE_MS, Filler, MachinePast};
use shared::catalog::job::SECTION as JOB_VALUES;
use shared::connection_state::ConnectionState;
use shared::unit::{Unit, quantity};
use shared::wire::{Check, CheckState, SourceId};
use slots::MachineSlots;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use stream::clock::Clock;
use stream::live::Live;
use stream::store::{Limits, Store};

/// Age of a fault at the start, milliseconds.
const FAULT_AGO_MS: i64 = 180_000;
/// Age of a fault that is reported only after it has lasted, milliseconds.
const IDLE_AGO_MS: i64 = 20 * 60_000;
/// A past that takes longer than this to make is not made completely before the start.
const SMALL_FLEET_TIME: Duration = Duration::from_secs(3);
/// Then this much time is spent on it.
const LARGE_FLEET_TIME: Duration = Duration::from_secs(1);
/// Minimum history before the start, so that a fault's begin is visible, milliseconds.
const MIN_HISTORY_MS: i64 = 240_000;
/// The same minimum for a single machine: enough for the baselines of findings and the comparisons of a page.
const MIN_HISTORY_ALONE_MS: i64 = FINE_MS;
/// Ticks of the trial that measures the pace.
const TRIAL_TICKS: i64 = 60;
/// Between two process tables: milliseconds.
const PROCESSES_INTERVAL_MS: i64 = 5_000;
/// Process tables of the time before the start, over all machines; more would delay it.
const MAX_TABLES_BEFORE: i64 = 720;

/// Collectors whose families the demo simulates.
const SIMULATED_COLLECTORS: &[&str] =
    &["cpu", "memory", "pressure", "disk", "disk_usage", "network", "process", JOB_VALUES, "nvidia"];

/// A machine and its source.
struct Feed {
    machine: Arc<Machine>,
    source: SourceId,
    slots: MachineSlots,
    values: Vec<f64>,
    last: i64,
    /// Runs are reported up to this time, milliseconds since the Unix epoch.
    told: i64,
    /// Time range of its missing samples,
    missing: Option<(i64, i64)>,
    /// and its connection state meanwhile.
    connection_state: Option<ConnectionState>,
}

/// A simulated fleet whose sources are in a store.
pub struct Demo {
    feeds: Vec<Feed>,
    /// The missing part of the time before the start.
    filler: Filler,
    pace: Pace,
    interval: i64,
    /// Length of the complete history, milliseconds.
    back: i64,
}

impl Demo {
    /// Adds a source for each machine. `now` is milliseconds since the Unix epoch, `interval` the milliseconds between
    /// ticks.
    pub fn new(store: &mut Store, fleet: &Fleet, interval: i64, now: i64) -> Self {
        let ago = if fleet.fail == Some(Fail::Idle) { IDLE_AGO_MS } else { FAULT_AGO_MS };
        let feed = |number| {
            let machine = Arc::new(Machine::new(fleet, number, now - ago).under_way(now));
            let source = store.add_source(machine.name(), interval, facts(fleet, &machine));
            store.set_checks(source, checks(fleet, &machine, number));
            let (missing, connection_state) = machine.fault().and_then(|fault| fault.away(number)).unzip();
            Feed {
                machine,
                source,
                slots: MachineSlots::default(),
                values: Vec::new(),
                last: i64::MIN,
                told: i64::MIN,
                missing,
                connection_state: connection_state.flatten(),
            }
        };
        let every = crate::config::show_duration(Duration::from_millis(interval as u64));
        let machines = if fleet.hosts == 1 { "machine" } else { "machines" };
        let gpus = if fleet.gpus == 1 { "GPU" } else { "GPUs" };
        let what = format!("{} {machines} with {} {gpus} each every {every}", fleet.hosts, fleet.gpus);
        Demo {
            feeds: (0..fleet.hosts).map(feed).collect(),
            filler: Filler { pasts: Vec::new(), bytes: 0, most: usize::MAX, ticked: Arc::default() },
            pace: Pace::new(interval, what),
            interval,
            back: 0,
        }
    }

    /// Adds the newest ticks up to `now`: `retention` milliseconds of them if that is quick, else the minimum. The
    /// rest is added while it [runs](Self::run), in at most `most` bytes. Logs the number of ticks, and returns the
    /// length of the added history, milliseconds.
    pub fn fill(
        &mut self,
        store: &mut Store,
        fleet: &Fleet,
        (retention, most): (i64, usize),
        clock: &dyn Clock,
    ) -> i64 {
        let begin = clock.steady();
        let now = clock.wall();
        let all = retention / self.interval;
        let each = self.pace(store, fleet, now, clock);
        let ticks = match all as f64 * each <= SMALL_FLEET_TIME.as_secs_f64() {
            true => all,
            false => {
                let affordable = (LARGE_FLEET_TIME.as_secs_f64() / each) as i64 * self.interval;
                let least = if fleet.hosts == 1 { MIN_HISTORY_ALONE_MS } else { MIN_HISTORY_MS };
                // Whole minutes are easier to read.
                ((affordable - affordable % 60_000).max(least) / self.interval).min(all)
            }
        };
        let last = now.div_euclid(self.interval);
        self.filler.most = most;
        for feed in &mut self.feeds {
            let away = |n: i64| feed.is_missing(n * self.interval);
            // The newest present instant is a tick, like those that follow; earlier ones are added as blocks.
            let newest =
                if away(last) { feed.missing.map_or(last, |(from, _)| from.div_euclid(self.interval)) } else { last };
            let span = (last - all, newest);
            let mut past =
                MachinePast::new(&feed.machine, feed.source, self.interval, span, feed.missing, fleet.hosts == 1);
            self.filler.bytes += past.fill(store, last - ticks);
            store.go_on_above(feed.source, past.seq(newest) - 1);
            feed.tick(store, newest * self.interval, false);
            feed.last = last * self.interval;
            self.filler.pasts.push(past);
        }
        self.back = all * self.interval;
        let (back, took) = (ticks * self.interval, (clock.steady() - begin).as_secs_f64());
        let history = crate::config::show_duration(Duration::from_millis(back as u64));
        let Fleet { gpus, hosts, seed, .. } = *fleet;
        let whole = if ticks == all { "full retention" } else { "older history follows, newest first" };
        tracing::info!(gpus, hosts, seed, "simulated; {history} of history in {took:.1} s, {whole}");
        back
    }

    /// Seconds to make a tick of the whole fleet, by a trial on one machine.
    fn pace(&self, store: &Store, fleet: &Fleet, now: i64, clock: &dyn Clock) -> f64 {
        let limits = Limits { retention: i64::MAX / 2, bytes: usize::MAX };
        let mut trial = Store::new(store.catalog().clone(), limits);
        let one = Demo::new(&mut trial, &Fleet { hosts: 1, ..*fleet }, self.interval, now);
        let last = now.div_euclid(self.interval);
        let Some(Feed { machine, source, .. }) = one.feeds.first() else { return 1e-9 };
        let mut past = MachinePast::new(machine, *source, self.interval, (last - TRIAL_TICKS - 1, last), None, true);
        // The first tick numbers the series, so it is not measured.
        past.fill(&mut trial, last - 1);
        let begin = clock.steady();
        past.fill(&mut trial, i64::MIN);
        let each = (clock.steady() - begin).as_secs_f64() / TRIAL_TICKS as f64 * self.feeds.len() as f64;
        each.max(1e-9)
    }

    /// Appends the instants since the last tick, in order.
    pub fn catch_up(&mut self, live: &Live) {
        for feed in self.feeds.iter_mut().filter(|feed| feed.last > i64::MIN) {
            while feed.last + self.interval <= live.clock.wall() {
                feed.tick(&mut live.store(), feed.last + self.interval, false);
            }
        }
    }

    /// The process tables of the time before the start: fewer tables per machine in larger fleets.
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

    /// Before the first request: sets the rack of each machine of a fleet, by which pages group and filter, the
    /// records of its launchers, and the missing part of its past.
    pub fn introduce(&mut self, live: &Live) {
        let (now, alone) = (live.clock.wall(), self.feeds.len() == 1);
        for feed in &mut self.feeds {
            if !alone {
                let (rack, ..) = feed.machine.place();
                live.set_labels(feed.source, vec![("rack".into(), format!("r{:02}", rack + 1))]);
            }
            feed.told = feed.machine.run_begin(now - self.back) - 1;
            feed.tell_runs(live, now);
            feed.connection_state
                .iter()
                .for_each(|connection_state| live.set_connection_state(feed.source, connection_state.clone()));
        }
        self.filler.ticked.store(now, Ordering::Relaxed);
        self.filler.begin(live);
    }

    /// Appends a tick at each boundary until `stop`, once it was [introduced](Self::introduce), and adds the missing
    /// past meanwhile. Calls `learned` once the history is long enough for the baselines of findings.
    pub fn run(mut self, live: Arc<Live>, stop: Arc<AtomicBool>, learned: impl FnOnce() + Send + 'static) {
        self.recall(&live);
        self.catch_up(&live);
        self.filler.ticked.store(live.clock.wall(), Ordering::Relaxed);
        let (pasts, ticked) = (std::mem::take(&mut self.filler.pasts), self.filler.ticked.clone());
        let filler = Filler { pasts, ticked, ..self.filler };
        let (theirs, told) = (live.clone(), stop.clone());
        let fill = move || filler.run(&theirs, &told, learned);
        if let Err(error) = std::thread::Builder::new().name("demo-past".into()).spawn(fill) {
            tracing::error!(%error, "the past stays as it is: the thread that fills it in could not be started");
        }
        let mut listed = live.clock.wall();
        while !stop.load(Ordering::Relaxed) {
            self.step(&live, &mut listed);
            let wait = self.interval - live.clock.wall().rem_euclid(self.interval);
            std::thread::sleep(Duration::from_millis(wait.min(200) as u64));
        }
    }

    /// Appends the tick of the newest boundary, unless it is there. `listed` is the time of the last process tables.
    fn step(&mut self, live: &Live, listed: &mut i64) {
        let wall = live.clock.wall();
        let t = wall.div_euclid(self.interval) * self.interval;
        let before = self.feeds.first().map_or(t, |feed| feed.last);
        // A clock set back by less than a tick is no step: the tick is there already.
        if t <= before && t >= before - self.interval {
            return;
        }
        for feed in &mut self.feeds {
            // One machine at a time, so readers of the store never wait for all.
            feed.tick(&mut live.store(), t, t < before);
            feed.tell_runs(live, t);
        }
        let heard = self.feeds.iter().filter(|feed| !feed.is_missing(t));
        live.announce(&heard.map(|feed| feed.source).collect::<Vec<_>>());
        self.filler.ticked.store(t, Ordering::Relaxed);
        self.pace.tell(live, t, ((t - before) / self.interval - 1).max(0));
        if (t - *listed).abs() >= PROCESSES_INTERVAL_MS {
            *listed = t;
            self.feeds.iter().for_each(|f| live.source(f.source).processes.put(f.machine.processes(t)));
        }
    }
}

impl Feed {
    fn is_missing(&self, t: i64) -> bool {
        self.missing.is_some_and(|(from, to)| from < t && t < to)
    }

    fn tick(&mut self, store: &mut Store, t: i64, clock_step: bool) {
        self.last = t;
        if self.is_missing(t) {
            return;
        }
        self.slots.read(&self.machine, t);
        self.slots.number(store, self.source);
        self.values.clear();
        self.values.resize(store.series(self.source, 0).len(), f64::NAN);
        for (slot, id, _) in self.slots.numbered() {
            let value = self.slots.values().get(slot).filter(|value| value.is_finite());
            if let Some((place, value)) = self.values.get_mut(id as usize).zip(value) {
                *place = *value;
            }
        }
        store.append(self.source, t, clock_step, &self.values);
    }

    /// Adds the records of its launchers up to an instant.
    fn tell_runs(&mut self, live: &Live, to: i64) {
        // A machine with a cut link sends nothing.
        let to = self.missing.filter(|_| self.is_missing(to)).map_or(to, |(from, _)| from);
        if to <= self.told {
            return;
        }
        for record in self.machine.list_records(self.told, to) {
            if let Err(error) = live.append_record(self.source, record.t, record.kind, record.body) {
                tracing::debug!(%error, "a record of a run was not taken");
            }
        }
        self.told = to;
    }
}

/// Constant facts of a simulated machine, and the fact that it is simulated.
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

/// States of the collectors on such a machine.
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

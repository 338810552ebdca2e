//! Calls the collectors on the second's boundary, stamps the tick once, and appends it.
//!
//! At a boundary every idle part of a collector gets a request. The tick closes when all of them have answered, at the
//! latest [`tick_timeout`] after the boundary. A later answer goes once into the next tick, unless that has a newer
//! one. A busy part gets no further request, so nothing piles up behind a hung driver. Past its deadline it counts as
//! hung, and a later answer is dropped. `worker.rs` has the threads: a part that does not answer has one for itself.
//! Exit never joins them.

mod checks;
mod others;
mod uplinks;
mod worker;

use checks::Checks;
use collectors::{Entry, Options, Part, Roots, monitor};
use shared::catalog::{Chart, Metric, MetricDef};
use shared::series::{SeriesDef, SeriesId};
use shared::wire::SourceId;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use stream::clock::Clock;
use stream::live::Live;
use stream::throttle::Throttle;
use worker::{ReadingReport, Request, Round, Sensor, ThreadPool, WorkerEvent};

/// Settings of the sampler.
pub struct Plan {
    /// Collectors to run.
    pub chosen: Vec<Chosen>,
    /// The user's options for them.
    pub options: Options,
    /// Folders that they read.
    pub roots: Roots,
    /// Time between ticks.
    pub interval: Duration,
}

/// A collector and its pace.
#[derive(Clone, Copy)]
pub struct Chosen {
    /// The row of the registration table.
    pub entry: &'static Entry,
    /// Time between its readings, at least the interval.
    pub every: Duration,
    /// Time after which a reading counts as hung.
    pub deadline: Duration,
}

/// Maximum time that a tick waits for its collectors.
fn tick_timeout(interval: Duration) -> Duration {
    (interval / 4).min(Duration::from_millis(250))
}

/// Delays before retries of a collector that did not open: short once, then long.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(300)];

/// Section of the sampler's own measurements.
const MONITOR: &str = "monitor";

/// The number of a slot's series, and the version of that number; a slot without room for its series has none.
type Slot = Option<(SeriesId, u32)>;

/// Ticks after which a series without room is retried.
const RETRY_SERIES_TICKS: u64 = 60;

/// The sampler's state of one part.
struct Running {
    entry: usize,
    /// Its collector; none during a reading, and after a panic.
    sensor: Option<Box<Sensor>>,
    /// Duration of its last reading, microseconds.
    took: u64,
    /// Series of the part's slots.
    ids: Vec<Slot>,
    micros: SeriesId,
    ok: SeriesId,
    /// Tick of its pending request.
    asked: Option<u64>,
    /// Steady time of its last request.
    at: Option<Duration>,
    hung: bool,
    /// An answer that is in no tick yet.
    answer: Option<ReadingReport>,
}

/// State of a collector that is not open: being opened, or waiting for its retry.
#[derive(Clone, Copy)]
enum Opening {
    Open,
    /// `since`: the first tick in this state.
    Trying {
        since: Option<Duration>,
        hung: bool,
    },
    Waiting {
        tries: usize,
        since: Duration,
    },
}

struct Sampler {
    live: Arc<Live>,
    clock: Arc<dyn Clock>,
    source: SourceId,
    plan: Plan,
    /// Time that a tick waits for its collectors.
    tick_timeout: Duration,
    parts: Vec<Running>,
    openings: Vec<Opening>,
    tries: Vec<usize>,
    checks: Checks,
    /// Position of a row in the catalog by the row's address.
    rows: HashMap<usize, (u16, u64)>,
    events: Receiver<WorkerEvent>,
    sender: SyncSender<WorkerEvent>,
    pool: ThreadPool,
    /// The quick readings of the last tick.
    quick: Arc<Round>,
    ticks: u64,
    late: u64,
    clock_steps: u64,
    /// Warnings about missing threads.
    no_thread: Throttle,
    /// The last known version of the GPUs' facts.
    gpus: u64,
    /// Other machines that were told of recently, by host name.
    told: BTreeMap<String, others::ToldMachine>,
    values: Vec<f64>,
}

/// Runs until `stop`. Ticks are appended to its store under `source`.
pub fn run(live: Arc<Live>, source: SourceId, plan: Plan, stop: Arc<AtomicBool>) {
    let interval = plan.interval;
    let mut sampler = Sampler::new(live, source, plan);
    sampler.lose_earlier();
    sampler.open_all();
    // Time for the collectors to open, so that the first tick is immediate and complete.
    sampler.settle(Duration::from_millis(200));
    let (wall, steady) = (sampler.clock.wall(), sampler.clock.steady());
    sampler.tick(wall, steady, false);
    let mut pace = Pace::new(wall, steady, interval);
    // A boundary this close gives rates too short an interval, and collectors would get no request at it.
    let mut skip = until_boundary(wall, interval) <= interval / 2;
    loop {
        let wait = until_boundary(sampler.clock.wall(), interval);
        sampler.rest(wait, &stop);
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let (wall, steady) = (sampler.clock.wall(), sampler.clock.steady());
        if std::mem::take(&mut skip) {
            continue;
        }
        if let Some(beat) = pace.next(wall, steady) {
            sampler.clock_steps += u64::from(beat.clock_step);
            sampler.late += beat.missed;
            sampler.tick(beat.t, steady, beat.clock_step);
        }
    }
}

/// Time to the next multiple of the interval. Wall time is cut to milliseconds, so this wakes just after it, never
/// before.
fn until_boundary(wall: i64, interval: Duration) -> Duration {
    let step = interval.as_millis() as i64;
    Duration::from_millis((step - wall.rem_euclid(step)) as u64)
}

/// The cadence: the instant of a tick's stamp, and the clock steps and gaps since the one before.
struct Pace {
    interval: i64,
    /// Stamp of the tick before.
    last: i64,
    /// Both clocks at the last call.
    wall: i64,
    steady: Duration,
}

/// One tick's place in the cadence.
#[derive(Debug, PartialEq, Eq)]
struct Beat {
    /// Stamp, milliseconds since the Unix epoch: the boundary, so that hosts line up.
    t: i64,
    /// The wall clock was set since the tick before.
    clock_step: bool,
    /// Boundaries that passed without a tick.
    missed: u64,
}

impl Pace {
    fn new(wall: i64, steady: Duration, interval: Duration) -> Self {
        Pace { interval: interval.as_millis() as i64, last: wall, wall, steady }
    }

    /// None when this boundary has had its tick.
    fn next(&mut self, wall: i64, steady: Duration) -> Option<Beat> {
        // Woken early by a clock that is being slewed: the boundary ahead counts. Woken late: the one behind.
        let t = (wall + (self.interval / 8).min(10)).div_euclid(self.interval) * self.interval;
        let passed = steady.saturating_sub(self.steady).as_millis() as i64;
        let clock_step = (wall - self.wall - passed).abs() > (self.interval / 2).max(200);
        (self.wall, self.steady) = (wall, steady);
        if t <= self.last && !clock_step {
            return None;
        }
        let missed = if clock_step { 0 } else { ((t - self.last) / self.interval - 1).max(0) as u64 };
        self.last = t;
        Some(Beat { t, clock_step, missed })
    }
}

impl Sampler {
    fn new(live: Arc<Live>, source: SourceId, plan: Plan) -> Self {
        // Capacity for every thread to answer while the sampler sleeps; a thread that finds it full waits.
        let (sender, events) = sync_channel(256);
        let n = plan.chosen.len();
        Sampler {
            clock: live.clock.clone(),
            source,
            parts: Vec::new(),
            openings: vec![Opening::Waiting { tries: 0, since: Duration::ZERO }; n],
            tries: vec![0; n],
            checks: Checks::new(plan.chosen.iter().map(|c| c.entry)),
            rows: HashMap::new(),
            events,
            pool: ThreadPool::new(sender.clone()),
            quick: Arc::default(),
            sender,
            ticks: 0,
            late: 0,
            clock_steps: 0,
            no_thread: Throttle::new(),
            gpus: 0,
            told: BTreeMap::new(),
            values: Vec::new(),
            tick_timeout: tick_timeout(plan.interval),
            plan,
            live,
        }
    }

    fn open_all(&mut self) {
        (0..self.plan.chosen.len()).for_each(|entry| self.open(entry));
    }

    fn open(&mut self, entry: usize) {
        self.openings[entry] = Opening::Trying { since: None, hung: false };
        worker::open(entry, self.plan.chosen[entry].entry, &self.plan.options, &self.plan.roots, self.sender.clone());
    }

    /// Waits until every collector has opened or failed to, at most `most`.
    fn settle(&mut self, most: Duration) {
        let end = Instant::now() + most;
        while self.openings.iter().any(|o| matches!(o, Opening::Trying { .. })) {
            let Ok(event) = self.events.recv_timeout(end.saturating_duration_since(Instant::now())) else { break };
            self.take(event);
        }
    }

    /// Sleeps, taking in late answers, in slices short enough to end within a second.
    fn rest(&mut self, wait: Duration, stop: &AtomicBool) {
        let end = Instant::now() + wait;
        while !stop.load(Ordering::Relaxed) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            match self.events.recv_timeout(left.min(Duration::from_secs(1))) {
                Ok(event) => self.take(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn take(&mut self, event: WorkerEvent) {
        match event {
            WorkerEvent::Opened { entry, parts } => self.start(entry, parts),
            WorkerEvent::NotOpened { entry, error } => {
                let tries = self.tries[entry];
                self.tries[entry] += 1;
                self.openings[entry] = Opening::Waiting { tries, since: self.clock.steady() };
                self.checks.not_opened(entry, error);
            }
            WorkerEvent::Free { thread, reports } => {
                self.pool.freed(thread);
                reports.into_iter().for_each(|report| self.take_report(report));
            }
        }
    }

    fn start(&mut self, entry: usize, parts: Vec<Part>) {
        self.openings[entry] = Opening::Open;
        self.checks.opened(entry, &parts);
        for part in parts {
            let name = self.plan.chosen[entry].entry.name;
            let instance = if part.name.is_empty() { name.to_string() } else { format!("{name}:{}", part.name) };
            let (Some(micros), Some(ok)) = (
                self.intern(&monitor::MICROS, instance.clone(), MONITOR),
                self.intern(&monitor::OK, instance.clone(), MONITOR),
            ) else {
                continue;
            };
            self.parts.push(Running {
                entry,
                sensor: Some(Sensor::new(part)),
                took: 0,
                ids: Vec::new(),
                micros,
                ok,
                asked: None,
                at: None,
                hung: false,
                answer: None,
            });
        }
    }

    /// The series of a row, which is added to the catalog in `section` if it is missing.
    fn intern(&mut self, def: &'static MetricDef, instance: String, section: &str) -> Option<SeriesId> {
        self.intern_on(self.source, def, instance, section)
    }

    /// As [`Self::intern`], on the source of another machine.
    fn intern_on(
        &mut self,
        source: SourceId,
        def: &'static MetricDef,
        instance: String,
        section: &str,
    ) -> Option<SeriesId> {
        let mut store = self.live.store();
        let row = std::ptr::from_ref(def).addr();
        // A row that was absent for long may have lost its number to another.
        let is = |known: &&(u16, u64)| store.row_version(known.0) == known.1;
        let metric = match self.rows.get(&row).filter(is) {
            Some((metric, _)) => *metric,
            None => {
                let chart = Chart { id: def.chart.into(), title: def.title.into(), section: section.into() };
                let metric = store.add_row_of(Some(source), Metric::from(def), chart)?;
                self.rows.insert(row, (metric, store.row_version(metric)));
                metric
            }
        };
        store.intern(source, SeriesDef { metric, instance })
    }

    fn slot(&mut self, def: &'static MetricDef, instance: String, section: &str) -> Slot {
        let id = self.intern(def, instance, section)?;
        Some((id, *self.live.store().generations(self.source).get(id as usize)?))
    }

    /// Renews the numbers of series that were absent for so long that theirs were reused, and of series without room.
    fn renew(&mut self) {
        let again = self.ticks.is_multiple_of(RETRY_SERIES_TICKS);
        let mut stale = Vec::new();
        {
            let store = self.live.store();
            let generations = store.generations(self.source);
            for (index, part) in self.parts.iter().enumerate() {
                let values = part.answer.iter().flat_map(|report| &report.values);
                let present = part.ids.iter().zip(values).enumerate().filter(|(_, (_, v))| v.is_finite());
                let old = |slot: &Slot| slot.map_or(again, |(id, of)| generations.get(id as usize) != Some(&of));
                stale.extend(present.filter(|(_, (slot, _))| old(slot)).map(|(at, _)| (index, at)));
            }
        }
        for (index, at) in stale {
            let part = &self.parts[index];
            let section = self.plan.chosen[part.entry].entry.name;
            if let Some((def, instance)) = part.sensor.as_ref().and_then(|sensor| sensor.slot(at)) {
                self.parts[index].ids[at] = self.slot(def, instance, section);
            }
        }
    }

    /// Takes an answer, in time or late.
    fn take_report(&mut self, mut report: ReadingReport) {
        for (slot, def, instance) in std::mem::take(&mut report.new) {
            let section = self.plan.chosen[self.parts[report.part].entry].entry.name;
            let id = self.slot(def, instance, section);
            let ids = &mut self.parts[report.part].ids;
            ids.resize(ids.len().max(slot + 1), None);
            ids[slot] = id;
        }
        let part = &mut self.parts[report.part];
        part.asked = None;
        part.hung = false;
        (part.sensor, part.took) = (report.sensor.take(), report.micros);
        self.checks.answered(part.entry, report.part, &report.result);
        let in_time = Duration::from_micros(report.micros) <= self.plan.chosen[part.entry].deadline;
        part.answer = in_time.then_some(report);
    }

    /// Sends a request to every idle part, waits for the answers, and appends the values.
    fn tick(&mut self, t: i64, steady: Duration, clock_step: bool) {
        self.ticks += 1;
        let number = self.ticks;
        self.retry(steady);
        // Parts that were delayed in the last round get a new request, without the slow ones.
        let (held_up, late) = self.quick.give_up();
        late.into_iter().for_each(|report| self.take_report(report));
        for request in held_up {
            let part = &mut self.parts[request.part];
            (part.sensor, part.asked, part.at) = (Some(request.sensor), None, None);
        }
        let (mut quick, mut rounds) = (Vec::new(), Vec::new());
        for index in 0..self.parts.len() {
            let part = &mut self.parts[index];
            let chosen = self.plan.chosen[part.entry];
            let since = part.at.map(|at| steady.saturating_sub(at));
            match part.asked {
                // Half an interval of tolerance: boundaries are not met to the microsecond.
                None if since.is_some_and(|since| since + self.plan.interval / 2 < chosen.every) => {}
                None => {
                    let Some(sensor) = part.sensor.take() else { continue };
                    (part.at, part.asked) = (Some(steady), Some(number));
                    let request = Request { part: index, at: steady, wall: t, sensor };
                    match part.took > worker::SLOW_MICROS {
                        true => rounds.push(vec![request]),
                        false => quick.push(request),
                    }
                }
                Some(_) if since.is_some_and(|since| since > chosen.deadline) && !part.hung => {
                    part.hung = true;
                    self.checks.hung(part.entry, index, chosen.deadline);
                }
                Some(_) => {}
            }
        }
        rounds.into_iter().for_each(|round| drop(self.ask(round)));
        self.quick = self.ask(quick);
        self.gather(number);
        self.append(t, steady, clock_step);
    }

    /// Starts these readings, one after the other.
    fn ask(&mut self, requests: Vec<Request>) -> Arc<Round> {
        let round = Round::new(requests);
        if round.waits()
            && let Err(error) = self.pool.start(&round)
        {
            self.warn_of_no_thread(&error);
            for request in round.give_up().0 {
                let part = &mut self.parts[request.part];
                (part.sensor, part.asked) = (Some(request.sensor), None);
                self.checks.no_thread(part.entry, request.part);
            }
        }
        round
    }

    fn warn_of_no_thread(&mut self, error: &std::io::Error) {
        if let Some(before) = self.no_thread.came(Instant::now()) {
            tracing::warn!(%error, before, "cannot start a thread to read with");
        }
    }

    /// Waits for the answers of this tick.
    fn gather(&mut self, number: u64) {
        let quick = self.quick.clone();
        let begin = Instant::now();
        let (end, mut hold) = (begin + self.tick_timeout, begin + worker::HELP_AFTER);
        while self.parts.iter().any(|p| p.asked == Some(number)) {
            let wait = end.min(hold).saturating_duration_since(Instant::now());
            if let Ok(event) = self.events.recv_timeout(wait) {
                self.take(event);
                continue;
            }
            // One of them keeps a thread busy: the readings before it are there, and those after it need not wait.
            quick.reports().into_iter().for_each(|report| self.take_report(report));
            if quick.wants_help()
                && let Err(error) = self.pool.start(&quick)
            {
                self.warn_of_no_thread(&error);
            }
            if Instant::now() >= end {
                return;
            }
            // The thread that has begun the last reading of a round signals its end.
            hold = if quick.waits() { Instant::now() + worker::HELP_AFTER } else { end };
        }
    }

    fn append(&mut self, t: i64, steady: Duration, clock_step: bool) {
        let late = self.intern(&monitor::LATE, String::new(), MONITOR);
        let steps = self.intern(&monitor::CLOCK_STEPS, String::new(), MONITOR);
        let uplinks = self.uplinks();
        let checks = self.checks.changed();
        self.renew();
        let gpus = self.plan.options.gpu_numbers.version();
        let facts = (std::mem::replace(&mut self.gpus, gpus) != gpus).then(|| self.plan.options.gpu_numbers.facts());
        let mut store = self.live.store();
        facts.into_iter().for_each(|facts| store.add_facts(self.source, facts));
        self.values.clear();
        self.values.resize(store.series(self.source, 0).len(), f64::NAN);
        let generations = store.generations(self.source);
        let mut put = |id: SeriesId, value: f64| {
            if let Some(slot) = self.values.get_mut(id as usize) {
                *slot = value;
            }
        };
        for part in &mut self.parts {
            if let Some(report) = part.answer.take() {
                for (slot, &v) in part.ids.iter().zip(&report.values) {
                    if let Some((id, _)) = slot.filter(|(id, of)| generations.get(*id as usize) == Some(of)) {
                        put(id, v);
                    }
                }
                put(part.micros, report.micros as f64);
                put(part.ok, f64::from(u8::from(report.result.is_ok())));
            } else if part.at == Some(steady) || part.asked.is_some() || part.sensor.is_none() {
                put(part.ok, 0.0);
            }
        }
        uplinks.into_iter().for_each(|(id, value)| put(id, value));
        for (id, value) in [(late, self.late), (steps, self.clock_steps)] {
            if let Some(id) = id {
                put(id, value as f64);
            }
        }
        if let Some(checks) = checks {
            store.set_checks(self.source, checks);
        }
        drop(store);
        self.live.append(self.source, t, clock_step, &self.values);
        self.live.announce(&[self.source]);
        self.append_others(t, steady, clock_step);
    }

    fn retry(&mut self, now: Duration) {
        for entry in 0..self.openings.len() {
            match &mut self.openings[entry] {
                Opening::Waiting { tries, since }
                    if now.saturating_sub(*since) >= RETRY_DELAYS[(*tries).min(RETRY_DELAYS.len() - 1)] =>
                {
                    self.open(entry);
                }
                Opening::Trying { since, hung: hung @ false } => {
                    let deadline = self.plan.chosen[entry].deadline;
                    if now.saturating_sub(*since.get_or_insert(now)) > deadline {
                        *hung = true;
                        self.checks.hangs_opening(entry, deadline);
                    }
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! The time before the start, as late blocks: the newest before the first request, the rest beside the live ticks,
//! newest first.
//!
//! A fleet of 64 machines has a thousand million samples in 12 h: to make and store all of them would cost minutes of
//! a core and a gigabyte. So a fleet's past has a reading at each tick of the newest time, which findings use as
//! baseline, and before that one every 30 seconds. Between two readings a gauge is constant, and a counter grows
//! evenly. Charts, rates and queries see a tick at each interval, and such columns take less memory and time.

use super::machine::Machine;
use super::slots::MachineSlots;
use shared::catalog::Kind;
use shared::column;
use shared::connection_state::ConnectionState;
use shared::wire::SourceId;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;
use stream::live::{LinkFigures, Live};
use stream::store::{Chunk, Column, QUARTER, Store};

/// Length of the newest past with a reading at each tick, milliseconds: more than the baselines of findings need.
pub(super) const FINE_MS: i64 = 75 * 60_000;
/// Time between two readings before that, milliseconds.
pub(super) const RARE_MS: i64 = 30_000;
/// Blocks of that time begin at multiples of this, like blocks on disk, milliseconds.
const HOUR_MS: i64 = 4 * QUARTER;
/// Approximate number of values in memory at once: 32 MiB.
const MAX_VALUES: i64 = 4 << 20;
/// Number of checks per pause: while live ticks are late, it pauses after each block, and checks this often for
/// recovery.
const REST_LOOKS: u32 = 10;
/// Age in intervals above which the newest live tick is late,
const MAX_AGE_INTERVALS: i64 = 3;
/// with a minimum in milliseconds.
const MIN_LATE_MS: i64 = 3_000;
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// The missing past of one machine.
pub(super) struct MachinePast {
    machine: Arc<Machine>,
    source: SourceId,
    slots: MachineSlots,
    /// Between ticks, milliseconds. An instant's number is its time in these.
    interval: i64,
    /// Number of the oldest instant.
    first: i64,
    /// Number behind the newest missing instant.
    next: i64,
    /// From this number on each instant has a reading.
    fine: i64,
    /// Instants between two readings before that.
    grain: i64,
    /// Time range of missing samples.
    missing: Option<(i64, i64)>,
}

impl MachinePast {
    /// The past of a machine from number `first` up to `next`, exclusive. With `alone` each instant has a reading.
    pub fn new(
        machine: &Arc<Machine>,
        source: SourceId,
        interval: i64,
        (first, next): (i64, i64),
        missing: Option<(i64, i64)>,
        alone: bool,
    ) -> Self {
        let grain = if alone { 1 } else { (RARE_MS / interval).max(1) };
        let fine = next - FINE_MS / interval;
        MachinePast {
            machine: machine.clone(),
            source,
            slots: MachineSlots::default(),
            interval,
            first,
            next,
            fine,
            grain,
            missing,
        }
    }

    /// Sequence of an instant: from 1 on.
    pub fn seq(&self, number: i64) -> u64 {
        (number - self.first + 1).max(1) as u64
    }

    /// Missing time, milliseconds.
    fn lacks(&self) -> i64 {
        (self.next - self.first).max(0) * self.interval
    }

    /// The newest missing span, and the instants between its readings; none when nothing is missing.
    fn span(&self) -> Option<(i64, i64, i64)> {
        if self.next <= self.first {
            return None;
        }
        let (grain, length) = if self.next > self.fine { (1, QUARTER) } else { (self.grain, HOUR_MS) };
        let begin = ((self.next - 1) * self.interval).div_euclid(length) * length;
        let most = (MAX_VALUES / self.slots.len().max(1) as i64 * grain).max(grain);
        let begin = (begin + self.interval - 1).div_euclid(self.interval).max(self.first).max(self.next - most);
        Some((begin, self.next, grain))
    }

    /// Makes the blocks of the newest missing span, down to number `least`; none when nothing is missing. `number`
    /// gets access to the store for a moment.
    pub fn make(&mut self, least: i64, number: impl FnOnce(&mut MachineSlots)) -> Option<Vec<Arc<Chunk>>> {
        let (begin, end, grain) = self.span()?;
        let begin = begin.max(least.min(end - 1));
        let key = |n: i64| n.div_euclid(grain) * grain;
        let keys = (key(begin)..=key(end - 1) + grain).step_by(grain as usize);
        let count = if grain == 1 { (end - begin) as usize } else { usize::MAX };
        let mut readings: Vec<Vec<f64>> = Vec::new();
        for n in keys.take(count) {
            self.slots.read(&self.machine, n * self.interval);
            readings.push(self.slots.values().to_vec());
        }
        number(&mut self.slots);
        self.next = begin;
        let away = |n: &i64| self.missing.is_some_and(|(from, to)| (from + 1..to).contains(&(n * self.interval)));
        let here: Vec<i64> = (begin..end).filter(|n| !away(n)).collect();
        let whole = here.chunk_by(|a, b| b - a == 1);
        Some(whole.map(|some| Arc::new(self.chunk(some, grain, key(begin), &readings))).collect())
    }

    /// A block of consecutive instants.
    fn chunk(&self, instants: &[i64], grain: i64, begin: i64, readings: &[Vec<f64>]) -> Chunk {
        let times: Vec<i64> = instants.iter().map(|n| n * self.interval).collect();
        let mut columns = Vec::new();
        for (slot, id, row) in self.slots.numbered() {
            let at = |key: usize| readings.get(key).and_then(|values| values.get(slot)).copied().unwrap_or(f64::NAN);
            let value = |n: &i64| {
                let (key, part) = (((n - begin) / grain) as usize, (n - begin) % grain);
                let (before, after) = (at(key), if part == 0 { f64::NAN } else { at(key + 1) });
                // A falling counter was reset in between.
                let grows = row.kind == Kind::Counter && after >= before;
                let between = before + (after - before) * part as f64 / grain as f64;
                if grows { row.rounded(between) } else { before }
            };
            let values: Vec<f64> = instants.iter().map(value).collect();
            let samples = values.iter().filter(|value| value.is_finite()).count() as u64;
            if samples > 0 {
                let raw = column::encode(&values, row.steps).into_boxed_slice();
                columns.push(Column { id, raw, samples });
            }
        }
        columns.sort_by_key(|column| column.id);
        Chunk::new(self.seq(instants.first().copied().unwrap_or(self.first)), &times, columns)
    }

    /// Fills a store without readers down to number `least`; returns the bytes of the blocks.
    pub fn fill(&mut self, store: &mut Store, least: i64) -> usize {
        let (source, mut bytes) = (self.source, 0);
        while self.next > least.max(self.first) {
            let Some(chunks) = self.make(least, |slots| slots.number(store, source)) else { break };
            bytes += chunks.iter().map(|chunk| chunk.bytes()).sum::<usize>();
            store.fill(source, &chunks);
        }
        bytes
    }
}

/// Fills in the past of a whole fleet.
pub(super) struct Filler {
    pub pasts: Vec<MachinePast>,
    /// Bytes put into the store, and their maximum.
    pub bytes: usize,
    pub most: usize,
    /// Time of the newest live tick, milliseconds since the Unix epoch.
    pub ticked: Arc<AtomicI64>,
}

impl Filler {
    /// Whether the history for the baselines of findings is there.
    fn has_fine(&self) -> bool {
        self.pasts.iter().all(|past| past.next <= past.fine.max(past.first))
    }

    /// Fills in one block of the machine with most missing time. None if nothing is missing or there is no memory.
    fn step(&mut self, live: &Live) -> Option<usize> {
        let at = (0..self.pasts.len()).max_by_key(|at| self.pasts[*at].lacks())?;
        let past = &mut self.pasts[at];
        if self.bytes >= self.most {
            return None;
        }
        let (source, interval, end) = (past.source, past.interval, past.next);
        let chunks = past.make(i64::MIN, |slots| slots.number(&mut live.store(), source))?;
        self.bytes += chunks.iter().map(|chunk| chunk.bytes()).sum::<usize>();
        live.fill(source, chunks);
        live.refilled(source, past.next * interval, (end - 1) * interval);
        Some(at)
    }

    /// Sets the missing time of a machine; `rate` is in seconds of the past per second.
    fn set_missing(&self, at: usize, live: &Live, connection_state: impl FnOnce(i64) -> ConnectionState) {
        let past = &self.pasts[at];
        let missing = past.lacks();
        let hole = (past.first * past.interval, (past.next - 1) * past.interval);
        let holes = if missing > 0 { vec![hole] } else { Vec::new() };
        live.set_link_figures(past.source, LinkFigures { holes, ..LinkFigures::default() });
        // The connection state of a machine with a failing link is set by its fault.
        if past.missing.is_some() {
            return;
        }
        let (known, new) = (live.source(past.source).connection_state().0, connection_state(missing));
        // Lateness is detected by itself, unless this sets the state to live again.
        if !(new == ConnectionState::Live && matches!(known, ConnectionState::Live | ConnectionState::Late)) {
            live.set_connection_state(past.source, new);
        }
    }

    /// Sets the missing time of each machine.
    pub fn begin(&self, live: &Live) {
        for at in (0..self.pasts.len()).filter(|at| self.pasts[*at].lacks() > 0) {
            self.set_missing(at, live, |missing| ConnectionState::Filling { missing, rate: 0.0 });
        }
    }

    /// Whether live ticks have stopped: then a machine is late, and not filling.
    fn is_late(&self, live: &Live) -> bool {
        let age = live.clock.wall() - self.ticked.load(Ordering::Relaxed);
        let interval = self.pasts.first().map_or(0, |past| past.interval);
        age > (MAX_AGE_INTERVALS * interval).max(MIN_LATE_MS)
    }

    /// Fills in the missing past until it is complete, memory is full, or `stop`. It pauses while live ticks are late.
    /// Calls `learned` once the history for the baselines of findings is there.
    pub fn run(mut self, live: &Live, stop: &AtomicBool, learned: impl FnOnce()) {
        let mut learned = Some(learned);
        let (begun, mut done, mut was_late, mut rested) = (live.clock.steady(), 0, false, 0);
        while !stop.load(Ordering::Relaxed) {
            if self.has_fine() {
                learned.take().into_iter().for_each(|learned| learned());
            }
            let late = self.is_late(live);
            let behind = late || live.counts.behind_ms.load(Ordering::Relaxed) > 0;
            if late != was_late {
                match late {
                    true => (0..self.pasts.len()).for_each(|at| self.set_missing(at, live, |_| ConnectionState::Live)),
                    false => self.begin(live),
                }
                was_late = late;
            }
            if behind && rested < REST_LOOKS {
                rested += 1;
                std::thread::park_timeout(CHECK_INTERVAL);
                continue;
            }
            rested = 0;
            let before: i64 = self.pasts.iter().map(MachinePast::lacks).sum();
            let Some(at) = self.step(live) else { break };
            done += before - self.pasts.iter().map(MachinePast::lacks).sum::<i64>();
            let seconds = (live.clock.steady() - begun).as_secs_f64().max(1e-3);
            let rate = done as f64 / 1_000.0 / seconds / self.pasts.len() as f64;
            self.set_missing(at, live, |missing| match missing {
                _ if late => ConnectionState::Live,
                0 => ConnectionState::Live,
                _ => ConnectionState::Filling { missing, rate },
            });
        }
        learned.take().into_iter().for_each(|learned| learned());
        let lacks = self.pasts.iter().map(MachinePast::lacks).max().unwrap_or(0);
        if stop.load(Ordering::Relaxed) {
            return;
        }
        if lacks > 0 {
            // Parts without memory are given up.
            self.pasts.iter_mut().for_each(|past| past.first = past.next);
            let lacks = crate::config::show_duration(Duration::from_millis(lacks as u64));
            tracing::info!("memory is full: the oldest {lacks} of the past are left out");
        }
        (0..self.pasts.len()).for_each(|at| self.set_missing(at, live, |_| ConnectionState::Live));
        if done > 0 {
            let took = (live.clock.steady() - begun).as_secs_f64();
            tracing::info!("all of the past that is kept was simulated {took:.1} s after the page");
        }
    }
}

//! For tests of readers that follow a source: series that appear with each tick and soon end, so that their ids are
//! reused.

use crate::clock::Manual;
use crate::live::Live;
use crate::store::{Limits, QUARTER, Store};
use shared::catalog::{Catalog, cpu, gpu};
use shared::series::SeriesDef;
use shared::wire::SourceId;
use std::sync::Arc;
use std::time::Duration;

/// Five minutes, so that a quarter of an hour has three ticks.
const INTERVAL: i64 = 300_000;
const T0: i64 = 1_700_000_000_000 / QUARTER * QUARTER;
const RETENTION: i64 = 2 * 3_600_000;
/// Number of new series per tick, and number of ticks with values of each.
const NEW: usize = 10;
const LIFE: usize = 2;

/// A source with short-lived series.
pub struct Fleeting {
    /// Its stream, which has this source alone.
    pub live: Arc<Live>,
    /// The source.
    pub source: SourceId,
    clock: Arc<Manual>,
    /// Number of ticks so far.
    pub ticks: usize,
}

impl Fleeting {
    /// A source without ticks.
    pub fn empty() -> Self {
        let clock = Arc::new(Manual::at(T0, Duration::ZERO));
        // Their values have different steps, so that mistaking one row for another gives other values.
        let rows = [&cpu::CORE_PERCENT, &gpu::ENERGY_JOULES, &gpu::TEMP, &gpu::MEMORY_ALLOCATED_BYTES];
        let mut store = Store::new(Arc::new(Catalog::new(rows)), Limits { retention: RETENTION, bytes: usize::MAX });
        let source = store.add_source("here".into(), INTERVAL, Vec::new());
        Fleeting { live: Live::new(store, clock.clone(), 77, RETENTION), source, clock, ticks: 0 }
    }

    /// The series of this number.
    pub fn def(n: usize) -> SeriesDef {
        SeriesDef { metric: (n % 4) as u16, instance: n.to_string() }
    }

    /// The value of this series in this tick.
    pub fn value(n: usize, tick: usize) -> f64 {
        ((n * 31 + tick * 7) % 9_973) as f64
    }

    /// Series and values of this tick, counted from 0.
    pub fn values(tick: usize) -> impl Iterator<Item = (usize, f64)> {
        (tick.saturating_sub(LIFE - 1) * NEW..(tick + 1) * NEW).map(move |n| (n, Self::value(n, tick)))
    }

    /// Time of this tick, milliseconds since the Unix epoch.
    pub fn time(tick: usize) -> i64 {
        T0 + tick as i64 * INTERVAL
    }

    /// Appends the next tick, and seals each quarter.
    ///
    /// # Panics
    /// If the store refuses the tick.
    pub fn tick(&mut self) {
        let (mut store, mut values) = (self.live.store(), Vec::new());
        for (n, value) in Self::values(self.ticks) {
            let id = store.intern(self.source, Self::def(n)).expect("room") as usize;
            values.resize(values.len().max(id + 1), f64::NAN);
            values[id] = value;
        }
        store.append(self.source, Self::time(self.ticks), false, &values).expect("a source");
        if self.ticks % 3 == 2 {
            store.seal(self.source);
        }
        drop(store);
        self.ticks += 1;
        self.clock.pass(Duration::from_millis(INTERVAL as u64));
    }

    /// Whether ids were reused by now.
    pub fn reused(&self) -> bool {
        self.live.store().series(self.source, 0).len() < self.ticks * NEW / 2
    }
}

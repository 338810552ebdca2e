//! Simulates a fleet and serves it.

use super::{MAX_MEMORY_BYTES, Served, Serving, random, serve};
use crate::archive::Archive;
use crate::clock::{self, Clock};
use crate::config::{Config, Fleet};
use crate::demo::Demo;
use crate::live::Live;
use crate::store::{Limits, Store};
use std::sync::Arc;

/// Simulates a fleet and serves it until `stop` becomes true.
pub async fn run(config: Config, fleet: Fleet, serving: Serving) {
    let (retention, interval) = (config.retention.as_millis() as i64, config.interval.as_millis() as i64);
    let clock: Arc<dyn Clock> = Arc::new(clock::System);
    let told = clock.clone();
    // History takes up to some seconds of a core; callers wait until it is there.
    let filled = tokio::task::spawn_blocking(move || {
        let mut store = Store::new(Arc::new(collectors::catalog()), Limits { retention, bytes: MAX_MEMORY_BYTES });
        let mut demo = Demo::new(&mut store, &fleet, interval, told.wall());
        demo.fill(&mut store, &fleet, retention, &*told);
        (store, demo)
    });
    let Ok((store, demo)) = filled.await else { return };
    let live = Live::of_simulated(store, clock, random(), retention);
    let theirs = live.clone();
    let archive = Archive::in_memory(live.clone());
    serve(&config, Served::alone(live, Some(archive)), serving, move |told| demo.run(theirs, told)).await;
}

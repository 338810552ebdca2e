//! Simulates a fleet and serves it. With a hub, each simulated machine joins it as an agent: a load for trials.

use super::jobs::Jobs;
use super::links::Links;
use super::machine::LINKS_TIMEOUT;
use super::{MAX_HUB_MEMORY_BYTES, MAX_MEMORY_BYTES, Served, Serving, random, serve};
use crate::config::{Config, Fleet};
use crate::demo::Demo;
use std::sync::Arc;
use stream::archive::Archive;
use stream::clock::{self, Clock};
use stream::live::Live;
use stream::store::{Limits, Store};
use tokio::sync::oneshot;

/// Divisor of the history's memory: the past may fill this part at the start, and live samples need the rest.
const PAST_SHARE: usize = 2;

/// Simulates a fleet and serves it until `stop` becomes true.
pub async fn run(config: Config, fleet: Fleet, serving: Serving) {
    let (retention, interval) = (config.retention.as_millis() as i64, config.interval.as_millis() as i64);
    let clock: Arc<dyn Clock> = Arc::new(clock::System);
    let told = clock.clone();
    // A fleet has the memory limit of a hub.
    let bytes = if fleet.hosts > 1 { MAX_HUB_MEMORY_BYTES } else { MAX_MEMORY_BYTES };
    // The newest history takes up to some seconds of a core; clients wait until it is there.
    let filled = tokio::task::spawn_blocking(move || {
        let mut store = Store::new(Arc::new(collectors::catalog()), Limits { retention, bytes });
        let mut demo = Demo::new(&mut store, &fleet, interval, told.wall());
        demo.fill(&mut store, &fleet, (retention, bytes / PAST_SHARE), &*told);
        (store, demo)
    });
    let Ok((store, mut demo)) = filled.await else { return };
    let live = Live::of_simulated(store, clock, random(), retention);
    demo.introduce(&live);
    let theirs = live.clone();
    let archive = Archive::in_memory(live.clone());
    let (learned, history) = oneshot::channel();
    let jobs = Jobs::new(&config, None, None);
    let links = Links::of_simulated(&config, &live, &jobs.runs).serve(None, serving.stop.clone());
    let served = Served { history: Some(history), ..Served::alone(live, Some(archive), jobs) };
    let work = move |told| {
        demo.run(theirs, told, move || {
            // Without detection there is no receiver.
            let _ = learned.send(());
        });
    };
    let (links, stop) = (tokio::spawn(links), serving.stop.clone());
    serve(&config, served, serving, work).await;
    // On a stop the links end by themselves; after a failure they would go on.
    if *stop.borrow() {
        let _ = tokio::time::timeout(LINKS_TIMEOUT, links).await;
    }
}

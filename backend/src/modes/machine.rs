//! Measures this machine, keeps its history on disk or in memory, and serves it.

use super::{MAX_MEMORY_BYTES, Serving, random, serve};
use crate::archive::Archive;
use crate::clock::{self, Clock};
use crate::config::Config;
use crate::data::Data;
use crate::live::Live;
use crate::sampler::{self, Chosen, Plan};
use crate::store::{Limits, Store};
use shared::wire::SourceId;
use std::sync::Arc;

/// Which collectors a configuration keeps, and how each of them is called.
pub fn plan(config: &Config) -> Plan {
    let chosen = collectors::COLLECTORS.iter().filter(|entry| config.keeps(entry.name)).map(|entry| Chosen {
        entry,
        every: config.every(entry.name),
        deadline: config.deadline(entry.name),
    });
    Plan { chosen: chosen.collect(), options: config.options(), roots: config.roots(), interval: config.interval }
}

/// Collects and serves until `stop` becomes true, and returns within three seconds of that, even if a collector or a disk
/// hangs. `data` is the folder that [`crate::data::open`] opened; without one, history is kept in memory only.
pub async fn run(config: Config, data: Option<Data>, serving: Serving) {
    let (retention, interval) = (config.retention.as_millis() as i64, config.interval.as_millis() as i64);
    let limits = Limits { retention, bytes: MAX_MEMORY_BYTES };
    let name = collectors::host_name().unwrap_or_else(|| "this machine".into());
    let (catalog, facts) = (Arc::new(collectors::catalog()), collectors::facts(&config.roots()));
    let (mut store, unwritten) = match &data {
        Some(data) => Store::of_found(catalog, data.found(), limits, Some(&name)),
        None => (Store::new(catalog, limits), Vec::new()),
    };
    let source = match store.named(&name) {
        Some(source) => {
            store.renew(source, interval, facts);
            source
        }
        None => store.add_source(name, interval, facts),
    };
    if data.is_some() {
        store.begin_life(source, clock::System.wall());
    }
    let live = Live::new(store, Arc::new(clock::System), random(), retention);
    let archive = match data {
        None => Archive::in_memory(live.clone()),
        Some(data) => match Archive::on_disk(live.clone(), data.keep(&config), unwritten) {
            Ok(archive) => archive,
            Err(error) => return tracing::error!(%error, "cannot start the threads of the log"),
        },
    };
    sample(&config, live, archive, source, serving).await;
}

/// Samples this machine into a source, keeps its history, and serves it until `stop` becomes true or the sampler ends.
pub async fn sample(config: &Config, live: Arc<Live>, archive: Archive, source: SourceId, serving: Serving) {
    let (theirs, mut plan) = (live.clone(), plan(config));
    let state = live.source(source);
    (plan.options.processes, plan.options.gpu_numbers) = (state.processes.clone(), state.gpus.clone());
    serve(config, live, Some(archive), serving, move |told| sampler::run(theirs, source, plan, told)).await;
}

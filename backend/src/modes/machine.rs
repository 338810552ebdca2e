//! Measures this machine, keeps its history on disk or in memory, and serves it.

use super::jobs::Jobs;
use super::links::Links;
use super::{MAX_MEMORY_BYTES, Served, Serving, random, serve};
use crate::config::Config;
use crate::data::Data;
use crate::sampler::{self, Chosen, Plan};
use inventory::OtherMachines;
use jobs::markers;
use shared::wire::SourceId;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use stream::archive::Archive;
use stream::clock::{self, Clock};
use stream::live::Live;
use stream::store::{Limits, Retentions, Store};

/// Timeout for links to hubs to end after the page.
pub(super) const LINKS_TIMEOUT: Duration = uplink::END_TIMEOUT.saturating_add(Duration::from_millis(100));

/// The enabled collectors of a configuration, with their intervals and timeouts.
pub fn plan(config: &Config) -> Plan {
    let chosen = collectors::COLLECTORS.iter().filter(|entry| config.keeps(entry.name)).map(|entry| Chosen {
        entry,
        every: config.every(entry.name),
        deadline: config.deadline(entry.name),
    });
    Plan { chosen: chosen.collect(), options: config.options(), roots: config.roots(), interval: config.interval }
}

/// This machine as a source whose history is kept.
pub(super) struct OwnMachine {
    pub live: Arc<Live>,
    pub archive: Archive,
    pub source: SourceId,
}

/// Collectors of notebooks, which do not run on a hub. Values of jobs reach its own machine by requests.
pub(super) const OF_NOTEBOOKS: [&str; 1] = ["kernels"];

/// The name of this machine in its history.
pub(super) fn name() -> String {
    collectors::host_name().unwrap_or_else(|| "this machine".into())
}

/// Opens the stream of this machine, with its stored history. `data` is the folder that [`crate::data::open`] opened;
/// without one, history is kept in memory only. None if the system grants no threads, which is logged.
pub(super) fn open(config: &Config, data: Option<Data>) -> Option<OwnMachine> {
    let (live, archive, source) = stream(config, data, MAX_MEMORY_BYTES, Some(name()), KnownSources::default())?;
    Some(OwnMachine { live, archive, source: source? })
}

/// Facts about sources that are known before their history is read.
#[derive(Default)]
pub(super) struct KnownSources {
    /// Keys of removed sources.
    pub removed: Vec<String>,
    /// Sources with a retention of their own.
    pub retentions: Retentions,
}

/// As above: a stream of all stored sources but removed ones, and of this machine if its name is given. At most
/// `bytes` of sealed columns are kept in memory.
pub(super) fn stream(
    config: &Config,
    data: Option<Data>,
    bytes: usize,
    name: Option<String>,
    known: KnownSources,
) -> Option<(Arc<Live>, Archive, Option<SourceId>)> {
    let (retention, interval) = (config.retention.as_millis() as i64, config.interval.as_millis() as i64);
    let limits = Limits { retention, bytes };
    let catalog = Arc::new(collectors::catalog());
    let (mut store, unwritten) = match &data {
        Some(data) => Store::of_found(catalog, data.found(), limits, name.as_deref()),
        None => (Store::new(catalog, limits), Vec::new()),
    };
    store.remove_sources(known.removed);
    store.set_retentions(known.retentions);
    let source = name.map(|name| {
        let facts = collectors::facts(&config.roots());
        let source = match store.named(&name) {
            Some(source) => {
                store.renew(source, interval, facts);
                source
            }
            None => store.add_source(name, interval, facts),
        };
        // A hub refers to ticks by their numbers, also those of a machine that keeps nothing on disk.
        if data.is_some() || !config.hubs.is_empty() {
            store.begin_life(source, clock::System.wall());
        }
        source
    });
    let longest =
        config.agent_limits.keep_rules().longest().map_or(0, |length| length.as_millis() as i64).max(retention);
    let live = Live::new(store, Arc::new(clock::System), random(), longest);
    let archive = match data {
        None => Archive::in_memory(live.clone()),
        Some(data) => match Archive::on_disk(live.clone(), data.keep(config), unwritten) {
            Ok(archive) => archive,
            Err(error) => {
                tracing::error!(%error, "cannot start the threads of the log");
                return None;
            }
        },
    };
    Some((live, archive, source))
}

/// Collects and serves until `stop` becomes true, and returns within three seconds of that, even if a collector or a
/// disk hangs.
pub async fn run(config: Config, data: Option<Data>, serving: Serving) {
    let folder = data.as_ref().map(|data| data.path().to_path_buf());
    let Some(OwnMachine { live, archive, source }) = open(&config, data) else { return };
    let jobs = Jobs::new(&config, Some(source), folder.as_deref());
    let links = Links::new(&config, &live, source, &jobs.runs).serve(None, serving.stop.clone());
    let work = sampling(&config, &live, source, &[], Some(others(&config)));
    let served = Served::alone(live, Some(archive), jobs);
    let served = match folder {
        Some(folder) => served.with_sockets_of(&folder),
        None => served,
    };
    let stop = serving.stop.clone();
    let served = serve(&config, served, serving, work);
    if config.hubs.is_empty() {
        return served.await;
    }
    let links = tokio::spawn(links);
    served.await;
    // On a stop the links end by themselves; after a failure they would go on.
    if *stop.borrow() {
        let _ = tokio::time::timeout(LINKS_TIMEOUT, links).await;
    }
}

/// Samples this machine into a source, keeps its history, and serves it until `stop` becomes true or the sampler ends.
pub async fn sample(config: &Config, live: Arc<Live>, archive: Archive, source: SourceId, serving: Serving) {
    let work = sampling(config, &live, source, &[], Some(others(config)));
    serve(config, Served::alone(live, Some(archive), Jobs::new(config, Some(source), None)), serving, work).await;
}

/// Other machines that an endpoint tells of. Each gets a source, and links of its own to hubs.
pub(super) fn others(config: &Config) -> Arc<OtherMachines> {
    Arc::new(OtherMachines::new(own_names(config), String::new()))
}

/// The same of a hub, on which sources of agents and of other hubs stand, too.
pub(super) fn others_of_hub(config: &Config) -> Arc<OtherMachines> {
    Arc::new(OtherMachines::new(own_names(config), format!("{}{OF_HUB}", name())))
}

/// Separates the name of a hub's machine from a host that an endpoint told it of; no host name has it.
const OF_HUB: char = ':';

/// The names under which an endpoint may tell of this machine. In a container the host name is that of the container.
fn own_names(config: &Config) -> impl Iterator<Item = String> {
    let node = std::env::var("NODE_NAME").ok().filter(|name| !name.is_empty());
    let at_hubs = config.hubs.iter().filter_map(|hub| hub.name.clone());
    collectors::host_name().into_iter().chain(node).chain(at_hubs)
}

/// The work of sampling this machine into a source until it is stopped, without the collectors in `left_out`. Without
/// `others`, GPUs of other machines stand under this one.
pub(super) fn sampling(
    config: &Config,
    live: &Arc<Live>,
    source: SourceId,
    left_out: &[&str],
    others: Option<Arc<OtherMachines>>,
) -> impl FnOnce(Arc<AtomicBool>) + Send + use<> {
    let (theirs, mut plan) = (live.clone(), plan(config));
    plan.chosen.retain(|chosen| !left_out.contains(&chosen.entry.name));
    let state = live.source(source);
    (plan.options.processes, plan.options.gpu_numbers) = (state.processes.clone(), state.gpus.clone());
    (plan.options.kernels, plan.options.kernel_ended) = (state.kernels.clone(), markers::ended::keeper(live, source));
    plan.options.job_values = state.job_values.clone();
    plan.options.others = others;
    let kernels = plan.chosen.iter().any(|chosen| chosen.entry.name == "kernels");
    #[cfg(target_os = "linux")]
    if kernels {
        state.kernels.expect();
    }
    move |told| {
        if kernels {
            markers::ended::recall(&theirs, source);
        }
        sampler::run(theirs, source, plan, told);
    }
}

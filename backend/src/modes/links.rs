//! The links to hubs, of an agent and of a server with a page. Each machine that a scraped endpoint tells of has links of
//! its own while it is told of.

use crate::config::Config;
use crate::control;
use api::Operation;
use jobs::runs::RunRegistry;
use shared::controls::escaped_json;
use shared::wire::{Source, SourceId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stream::live::{FoundMachine, Live};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinSet;
use uplink::settings::UplinkSettings;
use uplink::{AgentFile, LinkState, Uplink, random};

/// Checks that an agent, or a server with `--hub`, can connect: readable certificates, and a key.
///
/// # Errors
/// A sentence; the exit status is 2.
pub fn check(config: &Config) -> Result<(), String> {
    Uplink::check(&config.uplink_settings(), &*agent_file(config)?)
}

/// Checks that the simulated machines of a demo can connect.
///
/// # Errors
/// A sentence; the exit status is 2.
pub fn check_simulated(config: &Config) -> Result<(), String> {
    Uplink::check(&config.uplink_settings(), &AgentFile::open(None, random())?)
}

/// The state of the agent that runs with this data folder, as JSON, and whether all its links are connected.
///
/// # Errors
/// The exit status, and a sentence.
pub fn status(config: &Config) -> Result<(String, bool), (u8, String)> {
    let folder = config.data_dir.as_deref().filter(|_| !config.memory).ok_or_else(|| {
        (2, "an agent without a data folder has no control socket; name the folder with --data-dir DIR".to_string())
    })?;
    let failed = |why: String| (1, format!("what runs with the data folder {} {why}", folder.display()));
    let answer = control::ask(folder, "GET", &Operation::ListUplinks.at(&[]), None);
    let (status, body) = match answer.map_err(|error| failed(format!("does not respond: {error}")))? {
        Some(answer) => answer,
        None => return Err((1, format!("no agent runs with the data folder {}", folder.display()))),
    };
    let told: Option<serde_json::Value> = serde_json::from_slice(&body).ok().filter(|_| status == 200);
    let told = told.ok_or_else(|| failed(format!("returns {status}; it has another version, or is a hub")))?;
    let hubs = told["hubs"].as_array().map_or(&[][..], Vec::as_slice);
    let live = !hubs.is_empty() && hubs.iter().all(|hub| hub["state"] == "live");
    Ok((format!("{}\n", escaped_json(format!("{told:#}"))), live))
}

/// Identity of this machine on its hubs.
///
/// # Errors
/// A sentence.
fn agent_file(config: &Config) -> Result<Arc<AgentFile>, String> {
    let folder = config.data_dir.as_deref().filter(|_| !config.memory);
    AgentFile::open(folder, random()).map(Arc::new)
}

/// Maximum number of links of machines of endpoints that connect or join at once.
const MAX_CONNECTING: usize = 8;

/// The links to all hubs of a configuration.
#[derive(Default)]
pub(super) struct Links {
    /// Those of this machine, or of the simulated ones.
    own: Vec<Arc<Uplink>>,
    found: Option<FoundLinks>,
}

impl Links {
    /// None if no hub is configured, or if they became unusable since [`check`].
    pub fn new(config: &Config, live: &Arc<Live>, source: SourceId, runs: &Arc<RunRegistry>) -> Self {
        if config.hubs.is_empty() {
            return Links::default();
        }
        let settings = config.uplink_settings();
        let all = agent_file(config).and_then(|file| {
            let own = Uplink::all(&settings, live, (source, runs), &file)?;
            let found = FoundLinks::new(settings, live, own.clone());
            Ok(Links { own, found: Some(found) })
        });
        all.unwrap_or_else(|error| {
            tracing::error!("nothing is sent to hubs: {error}");
            Links::default()
        })
    }

    /// The links of simulated machines: each joins under its own name with an identity that is kept in memory.
    pub fn of_simulated(config: &Config, live: &Arc<Live>, runs: &Arc<RunRegistry>) -> Self {
        let sources = if config.hubs.is_empty() { Vec::new() } else { live.store().sources() };
        let links = |source: Arc<Source>| {
            let mut settings = config.uplink_settings();
            settings.hubs.iter_mut().for_each(|hub| hub.name = Some(source.name.clone()));
            let all = AgentFile::open(None, random())
                .and_then(|file| Uplink::all(&settings, live, (source.id, runs), &Arc::new(file)));
            all.unwrap_or_else(|error| {
                tracing::error!("{} is sent to no hub: {error}", source.name);
                Vec::new()
            })
        };
        Links { own: sources.into_iter().flat_map(links).collect(), found: None }
    }

    /// Keeps them connected until `stop` becomes true, then closes them. `linked` gets the line of the first
    /// connection.
    pub async fn serve(self, linked: Option<oneshot::Sender<String>>, mut stop: watch::Receiver<bool>) {
        let mut running = JoinSet::new();
        for link in &self.own {
            running.spawn(link.clone().run());
        }
        // The first line is that of the first connected hub: scripts wait for one.
        let states: Vec<_> = self.own.iter().map(|link| link.state()).collect();
        running.spawn(async move {
            if let (Some(linked), Some(line)) = (linked, first(states).await) {
                let _ = linked.send(line); // The receiver may have gone.
            }
        });
        let mut found = self.found;
        match &mut found {
            Some(found) => found.follow(&mut stop).await,
            None => drop(stop.wait_for(|stop| *stop).await),
        }
        // All at once: a hub that does not answer takes no time from the others.
        let mut stopping = JoinSet::new();
        let found_links = found.iter().flat_map(FoundLinks::links);
        for link in self.own.into_iter().chain(found_links) {
            stopping.spawn(async move { link.stop().await });
        }
        stopping.join_all().await;
    }
}

/// The links of machines that scraped endpoints tell of.
struct FoundLinks {
    settings: UplinkSettings,
    live: Arc<Live>,
    /// The links of this machine.
    own: Vec<Arc<Uplink>>,
    turns: Arc<Semaphore>,
    /// Links of the machines that are told of now, and their tasks.
    running: BTreeMap<SourceId, (Vec<Arc<Uplink>>, JoinSet<()>)>,
    /// Machines that had links since the start.
    known: BTreeSet<SourceId>,
}

impl FoundLinks {
    fn new(settings: UplinkSettings, live: &Arc<Live>, own: Vec<Arc<Uplink>>) -> Self {
        let (live, turns) = (live.clone(), Arc::new(Semaphore::new(MAX_CONNECTING)));
        FoundLinks { settings, live, own, turns, running: BTreeMap::new(), known: BTreeSet::new() }
    }

    fn links(&self) -> Vec<Arc<Uplink>> {
        self.running.values().flat_map(|(links, _)| links.clone()).collect()
    }

    /// Starts and ends links as endpoints tell of machines, until `stop` becomes true.
    async fn follow(&mut self, stop: &mut watch::Receiver<bool>) {
        let mut found = self.live.found();
        loop {
            let now = found.borrow_and_update().clone();
            self.end_lost(&now);
            for machine in now.iter() {
                self.start(machine);
            }
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                _ = found.changed() => {}
            }
        }
    }

    /// Ends the links of machines that are not told of any more, without a goodbye: nobody stopped them.
    fn end_lost(&mut self, now: &[FoundMachine]) {
        self.running.retain(|source, (links, _)| {
            let is_there = now.iter().any(|machine| machine.source == *source);
            if !is_there {
                links.iter().for_each(|link| link.forget());
            }
            is_there
        });
    }

    fn start(&mut self, machine: &FoundMachine) {
        if self.running.contains_key(&machine.source) {
            return;
        }
        let mut settings = self.settings.clone();
        // Only once: its new identity is that of the next time.
        settings.new_identity &= self.known.insert(machine.source);
        let place = (machine.source, machine.host.as_str());
        let link = |own: &Arc<Uplink>| {
            let link = Uplink::of_found(&settings, own, place, &self.turns);
            link.inspect_err(|error| tracing::error!("{} is not sent to {}: {error}", machine.host, own.url())).ok()
        };
        let links: Vec<Arc<Uplink>> = self.own.iter().filter_map(link).collect();
        let tasks = links.iter().map(|link| link.clone().run()).collect();
        self.running.insert(machine.source, (links, tasks));
    }
}

/// The line of the first connected link; none once all have ended.
async fn first(states: Vec<watch::Receiver<LinkState>>) -> Option<String> {
    let mut waiting = JoinSet::new();
    for mut state in states {
        waiting.spawn(async move {
            let linked = state.wait_for(|state| matches!(state, LinkState::Linked { .. })).await.ok()?.clone();
            let LinkState::Linked { url, name } = linked else { return None };
            Some(format!("connected to {url} as {name}"))
        });
    }
    while let Some(line) = waiting.join_next().await {
        if let Ok(Some(line)) = line {
            return Some(line);
        }
    }
    None
}

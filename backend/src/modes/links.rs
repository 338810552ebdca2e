//! The links to hubs, of an agent and of a server with a page.

use crate::config::Config;
use crate::control;
use api::Operation;
use jobs::runs::RunRegistry;
use shared::controls::escaped_json;
use shared::wire::{Source, SourceId};
use std::sync::Arc;
use stream::live::Live;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
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

/// The links to all hubs of a configuration.
pub(super) struct Links(Vec<Arc<Uplink>>);

impl Links {
    /// None if no hub is configured, or if they became unusable since [`check`].
    pub fn new(config: &Config, live: &Arc<Live>, source: SourceId, runs: &Arc<RunRegistry>) -> Self {
        if config.hubs.is_empty() {
            return Links(Vec::new());
        }
        let all =
            agent_file(config).and_then(|file| Uplink::all(&config.uplink_settings(), live, (source, runs), &file));
        Links(all.unwrap_or_else(|error| {
            tracing::error!("nothing is sent to hubs: {error}");
            Vec::new()
        }))
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
        Links(sources.into_iter().flat_map(links).collect())
    }

    /// Keeps them connected until `stop` becomes true, then closes them. `linked` gets the line of the first
    /// connection.
    pub async fn serve(self, linked: Option<oneshot::Sender<String>>, mut stop: watch::Receiver<bool>) {
        let mut running = JoinSet::new();
        for link in &self.0 {
            running.spawn(link.clone().run());
        }
        // The first line is that of the first connected hub: scripts wait for one.
        let states: Vec<_> = self.0.iter().map(|link| link.state()).collect();
        running.spawn(async move {
            if let (Some(linked), Some(line)) = (linked, first(states).await) {
                let _ = linked.send(line); // The receiver may have gone.
            }
        });
        let _ = stop.wait_for(|stop| *stop).await;
        // All at once: a hub that does not answer takes no time from the others.
        let mut stopping = JoinSet::new();
        for link in self.0 {
            stopping.spawn(async move { link.stop().await });
        }
        stopping.join_all().await;
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

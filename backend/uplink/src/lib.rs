//! The agent's end of the link to a hub: another reader of the store, which sends the samples that it reads.
//!
//! Nothing is queued. While a hub is unreachable, the stored history is the buffer, and the hub requests its missing
//! ticks later. [`Uplink`] decides when to connect and retry; `road.rs` connects. `join.rs` and `identity.rs` keep the
//! agent's identity. `hello.rs` starts a link, and `serve.rs` sends samples. `fill.rs` answers requests for missing
//! ticks, and `reports.rs` questions of the hub's pages. `relay.rs` sends a source from one hub to another with the
//! same code.

// A lock in the head of a `match` or `for` is held to its end, where it may be taken again.
#![warn(clippy::significant_drop_in_scrutinee, clippy::await_holding_lock)]

mod again;
mod evidence;
mod fill;
#[cfg(test)]
mod fill_tests;
mod hello;
mod identity;
mod join;
mod names;
mod relay;
mod reply;
mod reports;
mod road;
mod serve;
pub mod settings;
#[cfg(test)]
mod tests;
mod unit;
mod walk;

pub use identity::{AGENT_FILE, AgentFile};
pub use relay::tell;
pub use reports::answer;
pub use road::{Road, RoadEnd, Stage, Wire};
pub use unit::unit;
pub use walk::{Step, json, report, walk_all};

use crate::settings::{HubEntry, KeyFrom, UplinkSettings};
use again::Again;
use evidence::Evidence;
use hello::{Introduction, LinkSocket, NO_KEY, Origin, UplinkEnd};
use identity::{AgentIdentity, Shift, mark};
use jobs::runs::RunRegistry;
use join::Joining;
use parking_lot::Mutex;
use ring::rand::{SecureRandom, SystemRandom};
use road::Trail;
use shared::agent::{Welcome, close};
use shared::crc32c::crc32c;
use shared::enrol::EnrolRequest;
use shared::wire::SourceId;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use stream::live::{Live, UplinkState, UplinkStatus};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Pause between attempts after a refusal that only a person can resolve.
const REFUSED_PAUSE: Duration = Duration::from_secs(300);
/// Pause between attempts while another process uses our key.
const IN_USE_PAUSE: Duration = Duration::from_secs(60);
/// Interval of checks whether an admin has approved the machine.
const PENDING_PAUSE: Duration = Duration::from_secs(10);
/// Maximum pause before another hub is tried, after ours has announced its shutdown.
const MOVE_PAUSE: Duration = Duration::from_millis(250);
/// The same after ours has disconnected without a goodbye, as it has for all its other agents.
const LOST_PAUSE: Duration = Duration::from_secs(1);
/// After a link of at least this length, each of the hubs is tried once without a pause. A hub that closes links sooner
/// may close all of them.
const STEADY_LINK: Duration = Duration::from_secs(5);
/// Interval of retries to write `agent.json`.
const WRITE_PAUSE: Duration = Duration::from_secs(60);
/// Maximum time in which a link ends after [`Uplink::stop`]: it first sends its queue.
pub const END_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of a key file, bytes, with whitespace around the key.
const MAX_KEY_BYTES: u64 = 1 << 10;

/// State of the link to a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// First attempt to connect.
    Starting,
    /// An admin of the hub must approve this machine first.
    Pending,
    /// Connected.
    Linked {
        /// The hub's address.
        url: String,
        /// Name of this machine at the hub.
        name: String,
    },
    /// Not connected; the reason is a sentence without a full stop. It is retried automatically.
    Away(String),
    /// The hub refuses this machine; the reason. It is retried every few minutes.
    Refused(String),
}

/// The link to one hub. It retries until it is [stopped](Uplink::stop).
pub struct Uplink {
    hub: HubEntry,
    /// The key of our identity in the file: the hub's address, and the host for one that an endpoint tells of.
    identity: String,
    road: Road,
    /// For a machine that an endpoint tells of.
    beside: Option<Beside>,
    file: Arc<AgentFile>,
    live: Arc<Live>,
    source: SourceId,
    runs: Arc<RunRegistry>,
    told: Arc<Introduction>,
    state: watch::Sender<LinkState>,
    /// State and counters, for the API.
    shown: Arc<UplinkState>,
    stop: watch::Sender<bool>,
    /// Whether to join again: the key is invalid, or another machine uses it too.
    anew: AtomicBool,
    /// Whether this process has received its first welcome.
    welcomed: AtomicBool,
    /// The same ID in each attempt to join, so that a lost response creates no second machine.
    request: Mutex<String>,
}

/// Conditions for the link of a machine that an endpoint tells of.
struct Beside {
    /// The link of this process's own machine to the same hub. That one joins first.
    own: watch::Receiver<LinkState>,
    /// Limits how many such links connect at once.
    turns: Arc<Semaphore>,
}

/// A random number.
pub fn random() -> u64 {
    let mut bytes = [0; 8];
    // Without the system's generator, TLS would not work either.
    let _ = SystemRandom::new().fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

fn random_part() -> f64 {
    (random() >> 11) as f64 / (1u64 << 53) as f64
}

impl Uplink {
    /// Checks the requirements of all links: the trusted certificates can be read, and there is a key.
    ///
    /// # Errors
    /// The missing requirement: a sentence. The exit status is 2.
    pub fn check(settings: &UplinkSettings, file: &AgentFile) -> Result<(), String> {
        settings.hubs.iter().try_for_each(|hub| {
            let url = hub.url();
            if hub.key.is_none() && (settings.new_identity || !file.knows(&url.to_string())) {
                return Err(format!(
                    "there is no key to join {url}; create a join line with \"watchglass agents join\" on that hub, \
                    and give its key with --key or --key-file"
                ));
            }
            Road::new(hub, &settings.proxies).map(drop)
        })
    }

    /// Prepares the links of this source to all hubs of a configuration; hubs request the output of its `runs`.
    ///
    /// # Errors
    /// The unusable setting: a sentence. The exit status is 2.
    pub fn all(
        settings: &UplinkSettings,
        live: &Arc<Live>,
        (source, runs): (SourceId, &Arc<RunRegistry>),
        file: &Arc<AgentFile>,
    ) -> Result<Vec<Arc<Uplink>>, String> {
        let (evidence, instance, started) = (Evidence::read(&settings.machine), random(), live.clock.wall());
        let uplink = |hub: &HubEntry| {
            let told = Introduction {
                instance,
                folder: file.folder(),
                started,
                evidence: evidence.clone(),
                labels: hub.labels.clone(),
                memory: settings.memory,
                origin: Origin::Measured,
                version: env!("CARGO_PKG_VERSION").into(),
            };
            Self::new(settings, (hub, hub.url().to_string()), (live, source, runs), file, told, None)
        };
        settings.hubs.iter().map(uplink).collect()
    }

    /// Prepares the link of a machine that an endpoint tells of under this host name, to the hub of this machine's `own`
    /// link. It has an identity of its own there. `turns` limits how many such links connect at once.
    ///
    /// # Errors
    /// As [`all`](Self::all).
    pub fn of_found(
        settings: &UplinkSettings,
        own: &Uplink,
        (source, host): (SourceId, &str),
        turns: &Arc<Semaphore>,
    ) -> Result<Arc<Uplink>, String> {
        let told = Introduction {
            instance: random(),
            folder: own.file.folder(),
            started: own.live.clock.wall(),
            evidence: own.told.evidence.of_found(host),
            labels: Vec::new(),
            memory: settings.memory,
            origin: Origin::Found,
            version: env!("CARGO_PKG_VERSION").into(),
        };
        // The name and the labels are those of this machine.
        let hub = HubEntry { name: None, labels: Vec::new(), ..own.hub.clone() };
        let identity = identity::of_found(&own.url(), host);
        let beside = Beside { own: own.state(), turns: turns.clone() };
        Self::new(settings, (&hub, identity), (&own.live, source, &own.runs), &own.file, told, Some(beside))
    }

    fn new(
        settings: &UplinkSettings,
        (hub, identity): (&HubEntry, String),
        (live, source, runs): (&Arc<Live>, SourceId, &Arc<RunRegistry>),
        file: &Arc<AgentFile>,
        told: Introduction,
        beside: Option<Beside>,
    ) -> Result<Arc<Uplink>, String> {
        let road = Road::new(hub, &settings.proxies)?;
        let host = (told.origin == Origin::Found).then(|| told.evidence.host.clone());
        let shown = Arc::new(UplinkState::new(hub.url().to_string(), (source, host), told.started));
        live.add_uplink(shown.clone());
        Ok(Arc::new(Uplink {
            road,
            hub: hub.clone(),
            identity,
            beside,
            file: file.clone(),
            live: live.clone(),
            source,
            runs: runs.clone(),
            told: Arc::new(told),
            state: watch::Sender::new(LinkState::Starting),
            shown,
            stop: watch::Sender::new(false),
            anew: AtomicBool::new(settings.new_identity),
            welcomed: AtomicBool::new(false),
            request: Mutex::new(new_request()),
        }))
    }

    /// The address of the hub.
    pub fn url(&self) -> String {
        self.hub.url().to_string()
    }

    /// State of the link, and each change of it.
    pub fn state(&self) -> watch::Receiver<LinkState> {
        self.state.subscribe()
    }

    /// Connects and serves until it is stopped. If the task ends for another reason, it is restarted. Once this is
    /// dropped, the link ends without a goodbye.
    pub async fn run(self: Arc<Self>) {
        loop {
            let mut task = JoinSet::new();
            task.spawn(self.clone().keep_trying());
            match task.join_next().await {
                Some(Err(error)) => {
                    tracing::error!(hub = self.url(), "the link's task has failed and is started anew: {error}")
                }
                Some(Ok(())) | None => return,
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Removes it from the list of links. It is not used any more.
    pub fn forget(&self) {
        self.live.remove_uplink(&self.shown);
    }

    /// Sends the goodbye to the hub; returns soon, whatever the hub does.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        // The task holds a receiver until the goodbye is sent.
        let _ = tokio::time::timeout(END_TIMEOUT, self.stop.closed()).await;
    }

    async fn keep_trying(self: Arc<Self>) {
        let mut stop = self.stop.subscribe();
        let (mut again, mut written) = (Again::default(), Instant::now());
        // Addresses tried since the last steady link.
        let mut tried = 0;
        for attempt in 0.. {
            if *stop.borrow() {
                return;
            }
            let mut linked = None;
            let prepared = tokio::select! {
                prepared = self.prepare(attempt) => prepared,
                () = stopped(&mut stop) => Err(UplinkEnd::Stopped),
            };
            let end = match prepared {
                Ok((link, socket, welcome)) => {
                    linked = Some(Instant::now());
                    serve::serve(link, socket, &welcome, self.stop.subscribe()).await
                }
                Err(end) => end,
            };
            let long = linked.map_or(Duration::ZERO, |linked: Instant| linked.elapsed());
            self.shown.counts.failures.fetch_add(1, Relaxed);
            self.road.move_on();
            tried = if long >= STEADY_LINK { 1 } else { tried + 1 };
            let others = tried < self.road.ways();
            let pause = match end {
                UplinkEnd::Stopped => return,
                UplinkEnd::Lost(end) => {
                    self.stand(LinkState::Away(end.why));
                    match others {
                        true => LOST_PAUSE.mul_f64(random_part()),
                        false => again.pause(long, None, random_part()),
                    }
                }
                UplinkEnd::Later(why, wait) => {
                    self.stand(LinkState::Away(why));
                    match others {
                        // A hub that shuts down closes its links one after the other, so agents need not wait.
                        true => MOVE_PAUSE.mul_f64(random_part()),
                        false => again.pause(long, wait, random_part()),
                    }
                }
                UplinkEnd::Refused(code, why) => self.refused(code, why),
            };
            tokio::select! {
                () = stopped(&mut stop) => return,
                () = tokio::time::sleep(pause) => {}
            }
            if written.elapsed() >= WRITE_PAUSE {
                written = Instant::now();
                let file = self.file.clone();
                let _ = tokio::task::spawn_blocking(move || file.again()).await;
            }
        }
    }

    /// Handles a refusal: the pause before the next attempt, which may join again.
    fn refused(&self, code: u16, why: String) -> Duration {
        let key = self.key();
        let known = self.file.known(&self.identity);
        let other = |key: &String| known.as_ref().and_then(|known| known.join.as_ref()) != Some(&mark(key));
        let anew = match code {
            close::UNKNOWN | close::REPLACED | close::IN_USE | NO_KEY => key.is_ok(),
            close::REVOKED => key.as_ref().is_ok_and(other),
            _ => false,
        };
        // Only once: if a new key is refused, the next one would be, too.
        let anew = anew && !self.anew.swap(anew, Relaxed);
        let means = match code {
            _ if anew => "it joins again with its join key",
            close::IN_USE => {
                "another process has this machine's key; if this is a copy of that machine, start it once with \
                --new-identity and a join key"
            }
            close::REVOKED => "to restore it, start it with a new join line",
            _ => "to join again, start it with a join line of the hub",
        };
        self.stand(LinkState::Refused(format!("{why}; {means}")));
        match (anew, code) {
            (true, _) => Duration::from_secs(1),
            (_, close::IN_USE) => IN_USE_PAUSE,
            _ => REFUSED_PAUSE,
        }
    }

    /// The join key.
    fn key(&self) -> Result<String, String> {
        match &self.hub.key {
            None | Some(KeyFrom::Stdin) => Err("there is no join key; use a join line of the hub".into()),
            Some(KeyFrom::Given(key)) => Ok(key.clone()),
            Some(KeyFrom::File(path)) => {
                let mut text = String::new();
                let read = system::file::open(path).and_then(|file| file.take(MAX_KEY_BYTES).read_to_string(&mut text));
                read.map_err(|error| format!("the key file {} cannot be read: {error}", path.display()))?;
                let key = text.trim();
                // The line that `watchglass agents join` prints is easily saved as a whole.
                if key.contains(char::is_whitespace) {
                    return Err(format!("the key file {} has more than a key; keep only its key", path.display()));
                }
                Ok(key.to_string())
            }
        }
    }

    /// Makes one attempt to connect, up to the hub's welcome.
    async fn prepare(&self, attempt: usize) -> Result<(serve::LinkParts, LinkSocket, Welcome), UplinkEnd> {
        let is_known = self.file.knows(&self.identity);
        let _turn = match &self.beside {
            Some(Beside { own, turns }) => {
                if !is_known {
                    // A join key for a few machines is for this one first. If the own link has ended, so will this one.
                    let _ = own.clone().wait_for(|state| matches!(state, LinkState::Linked { .. })).await;
                }
                turns.acquire().await.ok()
            }
            None => None,
        };
        let known = match self.file.known(&self.identity).filter(|_| !self.anew.load(Relaxed)) {
            Some(known) => known,
            None => self.join(attempt).await?,
        };
        let url = self.road.url(attempt);
        let mut socket = hello::upgrade(&self.road, url, &known.key, &mut Trail::new()).await?;
        let welcome = hello::greet(&mut socket, &self.told, &self.live, self.source, &known).await?;
        let known = self.welcomed(known, &welcome);
        self.shown.counts.links.fetch_add(1, Relaxed);
        self.stand(LinkState::Linked { url: url.to_string(), name: welcome.name.clone() });
        let spread = u64::from(crc32c(known.source.as_bytes())) % (u64::from(welcome.spread) + 1);
        let link = serve::LinkParts {
            live: self.live.clone(),
            source: self.source,
            runs: self.runs.clone(),
            told: self.told.clone(),
            shifts: known.shifts,
            spread: Duration::from_millis(spread),
            shown: self.shown.clone(),
        };
        Ok((link, socket, welcome))
    }

    /// Handles the hub's welcome: our name there, and whether it already has ticks with numbers of this life. Those
    /// come from before the clock was set. Then the ticks so far get other numbers in the hub, and the next ones
    /// continue above them.
    fn welcomed(&self, mut known: AgentIdentity, welcome: &Welcome) -> AgentIdentity {
        let first = !self.welcomed.swap(true, Relaxed);
        let mut shift = None;
        if first {
            // Nothing is appended meanwhile.
            let _writing = self.live.writing();
            let mut store = self.live.store();
            // Records from now on are new to the hub.
            if welcome.record > store.last_record(self.source) {
                store.number_records_above(self.source, welcome.record);
            }
            let (life, newest) = (store.life(self.source), store.state(self.source).map_or(0, |state| state.seq()));
            if life > 0 && welcome.holds >= life {
                let add = welcome.holds + 1 - life;
                if newest >= life {
                    shift = Some(Shift { first: life, last: newest, add });
                }
                store.go_on_above(self.source, welcome.holds.max(newest + add));
                tracing::warn!(
                    hub = self.url(),
                    "the hub has ticks of this machine with numbers above its clock: it continues above them"
                );
            }
        }
        if shift.is_some() || known.name != welcome.name {
            known.name.clone_from(&welcome.name);
            known.shifts.extend(shift);
            let (name, shifts) = (known.name.clone(), known.shifts.clone());
            self.file.change(&known.hub, |kept| (kept.name, kept.shifts) = (name, shifts));
        }
        known
    }

    /// Joins the hub with the join key.
    async fn join(&self, attempt: usize) -> Result<AgentIdentity, UplinkEnd> {
        let key = self.key().map_err(|why| UplinkEnd::Refused(NO_KEY, why))?;
        let evidence = &self.told.evidence;
        let before = self.file.known(&self.identity);
        let request = EnrolRequest {
            request: self.request.lock().clone(),
            name: self.hub.name.clone(),
            machine: evidence.machine.map(hex::encode),
            links: evidence.links.iter().map(hex::encode).collect(),
            host: evidence.host.clone(),
            container: evidence.container,
            platform: self.told.platform(),
            version: Some(env!("CARGO_PKG_VERSION").into()),
        };
        let url = self.road.url(attempt);
        match join::join(&self.road, url, &key, &request).await? {
            Joining::Joined(enrolled) => {
                *self.request.lock() = new_request();
                // Samples of an earlier identity remain with that machine.
                let from = before.filter(|before| before.source != enrolled.source);
                let known = AgentIdentity {
                    hub: self.identity.clone(),
                    source: enrolled.source,
                    name: enrolled.name,
                    key: enrolled.key.reveal().into(),
                    pin: self.hub.pin.map(|pin| pin.to_string()),
                    machine: evidence.machine.map(hex::encode),
                    join: Some(mark(&key)),
                    from: from.map_or(0, |_| self.live.store().life(self.source)),
                    shifts: Vec::new(),
                };
                let (file, kept) = (self.file.clone(), known.clone());
                // It is written to disk before its use, so that the next start finds it.
                let _ = tokio::task::spawn_blocking(move || file.keep(kept)).await;
                self.anew.store(false, Relaxed);
                Ok(known)
            }
            Joining::Pending => {
                self.stand(LinkState::Pending);
                Err(UplinkEnd::Later(PENDING.into(), Some(PENDING_PAUSE)))
            }
            Joining::Refused { status: 429 | 500..=599, why, wait } => Err(UplinkEnd::Later(why, wait)),
            Joining::Refused { why, .. } => Err(UplinkEnd::Refused(0, why)),
        }
    }

    /// Sets the state, and logs it if it has changed.
    fn stand(&self, state: LinkState) {
        let state = match state {
            LinkState::Away(why) if why == PENDING => LinkState::Pending,
            other => other,
        };
        let new = self.state.send_if_modified(|before| {
            let new = *before != state;
            *before = state.clone();
            new
        });
        if !new {
            return;
        }
        self.show(&state);
        let (hub, machine) = (self.url(), self.shown.host.as_deref());
        match state {
            LinkState::Starting => {}
            LinkState::Pending => tracing::info!(hub, machine, "{PENDING}"),
            LinkState::Linked { name, .. } => tracing::info!(hub, machine, name, "connected"),
            LinkState::Away(why) => tracing::warn!(hub, machine, "not connected: {why}. It is tried again"),
            LinkState::Refused(why) => tracing::warn!(hub, machine, "refused: {why}"),
        }
    }

    /// Publishes the state for the API.
    fn show(&self, state: &LinkState) {
        let (word, why) = match state {
            LinkState::Starting => ("starting", None),
            LinkState::Pending => ("pending", Some(PENDING.to_string())),
            LinkState::Linked { .. } => ("live", None),
            LinkState::Away(why) => ("away", Some(why.clone())),
            LinkState::Refused(why) => ("refused", Some(why.clone())),
        };
        let (name, source) = self.file.known(&self.identity).map(|known| (known.name, known.source)).unzip();
        self.shown.stand(UplinkStatus { word, why, since: self.live.clock.wall(), name, source });
    }
}

/// Message while an admin has yet to decide.
const PENDING: &str = "an admin of the hub must approve this machine";

fn new_request() -> String {
    format!("{:016x}{:016x}", random(), random())
}

/// Resolves once it is stopped.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // All owners have gone, so nothing can stop it any more.
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

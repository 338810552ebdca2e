//! Modes of a serving program: [`machine`] measures its machine, [`agent`] sends that to hubs, [`hub`] receives
//! samples of agents and has accounts ([`servers`] checks the servers that it needs), [`demo`] simulates a fleet,
//! [`replay`] shows a recording. A mode assembles parts and has no logic of its own; [`serve`] is common to all modes.

pub mod agent;
mod bind;
pub mod demo;
mod found;
pub mod hub;
mod jobs;
pub mod links;
pub mod machine;
pub mod replay;
mod sent;
pub mod servers;

pub use bind::bind;

use self::jobs::Jobs;
use crate::config::Config;
use crate::control::{self, Bound, FolderSocket};
use crate::http;
use crate::http::Services;
use crate::http::guard::Guard;
use crate::http::hub::Hub;
use crate::http::page::Site;
use crate::http::tls::Certificate;
use crate::remote_write::{RemoteWriter, SendingCluster, keep_recalling};
use crate::stderr;
use ::jobs::runs::{self, RunRegistry};
use ::watch::alerts::{self, AlertRegistry, AlertRegistryParts, AlertSources, KEY_FILE, OWN_FILE, SharingHub};
use ::watch::findings::{self, AskNccl, AskStacks, Following, HangQuestions, KeptFindings};
use ::watch::written::{WrittenRegistry, follow_run_edits};
use cluster::gossip::Gossip;
use notify::Road;
use shared::embedded::EmbeddedPage;
use shared::wire::Source;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use stream::archive::{self, Archive};
use stream::live::Live;
use team::accounts::Accounts;
use tokio::io::DuplexStream;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};

/// Maximum size of sealed columns in a server's memory, bytes.
const MAX_MEMORY_BYTES: usize = 256 << 20;
/// The same limit for a hub. Columns are in memory until their quarter of an hour is written. Those of a thousand
/// machines with 500 changing series exceed the limit of one machine.
const MAX_HUB_MEMORY_BYTES: usize = 1 << 30;

/// Time between two checks whether the server's log can be written.
const LOG_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Time between two checks for machines of an unknown team.
const TEAMS_INTERVAL: Duration = Duration::from_secs(5);

/// Listening sockets of a server, and its signals from and to its caller.
pub struct Serving {
    /// The page, if the program contains it.
    pub page: EmbeddedPage,
    /// The sockets that [`bind`] opened.
    pub listeners: Vec<TcpListener>,
    /// The configured Unix socket.
    pub unix: Option<Bound>,
    /// Connections within this process, for a client that shows the page without a port.
    pub within: Option<mpsc::Receiver<DuplexStream>>,
    /// The caller sets it to true when the server is to end.
    pub stop: watch::Receiver<bool>,
    /// The server sends on it once requests are answered.
    pub answering: oneshot::Sender<()>,
}

/// The parts of a running server.
struct Served {
    live: Arc<Live>,
    archive: Option<Archive>,
    /// Accounts and agents, if it is a hub.
    hub: Option<Hub>,
    /// The certificate, if TLS is on.
    certificate: Option<Arc<Certificate>>,
    /// The socket of the data folder, for administration.
    control: Option<Bound>,
    /// The socket of the data folder for a server that shows the same page.
    shown: Option<Bound>,
    jobs: Jobs,
    /// The data folder with the stored summaries of runs.
    kept_in: Option<PathBuf>,
    /// The shared sending of several replicas to one sample store.
    sending: Option<SendingCluster>,
    /// Signals that the history for baselines of findings is loaded, if that is after the start.
    history: Option<oneshot::Receiver<()>>,
}

impl Served {
    /// A server of one machine.
    fn alone(live: Arc<Live>, archive: Option<Archive>, jobs: Jobs) -> Self {
        Served {
            live,
            archive,
            hub: None,
            certificate: None,
            control: None,
            shown: None,
            jobs,
            kept_in: None,
            sending: None,
            history: None,
        }
    }

    /// Adds the sockets of its data folder.
    fn with_sockets_of(self, folder: &Path) -> Self {
        Served {
            control: socket_of(folder, FolderSocket::Control),
            shown: socket_of(folder, FolderSocket::Page),
            kept_in: Some(folder.into()),
            ..self
        }
    }
}

/// Serves until `stop` becomes true, or the work that fills the stream ends.
async fn serve(
    config: &Config,
    Served { live, archive, hub, certificate, control, shown, mut jobs, kept_in, sending, history }: Served,
    Serving { page, listeners, unix, within, stop, answering }: Serving,
    work: impl FnOnce(Arc<AtomicBool>) + Send + 'static,
) {
    let guard = Arc::new(match &hub {
        Some(hub) => Guard::of_hub(config, &hub.public),
        None => Guard::new(config),
    });
    let in_cluster = sending.is_some();
    let remote = remote_writer(config, &live, sending);
    if let Some(recall) = remote.as_ref().filter(|_| in_cluster).and_then(|remote| remote.recall()) {
        tokio::spawn(keep_recalling(recall.clone(), stop.clone()));
    }
    let site = Site::new(config.base_path.clone(), page);
    let of_others = hub.is_some();
    let cluster = hub.as_ref().and_then(|hub| hub.cluster.clone());
    let alerts = alert_registry(config, &live, hub.as_ref(), kept_in.as_deref());
    // Before the first request: a deleted run is in no answer.
    if let Err(error) = WrittenRegistry::beside(&alerts).refresh(&jobs.runs.edits).await {
        tracing::warn!(%error, "it cannot be read which runs people changed or deleted; the server tries again");
    }
    tokio::spawn(follow_run_edits(alerts.clone(), jobs.runs.edits.clone(), stop.clone()));
    let accounts = hub.as_ref().map(|hub| hub.accounts.clone());
    let hangs = hang_questions(&live, &jobs, hub.as_ref());
    look_for_findings(config, &live, &jobs, (of_others, hangs), (kept_in.clone(), history), &stop);
    let sharing = cluster.as_ref().map(|cluster| SharingHub {
        id: cluster.others().id.clone(),
        name: cluster.others().name.clone(),
        own: (!config.no_local).then(machine::name),
    });
    watch_alerts(config, (&live, &jobs, &alerts), (of_others, sharing), &stop);
    if let Some(cluster) = cluster {
        let gossip = Gossip::new(live.clone(), jobs.findings.clone());
        tokio::spawn(gossip.keep(cluster.others().bus.clone(), cluster.others().id.clone(), stop.clone()));
    }
    if let Some(accounts) = accounts {
        jobs.runs.set_teams(HashMap::new());
        tokio::spawn(know_teams(live.clone(), jobs.runs.clone(), accounts, stop.clone()));
    }
    if let Some(folder) = kept_in {
        let (live, registry, keep, stop) = (live.clone(), jobs.runs.clone(), config.runs.keep, stop.clone());
        tokio::spawn(async move { runs::keep(live, registry, &folder, keep, stop).await });
    }
    jobs.follow(config, &live, &stop);
    let services = Services {
        alerts: Some(alerts),
        hub,
        remote: remote.clone(),
        markers: jobs.markers,
        calls: jobs.calls,
        runs: jobs.runs,
        findings: jobs.findings,
        live: live.clone(),
    };
    let app = http::App::new(services, guard.clone(), site, stop.clone());
    let serving = async move {
        let strangers = app.strangers();
        let router = http::router(app);
        let local = serve_unix(control, FolderSocket::Control, router.clone(), stop.clone());
        let joined = serve_unix(shown, FolderSocket::Page, router.clone(), stop.clone());
        let named = serve_unix(unix, FolderSocket::Page, router.clone(), stop.clone());
        let within = http::listen::serve_within(within, router.clone(), stop.clone());
        let serving = http::listen::serve(listeners, router, guard, certificate, strangers, stop);
        let _ = answering.send(()); // The receiver may have gone, which is no failure.
        tokio::join!(serving, local, joined, named, within);
    };
    keep(live, archive, remote, work, serving).await;
}

/// Storage of rules, channels and alerts: a hub's database; a file of the data folder, made with the first entry; or
/// memory.
fn alert_registry(config: &Config, live: &Live, hub: Option<&Hub>, folder: Option<&Path>) -> AlertRegistry {
    let public = hub.map(|hub| &hub.public).or(config.public_url.as_ref());
    let about = AlertRegistryParts {
        public_url: public.map(ToString::to_string),
        host: machine::name(),
        names_teams: hub.is_some(),
        fixed: config.rules.iter().cloned().chain(config.rules_builtin.rules()).collect(),
        allowed: config.alerts.allowed(),
        mail: config.smtp.host.is_some(),
        runs_kept: config.runs.keep.map(|keep| keep.as_millis() as i64),
    };
    let clock = live.clock.clone();
    match (hub, folder) {
        (Some(hub), Some(folder)) => {
            let key = config.database.key_file.clone().unwrap_or_else(|| folder.join(KEY_FILE));
            AlertRegistry::of_hub(hub.accounts.records(), key, clock, about)
        }
        (None, Some(folder)) => AlertRegistry::of_own(folder.join(OWN_FILE), folder.join(KEY_FILE), clock, about),
        (_, None) => AlertRegistry::in_memory(clock, about),
    }
}

/// Evaluates rules over new samples, and sends notifications. A recording is past data: it sends none.
fn watch_alerts(
    config: &Config,
    (live, jobs, registry): (&Arc<Live>, &Jobs, &AlertRegistry),
    (has_teams, hub): (bool, Option<SharingHub>),
    stop: &watch::Receiver<bool>,
) {
    if live.provenance.recorded.is_some() {
        return;
    }
    let smtp = config.smtp.open().unwrap_or_else(|why| {
        tracing::error!("no e-mail is sent: {why}");
        None
    });
    let road = Road { allowed: config.alerts.allowed(), proxy: config.alerts.proxy.clone(), smtp };
    let (done, heard) = mpsc::channel(alerts::MAX_DONE);
    tokio::spawn(alerts::deliver(registry.clone(), road, live.clock.clone(), done, stop.clone()));
    let sources = AlertSources {
        live: live.clone(),
        runs: jobs.runs.clone(),
        findings: jobs.findings.clone(),
        calls: jobs.calls.clone(),
        registry: registry.clone(),
        has_teams,
        storm: config.alerts.storm as usize,
        hub,
    };
    tokio::spawn(alerts::watch(sources, heard, stop.clone()));
}

/// Asks about a hang on this machine, or on one with a link to this hub.
fn hang_questions(live: &Arc<Live>, jobs: &Jobs, hub: Option<&Hub>) -> HangQuestions {
    let (live, runs) = (live.clone(), jobs.runs.clone());
    let (ingest, runtime) = (hub.map(|hub| hub.ingest.clone()), tokio::runtime::Handle::current());
    let (to_live, to_runs, to_ingest, by_runtime) = (live.clone(), runs.clone(), ingest.clone(), runtime.clone());
    let nccl: AskNccl = Arc::new(move |source, gpus| match ingest.as_ref().filter(|ingest| ingest.has_agent(source)) {
        Some(ingest) => runtime.block_on(ingest.nccl(source, gpus.to_vec())).ok(),
        None => runs.nccl(&live, source, gpus),
    });
    let stacks: AskStacks =
        Arc::new(move |source, gpus| match to_ingest.as_ref().filter(|ingest| ingest.has_agent(source)) {
            Some(ingest) => by_runtime.block_on(ingest.stacks(source, gpus.to_vec())).unwrap_or_default(),
            None => to_runs.request_stacks(&to_live, source, gpus),
        });
    HangQuestions { nccl, stacks }
}

/// Detects problems: in new samples, and in all samples of a recording.
fn look_for_findings(
    config: &Config,
    live: &Arc<Live>,
    jobs: &Jobs,
    (of_others, hangs): (bool, HangQuestions),
    (folder, history): (Option<PathBuf>, Option<oneshot::Receiver<()>>),
    stop: &watch::Receiver<bool>,
) {
    if !config.insight.enabled {
        return;
    }
    let (live, registry, settings) = (live.clone(), jobs.findings.clone(), config.insight.settings());
    match live.provenance.recorded {
        Some(_) => {
            tokio::task::spawn_blocking(move || findings::look_through(&live, &registry, settings, None));
        }
        None => {
            // Before the first request: findings of an earlier process are in the first response.
            let kept = folder.map(|folder| KeptFindings::open(&folder, &registry));
            let (runs, hangs) = (jobs.runs.clone(), Some(hangs));
            let following = Following { live, registry, runs, settings, of_others, kept, hangs };
            let stop = stop.clone();
            tokio::spawn(async move {
                if let Some(history) = history {
                    // On an error the sender and the server have ended.
                    let _ = history.await;
                }
                findings::follow(following, stop).await;
            });
        }
    }
}

async fn serve_unix(bound: Option<Bound>, socket: FolderSocket, router: axum::Router, stop: watch::Receiver<bool>) {
    #[cfg(unix)]
    if let Some(bound) = bound {
        http::listen::serve_unix(bound, socket, router, stop).await;
    }
    #[cfg(not(unix))]
    drop((bound, socket, router, stop));
}

/// Listens on a socket of a data folder that this process owns; none, with a log line, if that fails.
fn socket_of(folder: &Path, socket: FolderSocket) -> Option<Bound> {
    let path = match control::path(folder, socket, control::runtime_folder()) {
        Ok(Some(path)) => path,
        Ok(None) => {
            tracing::warn!(
                "the path of a socket is longer than a socket's may be: no command on this machine can ask this process; \
                 name a shorter folder with --data-dir"
            );
            return None;
        }
        Err(error) => {
            tracing::warn!(%error, "there is no socket of the data folder");
            return None;
        }
    };
    let failed = |error: &std::io::Error| tracing::warn!(%error, "cannot listen on {}", path.display());
    let is_in_folder = folder.canonicalize().is_ok_and(|folder| path.starts_with(folder));
    let bound = if is_in_folder { control::bind(&path) } else { control::bind_in_login(&path) };
    bound.inspect_err(failed).ok()
}

/// Reports the team of each machine of a hub to the runs, until `stop` becomes true.
async fn know_teams(live: Arc<Live>, registry: Arc<RunRegistry>, accounts: Accounts, mut stop: watch::Receiver<bool>) {
    let mut due = tokio::time::interval(TEAMS_INTERVAL);
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = due.tick() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        let sources = live.store().sources();
        // A machine stays with its team. Without the database, runs are joined only if they are known to belong
        // together.
        if !registry.knows_teams(&sources)
            && let Ok(homes) = accounts.usage_homes().await
        {
            let team = |source: &Arc<Source>| Some((source.key.clone(), homes.team_of(&source.key)?.into()));
            registry.set_teams(sources.iter().filter_map(team).collect());
        }
    }
}

/// The remote writer, if the configuration has one: only for samples measured here and now.
fn remote_writer(config: &Config, live: &Arc<Live>, cluster: Option<SendingCluster>) -> Option<Arc<RemoteWriter>> {
    let settings = config.remote_write.clone().filter(|_| live.provenance.is_measured());
    let folder = config.data_dir.as_deref().filter(|_| !config.memory);
    settings.map(|settings| RemoteWriter::start_in(cluster, live, settings, folder))
}

/// Fills `live` by this work and keeps its history while `during` runs, or until the work ends.
async fn keep(
    live: Arc<Live>,
    archive: Option<Archive>,
    remote: Option<Arc<RemoteWriter>>,
    work: impl FnOnce(Arc<AtomicBool>) + Send + 'static,
    during: impl Future<Output = ()>,
) {
    let ended = Arc::new(AtomicBool::new(false));
    let told = ended.clone();
    let (alive, sampler_gone) = tokio::sync::oneshot::channel::<()>();
    let work = move || {
        work(told);
        // A panic drops it as well. Either way the server ends: it must not continue to show old values.
        drop(alive);
    };
    if let Err(error) = std::thread::Builder::new().name("sampler".into()).spawn(work) {
        return tracing::error!(%error, "cannot start the thread that samples");
    }
    if let Some(archive) = archive {
        let told = ended.clone();
        let keep = move || archive::run(archive, &told);
        if let Err(error) = std::thread::Builder::new().name("archive".into()).spawn(keep) {
            ended.store(true, Ordering::Relaxed);
            return tracing::error!(%error, "cannot start the thread that keeps history");
        }
    }
    tokio::select! {
        () = during => {}
        _ = sampler_gone => tracing::error!("the sampler has ended"),
        () = watch_log(&live) => {}
    }
    ended.store(true, Ordering::Relaxed);
    // Wakes viewers, which then notice that the server shuts down.
    live.wake_all();
    if let Some(remote) = remote {
        remote.stop();
    }
    // It waits for the disk, with a timeout.
    let _ = tokio::task::spawn_blocking(move || live.close()).await;
}

/// Reports in the checks of every source when the server's own log cannot be written, and when it recovers. Never
/// ends.
async fn watch_log(live: &Live) {
    let mut well = true;
    loop {
        tokio::time::sleep(LOG_CHECK_INTERVAL).await;
        let trouble = stderr::check();
        if !well || trouble.is_some() {
            well = trouble.is_none();
            live.store().set_check(&trouble.unwrap_or_else(stderr::well));
        }
    }
}

/// A number unique to this start of the server. With it a viewer that reconnects after a restart gets no continuation
/// of another sequence.
fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}

/// The work of a server that measures nothing.
fn idle(ended: Arc<AtomicBool>) {
    while !ended.load(Ordering::Relaxed) {
        std::thread::park_timeout(Duration::from_secs(60));
    }
}

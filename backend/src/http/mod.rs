//! HTTP: [`listen`] accepts connections, [`guard`] checks requests, [`routes`] is the one table of operations, `api`
//! answers, `stream` serves the live stream over WebSockets, and [`page`] is the page itself. Only code that assembles
//! a server imports this module.

mod about;
mod admin;
mod admit;
mod agents;
mod alerts;
mod api;
mod body;
mod bound;
mod cookie;
mod counted;
mod descriptors;
mod dismiss;
pub mod guard;
pub mod hub;
mod join_road;
pub mod listen;
mod log;
mod me;
mod names;
mod need;
mod notes;
mod pace;
pub mod page;
mod provider;
mod proxy_identity;
mod refusal;
mod rights;
mod routes;
mod run_edits;
mod services;
mod session;
mod strangers;
mod stream;
pub mod tls;
mod transport;
mod upgrade;
mod usage;
mod views;
mod write_timeout;

pub use api::counters;
pub use join_road::JoinRoad;
pub use refusal::Refusal;
pub use services::Services;
pub use strangers::Strangers;

use self::api::AnswerLimits;
use crate::remote_write::RemoteWriter;
use ::api::Operation;
use ::stream::live::Live;
use ::watch::alerts::AlertRegistry;
use ::watch::findings::FindingRegistry;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use fleet::drain::Drain;
use fleet::ingest::NoAnswer;
use guard::{Guard, HostNames, Resource};
use hub::Hub;
use jobs::code_alerts::Calls;
use jobs::markers::Markers;
use jobs::runs::{ListSummaries, RunRegistry};
use page::Site;
use parking_lot::Mutex;
use shared::processes::ProcessTable;
use shared::run::RunLine;
use shared::session::Problem;
use shared::wire::{Source, SourceId};
use std::net::IpAddr;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// Maximum number of runs of a machine in a terminal, and the time that ended runs stay listed, milliseconds.
const MAX_RUN_LINES: usize = 50;
const LINES_MS: i64 = 10 * 60_000;

/// Maximum number of history messages in flight to pages.
const MAX_HISTORY_MESSAGES: usize = 128;
/// `Retry-After` of a hub that shuts down.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// Error of a server without alert rules.
const NO_ALERTS: &str = "an agent watches nothing itself; its hubs do, so ask one of them";

/// The caller, determined once per connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Caller {
    /// Whether the user at the other end of the connection may read.
    pub admitted: bool,
    /// The address of the peer; none for a connection by a socket in a folder.
    pub peer: Option<IpAddr>,
    /// The uid of the peer, if the system reports it.
    pub uid: Option<u32>,
    /// Whether the connection uses our own TLS.
    pub tls: bool,
    /// The uid of a peer that gives commands by a socket in our own folder: the owner of the server, or root.
    pub local: Option<u32>,
    /// The PID of such a peer, if the system reports it.
    pub pid: Option<u32>,
    /// Host names that the caller may use for this server.
    pub names: HostNames,
}

/// State shared by the handlers of all paths. Each server has one.
pub struct App {
    live: Arc<Live>,
    guard: Arc<Guard>,
    /// Accounts and agents; none in a server of a single machine.
    hub: Option<Hub>,
    /// Base path of the page, and its files.
    site: Site,
    stop: watch::Receiver<bool>,
    remote: Option<Arc<RemoteWriter>>,
    /// Maximum number of connected pages and scripts.
    viewers: usize,
    /// Connections and requests of unauthenticated callers.
    strangers: Arc<Strangers>,
    answers: AnswerLimits,
    /// Markers of notebooks.
    markers: Arc<Markers>,
    /// Alerts from code.
    calls: Arc<Calls>,
    /// The runs of all machines.
    runs: Arc<RunRegistry>,
    /// Findings about the machines.
    findings: Arc<FindingRegistry>,
    /// Alert rules and notifications; see [`App::alerts`].
    alerts: Option<AlertRegistry>,
    /// Summaries of runs for lists.
    summaries: ListSummaries,
    /// Limit of history messages in flight to pages: each belongs to one page and takes half a megabyte.
    history_messages: Semaphore,
    /// The texts that all scripts receive, while any script is connected.
    broadcast: Mutex<Weak<stream::Broadcast>>,
    /// Pages without a WebSocket.
    fallbacks: stream::FallbackViewers,
    /// The OpenAPI document, built on the first request.
    openapi: OnceLock<String>,
}

impl App {
    /// State of a server that answers from `services` at `site` until `stop` is true.
    pub fn new(services: Services, guard: Arc<Guard>, site: Site, stop: watch::Receiver<bool>) -> Arc<Self> {
        let Services { live, markers, calls, runs, findings, alerts, hub, remote } = services;
        Arc::new(App {
            live,
            guard,
            strangers: Strangers::new(hub.as_ref().map(Hub::proxies).unwrap_or_default()),
            hub,
            site,
            stop,
            remote,
            viewers: descriptors::viewers(),
            answers: AnswerLimits::new(),
            markers,
            calls,
            runs,
            findings,
            alerts,
            summaries: ListSummaries::default(),
            history_messages: Semaphore::new(MAX_HISTORY_MESSAGES),
            broadcast: Mutex::default(),
            fallbacks: stream::FallbackViewers::default(),
            openapi: OnceLock::new(),
        })
    }

    /// Alert rules and notifications.
    ///
    /// # Errors
    /// 404: this server has none.
    fn alerts(&self) -> Result<&AlertRegistry, Refusal> {
        self.alerts.as_ref().ok_or_else(|| Refusal::new(StatusCode::NOT_FOUND, NO_ALERTS))
    }

    /// Connections and requests of unauthenticated callers, for the listener.
    pub fn strangers(&self) -> Arc<Strangers> {
        self.strangers.clone()
    }

    /// The parts that only a hub has.
    ///
    /// # Errors
    /// 404: this is no hub.
    fn hub(&self) -> Result<&Hub, Refusal> {
        self.hub.as_ref().ok_or_else(no_accounts)
    }

    /// Controls how a hub that shuts down closes its links.
    fn drain(&self) -> Option<&Drain> {
        self.hub.as_ref().map(|hub| hub.ingest.drain())
    }

    /// Checks that the hub accepts new clients. One that shuts down does not; another replica, or the same hub later,
    /// takes them.
    ///
    /// # Errors
    /// 503, with the time to wait before a retry.
    fn lets_in(&self) -> Result<(), Refusal> {
        match self.drain().is_some_and(Drain::has_begun) {
            true => {
                Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "this hub is shutting down; retry in a few seconds")
                    .again_in(ENDS_WITHIN))
            }
            false => Ok(()),
        }
    }

    /// The newest process table of a source, or its largest users at a time, milliseconds since the Unix epoch. For
    /// another machine it is requested from its agent.
    ///
    /// # Errors
    /// The reason why there is none.
    async fn processes(&self, source: SourceId, at: Option<i64>) -> Result<Arc<ProcessTable>, NoAnswer> {
        let processes = self.live.source(source).processes.clone();
        match &self.hub {
            Some(hub) if hub.ingest.has_agent(source) => hub.ingest.processes(source, at).await.map(Arc::new),
            _ => at.map_or_else(|| processes.newest(), |t| processes.at(t).map(Arc::new)).ok_or(NoAnswer::Nothing),
        }
    }

    /// The newest runs of a source that are active or ended recently. It reads the disk.
    fn run_lines(&self, source: Arc<Source>) -> Vec<RunLine> {
        let (now, sources) = (self.live.clock.wall(), [source]);
        let runs = self.runs.newest_first(&self.live, &sources, (now - LINES_MS, now)).take(MAX_RUN_LINES);
        let lines = runs.map(|run| {
            let sums = &self.summaries.summary(&self.live, &sources, &run, now).sums;
            RunLine {
                id: run.id.clone(),
                name: run.about.name.clone(),
                state: run.state,
                sentence: run.sentence.clone(),
                began: run.began,
                ended: run.ended,
                ranks: run.processes.iter().filter(|process| process.rank.is_some()).count() as u64,
                gpu_hours: sums.gpu_hours(),
                gpu_utilization: sums.gpu_utilization(),
            }
        });
        lines.collect()
    }

    /// Whether a request over the socket in our own folder is a command, and not passed on by a proxy.
    fn is_command(&self, headers: &HeaderMap) -> bool {
        let vouches = self.hub.as_ref().and_then(|hub| hub.proxy.as_ref());
        guard::is_command(headers) && vouches.is_none_or(|proxy| !headers.contains_key(&proxy.user))
    }

    /// The path without the base, which a proxy may or may not have stripped.
    fn below_base<'a>(&self, path: &'a str) -> &'a str {
        match path.strip_prefix(self.site.base.trim_end_matches('/')) {
            Some(rest) if rest.starts_with('/') => rest,
            _ => path,
        }
    }
}

/// All paths, behind the guard.
pub fn router(app: Arc<App>) -> Router {
    let paths = routes::router(&app).with_state(app.clone());
    let router = match app.site.base.trim_matches('/') {
        "" => paths,
        base => paths.clone().nest(&format!("/{base}"), paths),
    };
    router.layer(from_fn_with_state(app, guard))
}

fn kind(path: &str, headers: &HeaderMap) -> Resource {
    match path {
        // Without an upgrade it follows the rules of data.
        path if path == Operation::FollowLive.path() && headers.contains_key(header::UPGRADE) => Resource::Socket,
        "/metrics" | "/healthz" => Resource::Data,
        path if path.starts_with("/api/") => Resource::Data,
        _ => Resource::Page,
    }
}

/// The guard, and the headers of every answer.
async fn guard(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response<Body> {
    let mut caller = request.extensions().get::<Caller>().copied();
    if let Some(caller) = caller.as_mut().filter(|_| !app.is_command(request.headers())) {
        caller.local = None;
        request.extensions_mut().insert(*caller);
    }
    let path = request.uri().path();
    // Both readings of the path are served, so the stricter one counts: the base may itself begin with "api".
    let kind = match kind(path, request.headers()) {
        Resource::Page => kind(app.below_base(path), request.headers()),
        kind => kind,
    };
    let is_page = kind == Resource::Page;
    let forbidden = |sentence: &str| Err(Refusal::new(StatusCode::FORBIDDEN, sentence));
    let checked = match caller {
        None => forbidden("the connection was not authenticated"),
        Some(Caller { admitted: false, .. }) => forbidden(
            "this Watchglass belongs to another user of this machine; its owner can allow you with --allow-user NAME",
        ),
        Some(caller) => at_door(&app, caller, request.uri(), request.headers(), kind).await,
    };
    let is_refused = checked.is_err();
    let mut response = match checked {
        Ok(()) => next.run(request).await,
        Err(refusal) if is_page && refusal::wants_page(request.headers()) => refusal.page(),
        Err(refusal) => refusal.into(),
    };
    if !is_page || is_refused {
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    app.guard.headers(response.headers_mut(), app.site.page.inline_scripts);
    if app.hub.as_ref().is_some_and(|hub| hub.public.is_https()) {
        response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
    response
}

/// Checks of every request. A key in an address is revoked, since it is already in some log.
async fn at_door(app: &App, caller: Caller, uri: &Uri, headers: &HeaderMap, kind: Resource) -> Result<(), Refusal> {
    app.guard.check(uri, headers, kind, caller.names)?;
    if let (Some(hub), Some(key)) = (&app.hub, uri.query().and_then(admit::key_in)) {
        hub.accounts.leaked(key.reveal(), &hub.network(caller, headers)).await?;
        return Err(Refusal::bad(
            "a key in an address ends up in logs. It was revoked; create a new one and send it as Authorization: \
            Bearer",
        ));
    }
    Ok(())
}

/// 404: the request needs accounts.
fn no_accounts() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "this server has no accounts; watchglass hub has them")
}

/// Resolves when the server shuts down.
async fn ended(stop: &mut watch::Receiver<bool>) {
    // The sender lives as long as the program; without it there is nothing left to serve.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// An error as JSON: one sentence with the action to take.
fn error(status: StatusCode, sentence: impl Into<String>) -> Response<Body> {
    json(status, &Problem { error: sentence.into(), ..Problem::default() })
}

fn json(status: StatusCode, value: &impl serde::Serialize) -> Response<Body> {
    json_text(status, serde_json::to_string(value).expect("answers hold only text, finite numbers and lists"))
}

fn json_text(status: StatusCode, body: String) -> Response<Body> {
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(body))
        .expect("these headers are valid")
}

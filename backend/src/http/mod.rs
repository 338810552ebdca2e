//! The door and the paths behind it. Nobody imports this room but [`crate::run`].

mod answer;
mod api;
mod descriptors;
pub mod door;
mod gpus;
mod health;
pub mod listen;
mod live;
mod metrics;
mod older;
pub mod page;
mod params;
mod patient;
pub mod peer;
mod query;
mod record;
mod script;
mod series;
mod socket;

use crate::live::Hub;
use crate::remote::Remote;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::routing::get;
use door::{Door, Kind};
use shared::processes::ProcessTable;
use std::sync::{Arc, Mutex, Weak};
use tokio::sync::watch;

/// Who calls, asked once per connection.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// Whether the caller's user may read.
    pub admitted: bool,
}

/// What every path needs.
pub struct App {
    hub: Arc<Hub>,
    door: Arc<Door>,
    /// `/`, or a path that a proxy does not strip, with slashes at both ends.
    base: String,
    stop: watch::Receiver<bool>,
    remote: Option<Arc<Remote>>,
    /// Pages and scripts that may be connected at once.
    viewers: usize,
    /// What all scripts listen to, while there are any.
    teller: Mutex<Weak<script::Teller>>,
}

impl App {
    /// What every path needs.
    pub fn new(
        hub: Arc<Hub>,
        door: Arc<Door>,
        base: String,
        stop: watch::Receiver<bool>,
        remote: Option<Arc<Remote>>,
    ) -> Arc<Self> {
        let viewers = descriptors::viewers();
        Arc::new(App { hub, door, base, stop, remote, viewers, teller: Mutex::default() })
    }

    /// The newest process table, or the largest users at a time, milliseconds since the Unix epoch.
    fn processes(&self, at: Option<i64>) -> Option<Arc<ProcessTable>> {
        match at {
            None => self.hub.processes.newest(),
            Some(t) => self.hub.processes.at(t).map(Arc::new),
        }
    }

    /// The path without the base, which a proxy may or may not have stripped.
    fn below_base<'a>(&self, path: &'a str) -> &'a str {
        match path.strip_prefix(self.base.trim_end_matches('/')) {
            Some(rest) if rest.starts_with('/') => rest,
            _ => path,
        }
    }
}

/// All paths, behind the door.
pub fn router(app: Arc<App>) -> Router {
    let paths = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/metrics", get(metrics::get))
        .route("/api/v1/catalog", get(api::catalog))
        .route("/api/v1/sources", get(api::sources))
        .route("/api/v1/series", get(series::get))
        .route("/api/v1/query", get(query::query))
        .route("/api/v1/export", get(query::export))
        .route("/api/v1/record", get(record::get))
        .route("/api/v1/processes", get(api::processes))
        .route("/api/v1/doctor", get(api::doctor))
        .route("/api/v1/live", get(live::get))
        .route("/api/{*rest}", get(api::unknown))
        .fallback(get(page::serve).fallback(only_get))
        .method_not_allowed_fallback(only_get)
        .with_state(app.clone());
    let router = match app.base.trim_matches('/') {
        "" => paths,
        base => paths.clone().nest(&format!("/{base}"), paths),
    };
    router.layer(from_fn_with_state(app, guard))
}

fn kind(path: &str) -> Kind {
    match path {
        "/api/v1/live" => Kind::Socket,
        "/metrics" | "/healthz" => Kind::Data,
        path if path.starts_with("/api/") => Kind::Data,
        _ => Kind::Page,
    }
}

/// The door, and the headers of every answer.
async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response<Body> {
    let caller = request.extensions().get::<Caller>().copied();
    let path = request.uri().path();
    // Both readings of the path are served, so the stricter one counts: the base may itself begin with "api".
    let kind = match kind(path) {
        Kind::Page => kind(app.below_base(path)),
        kind => kind,
    };
    let is_page = kind == Kind::Page;
    let mut response = match caller {
        None => error(StatusCode::FORBIDDEN, "this connection did not come through the door"),
        Some(Caller { admitted: false }) => error(
            StatusCode::FORBIDDEN,
            "this Watchglass belongs to another user of this machine; its owner can start it with --allow-user NAME to let you read",
        ),
        Some(_) => match app.door.check(request.uri(), request.headers(), kind) {
            Ok(()) => next.run(request).await,
            Err(refusal) => error(refusal.status, refusal.message),
        },
    };
    if !is_page {
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    app.door.headers(response.headers_mut(), page::INLINE_SCRIPT_HASHES);
    response
}

async fn only_get() -> Response<Body> {
    let mut response = error(StatusCode::METHOD_NOT_ALLOWED, "nothing here can be changed; ask with GET");
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET,HEAD"));
    response
}

/// Resolves when the server is to end.
async fn ended(stop: &mut watch::Receiver<bool>) {
    // The sender lives as long as the program; without it there is nothing left to serve.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// An error as JSON: one sentence that says what to do.
fn error(status: StatusCode, sentence: impl Into<String>) -> Response<Body> {
    json(status, &serde_json::json!({ "error": sentence.into() }))
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

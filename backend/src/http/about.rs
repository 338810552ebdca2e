//! `GET /healthz`: whether this server accepts more clients. `GET /api/v1/hub`: state of the whole hub, for its
//! admins.

use super::admit::Asker;
use super::{App, Refusal, json};
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use fleet::drain::Drain;
use shared::hub::{AboutHub, AuditFile};
use std::sync::Arc;

/// A hub that shuts down still answers, with a status that stops further requests.
pub(super) async fn health(State(app): State<Arc<App>>) -> (StatusCode, &'static str) {
    match app.drain().is_some_and(Drain::has_begun) {
        true => (StatusCode::SERVICE_UNAVAILABLE, "ending\n"),
        false => (StatusCode::OK, "ok\n"),
    }
}

pub(super) async fn get(State(app): State<Arc<App>>, asker: Asker) -> Result<Response<Body>, Refusal> {
    let hub = app.hub()?;
    let about = hub.accounts.about(asker.principal()?).await?;
    let file = hub.audit_file.as_ref().map(|file| file.figures());
    let about = AboutHub {
        version: env!("CARGO_PKG_VERSION").into(),
        url: hub.public.to_string(),
        links: hub.ingest.counts().links,
        turned_away: hub.ingest.all_turned_away(),
        audit_file: file.map(|f| AuditFile { lines: f.lines, failures: f.failures, waiting: f.waiting }),
        ..about
    };
    Ok(json(StatusCode::OK, &about))
}

/// The document is built on the first request.
pub(super) async fn openapi(State(app): State<Arc<App>>) -> Response<Body> {
    let text = app.openapi.get_or_init(|| ::api::openapi::document(env!("CARGO_PKG_VERSION")).to_string());
    super::json_text(StatusCode::OK, text.clone())
}

//! The one table of routes. The router is built from it and from nothing else, so that a route for which nobody said who may
//! ask does not exist. It is the same table in a server without accounts, where the caller's uid is the one principal.

use super::admin;
use super::admit::admit;
use super::api::{self, metrics, query, record, series};
use super::need::{Carries, Need};
use super::{App, agents, page, session, stream};
use axum::Router;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, on};
use shared::role::{KeyScope, Role};
use std::sync::Arc;

/// One route.
pub struct Route {
    /// Its method; HEAD is answered where GET is.
    pub method: Method,
    /// Its path below the base; `{NAME}` is one part of it.
    pub path: &'static str,
    /// Who may ask.
    pub need: Need,
    /// What comes with it.
    pub carries: Carries,
    /// What answers.
    handler: fn(MethodFilter) -> MethodRouter<Arc<App>>,
}

/// The files of the page: what no other row takes.
const FILES: &str = "/{*file}";

/// Rows of the table: method, path, who may ask, what comes with it, what answers.
macro_rules! routes {
    ($($method:ident $path:literal, $need:expr, $carries:expr, $handler:expr;)*) => {
        &[$(Route {
            method: Method::$method,
            path: $path,
            need: $need,
            carries: $carries,
            handler: |method| on(method, $handler),
        }),*]
    };
}

/// Readers of samples.
const READ: Need = Need::Role(Role::Viewer, KeyScope::DataRead);
/// Most bodies are some names and labels.
const JSON: Carries = Carries::Json(64 << 10);
/// What a machine says of itself before anybody knows it.
const EVIDENCE: Carries = Carries::Json(16 << 10);
const NOTHING: Carries = Carries::Nothing;
const SOCKET: Carries = Carries::Socket;

/// All routes.
pub static ROUTES: &[Route] = routes! {
    GET "/{*file}", Need::Open, NOTHING, page::serve;
    GET "/healthz", Need::Open, NOTHING, async || "ok\n";
    GET "/api/{*rest}", Need::Open, NOTHING, api::unknown;
    GET "/metrics", Need::Role(Role::Admin, KeyScope::MetricsRead), NOTHING, metrics::get;
    GET "/api/v1/session", Need::Session, NOTHING, session::get;
    POST "/api/v1/session", Need::Session, JSON, session::sign_in;
    DELETE "/api/v1/session", Need::Session, NOTHING, session::sign_out;
    POST "/api/v1/session/setup", Need::Session, JSON, session::setup;
    POST "/api/v1/session/reset", Need::Session, JSON, session::reset;
    POST "/api/v1/session/again", Need::Own, JSON, session::again;
    GET "/api/v1/catalog", READ, NOTHING, api::catalog;
    GET "/api/v1/sources", READ, NOTHING, api::sources;
    GET "/api/v1/fleet", READ, NOTHING, api::fleet::get;
    GET "/api/v1/series", READ, NOTHING, series::get;
    GET "/api/v1/query", READ, NOTHING, query::query;
    GET "/api/v1/export", READ, NOTHING, query::export;
    GET "/api/v1/record", READ, NOTHING, record::get;
    GET "/api/v1/processes", READ, NOTHING, api::processes;
    GET "/api/v1/doctor", READ, NOTHING, api::doctor;
    GET "/api/v1/live", READ, SOCKET, stream::get;
    GET "/api/v1/teams/{team}/join", Need::TeamAdmin, NOTHING, admin::join::list;
    POST "/api/v1/teams/{team}/join", Need::TeamAdmin, JSON, admin::join::create;
    DELETE "/api/v1/teams/{team}/join/{id}", Need::TeamAdmin, NOTHING, admin::join::end;
    GET "/api/v1/teams/{team}/agents", Need::TeamAdmin, NOTHING, admin::agents::list;
    PATCH "/api/v1/teams/{team}/agents/{source}", Need::TeamAdmin, JSON, admin::agents::change;
    DELETE "/api/v1/teams/{team}/agents/{source}", Need::TeamAdmin, NOTHING, admin::agents::revoke;
    POST "/api/v1/teams/{team}/agents/{source}/approve", Need::TeamAdmin, NOTHING, admin::agents::approve;
    DELETE "/api/v1/sources/{source}", Need::HubAdmin, NOTHING, admin::agents::remove;
    GET "/api/v1/teams/{team}/keys", Need::TeamAdmin, NOTHING, admin::keys::list;
    POST "/api/v1/teams/{team}/keys", Need::TeamAdmin, JSON, admin::keys::create;
    DELETE "/api/v1/teams/{team}/keys/{id}", Need::TeamAdmin, NOTHING, admin::keys::end;
    GET "/api/v1/accounts", Need::HubAdmin, NOTHING, admin::people::list;
    POST "/api/v1/accounts", Need::HubAdmin, JSON, admin::people::create;
    PATCH "/api/v1/accounts/{person}", Need::HubAdmin, JSON, admin::people::change;
    DELETE "/api/v1/accounts/{person}", Need::HubAdmin, NOTHING, admin::people::remove;
    POST "/api/v1/accounts/{person}/reset", Need::HubAdmin, NOTHING, admin::people::reset;
    POST "/api/v1/ingest/enrol", Need::Key(KeyScope::AgentJoin), EVIDENCE, agents::enrol;
    GET "/api/v1/ingest", Need::Key(KeyScope::AgentWrite), SOCKET, agents::link;
};

/// All routes, each behind the question who asks.
pub(super) fn router(app: &Arc<App>) -> Router<Arc<App>> {
    let routes = ROUTES.iter().fold(Router::new(), |router, route| {
        let method = MethodFilter::try_from(route.method.clone()).expect("the table has plain methods only");
        let answers =
            (route.handler)(method).layer(from_fn_with_state((app.clone(), route.need, route.carries), admit));
        match route.path {
            FILES => router.fallback(answers.fallback(super::only_get)),
            path => router.route(path, answers),
        }
    });
    routes.method_not_allowed_fallback(super::only_get)
}

#[cfg(test)]
mod tests;

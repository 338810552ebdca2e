//! The one table of routes. The router is built from it and from nothing else, so that a route for which nobody said who may
//! ask does not exist. It is the same table in a server without accounts, where the caller's uid is the one principal.

use super::admin;
use super::admit::admit;
use super::api::{
    self, calls, changed, figure, findings, logs, markers, metrics, query, record, report, reports, runs, series,
    uplink,
};
use super::need::{Carries, Need};
use super::{App, about, agents, alerts, dismiss, log, me, page, provider, session, stream, usage, views};
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
/// The same, and who has a share link: of its machines and times.
const SHARED: Need = Need::Shared(KeyScope::DataRead);
/// Who saves views, each within what the views let them.
const SAVE: Need = Need::Role(Role::Viewer, KeyScope::ViewsWrite);
/// Who may read what a job printed; of which machine is asked where it is answered.
const PRINTED: Need = Need::Role(Role::Member, KeyScope::DataRead);
/// Who says what happened.
const MARK: Need = Need::Role(Role::Member, KeyScope::RunsWrite);
/// Who makes links: people, and no program.
const LINKS: Need = Need::Person(Role::Member);
/// Who makes rules and silences and takes alerts on; each rule is asked whose it is.
const WATCH: Need = Need::Role(Role::Member, KeyScope::AlertsWrite);
/// Who is shown where notices go: people.
const TARGETS: Need = Need::Person(Role::Member);
/// Who says where notices go.
const CHANNELS: Need = Need::Role(Role::Admin, KeyScope::TeamAdmin);
/// Who is in a team; what of it they see and change is asked of the team itself.
const IN_TEAM: Need = Need::Role(Role::Viewer, KeyScope::TeamAdmin);
/// Its admins, and its members where they may.
const INVITE: Need = Need::Role(Role::Member, KeyScope::TeamAdmin);
/// Most bodies are some names and labels.
const JSON: Carries = Carries::Json(64 << 10);
/// What a machine says of itself before anybody knows it.
const EVIDENCE: Carries = Carries::Json(16 << 10);
const NOTHING: Carries = Carries::Nothing;
const SOCKET: Carries = Carries::Socket;

/// All routes.
pub static ROUTES: &[Route] = routes! {
    GET "/{*file}", Need::Open, NOTHING, page::serve;
    GET "/healthz", Need::Open, NOTHING, about::health;
    GET "/api/{*rest}", Need::Open, NOTHING, api::unknown;
    GET "/metrics", Need::Role(Role::Admin, KeyScope::MetricsRead), NOTHING, metrics::get;
    GET "/api/v1/session", Need::Session, NOTHING, session::get;
    POST "/api/v1/session", Need::Session, JSON, session::sign_in;
    DELETE "/api/v1/session", Need::Session, NOTHING, session::sign_out;
    POST "/api/v1/session/setup", Need::Session, JSON, session::setup;
    POST "/api/v1/session/invite", Need::Session, JSON, session::invite;
    POST "/api/v1/session/reset", Need::Session, JSON, session::reset;
    POST "/api/v1/session/oidc", Need::Session, JSON, provider::begin;
    GET "/auth/{provider}/callback", Need::Session, NOTHING, provider::back;
    POST "/api/v1/session/again", Need::Own, JSON, session::again;
    GET "/api/v1/catalog", SHARED, NOTHING, api::catalog;
    GET "/api/v1/sources", SHARED, NOTHING, api::sources;
    GET "/api/v1/fleet", SHARED, NOTHING, api::fleet::get;
    GET "/api/v1/series", SHARED, NOTHING, series::get;
    GET "/api/v1/query", SHARED, NOTHING, query::query;
    GET "/api/v1/figure", SHARED, NOTHING, figure::get;
    GET "/api/v1/export", READ, NOTHING, query::export;
    GET "/api/v1/record", READ, NOTHING, record::get;
    GET "/api/v1/runs", READ, NOTHING, runs::get;
    POST "/api/v1/runs", MARK, JSON, reports::begin;
    POST "/api/v1/runs/{id}/events", MARK, JSON, reports::event;
    GET "/api/v1/runs/{id}/report", READ, NOTHING, report::get;
    GET "/api/v1/runs/{id}/logs", PRINTED, NOTHING, logs::get;
    GET "/api/v1/runs/{id}", READ, NOTHING, runs::one;
    GET "/api/v1/findings", READ, NOTHING, findings::get;
    POST "/api/v1/findings/wrong", WATCH, JSON, dismiss::post;
    GET "/api/v1/changed", READ, NOTHING, changed::get;
    GET "/api/v1/processes", READ, NOTHING, api::processes;
    GET "/api/v1/kernels", READ, NOTHING, markers::kernels;
    GET "/api/v1/cells", READ, NOTHING, markers::cells;
    GET "/api/v1/markers", READ, NOTHING, markers::get;
    POST "/api/v1/markers", MARK, JSON, markers::post;
    POST "/api/v1/alerts", MARK, JSON, calls::post;
    GET "/api/v1/doctor", READ, NOTHING, api::doctor;
    GET "/api/v1/uplink", READ, NOTHING, uplink::get;
    GET "/api/v1/live", SHARED, SOCKET, stream::get;
    POST "/api/v1/live/{viewer}", SHARED, JSON, stream::say;
    GET "/api/v1/views", READ, NOTHING, views::list;
    POST "/api/v1/views", SAVE, JSON, views::create;
    PUT "/api/v1/views/{id}", SAVE, JSON, views::change;
    DELETE "/api/v1/views/{id}", SAVE, NOTHING, views::remove;
    GET "/api/v1/shares", LINKS, NOTHING, views::shares;
    POST "/api/v1/shares", LINKS, JSON, views::share;
    DELETE "/api/v1/shares/{id}", LINKS, NOTHING, views::end_share;
    POST "/api/v1/shares/open", Need::Session, JSON, views::open;
    GET "/api/v1/rules", READ, NOTHING, alerts::rules;
    POST "/api/v1/rules", WATCH, JSON, alerts::add_rule;
    POST "/api/v1/rules/check", WATCH, JSON, alerts::check;
    PUT "/api/v1/rules/{id}", WATCH, JSON, alerts::change_rule;
    DELETE "/api/v1/rules/{id}", WATCH, NOTHING, alerts::remove_rule;
    GET "/api/v1/silences", READ, NOTHING, alerts::silences;
    POST "/api/v1/silences", WATCH, JSON, alerts::add_silence;
    DELETE "/api/v1/silences/{id}", WATCH, NOTHING, alerts::end_silence;
    GET "/api/v1/channels", TARGETS, NOTHING, alerts::channels;
    POST "/api/v1/channels", CHANNELS, JSON, alerts::add_channel;
    PUT "/api/v1/channels/{id}", CHANNELS, JSON, alerts::change_channel;
    DELETE "/api/v1/channels/{id}", CHANNELS, NOTHING, alerts::remove_channel;
    POST "/api/v1/channels/{id}/test", CHANNELS, NOTHING, alerts::test_channel;
    GET "/api/v1/alerts", READ, NOTHING, alerts::alerts;
    GET "/api/v1/alerts/{id}", READ, NOTHING, alerts::alert;
    POST "/api/v1/alerts/{id}/ack", WATCH, NOTHING, alerts::ack;
    GET "/api/v1/audit", Need::Role(Role::Admin, KeyScope::AuditRead), NOTHING, log::audit;
    GET "/api/v1/usage", Need::Members(KeyScope::DataRead), NOTHING, usage::get;
    GET "/api/v1/me", Need::Own, NOTHING, me::get;
    PATCH "/api/v1/me", Need::Own, JSON, me::change;
    DELETE "/api/v1/me", Need::Own, NOTHING, me::remove;
    PUT "/api/v1/me/password", Need::Own, JSON, me::password;
    GET "/api/v1/me/sessions", Need::Own, NOTHING, me::sessions;
    DELETE "/api/v1/me/sessions/{id}", Need::Own, NOTHING, me::end_session;
    GET "/api/v1/me/identities", Need::Own, NOTHING, me::identities;
    DELETE "/api/v1/me/identities/{id}", Need::Own, NOTHING, me::end_identity;
    GET "/api/v1/me/export", Need::Own, NOTHING, me::export;
    GET "/api/v1/me/keys", Need::Own, NOTHING, me::keys;
    POST "/api/v1/me/keys", Need::Own, JSON, me::add_key;
    DELETE "/api/v1/me/keys/{id}", Need::Own, NOTHING, me::end_key;
    GET "/api/v1/teams", IN_TEAM, NOTHING, admin::teams::list;
    POST "/api/v1/teams", Need::HubAdmin, JSON, admin::teams::create;
    GET "/api/v1/teams/{team}", IN_TEAM, NOTHING, admin::teams::get;
    PATCH "/api/v1/teams/{team}", Need::TeamAdmin, JSON, admin::teams::change;
    DELETE "/api/v1/teams/{team}", Need::HubAdmin, JSON, admin::teams::remove;
    PUT "/api/v1/teams/{team}/members/{person}", Need::TeamAdmin, JSON, admin::teams::set_member;
    DELETE "/api/v1/teams/{team}/members/{person}", IN_TEAM, NOTHING, admin::teams::remove_member;
    GET "/api/v1/teams/{team}/invites", INVITE, NOTHING, admin::teams::invites;
    POST "/api/v1/teams/{team}/invites", INVITE, JSON, admin::teams::invite;
    DELETE "/api/v1/teams/{team}/invites/{id}", INVITE, NOTHING, admin::teams::end_invite;
    PUT "/api/v1/teams/{team}/default-view", Need::TeamAdmin, JSON, views::set_default;
    GET "/api/v1/teams/{team}/services", Need::TeamAdmin, NOTHING, admin::services::list;
    POST "/api/v1/teams/{team}/services", Need::TeamAdmin, JSON, admin::services::create;
    PATCH "/api/v1/teams/{team}/services/{service}", Need::TeamAdmin, JSON, admin::services::change;
    DELETE "/api/v1/teams/{team}/services/{service}", Need::TeamAdmin, NOTHING, admin::services::remove;
    GET "/api/v1/teams/{team}/services/{service}/keys", Need::TeamAdmin, NOTHING, admin::services::keys;
    POST "/api/v1/teams/{team}/services/{service}/keys", Need::TeamAdmin, JSON, admin::services::add_key;
    DELETE "/api/v1/teams/{team}/services/{service}/keys/{id}", Need::TeamAdmin, NOTHING, admin::services::end_key;
    GET "/api/v1/sources/{source}/grants", Need::HubAdmin, NOTHING, admin::teams::grants;
    PUT "/api/v1/sources/{source}/grants", Need::HubAdmin, JSON, admin::teams::grant;
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
    GET "/api/v1/hub", Need::HubAdmin, NOTHING, about::get;
    GET "/api/v1/accounts", Need::HubAdmin, NOTHING, admin::people::list;
    POST "/api/v1/accounts", Need::HubAdmin, JSON, admin::people::create;
    PATCH "/api/v1/accounts/{person}", Need::HubAdmin, JSON, admin::people::change;
    DELETE "/api/v1/accounts/{person}", Need::HubAdmin, NOTHING, admin::people::remove;
    POST "/api/v1/accounts/{person}/reset", Need::HubAdmin, NOTHING, admin::people::reset;
    POST "/api/v1/accounts/{person}/erase", Need::HubAdmin, NOTHING, admin::people::erase;
    GET "/api/v1/accounts/{person}/keys", Need::HubAdmin, NOTHING, admin::people::keys;
    POST "/api/v1/accounts/{person}/keys", Need::HubAdmin, JSON, admin::people::add_key;
    DELETE "/api/v1/accounts/{person}/keys/{id}", Need::HubAdmin, NOTHING, admin::people::end_key;
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

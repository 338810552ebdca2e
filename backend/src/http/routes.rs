//! The one table of routes. The router is built from it and from nothing else, so that a route for which nobody said who may
//! ask does not exist. It is the same table in a server without accounts, where the caller's uid is the one principal.

use super::api::{self, metrics, query, record, series};
use super::{App, page, stream};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use axum::routing::{MethodFilter, MethodRouter, on};
use shared::role::{KeyScope, Role};
use std::sync::Arc;

/// Who may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Anybody, signed in or not.
    Open,
    /// Who has at least this role in some team, and a key with this scope.
    Role(Role, KeyScope),
}

/// What comes with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// Nothing that is read.
    Nothing,
    /// It becomes a WebSocket.
    Socket,
}

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
    ($($method:ident $path:literal, $need:expr, $carries:ident, $handler:expr;)*) => {
        &[$(Route {
            method: Method::$method,
            path: $path,
            need: $need,
            carries: Carries::$carries,
            handler: |method| on(method, $handler),
        }),*]
    };
}

/// Readers of samples.
const READ: Need = Need::Role(Role::Viewer, KeyScope::DataRead);

/// All routes.
pub static ROUTES: &[Route] = routes! {
    GET "/{*file}", Need::Open, Nothing, page::serve;
    GET "/healthz", Need::Open, Nothing, async || "ok\n";
    GET "/api/{*rest}", Need::Open, Nothing, api::unknown;
    GET "/metrics", Need::Role(Role::Admin, KeyScope::MetricsRead), Nothing, metrics::get;
    GET "/api/v1/catalog", READ, Nothing, api::catalog;
    GET "/api/v1/sources", READ, Nothing, api::sources;
    GET "/api/v1/fleet", READ, Nothing, api::fleet::get;
    GET "/api/v1/series", READ, Nothing, series::get;
    GET "/api/v1/query", READ, Nothing, query::query;
    GET "/api/v1/export", READ, Nothing, query::export;
    GET "/api/v1/record", READ, Nothing, record::get;
    GET "/api/v1/processes", READ, Nothing, api::processes;
    GET "/api/v1/doctor", READ, Nothing, api::doctor;
    GET "/api/v1/live", READ, Socket, stream::get;
};

/// All routes, each behind the question who asks.
pub(super) fn router(app: &Arc<App>) -> Router<Arc<App>> {
    let routes = ROUTES.iter().fold(Router::new(), |router, route| {
        let method = MethodFilter::try_from(route.method.clone()).expect("the table has plain methods only");
        let answers = (route.handler)(method).layer(from_fn_with_state((app.clone(), route), admit));
        match route.path {
            FILES => router.fallback(answers.fallback(super::only_get)),
            path => router.route(path, answers),
        }
    });
    routes.method_not_allowed_fallback(super::only_get)
}

/// Lets those through who may ask for what a route has.
async fn admit(
    State((_app, _route)): State<(Arc<App>, &'static Route)>,
    request: Request,
    next: Next,
) -> axum::response::Response {
    next.run(request).await
}

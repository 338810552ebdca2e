//! `/api/v1/rules`, `/silences`, `/channels` and `/alerts`: rules, silences, receivers of notifications, and alerts.

use super::admit::Asker;
use super::api::Params;
use super::api::answer::history_slot;
use super::api::findings::for_link;
use super::body::{Json, is_json};
use super::{App, Caller, Refusal, json};
use axum::Extension;
use axum::body::Body;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Response, StatusCode, Uri, header};
use shared::alert::{AlertState, ChannelInput, Rule, RuleCheck, Silence};
use shared::answer::ById;
use shared::catalog::Catalog;
use shared::linked;
use std::sync::Arc;
use system::user::own_uid;
use team::accounts::{Denied, Principal};
use watch::alerts::{AlertsAsked, StoredChecker};

type ApiResult = Result<Response<Body>, Refusal>;

/// Maximum span of a rule check, seconds.
const LONGEST_CHECK: u64 = 12 * 3_600;

/// The reader: the signed-in user, or any admitted caller in a server without accounts.
fn reader(app: &App, asker: &Asker) -> Result<Principal, Refusal> {
    match &app.hub {
        Some(_) => asker.principal().cloned(),
        None => Ok(Principal::local(own_uid())),
    }
}

/// The caller of a change. On a hub: everyone that the table of routes admits. In a server without accounts: its owner
/// alone.
pub(super) struct Writer(pub Principal);

impl FromRequestParts<Arc<App>> for Writer {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Refusal> {
        let asker = Asker::from_request_parts(parts, app).await?;
        if app.live.provenance.recorded.is_some() {
            return Err(Refusal::new(StatusCode::CONFLICT, "this is a recording; nothing in it can be changed"));
        }
        if app.hub.is_some() {
            return asker.principal().cloned().map(Writer);
        }
        let caller = parts.extensions.get::<Caller>().copied().unwrap_or_default();
        owner(app, caller, &parts.uri, &parts.headers).map(Writer)
    }
}

/// The owner of a server without accounts: by the socket in their own folder, or by a request that is known to come
/// from our own page or from a program. A request that a browser sends by itself for another page is neither.
fn owner(app: &App, caller: Caller, uri: &Uri, headers: &HeaderMap) -> Result<Principal, Refusal> {
    let forbidden = |sentence: &str| Err(Refusal::new(StatusCode::FORBIDDEN, sentence));
    is_json(headers)?;
    if let Some(uid) = caller.local {
        return Ok(Principal::local(uid));
    }
    let Some(uid) = caller.uid.filter(|_| caller.names == super::guard::HostNames::Own) else {
        return forbidden("requests are not authenticated here; use watchglass alerts on this machine");
    };
    if !app.guard.lets_write(uid) {
        return forbidden("only the user who runs this Watchglass can change this");
    }
    if headers.contains_key(header::ORIGIN) || headers.contains_key(header::COOKIE) {
        app.guard.own_page(uri, headers)?;
    }
    Ok(Principal::local(uid))
}

/// The catalog, limited to the caller's scope.
fn catalog(app: &App, asker: &Asker) -> Arc<Catalog> {
    asker.reader(app).catalog()
}

/// `GET /api/v1/rules`.
pub(super) async fn rules(State(app): State<Arc<App>>, asker: Asker, params: Params) -> ApiResult {
    let by = reader(&app, &asker)?;
    let rules = app.alerts()?.rules(&by, &asker.scope, params.last("team"), &catalog(&app, &asker)).await?;
    Ok(json(StatusCode::OK, &rules))
}

/// `POST /api/v1/rules`.
pub(super) async fn add_rule(
    State(app): State<Arc<App>>,
    Writer(by): Writer,
    asker: Asker,
    params: Params,
    Json(body): Json<Rule>,
) -> ApiResult {
    let made = app.alerts()?.add_rule(&by, params.last("team"), &body, &catalog(&app, &asker)).await?;
    Ok(json(StatusCode::CREATED, &made))
}

/// `PUT /api/v1/rules/ID`.
pub(super) async fn change_rule(
    State(app): State<Arc<App>>,
    Writer(by): Writer,
    asker: Asker,
    Path(id): Path<String>,
    Json(body): Json<Rule>,
) -> ApiResult {
    Ok(json(StatusCode::OK, &app.alerts()?.change_rule(&by, &id, &body, &catalog(&app, &asker)).await?))
}

/// `DELETE /api/v1/rules/ID`.
pub(super) async fn remove_rule(State(app): State<Arc<App>>, Writer(by): Writer, Path(id): Path<String>) -> ApiResult {
    app.alerts()?.remove_rule(&by, &id).await?;
    Ok(json(StatusCode::OK, &ById { id }))
}

/// `POST /api/v1/rules/check`: the alerts that a rule would have raised over the stored samples.
pub(super) async fn check(
    State(app): State<Arc<App>>,
    asker: Asker,
    Extension(caller): Extension<Caller>,
    uri: Uri,
    headers: HeaderMap,
    Json(body): Json<RuleCheck>,
) -> ApiResult {
    // A rule can also be checked against a recording.
    let by = match &app.hub {
        Some(_) => asker.principal()?.clone(),
        None => owner(&app, caller, &uri, &headers)?,
    };
    if !(1..=LONGEST_CHECK).contains(&body.span) {
        return Err(Refusal::bad(format!("span is 1 to {LONGEST_CHECK} seconds before now")));
    }
    if body.rule.on.contains_key("user") && asker.scope.hides_names() {
        let sentence = "names of users are hidden from you on some machines; leave user out of on";
        return Err(Refusal::new(StatusCode::FORBIDDEN, sentence));
    }
    app.alerts()?.may_check(&by, &body.rule, &catalog(&app, &asker))?;
    let checker = StoredChecker { runs: app.runs.clone(), findings: app.findings.clone() };
    let (slot, reader) = (history_slot(&app, &asker)?, asker.reader(&app));
    let now = app.live.clock.wall();
    let from = now.saturating_sub(i64::try_from(body.span).unwrap_or(0) * 1_000);
    let checked = slot.blocking(move || checker.check(&reader, &body.rule, (from, now))).await?;
    Ok(json(StatusCode::OK, &checked.map_err(Refusal::bad)?))
}

/// `GET /api/v1/silences`.
pub(super) async fn silences(State(app): State<Arc<App>>, asker: Asker, params: Params) -> ApiResult {
    let by = reader(&app, &asker)?;
    Ok(json(StatusCode::OK, &app.alerts()?.silences(&by, params.last("team")).await?))
}

/// `POST /api/v1/silences`.
pub(super) async fn add_silence(
    State(app): State<Arc<App>>,
    Writer(by): Writer,
    params: Params,
    Json(body): Json<Silence>,
) -> ApiResult {
    Ok(json(StatusCode::CREATED, &app.alerts()?.add_silence(&by, params.last("team"), &body).await?))
}

/// `DELETE /api/v1/silences/ID`: it ends now.
pub(super) async fn end_silence(State(app): State<Arc<App>>, Writer(by): Writer, Path(id): Path<String>) -> ApiResult {
    app.alerts()?.end_silence(&by, &id).await?;
    Ok(json(StatusCode::OK, &ById { id }))
}

/// `GET /api/v1/channels`.
pub(super) async fn channels(State(app): State<Arc<App>>, asker: Asker, params: Params) -> ApiResult {
    let by = reader(&app, &asker)?;
    Ok(json(StatusCode::OK, &app.alerts()?.channels(&by, params.last("team")).await?))
}

/// `POST /api/v1/channels`.
pub(super) async fn add_channel(
    State(app): State<Arc<App>>,
    Writer(by): Writer,
    params: Params,
    Json(body): Json<ChannelInput>,
) -> ApiResult {
    Ok(json(StatusCode::CREATED, &app.alerts()?.add_channel(&by, params.last("team"), &body).await?))
}

/// `PUT /api/v1/channels/ID`.
pub(super) async fn change_channel(
    State(app): State<Arc<App>>,
    Writer(by): Writer,
    Path(id): Path<String>,
    Json(body): Json<ChannelInput>,
) -> ApiResult {
    Ok(json(StatusCode::OK, &app.alerts()?.change_channel(&by, &id, &body).await?))
}

/// `DELETE /api/v1/channels/ID`.
pub(super) async fn remove_channel(
    State(app): State<Arc<App>>,
    Writer(by): Writer,
    Path(id): Path<String>,
) -> ApiResult {
    app.alerts()?.remove_channel(&by, &id).await?;
    Ok(json(StatusCode::OK, &ById { id }))
}

/// `POST /api/v1/channels/ID/test`: responds after the test was sent or has failed.
pub(super) async fn test_channel(State(app): State<Arc<App>>, Writer(by): Writer, Path(id): Path<String>) -> ApiResult {
    Ok(json(StatusCode::OK, &app.alerts()?.test_channel(&by, &id).await?))
}

/// `GET /api/v1/alerts`.
pub(super) async fn alerts(State(app): State<Arc<App>>, asker: Asker, params: Params) -> ApiResult {
    let by = reader(&app, &asker)?;
    let now = app.live.clock.wall();
    let state = match params.last("state") {
        None => None,
        Some("pending") => Some(AlertState::Pending),
        Some("firing") => Some(AlertState::Firing),
        Some("resolved") => Some(AlertState::Resolved),
        Some(other) => {
            return Err(Refusal::bad(format!("state is pending, firing or resolved, not {other:?}")));
        }
    };
    let (from, to) = (params.instant("from", now)?, params.instant("to", now)?);
    if from.zip(to).is_some_and(|(from, to)| from > to) {
        return Err(Refusal::bad("from is later than to"));
    }
    let limit = match params.last("limit").map(str::parse) {
        None => None,
        Some(Ok(limit)) => Some(limit),
        Some(Err(_)) => return Err(Refusal::bad("limit is a number from 1 to 1000")),
    };
    let source = match params.last("source") {
        None => None,
        Some(name) => {
            let names = asker.sources(&app, vec![name.to_string()]).await;
            let known = asker.reader(&app).sources();
            // A source that is gone may still have alerts.
            let key = known.iter().find(|source| names.iter().any(|name| source.is_called(name)));
            Some(key.map_or_else(|| name.to_string(), |source| source.key.clone()))
        }
    };
    let text = |name: &str| params.last(name).map(String::from);
    let asked =
        AlertsAsked { team: text("team"), state, rule: text("rule"), source, run: text("run"), from, to, limit };
    Ok(json(StatusCode::OK, &app.alerts()?.alerts(&by, &asker.scope, &asked).await?))
}

/// `GET /api/v1/alerts/ID`.
pub(super) async fn alert(State(app): State<Arc<App>>, asker: Asker, Path(id): Path<String>) -> ApiResult {
    let Some((objects, scope)) = asker.linked() else {
        return Ok(json(StatusCode::OK, &app.alerts()?.alert(&asker.scope, &id).await?));
    };
    if objects.alert.as_ref() != Some(&id) {
        return Err(Denied::Unknown.into());
    }
    let found = app.alerts()?.alert(&scope, &id).await?;
    let finding = app.findings.one(&found.alert.subject, |key| asker.scope.sees(key));
    let finding = for_link(&app, &asker, finding.into_iter().collect()).pop();
    Ok(json(StatusCode::OK, &linked::alert(found, finding.as_ref())))
}

/// `POST /api/v1/alerts/ID/ack`.
pub(super) async fn ack(
    State(app): State<Arc<App>>,
    asker: Asker,
    Writer(by): Writer,
    Path(id): Path<String>,
) -> ApiResult {
    Ok(json(StatusCode::OK, &app.alerts()?.ack(&by, &asker.scope, &id).await?))
}

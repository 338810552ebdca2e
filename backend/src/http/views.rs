//! `/api/v1/views` and `/api/v1/shares`: saved views of the page, and share links to it.

use super::admit::Asker;
use super::alerts::Writer;
use super::api::answer::history_slot;
use super::api::{Params, unknown_run};
use super::body::Json;
use super::session;
use super::{App, Refusal, json};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Response, StatusCode, header};
use shared::address;
use shared::answer::ById;
use shared::linked::LinkedObjects;
use shared::views::{DefaultView, MadeShare, NewShare, NewView, OpenShare, Shares, ViewChange, Views};
use std::sync::Arc;
use team::accounts::{NotSaved, Who};
use watch::written::WrittenRegistry;

type ApiResult = Result<Response<Body>, Refusal>;

/// The saved views of a server without accounts.
fn own(app: &App) -> Result<WrittenRegistry, Refusal> {
    Ok(WrittenRegistry::beside(app.alerts()?))
}

pub(super) async fn list(State(app): State<Arc<App>>, asker: Asker, params: Params) -> ApiResult {
    let views = match &app.hub {
        Some(hub) => hub.accounts.views(asker.principal()?, params.last("team")).await?,
        None => own(&app)?.views(asker.is_owner).await?,
    };
    Ok(json(StatusCode::OK, &Views { views }))
}

pub(super) async fn create(
    State(app): State<Arc<App>>,
    Writer(by): Writer,
    params: Params,
    Json(body): Json<NewView>,
) -> ApiResult {
    let saved = match &app.hub {
        Some(hub) => hub.accounts.add_view(&by, params.last("team"), &body).await?,
        None => own(&app)?.add_view(&by, &body).await?,
    };
    Ok(json(StatusCode::CREATED, &saved))
}

/// 409 with both views if somebody else has changed it first.
pub(super) async fn change(
    State(app): State<Arc<App>>,
    Writer(by): Writer,
    Path(id): Path<String>,
    Json(body): Json<ViewChange>,
) -> ApiResult {
    let changed = match &app.hub {
        Some(hub) => hub.accounts.change_view(&by, &id, &body).await,
        None => own(&app)?.change_view(&id, &body).await,
    };
    match changed {
        Ok(saved) => Ok(json(StatusCode::OK, &saved)),
        Err(NotSaved::Stale(conflict)) => Ok(json(StatusCode::CONFLICT, &conflict)),
        Err(NotSaved::Denied(denied)) => Err(denied.into()),
    }
}

pub(super) async fn remove(State(app): State<Arc<App>>, Writer(by): Writer, Path(id): Path<String>) -> ApiResult {
    match &app.hub {
        Some(hub) => hub.accounts.remove_view(&by, &id).await?,
        None => own(&app)?.remove_view(&id).await?,
    }
    Ok(json(StatusCode::OK, &ById { id }))
}

/// `PUT /api/v1/teams/T/default-view`.
pub(super) async fn set_default(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(team): Path<String>,
    Json(body): Json<DefaultView>,
) -> ApiResult {
    Ok(json(StatusCode::OK, &app.hub()?.accounts.set_default_view(asker.principal()?, &team, &body).await?))
}

pub(super) async fn shares(State(app): State<Arc<App>>, asker: Asker, params: Params) -> ApiResult {
    let shares = app.hub()?.accounts.shares(asker.principal()?, params.last("team")).await?;
    Ok(json(StatusCode::OK, &Shares { shares }))
}

/// The machines of the runs, the alert and the finding that a query names, by their keys: those that the asker sees. None
/// if it names machines, or no object.
///
/// # Errors
/// 404: the asker sees no such object.
async fn machines_of(app: &Arc<App>, asker: &Asker, query: &str) -> Result<Vec<String>, Refusal> {
    let pairs = address::pairs(query);
    let last = |name| pairs.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
    if last("source").is_some() {
        return Ok(Vec::new());
    }
    let mut keys = Vec::new();
    let LinkedObjects { mut runs, alert } = LinkedObjects::of_query(query);
    if let Some(id) = alert {
        let labels = app.alerts()?.alert(&asker.scope, &id).await?.alert.labels;
        match labels.get("source") {
            Some(name) => {
                let seen = asker.reader(app).sources();
                keys.extend(seen.iter().find(|source| source.is_called(name)).map(|source| source.key.clone()));
            }
            None => runs.extend(labels.get("run").cloned()),
        }
    }
    for id in runs {
        let (slot, theirs, reader) = (history_slot(app, asker)?, app.clone(), asker.reader(app));
        let sought = id.clone();
        let placed = slot.blocking(move || theirs.runs.placed(&reader, &sought)).await?;
        keys.extend(placed.ok_or_else(|| unknown_run(&id))?.machines.into_keys());
    }
    if let Some(id) = last("finding") {
        let found = app.findings.machines_of(id, |key| asker.scope.sees(key));
        let unknown = || Refusal::new(StatusCode::NOT_FOUND, format!("there is no finding {id:?}"));
        keys.extend(found.ok_or_else(unknown)?);
    }
    keys.retain(|key| asker.scope.sees(key));
    Ok(keys)
}

pub(super) async fn share(
    State(app): State<Arc<App>>,
    asker: Asker,
    params: Params,
    Json(body): Json<NewShare>,
) -> ApiResult {
    let hub = app.hub()?;
    let query = match (&body.query, &body.view) {
        (None, Some(view)) => hub.accounts.query_of_view(asker.principal()?, view).await?,
        (query, _) => query.clone().unwrap_or_default(),
    };
    let machines = machines_of(&app, &asker, &query).await?;
    let (id, code) = hub.accounts.add_share(asker.principal()?, params.last("team"), &body, &machines).await?;
    Ok(json(StatusCode::CREATED, &MadeShare { id, url: hub.link("share", &code) }))
}

pub(super) async fn end_share(State(app): State<Arc<App>>, asker: Asker, Path(id): Path<String>) -> ApiResult {
    app.hub()?.accounts.end_share(asker.principal()?, &id).await?;
    Ok(json(StatusCode::OK, &ById { id }))
}

/// `POST /api/v1/shares/open`: sets the link's own cookie with the code, which is an equally sensitive secret.
pub(super) async fn open(State(app): State<Arc<App>>, asker: Asker, Json(body): Json<OpenShare>) -> ApiResult {
    let hub = app.hub()?;
    let principal = hub.accounts.open_share(&body.code, &asker.network).await?;
    let told = session::describe_session(hub, Some(&principal)).await?;
    let mut response = json(StatusCode::OK, &told);
    if let Who::Share { id, .. } = &principal.who {
        response.headers_mut().insert(header::SET_COOKIE, hub.cookie.set_share(id, &body.code));
    }
    Ok(response)
}

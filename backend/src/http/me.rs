//! `/api/v1/me`: the own account, read and changed by its user.

use super::admit::Asker;
use super::body::Json;
use super::{App, Refusal, json};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, Response, StatusCode, header};
use shared::answer::{ById, Nothing};
use shared::me::{MeChange, NewPassword, OwnIdentities, OwnSessions};
use shared::people::{Keys, NewServiceKey};
use std::sync::Arc;

type ApiResult = Result<Response<Body>, Refusal>;

pub(super) async fn get(State(app): State<Arc<App>>, asker: Asker) -> ApiResult {
    Ok(json(StatusCode::OK, &app.hub()?.accounts.me(asker.principal()?).await?))
}

pub(super) async fn change(State(app): State<Arc<App>>, asker: Asker, Json(body): Json<MeChange>) -> ApiResult {
    Ok(json(StatusCode::OK, &app.hub()?.accounts.change_me(asker.principal()?, &body).await?))
}

/// Removes the account and its cookie.
pub(super) async fn remove(State(app): State<Arc<App>>, asker: Asker) -> ApiResult {
    let hub = app.hub()?;
    let mut response = json(StatusCode::OK, &hub.accounts.erase_me(asker.principal()?).await?);
    response.headers_mut().insert(header::SET_COOKIE, hub.cookie.clear());
    Ok(response)
}

pub(super) async fn password(State(app): State<Arc<App>>, asker: Asker, Json(body): Json<NewPassword>) -> ApiResult {
    let hub = app.hub()?;
    if !hub.password {
        return Err(Refusal::new(StatusCode::CONFLICT, "passwords are disabled here"));
    }
    hub.accounts.set_password(asker.principal()?, body.old.as_ref(), &body.new).await?;
    Ok(json(StatusCode::OK, &Nothing {}))
}

pub(super) async fn sessions(State(app): State<Arc<App>>, asker: Asker) -> ApiResult {
    let sessions = app.hub()?.accounts.own_sessions(asker.principal()?).await?;
    Ok(json(StatusCode::OK, &OwnSessions { sessions }))
}

pub(super) async fn end_session(State(app): State<Arc<App>>, asker: Asker, Path(id): Path<String>) -> ApiResult {
    app.hub()?.accounts.end_own_session(asker.principal()?, &id).await?;
    Ok(json(StatusCode::OK, &ById { id }))
}

pub(super) async fn identities(State(app): State<Arc<App>>, asker: Asker) -> ApiResult {
    let hub = app.hub()?;
    let mut identities = hub.accounts.own_identities(asker.principal()?).await?;
    for identity in &mut identities {
        identity.title = hub.providers.title_of(&identity.issuer).map(String::from);
    }
    Ok(json(StatusCode::OK, &OwnIdentities { identities }))
}

pub(super) async fn end_identity(State(app): State<Arc<App>>, asker: Asker, Path(id): Path<String>) -> ApiResult {
    let hub = app.hub()?;
    hub.accounts.remove_identity(asker.principal()?, &id, |kind, issuer| hub.takes(kind, issuer)).await?;
    Ok(json(StatusCode::OK, &ById { id }))
}

/// All data that names the account, as one file.
pub(super) async fn export(State(app): State<Arc<App>>, asker: Asker) -> ApiResult {
    let mut response = json(StatusCode::OK, &app.hub()?.accounts.export_me(asker.principal()?).await?);
    let file = HeaderValue::from_static("attachment; filename=\"watchglass-account.json\"");
    response.headers_mut().insert(header::CONTENT_DISPOSITION, file);
    Ok(response)
}

pub(super) async fn keys(State(app): State<Arc<App>>, asker: Asker) -> ApiResult {
    Ok(json(StatusCode::OK, &Keys { keys: app.hub()?.accounts.own_keys(asker.principal()?).await? }))
}

pub(super) async fn add_key(State(app): State<Arc<App>>, asker: Asker, Json(body): Json<NewServiceKey>) -> ApiResult {
    Ok(json(StatusCode::CREATED, &app.hub()?.accounts.add_own_key(asker.principal()?, &body).await?))
}

pub(super) async fn end_key(State(app): State<Arc<App>>, asker: Asker, Path(id): Path<String>) -> ApiResult {
    app.hub()?.accounts.end_own_key(asker.principal()?, &id).await?;
    Ok(json(StatusCode::OK, &ById { id }))
}

//! `/api/v1/teams`, and the teams' access to machines.

use crate::http::admit::Asker;
use crate::http::body::Json;
use crate::http::{App, Refusal, json};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Response, StatusCode};
use shared::answer::{ById, Nothing};
use shared::team::{GrantChange, Invites, MadeInvite, MemberChange, NewInvite, NewTeam, TeamChange, TeamEnd, Teams};
use std::sync::Arc;

type ApiResult = Result<Response<Body>, Refusal>;

pub(in crate::http) async fn list(State(app): State<Arc<App>>, asker: Asker) -> ApiResult {
    let teams = app.hub()?.accounts.list_teams(asker.principal()?).await?;
    Ok(json(StatusCode::OK, &Teams { teams }))
}

pub(in crate::http) async fn get(State(app): State<Arc<App>>, asker: Asker, Path(team): Path<String>) -> ApiResult {
    Ok(json(StatusCode::OK, &app.hub()?.accounts.one_team(asker.principal()?, &team).await?))
}

pub(in crate::http) async fn create(State(app): State<Arc<App>>, asker: Asker, Json(body): Json<NewTeam>) -> ApiResult {
    Ok(json(StatusCode::CREATED, &app.hub()?.accounts.add_team(asker.principal()?, &body).await?))
}

pub(in crate::http) async fn change(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(team): Path<String>,
    Json(body): Json<TeamChange>,
) -> ApiResult {
    Ok(json(StatusCode::OK, &app.hub()?.accounts.change_team(asker.principal()?, &team, &body).await?))
}

pub(in crate::http) async fn remove(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(team): Path<String>,
    Json(body): Json<TeamEnd>,
) -> ApiResult {
    app.hub()?.accounts.remove_team(asker.principal()?, &team, &body).await?;
    Ok(json(StatusCode::OK, &Nothing {}))
}

pub(in crate::http) async fn set_member(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path((team, person)): Path<(String, String)>,
    Json(body): Json<MemberChange>,
) -> ApiResult {
    let member = app.hub()?.accounts.set_member(asker.principal()?, &team, &person, &body).await?;
    Ok(json(StatusCode::OK, &member))
}

pub(in crate::http) async fn remove_member(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path((team, person)): Path<(String, String)>,
) -> ApiResult {
    app.hub()?.accounts.remove_member(asker.principal()?, &team, &person).await?;
    Ok(json(StatusCode::OK, &Nothing {}))
}

pub(in crate::http) async fn invites(State(app): State<Arc<App>>, asker: Asker, Path(team): Path<String>) -> ApiResult {
    let invites = app.hub()?.accounts.invites(asker.principal()?, &team).await?;
    Ok(json(StatusCode::OK, &Invites { invites }))
}

pub(in crate::http) async fn invite(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(team): Path<String>,
    Json(body): Json<NewInvite>,
) -> ApiResult {
    let hub = app.hub()?;
    let (id, code) = hub.accounts.invite(asker.principal()?, &team, &body).await?;
    Ok(json(StatusCode::CREATED, &MadeInvite { id, url: hub.link("invite", &code) }))
}

pub(in crate::http) async fn end_invite(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path((team, id)): Path<(String, String)>,
) -> ApiResult {
    app.hub()?.accounts.end_invite(asker.principal()?, &team, &id).await?;
    Ok(json(StatusCode::OK, &ById { id }))
}

/// `GET /api/v1/sources/ID/grants`.
pub(in crate::http) async fn grants(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(source): Path<String>,
) -> ApiResult {
    Ok(json(StatusCode::OK, &app.hub()?.accounts.grants(asker.principal()?, &source).await?))
}

/// `PUT /api/v1/sources/ID/grants`.
pub(in crate::http) async fn grant(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(source): Path<String>,
    Json(body): Json<GrantChange>,
) -> ApiResult {
    Ok(json(StatusCode::OK, &app.hub()?.accounts.set_grants(asker.principal()?, &source, &body).await?))
}

//! `/api/v1/teams/T/services`: accounts of programs, and their keys.

use crate::http::admit::Asker;
use crate::http::body::Json;
use crate::http::{App, Refusal, json};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Response, StatusCode};
use shared::answer::{ById, Nothing};
use shared::people::{Keys, NewServiceKey};
use shared::team::{NewService, ServiceChange, Services};
use std::sync::Arc;

type ApiResult = Result<Response<Body>, Refusal>;

pub(in crate::http) async fn list(State(app): State<Arc<App>>, asker: Asker, Path(team): Path<String>) -> ApiResult {
    let services = app.hub()?.accounts.services(asker.principal()?, &team).await?;
    Ok(json(StatusCode::OK, &Services { services }))
}

pub(in crate::http) async fn create(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(team): Path<String>,
    Json(body): Json<NewService>,
) -> ApiResult {
    Ok(json(StatusCode::CREATED, &app.hub()?.accounts.add_service(asker.principal()?, &team, &body).await?))
}

pub(in crate::http) async fn change(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path((team, service)): Path<(String, String)>,
    Json(body): Json<ServiceChange>,
) -> ApiResult {
    let changed = app.hub()?.accounts.change_service(asker.principal()?, &team, &service, &body).await?;
    Ok(json(StatusCode::OK, &changed))
}

pub(in crate::http) async fn remove(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path((team, service)): Path<(String, String)>,
) -> ApiResult {
    app.hub()?.accounts.remove_service(asker.principal()?, &team, &service).await?;
    Ok(json(StatusCode::OK, &Nothing {}))
}

pub(in crate::http) async fn keys(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path((team, service)): Path<(String, String)>,
) -> ApiResult {
    let keys = app.hub()?.accounts.keys_of_service(asker.principal()?, &team, &service).await?;
    Ok(json(StatusCode::OK, &Keys { keys }))
}

pub(in crate::http) async fn add_key(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path((team, service)): Path<(String, String)>,
    Json(body): Json<NewServiceKey>,
) -> ApiResult {
    let made = app.hub()?.accounts.add_key_of_service(asker.principal()?, &team, &service, &body).await?;
    Ok(json(StatusCode::CREATED, &made))
}

pub(in crate::http) async fn end_key(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path((team, service, id)): Path<(String, String, String)>,
) -> ApiResult {
    app.hub()?.accounts.end_key_of_service(asker.principal()?, &team, &service, &id).await?;
    Ok(json(StatusCode::OK, &ById { id }))
}

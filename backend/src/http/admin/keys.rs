//! `/api/v1/teams/T/keys`: keys of a team's programs.

use crate::http::admit::Asker;
use crate::http::body::Json;
use crate::http::{App, Refusal, json};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Response, StatusCode};
use shared::answer::ById;
use shared::people::{Keys, NewServiceKey};
use std::sync::Arc;

pub(in crate::http) async fn list(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(team): Path<String>,
) -> Result<Response<Body>, Refusal> {
    let keys = app.hub()?.accounts.service_keys(asker.principal()?, &team).await?;
    Ok(json(StatusCode::OK, &Keys { keys }))
}

pub(in crate::http) async fn create(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(team): Path<String>,
    Json(body): Json<NewServiceKey>,
) -> Result<Response<Body>, Refusal> {
    Ok(json(StatusCode::CREATED, &app.hub()?.accounts.add_service_key(asker.principal()?, &team, &body).await?))
}

pub(in crate::http) async fn end(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path((team, id)): Path<(String, String)>,
) -> Result<Response<Body>, Refusal> {
    app.hub()?.accounts.end_service_key(asker.principal()?, &team, &id).await?;
    Ok(json(StatusCode::OK, &ById { id }))
}

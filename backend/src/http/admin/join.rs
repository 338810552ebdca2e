//! `/api/v1/teams/T/join`: the keys by which machines join.

use crate::http::admit::Asker;
use crate::http::body::Json;
use crate::http::{App, Refusal, json};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Response, StatusCode};
use shared::answer::ById;
use shared::secret::Secret;
use shared::session::{Joined, Joins, NewJoin};
use std::sync::Arc;

pub(in crate::http) async fn list(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(team): Path<String>,
) -> Result<Response<Body>, Refusal> {
    let joins = app.hub()?.accounts.joins(asker.principal()?, &team).await?;
    Ok(json(StatusCode::OK, &Joins { joins }))
}

pub(in crate::http) async fn create(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(team): Path<String>,
    Json(body): Json<NewJoin>,
) -> Result<Response<Body>, Refusal> {
    let hub = app.hub()?;
    let key = hub.accounts.new_join(asker.principal()?, &team, &body).await?;
    let line = Secret::new(hub.road().line(&key.key, key.ends.is_some()));
    Ok(json(StatusCode::CREATED, &Joined { id: key.id, key: key.key, line }))
}

pub(in crate::http) async fn end(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path((team, id)): Path<(String, String)>,
) -> Result<Response<Body>, Refusal> {
    app.hub()?.accounts.end_join(asker.principal()?, &team, &id).await?;
    Ok(json(StatusCode::OK, &ById { id }))
}

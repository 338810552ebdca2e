//! `/api/v1/accounts`: accounts of people, and their rights.

use crate::http::admit::Asker;
use crate::http::body::Json;
use crate::http::{App, Refusal, json};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Response, StatusCode};
use shared::answer::{ById, Nothing};
use shared::people::{Keys, NewPerson, NewServiceKey, People, PersonChange};
use std::sync::Arc;

pub(in crate::http) async fn list(State(app): State<Arc<App>>, asker: Asker) -> Result<Response<Body>, Refusal> {
    let accounts = app.hub()?.accounts.people(asker.principal()?).await?;
    Ok(json(StatusCode::OK, &People { accounts }))
}

pub(in crate::http) async fn create(
    State(app): State<Arc<App>>,
    asker: Asker,
    Json(body): Json<NewPerson>,
) -> Result<Response<Body>, Refusal> {
    Ok(json(StatusCode::CREATED, &app.hub()?.accounts.add_person(asker.principal()?, &body).await?))
}

pub(in crate::http) async fn change(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(person): Path<String>,
    Json(body): Json<PersonChange>,
) -> Result<Response<Body>, Refusal> {
    Ok(json(StatusCode::OK, &app.hub()?.accounts.change_person(asker.principal()?, &person, &body).await?))
}

/// Creates a code with which the person sets a password.
pub(in crate::http) async fn reset(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(person): Path<String>,
) -> Result<Response<Body>, Refusal> {
    Ok(json(StatusCode::CREATED, &app.hub()?.accounts.reset_person(asker.principal()?, &person).await?))
}

pub(in crate::http) async fn remove(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(person): Path<String>,
) -> Result<Response<Body>, Refusal> {
    app.hub()?.accounts.remove_person(asker.principal()?, &person).await?;
    Ok(json(StatusCode::OK, &Nothing {}))
}

/// Erases the account and its name in the audit log.
pub(in crate::http) async fn erase(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(person): Path<String>,
) -> Result<Response<Body>, Refusal> {
    Ok(json(StatusCode::OK, &app.hub()?.accounts.erase_person(asker.principal()?, &person).await?))
}

/// Keys of a person.
pub(in crate::http) async fn keys(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(person): Path<String>,
) -> Result<Response<Body>, Refusal> {
    let keys = app.hub()?.accounts.keys_of_person(asker.principal()?, &person).await?;
    Ok(json(StatusCode::OK, &Keys { keys }))
}

pub(in crate::http) async fn add_key(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(person): Path<String>,
    Json(body): Json<NewServiceKey>,
) -> Result<Response<Body>, Refusal> {
    let made = app.hub()?.accounts.add_key_of_person(asker.principal()?, &person, &body).await?;
    Ok(json(StatusCode::CREATED, &made))
}

pub(in crate::http) async fn end_key(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path((person, id)): Path<(String, String)>,
) -> Result<Response<Body>, Refusal> {
    app.hub()?.accounts.end_key_of_person(asker.principal()?, &person, &id).await?;
    Ok(json(StatusCode::OK, &ById { id }))
}

//! `/api/v1/teams/T/agents`: joined machines, with their names, labels, approval and removal.

use crate::http::admit::Asker;
use crate::http::body::Json;
use crate::http::{App, Refusal, json};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Response, StatusCode};
use shared::answer::ById;
use shared::connection_state::ConnectionState;
use shared::session::{Agent, AgentChange, Agents};
use std::sync::Arc;

pub(in crate::http) async fn list(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(team): Path<String>,
) -> Result<Response<Body>, Refusal> {
    let mut agents = app.hub()?.accounts.agents(asker.principal()?, &team).await?;
    app.live.find_late();
    agents.iter_mut().for_each(|agent| stands(&app, &asker, agent));
    Ok(json(StatusCode::OK, &Agents { agents }))
}

pub(in crate::http) async fn change(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path((team, source)): Path<(String, String)>,
    Json(body): Json<AgentChange>,
) -> Result<Response<Body>, Refusal> {
    let changed = app.hub()?.accounts.change(asker.principal()?, &team, &source, &body).await?;
    Ok(answer_agent(&app, &asker, changed))
}

pub(in crate::http) async fn approve(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path((team, source)): Path<(String, String)>,
) -> Result<Response<Body>, Refusal> {
    let approved = app.hub()?.accounts.approve(asker.principal()?, &team, &source).await?;
    Ok(answer_agent(&app, &asker, approved))
}

/// Revokes its key; its samples stay.
pub(in crate::http) async fn revoke(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path((team, source)): Path<(String, String)>,
) -> Result<Response<Body>, Refusal> {
    let revoked = app.hub()?.accounts.revoke(asker.principal()?, &team, &source).await?;
    Ok(answer_agent(&app, &asker, revoked))
}

/// `DELETE /api/v1/sources/ID`: removes the machine and its samples from the hub.
pub(in crate::http) async fn remove(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(source): Path<String>,
) -> Result<Response<Body>, Refusal> {
    let id = app.hub()?.accounts.remove(asker.principal()?, &source).await?;
    Ok(json(StatusCode::OK, &ById { id }))
}

fn answer_agent(app: &App, asker: &Asker, mut agent: Agent) -> Response<Body> {
    stands(app, asker, &mut agent);
    json(StatusCode::OK, &agent)
}

/// Sets the state of its link, if its key is valid.
fn stands(app: &App, asker: &Asker, agent: &mut Agent) {
    if agent.state != "active" {
        return;
    }
    let id = asker.reader(app).sources().iter().find(|source| source.key == agent.id).map(|source| source.id);
    let Some(id) = id else {
        // It has joined, but has not connected yet.
        agent.state = ConnectionState::Unreachable.as_str().into();
        return;
    };
    let (connection_state, since) = app.live.source(id).connection_state();
    (agent.state, agent.since) = (connection_state.as_str().into(), Some(since / 1_000));
}

//! `POST /api/v1/runs` and `POST /api/v1/runs/{id}/events`: reports of runs by launchers without our binary.

use super::Params;
use super::submit::{Submitted, submit};
use crate::http::admit::Asker;
use crate::http::body::Json;
use crate::http::{App, Caller, Refusal, json};
use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Response, StatusCode};
use ring::rand::{SecureRandom, SystemRandom};
use shared::answer::ById;
use shared::reported::{NewRun, ReportedEvent};
use shared::submission::{SubmissionBody, SubmissionResult};
use std::sync::Arc;

const WHAT: &str = "reports of runs";

/// Reports the begin of a run: 201 with its id, or 200 if it was reported already.
pub(in crate::http) async fn begin(
    State(app): State<Arc<App>>,
    asker: Asker,
    Extension(caller): Extension<Caller>,
    params: Params,
    Json(new): Json<NewRun>,
) -> Result<Response<Body>, Refusal> {
    let id = match &new.id {
        Some(id) => id.clone(),
        None => made()?,
    };
    let body = SubmissionBody::Run { id: id.clone(), new: Box::new(new) };
    let submitted = Submitted { body, what: WHAT, run: Some(id.clone()) };
    let result = submit(&app, &asker, caller, &params, submitted).await?;
    let status = match result {
        SubmissionResult::Run { new: true } => StatusCode::CREATED,
        _ => StatusCode::OK,
    };
    Ok(json(status, &ById { id }))
}

/// Reports an event of a reported run.
pub(in crate::http) async fn event(
    State(app): State<Arc<App>>,
    asker: Asker,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    params: Params,
    Json(event): Json<ReportedEvent>,
) -> Result<Response<Body>, Refusal> {
    let body = SubmissionBody::Event { id: id.clone(), event };
    submit(&app, &asker, caller, &params, Submitted { body, what: WHAT, run: Some(id.clone()) }).await?;
    Ok(json(StatusCode::OK, &ById { id }))
}

/// A unique id.
fn made() -> Result<String, Refusal> {
    let mut bytes = [0; 6];
    let random = SystemRandom::new().fill(&mut bytes);
    random.map_err(|_| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the system provides no random bytes"))?;
    Ok(hex::encode(bytes))
}

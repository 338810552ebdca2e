//! `POST /api/v1/values`: numbers of a training job. They have the rights of markers.

use super::Params;
use super::submit::{Submitted, submit};
use crate::http::admit::Asker;
use crate::http::body::Json;
use crate::http::{App, Caller, Refusal, json};
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use shared::answer::markers::ValuesTaken;
use shared::new_values::NewValues;
use shared::submission::{SubmissionBody, SubmissionResult};
use std::sync::Arc;

pub(in crate::http) async fn post(
    State(app): State<Arc<App>>,
    asker: Asker,
    Extension(caller): Extension<Caller>,
    params: Params,
    Json(new): Json<NewValues>,
) -> Result<Response<Body>, Refusal> {
    let run = new.run.clone();
    let submitted = Submitted { body: SubmissionBody::Values(new), what: "values", run };
    let taken = match submit(&app, &asker, caller, &params, submitted).await? {
        SubmissionResult::Values(taken) => taken,
        _ => ValuesTaken::default(),
    };
    Ok(json(StatusCode::OK, &taken))
}

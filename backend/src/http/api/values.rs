//! `POST /api/v1/values`: numbers of a training job. They have the rights of markers.

use super::answer::history_slot;
use super::markers::may_write;
use crate::http::admit::Asker;
use crate::http::body::Json;
use crate::http::{App, Caller, Refusal, json};
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use jobs::markers::own_source;
use jobs::values::{self, RefusedValues};
use shared::answer::markers::ValuesTaken;
use shared::new_values::NewValues;
use std::sync::Arc;

pub(in crate::http) async fn post(
    State(app): State<Arc<App>>,
    asker: Asker,
    Extension(caller): Extension<Caller>,
    Json(new): Json<NewValues>,
) -> Result<Response<Body>, Refusal> {
    let conflict = |sentence: &str| Err(Refusal::new(StatusCode::CONFLICT, sentence));
    if app.hub.is_some() {
        return conflict("send values to the agent of the machine that runs the job");
    }
    if app.live.provenance.recorded.is_some() {
        return conflict("this is a recording; send values to a live Watchglass");
    }
    may_write(caller, "values")?;
    let Some(source) = own_source(&app.live) else { return conflict("no machine is measured here") };
    // The run of a process is found in the system's files, which may wait.
    let (slot, live) = (history_slot(&app, &asker)?, app.live.clone());
    let taken = slot.blocking(move || values::take(&live, source, new, None)).await?.map_err(|why| match why {
        RefusedValues::Bad(_) => Refusal::bad(why.to_string()),
        RefusedValues::Gone => Refusal::new(StatusCode::CONFLICT, why.to_string()),
    })?;
    Ok(json(StatusCode::OK, &ValuesTaken { taken: taken.taken, dropped: taken.dropped }))
}

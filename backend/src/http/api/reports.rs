//! `POST /api/v1/runs` and `POST /api/v1/runs/{id}/events`: reports of runs by launchers without our binary.

use super::markers::may_write;
use crate::http::admit::Asker;
use crate::http::body::Json;
use crate::http::{App, Caller, Refusal, json};
use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Response, StatusCode};
use jobs::runs::{RefusedReport, Report};
use ring::rand::{SecureRandom, SystemRandom};
use shared::answer::ById;
use shared::reported::{NewRun, ReportedEvent};
use std::sync::Arc;
use system::user::login_of;

/// Reports the begin of a run: 201 with its id, or 200 if it was reported already.
pub(in crate::http) async fn begin(
    State(app): State<Arc<App>>,
    _: Asker,
    Extension(caller): Extension<Caller>,
    Json(new): Json<NewRun>,
) -> Result<Response<Body>, Refusal> {
    may_report(&app, caller)?;
    let id = match &new.id {
        Some(id) => id.clone(),
        None => made()?,
    };
    let user = caller.local.or(caller.uid).map(login_of);
    let report = Report::begin(new, id.clone(), user).map_err(Refusal::bad)?;
    let status = if take(&app, report).await? { StatusCode::CREATED } else { StatusCode::OK };
    Ok(json(status, &ById { id }))
}

/// Reports an event of a reported run.
pub(in crate::http) async fn event(
    State(app): State<Arc<App>>,
    _: Asker,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Json(event): Json<ReportedEvent>,
) -> Result<Response<Body>, Refusal> {
    may_report(&app, caller)?;
    take(&app, Report::of_event(event, id.clone()).map_err(Refusal::bad)?).await?;
    Ok(json(StatusCode::OK, &ById { id }))
}

fn may_report(app: &App, caller: Caller) -> Result<(), Refusal> {
    let conflict = |sentence: &str| Err(Refusal::new(StatusCode::CONFLICT, sentence));
    if app.hub.is_some() {
        return conflict(
            "send reports to the agent of the machine that runs the job; the hub receives its runs from there",
        );
    }
    if app.live.provenance.recorded.is_some() {
        return conflict("this is a recording; send reports to a live Watchglass");
    }
    may_write(caller, "reports of runs")
}

/// A unique id.
fn made() -> Result<String, Refusal> {
    let mut bytes = [0; 6];
    let random = SystemRandom::new().fill(&mut bytes);
    random.map_err(|_| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the system provides no random bytes"))?;
    Ok(hex::encode(bytes))
}

async fn take(app: &App, report: Report) -> Result<bool, Refusal> {
    let taken = match &app.runs.reports {
        Some(reports) => reports.take(report).await,
        None => Err(RefusedReport::Nobody),
    };
    taken.map_err(|why| {
        let status = match why {
            RefusedReport::TooMany => StatusCode::TOO_MANY_REQUESTS,
            RefusedReport::Unknown(_) => StatusCode::NOT_FOUND,
            RefusedReport::Other(_) | RefusedReport::Nobody => StatusCode::CONFLICT,
        };
        Refusal::new(status, why.to_string())
    })
}

//! `GET /api/v1/usage`: usage of a team.

use super::admit::Asker;
use super::api::Params;
use super::{App, Refusal, json};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Response, StatusCode, header};
use shared::audit::Usage;
use std::sync::Arc;
use team::accounts::{UsageFilter, usage_csv};

pub(super) async fn get(State(app): State<Arc<App>>, asker: Asker, params: Params) -> Result<Response<Body>, Refusal> {
    let now = app.live.clock.wall();
    let by = params.last("by").map(str::parse).transpose();
    let asked = UsageFilter {
        team: params.last("team").map(String::from),
        by: by.map_err(|why: String| Refusal::bad(format!("by {why}")))?.unwrap_or_default(),
        from: params.instant("from", now)?,
        to: params.instant("to", now)?,
    };
    let as_csv = match params.last("format") {
        None | Some("json") => false,
        Some("csv") => true,
        Some(other) => return Err(Refusal::bad(format!("format is json or csv, not {other:?}"))),
    };
    let hub = app.hub()?;
    let usage = hub.accounts.usage(asker.principal()?, &asked).await?;
    let usage = Usage { left_out: hub.meter.left_out(), ..usage };
    if !as_csv {
        return Ok(json(StatusCode::OK, &usage));
    }
    let mut response = Response::new(Body::from(usage_csv(&usage)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"usage.csv\""));
    Ok(response)
}

//! `GET /api/v1/audit`: the audit log.

use super::admit::Asker;
use super::api::Params;
use super::{App, Refusal, json};
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use std::sync::Arc;
use team::accounts::LogFilter;

pub(super) async fn audit(
    State(app): State<Arc<App>>,
    asker: Asker,
    params: Params,
) -> Result<Response<Body>, Refusal> {
    let now = app.live.clock.wall();
    let text = |name| params.last(name).map(String::from);
    let number = |name: &str| match params.last(name).map(str::parse::<i64>) {
        None => Ok(None),
        Some(Ok(number)) if number > 0 => Ok(Some(number)),
        Some(_) => Err(Refusal::bad(format!("{name} is a number above 0"))),
    };
    let asked = LogFilter {
        team: text("team"),
        who: text("who"),
        action: text("action"),
        object: text("object"),
        from: params.instant("from", now)?,
        to: params.instant("to", now)?,
        before: number("before")?,
        limit: number("limit")?,
    };
    Ok(json(StatusCode::OK, &app.hub()?.accounts.audit_log(asker.principal()?, &asked).await?))
}

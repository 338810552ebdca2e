//! `GET /api/v1/usage`: usage of a team; `GET /api/v1/usage/runs`: GPU time of its training jobs.

use super::admit::Asker;
use super::api::Params;
use super::names::HiddenNames;
use super::{App, Refusal, json};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Response, StatusCode, header};
use jobs::runs::{GpuTimeSpan, Month};
use shared::answer::usage::{GpuHoursLimit, GpuTime, GpuTimeBy, gpu_time_csv};
use shared::audit::Usage;
use shared::json::Number;
use shared::scope::Scope;
use std::sync::Arc;
use stream::live::Reader;
use team::accounts::{UsageBy, UsageFilter, usage_csv};

/// Days of an answer: default of days and of other divisions, of months, and maximum, which is the retention of runs.
const DAYS: i64 = 30;
const DAYS_OF_MONTHS: i64 = 365;
const MAX_DAYS: i64 = 400;
/// One day, milliseconds.
const DAY_MS: i64 = 86_400_000;

pub(super) async fn get(State(app): State<Arc<App>>, asker: Asker, params: Params) -> Result<Response<Body>, Refusal> {
    let now = app.live.clock.wall();
    let by = params.last("by").map(str::parse).transpose();
    let asked = UsageFilter {
        team: params.last("team").map(String::from),
        by: by.map_err(|why: String| Refusal::bad(format!("by {why}")))?.unwrap_or_default(),
        from: params.instant("from", now)?,
        to: params.instant("to", now)?,
    };
    let names = HiddenNames::from_asker(&app, &asker);
    let is_hidden = |team: &String| names.as_ref().is_some_and(|names| names.hides(team));
    if asked.by == UsageBy::Key && asked.team.as_ref().map_or(names.is_some(), is_hidden) {
        let sentence = "names of people and their keys are hidden from this key; use by=day or by=source";
        return Err(Refusal::new(StatusCode::FORBIDDEN, sentence));
    }
    let is_csv = is_csv(&params)?;
    let hub = app.hub()?;
    let usage = hub.accounts.usage(asker.principal()?, &asked).await?;
    let usage = Usage { left_out: hub.meter.left_out(), ..usage };
    Ok(if is_csv { csv(usage_csv(&usage), "usage.csv") } else { json(StatusCode::OK, &usage) })
}

/// GPU time of the training jobs of a team, or of a server without accounts.
pub(super) async fn gpu_time(
    State(app): State<Arc<App>>,
    asker: Asker,
    params: Params,
) -> Result<Response<Body>, Refusal> {
    let now = app.live.clock.wall();
    let by = params.last("by").map(str::parse::<GpuTimeBy>).transpose();
    let by = by.map_err(|why| Refusal::bad(format!("by {why}")))?.unwrap_or_default();
    let days = if by == GpuTimeBy::Month { DAYS_OF_MONTHS } else { DAYS };
    let to = params.instant("to", now)?.unwrap_or(now).div_euclid(DAY_MS);
    let from = params.instant("from", now)?.map_or(to - days + 1, |from| from.div_euclid(DAY_MS));
    if from > to || to - from >= MAX_DAYS {
        return Err(Refusal::bad(format!("from must not be after to, and runs are kept for {MAX_DAYS} days")));
    }
    // A part of a month would be taken for the month.
    let from = match by {
        GpuTimeBy::Month => Month::from_time(from * DAY_MS).began.div_euclid(DAY_MS).max(to - MAX_DAYS + 1),
        _ => from,
    };
    let is_csv = is_csv(&params)?;
    let team = match &app.hub {
        Some(hub) => hub.accounts.gpu_time_of(asker.principal()?, params.last("team")).await?,
        None => None,
    };
    let limit = team.as_ref().and_then(|team| team.limit);
    let reader = match team {
        Some(team) => {
            let seen = team.machines.into_iter().filter(|source| asker.scope.sees(source));
            Reader::new(app.live.clone(), Scope::only([], seen))
        }
        None => asker.reader(&app),
    };
    let hides_users = reader.sources().iter().any(|source| asker.scope.hides_names_of(&source.key));
    let (slot, theirs) = (app.answers.history.take()?, app.clone());
    let asked = GpuTimeSpan { by, from, to, hides_users };
    let made = move || {
        let limit = limit.map(|limit| {
            let Month { name, began } = Month::from_time(now);
            let used = Number(theirs.runs.gpu_hours(&reader, (began, now)));
            GpuHoursLimit { month: name, used, limit }
        });
        GpuTime { limit, ..theirs.runs.gpu_time(&reader, asked, now) }
    };
    let usage = slot.blocking(made).await?;
    Ok(if is_csv { csv(gpu_time_csv(&usage), "gpu-time.csv") } else { json(StatusCode::OK, &usage) })
}

/// Whether a table is wanted as CSV.
fn is_csv(params: &Params) -> Result<bool, Refusal> {
    match params.last("format") {
        None | Some("json") => Ok(false),
        Some("csv") => Ok(true),
        Some(other) => Err(Refusal::bad(format!("format is json or csv, not {other:?}"))),
    }
}

fn csv(text: String, file: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
    if let Ok(attached) = HeaderValue::from_str(&format!("attachment; filename=\"{file}\"")) {
        headers.insert(header::CONTENT_DISPOSITION, attached);
    }
    response
}

//! `GET /api/v1/findings`: current and past findings about the machines.

use super::params::Params;
use crate::http::admit::Asker;
use crate::http::{App, Refusal};
use axum::Json;
use axum::extract::State;
use shared::finding::{Finding, Findings};
use shared::linked;
use std::sync::Arc;
use watch::findings::{self, WantedFindings};

/// `?from=`, `to=`, `source=`, `kind=` choose (the last two may repeat); `active=1` chooses those that have not ended.
/// The newest come first. A consequence of another finding has the id of that one in `because`. `rules` lists what
/// each rule can detect.
pub(in crate::http) async fn get(
    State(app): State<Arc<App>>,
    asker: Asker,
    params: Params,
) -> Result<Json<Findings>, Refusal> {
    let now = app.live.clock.wall();
    let (from, to) = (params.instant("from", now)?, params.instant("to", now)?);
    if from.zip(to).is_some_and(|(from, to)| from > to) {
        return Err(Refusal::bad("from is later than to"));
    }
    let active = match params.last("active") {
        None | Some("0" | "false") => false,
        Some("1" | "true") => true,
        Some(other) => return Err(Refusal::bad(format!("active is 1 or 0, not {other:?}"))),
    };
    let span = asker.within(now, from.unwrap_or(0), to.unwrap_or(now))?;
    let wanted = WantedFindings {
        span: Some(span),
        sources: params.each("source").map(String::from).collect(),
        kinds: params.each("kind").map(String::from).collect(),
        active,
    };
    let mut seen = app.findings.seen(&wanted, |key| asker.scope.sees(key));
    if asker.linked().is_some() {
        seen = for_link(&app, &asker, seen);
    }
    Ok(Json(findings::answer(now, &seen, app.findings.rules())))
}

/// Those of findings that a link shows, as it shows them.
pub(in crate::http) fn for_link(app: &App, asker: &Asker, seen: Vec<Finding>) -> Vec<Finding> {
    let catalog = asker.reader(app).catalog();
    linked::findings(seen, |tag| catalog.metrics.iter().any(|metric| metric.tag == tag))
}

//! `POST /api/v1/findings/wrong`: marks a finding as wrong, with a reason, or removes the mark.

use super::admit::Asker;
use super::alerts::Writer;
use super::body::Json;
use super::{App, Refusal, json};
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use shared::finding::{Dismissal, Dismissed, DismissedFinding, MAX_REASON};
use std::sync::Arc;

/// Returns the new mark of the finding. Its alert is resolved at the next evaluation of findings.
pub(super) async fn post(
    State(app): State<Arc<App>>,
    asker: Asker,
    Writer(by): Writer,
    Json(said): Json<Dismissal>,
) -> Result<Response<Body>, Refusal> {
    let why = said.why.map(|why| why.trim().to_string());
    match &why {
        Some(why) if why.is_empty() => {
            return Err(Refusal::bad("the reason is missing; write in why what is wrong with the finding"));
        }
        Some(why) if why.chars().count() > MAX_REASON => {
            return Err(Refusal::bad(format!("why has at most {MAX_REASON} characters")));
        }
        _ => {}
    }
    let none = || Refusal::new(StatusCode::NOT_FOUND, "there is no such finding; api/v1/findings lists them");
    let reader = asker.reader(&app);
    let machines = app.findings.machines_of(&said.id, |key| reader.scope().sees(key)).ok_or_else(none)?;
    if app.hub.is_some() && !app.alerts()?.may_dismiss(&by, &machines).await? {
        let sentence = "only members of a team with access to its machines can mark a finding as wrong";
        return Err(Refusal::new(StatusCode::FORBIDDEN, sentence));
    }
    let at = app.live.clock.wall() / 1000;
    let new = why.map(|why| Dismissed { at, by: watch::alerts::maker(&by), why });
    let finding = app.findings.dismiss(&said.id, new, |key| reader.scope().sees(key)).ok_or_else(none)?;
    Ok(json(StatusCode::OK, &DismissedFinding { id: finding.id, dismissed: finding.dismissed }))
}

//! `POST /api/v1/alerts`: an alert from code.

use super::answer::history_slot;
use super::submit::may_write;
use super::{fitting, no_source, unknown_run};
use crate::http::admit::Asker;
use crate::http::body::Json;
use crate::http::{App, Caller, Refusal, json};
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use jobs::code_alerts::{RefusedCall, in_run_of};
use jobs::markers::own_source;
use shared::alert::CodeAlert;
use shared::alert_call::AlertCall;
use shared::wire::SourceId;
use std::sync::Arc;

/// The machine of an alert: the one that it names, the machine of its run, this one, or the only one at a hub. Callers
/// who may not see it get the error of an unknown machine.
async fn source_of(app: &Arc<App>, asker: &Asker, said: &CodeAlert) -> Result<SourceId, Refusal> {
    let of_run = match &said.run {
        Some(id) => {
            let now = app.live.clock.wall();
            let (slot, theirs, reader) = (history_slot(app, asker)?, app.clone(), asker.reader(app));
            let sought = id.clone();
            let found = slot.blocking(move || theirs.runs.seen(&reader, (0, now)).find(|run| run.id == sought)).await?;
            Some(found.ok_or_else(|| unknown_run(id))?)
        }
        None => None,
    };
    let on = of_run.and_then(|run| run.processes.first().map(|process| process.source.clone()));
    let sources = asker.reader(app).sources();
    let only = || match (&app.hub, &sources[..]) {
        (Some(_), [one]) => Some(one.name.clone()),
        _ => None,
    };
    let Some(name) = said.source.clone().or(on).or_else(only) else {
        let none = "the machine is missing: name it in source, or the run in run";
        return match &app.hub {
            Some(_) => Err(Refusal::bad(none)),
            None => {
                own_source(&app.live).ok_or_else(|| Refusal::new(StatusCode::CONFLICT, "no machine is measured here"))
            }
        };
    };
    let names = asker.sources(app, vec![name.clone()]).await;
    let found = fitting(&sources, &names).map_err(no_source)?;
    let unknown = || Refusal::bad(format!("there is not exactly one machine {name:?} here; api/v1/sources lists them"));
    let [one] = found.as_slice() else { return Err(unknown()) };
    if let (Some(hub), Some(who)) = (&app.hub, &asker.who)
        && !hub.accounts.is_member_at(who, &one.key).await?
    {
        let sentence = "only members of a team with access to the machine can send alerts for it; ask one of them";
        return Err(Refusal::new(StatusCode::FORBIDDEN, sentence));
    }
    Ok(one.id)
}

pub(in crate::http) async fn post(
    State(app): State<Arc<App>>,
    asker: Asker,
    Extension(caller): Extension<Caller>,
    Json(said): Json<CodeAlert>,
) -> Result<Response<Body>, Refusal> {
    if app.live.provenance.recorded.is_some() {
        let sentence = "this is a recording; send alerts to a live Watchglass";
        return Err(Refusal::new(StatusCode::CONFLICT, sentence));
    }
    if app.hub.is_none() {
        may_write(caller, "alerts")?;
    }
    let source = source_of(&app, &asker, &said).await?;
    let call = AlertCall::checked(said, app.live.clock.wall()).map_err(|bad| Refusal::bad(bad.to_string()))?;
    let taken = match &app.hub {
        // A machine's records are written by its agent alone. Here the alert goes directly to the evaluation of rules.
        Some(_) => app.calls.tell(&app.live, source, call).await,
        None => {
            let (slot, theirs) = (history_slot(&app, &asker)?, app.clone());
            let sent = move || {
                let call = in_run_of(&theirs.live, source, call, caller.pid);
                theirs.calls.take(&theirs.live, source, call)
            };
            slot.blocking(sent).await?
        }
    };
    match taken {
        Ok(taken) => Ok(json(if taken.new { StatusCode::CREATED } else { StatusCode::OK }, &taken.answer())),
        Err(RefusedCall::TooMany) => Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, RefusedCall::TooMany.to_string())),
        Err(RefusedCall::Store(why)) => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, why)),
    }
}

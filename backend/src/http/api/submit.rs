//! Sends runs, markers and values of a request to the machine that they are about: this one, or through its agent.

use super::answer::history_slot;
use super::{Params, named, unknown_run};
use crate::http::admit::Asker;
use crate::http::run_edits::placed;
use crate::http::{App, Caller, Hub, Refusal};
use axum::http::StatusCode;
use jobs::markers::own_source;
use jobs::submissions;
use shared::reported::ReportedEventKind;
use shared::submission::{RefusalKind, RefusedSubmission, Submission, SubmissionBody, SubmissionResult};
use shared::wire::{Source, SourceId};
use std::sync::Arc;
use system::user::{login_of, own_uid};
use team::accounts::Principal;
use uplink::random;
use watch::alerts::maker;
use watch::written::WrittenRegistry;

/// Only the owner of this server and root may write; others that it admits may read. `what` names the written items,
/// as `markers`.
pub(super) fn may_write(caller: Caller, what: &str) -> Result<(), Refusal> {
    let far = caller.peer.is_some_and(|peer| !peer.is_loopback());
    let other = caller.uid.is_some_and(|uid| uid != own_uid() && uid != 0);
    if !far && !other {
        return Ok(());
    }
    let sentence = format!("only the user who runs this Watchglass can send {what}, from this machine");
    Err(Refusal::new(StatusCode::FORBIDDEN, sentence))
}

impl From<RefusedSubmission> for Refusal {
    fn from(RefusedSubmission { kind, sentence }: RefusedSubmission) -> Self {
        let status = match kind {
            RefusalKind::Bad => StatusCode::BAD_REQUEST,
            RefusalKind::Forbidden => StatusCode::FORBIDDEN,
            RefusalKind::Unknown => StatusCode::NOT_FOUND,
            RefusalKind::Conflict => StatusCode::CONFLICT,
            RefusalKind::TooMany => StatusCode::TOO_MANY_REQUESTS,
            RefusalKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        };
        Refusal::new(status, sentence)
    }
}

/// Submitted data, and what a refusal calls it.
pub(super) struct Submitted {
    pub body: SubmissionBody,
    /// As `markers`.
    pub what: &'static str,
    /// The run that it is about, if it names one.
    pub run: Option<String>,
}

/// Stores submitted data on its machine.
pub(super) async fn submit(
    app: &Arc<App>,
    asker: &Asker,
    caller: Caller,
    params: &Params,
    submitted: Submitted,
) -> Result<SubmissionResult, Refusal> {
    if app.live.provenance.recorded.is_some() {
        let sentence = format!("this is a recording; send {} to a live Watchglass", submitted.what);
        return Err(Refusal::new(StatusCode::CONFLICT, sentence));
    }
    match (&app.hub, &asker.who) {
        (Some(hub), Some(who)) => at_hub(app, (hub, who), asker, params, submitted).await,
        _ => alone(app, asker, caller, params, submitted).await,
    }
}

/// Stores data of the owner of a server without accounts.
async fn alone(
    app: &Arc<App>,
    asker: &Asker,
    caller: Caller,
    params: &Params,
    Submitted { body, what, .. }: Submitted,
) -> Result<SubmissionResult, Refusal> {
    may_write(caller, what)?;
    let Some(source) = own_source(&app.live) else {
        return Err(Refusal::new(StatusCode::CONFLICT, "no machine is measured here"));
    };
    if !named(app, asker, params).await?.iter().any(|named| named.id == source) {
        let sentence = format!("another Watchglass measures this machine; send {what} to that one");
        return Err(Refusal::new(StatusCode::CONFLICT, sentence));
    }
    let user = caller.local.or(caller.uid).map(login_of);
    store(app, asker, source, Submission { by: None, user, nonce: 0, body }).await
}

async fn store(
    app: &Arc<App>,
    asker: &Asker,
    source: SourceId,
    submission: Submission,
) -> Result<SubmissionResult, Refusal> {
    let (slot, theirs) = (history_slot(app, asker)?, app.clone());
    Ok(slot.blocking(move || submissions::store(&theirs.live, source, &theirs.runs, submission)).await??)
}

/// Stores data of a member or a key, on the machine of their team that it is about. The begin and the end of a run are
/// audited.
async fn at_hub(
    app: &Arc<App>,
    (hub, who): (&Hub, &Principal),
    asker: &Asker,
    params: &Params,
    submitted: Submitted,
) -> Result<SubmissionResult, Refusal> {
    let source = machine(app, asker, params, &submitted).await?;
    let written = WrittenRegistry::beside(app.alerts()?);
    let team = written.team_of_submitter(who, &source.key, submitted.what).await?;
    let action = match &submitted.body {
        SubmissionBody::Run { id, .. } => Some(("run.add", id.clone())),
        SubmissionBody::Event { id, event } if event.event == ReportedEventKind::End => Some(("run.end", id.clone())),
        _ => None,
    };
    let submission = Submission { by: Some(maker(who)), user: None, nonce: random(), body: submitted.body };
    let result = match hub.ingest.has_agent(source.id) {
        true => hub.ingest.submit(source.id, &submission).await?,
        false => store(app, asker, source.id, submission).await?,
    };
    if let SubmissionResult::Refused(why) = result {
        return Err(why.into());
    }
    // A repeated begin or end changes nothing.
    let is_repeated = result == SubmissionResult::Run { new: false };
    if let Some((action, id)) = action.filter(|_| !is_repeated) {
        written.audit_submission(who, (action, &team), &id, &source.name).await?;
    }
    Ok(result)
}

/// The machine that the data is about: the named one, the first one of its run, or the only one that the caller sees.
async fn machine(
    app: &Arc<App>,
    asker: &Asker,
    params: &Params,
    submitted: &Submitted,
) -> Result<Arc<Source>, Refusal> {
    let sources = named(app, asker, params).await?;
    if let [one] = &sources[..] {
        return Ok(one.clone());
    }
    if params.last("source").is_some() {
        return Err(Refusal::bad("source names several machines; name one"));
    }
    let missing = || Refusal::bad("the machine is missing: name it with source=NAME");
    // A new run is nowhere yet.
    let run = submitted.run.as_ref().filter(|_| !matches!(submitted.body, SubmissionBody::Run { .. }));
    let Some(run) = run else { return Err(missing()) };
    let placed = placed(app, asker, run).await?;
    let of_run = sources.into_iter().find(|source| placed.machines.contains_key(source.key.as_str()));
    of_run.ok_or_else(|| unknown_run(run))
}

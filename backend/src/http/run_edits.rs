//! `PATCH` and `DELETE /api/v1/runs/{id}`: changes of runs by people.

use super::admit::Asker;
use super::alerts::Writer;
use super::api::answer::history_slot;
use super::api::{listed_run, unknown_run};
use super::body::Json;
use super::{App, Refusal, json};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Response, StatusCode};
use jobs::runs::PlacedRun;
use shared::answer::ById;
use shared::answer::runs::RunRights;
use shared::run::check_id;
use shared::run_change::RunChange;
use std::sync::Arc;
use system::user::own_uid;
use team::accounts::Principal;
use watch::written::WrittenRegistry;

type ApiResult = Result<Response<Body>, Refusal>;

/// The run of an ID that the caller sees, with all its machines.
pub(super) async fn placed(app: &Arc<App>, asker: &Asker, id: &str) -> Result<PlacedRun, Refusal> {
    check_id(id).map_err(|_| unknown_run(id))?;
    let (slot, reader, theirs, wanted) = (history_slot(app, asker)?, asker.reader(app), app.clone(), id.to_string());
    let found = slot.blocking(move || theirs.runs.placed(&reader, &wanted)).await?;
    found.ok_or_else(|| unknown_run(id))
}

/// The caller's rights to a run; none if they cannot be checked now.
pub(super) async fn rights(app: &App, asker: &Asker, placed: &PlacedRun) -> RunRights {
    let by = match (&app.hub, &asker.who) {
        (Some(_), Some(who)) => who.clone(),
        (None, _) if asker.is_owner && app.live.provenance.recorded.is_none() => Principal::local(own_uid()),
        _ => return RunRights::default(),
    };
    let Some(alerts) = &app.alerts else { return RunRights::default() };
    WrittenRegistry::beside(alerts).run_rights(&by, placed).await.unwrap_or_default()
}

/// Returns the run with its new names.
pub(super) async fn change(
    State(app): State<Arc<App>>,
    Writer(by): Writer,
    asker: Asker,
    Path(id): Path<String>,
    Json(wanted): Json<RunChange>,
) -> ApiResult {
    let (written, run) = (WrittenRegistry::beside(app.alerts()?), placed(&app, &asker, &id).await?);
    written.change_run(&by, &run, wanted).await?;
    written.refresh(&app.runs.edits).await?;
    let placed = placed(&app, &asker, &id).await?;
    Ok(json(StatusCode::OK, &listed_run(&placed.run, app.live.clock.wall())))
}

/// Deletes a run that has ended, with its stored summary and its output on this machine. Its use counts on.
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Writer(by): Writer,
    asker: Asker,
    Path(id): Path<String>,
) -> ApiResult {
    let (written, run) = (WrittenRegistry::beside(app.alerts()?), placed(&app, &asker, &id).await?);
    let (slot, theirs, gone) = (history_slot(&app, &asker)?, app.clone(), run.run.clone());
    let used = slot.blocking(move || theirs.runs.use_of(&theirs.live, &gone)).await?;
    let last = written.delete_run(&by, &run, &used).await?;
    written.refresh(&app.runs.edits).await?;
    let theirs = app.clone();
    slot.blocking(move || {
        // Another machine may have another run of this ID.
        let own =
            theirs.runs.logs.source().and_then(|own| theirs.live.store().source(own).map(|own| own.0.key.clone()));
        if own.is_some_and(|own| run.machines.contains_key(own.as_str())) {
            theirs.runs.logs.remove(run.run.machine_id(), last);
        }
    })
    .await?;
    Ok(json(StatusCode::OK, &ById { id }))
}

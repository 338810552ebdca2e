//! `/api/v1/notes`: notes of people about machines and runs.

use super::admit::Asker;
use super::alerts::Writer;
use super::api::{Params, named_sources};
use super::body::Json;
use super::names::HiddenNames;
use super::run_edits::placed;
use super::{App, Refusal, json};
use crate::export::{Ask, fitting};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Response, StatusCode};
use shared::answer::ById;
use shared::note::{NewNote, NoteChange, SavedNote};
use std::collections::HashMap;
use std::sync::Arc;
use system::user::own_uid;
use team::accounts::Principal;
use watch::written::{NoteSubject, WantedNotes, WrittenRegistry};

type ApiResult = Result<Response<Body>, Refusal>;

/// Default span of a response without `from`, milliseconds: notes are few.
const DEFAULT_SPAN_MS: i64 = 400 * 86_400_000;

/// Names of the machines that the caller sees, by key.
fn names(app: &App, asker: &Asker) -> HashMap<String, String> {
    asker.reader(app).sources().iter().map(|source| (source.key.clone(), source.name.clone())).collect()
}

/// The caller, as the writer of notes.
fn reader(app: &App, asker: &Asker) -> Option<Principal> {
    match &app.hub {
        Some(_) => asker.who.clone(),
        None => asker.is_owner.then(|| Principal::local(own_uid())),
    }
}

/// Notes without the writers that the caller may not see.
fn nameless(app: &App, asker: &Asker, notes: Vec<SavedNote>) -> Vec<SavedNote> {
    match HiddenNames::from_asker(app, asker) {
        Some(names) => notes.into_iter().map(|note| names.note(note)).collect(),
        None => notes,
    }
}

/// The notes about a run that the caller sees, of all times.
pub(super) async fn of_run(app: &App, asker: &Asker, run: &str) -> Vec<SavedNote> {
    let Some(alerts) = &app.alerts else { return Vec::new() };
    let wanted = WantedNotes { run: Some(run.into()), span: (0, i64::MAX), ..WantedNotes::default() };
    let names = names(app, asker);
    let found = WrittenRegistry::beside(alerts).notes(None, &wanted, |key| names.get(key).cloned()).await;
    // A report without notes is better than none.
    nameless(app, asker, found.map(|found| found.notes).unwrap_or_default())
}

/// The notes about the machines and in the span of an export.
pub(super) async fn exported(app: &App, asker: &Asker, ask: &Ask) -> Vec<SavedNote> {
    let Some(alerts) = &app.alerts else { return Vec::new() };
    let wanted = WantedNotes { span: (ask.from, ask.to), ..WantedNotes::default() };
    let sources = fitting(&asker.reader(app).sources(), &ask.sources).unwrap_or_default();
    let named = |key: &str| sources.iter().find(|source| source.key == key).map(|source| source.name.clone());
    // An export without notes is better than none.
    let found = WrittenRegistry::beside(alerts).notes(None, &wanted, named).await;
    nameless(app, asker, found.map(|found| found.notes).unwrap_or_default())
}

/// `?source=` and `run=` choose, `q=` is a part of the text, `from=` and `to=` the time.
pub(super) async fn list(State(app): State<Arc<App>>, asker: Asker, params: Params) -> ApiResult {
    let now = app.live.clock.wall();
    let to = params.instant("to", now)?.unwrap_or(now);
    let from = params.instant("from", now)?.unwrap_or(to.saturating_sub(DEFAULT_SPAN_MS));
    if from > to {
        return Err(Refusal::bad("from is later than to"));
    }
    let text = |name: &str| params.last(name).map(String::from);
    let span = asker.within(now, from, to)?;
    let sources = named_sources(&app, &asker, &params).await?;
    let source = sources.first().filter(|_| sources.len() == 1).map(|source| source.key.clone());
    let wanted = WantedNotes { source, run: text("run"), text: text("q"), span };
    let names: HashMap<String, String> =
        sources.iter().map(|source| (source.key.clone(), source.name.clone())).collect();
    let by = reader(&app, &asker);
    let written = WrittenRegistry::beside(app.alerts()?);
    Ok(json(StatusCode::OK, &written.notes(by.as_ref(), &wanted, |key| names.get(key).cloned()).await?))
}

/// The machine and the run of a new note.
async fn subject(app: &Arc<App>, asker: &Asker, new: &NewNote) -> Result<NoteSubject, Refusal> {
    if let Some(id) = &new.run {
        let run = placed(app, asker, id).await?;
        let names = names(app, asker);
        let first = run.machines.into_keys().find(|key| names.contains_key(key));
        let source = first.ok_or_else(|| Refusal::bad("the run has no machine"))?;
        return Ok(NoteSubject { source, run: Some(run.run.id) });
    }
    let sources = asker.reader(app).sources();
    let source = match &new.source {
        Some(name) => {
            let names = asker.sources(app, vec![name.clone()]).await;
            sources.iter().find(|source| names.iter().any(|name| source.is_called(name)))
        }
        None if sources.len() == 1 => sources.first(),
        None => return Err(Refusal::bad("the subject is missing; name a machine in source, or a run in run")),
    };
    let none = || Refusal::new(StatusCode::NOT_FOUND, "there is no such machine; api/v1/sources lists them");
    Ok(NoteSubject { source: source.ok_or_else(none)?.key.clone(), run: None })
}

/// Returns the note: 201.
pub(super) async fn add(
    State(app): State<Arc<App>>,
    Writer(by): Writer,
    asker: Asker,
    Json(new): Json<NewNote>,
) -> ApiResult {
    let written = WrittenRegistry::beside(app.alerts()?);
    let subject = subject(&app, &asker, &new).await?;
    let name = names(&app, &asker).remove(&subject.source).unwrap_or_default();
    Ok(json(StatusCode::CREATED, &written.add_note(&by, subject, &new, name).await?))
}

/// Returns the changed note; 409 if somebody else was faster.
pub(super) async fn change(
    State(app): State<Arc<App>>,
    Writer(by): Writer,
    asker: Asker,
    Path(id): Path<String>,
    Json(wanted): Json<NoteChange>,
) -> ApiResult {
    let (written, names) = (WrittenRegistry::beside(app.alerts()?), names(&app, &asker));
    Ok(json(StatusCode::OK, &written.change_note(&by, &id, &wanted, |key| names.get(key).cloned()).await?))
}

/// Removes a note.
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Writer(by): Writer,
    asker: Asker,
    Path(id): Path<String>,
) -> ApiResult {
    let (written, names) = (WrittenRegistry::beside(app.alerts()?), names(&app, &asker));
    written.remove_note(&by, &id, |key| names.get(key).cloned()).await?;
    Ok(json(StatusCode::OK, &ById { id }))
}

//! Hides names of people from the viewers and share links of teams that want that, in the one place that all answers of
//! the API pass: JSON answers are rewritten by [`stream::names`]. Answers of other forms (the stream, recordings,
//! exports and the document about a run) use the same functions where they are made.

use super::admit::Asker;
use super::api::Params;
use super::{App, Refusal};
use ::api::Operation;
use ::api::need::Need;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode, header};
use axum::middleware::Next;
use axum::response::IntoResponse;
use serde_json::{Map, Value};
use shared::note::SavedNote;
use shared::run::Run;
use std::collections::HashMap;
use std::sync::Arc;
use stream::names::{HIDDEN, hide};

/// Maximum size of an answer whose names are hidden, bytes: it is held as a whole.
const MAX_ANSWER_BYTES: usize = 32 << 20;

/// Operations whose answers are samples or facts of machines, and may be too long to be held. Labels of machines are
/// words of admins.
const WITHOUT_PEOPLE: [Operation; 9] = [
    Operation::GetOpenApi,
    Operation::ListMetrics,
    Operation::ListSources,
    Operation::GetFleet,
    Operation::ListSeries,
    Operation::QuerySamples,
    Operation::ExportSamples,
    Operation::GetNow,
    Operation::ListChanges,
];

/// The machines and teams in whose data a caller sees no names.
pub(super) struct HiddenNames {
    /// By name and by id: whether names are hidden there.
    places: HashMap<String, bool>,
}

impl HiddenNames {
    /// The hidden names of a caller; None: the caller sees all names.
    pub fn from_asker(app: &App, asker: &Asker) -> Option<HiddenNames> {
        if !asker.scope.hides_names() {
            return None;
        }
        let mut places = HashMap::new();
        let mut add = |name: &str, id: &str| {
            let hidden = asker.scope.hides_names_of(id);
            // Two machines may have one name.
            *places.entry(name.to_string()).or_default() |= hidden;
            *places.entry(id.to_string()).or_default() |= hidden;
        };
        asker.reader(app).sources().iter().for_each(|source| add(&source.name, &source.key));
        asker.who.iter().flat_map(|who| &who.teams).for_each(|team| add(&team.name, &team.id));
        Some(HiddenNames { places })
    }

    /// Whether the names of a machine are hidden. Those of an unknown machine are.
    pub fn hides(&self, machine: &str) -> bool {
        self.places.get(machine).copied().unwrap_or(true)
    }

    /// Whether the user of a run is hidden: on one of its machines.
    pub fn hides_run(&self, run: &Run) -> bool {
        run.processes.is_empty() || run.processes.iter().any(|process| self.hides(&process.source))
    }

    /// A note as the caller sees it.
    pub fn note(&self, note: SavedNote) -> SavedNote {
        let by = if self.hides(&note.source) { HIDDEN.into() } else { note.by };
        SavedNote { by, ..note }
    }

    /// Whether names in an object of an answer are hidden, by its machine or team; None: it names none.
    fn judge(&self, fields: &Map<String, Value>) -> Option<bool> {
        let text = |value: &Value| value.as_str().map(|text| self.hides(text));
        let hosts = fields.get("hosts").and_then(Value::as_array);
        if let Some(hosts) = hosts.filter(|hosts| !hosts.is_empty()) {
            return Some(hosts.iter().filter_map(text).any(|hidden| hidden));
        }
        let labels = fields.get("labels").and_then(|labels| labels.get("source"));
        let own = [fields.get("source"), labels, fields.get("team")].into_iter().flatten().find_map(text);
        // A finding is about several machines.
        let places = fields.get("subject").and_then(Value::as_array).filter(|places| !places.is_empty());
        own.or_else(|| Some(places?.iter().filter_map(|place| text(place.get("source")?)).any(|hidden| hidden)))
    }
}

/// Hides the names in the answer of an operation. The query names the machine or team of answers that do not.
pub(super) async fn hidden(
    State((app, operation)): State<(Arc<App>, Operation)>,
    request: Request,
    next: Next,
) -> Response<Body> {
    let names = request.extensions().get::<Asker>().and_then(|asker| HiddenNames::from_asker(&app, asker));
    // The data of an account about itself has its own name.
    let is_own = operation.row().need == Need::Own;
    let Some(names) = names.filter(|_| !is_own && !WITHOUT_PEOPLE.contains(&operation)) else {
        return next.run(request).await;
    };
    let asked = request.extensions().get::<Params>();
    let named = |name| asked.into_iter().flat_map(move |asked| asked.each(name));
    let places: Vec<&str> = named("source").chain(named("team")).collect();
    let outside = places.is_empty() || places.iter().any(|place| names.hides(place));
    let answer = next.run(request).await;
    let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    match kind.is_some_and(|kind| kind.starts_with("application/json")) {
        true => without_names(names, outside, answer).await.unwrap_or_else(Refusal::into_response),
        false => answer,
    }
}

async fn without_names(names: HiddenNames, outside: bool, answer: Response<Body>) -> Result<Response<Body>, Refusal> {
    let (mut head, body) = answer.into_parts();
    let bytes = axum::body::to_bytes(body, MAX_ANSWER_BYTES).await.map_err(|_| {
        let sentence = "the answer is too long while names are hidden; ask for less, such as one machine";
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, sentence)
    })?;
    // The answer to HEAD has no body.
    if bytes.is_empty() {
        return Ok(Response::from_parts(head, Body::empty()));
    }
    // An answer may be long, and the other tasks of this thread would wait for it.
    let rewritten = tokio::task::spawn_blocking(move || {
        let mut value = serde_json::from_slice::<Value>(&bytes).ok()?;
        hide(&mut value, outside, &|fields| names.judge(fields));
        Some(value.to_string())
    });
    let text = rewritten.await.ok().flatten().ok_or_else(|| {
        let sentence = "the answer could not be read to hide names; please report this bug";
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, sentence)
    })?;
    head.headers.remove(header::CONTENT_LENGTH);
    Ok(Response::from_parts(head, Body::from(text)))
}

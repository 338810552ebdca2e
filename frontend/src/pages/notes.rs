//! Notes of people: a poll of those about the shown machine, the dialog that writes one, and their list.

use crate::access::Access;
use crate::fetch::Json;
use crate::pages::poll::{PollAnswer, poll};
use crate::pages::team::form::{FieldInput, Form, FormDialog, Typed};
use crate::state::{NoteDraft, Page};
use crate::store::fleet::words::count;
use crate::widgets::clock::clock;
use crate::widgets::icons::Triangle;
use crate::widgets::parts::{Each, If, flag, text};
use charts::axis;
use leptos::prelude::*;
use shared::note::{Notes, SavedNote};
use wasm_bindgen::JsValue;

/// Seconds between two polls.
const REFRESH_SECONDS: u32 = 5;

/// Polls the notes about the shown machine.
pub fn follow(page: Page, access: Access) {
    let path = move || {
        page.alert_changes.track();
        let shown = page.view.with(|view| view.share.is_none() && !page.over.get());
        let served = shown && page.is_host() && !page.is_recorded();
        let name = page.machine();
        let encoded = String::from(js_sys::encode_uri_component(&name));
        (served && !name.is_empty()).then(|| format!("api/v1/notes?source={encoded}"))
    };
    poll(page, access, REFRESH_SECONDS, path, move |polled| {
        // Without permission to read notes, there are none.
        if let PollAnswer::Told(body) = polled {
            page.set_notes(body.read::<Notes>().unwrap_or_default().notes);
        }
    });
}

/// The form for a note: a new one, or a new text of a known one.
fn form_of(draft: &NoteDraft) -> Form {
    let moment = |t: i64| axis::moment(t + crate::browser::offset(t));
    if let Some(note) = &draft.known {
        let fields = vec![("text", "Note", FieldInput::Lines(note.text.clone()))];
        let version = note.version;
        return Form::ask("note", "Edit the note".into(), "", "PUT", format!("api/v1/notes/{}", note.id))
            .with("Save note", fields)
            .writing(move |typed| {
                Ok(vec![("text", typed.value_of("text").into()), ("version", (version as f64).into())])
            });
    }
    let when = match draft.end {
        Some(end) => format!("{} to {}", moment(draft.t), moment(end)),
        None => moment(draft.t),
    };
    let about = draft.run.as_ref().map_or_else(|| draft.source.clone(), |_| "this run".into());
    let words = format!("{when}, about {about}. Everybody who sees it reads the note, with your name.");
    let draft = draft.clone();
    Form::ask("note", "Write a note".into(), &words, "POST", "api/v1/notes".into())
        .with("Save note", vec![("text", "Note", FieldInput::Lines(String::new()))])
        .writing(move |typed| Ok(written(typed, &draft)))
}

/// The body of a new note.
fn written(typed: &Typed, draft: &NoteDraft) -> Vec<(&'static str, JsValue)> {
    let seconds = |t: i64| JsValue::from(t as f64 / 1_000.0);
    let mut body = vec![("text", typed.value_of("text").into()), ("t", seconds(draft.t))];
    body.extend(draft.end.map(|end| ("end", seconds(end))));
    match &draft.run {
        Some(run) => body.push(("run", run.as_str().into())),
        None => body.push(("source", draft.source.as_str().into())),
    }
    body
}

/// The dialog: it is open while there is a draft.
pub fn dialog((): ()) -> AnyView {
    let page = expect_context::<Page>();
    let form = RwSignal::new(None::<Form>);
    Effect::new(move || {
        if let Some(draft) = page.note.get() {
            form.set(Some(form_of(&draft)));
        }
    });
    Effect::new(move || {
        if form.with(Option::is_none) {
            page.note.set(None);
        }
    });
    // The lists are read again at once.
    let done = Callback::new(move |_: String| page.alert_changes.update(|count| *count += 1));
    view! { <FormDialog id="note-dialog" form done/> }.into_any()
}

/// The question before a note is removed.
fn removal(note: &SavedNote) -> Form {
    Form::ask("remove-note", "Remove this note?".into(), note.title(), "DELETE", format!("api/v1/notes/{}", note.id))
        .with("Remove note", Vec::new())
}

/// Notes as a list; a click on the time of one calls `go` with it.
#[component]
pub fn NoteList(
    /// The notes, in order of time.
    #[prop(into)]
    notes: Signal<Vec<SavedNote>>,
    /// Shows an instant, ms since the epoch.
    go: Callback<i64>,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let form = RwSignal::new(None::<Form>);
    let keys = Signal::derive(move || {
        notes.with(|notes| notes.iter().rev().map(|note| format!("{} {}", note.id, note.version)).collect::<Vec<_>>())
    });
    let row = Callback::new(move |key: String| {
        let id = key.split(' ').next().unwrap_or_default();
        let Some(note) = notes.with_untracked(|notes| notes.iter().find(|note| note.id == id).cloned()) else {
            return ().into_any();
        };
        let (t, own) = (note.t.ms(), StoredValue::new(note.clone()));
        let edit = move |_| own.with_value(|note| page.note.set(Some(NoteDraft::from_note(note))));
        let remove = move |_| own.with_value(|note| form.set(Some(removal(note))));
        view! {
            <li data-note=note.id.clone()>
                <button class="plain" on:click=move |_| go.run(t)>{clock(t / 1_000)}</button>
                <span class="text">{note.text.clone()}</span>
                <span class="u">{note.by.clone()}</span>
                {note.own.then(|| view! {
                    <span class="acts">
                        <button class="btn" data-do="edit-note" on:click=edit>"Edit…"</button>
                        <button class="btn" data-do="remove-note" on:click=remove>"Remove…"</button>
                    </span>
                })}
            </li>
        }
        .into_any()
    });
    let done = Callback::new(move |_: String| page.alert_changes.update(|count| *count += 1));
    view! {
        <ul class="notes-list"><Each keys row/></ul>
        <FormDialog id="note-removal" form done/>
    }
}

/// The notes about the shown machine, in a section that folds; nothing while there are none.
#[component]
pub fn MachineNotes() -> impl IntoView {
    let page = expect_context::<Page>();
    let any = flag(move || page.notes.with(|notes| !notes.is_empty()));
    let open = Memo::new(move |_| page.is_open(NOTES, false));
    let details = NodeRef::<leptos::html::Details>::new();
    let toggled = move |_| {
        let now = details.get_untracked().is_some_and(|details| details.open());
        if now != open.get_untracked() {
            page.fold(NOTES, false, now);
        }
    };
    let gist = text(move || page.notes.with(|all| all.last().map_or(String::new(), |note| note.title().to_string())));
    let go = Callback::new(move |t: i64| page.go(crate::range::Asked::At(t)));
    view! {
        <If when=any>
            <details node_ref=details class="fold notes-fold" open=move || open.get() data-section=NOTES on:toggle=toggled>
                <summary>
                    <Triangle/>
                    <span class="name">"Notes"</span>
                    <span class="n">{move || page.notes.with(Vec::len)}</span>
                    <span class="gist">{gist}</span>
                </summary>
                <NoteList notes=page.notes go/>
            </details>
        </If>
    }
}

/// Id of the section of notes.
const NOTES: &str = "notes";

/// The notes about a run, polled as long as the calling component exists.
pub fn of_run(page: Page, access: Access, id: &str) -> RwSignal<Vec<SavedNote>> {
    let notes = RwSignal::new(Vec::new());
    let path = format!("api/v1/notes?run={}", String::from(js_sys::encode_uri_component(id)));
    poll(
        page,
        access,
        REFRESH_SECONDS,
        move || Some(path.clone()),
        move |polled| {
            if let PollAnswer::Told(body) = polled {
                let new = read(body);
                if notes.with_untracked(|old| *old != new) {
                    notes.set(new);
                }
            }
        },
    );
    notes
}

fn read(body: &Json) -> Vec<SavedNote> {
    body.read::<Notes>().unwrap_or_default().notes
}

/// The notes about a run.
#[component]
pub fn RunNotes(
    /// Its notes.
    notes: RwSignal<Vec<SavedNote>>,
    /// The instant of its charts.
    at: RwSignal<Option<i64>>,
) -> impl IntoView {
    let heading = text(move || count(notes.with(Vec::len), "note", "notes"));
    view! {
        <section class="panel run-notes" aria-label="Notes">
            <header><h2>"Notes"</h2><span class="u">{heading}</span></header>
            <NoteList notes go=Callback::new(move |t| at.set(Some(t)))/>
        </section>
    }
}

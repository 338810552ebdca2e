//! Changes the names of a run and deletes it, as far as its viewer may.

use crate::address::Route;
use crate::pages::team::form::{FieldInput, Form, FormDialog, Typed};
use crate::state::Page;
use crate::widgets::parts::{If, flag};
use leptos::prelude::*;
use viewer::runs::Whole;
use viewer::runs::words::{read_tags, written_tags};
use wasm_bindgen::JsValue;

/// Name of the form that deletes a run.
const DELETE: &str = "delete-run";

/// The form with the names of a run.
fn edit(path: String, whole: &Whole) -> Form {
    let text = |value: &str| FieldInput::Text(value.into());
    let run = &whole.run;
    let fields = vec![
        ("name", "Name", text(&whole.given_name)),
        ("group", "Group", text(&run.group)),
        ("job_type", "Type, such as train or eval", text(&run.job_type)),
        ("tags", "Tags, one name=value a line", FieldInput::Lines(written_tags(&run.tags))),
        ("notes", "Notes", FieldInput::Lines(whole.notes.clone())),
    ];
    let version = whole.version;
    let words = "The job itself keeps its own names. The audit log of a hub records the change.";
    Form::ask("edit-run", format!("Edit {}", run.name), words, "PATCH", path)
        .with("Save changes", fields)
        .writing(move |typed| changed(typed, version))
}

/// The body of the change.
fn changed(typed: &Typed, version: u64) -> Result<Vec<(&'static str, JsValue)>, String> {
    let tags = read_tags(typed.raw("tags"))?;
    let tags = crate::fetch::Json::object(tags.iter().map(|(name, value)| (name.as_str(), value.as_str().into())));
    let texts = ["name", "group", "job_type", "notes"].map(|name| (name, JsValue::from(typed.value_of(name))));
    Ok(texts.into_iter().chain([("tags", tags), ("version", (version as f64).into())]).collect())
}

/// The question before a run is deleted.
fn delete(path: String, whole: &Whole) -> Form {
    let words = "The run leaves all lists, reports and comparisons for good. Samples of its machines stay for their \
        retention.";
    Form::ask(DELETE, format!("Delete {}?", whole.run.name), words, "DELETE", path).with("Delete run", Vec::new())
}

/// The buttons that change and delete a run; `again` loads it again.
#[component]
pub fn EditRun(
    /// The run.
    whole: RwSignal<Option<Whole>>,
    /// Called after a change.
    again: Callback<()>,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let form = RwSignal::new(None::<Form>);
    let may = move |of: fn(&Whole) -> bool| flag(move || whole.with(|whole| whole.as_ref().is_some_and(of)));
    let open = move |made: fn(String, &Whole) -> Form| {
        let made = whole.with_untracked(|whole| {
            let whole = whole.as_ref()?;
            let id = String::from(js_sys::encode_uri_component(&whole.run.id));
            Some(made(format!("api/v1/runs/{id}"), whole))
        });
        form.set(made);
    };
    let done = move |_: String| match form.with_untracked(|form| form.as_ref().is_some_and(|form| form.name == DELETE))
    {
        true => page.open(&page.address_of(Some(Route::Runs), &[])),
        false => again.run(()),
    };
    view! {
        <If when=may(|whole| whole.may.change)>
            <button class="btn" data-do="edit-run" on:click=move |_| open(edit)>"Edit…"</button>
        </If>
        <If when=may(|whole| whole.may.delete && whole.run.ended.is_some())>
            <button class="btn" data-do="delete-run" on:click=move |_| open(delete)>"Delete…"</button>
        </If>
        <FormDialog id="run-dialog" form done=Callback::new(done)/>
    }
}

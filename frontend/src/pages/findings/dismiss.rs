//! The form that marks a finding as wrong, with a reason, and reverts it. A marked finding stays in the list and never
//! leads a page.

use super::words;
use crate::access::Access;
use crate::fetch::{self, FetchAnswer, Json};
use crate::state::Page;
use crate::widgets::parts::{If, flag, text};
use leptos::prelude::*;
use shared::finding::{Dismissed, DismissedFinding, Finding, MAX_REASON};
use shared::session::Session;
use wasm_bindgen::JsValue;

/// The mark in words: `ada said at 14:03 that this is wrong: it was the evaluation.`
pub fn describe_mark(of: &Dismissed) -> String {
    // A share link does not say by whom and why.
    if of.by.is_empty() && of.why.is_empty() {
        return format!("Marked as wrong at {}.", words::clock(of.at, false));
    }
    format!("{} marked this as wrong at {}: {}", of.by, words::clock(of.at, false), of.why)
}

/// Marks a finding as wrong with a reason, or reverts the mark with None; `problem` gets the server's error.
fn send(page: Page, id: String, why: Option<String>, problem: RwSignal<String>) {
    let why = why.map_or(JsValue::NULL, |why| why.as_str().into());
    let body = Json::object([("id", id.as_str().into()), ("why", why)]);
    fetch::ask("POST", "api/v1/findings/wrong", Some(body), move |answer: FetchAnswer| {
        let read = answer.read::<DismissedFinding>();
        // The page may have gone.
        let _ = problem.try_set(read.as_ref().err().cloned().unwrap_or_default());
        if let Ok(said) = read {
            let mut findings = page.findings.get_untracked();
            findings.all.iter_mut().filter(|one| one.id == id).for_each(|one| one.dismissed = said.dismissed.clone());
            page.set_findings(findings);
        }
    });
}

/// The last part of a finding: its mark as wrong, and the form for it.
#[component]
pub fn Dismissal(
    /// The finding.
    finding: Memo<Option<Finding>>,
) -> impl IntoView {
    let (page, access) = (expect_context::<Page>(), expect_context::<Access>());
    let (asks, why, problem) = (RwSignal::new(false), RwSignal::new(String::new()), RwSignal::new(String::new()));
    let id = Memo::new(move |_| finding.with(|one| one.as_ref().map(|one| one.id.clone()).unwrap_or_default()));
    // A reason typed for one finding is cleared when another is shown.
    Effect::new(move || {
        id.track();
        asks.set(false);
        why.set(String::new());
        problem.set(String::new());
    });
    let against = Memo::new(move |_| finding.with(|one| one.as_ref().and_then(|one| one.dismissed.clone())));
    let is_said = flag(move || against.with(Option::is_some));
    // Without accounts the server checks this itself. With them it asks for a member of a team that sees the machines.
    let may = move || {
        let may_write = access.session.with(|session| session.as_ref().is_none_or(Session::is_member_somewhere));
        may_write && !page.over.get() && !page.is_recorded()
    };
    let say = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        send(page, id.get_untracked(), Some(why.get_untracked()), problem);
        asks.set(false);
    };
    let back = move |_| send(page, id.get_untracked(), None, problem);
    view! {
        <If when=is_said>
            <p class="below" data-dismissed="true">
                {text(move || against.with(|one| one.as_ref().map(describe_mark).unwrap_or_default()))}" "
                <If when=flag(may)><button class="btn" data-do="take-back" on:click=back>"Undo"</button></If>
            </p>
        </If>
        <If when=flag(move || may() && !is_said.get() && !asks.get())>
            <p class="below"><button class="btn" data-do="is-wrong" on:click=move |_| asks.set(true)>"Mark as wrong…"</button></p>
        </If>
        <If when=flag(move || asks.get() && !is_said.get())>
            <form class="below" on:submit=say>
                <label>"What is wrong with it? "<input
                    class="tok"
                    name="why"
                    required=true
                    maxlength=MAX_REASON.to_string()
                    autocomplete="off"
                    prop:value=why
                    on:input=move |event| why.set(event_target_value(&event))
                /></label>
                " "<button class="btn primary" type="submit" data-do="say-wrong">"Mark as wrong"</button>
                " "<button class="btn" type="button" on:click=move |_| asks.set(false)>"Cancel"</button>
            </form>
        </If>
        <If when=flag(move || !problem.with(String::is_empty))>
            <p class="below" role="alert">{text(move || problem.get())}</p>
        </If>
    }
}

//! What must not be told for a while: it stops messages, never alerts.

use super::{read, words};
use crate::access::Access;
use crate::browser::now;
use crate::fetch::Json;
use crate::pages::team::asked::Polled;
use crate::pages::team::form::{Entry, Form, FormDialog, Typed};
use crate::pages::team::list::{clock, until};
use crate::state::Page;
use crate::widgets::parts::{Each, If, flag, text};
use leptos::ev;
use leptos::prelude::*;
use shared::alert::{Alert, Silence};
use std::collections::BTreeMap;
use viewer::alerts::{LENGTHS, ends, matches, of_silence, passed};
use wasm_bindgen::JsValue;

/// The names of labels in a form, with their words.
const FIELDS: [(&str, &str); 5] = [
    ("rule", "Rule; empty for all"),
    ("source", "Machine: a name, or a pattern such as node-*"),
    ("run", "Run"),
    ("severity", "Severity: info, warning or critical"),
    ("gpu", "GPU"),
];

/// What is sent for a silence.
fn sent(matches: &BTreeMap<String, String>, length: &str, comment: &str, at: i64) -> Vec<(&'static str, JsValue)> {
    let fit = Json::object(matches.iter().map(|(name, value)| (name.as_str(), value.as_str().into())));
    let to = ends(length, at, words::offset_seconds(at));
    vec![("match", fit), ("from", (at as f64).into()), ("to", (to as f64).into()), ("comment", comment.into())]
}

fn lengths() -> Entry {
    Entry::Choice(LENGTHS.to_vec())
}

/// The form that silences an alert: one more key press makes it an hour.
pub fn of_alert(access: Access, alert: &Alert, at: i64) -> Form {
    let found = matches(alert);
    let (rule, rest) = of_silence(&Silence { matches: found.clone(), ..Silence::default() });
    let words = "Nobody is told of it meanwhile; it stays in the list. What is silenced ends by itself.";
    let path = words::of_team(access, "api/v1/silences");
    Form::ask("silence", format!("Silence {rule} {rest}?").replace(" ?", "?"), words, "POST", path)
        .with("Silence", vec![("length", "How long", lengths()), ("comment", "Why", Entry::Text(String::new()))])
        .writing(move |typed: &Typed| Ok(sent(&found, &typed.of("length"), &typed.of("comment"), at)))
}

/// The form of a new silence; `of` is one that is made again.
fn new(access: Access, of: &Silence, at: i64) -> Form {
    let present = |name: &str| of.matches.get(name).cloned().unwrap_or_default();
    let fields = FIELDS.iter().map(|(name, words)| (*name, *words, Entry::Text(present(name))));
    let rest = [("length", "How long", lengths()), ("comment", "Why", Entry::Text(of.comment.clone()))];
    let words = "All that is filled in must fit; * stands for anything. It stops messages, never alerts.";
    Form::ask("silence", "Silence".into(), words, "POST", words::of_team(access, "api/v1/silences"))
        .with("Silence", fields.chain(rest).collect())
        .writing(move |typed: &Typed| {
            let filled = FIELDS.iter().map(|(name, _)| (name.to_string(), typed.of(name)));
            let matches: BTreeMap<String, String> = filled.filter(|(_, value)| !value.is_empty()).collect();
            if matches.is_empty() {
                return Err("Fill in what is silenced: a rule, a machine, a run or a severity.".into());
            }
            Ok(sent(&matches, &typed.of("length"), &typed.of("comment"), at))
        })
}

/// The page's part of silences, and the card of it beside the deliveries.
#[component]
pub fn Silences() -> impl IntoView {
    let page = expect_context::<Page>();
    let access = expect_context::<Access>();
    let form = RwSignal::new(None::<Form>);
    let asked = Polled::follow(access, move || Some(words::of_team(access, "api/v1/silences")));
    Effect::new(move || {
        page.alert_changes.track();
        asked.ask();
    });
    let all = Memo::new(move |_| asked.read(read::silences));
    let keys = Signal::derive(move || all.with(|all| all.iter().map(|one| one.id.clone()).collect::<Vec<_>>()));
    let row = Callback::new(move |id: String| view! { <Row id all asked form/> }.into_any());
    let add = move || form.set(Some(new(access, &Silence::default(), now() / 1_000)));
    let may = flag(move || words::may_write(access));
    let pressed = window_event_listener(ev::keydown, move |event| {
        if event.key() == "s" && super::rules::is_free(page, form.with_untracked(Option::is_some), &event) {
            event.prevent_default();
            add();
        }
    });
    on_cleanup(move || pressed.remove());
    view! {
        <section class="panel flush" aria-label="Silences">
            <header>
                <h2>"Silences"</h2>
                <span class="u">"they stop messages, never alerts"</span>
                <span class="end"><If when=may><button class="btn" data-do="new-silence" on:click=move |_| add()>"Silence…"</button></If></span>
            </header>
            <p class="wrong" role="alert">{asked.wrong}</p>
            <div class="scroll" tabindex="0" role="region" aria-label="Table of silences">
                <table class="rows list" id="silences">
                    <thead><tr><th scope="col">"what"</th><th scope="col">"why"</th><th scope="col">"by"</th><th scope="col">"until"</th><th scope="col" class="right">"held back"</th><td></td></tr></thead>
                    <tbody><Each keys row/></tbody>
                </table>
            </div>
            <If when=flag(move || asked.known() && all.with(Vec::is_empty))>
                <p class="below pad">"Nothing is silenced."</p>
            </If>
        </section>
        <FormDialog form done=Callback::new(move |_| page.alert_changes.update(|n| *n += 1))/>
    }
}

#[component]
fn Row(id: String, all: Memo<Vec<Silence>>, asked: Polled, form: RwSignal<Option<Form>>) -> impl IntoView {
    let page = expect_context::<Page>();
    let access = expect_context::<Access>();
    let own = StoredValue::new(id.clone());
    let one = Memo::new(move |_| {
        all.with(|all| all.iter().find(|one| own.with_value(|id| one.id == *id)).cloned()).unwrap_or_default()
    });
    let over = flag(move || {
        page.beat.track();
        one.with(|one| one.to * 1_000 <= now())
    });
    let share = text(move || {
        page.beat.track();
        format!("{}%", (one.with(|one| passed(one, now() / 1_000)) * 100.0) as i64)
    });
    let when = text(move || {
        page.beat.track();
        one.with(|one| match over.get() {
            true => format!("over, {}", clock(one.to)),
            false => format!("{}, {}", words::clock(one.to * 1_000), until(one.to)),
        })
    });
    let end = move |_| asked.change("DELETE", words::of_id("api/v1/silences", &own.get_value()), Vec::new());
    let again = move |_| form.set(Some(new(access, &one.get_untracked(), now() / 1_000)));
    view! {
        <tr data-silence=id data-over=text(move || over.get().to_string())>
            <th scope="row"><b class="source-name">{text(move || one.with(|one| of_silence(one).0))}</b>" "<span class="u">{text(move || one.with(|one| of_silence(one).1))}</span></th>
            <td>{text(move || one.with(|one| one.comment.clone()))}</td>
            <td>{text(move || one.with(|one| one.by.clone()))}</td>
            <td><If when=flag(move || !over.get())><span class="gone" aria-hidden="true"><i style:width=share></i></span></If>{when}</td>
            <td class="right">{text(move || one.with(|one| one.held.to_string()))}</td>
            <td class="deeds">
                <If when=flag(move || words::may_write(access))>
                    <If when=over><button data-do="again" on:click=again>"Again…"</button></If>
                    <If when=flag(move || !over.get())><button data-do="end-silence" on:click=end>"End now"</button></If>
                </If>
            </td>
        </tr>
    }
}

//! Silences. A silence stops notifications, never alerts.

use super::words;
use crate::access::Access;
use crate::browser::{has_twelve_hours, now};
use crate::fetch::Json;
use crate::pages::team::asked::Polled;
use crate::pages::team::form::{FieldInput, Form, FormDialog, Typed};
use crate::pages::team::frame::Card;
use crate::state::Page;
use crate::widgets::list::List;
use crate::widgets::list::line::{Cell, Done, Line};
use crate::widgets::parts::{If, flag, text};
use leptos::ev;
use leptos::prelude::*;
use shared::alert::{self, Alert, Silence};
use std::collections::BTreeMap;
use viewer::alerts::{LENGTHS, ends, matches, of_silence};
use wasm_bindgen::JsValue;

/// The names of labels in a form, with their words.
const FIELDS: [(&str, &str); 11] = [
    ("rule", "Rule; empty for all"),
    ("source", "Machine: a name, or a pattern such as node-*"),
    ("run", "Run"),
    ("severity", "Severity: info, warning or critical"),
    ("gpu", "GPU"),
    ("tag", "Metric"),
    ("finding", "Kind of finding"),
    ("user", "User"),
    ("xid", "XID"),
    ("hub", "Hub"),
    ("title", "Title of alerts from code"),
];

/// The request body for a silence.
fn sent(matches: &BTreeMap<String, String>, length: &str, comment: &str, at: i64) -> Vec<(&'static str, JsValue)> {
    let fit = Json::object(matches.iter().map(|(name, value)| (name.as_str(), value.as_str().into())));
    let to = ends(length, at, &words::offset_seconds);
    vec![("match", fit), ("from", (at as f64).into()), ("to", (to as f64).into()), ("comment", comment.into())]
}

fn lengths() -> FieldInput {
    let until = if has_twelve_hours() { "until tomorrow, 8:00 AM" } else { "until tomorrow, 08:00" };
    let choices = LENGTHS.iter().map(|(value, words)| (*value, if *value == "tomorrow" { until } else { *words }));
    FieldInput::Choice(choices.collect())
}

/// The form that silences an alert: one more key press makes it an hour.
pub fn of_alert(access: Access, alert: &Alert, at: i64) -> Form {
    let found = matches(alert);
    let (rule, rest) = of_silence(&Silence { matches: found.clone(), ..Silence::default() });
    let words = "Matching alerts send no notifications; they stay in the list. A silence ends by itself.";
    let path = words::of_team(access, "api/v1/silences");
    Form::ask("silence", format!("Silence {rule} {rest}?").replace(" ?", "?"), words, "POST", path)
        .with(
            "Silence",
            vec![("length", "Duration", lengths()), ("comment", "Reason", FieldInput::Text(String::new()))],
        )
        .writing(move |typed: &Typed| Ok(sent(&found, &typed.value_of("length"), &typed.value_of("comment"), at)))
}

/// The form of a new silence; `of` is one that is made again.
fn new(access: Access, of: &Silence, at: i64) -> Form {
    let present = |name: &str| of.matches.get(name).cloned().unwrap_or_default();
    let fields = FIELDS.iter().map(|(name, words)| (*name, *words, FieldInput::Text(present(name))));
    let rest = [("length", "Duration", lengths()), ("comment", "Reason", FieldInput::Text(of.comment.clone()))];
    // A silence that was made elsewhere may have labels without a field. Without them it would match more.
    let mut others = of.matches.clone();
    others.retain(|label, _| !FIELDS.iter().any(|(name, _)| *name == label.as_str()));
    let kept: String = others.iter().map(|(label, of)| format!(" {label} must be {of}.")).collect();
    let words = "All filled-in fields must match; * stands for any text. A silence stops notifications, not alerts.";
    let words = format!("{words}{kept}");
    Form::ask("silence", "Silence".into(), &words, "POST", words::of_team(access, "api/v1/silences"))
        .with("Silence", fields.chain(rest).collect())
        .writing(move |typed: &Typed| {
            let filled = FIELDS.iter().map(|(name, _)| (name.to_string(), typed.value_of(name)));
            let mut matches: BTreeMap<String, String> = filled.filter(|(_, value)| !value.is_empty()).collect();
            matches.extend(others.clone());
            if matches.is_empty() {
                return Err("Fill in at least one field.".into());
            }
            Ok(sent(&matches, &typed.value_of("length"), &typed.value_of("comment"), at))
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
    let all = Memo::new(move |_| asked.read(|told: &alert::Silences| told.silences.clone()));
    let may = flag(move || words::may_write(access));
    let rows =
        Signal::derive(move || all.with(|all| all.iter().map(|one| line(one, may.get())).collect::<Vec<Line>>()));
    let add = move || form.set(Some(new(access, &Silence::default(), now() / 1_000)));
    let act = move |(line, deed, _): Done| match deed {
        "again" => {
            let of = all.with_untracked(|all| all.iter().find(|one| one.id == line.id).cloned()).unwrap_or_default();
            form.set(Some(new(access, &of, now() / 1_000)));
        }
        _ => asked.change("DELETE", words::of_id("api/v1/silences", &line.id), Vec::new()),
    };
    let pressed = window_event_listener(ev::keydown, move |event| {
        if event.key() == "s"
            && may.get_untracked()
            && super::deeds::is_free(page, form.with_untracked(Option::is_some), &event)
        {
            event.prevent_default();
            add();
        }
    });
    on_cleanup(move || pressed.remove());
    let button = move || {
        view! { <If when=may><button class="btn" data-do="new-silence" title="Create a silence (s)" on:click=move |_| add()>"Silence…"</button></If> }
    };
    view! {
        <Card title="Silences" note=text(|| "a silence stops notifications, not alerts") wrong=asked.wrong end=button>
            <List
                id="silences"
                label="Table of silences"
                heads=&["match", "reason", "by", "until", ">ends", ">silenced"]
                rows
                known=flag(move || asked.known())
                empty="There are no silences."
                act=Callback::new(act)
            />
        </Card>
        <FormDialog form done=Callback::new(move |_| page.alert_changes.update(|n| *n += 1))/>
    }
}

/// A silence as a row: an active one can be ended, an expired one repeated.
fn line(silence: &Silence, may: bool) -> Line {
    let (rule, rest) = of_silence(silence);
    let over = silence.to * 1_000 <= now();
    let cells = vec![
        Cell::Name(rule.clone(), rest.clone()),
        Cell::Text(silence.comment.clone()),
        Cell::Text(silence.by.clone()),
        Cell::Text(words::clock(silence.to * 1_000)),
        Cell::Ends(Some(silence.to)),
        Cell::Number(silence.held.to_string()),
    ];
    let deed = if over { ("again", "Renew…") } else { ("end", "End now") };
    let deeds = if may { vec![deed] } else { Vec::new() };
    Line { id: silence.id.clone(), name: format!("{rule} {rest}"), cells, deeds }
}

//! The rules: condition, labels, channels, and time of the last alert. Above them is the draft.

use super::draft::Written;
use super::{deeds, words};
use crate::access::Access;
use crate::pages::team::asked::Polled;
use crate::pages::team::form::{Form, FormDialog};
use crate::state::Page;
use crate::widgets::parts::{Each, If, flag, text};
use leptos::ev;
use leptos::prelude::*;
use shared::alert::{self, AlertSeverity, Origin, Rule, RuleRow};
use viewer::alerts::{AlertStand, shape};
use viewer::draft::Draft;

/// The label matchers of a rule, in words.
fn words_of(rule: &Rule) -> String {
    if rule.on.is_empty() {
        return "everything".into();
    }
    rule.on.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}

/// The channels of a rule, in words.
fn tells(rule: &Rule) -> String {
    match rule.to.as_deref() {
        None if rule.severity == AlertSeverity::Info => "in this page".into(),
        None => "in this page, default channels".into(),
        Some([]) => "in this page".into(),
        Some(all) => all.join(", "),
    }
}

/// The class of the shape of a rule, and the shape.
fn sign(row: &RuleRow) -> (&'static str, &'static str) {
    match (row.rule.enabled, row.firing) {
        (false, _) => ("shape is-unknown", "◌"),
        (true, 0) => ("shape is-ok", "●"),
        (true, _) => shape(row.rule.severity, AlertStand::Firing),
    }
}

/// The part of the page.
#[component]
pub fn Rules() -> impl IntoView {
    let page = expect_context::<Page>();
    let access = expect_context::<Access>();
    let form = RwSignal::new(None::<Form>);
    let asked = Polled::follow(access, move || Some(words::of_team(access, "api/v1/rules")));
    Effect::new(move || {
        page.alert_changes.track();
        asked.ask();
    });
    let rows = Memo::new(move |_| asked.read(|told: &alert::Rules| told.rules.clone()));
    let keys = Signal::derive(move || rows.with(|rows| rows.iter().map(|row| row.rule.id.clone()).collect::<Vec<_>>()));
    let writing = flag(move || page.view.with(|view| !view.alert.is_empty()));
    let row = Callback::new(move |id: String| view! { <Row id rows asked form/> }.into_any());
    let gist = text(move || {
        rows.with(|rows| {
            let of = |origin: Origin| rows.iter().filter(|row| row.rule.origin == origin).count();
            let file =
                if of(Origin::File) > 0 { format!(", {} from the file", of(Origin::File)) } else { String::new() };
            match rows.len() {
                0 => String::new(),
                n => format!("{n}, of them {} built in{file}", of(Origin::BuiltIn)),
            }
        })
    });
    let new = move || page.step(|view| view.alert = deeds::new_rule(page));
    let may = flag(move || words::may_write(access));
    let pressed = window_event_listener(ev::keydown, move |event| {
        if event.key() == "n"
            && may.get_untracked()
            && deeds::is_free(page, form.with_untracked(Option::is_some), &event)
        {
            event.prevent_default();
            new();
        }
    });
    on_cleanup(move || pressed.remove());
    view! {
        <If when=writing><Written/></If>
        <section class="panel flush rule-list" aria-label="Rules">
            <header>
                <h2>"Rules"</h2>
                <span class="u">{gist}</span>
                <span class="end"><If when=may><button class="btn" data-do="new-rule" title="Create a rule (n)" on:click=move |_| new()>"New rule…"</button></If></span>
            </header>
            <p class="wrong" role="alert">{asked.wrong}</p>
            <div class="scroll" tabindex="0" role="region" aria-label="Table of rules">
                <table class="rows list" id="rules">
                    <thead><tr><th scope="col">"rule"</th><th scope="col">"condition"</th><th scope="col">"scope"</th><th scope="col">"notifies"</th><th scope="col" class="right">"last fired"</th><td></td></tr></thead>
                    <tbody><Each keys row/></tbody>
                </table>
            </div>
            <If when=flag(move || asked.known() && rows.with(Vec::is_empty))>
                <p class="below pad">"There are no rules."</p>
            </If>
        </section>
        <FormDialog form done=Callback::new(move |_| page.alert_changes.update(|n| *n += 1))/>
    }
}

#[component]
fn Row(
    id: String,
    rows: Memo<Vec<RuleRow>>,
    asked: Polled<alert::Rules>,
    form: RwSignal<Option<Form>>,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let access = expect_context::<Access>();
    let own = StoredValue::new(id.clone());
    let row =
        Memo::new(move |_| rows.with(|rows| rows.iter().find(|row| own.with_value(|id| row.rule.id == *id)).cloned()));
    let of_row =
        move |read: fn(&RuleRow) -> String| text(move || row.with(|row| row.as_ref().map(read).unwrap_or_default()));
    let last = text(move || {
        page.beat.track();
        row.with(|row| match row {
            Some(row) if row.firing > 0 => format!("firing, {}", row.firing),
            Some(RuleRow { last: Some(last), .. }) => words::clock(last * 1_000),
            _ => "never".into(),
        })
    });
    let is = move |what: fn(&Rule) -> bool| {
        flag(move || words::may_write(access) && row.with(|row| row.as_ref().is_some_and(|row| what(&row.rule))))
    };
    let path = move || words::of_id("api/v1/rules", &own.get_value());
    let change = move |_| {
        let draft = row.with_untracked(|row| row.as_ref().map(|row| Draft::from_rule(&row.rule).write()));
        page.step(|view| view.alert = draft.unwrap_or_default());
        browser_to_top();
    };
    let switch = move |_| {
        if let Some(row) = row.get_untracked() {
            asked.change("PUT", path(), deeds::sent(&Rule { enabled: !row.rule.enabled, ..row.rule }));
        }
    };
    let remove = move |_| {
        let name = row.with_untracked(|row| row.as_ref().map(|row| row.rule.name.clone()).unwrap_or_default());
        let words = "Its past alerts stay in the history. Removing the rule cannot be undone.";
        form.set(Some(Form::ask("remove-rule", format!("Remove the rule {name}?"), words, "DELETE", path())));
    };
    view! {
        <tr
            data-rule=id
            data-state=of_row(|row| (if !row.rule.enabled { "off" } else if row.firing > 0 { "firing" } else { "quiet" }).into())
            data-severity=of_row(|row| row.rule.severity.as_str().into())
        >
            <th scope="row">
                <span class=of_row(|row| sign(row).0.into()) aria-hidden="true">{of_row(|row| sign(row).1.into())}</span>
                " "<b class="source-name">{of_row(|row| row.rule.name.clone())}</b>" "
                <span class="u">{of_row(|row| if row.rule.enabled { row.rule.severity.as_str().into() } else { "off".into() })}</span>
            </th>
            <td><span class="u">{of_row(|row| if row.words.is_empty() { row.rule.when.clone() } else { row.words.clone() })}</span>
                <If when=flag(move || row.with(|row| row.as_ref().is_some_and(|row| !row.trouble.is_empty())))>
                    <span class="trouble"><span class="shape is-warn" aria-hidden="true">"▲"</span>" "{of_row(|row| row.trouble.clone())}</span>
                </If>
            </td>
            <td>{of_row(|row| words_of(&row.rule))}</td>
            <td>{of_row(|row| tells(&row.rule))}</td>
            <td class="right">{last}</td>
            <td class="deeds">
                <If when=is(|rule| rule.origin == Origin::Made)><button data-do="edit-rule" on:click=change>"Edit"</button></If>
                <If when=is(|rule| rule.origin != Origin::File)>
                    <button data-do="switch-rule" on:click=switch>{of_row(|row| if row.rule.enabled { "Off".into() } else { "On".into() })}</button>
                </If>
                <If when=is(|rule| rule.origin == Origin::Made)><button data-do="remove-rule" on:click=remove>"Remove…"</button></If>
                <If when=flag(move || row.with(|row| row.as_ref().is_some_and(|row| row.rule.origin == Origin::File)))><span class="u">"from the file"</span></If>
            </td>
        </tr>
    }
}

/// Scrolls to the rule that is being written.
fn browser_to_top() {
    crate::browser::window().scroll_to_with_x_and_y(0.0, 0.0);
}

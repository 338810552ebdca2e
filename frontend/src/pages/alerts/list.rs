//! The alerts: those that are open, then those that are over, beside one of them.

use super::follow::poll;
use super::one::One;
use super::{deeds, read, silences, words};
use crate::access::Access;
use crate::address::Tab;
use crate::browser::{self, document, now};
use crate::pages::team::form::{Form, FormDialog};
use crate::state::Page;
use crate::widgets::parts::{Each, If, flag, text};
use leptos::ev::{self, KeyboardEvent};
use leptos::prelude::*;
use shared::alert::Alert;
use viewer::alerts::{AlertStand, Filter, shape, sorted};

/// Seconds between two questions.
const REFRESH_SECONDS: u32 = 5;
/// Most rows of each part of the list.
const MAX_LISTED: usize = 200;
/// At this width and above one alert stands beside the list, CSS pixels; the stylesheet has the same.
const WIDE_PX: f64 = 900.0;
/// How far back the list reaches: the value in the address, and its words.
const SPANS: [(&str, &str); 4] = [("", "12 h"), ("7d", "7 days"), ("30d", "30 days"), ("400d", "400 days")];
/// What the list may show alone: the value in the address, and its word.
const STATES: [(&str, &str); 6] = [
    ("", "All"),
    ("firing", "Firing"),
    ("silenced", "Silenced"),
    ("over", "Resolved"),
    ("warning", "Warning"),
    ("critical", "Critical"),
];

/// What the list shows.
#[derive(Clone, Copy)]
pub struct AlertList {
    /// All that the server said.
    pub all: RwSignal<Vec<Alert>>,
    /// The one that was asked for by its id: it is older than the list.
    older: RwSignal<Option<Alert>>,
    open: Memo<Vec<Alert>>,
    over: Memo<Vec<Alert>>,
    shown: Memo<Option<Alert>>,
    known: RwSignal<bool>,
}

impl AlertList {
    fn start(page: Page, access: Access) -> AlertList {
        let (all, known) = (RwSignal::new(Vec::<Alert>::new()), RwSignal::new(false));
        let older = RwSignal::new(None::<Alert>);
        let span = move || page.view.with(|view| if view.by.is_empty() { "12h".to_string() } else { view.by.clone() });
        let path = move || {
            let seconds = viewer::draft::seconds(&span()).unwrap_or(43_200);
            (!page.over.get()).then(|| format!("api/v1/alerts?from=-{seconds}s"))
        };
        poll(page, access, REFRESH_SECONDS, path, move |body| {
            let new = read::alerts(body);
            if all.with_untracked(|old| *old != new) {
                all.set(new);
            }
            known.set(true);
        });
        let filter = move || page.view.with(|view| Filter { state: view.state.clone(), find: view.find.clone() });
        let part = move |open: bool| {
            Memo::new(move |_| {
                all.with(|all| {
                    let parts = sorted(all, &filter());
                    let part = if open { parts.0 } else { parts.1 };
                    part.into_iter().take(MAX_LISTED).cloned().collect::<Vec<Alert>>()
                })
            })
        };
        let (open, over) = (part(true), part(false));
        let shown = Memo::new(move |_| {
            let chosen = page.view.with(|view| view.alert.clone());
            match chosen.is_empty() {
                false => {
                    let listed = all.with(|all| all.iter().find(|one| one.id == chosen).cloned());
                    listed.or_else(|| older.get().filter(|one| one.id == chosen))
                }
                true => open.with(|all| all.first().cloned()).or_else(|| over.with(|all| all.first().cloned())),
            }
        });
        AlertList { all, older, open, over, shown, known }
    }

    fn of<T>(self, id: &str, read: impl Fn(&Alert) -> T) -> Option<T> {
        self.all.with(|all| all.iter().find(|one| one.id == id).map(read))
    }
}

fn ids(all: &[Alert]) -> Vec<String> {
    all.iter().map(|one| one.id.clone()).collect()
}

/// The list.
#[component]
pub fn List() -> impl IntoView {
    let page = expect_context::<Page>();
    let access = expect_context::<Access>();
    let listed = AlertList::start(page, access);
    let (form, wrong) = (RwSignal::new(None::<Form>), RwSignal::new(String::new()));
    let keys = window_event_listener(ev::keydown, move |event| pressed(page, access, listed, (form, wrong), &event));
    on_cleanup(move || keys.remove());
    // An alert may be older than what is listed: it is asked for by its id.
    let one_path = move || {
        let id = page.view.with(|view| view.alert.clone());
        let missing = listed.known.get() && !id.is_empty() && listed.of(&id, |_| ()).is_none();
        missing.then(|| words::of_id("api/v1/alerts", &id))
    };
    poll(page, access, REFRESH_SECONDS, one_path, move |body| {
        if let Some(one) = read::alert(body) {
            listed.older.set(Some(one));
        }
    });
    let row = Callback::new(move |id: String| view! { <AlertRow id listed/> }.into_any());
    let choice = move |(value, word): (&'static str, &'static str)| {
        let pressed = text(move || page.view.with(|view| view.state == value).to_string());
        view! { <button data-choice=value aria-pressed=pressed on:click=move |_| page.change(|view| view.state = value.into())>{word}</button> }
    };
    let span = SPANS.map(|(value, words)| {
        view! { <option value=value selected=move || page.view.with(|view| view.by == value)>{words}</option> }
    });
    let empty = flag(move || {
        listed.known.get()
            && listed.open.with(Vec::is_empty)
            && page.view.with(|v| v.state.is_empty() && v.find.is_empty())
    });
    let none = flag(move || {
        listed.known.get()
            && listed.open.with(Vec::is_empty)
            && listed.over.with(Vec::is_empty)
            && page.view.with(|v| !v.state.is_empty() || !v.find.is_empty())
    });
    let gone = flag(move || {
        listed.known.get() && listed.shown.with(Option::is_none) && page.view.with(|view| !view.alert.is_empty())
    });
    let trouble = text(move || page.alerts.with(|told| told.trouble.join(" ")));
    view! {
        <p class="wrong" role="alert">{trouble}</p>
        <p class="wrong" role="alert">{wrong}</p>
        <div class="alert-filter">
            <span class="choice" role="group" aria-label="State of alerts">{STATES.map(choice).into_iter().collect_view()}</span>
            <input
                type="search"
                aria-label="Filter alerts: words, source:node-3, gpu:5"
                placeholder="words, source:node-3, gpu:5"
                autocomplete="off"
                spellcheck="false"
                prop:value=text(move || page.view.with(|view| view.find.clone()))
                on:input=move |event| page.change(|view| view.find = event_target_value(&event))
            />
            <label>"Back to " <select aria-label="Time range" on:change=move |event| page.change(|view| view.by = event_target_value(&event))>{span.into_iter().collect_view()}</select></label>
        </div>
        <div class="findings-body">
            <section class="panel flush findings-list" aria-label="All alerts">
                <If when=empty>
                    <p class="calm-line"><span class="shape is-ok" aria-hidden="true">"●"</span>" No alerts firing."</p>
                </If>
                <If when=none><p class="calm-line u">"No alert matches."</p></If>
                <If when=flag(move || !listed.known.get())><p class="calm-line u">"Loading alerts…"</p></If>
                <div id="open-alerts"><Each keys=Signal::derive(move || listed.open.with(|all| ids(all))) row/></div>
                <If when=flag(move || listed.over.with(|all| !all.is_empty()))><h3 class="below">"Resolved"</h3></If>
                <div id="over-alerts"><Each keys=Signal::derive(move || listed.over.with(|all| ids(all))) row/></div>
            </section>
            <If when=flag(move || listed.shown.with(Option::is_some))>
                <One alert=listed.shown form wrong/>
            </If>
            <If when=gone>
                <section class="panel finding-one"><p class="below">"This alert does not exist (any more). "<a href=page.address_of_alerts(Tab::Alerts, "")>"All alerts"</a></p></section>
            </If>
        </div>
        <FormDialog form done=Callback::new(move |_| page.alert_changes.update(|n| *n += 1))/>
    }
}

#[component]
fn AlertRow(id: String, listed: AlertList) -> impl IntoView {
    let page = expect_context::<Page>();
    let id = StoredValue::new(id);
    let of = move |read: fn(&Alert, i64) -> String| {
        text(move || {
            page.beat.track();
            id.with_value(|id| listed.of(id, |one| read(one, page.server_now()))).unwrap_or_default()
        })
    };
    let current = text(move || {
        listed.shown.with(|shown| shown.as_ref().is_some_and(|one| id.with_value(|id| *id == one.id))).to_string()
    });
    let press = move |event: ev::MouseEvent| {
        // With a key the browser opens it where it was asked to.
        if !(event.ctrl_key() || event.meta_key() || event.shift_key()) {
            event.prevent_default();
            page.step(|view| view.alert = id.get_value());
        }
    };
    let to = text(move || page.address_of_alerts(Tab::Alerts, &id.get_value()));
    view! {
        <a
            class="finding"
            href=to
            data-alert=id.get_value()
            data-rule=of(|one, _| one.rule.clone())
            data-state=of(|one, _| AlertStand::of(one).name().into())
            data-severity=of(|one, _| one.severity.word().into())
            data-over=of(|one, _| (AlertStand::of(one) == AlertStand::Resolved).to_string())
            aria-current=current
            on:click=press
        >
            <span class=of(|one, _| shape(one.severity, AlertStand::of(one)).0.into()) aria-hidden="true">{of(|one, _| shape(one.severity, AlertStand::of(one)).1.into())}</span>
            <span class="words">
                <span class="sentence"><b>{of(|one, _| one.sentence.clone())}</b></span>
                <span class="below">{of(words::below)}</span>
            </span>
        </a>
    }
}

/// Arrows and `j`, `k` walk in the list; `e` takes one on, `s` silences it, `n` writes a rule.
fn pressed(
    page: Page,
    access: Access,
    listed: AlertList,
    (form, wrong): (RwSignal<Option<Form>>, RwSignal<String>),
    event: &KeyboardEvent,
) {
    if !deeds::is_free(page, form.with_untracked(Option::is_some), event) {
        return;
    }
    let shown = || listed.shown.get_untracked();
    let wide = browser::viewport().0 > WIDE_PX;
    let by: isize = match event.key().to_ascii_lowercase().as_str() {
        "arrowdown" | "j" => 1,
        "arrowup" | "k" => -1,
        "escape" if !wide && page.view.with_untracked(|view| !view.alert.is_empty()) => {
            return page.step(|view| view.alert = String::new());
        }
        "e" => return shown().into_iter().for_each(|one| deeds::acknowledge(page, &one.id, wrong)),
        "s" => {
            let asked = shown().map(|one| silences::of_alert(access, &one, now() / 1_000));
            event.prevent_default();
            return form.set(asked);
        }
        "n" => {
            let draft = deeds::new_rule(page);
            return page.step(|view| (view.tab, view.alert) = (Tab::Rules.name().to_string(), draft));
        }
        _ => return,
    };
    let ids: Vec<String> =
        [listed.open, listed.over].iter().flat_map(|part| part.with_untracked(|all| ids(all))).collect();
    let active = document().active_element().and_then(|element| element.get_attribute("data-alert"));
    let chosen = active.or_else(|| shown().map(|one| one.id));
    let at = chosen.and_then(|id| ids.iter().position(|other| *other == id));
    let next = at.map_or(0, |at| at.saturating_add_signed(by).min(ids.len().saturating_sub(1)));
    let Some(id) = ids.get(next) else { return };
    event.prevent_default();
    if wide {
        // A walk is one step of the way back.
        page.change(|view| view.alert = id.clone());
    }
    let rows = browser::all(".findings-list [data-alert]");
    if let Some(row) = rows.iter().find(|row| row.get_attribute("data-alert").as_ref() == Some(id)) {
        browser::focus(row);
    }
}

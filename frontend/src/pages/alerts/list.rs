//! The alerts: those that are open, then those that are over, beside one of them.

use super::one::One;
use super::{deeds, silences, words};
use crate::access::Access;
use crate::address::Tab;
use crate::browser::now;
use crate::pages::poll::{PollAnswer, poll};
use crate::pages::team::form::{Form, FormDialog};
use crate::state::Page;
use crate::widgets::list::filter::{Choice, Filter, options};
use crate::widgets::list::picks::{Pick, PickList, Picks, is_wide};
use crate::widgets::parts::{If, flag, text};
use leptos::ev::{self, KeyboardEvent};
use leptos::prelude::*;
use shared::alert::{Alert, Alerts};
use viewer::alerts::{self, AlertStand, shape, sorted};

/// Seconds between two polls.
const REFRESH_SECONDS: u32 = 5;
/// Most rows of each part of the list.
const MAX_LISTED: usize = 200;
/// Spans of the list: the value in the address, and its label.
const SPANS: [(&str, &str); 4] = [("", "12 h"), ("7d", "7 days"), ("30d", "30 days"), ("400d", "400 days")];
/// The filters of the list: the value in the address, and its label.
const STATES: [(&str, &str); 6] = [
    ("", "All"),
    ("firing", "Firing"),
    ("silenced", "Silenced"),
    ("over", "Resolved"),
    ("warning", "Warning"),
    ("critical", "Critical"),
];

/// Filter and content of the list.
#[derive(Clone, Copy)]
pub struct AlertList {
    /// All alerts of the last response.
    pub all: RwSignal<Vec<Alert>>,
    /// The alert that was requested by its id: it is older than the list.
    older: RwSignal<Option<Alert>>,
    open: Memo<Vec<Alert>>,
    over: Memo<Vec<Alert>>,
    shown: Memo<Option<Alert>>,
    known: RwSignal<bool>,
    /// Whether the server has refused the alert that was requested by its id.
    lacks: RwSignal<bool>,
}

impl AlertList {
    fn start(page: Page, access: Access) -> AlertList {
        // A share link has one alert and no list.
        let is_link = is_link(page);
        let (all, known) = (RwSignal::new(Vec::<Alert>::new()), RwSignal::new(is_link));
        let older = RwSignal::new(None::<Alert>);
        let span = move || page.view.with(|view| if view.by.is_empty() { "12h".to_string() } else { view.by.clone() });
        let path = move || {
            let seconds = viewer::draft::seconds(&span()).unwrap_or(43_200);
            (!page.over.get() && !is_link).then(|| format!("api/v1/alerts?from=-{seconds}s"))
        };
        poll(page, access, REFRESH_SECONDS, path, move |polled| {
            if let PollAnswer::Told(body) = polled
                && let Ok(Alerts { alerts: new, .. }) = body.read()
            {
                let new = words::in_zone(new);
                if all.with_untracked(|old| *old != new) {
                    all.set(new);
                }
                known.set(true);
            }
        });
        let filter =
            move || page.view.with(|view| alerts::Filter { state: view.state.clone(), find: view.find.clone() });
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
        AlertList { all, older, open, over, shown, known, lacks: RwSignal::new(false) }
    }

    fn has(self, id: &str) -> bool {
        self.all.with(|all| all.iter().any(|one| one.id == id))
    }

    /// Requests the chosen alert by its id where the list lacks it, because it may be older.
    fn follow_one(self, page: Page, access: Access) {
        let path = move || {
            let id = page.view.with(|view| view.alert.clone());
            let missing = self.known.get() && !id.is_empty() && !self.has(&id);
            missing.then(|| words::of_id("api/v1/alerts", &id))
        };
        poll(page, access, REFRESH_SECONDS, path, move |polled| match polled {
            PollAnswer::Told(body) => {
                if let Ok(one) = body.read::<Alert>() {
                    self.older.set(words::in_zone(vec![one]).pop());
                }
            }
            PollAnswer::Refused => self.lacks.set(true),
            PollAnswer::Failed(_) => {}
        });
    }

    fn picks(self, page: Page) -> Picks {
        let entries = move |part: Memo<Vec<Alert>>| {
            let entries = Memo::new(move |_| {
                page.beat.track();
                let now = page.server_now();
                part.with(|all| all.iter().map(|one| entry(page, one, now)).collect::<Vec<Pick>>())
            });
            Signal::from(entries)
        };
        Picks {
            kind: "data-alert",
            marks: &["data-rule", "data-state", "data-severity", "data-over"],
            open: entries(self.open),
            over: entries(self.over),
            shown: Signal::derive(move || self.shown.with(|shown| shown.as_ref().map(|one| one.id.clone()))),
            choose: Callback::new(move |id| page.step(|view| view.alert = id)),
        }
    }
}

/// Whether the page is seen by a share link.
fn is_link(page: Page) -> bool {
    page.view.with_untracked(|view| view.share.is_some())
}

/// An alert in the list.
fn entry(page: Page, one: &Alert, now: i64) -> Pick {
    let stand = AlertStand::from_alert(one);
    let over = (stand == AlertStand::Resolved).to_string();
    Pick {
        id: one.id.clone(),
        to: page.address_of_alerts(Tab::Alerts, &one.id),
        marks: vec![one.rule.clone(), stand.name().into(), one.severity.as_str().into(), over],
        shape: shape(one.severity, stand),
        head: one.sentence.clone(),
        rest: String::new(),
        below: words::below(one, now),
    }
}

/// The list.
#[component]
pub fn List() -> impl IntoView {
    let page = expect_context::<Page>();
    let access = expect_context::<Access>();
    let listed = AlertList::start(page, access);
    let (form, wrong) = (RwSignal::new(None::<Form>), RwSignal::new(String::new()));
    let picks = listed.picks(page);
    let keys = window_event_listener(ev::keydown, move |event| {
        pressed(page, access, (listed, picks), (form, wrong), &event);
    });
    on_cleanup(move || keys.remove());
    listed.follow_one(page, access);
    let span = SPANS.map(|(value, words)| {
        view! { <option value=value selected=move || page.view.with(|view| view.by == value)>{words}</option> }
    });
    let asks = move || page.view.with(|v| !v.state.is_empty() || !v.find.is_empty());
    let calm = Signal::derive(move || {
        (listed.open.with(Vec::is_empty) && !asks() && !is_link(page)).then_some("No alerts are firing.")
    });
    let none = Signal::derive(move || {
        let nothing = listed.open.with(Vec::is_empty) && listed.over.with(Vec::is_empty);
        (nothing && asks()).then_some("No alert matches.")
    });
    let gone = flag(move || {
        let is_asked = listed.lacks.get() && page.view.with(|view| !view.alert.is_empty());
        is_asked && listed.known.get() && listed.shown.with(Option::is_none)
    });
    let trouble = text(move || page.alerts.with(|told| told.trouble.join(" ")));
    view! {
        <p class="wrong" role="alert">{trouble}</p>
        <p class="wrong" role="alert">{wrong}</p>
        <div class="alert-filter">
            <Choice
                label="State of alerts"
                deed="state"
                options=options(&STATES)
                is=text(move || page.view.with(|view| view.state.clone()))
                choose=Callback::new(move |state| page.change(|view| view.state = state))
            />
            <Filter
                label="Filter alerts: words, source:node-3, gpu:5"
                hint="words, source:node-3, gpu:5"
                value=text(move || page.view.with(|view| view.find.clone()))
                put=Callback::new(move |find| page.change(|view| view.find = find))
            />
            <label>"Back to " <select aria-label="Time range" on:change=move |event| page.change(|view| view.by = event_target_value(&event))>{span.into_iter().collect_view()}</select></label>
        </div>
        <div class="findings-body">
            <PickList
                picks
                label="All alerts"
                parts=["open-alerts", "over-alerts"]
                known=listed.known
                asking="Loading alerts…"
                calm
                none
                ended="Resolved"
            />
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

/// Arrows and `j`, `k` move in the list; `e` acknowledges an alert, `s` silences it, `n` opens a new rule.
fn pressed(
    page: Page,
    access: Access,
    (listed, picks): (AlertList, Picks),
    (form, wrong): (RwSignal<Option<Form>>, RwSignal<String>),
    event: &KeyboardEvent,
) {
    if !deeds::is_free(page, form.with_untracked(Option::is_some), event) {
        return;
    }
    let shown = || listed.shown.get_untracked();
    // Several moves are one step of the browser's history.
    if picks.walk(event, |id| page.change(|view| view.alert = id)) {
        return;
    }
    match event.key().to_ascii_lowercase().as_str() {
        "escape" if !is_wide() && page.view.with_untracked(|view| !view.alert.is_empty()) => {
            page.step(|view| view.alert = String::new());
        }
        // The server would refuse it.
        "e" | "s" | "n" if !words::may_write(access) => {}
        "e" => shown().into_iter().for_each(|one| deeds::acknowledge(page, &one.id, wrong)),
        "s" => {
            let asked = shown().map(|one| silences::of_alert(access, &one, now() / 1_000));
            event.prevent_default();
            form.set(asked);
        }
        "n" => {
            let draft = deeds::new_rule(page);
            page.step(|view| (view.tab, view.alert) = (Tab::Rules.name().to_string(), draft));
        }
        _ => {}
    }
}

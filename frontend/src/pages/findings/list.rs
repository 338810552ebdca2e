//! The page of findings: those that are open, what follows from each under it, then those that are over; and one of them with
//! its evidence.

use super::evidence::Sketch;
use super::follow::LISTED_SECONDS;
use super::one::Detail;
use super::rules::Rules;
use super::words;
use crate::browser::{self, document};
use crate::pages::alerts::page::Tabs;
use crate::state::Page;
use crate::widgets::parts::{Each, If, flag, text};
use leptos::ev::{self, KeyboardEvent};
use leptos::prelude::*;
use shared::finding::Finding;
use shared::unit::time;
use viewer::findings::list::{Row, gist, rows};
use wasm_bindgen::JsCast;

/// Rows that have a small line of their evidence.
const MAX_SKETCHES: usize = 8;
/// At this width and above one finding stands beside the list, CSS pixels; the stylesheet has the same.
const WIDE_PX: f64 = 900.0;

/// How far back findings that are over are listed, as people read it.
fn listed_span() -> String {
    time::set(LISTED_SECONDS * time::SECOND)
}

/// What the list shows.
#[derive(Clone, Copy)]
struct Listed {
    open: Memo<Vec<Row>>,
    over: Memo<Vec<Row>>,
    /// The finding that is shown beside the list, or in its place.
    shown: Memo<Option<Finding>>,
}

impl Listed {
    fn start(page: Page) -> Listed {
        let part = |open: bool| Memo::new(move |_| page.findings.with(|findings| rows(&findings.all, open)));
        let (open, over) = (part(true), part(false));
        let shown = Memo::new(move |_| {
            let chosen = page.view.with(|view| view.finding.clone());
            match chosen {
                Some(id) => page.findings.with(|findings| findings.all.iter().find(|one| one.id == id).cloned()),
                None => open
                    .with(|rows| rows.first().cloned())
                    .or_else(|| over.with(|rows| rows.first().cloned()))
                    .map(|row| row.finding),
            }
        });
        Listed { open, over, shown }
    }

    /// The row of an id, read by `of`; None where it is gone.
    fn of<T>(self, id: &str, of: impl Fn(&Row) -> T) -> Option<T> {
        let find = |rows: &Vec<Row>| rows.iter().find(|row| row.finding.id == id).map(&of);
        self.open.with(find).or_else(|| self.over.with(find))
    }

    fn ids(rows: &[Row]) -> Vec<String> {
        rows.iter().map(|row| row.finding.id.clone()).collect()
    }
}

/// The page.
#[component]
pub fn FindingsPage() -> impl IntoView {
    let page = expect_context::<Page>();
    let listed = Listed::start(page);
    let known = move || page.findings.with(|findings| findings.known && findings.machine.is_empty());
    let heading = text(move || listed.open.with(|rows| gist(rows)));
    let keys = window_event_listener(ev::keydown, move |event| pressed(page, listed, &event));
    on_cleanup(move || keys.remove());
    let row = Callback::new(move |id: String| view! { <FindingRow id listed/> }.into_any());

    let gone =
        flag(move || known() && listed.shown.with(Option::is_none) && page.view.with(|view| view.finding.is_some()));
    view! {
        <main id="page" class="fleet findings-page" data-chosen=text(move || page.view.with(|view| view.finding.is_some()).to_string())>
            <header class="findings-head">
                <h2>"Findings"</h2>
                // A file has no alerts and no rules.
                <If when=flag(move || !page.over.get())><Tabs/></If>
                <span class="u">{heading}</span>
            </header>
            <div class="findings-body">
                <section class="panel flush findings-list" aria-label="All findings">
                    <If when=flag(move || known() && listed.open.with(|rows| rows.iter().all(|row| row.finding.dismissed.is_some())))>
                        <p class="calm-line"><span class="shape is-ok" aria-hidden="true">"●"</span>" Nothing is wrong."</p>
                    </If>
                    <If when=flag(move || !known())>
                        <p class="calm-line u">"Loading findings…"</p>
                    </If>
                    <div id="open-findings">
                        <Each keys=Signal::derive(move || listed.open.with(|rows| Listed::ids(rows))) row/>
                    </div>
                    <If when=flag(move || listed.over.with(|rows| !rows.is_empty()))>
                        <h3 class="below">{text(move || if page.is_recorded() { "Resolved".into() } else { format!("Resolved in the last {}", listed_span()) })}</h3>
                    </If>
                    <div id="over-findings">
                        <Each keys=Signal::derive(move || listed.over.with(|rows| Listed::ids(rows))) row/>
                    </div>
                    <Rules/>
                </section>
                <If when=flag(move || listed.shown.with(Option::is_some))>
                    <Detail finding=listed.shown/>
                </If>
                <If when=gone>
                    <section class="panel finding-one"><p class="below">{format!("There is no such finding in the last {}. ", listed_span())}<a href=page.address_of_finding(None)>"All findings"</a></p></section>
                </If>
            </div>
        </main>
    }
}

/// A finding in the list.
#[component]
fn FindingRow(id: String, listed: Listed) -> impl IntoView {
    let page = expect_context::<Page>();
    let id = StoredValue::new(id);
    let of = move |read: fn(&Row, i64) -> String| {
        text(move || {
            page.beat.track();
            id.with_value(|id| listed.of(id, |row| read(row, page.server_now()))).unwrap_or_default()
        })
    };
    let shape = move || {
        let of = |row: &Row| words::shape_of(&row.finding);
        id.with_value(|id| listed.of(id, of)).unwrap_or_default()
    };
    let current = text(move || {
        let shown = listed.shown.with(|shown| shown.as_ref().is_some_and(|one| id.with_value(|id| *id == one.id)));
        shown.to_string()
    });
    let to = text(move || page.address_of_finding(Some(id.get_value())));
    let press = move |event: ev::MouseEvent| {
        // With a key the browser opens it where it was asked to.
        if !(event.ctrl_key() || event.meta_key() || event.shift_key()) {
            event.prevent_default();
            page.step(|view| view.finding = Some(id.get_value()));
        }
    };
    let sketched = flag(move || {
        listed.open.with(|rows| rows.iter().take(MAX_SKETCHES).any(|row| id.with_value(|id| row.finding.id == *id)))
    });
    let finding = Signal::derive(move || id.with_value(|id| listed.of(id, |row| row.finding.clone())));
    view! {
        <a
            class="finding"
            href=to
            data-finding=id.get_value()
            data-severity=of(|row, _| row.finding.severity.word().to_string())
            data-follows=of(|row, _| row.follows.to_string())
            data-dismissed=of(|row, _| row.finding.dismissed.is_some().to_string())
            data-over=of(|row, _| row.finding.until.is_some().to_string())
            aria-current=current
            on:click=press
        >
            <span class=text(move || shape().0) aria-hidden="true">{text(move || shape().1)}</span>
            <span class="words">
                <span class="sentence"><b>{of(|row, _| words::told(&row.finding).0)}</b>" "{of(|row, _| words::told(&row.finding).1)}</span>
                <span class="below">{of(|row, now| words::below(&row.finding, now))}</span>
            </span>
            <If when=sketched><Sketch finding/></If>
        </a>
    }
}

/// Arrows and `j`, `k` walk in the list; where a finding stands beside it, it follows. Escape leads from one back to the list.
fn pressed(page: Page, listed: Listed, event: &KeyboardEvent) {
    let typing = event.target().and_then(|target| target.dyn_into::<web_sys::Element>().ok());
    let typing = typing.is_some_and(|element| matches!(element.tag_name().as_str(), "INPUT" | "SELECT" | "TEXTAREA"));
    if typing || page.dialog.with_untracked(Option::is_some) || event.ctrl_key() || event.meta_key() || event.alt_key()
    {
        return;
    }
    let wide = browser::viewport().0 > WIDE_PX;
    let by: isize = match event.key().as_str() {
        "ArrowDown" | "j" => 1,
        "ArrowUp" | "k" => -1,
        "Escape" if !wide && page.view.with_untracked(|view| view.finding.is_some()) => {
            return page.step(|view| view.finding = None);
        }
        _ => return,
    };
    let ids: Vec<String> =
        [listed.open, listed.over].iter().flat_map(|part| part.with_untracked(|rows| Listed::ids(rows))).collect();
    let active = document().active_element().and_then(|element| element.get_attribute("data-finding"));
    let chosen = active.or_else(|| listed.shown.with_untracked(|one| one.as_ref().map(|one| one.id.clone())));
    let at = chosen.and_then(|id| ids.iter().position(|other| *other == id));
    let next = at.map_or(0, |at| at.saturating_add_signed(by).min(ids.len().saturating_sub(1)));
    let Some(id) = ids.get(next) else { return };
    event.prevent_default();
    if wide {
        // A walk is one step of the way back.
        page.change(|view| view.finding = Some(id.clone()));
    }
    let rows = browser::all(".finding[data-finding]");
    if let Some(row) = rows.iter().find(|row| row.get_attribute("data-finding").as_ref() == Some(id)) {
        browser::focus(row);
    }
}

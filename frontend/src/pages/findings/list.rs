//! The page of findings: the open ones with their consequences, then the ended ones, and one of them with its evidence.

use super::evidence::Sketch;
use super::follow::LISTED_SECONDS;
use super::one::Detail;
use super::rules::Rules;
use super::words;
use crate::pages::alerts::deeds::is_free;
use crate::pages::alerts::whole::Tabs;
use crate::state::Page;
use crate::widgets::list::picks::{Pick, PickList, Picks, is_wide};
use crate::widgets::parts::{If, flag, text};
use leptos::ev::{self, KeyboardEvent};
use leptos::prelude::*;
use shared::finding::Finding;
use shared::unit::time;
use viewer::findings::list::{FindingRow, gist, rows};

/// Rows that have a small line of their evidence.
const MAX_SKETCHES: usize = 8;

/// Span of the listed ended findings, in words.
fn listed_span() -> String {
    time::set(LISTED_SECONDS * time::SECOND)
}

/// The findings that are listed, and the one that is shown beside the list or in its place.
#[derive(Clone, Copy)]
struct Listed {
    open: Memo<Vec<FindingRow>>,
    over: Memo<Vec<FindingRow>>,
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

    fn picks(self, page: Page) -> Picks {
        let entries = move |part: Memo<Vec<FindingRow>>| {
            let entries = Memo::new(move |_| {
                page.beat.track();
                let now = page.server_now();
                part.with(|rows| rows.iter().map(|row| entry(page, row, now)).collect::<Vec<Pick>>())
            });
            Signal::from(entries)
        };
        Picks {
            kind: "data-finding",
            marks: &["data-severity", "data-follows", "data-dismissed", "data-over"],
            open: entries(self.open),
            over: entries(self.over),
            shown: Signal::derive(move || self.shown.with(|shown| shown.as_ref().map(|one| one.id.clone()))),
            choose: Callback::new(move |id| page.step(|view| view.finding = Some(id))),
        }
    }
}

/// A finding in the list.
fn entry(page: Page, row: &FindingRow, now: i64) -> Pick {
    let FindingRow { finding, follows } = row;
    let (head, rest) = words::split_sentence(finding);
    let is = [*follows, finding.dismissed.is_some(), finding.until.is_some()].map(|is| is.to_string());
    Pick {
        id: finding.id.clone(),
        to: page.address_of_finding(Some(finding.id.clone())),
        marks: std::iter::once(finding.severity.as_str().to_string()).chain(is).collect(),
        shape: words::shape_of(finding),
        head,
        rest,
        below: words::below(finding, now),
    }
}

/// The page.
#[component]
pub fn FindingsPage() -> impl IntoView {
    let page = expect_context::<Page>();
    let listed = Listed::start(page);
    let picks = listed.picks(page);
    let known = flag(move || page.findings.with(|findings| findings.known && findings.machine.is_empty()));
    let heading = text(move || listed.open.with(|rows| gist(rows)));
    let keys = window_event_listener(ev::keydown, move |event| pressed(page, picks, &event));
    on_cleanup(move || keys.remove());
    let calm = Signal::derive(move || {
        let all = listed.open.with(|rows| rows.iter().all(|row| row.finding.dismissed.is_some()));
        // A share link has the findings of some rules only.
        let is_link = page.view.with(|view| view.share.is_some());
        all.then_some(if is_link { "This link shows no open finding." } else { "Nothing is wrong." })
    });
    let ended =
        text(
            move || {
                if page.is_recorded() { "Resolved".into() } else { format!("Resolved in the last {}", listed_span()) }
            },
        );
    let aside = Callback::new(move |id: String| sketch(listed, id));
    let gone = flag(move || {
        known.get() && listed.shown.with(Option::is_none) && page.view.with(|view| view.finding.is_some())
    });
    view! {
        <main id="page" class="fleet findings-page" data-chosen=text(move || page.view.with(|view| view.finding.is_some()).to_string())>
            <header class="findings-head">
                <h2>"Findings"</h2>
                // A file has no alerts and no rules.
                <If when=flag(move || !page.over.get())><Tabs/></If>
                <span class="u">{heading}</span>
            </header>
            <div class="findings-body">
                <PickList
                    picks
                    label="All findings"
                    parts=["open-findings", "over-findings"]
                    known
                    asking="Loading findings…"
                    calm
                    ended
                    aside
                    foot=|| view! { <Rules/> }
                />
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

/// The small line of evidence that the first rows have.
fn sketch(listed: Listed, id: String) -> AnyView {
    let id = StoredValue::new(id);
    let is_own = move |row: &&FindingRow| id.with_value(|id| row.finding.id == *id);
    let first = flag(move || listed.open.with(|rows| rows.iter().take(MAX_SKETCHES).any(|row| is_own(&row))));
    let finding =
        Signal::derive(move || listed.open.with(|rows| rows.iter().find(is_own).map(|row| row.finding.clone())));
    view! { <If when=first><Sketch finding/></If> }.into_any()
}

/// Arrows and `j`, `k` move in the list; a finding that is shown beside it follows. Escape returns from a finding to
/// the list.
fn pressed(page: Page, picks: Picks, event: &KeyboardEvent) {
    if !is_free(page, false, event) {
        return;
    }
    // Several moves are one step of the browser's history.
    let walked = picks.walk(event, |id| page.change(|view| view.finding = Some(id)));
    let leaves = event.key() == "Escape" && !is_wide() && page.view.with_untracked(|view| view.finding.is_some());
    if !walked && leaves {
        page.step(|view| view.finding = None);
    }
}

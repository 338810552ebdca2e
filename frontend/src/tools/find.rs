//! The search of the page: charts, also folded ones, by title and by the names of their metrics in other programs;
//! machines, processes, training jobs, spans of time, settings, and actions.

use super::menu;
use crate::browser::{self, has_own_zone, is_utc, now, offset, show_utc};
use crate::range::{self, Asked};
use crate::shortcuts::{self, Action};
use crate::state::Page;
use crate::store::fleet::{hosts::hosts, words};
use charts::order;
use leptos::html;
use leptos::prelude::*;
use shared::catalog::prometheus;
use shared::wire::PageMessage;
use viewer::find::{INSIDE_RANK, meaning, rank, rank_name, rank_with, symptoms};
use viewer::findings::{Findings, words as finding_words};
use wasm_bindgen::JsCast;

/// Most results that are shown.
const MAX_HITS: usize = 12;
/// A rank behind those of everything that is called as was typed.
const AFTER_NAMES: usize = 10;

/// A result that another part of the page offers: a training job, a page of settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// Its kind in one word.
    pub kind: &'static str,
    /// Its name.
    pub title: String,
    /// Text beside the name.
    pub detail: String,
    /// Further search words.
    pub others: String,
    /// The address of its page.
    pub address: String,
}

/// Target of a result.
#[derive(Clone, Debug, PartialEq)]
enum Goal {
    /// The chart with this id.
    Chart(String),
    /// The machine with this name.
    Machine(String),
    /// A process: the table is filtered by this text.
    Process(String),
    /// This span.
    Span(Asked),
    /// The finding with this id.
    Finding(String),
    /// The section with this id.
    Section(String),
    /// The list of missing metrics.
    Missing,
    /// The menu of the chart under the pointer, or of the first one.
    Menu,
    /// Another page, by its address.
    Address(String),
    /// Times in UTC, or in the reader's own zone.
    Zone,
    /// The action of a key.
    Act(Action),
}

/// One result.
#[derive(Clone, Debug, PartialEq)]
struct Hit {
    goal: Goal,
    /// Its kind: chart, section, machine, process, finding, run, mark, note, time, settings, action, not here.
    kind: &'static str,
    title: String,
    /// Further text of the hit: the metric's name, the key.
    detail: String,
}

/// The results for the typed text, the best first.
fn hits(page: Page, offered: &[Offer], typed: &str) -> Vec<Hit> {
    let typed = typed.trim().to_ascii_lowercase();
    let mut found: Vec<(usize, Hit)> = Vec::new();
    if typed.is_empty() {
        // Without a text, the other machines are listed.
        machines(page, &typed, &mut found);
        return found.into_iter().map(|(_, hit)| hit).take(MAX_HITS).collect();
    }
    if let Ok(asked) = range::read(&typed, now() + page.ahead.get_value(), page.longest(), &offset) {
        found.push((0, Hit { goal: Goal::Span(asked), kind: "time", title: spoken(asked), detail: String::new() }));
    }
    findings(page, &typed, &mut found);
    charts(page, &typed, &mut found);
    machines(page, &typed, &mut found);
    processes(page, &typed, &mut found);
    offers(offered, &typed, &mut found);
    zone(page, &typed, &mut found);
    marks(page, &typed, &mut found);
    notes(page, &typed, &mut found);
    actions(page, &typed, &mut found);
    let mut meant: Vec<(usize, Hit)> = Vec::new();
    for text in symptoms(&typed) {
        charts(page, text, &mut meant);
        // A job that was out of memory says so in its sentence.
        offers(offered, text, &mut meant);
        actions(page, text, &mut meant);
    }
    // Hits by a symptom rank below hits by name. "hang" is no part of what "changes".
    let meant = meant.into_iter().filter(|(rank, _)| *rank < INSIDE_RANK);
    found.extend(meant.map(|(rank, hit)| (rank + AFTER_NAMES, hit)));
    // The sort is stable: equal ranks stay in the order of the page.
    order::sort_by_key(&mut found, |(rank, _)| *rank);
    let mut hits: Vec<Hit> = Vec::new();
    for (_, hit) in found {
        if hits.len() < MAX_HITS && !hits.iter().any(|known| known.goal == hit.goal && known.title == hit.title) {
            hits.push(hit);
        }
    }
    hits
}

/// Open and ended findings of the server's last response, the newest first.
fn findings(page: Page, typed: &str, found: &mut Vec<(usize, Hit)>) {
    page.findings.with_untracked(|findings| {
        for one in findings.all.iter().filter(|one| Findings::of_machine(one, &findings.machine)) {
            let words = [one.kind.replace('_', " "), one.rule.replace(['.', '_'], " ")].join(", ");
            let told = || format!("{words}, {}", one.sentence);
            let by_symptom =
                || symptoms(typed).find(|text| rank(&told(), text).is_some_and(|rank| rank < INSIDE_RANK)).map(|_| 1);
            let by_name = rank_with(&words, &one.sentence, typed);
            if let Some(rank) = by_name.into_iter().chain(by_symptom()).min() {
                let detail = finding_words::kind(&one.kind);
                let (goal, title) = (Goal::Finding(one.id.clone()), one.sentence.clone());
                found.push((rank, Hit { goal, kind: "finding", title, detail }));
            }
        }
    });
}

/// Results that other parts of the page offer, by name or by further words.
fn offers(offered: &[Offer], typed: &str, found: &mut Vec<(usize, Hit)>) {
    for offer in offered {
        if let Some(rank) = rank_with(&offer.title, &offer.others, typed) {
            let (title, detail) = (offer.title.clone(), offer.detail.clone());
            found.push((rank + 1, Hit { goal: Goal::Address(offer.address.clone()), kind: offer.kind, title, detail }));
        }
    }
}

/// The zone of all times, where there is a choice. The switch reloads the page, which would close a file.
fn zone(page: Page, typed: &str, found: &mut Vec<(usize, Hit)>) {
    let title = "Time zone: UTC or your own";
    if has_own_zone(page.span().1)
        && !page.over.get_untracked()
        && let Some(rank) = rank(&format!("{title}, settings, clock, local time"), typed)
    {
        let detail = if is_utc() { "now UTC" } else { "now your own" };
        found.push((rank + 1, Hit { goal: Goal::Zone, kind: "settings", title: title.into(), detail: detail.into() }));
    }
}

/// Marks of users and programs, and cells of notebooks, with links to their time.
fn marks(page: Page, typed: &str, found: &mut Vec<(usize, Hit)>) {
    for mark in page.marks.get_value().iter() {
        let Some(rank) = rank(&mark.name, typed) else { continue };
        let detail = charts::axis::moment(mark.from + offset(mark.from));
        let goal = Goal::Span(Asked::At(mark.from));
        found.push((rank, Hit { goal, kind: "mark", title: mark.name.clone(), detail }));
    }
}

/// Notes of people about the shown machine, with links to their time.
fn notes(page: Page, typed: &str, found: &mut Vec<(usize, Hit)>) {
    page.notes.with(|notes| {
        for note in notes.iter() {
            let Some(rank) = rank(&format!("{} {}", note.text, note.by), typed) else { continue };
            let at = charts::axis::moment(note.t.ms() + offset(note.t.ms()));
            let goal = Goal::Span(note.end.map_or(Asked::At(note.t.ms()), |end| Asked::Span(note.t.ms(), end.ms())));
            let detail = format!("{at}, {}", note.by);
            found.push((rank, Hit { goal, kind: "note", title: note.title().into(), detail }));
        }
    });
}

fn processes(page: Page, typed: &str, found: &mut Vec<(usize, Hit)>) {
    page.processes.with(|table| {
        let rows = table.iter().flat_map(|table| &table.rows);
        found.extend(rows.filter_map(|process| {
            let title = format!("{} {}", process.name, process.pid);
            let script = process.script().unwrap_or_default();
            let rank = rank(&format!("{title} {script} {}", process.user), typed)? + 1;
            let goal = Goal::Process(title.clone());
            Some((rank, Hit { goal, kind: "process", title, detail: process.user.clone() }))
        }));
    });
}

fn actions(page: Page, typed: &str, found: &mut Vec<(usize, Hit)>) {
    for (action, keys) in shortcuts::offered(page.is_recorded()) {
        let Some((name, others)) = action.names() else { continue };
        if let Some(rank) = rank_with(name, &format!("{name}, {others}"), typed) {
            found.push((rank + 1, Hit { goal: Goal::Act(action), kind: "action", title: name.into(), detail: keys }));
        }
    }
    found.extend(menu::OFFERS.into_iter().filter_map(|words| {
        let (rank, detail) = (rank(words, typed)? + 1, "in the menu of each chart, M".to_string());
        Some((rank, Hit { goal: Goal::Menu, kind: "action", title: words.into(), detail }))
    }));
}

/// The machines by their names, where there are several; each with its present state.
fn machines(page: Page, typed: &str, found: &mut Vec<(usize, Hit)>) {
    let store = page.store.read_value();
    let shown = page.view.with_untracked(|v| store.source(v.source.as_deref()).map(|s| s.info.id));
    for host in hosts(&store.index, &[]).into_iter().filter(|_| store.index.len() > 1) {
        let name = host.entry.name.clone();
        let Some(rank) = rank(&name, typed) else { continue };
        let state = words::state(&host, page.server_now());
        let state = if state.is_empty() { "live".into() } else { state };
        let detail = if shown == Some(host.entry.id) { format!("{state}, shown here") } else { state };
        found.push((rank, Hit { goal: Goal::Machine(name.clone()), kind: "machine", title: name, detail }));
    }
}

/// Charts of the plan, by their titles, the names of their metrics and the words of their descriptions; sections, and
/// missing metrics.
fn charts(page: Page, typed: &str, found: &mut Vec<(usize, Hit)>) {
    let store = page.store.read_value();
    page.plan.with_untracked(|plan| {
        let panels = plan.top.iter().chain(plan.sections.iter().flat_map(|section| &section.panels));
        for panel in panels {
            let metrics = || store.catalog.metrics.iter().filter(|metric| metric.chart == panel.id);
            let names = metrics().flat_map(|metric| {
                [metric.tag.clone(), prometheus::written(metric)].into_iter().chain(metric.aliases.iter().cloned())
            });
            let by_title = rank(&panel.title, typed).map(|rank| (rank, String::new()));
            let by_name = names.filter_map(|name| Some((rank_name(&name, typed)? + 1, name)));
            let by_meaning = metrics().find_map(|metric| Some((4, meaning(&metric.help, typed)?)));
            // The first of equals is kept.
            let all = by_title.into_iter().chain(by_name).chain(by_meaning);
            if let Some((rank, detail)) = all.min_by_key(|(rank, _)| *rank) {
                let (goal, title) = (Goal::Chart(panel.id.clone()), panel.title.clone());
                found.push((rank, Hit { goal, kind: "chart", title, detail }));
            }
        }
        for section in &plan.sections {
            if let Some(rank) = rank(&section.title, typed) {
                let (goal, title) = (Goal::Section(section.id.clone()), section.title.clone());
                found.push((rank, Hit { goal, kind: "section", title, detail: String::new() }));
            }
        }
        for absent in &plan.missing {
            let why = absent.why();
            if let Some(rank) = rank(&absent.title, typed).or_else(|| meaning(&why, typed).map(|_| 3)) {
                let title = absent.title.clone();
                found.push((rank + 1, Hit { goal: Goal::Missing, kind: "not here", title, detail: why }));
            }
        }
    });
}

/// A span in words.
fn spoken(asked: Asked) -> String {
    let clock = |t: i64| charts::axis::moment(t + offset(t));
    match asked {
        Asked::Last(ms) => format!("the last {}", range::name(ms)),
        Asked::Span(from, to) => format!("{} to {}", clock(from), clock(to)),
        Asked::At(t) => format!("around {}", clock(t)),
    }
}

/// Unfolds a section and scrolls to it.
fn show(fold: &web_sys::Element) {
    if let Some(fold) = fold.dyn_ref::<web_sys::HtmlDetailsElement>() {
        fold.set_open(true);
        fold.scroll_into_view();
    }
}

/// Goes where a result leads.
fn go_to(page: Page, goal: Goal, act: Callback<Action>) {
    page.dialog.set(None);
    match goal {
        Goal::Chart(id) => super::open_chart(id),
        Goal::Machine(name) if page.is_host() => page.show_source(name),
        Goal::Machine(name) => page.go_to(None, &[name]),
        Goal::Process(words) => {
            page.seek.set(words);
            browser::all("details.processes").iter().for_each(show);
        }
        Goal::Span(asked) => page.go(asked),
        Goal::Finding(id) => page.open(&page.address_of_finding(Some(id))),
        Goal::Address(to) => page.open(&to),
        Goal::Zone => show_utc(!is_utc()),
        Goal::Section(id) => {
            for fold in browser::all("details[data-section]") {
                if fold.get_attribute("data-section").as_ref() == Some(&id) {
                    show(&fold);
                }
            }
        }
        Goal::Missing => browser::all("details.why").iter().for_each(show),
        Goal::Menu => {
            let pointed = page.hover.with_value(|hover| hover.as_ref().map(|hover| hover.panel.clone()));
            let first = || page.plan.with_untracked(|plan| plan.top.first().map(|panel| panel.id.clone()));
            if let Some(chart) = pointed.or_else(first) {
                super::open_chart(chart.clone());
                // The chart takes the focus first; the menu would close when the focus leaves it.
                set_timeout(move || page.toggle_menu(&chart), super::OPEN_CHART_PAUSE * 2);
            }
        }
        Goal::Act(action) => act.run(action),
    }
}

/// The content of the dialog: a field, and the results below it. `act` carries out the action of a key.
#[component]
pub fn Find(
    /// Carries out an action of the table of keys.
    act: Callback<Action>,
    /// Results that other parts of the page offer.
    offered: RwSignal<Vec<Offer>>,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let early = page.typed_early.try_update_value(std::mem::take).unwrap_or_default();
    let (typed, chosen) = (RwSignal::new(early.clone()), RwSignal::new(0usize));
    // The process table is requested only where it is visible, and here.
    page.ask(PageMessage::Processes { at: None });
    let found = Memo::new(move |_| offered.with(|offered| hits(page, offered, &typed.get())));
    let field = NodeRef::<html::Input>::new();
    field.on_load(move |field| {
        // Set as typed text is, so that the next letter follows it.
        field.set_value(&early);
        browser::focus(&field);
    });
    let go = move |hit: Hit| go_to(page, hit.goal, act);
    let pressed = move |event: leptos::ev::KeyboardEvent| {
        let last = found.with(Vec::len).saturating_sub(1);
        match event.key().as_str() {
            "ArrowDown" => chosen.update(|i| *i = (*i + 1).min(last)),
            "ArrowUp" => chosen.update(|i| *i = i.saturating_sub(1)),
            "Enter" => {
                let hit = found.with(|found| found.get(chosen.get_untracked()).cloned());
                hit.into_iter().for_each(go);
            }
            _ => return,
        }
        event.prevent_default();
    };
    let option = move |(i, hit): (usize, Hit)| {
        let selected = move || (chosen.get() == i).to_string();
        let (title, detail, kind) = (hit.title.clone(), hit.detail.clone(), hit.kind);
        view! {
            <li id=format!("hit-{i}") role="option" aria-selected=selected on:click=move |_| go(hit.clone())>
                <span class="name">{title}</span>
                <span class="gist">{detail}</span>
                <span class="n">{kind}</span>
            </li>
        }
    };
    let nothing = move || {
        let none = found.with(Vec::is_empty) && typed.with(|typed| !typed.trim().is_empty());
        none.then(|| view! { <p class="did">{move || wrong(page, &typed.get())}</p> })
    };
    view! {
        <div class="body find">
            <input
                node_ref=field
                id="find"
                role="combobox"
                aria-label="Find"
                aria-expanded="true"
                aria-controls="hits"
                aria-activedescendant=move || format!("hit-{}", chosen.get())
                placeholder="a chart, metric, machine, run, finding, time (14:05, yesterday), setting or action"
                autocomplete="off"
                spellcheck="false"
                on:input=move |event| {
                    chosen.set(0);
                    typed.set(event_target_value(&event));
                }
                on:keydown=pressed
            />
            {nothing}
            <ul id="hits" role="listbox" aria-label="Results">
                {move || found.get().into_iter().enumerate().map(option).collect_view()}
            </ul>
        </div>
    }
}

/// Why nothing was found: the error of a span, where the text resembles one.
fn wrong(page: Page, typed: &str) -> String {
    let like_a_span = typed.contains(|c: char| c.is_ascii_digit());
    match range::read(typed, now() + page.ahead.get_value(), page.longest(), &offset) {
        Err(words) if like_a_span => format!("No results. For a time, {words}."),
        _ => "No results.".into(),
    }
}

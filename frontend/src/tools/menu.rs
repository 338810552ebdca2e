//! What a chart offers, under its title: its table, what can be taken away, another chart over it, its series one by one.
//! One menu for all charts: it stands in the one that is asked, so that Tab goes from the title into it and on.

use super::take::{self, CsvOffer};
use crate::browser;
use crate::gestures::roving;
use crate::gestures::series::{self, Choice};
use crate::panels::board::Board;
use crate::state::{Dialog, Menu as State, Page};
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::Element;

/// The menu's element, where it is open.
fn open(page: Page) -> Option<Element> {
    if page.menu.with_untracked(|menu| menu.as_ref().is_some_and(|menu| menu.open)) {
        browser::by_id("menu")
    } else {
        None
    }
}

/// The title of the chart that the menu belongs to.
fn title(menu: &Element) -> Option<Element> {
    menu.closest("article").ok()??.query_selector("h3 button").ok()?
}

/// Closes it; true when it was open. The keys go back to the title where they were within.
pub fn close(page: Page) -> bool {
    let Some(menu) = open(page) else { return false };
    if menu.contains(browser::focused().as_deref()) {
        title(&menu).iter().for_each(browser::focus);
    }
    page.menu.update(|menu| menu.iter_mut().for_each(|menu| menu.open = false));
    true
}

/// The keys or a click went to another element: outside of the menu and its title it has no place any more.
pub fn left_for(page: Page, target: &Element) {
    if let Some(menu) = open(page).filter(|menu| !menu.contains(Some(target)))
        && title(&menu).is_none_or(|title| !title.contains(Some(target)))
    {
        close(page);
    }
}

/// Opens it for the chart that has the keys, or is pointed at; or closes it there.
pub fn by_key(board: Board) {
    let focused = roving::focused().and_then(|article| article.get_attribute("data-panel"));
    let pointed = || board.page.hover.with_value(|hover| hover.as_ref().map(|hover| hover.panel.clone()));
    if let Some(chart) = focused.or_else(pointed) {
        close_elsewhere(board.page, &chart);
        board.page.toggle_menu(&chart);
    }
}

/// The keys are in the menu of another chart: they leave it before it goes.
fn close_elsewhere(page: Page, chart: &str) {
    if page.menu.with_untracked(|menu| menu.as_ref().is_some_and(|menu| menu.chart != chart)) {
        close(page);
    }
}

/// The menu, where it belongs to this chart.
#[component]
pub fn Menu(
    /// Id of the chart.
    chart: String,
    /// Its title.
    title: String,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let is_open = Memo::new({
        let chart = chart.clone();
        move |_| page.menu.with(|menu| menu.as_ref().filter(|menu| menu.chart == chart).map(|menu: &State| menu.open))
    });
    move || {
        is_open.with(Option::is_some).then(|| {
            let (chart, label) = (chart.clone(), format!("{title}: more"));
            let offers = {
                let chart = chart.clone();
                move || (is_open.get() == Some(true)).then(|| view! { <Offers chart=chart.clone()/> })
            };
            view! {
                <div id="menu" class="menu" role="dialog" aria-label=label data-chart=chart hidden=move || is_open.get() != Some(true)>
                    {offers}
                </div>
            }
        })
    }
}

/// What it offers at the moment it is opened.
#[component]
fn Offers(chart: String) -> impl IntoView {
    let board = expect_context::<Board>();
    let page = board.page;
    let did = RwSignal::new(String::new());
    let first = NodeRef::<html::Button>::new();
    first.on_load(|button| browser::focus(&button));
    let here = StoredValue::new(chart.clone());
    let table = move |_| {
        close(page);
        page.dialog.set(Some(Dialog::Table(here.get_value())));
    };
    let picture = move |svg: bool| did.set(here.with_value(|chart| take::picture(board, chart, svg)));
    let link = move |_| {
        if let Some(menu) = open(page) {
            did.set(take::link(page, &menu));
        }
    };
    view! {
        <div class="take">
            <button node_ref=first data-do="table" title="The values that are drawn, in rows" on:click=table>"Table"</button>
            <button data-do="png" title="A picture with title, source and span" on:click=move |_| picture(false)>"PNG"</button>
            <button data-do="svg" title="The same as lines" on:click=move |_| picture(true)>"SVG"</button>
            <CsvOffer chart=chart.clone()/>
            <button data-do="link" title="The address of what is seen" on:click=link>"Copy link"</button>
        </div>
        <p class="did" role="status">{did}</p>
        <Over chart=chart.clone()/>
        <OneSeries chart did/>
    }
}

/// Another chart over this one.
#[component]
fn Over(chart: String) -> impl IntoView {
    let page = expect_context::<Page>();
    let view = page.view_now();
    let over = view.over.iter().find(|(on, _)| *on == chart).map(|(_, other)| other);
    let store = page.store.read_value();
    let charts = store.source(view.source.as_deref()).map(|s| &s.charts);
    let has = |id: &String| charts.and_then(|all| all.get(id)).is_some_and(|m| !m.lines.is_empty());
    let others = store.catalog.layout.charts.iter().filter(|c| has(&c.id) && c.id != chart);
    let option = |c: &shared::catalog::Chart| {
        view! { <option value=c.id.clone() selected=over == Some(&c.id)>{c.title.clone()}</option> }
    };
    let options = others.map(option).collect_view();
    let chosen = move |event| {
        let (chart, other) = (chart.clone(), event_target_value(&event));
        page.change(|v| {
            v.over.retain(|(on, _)| *on != chart);
            if !other.is_empty() {
                v.over.push((chart, other));
            }
        });
        close(page);
    };
    view! {
        <label>
            "Draw another chart over this one"
            <select id="over" on:change=chosen><option value="">"none"</option>{options}</select>
        </label>
    }
}

/// What a person does with single series; the same as on their labels. Nothing where there is one alone.
#[component]
fn OneSeries(chart: String, did: RwSignal<String>) -> impl IntoView {
    let board = expect_context::<Board>();
    let drawn = board.drawn();
    let names = drawn.panels.iter().find(|p| p.id == chart).map(|p| &p.picture.names).filter(|n| n.len() > 1)?;
    let options = names.iter().enumerate().map(|(i, name)| view! { <option value=i>{name.full.clone()}</option> });
    let options = options.collect_view();
    let select = NodeRef::<html::Select>::new();
    let here = StoredValue::new(chart);
    let choose = move |choice: Choice| {
        let i = select.get_untracked().and_then(|select| select.value().parse().ok());
        if let Some(i) = i {
            did.set(here.with_value(|chart| with_series(board, chart, i, choice)));
        }
    };
    let alike = move |_| {
        let chart = here.get_value();
        board.page.change(|v| {
            v.only.retain(|(c, _)| *c != chart);
            v.off.retain(|(c, _)| *c != chart);
            v.pin.clear();
        });
        did.set("All alike".into());
    };
    let button = move |what: &'static str, words: &'static str, title: &'static str, choice: Choice| {
        view! { <button data-do=what title=title on:click=move |_| choose(choice)>{words}</button> }
    };
    Some(view! {
        <label title="On its label: click, ctrl-click, shift-click">
            "One of its series"
            <select node_ref=select id="one">{options}</select>
        </label>
        <div class="take">
            {button("alone", "Alone", "This series alone in its chart, or all again", Choice::Isolate)}
            {button("off", "Hide", "Out of sight, or back", Choice::Hide)}
            {button("pin", "Follow", "Followed through all charts, or not", Choice::Pin)}
            <button data-do="series" title="All of them as they were" on:click=alike>"All alike"</button>
        </div>
    })
}

/// Does something with a series of a chart; says what came of it.
fn with_series(board: Board, chart: &str, i: usize, choice: Choice) -> String {
    let name = board.series_name(chart, i).unwrap_or_default();
    series::choose(board, chart, i, choice);
    let view = board.page.view_now();
    let here = |list: &[(String, String)]| list.iter().any(|(c, n)| c == chart && *n == name);
    let state = match choice {
        Choice::Isolate if here(&view.only) => "alone",
        Choice::Hide if here(&view.off) => "hidden",
        Choice::Pin if view.pin.contains(&name) => "followed",
        _ => "as the others",
    };
    format!("{name}: {state}")
}

/// Closes the menu when a click or the keys go elsewhere, for as long as its part of the page stands.
pub fn listen(page: Page) {
    let left = move |event: &web_sys::Event| {
        if let Some(target) = event.target().and_then(|t| t.dyn_into::<Element>().ok()) {
            left_for(page, &target);
        }
    };
    let clicks = window_event_listener(leptos::ev::click, move |event| left(&event));
    let focus = window_event_listener(leptos::ev::focusin, move |event| left(&event));
    on_cleanup(move || {
        clicks.remove();
        focus.remove();
    });
}

//! The menu of a chart, below its title: its table, pictures and data to save, another chart over it, its single
//! series. There is one menu for all charts. It is inside the chart that opened it, so that Tab moves from the title
//! into the menu and on.

use super::take::{self, CsvOffer};
use super::{Tool, alert};
use crate::browser;
use crate::card;
use crate::gestures::series::{self, Choice};
use crate::panels::board::Board;
use crate::shortcuts::{self, Action};
use crate::state::{Dialog, Menu as State, Page};
use crate::store::plan::Panel;
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::Element;

/// Entries of each chart's menu, in words that the search finds.
pub const OFFERS: [&str; 12] = [
    "Alert on this: a rule with a threshold for a chart",
    "Table of a chart",
    "About a chart: meaning, unit, source and names",
    "Picture of a chart: PNG, SVG",
    "CSV of a chart: every sample",
    "Copy link to this moment",
    "Live link",
    "Hide this chart",
    "Move a chart: to the top, up or down",
    "Draw another chart over this one",
    "Card of your own: series of several charts in one",
    "One series only, hidden or highlighted",
];

/// The element of the menu; None while it is closed.
fn open(page: Page) -> Option<Element> {
    if page.menu.with_untracked(|menu| menu.as_ref().is_some_and(|menu| menu.open)) {
        browser::by_id("menu")
    } else {
        None
    }
}

/// The title of the chart that has the menu.
fn title(menu: &Element) -> Option<Element> {
    menu.closest("article").ok()??.query_selector("h3 button").ok()?
}

/// Closes the menu; true when it was open. A focus within the menu returns to the title.
pub fn close(page: Page) -> bool {
    let Some(menu) = open(page) else { return false };
    if menu.contains(browser::focused().as_deref()) {
        title(&menu).iter().for_each(browser::focus);
    }
    page.menu.update(|menu| menu.iter_mut().for_each(|menu| menu.open = false));
    true
}

/// Closes the menu after a click or a focus outside of the menu and its title.
pub fn left_for(page: Page, target: &Element) {
    if let Some(menu) = open(page).filter(|menu| !menu.contains(Some(target)))
        && title(&menu).is_none_or(|title| !title.contains(Some(target)))
    {
        close(page);
    }
}

/// Opens the menu of the chart that has the focus or is pointed at, or closes it when it is open there.
pub fn by_key(board: Board) {
    if let Some(chart) = super::pointed(board) {
        close_elsewhere(board.page, &chart);
        board.page.toggle_menu(&chart);
    }
}

/// Closes the menu if it is open in another chart, so that the focus leaves it first.
fn close_elsewhere(page: Page, chart: &str) {
    if page.menu.with_untracked(|menu| menu.as_ref().is_some_and(|menu| menu.chart != chart)) {
        close(page);
    }
}

/// The menu of a chart; empty while it belongs to another chart.
#[component]
pub fn Menu(
    /// Id of the chart.
    chart: String,
    /// Title of the chart.
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
                move || (is_open.get() == Some(true)).then(|| super::menus(Tool::Menu(chart.clone())))
            };
            view! {
                <div id="menu" class="menu" role="dialog" aria-label=label data-chart=chart hidden=move || is_open.get() != Some(true)>
                    {offers}
                </div>
            }
        })
    }
}

/// The content of the menu, made when it is opened.
#[component]
pub fn Offers(
    /// Id of the chart.
    chart: String,
) -> impl IntoView {
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
    let about = move |_| {
        close(page);
        page.dialog.set(Some(Dialog::About(here.get_value())));
    };
    let picture = move |svg: bool| did.set(here.with_value(|chart| take::picture(board, chart, svg)));
    let hide = move |_| {
        close(page);
        page.hide(Some(here.get_value()));
        // The next frame removes the chart with its title: the focus moves to the button that shows it again.
        request_animation_frame(|| {
            request_animation_frame(|| browser::all(".hidden button").iter().for_each(browser::focus));
        });
    };
    let (first_of_all, last) = page.plan.with_untracked(|p| {
        let is = |panel: Option<&Panel>| panel.is_some_and(|panel| panel.id == chart);
        (is(p.top.first()), is(p.top.last()))
    });
    let on_top = page.plan.with_untracked(|p| p.top.iter().any(|panel| panel.id == chart));
    let put_first = page.view.with_untracked(|v| v.front.contains(&chart));
    let place = move |offered: bool, what: &'static str, words: &'static str, title: &'static str, by: i32| {
        let put = move |_| {
            close(page);
            here.with_value(|chart| page.put(chart, by));
        };
        offered.then(|| view! { <button data-do=what title=title on:click=put>{words}</button> })
    };
    let places = view! {
        {place(!first_of_all, "first", "Move to top", "Before all other charts", i32::MIN)}
        {place(on_top && !first_of_all, "earlier", "Move up", "One place up", -1)}
        {place(on_top && !last, "later", "Move down", "One place down", 1)}
        {place(put_first, "own-place", "Reset position", "Move to its default position", 0)}
    };
    let alert_on = alert::address(page, &chart);
    let link = move |live: bool| {
        if let Some(menu) = open(page) {
            did.set(take::link(page, &menu, live));
        }
    };
    view! {
        <div class="take">
            <button node_ref=first data-do="table" title="The drawn values as rows" on:click=table>"Table"</button>
            <button data-do="about" title=shortcuts::title("Meaning, unit, source and names", &[Action::About]) on:click=about>"About this chart"</button>
            <button data-do="png" title="PNG picture with title, source and span" on:click=move |_| picture(false)>"PNG"</button>
            <button data-do="svg" title="SVG picture with title, source and span" on:click=move |_| picture(true)>"SVG"</button>
            <CsvOffer chart=chart.clone() did/>
            <button data-do="link" title="Copy a link to this moment" on:click=move |_| link(false)>"Copy link"</button>
            <button data-do="live-link" title="Copy a link that stays live" on:click=move |_| link(true)>"Live link"</button>
            {alert_on.map(|to| view! { <a data-do="alert" href=to title="Create a rule with a threshold for this chart">"Alert on this"</a> })}
            {places}
            <button data-do="hide" title="Hide; restore it from the line at the top" on:click=hide>"Hide this chart"</button>
        </div>
        <p class="did" role="status">{did}</p>
        <Over chart=chart.clone()/>
        <OwnCard chart=chart.clone() did/>
        <OneSeries chart did/>
    }
}

/// The choice of another chart to draw over this one.
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
        page.step(|v| {
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

/// The name of a card and its removal. For another chart, the choice of a card to which its series are added.
#[component]
fn OwnCard(chart: String, did: RwSignal<String>) -> impl IntoView {
    let board = expect_context::<Board>();
    let page = board.page;
    let all = page.view.with_untracked(|v| card::cards(&v.cards));
    if let Some(own) = all.iter().find(|card| card.id() == chart) {
        let (name, here) = (own.name.clone(), StoredValue::new(chart));
        let rename = move |event| {
            close(page);
            here.with_value(|chart| page.change_card(chart, Some(&event_target_value(&event))));
        };
        let remove = move |_| {
            close(page);
            here.with_value(|chart| page.change_card(chart, None));
        };
        return view! {
            <label>
                "Name of this card"
                <input id="card-name" value=name maxlength=card::MAX_NAME_CHARS.to_string() autocomplete="off" on:change=rename/>
            </label>
            <div class="take"><button data-do="remove-card" title="Its series stay in their own charts" on:click=remove>"Remove this card"</button></div>
        }
        .into_any();
    }
    let options = all.iter().map(|card| view! { <option value=card.id()>{card.name.clone()}</option> }).collect_view();
    let chosen = move |event| {
        let to = event_target_value(&event);
        let shown = board.drawn().panels.iter().find(|p| p.id == chart).map(|p| p.picture.shown()).unwrap_or_default();
        let known = all.iter().find(|card| card.id() == to).map(|card| card.name.as_str());
        did.set(match page.add_to_card(known, &shown) {
            Ok(name) => format!("Added to the card {name}, among the first charts"),
            Err(sentence) => sentence,
        });
    };
    view! {
        <label title="A card is a chart of your own, with series of several charts">
            "Add the shown series to a card"
            <select id="card" on:change=chosen>
                <option value="">"choose"</option>
                <option value="new">"a new card"</option>
                {options}
            </select>
        </label>
    }
    .into_any()
}

/// The choices for a single series, which are also on its label. Nothing is shown for a chart with one series.
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
        board.page.step(|v| {
            v.only.retain(|(c, _)| *c != chart);
            v.off.retain(|(c, _)| *c != chart);
            v.pin.clear();
        });
        did.set("Reset".into());
    };
    let button = move |what: &'static str, words: &'static str, title: &'static str, choice: Choice| {
        view! { <button data-do=what title=title on:click=move |_| choose(choice)>{words}</button> }
    };
    Some(view! {
        <label title="On its label: click, ctrl-click, shift-click">
            "Series"
            <select node_ref=select id="one">{options}</select>
        </label>
        <div class="take">
            {button("alone", "Only this", "Show only this series, or all again", Choice::Isolate)}
            {button("off", "Hide", "Hide or show this series", Choice::Hide)}
            {button("pin", "Highlight everywhere", "Highlight it in all charts, or not", Choice::Pin)}
            <button data-do="series" title="Reset all series" on:click=alike>"Reset"</button>
        </div>
    })
}

/// Applies a choice to a series of a chart, and returns the series' new state in words.
fn with_series(board: Board, chart: &str, i: usize, choice: Choice) -> String {
    let name = board.series_name(chart, i).unwrap_or_default();
    series::choose(board, chart, i, choice);
    let view = board.page.view_now();
    let here = |list: &[(String, String)]| list.iter().any(|(c, n)| c == chart && *n == name);
    let state = match choice {
        Choice::Isolate if here(&view.only) => "alone",
        Choice::Hide if here(&view.off) => "hidden",
        Choice::Pin if view.pin.contains(&name) => "followed",
        _ => "default",
    };
    format!("{name}: {state}")
}

/// Closes the menu after a click or a focus elsewhere. The listener ends with the calling component.
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

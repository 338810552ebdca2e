//! What a chart offers, under its title: its table, what can be taken away, another chart over it,
//! its series one by one. One menu for all charts:
//! it moves to the one that is asked, so that Tab goes from the title into it and on.

use super::series::{self, Choice};
use super::{roving, table, take};
use crate::page::Page;
use crate::widgets::dom;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement, HtmlSelectElement};

/// The menu, where it is open.
fn open() -> Option<Element> {
    dom::by_id("menu").filter(|menu| !menu.has_attribute("hidden"))
}

/// The title of the chart that the menu belongs to.
fn title(menu: &Element) -> Option<HtmlElement> {
    menu.closest("article").ok()??.query_selector("h3 button").ok()??.dyn_into().ok()
}

/// Closes it; true when it was open. The keys go back to the title where they were within.
pub fn close() -> bool {
    let Some(menu) = open() else { return false };
    let within = dom::document().active_element().is_some_and(|e| menu.contains(Some(&e)));
    if let Some(title) = title(&menu) {
        dom::set(&title, "aria-expanded", "false");
        if within {
            // A focus is never refused.
            let _ = title.focus();
        }
    }
    dom::set_hidden(&menu, true);
    true
}

/// The keys went to another element: outside of the menu it has no place any more.
pub fn left_for(target: &Element) {
    if let Some(menu) = open().filter(|menu| !menu.contains(Some(target)))
        && title(&menu).is_none_or(|title| !title.contains(Some(target)))
    {
        close();
    }
}

/// Opens it for the chart that has the keys, or is pointed at.
pub fn by_key(page: Page) {
    let pointed = || {
        let id = page.board.borrow().hover.as_ref().map(|h| h.panel.clone())?;
        page.board.borrow().panels.iter().find(|p| p.id == id).map(|p| p.article.clone())
    };
    let title = roving::focused().or_else(pointed).and_then(|a| a.query_selector("h3 button").ok().flatten());
    if let Some(title) = title {
        toggle(page, &title);
    }
}

/// Opens it under a title, or closes it there.
pub fn toggle(page: Page, title: &Element) {
    let Some(article) = title.closest("article").ok().flatten() else { return };
    let again = open().is_some_and(|menu| article.contains(Some(&menu)));
    close();
    if again {
        return;
    }
    let chart = article.get_attribute("data-panel").unwrap_or_default();
    // It went with its chart where that went.
    let menu = dom::by_id("menu").unwrap_or_else(|| {
        let menu = dom::add(&article, "div", "menu", "");
        menu.set_id("menu");
        dom::set(&menu, "role", "dialog");
        menu
    });
    if let Some(header) = article.query_selector("header").ok().flatten() {
        // It stands on the page, and may stand anywhere else.
        let _ = header.after_with_node_1(&menu);
    }
    menu.set_text_content(None);
    dom::set(&menu, "aria-label", &format!("{}: more", title.text_content().unwrap_or_default()));
    dom::set(&menu, "data-chart", &chart);
    dom::set(title, "aria-expanded", "true");
    fill(page, &menu, &chart);
    dom::set_hidden(&menu, false);
    if let Some(first) = menu.query_selector("button").ok().flatten() {
        let _ = first.unchecked_into::<HtmlElement>().focus();
    }
}

fn button(parent: &Element, what: &str, words: &str, title: &str) {
    let button = dom::add(parent, "button", "", words);
    dom::set(&button, "data-do", what);
    dom::set(&button, "title", title);
}

fn fill(page: Page, menu: &Element, chart: &str) {
    let take = dom::add(menu, "div", "take", "");
    button(&take, "table", "Table", "The values that are drawn, in rows");
    button(&take, "png", "PNG", "A picture with title, source and span");
    button(&take, "svg", "SVG", "The same as lines");
    take::offer_csv(page, &take, chart);
    button(&take, "link", "Copy link", "The address of what is seen");
    dom::set(&dom::add(menu, "p", "did", ""), "role", "status");
    choose_other(page, menu, chart);
    choose_series(page, menu, chart);
}

/// What a person does with single series; the same as on their labels.
fn choose_series(page: Page, menu: &Element, chart: &str) {
    let board = page.board.borrow();
    let names = board.panels.iter().find(|p| p.id == chart).map(|p| &p.picture.names).filter(|n| n.len() > 1);
    let Some(names) = names else { return };
    let label = dom::add(menu, "label", "", "One of its series");
    dom::set(&label, "title", "On its label: click, ctrl-click, shift-click");
    let select = dom::add(&label, "select", "", "");
    select.set_id("one");
    for (i, name) in names.iter().enumerate() {
        dom::set(&dom::add(&select, "option", "", &name.full), "value", &i.to_string());
    }
    let choices = dom::add(menu, "div", "take", "");
    for (what, words, title) in [
        ("alone", "Alone", "This series alone in its chart, or all again"),
        ("off", "Hide", "Out of sight, or back"),
        ("pin", "Follow", "Followed through all charts, or not"),
        ("series", "All alike", "All of them as they were"),
    ] {
        button(&choices, what, words, title);
    }
}

/// Does something with the series that is chosen in the menu; says what came of it.
fn with_series(page: Page, menu: &Element, chart: &str, choice: Choice) -> String {
    let select = menu.query_selector("#one").ok().flatten().and_then(|s| s.dyn_into::<HtmlSelectElement>().ok());
    let Some(i) = select.and_then(|s| s.value().parse::<usize>().ok()) else { return String::new() };
    let name = {
        let board = page.board.borrow();
        board.panels.iter().find(|p| p.id == chart).and_then(|p| p.picture.names.get(i).map(|n| n.full.clone()))
    };
    series::choose(page, chart, i, choice);
    let (view, name) = (page.view_now(), name.unwrap_or_default());
    let here = |list: &[(String, String)]| list.iter().any(|(c, n)| c == chart && *n == name);
    let state = match choice {
        Choice::Isolate if here(&view.only) => "alone",
        Choice::Hide if here(&view.off) => "hidden",
        Choice::Pin if view.pin.contains(&name) => "followed",
        _ => "as the others",
    };
    format!("{name}: {state}")
}

/// Another chart over this one.
fn choose_other(page: Page, menu: &Element, chart: &str) {
    let label = dom::add(menu, "label", "", "Draw another chart over this one");
    let select = dom::add(&label, "select", "", "");
    select.set_id("over");
    let view = page.view_now();
    let over = view.over.iter().find(|(on, _)| on == chart).map(|(_, other)| other);
    dom::set(&dom::add(&select, "option", "", "none"), "value", "");
    let store = page.store.borrow();
    let charts = store.source(view.source.as_deref()).map(|s| &s.charts);
    for c in &store.catalog.layout.charts {
        let has = charts.and_then(|all| all.get(&c.id)).is_some_and(|m| !m.lines.is_empty());
        if has && c.id != chart {
            let option = dom::add(&select, "option", "", &c.title);
            dom::set(&option, "value", &c.id);
            if over == Some(&c.id) {
                dom::set(&option, "selected", "");
            }
        }
    }
}

/// Another chart was chosen to lie over the menu's own.
pub fn chose_other(page: Page, other: String) {
    let Some(chart) = chart() else { return };
    page.change(|v| {
        v.over.retain(|(on, _)| *on != chart);
        if !other.is_empty() {
            v.over.push((chart, other));
        }
    });
    close();
}

/// The chart that the menu belongs to.
fn chart() -> Option<String> {
    open()?.get_attribute("data-chart")
}

/// Something of the menu was chosen.
pub fn chose(page: Page, what: &str) {
    let (Some(menu), Some(chart)) = (open(), chart()) else { return };
    let did = match what {
        "png" => take::picture(page, &chart, false),
        "svg" => take::picture(page, &chart, true),
        "link" => take::link(page, &menu),
        "table" => {
            close();
            return table::open(page, &chart);
        }
        "alone" => with_series(page, &menu, &chart, Choice::Isolate),
        "off" => with_series(page, &menu, &chart, Choice::Hide),
        "pin" => with_series(page, &menu, &chart, Choice::Pin),
        _ => {
            page.change(|v| {
                v.only.retain(|(c, _)| *c != chart);
                v.off.retain(|(c, _)| *c != chart);
                v.pin.clear();
            });
            "All alike".into()
        }
    };
    if let Some(place) = menu.query_selector(".did").ok().flatten() {
        place.set_text_content(Some(&did));
    }
}

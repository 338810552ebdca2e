//! What the tools of the bar and of a chart's title do: a typed span, an earlier period to compare with, what changed,
//! another chart over this one. Heard once for the whole page: an element says with `data-do` what it is for.

use super::changed;
use super::picture::Rows;
use crate::page::{Page, browser, now, offset};
use crate::range::{self, Asked};
use crate::widgets::dom;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;
use web_sys::{Element, Event, HtmlElement, HtmlInputElement, HtmlSelectElement};

/// Hears clicks and choices from now on.
pub fn listen(page: Page) {
    let Some(body) = dom::document().body() else { return };
    let heard = Closure::<dyn FnMut(Event)>::new(move |event: Event| {
        let target = event.target().and_then(|t| t.dyn_into::<Element>().ok());
        let Some(target) = target else { return };
        match event.type_().as_str() {
            "change" => chosen(page, &target),
            _ => clicked(page, &target),
        }
    });
    // It lives as long as the page.
    let callback: js_sys::Function = heard.into_js_value().unchecked_into();
    for name in ["click", "change"] {
        // A listener is never refused.
        let _ = body.add_event_listener_with_callback(name, &callback);
    }
}

fn chosen(page: Page, target: &Element) {
    if let Some(select) = target.dyn_ref::<HtmlSelectElement>() {
        let value = select.value();
        match target.id().as_str() {
            "versus" => page.change(|v| v.versus = if value == "before" { Some(0) } else { range::length(&value) }),
            "over" => {
                let chart = target.get_attribute("data-chart").unwrap_or_default();
                page.change(|v| {
                    v.over.retain(|(on, _)| *on != chart);
                    if !value.is_empty() {
                        v.over.push((chart, value));
                    }
                });
                close("menu");
            }
            _ => {}
        }
    } else if let Some(input) = target.dyn_ref::<HtmlInputElement>().filter(|i| i.id() == "range") {
        typed(page, input);
    }
}

/// Shows in the bar what is compared with, ms earlier.
pub fn reflect(versus: Option<i64>) {
    let select = dom::by_id("versus").and_then(|e| e.dyn_into::<HtmlSelectElement>().ok());
    if let Some(select) = select {
        select
            .set_value(&versus.map_or_else(String::new, |ms| if ms == 0 { "before".into() } else { range::name(ms) }));
    }
}

/// A span was typed.
fn typed(page: Page, input: &HtmlInputElement) {
    let text = input.value();
    let ahead = page.server_now() - now();
    let wrong = match range::read(&text, now() + ahead, &offset) {
        _ if text.trim().is_empty() => String::new(),
        Err(words) => {
            // What is typed next takes its place.
            input.select();
            words
        }
        Ok(asked) => {
            page.remember();
            match asked {
                Asked::Last(ms) => page.change(|v| (v.window, v.frozen) = (ms, None)),
                Asked::Span(from, to) => page.show(from, to),
            }
            // Keys mean the page again.
            let _ = input.blur();
            String::new()
        }
    };
    dom::set(input, "aria-invalid", if wrong.is_empty() { "false" } else { "true" });
    if let Some(place) = dom::by_id("wrong") {
        place.set_text_content(Some(&wrong));
    }
}

fn clicked(page: Page, target: &Element) {
    let button = target.closest("[data-do]").ok().flatten();
    let what = button.as_ref().and_then(|b| b.get_attribute("data-do")).unwrap_or_default();
    let inside = |selector: &str| target.closest(selector).ok().flatten().is_some();
    if !inside("#menu") && what != "menu" {
        close("menu");
    }
    let Some(button) = button else { return };
    match what.as_str() {
        "tools" => {
            if let Some(tools) = dom::by_id("tools") {
                let _ = tools.class_list().toggle("open");
            }
        }
        "changed" => changed::toggle(page),
        "close" => drop(close("sheet")),
        "chart" => changed::open_chart(&button),
        "rows" => {
            let choice = button.get_attribute("data-rows").unwrap_or_default();
            page.change(|v| v.heat = Rows::read(&v.heat).with(&choice).write());
        }
        "menu" => menu(page, &button),
        "series" => {
            let chart = button.get_attribute("data-chart").unwrap_or_default();
            page.change(|v| {
                v.only.retain(|(c, _)| *c != chart);
                v.off.retain(|(c, _)| *c != chart);
                v.pin.clear();
            });
            close("menu");
        }
        _ => {}
    }
}

/// Closes what lies over the page; true when something did.
pub fn close_all() -> bool {
    ["menu", "sheet"].map(close).contains(&true)
}

fn close(id: &str) -> bool {
    let open = dom::by_id(id).filter(|e| !e.has_attribute("hidden"));
    if let Some(element) = &open {
        dom::set_hidden(element, true);
    }
    open.is_some()
}

/// The tools of one chart, under its title.
fn menu(page: Page, title: &Element) {
    let Some(menu) = dom::by_id("menu") else { return };
    let article = title.closest("article").ok().flatten();
    let chart = article.and_then(|a| a.get_attribute("data-panel")).unwrap_or_default();
    let again = menu.get_attribute("data-chart").as_ref() == Some(&chart) && !menu.has_attribute("hidden");
    dom::set_hidden(&menu, again);
    if again {
        return;
    }
    dom::set(&menu, "data-chart", &chart);
    menu.set_text_content(None);
    let label = dom::add(&menu, "label", "", "Draw another chart over this one");
    let select = dom::add(&label, "select", "", "");
    select.set_id("over");
    dom::set(&select, "data-chart", &chart);
    let view = page.view_now();
    let over = view.over.iter().find(|(on, _)| *on == chart).map(|(_, other)| other.clone());
    let none = dom::add(&select, "option", "", "none");
    dom::set(&none, "value", "");
    let store = page.store.borrow();
    let charts = store.source(view.source.as_deref()).map(|s| &s.charts);
    for c in &store.catalog.layout.charts {
        let has = charts.and_then(|all| all.get(&c.id)).is_some_and(|m| !m.lines.is_empty());
        if has && c.id != chart {
            let option = dom::add(&select, "option", "", &c.title);
            dom::set(&option, "value", &c.id);
            if over.as_ref() == Some(&c.id) {
                dom::set(&option, "selected", "");
            }
        }
    }
    let here = |list: &[(String, String)]| list.iter().any(|(c, _)| *c == chart);
    if here(&view.only) || here(&view.off) || !view.pin.is_empty() {
        let all = dom::add(&menu, "button", "", "Show all series alike");
        dom::set(&all, "data-do", "series");
        dom::set(&all, "data-chart", &chart);
    } else {
        let hint = "Its labels: click isolates a series, ctrl-click hides it, shift-click follows it in all charts.";
        dom::add(&menu, "p", "", hint);
    }
    let (rect, (width, _)) = (title.get_bounding_client_rect(), dom::viewport());
    let left = rect.left().min(width - menu.get_bounding_client_rect().width() - 12.0).max(12.0);
    let top = rect.bottom() + 6.0 + browser().scroll_y().unwrap_or(0.0);
    dom::set_style(&menu, "left", &format!("{}px", left as i32));
    dom::set_style(&menu, "top", &format!("{}px", top as i32));
    if let Some(select) = select.dyn_ref::<HtmlElement>() {
        // A focus is never refused.
        let _ = select.focus();
    }
}

/// Puts the keys into the field for a typed span.
pub fn focus_range() {
    if let Some(tools) = dom::by_id("tools") {
        let _ = tools.class_list().add_1("open");
    }
    if let Some(field) = dom::by_id("range").and_then(|e| e.dyn_into::<HtmlInputElement>().ok()) {
        let _ = field.focus();
        field.select();
    }
}

//! What the tools of the bar and of a chart's title do: a typed span, an earlier period to compare with, what changed,
//! what the menu of a chart offers. Heard once for the whole page: an element says with `data-do` what it is for.

use super::picture::Rows;
use super::{changed, menu, pointer, roving, table, take};
use crate::page::{Page, now, offset};
use crate::range::{self, Asked};
use crate::recording;
use crate::widgets::{bar, dialog, dom, help, player};
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;
use web_sys::{Element, Event, HtmlInputElement, HtmlSelectElement, MouseEvent};

/// Hears clicks and choices from now on.
pub fn listen(page: Page) {
    let Some(body) = dom::document().body() else { return };
    // A click may move the focus, which is heard in the midst of it.
    let heard = Closure::<dyn Fn(Event)>::new(move |event: Event| {
        let target = event.target().and_then(|t| t.dyn_into::<Element>().ok());
        let Some(target) = target else { return };
        match event.type_().as_str() {
            "change" => chosen(page, &target),
            "focusin" => {
                menu::left_for(&target);
                roving::stop_at(&target);
            }
            _ => clicked(page, &target, event.dyn_ref::<MouseEvent>().is_some_and(MouseEvent::shift_key)),
        }
    });
    // It lives as long as the page.
    let callback: js_sys::Function = heard.into_js_value().unchecked_into();
    for name in ["click", "change", "focusin"] {
        // A listener is never refused.
        let _ = body.add_event_listener_with_callback(name, &callback);
    }
}

fn chosen(page: Page, target: &Element) {
    if let Some(select) = target.dyn_ref::<HtmlSelectElement>() {
        let value = select.value();
        match target.id().as_str() {
            "versus" => page.change(|v| v.versus = if value == "before" { Some(0) } else { range::length(&value) }),
            "over" => menu::chose_other(page, value),
            "machine" => page.show_source(value),
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
    let wrong = match range::read(&text, now() + ahead, page.longest(), &offset) {
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

fn clicked(page: Page, target: &Element, shift: bool) {
    let button = target.closest("[data-do]").ok().flatten();
    let what = button.as_ref().and_then(|b| b.get_attribute("data-do")).unwrap_or_default();
    if what != "menu" {
        menu::left_for(target);
    }
    let Some(button) = button else { return };
    match what.as_str() {
        "tools" => {
            if let Some(tools) = dom::by_id("tools") {
                let _ = tools.class_list().toggle("open");
            }
        }
        "freeze" => page.toggle_frozen(),
        "window" => bar::choose(page, &button),
        "theme" => page.toggle_theme(),
        "play" => page.play(|p| p.toggle()),
        "speed" => player::change_speed(page, shift),
        "right" => page.set_right(),
        "changed" => changed::toggle(page),
        "close" => drop(close("sheet")),
        "record" => recording::save(page),
        "open" => recording::choose(page),
        "chart" => changed::open_chart(&button),
        "rows" => {
            let choice = button.get_attribute("data-rows").unwrap_or_default();
            page.change(|v| v.heat = Rows::read(&v.heat).with(&choice).write());
        }
        "menu" => menu::toggle(page, &button),
        "dismiss" => dialog::close(),
        "copy-table" => table::copy(),
        "csv" => take::save_csv(page, &button),
        "help" => list_keys(page),
        "png" | "svg" | "link" | "table" | "alone" | "off" | "pin" | "series" => menu::chose(page, &what),
        _ => {}
    }
}

/// Closes what lies over the page; true when something did.
pub fn close_all() -> bool {
    pointer::cancel() | menu::close() | close("sheet")
}

fn close(id: &str) -> bool {
    let open = dom::by_id(id).filter(|e| !e.has_attribute("hidden"));
    if let Some(element) = &open {
        dom::set_hidden(element, true);
    }
    open.is_some()
}

/// Lists all keys.
pub fn list_keys(page: Page) {
    help::open(page.is_recorded());
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

//! The root: the page's state, what listens to the window, and the parts in order.

use crate::address::Tone;
use crate::link;
use crate::page::{LinkState, Page, browser, preferred};
use crate::pages::overview::overview;
use crate::panels::board::Board;
use crate::panels::{pointer, take, tools};
use crate::recording;
use crate::widgets::banner::banner;
use crate::widgets::bar::bar;
use crate::widgets::player::player_bar;
use crate::widgets::tooltip::tooltip;
use crate::widgets::{dialog, dom, live};
use leptos::ev;
use leptos::prelude::*;
use leptos::tachys::html::InertElement;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;

/// The whole page.
#[component]
pub fn App() -> impl IntoView {
    let page = Page::from_address();
    mark(page);
    listen(page);
    live::then(move || {
        pointer::listen(page);
        tools::listen(page);
    });
    watch_sight(page);
    recording::listen(page);
    link::connect(page);
    set_interval(move || link::beat(page), Duration::from_secs(1));
    view! {
        {bar()}
        {overview()}
        {player_bar()}
        {banner()}
        {tooltip()}
        {[DIALOG, HOW, SHEET].map(InertElement::new)}
    }
}

const DIALOG: &str = "<dialog id=dialog class=dialog aria-labelledby=dialog-title></dialog>";
const HOW: &str = "<p id=how class=away>\
    Left and right read values, up and down go to other charts, m opens the menu, question mark lists all keys.\
</p>";
const SHEET: &str = "<aside id=sheet class=sheet aria-label='What changed' hidden></aside>";

/// Link and theme stand on the root element, for the stylesheet, tests and people's own scripts.
fn mark(page: Page) {
    let Some(root) = browser().document().and_then(|d| d.document_element()) else { return };
    live::attribute(&root, "data-link", move || {
        let frozen = page.view.with(|v| v.frozen.is_some());
        let state = match page.state.get() {
            LinkState::Connecting => "connecting",
            LinkState::Live if frozen => "frozen",
            LinkState::Live if page.player.with(Option::is_some) => "recorded",
            LinkState::Live if page.silent.get() => "silent",
            LinkState::Live => "live",
            LinkState::Reconnecting => "reconnecting",
            LinkState::Lost => "lost",
        };
        state.into()
    });
    live::follow(move || tools::reflect(page.view.with(|v| v.versus)));
    live::follow(move || {
        dom::set(&root, "data-theme", page.tone.get().name());
        page.redraw();
    });
}

fn listen(page: Page) {
    let on_key = window_event_listener(ev::keydown, move |event| {
        let key = event.key();
        // Letters are the same with capitals on.
        let key = if key.len() == 1 { key.to_ascii_lowercase() } else { key };
        if dialog::is_open() {
            if key == "Escape" || key == "?" {
                dialog::close();
                event.prevent_default();
            }
            return;
        }
        let again = event.repeat() && !(key.starts_with("Arrow") || "+-=[]".contains(&key));
        if event.ctrl_key() || event.meta_key() || event.alt_key() || again {
            return;
        }
        let focused = event.target().and_then(|t| t.dyn_into::<web_sys::Element>().ok());
        let tag = focused.as_ref().map(|e| e.tag_name()).unwrap_or_default();
        let plot = focused.as_ref().is_some_and(|e| e.class_list().contains("plot"));
        if matches!(tag.as_str(), "INPUT" | "SELECT") && key == "Escape" {
            if !tools::close_all() {
                // Keys mean the page again.
                let _ = focused.map(|e| e.unchecked_into::<web_sys::HtmlElement>().blur());
            }
            return;
        }
        // What a focused element does with the key itself.
        let theirs = match tag.as_str() {
            "INPUT" | "SELECT" => true,
            "BUTTON" | "SUMMARY" | "A" => matches!(key.as_str(), " " | "Enter"),
            _ => false,
        };
        // Elsewhere these scroll the page, or mean nothing.
        let at_plot = plot || !matches!(key.as_str(), "Home" | "End" | "Enter" | "ArrowUp" | "ArrowDown");
        if !theirs && at_plot && page.key(&key, event.shift_key()) {
            event.prevent_default();
        }
    });
    let on_resize = window_event_listener(ev::resize, move |_| Board::resized(page));
    on_cleanup(move || {
        on_key.remove();
        on_resize.remove();
    });
    let fonts = Closure::<dyn FnMut()>::new(move || Board::retype(page));
    // Paper is white, has a width of its own, and says whose the numbers are and when.
    let print = Closure::<dyn FnMut(web_sys::Event)>::new(move |event: web_sys::Event| {
        let own = page.view.with_untracked(|v| v.theme).unwrap_or_else(preferred);
        let paper = event.type_() == "beforeprint";
        page.tone.set(if paper { Tone::Light } else { own });
        if let Some(body) = browser().document().and_then(|d| d.body()) {
            // The name is one.
            let _ = if paper {
                body.set_attribute("data-paper", &take::words(page))
            } else {
                body.remove_attribute("data-paper")
            };
        }
        Board::print(page, paper);
    });
    let document = browser().document().expect("a page has a document");
    let _ = document.fonts().add_event_listener_with_callback("loadingdone", fonts.as_ref().unchecked_ref());
    for name in ["beforeprint", "afterprint"] {
        // A listener is never refused.
        let _ = browser().add_event_listener_with_callback(name, print.as_ref().unchecked_ref());
    }
    // They live as long as the page.
    fonts.forget();
    print.forget();
}

/// Hidden by the tab or by what embeds the page: `visibilitychange` alone misses a covered or collapsed frame.
fn watch_sight(page: Page) {
    let (tab, frame) = (Rc::new(Cell::new(true)), Rc::new(Cell::new(true)));
    let document = browser().document().expect("a page has a document");
    let seen = {
        let (tab, frame) = (tab.clone(), frame.clone());
        move || link::set_hidden(page, !(tab.get() && frame.get()))
    };
    let changed = {
        let (document, seen) = (document.clone(), seen.clone());
        Closure::<dyn FnMut()>::new(move || {
            tab.set(!document.hidden());
            seen();
        })
    };
    // Both callbacks live as long as the page.
    let callback: js_sys::Function = changed.into_js_value().unchecked_into();
    // A listener is never refused.
    let _ = document.add_event_listener_with_callback("visibilitychange", &callback);
    let crossing = Closure::<dyn FnMut(js_sys::Array)>::new(move |entries: js_sys::Array| {
        if let Ok(entry) =
            entries.get(entries.length().saturating_sub(1)).dyn_into::<web_sys::IntersectionObserverEntry>()
        {
            frame.set(entry.is_intersecting());
            seen();
        }
    });
    let callback: js_sys::Function = crossing.into_js_value().unchecked_into();
    if let (Ok(observer), Some(root)) = (web_sys::IntersectionObserver::new(&callback), document.document_element()) {
        observer.observe(&root);
    }
}

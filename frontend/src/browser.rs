//! The browser around the page: window, clocks, and the few elements that are not in the document. Only this file makes
//! such elements.

use crate::address::Tone;
use charts::axis::Zone;
use wasm_bindgen::prelude::*;
use web_sys::{Document, Element, HtmlElement, HtmlInputElement, HtmlTextAreaElement, Storage, Window};

/// The browser's window; a page always has one.
pub fn window() -> Window {
    web_sys::window().expect("a page has a window")
}

/// The document of the page.
pub fn document() -> Document {
    window().document().expect("a page has a document")
}

/// The element with the id `id`.
pub fn by_id(id: &str) -> Option<Element> {
    document().get_element_by_id(id)
}

/// The element that has the focus.
pub fn focused() -> Option<Element> {
    document().active_element()
}

/// Keeps the focus over the change that follows in this frame. An element that was moved loses the focus and gets it
/// back. For an element that is gone, the one that `heir` finds gets it. Nothing scrolls.
pub fn keep_focus(heir: impl FnOnce(&Element) -> Option<Element> + 'static) {
    let is_nowhere = || focused().is_none_or(|element| element.tag_name() == "BODY");
    let Some(held) = focused().filter(|_| !is_nowhere()) else { return };
    leptos::task::spawn_local(async move {
        // The elements have followed the change then, and no key was read.
        leptos::task::tick().await;
        if !is_nowhere() {
            return;
        }
        let next = if held.is_connected() { Some(held) } else { heir(&held) };
        if let Some(element) = next.and_then(|next| next.dyn_into::<HtmlElement>().ok()) {
            let options = web_sys::FocusOptions::new();
            options.set_prevent_scroll(true);
            // A failure is not reported; the focus then stays where it is.
            let _ = element.focus_with_options(&options);
        }
    });
}

/// All elements that a selector finds, in the order of the document; empty when the selector is invalid.
pub fn all(selector: &str) -> Vec<Element> {
    let Ok(found) = document().query_selector_all(selector) else { return Vec::new() };
    (0..found.length()).filter_map(|i| found.item(i)?.dyn_into().ok()).collect()
}

/// Moves the focus to an element. The focus stays where it is when the element cannot take it.
pub fn focus(element: &Element) {
    if let Some(element) = element.dyn_ref::<HtmlElement>() {
        // A failure is not reported; the focus then stays where it is.
        let _ = element.focus();
    }
}

/// The theme that the system prefers.
pub fn preferred() -> Tone {
    let bright = window().match_media("(prefers-color-scheme: light)").ok().flatten().is_some_and(|m| m.matches());
    if bright { Tone::Light } else { Tone::Dark }
}

/// Milliseconds since the page was loaded, by the monotonic clock.
pub fn performance() -> f64 {
    window().performance().map_or(0.0, |p| p.now())
}

/// Milliseconds since the epoch by this machine's clock.
pub fn now() -> i64 {
    js_sys::Date::now() as i64
}

/// Key in the browser's storage while times are in UTC.
const UTC_KEY: &str = "watchglass-utc";

thread_local! {
    /// The value in the browser's storage, read once.
    static UTC: std::cell::LazyCell<bool> =
        std::cell::LazyCell::new(|| storage().is_some_and(|kept| kept.get_item(UTC_KEY).ok().flatten().is_some()));
}

/// Whether times are shown in UTC in place of the reader's zone.
pub fn is_utc() -> bool {
    UTC.with(|utc| **utc)
}

/// Shows all times in UTC, or in the reader's zone again. The page reloads, so that no time keeps its old zone. A
/// browser without storage keeps its zone.
pub fn show_utc(utc: bool) {
    let kept = storage().map(|kept| if utc { kept.set_item(UTC_KEY, "1") } else { kept.remove_item(UTC_KEY) });
    if kept.is_some_and(|kept| kept.is_ok()) {
        // If the browser refuses, the user can still do it.
        let _ = window().location().reload();
    }
}

/// Whether the browser's locale writes times with twelve hours.
pub fn has_twelve_hours() -> bool {
    let hours = js_sys::Object::new();
    let _ = js_sys::Reflect::set(&hours, &"hour".into(), &"numeric".into());
    let known = js_sys::Intl::DateTimeFormat::new(&js_sys::Array::new(), &hours).resolved_options();
    let cycle = js_sys::Reflect::get(&known, &"hourCycle".into()).ok().and_then(|cycle| cycle.as_string());
    cycle.is_some_and(|cycle| cycle == "h11" || cycle == "h12")
}

/// The reader's own zone at an instant (ms since the epoch): local time minus UTC, in ms.
fn own_offset(t: i64) -> i64 {
    let date = js_sys::Date::new(&JsValue::from_f64(t as f64));
    -(date.get_timezone_offset() as i64) * 60_000
}

/// Whether the reader's own zone differs from UTC, now or at an instant of the charts; that is 0 before the first sample.
pub fn has_own_zone(t: i64) -> bool {
    own_offset(now()) != 0 || t > 0 && own_offset(t) != 0
}

/// Shown time minus UTC at an instant, in ms: that of the reader's zone, or 0 where times are shown in UTC.
pub fn offset(t: i64) -> i64 {
    if is_utc() { 0 } else { own_offset(t) }
}

/// The shown zone over a span (ms since the epoch), with the minute in which the clocks change in it.
pub fn zone_of(from: i64, to: i64) -> Zone {
    Zone::from_span((from, to), offset)
}

/// Width and height of the window in CSS pixels.
pub fn viewport() -> (f64, f64) {
    let size = |v: Result<JsValue, _>| v.ok().and_then(|v| v.as_f64()).unwrap_or(1000.0);
    (size(window().inner_width()), size(window().inner_height()))
}

/// The browser's storage for this page; None where the browser does not allow it.
pub fn storage() -> Option<Storage> {
    window().local_storage().ok().flatten()
}

/// Sets an attribute. It can fail only for an invalid name, and the names are constants.
pub fn set(element: &Element, name: &str, value: &str) {
    let _ = element.set_attribute(name, value);
}

/// Sets a property of an element's style. A browser ignores properties that it does not know.
pub fn set_style(element: &Element, name: &str, value: &str) {
    if let Some(element) = element.dyn_ref::<HtmlElement>() {
        let _ = element.style().set_property(name, value);
    }
}

/// Duration of the slide to a new place, in ms.
const SLIDE_MS: f64 = 240.0;

/// Animates the elements that match a selector to the positions of the change that follows in this frame. With
/// `prefers-reduced-motion` they move at once.
pub fn slide(selector: &str) {
    let is_still = window().match_media("(prefers-reduced-motion: reduce)").ok().flatten().is_some_and(|m| m.matches());
    if is_still {
        return;
    }
    let place = |element: &Element| {
        let rect = element.get_bounding_client_rect();
        (rect.x(), rect.y())
    };
    let before: Vec<_> = all(selector).into_iter().map(|element| (place(&element), element)).collect();
    leptos::task::spawn_local(async move {
        // The elements have followed the change then, and nothing is painted yet.
        leptos::task::tick().await;
        for ((x, y), element) in before.into_iter().filter(|(_, element)| element.is_connected()) {
            let (to_x, to_y) = place(&element);
            if (x, y) != (to_x, to_y) {
                let from = format!("translate({}px, {}px)", x - to_x, y - to_y);
                animate(&element, &from);
            }
        }
    });
}

/// Animates an element from a transform to where it is. A browser that cannot shows it there at once.
fn animate(element: &Element, from: &str) {
    let frames = js_sys::Object::new();
    let moves = js_sys::Array::of2(&from.into(), &"none".into());
    // An object accepts any property.
    let _ = js_sys::Reflect::set(&frames, &"transform".into(), &moves);
    let animate = js_sys::Reflect::get(element, &"animate".into()).ok().and_then(|of| of.dyn_into().ok());
    let _ = animate.map(|animate: js_sys::Function| animate.call2(element, &frames, &SLIDE_MS.into()));
}

/// Makes an element that is not in the document.
fn made<T: JsCast>(tag: &str) -> Option<T> {
    document().create_element(tag).ok()?.dyn_into().ok()
}

/// Makes a canvas that is not in the document.
pub fn canvas() -> Option<web_sys::HtmlCanvasElement> {
    made("canvas")
}

/// Lets the browser save the file at an address under `name`; an empty name stands for the one that the server sends.
/// When the server refuses, the page stays and shows no error page.
pub fn save(address: &str, name: &str) {
    if let Some(link) = made::<HtmlElement>("a") {
        set(&link, "href", address);
        set(&link, "download", name);
        link.click();
    }
}

/// Opens the browser's file dialog, and calls `chosen` with the file.
pub fn choose_file(chosen: impl FnOnce(web_sys::File) + 'static) {
    let Some(input) = made::<HtmlInputElement>("input") else { return };
    input.set_type("file");
    let files = input.clone();
    let on_change = Closure::once_into_js(move || {
        if let Some(file) = files.files().and_then(|files| files.get(0)) {
            chosen(file);
        }
    });
    input.set_onchange(Some(on_change.unchecked_ref()));
    input.click();
}

/// Copies a text to the clipboard; true when the browser did so. `near` is an element in the part of the page that can
/// have the focus now, for example the open dialog.
pub fn copy(text: &str, near: &Element) -> bool {
    // `navigator.clipboard` exists on https and loopback only, and many pages are opened by plain http.
    let Some(field) = made::<HtmlTextAreaElement>("textarea") else { return false };
    field.set_class_name("away");
    field.set_value(text);
    let before = focused();
    // A new element can always be appended.
    let _ = near.append_child(&field);
    field.select();
    let document: web_sys::HtmlDocument = document().unchecked_into();
    let done = document.exec_command("copy").unwrap_or(false);
    field.remove();
    before.iter().for_each(focus);
    done
}

//! The browser around the page: its window, its clocks, and the few elements that stand nowhere on the page. All of
//! these are made here and nowhere else.

use crate::address::Tone;
use wasm_bindgen::prelude::*;
use web_sys::{Document, Element, HtmlElement, HtmlInputElement, HtmlTextAreaElement, Storage, Window};

/// The browser's window; there is always one.
pub fn window() -> Window {
    web_sys::window().expect("a page has a window")
}

/// The page's document.
pub fn document() -> Document {
    window().document().expect("a page has a document")
}

/// The element of that id.
pub fn by_id(id: &str) -> Option<Element> {
    document().get_element_by_id(id)
}

/// The element that has the keys.
pub fn focused() -> Option<Element> {
    document().active_element()
}

/// All elements of a selector, in the order of the document.
pub fn all(selector: &str) -> Vec<Element> {
    let Ok(found) = document().query_selector_all(selector) else { return Vec::new() };
    (0..found.length()).filter_map(|i| found.item(i)?.dyn_into().ok()).collect()
}

/// Gives the keys to an element; where it cannot have them they stay.
pub fn focus(element: &Element) {
    if let Some(element) = element.dyn_ref::<HtmlElement>() {
        // A focus is never refused.
        let _ = element.focus();
    }
}

/// The theme that the system asks for.
pub fn preferred() -> Tone {
    let bright = window().match_media("(prefers-color-scheme: light)").ok().flatten().is_some_and(|m| m.matches());
    if bright { Tone::Light } else { Tone::Dark }
}

/// Milliseconds on the browser's fine clock, which nobody sets.
pub fn performance() -> f64 {
    window().performance().map_or(0.0, |p| p.now())
}

/// Milliseconds since the epoch by this machine's clock.
pub fn now() -> i64 {
    js_sys::Date::now() as i64
}

/// Local time minus UTC at an instant, ms.
pub fn offset(t: i64) -> i64 {
    let date = js_sys::Date::new(&JsValue::from_f64(t as f64));
    -(date.get_timezone_offset() as i64) * 60_000
}

/// Width and height of the window, CSS pixels.
pub fn viewport() -> (f64, f64) {
    let size = |v: Result<JsValue, _>| v.ok().and_then(|v| v.as_f64()).unwrap_or(1000.0);
    (size(window().inner_width()), size(window().inner_height()))
}

/// What this browser keeps for the page; none where nothing may be kept.
pub fn storage() -> Option<Storage> {
    window().local_storage().ok().flatten()
}

/// Sets an attribute; only names that are no attribute names are refused.
pub fn set(element: &Element, name: &str, value: &str) {
    let _ = element.set_attribute(name, value);
}

/// Sets a property of an element's style; what a browser does not understand it leaves out.
pub fn set_style(element: &Element, name: &str, value: &str) {
    if let Some(element) = element.dyn_ref::<HtmlElement>() {
        let _ = element.style().set_property(name, value);
    }
}

/// An element of its own, which stands nowhere.
fn made<T: JsCast>(tag: &str) -> Option<T> {
    document().create_element(tag).ok()?.dyn_into().ok()
}

/// A canvas to draw on that stands nowhere.
pub fn canvas() -> Option<web_sys::HtmlCanvasElement> {
    made("canvas")
}

/// Has the browser save what is at an address, under a name or (empty) under the one that the server says. What is
/// refused is not shown in the page's place.
pub fn save(address: &str, name: &str) {
    if let Some(link) = made::<HtmlElement>("a") {
        set(&link, "href", address);
        set(&link, "download", name);
        link.click();
    }
}

/// Lets a person choose a file.
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

/// Puts a text where pasting takes it from; true when the browser did. `near` is an element of the part of the page that
/// can have the keys at the moment.
pub fn copy(text: &str, near: &Element) -> bool {
    // `navigator.clipboard` is there on https and loopback only, and a page is often seen through neither.
    let Some(field) = made::<HtmlTextAreaElement>("textarea") else { return false };
    field.set_class_name("away");
    field.set_value(text);
    let before = focused();
    // An element that stands nowhere yet is taken.
    let _ = near.append_child(&field);
    field.select();
    let document: web_sys::HtmlDocument = document().unchecked_into();
    let done = document.exec_command("copy").unwrap_or(false);
    field.remove();
    before.iter().for_each(focus);
    done
}

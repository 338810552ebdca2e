//! Elements found, made and changed by hand: lighter than views of them.

use crate::page::browser;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement};

/// The page's document.
pub fn document() -> web_sys::Document {
    browser().document().expect("a page has a document")
}

/// The element of that id.
pub fn by_id(id: &str) -> Option<Element> {
    document().get_element_by_id(id)
}

/// The element at a selector below another, where the markup has one.
pub fn find(below: &Element, selector: &str) -> Element {
    below.query_selector(selector).ok().flatten().expect("the markup has it")
}

/// Appends an element with a class and a text, both of which may be empty.
pub fn add(parent: &Element, tag: &str, class: &str, text: &str) -> Element {
    let element = document().create_element(tag).expect("the tag is a name");
    if !class.is_empty() {
        element.set_class_name(class);
    }
    if !text.is_empty() {
        element.set_text_content(Some(text));
    }
    // An element that stands nowhere yet is taken.
    let _ = parent.append_child(&element);
    element
}

/// Sets an attribute; only names that are no attribute names are refused.
pub fn set(element: &Element, name: &str, value: &str) {
    let _ = element.set_attribute(name, value);
}

/// Shows or hides an element.
pub fn set_hidden(element: &Element, hidden: bool) {
    let _ = if hidden { element.set_attribute("hidden", "") } else { element.remove_attribute("hidden") };
}

/// Sets a property of an element's style; what a browser does not understand it leaves out.
pub fn set_style(element: &Element, name: &str, value: &str) {
    if let Some(element) = element.dyn_ref::<HtmlElement>() {
        let _ = element.style().set_property(name, value);
    }
}

/// Width and height of the window, CSS pixels.
pub fn viewport() -> (f64, f64) {
    let size = |v: Result<wasm_bindgen::JsValue, _>| v.ok().and_then(|v| v.as_f64()).unwrap_or(1000.0);
    (size(browser().inner_width()), size(browser().inner_height()))
}

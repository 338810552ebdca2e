//! The one dialog of the page, for a table and for the list of keys. The browser's own: the keys stay within, the rest of
//! the page is still, and where it is closed they go back to where they were.

use super::dom;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlDialogElement};

fn dialog() -> Option<HtmlDialogElement> {
    dom::by_id("dialog")?.dyn_into().ok()
}

/// Whether it is open.
pub fn is_open() -> bool {
    dialog().is_some_and(|d| d.open())
}

/// Opens it with a title and answers with the place for the rest.
pub fn open(title: &str) -> Option<Element> {
    let dialog = dialog()?;
    dialog.set_text_content(None);
    let head = dom::add(&dialog, "header", "", "");
    dom::add(&head, "h2", "", title).set_id("dialog-title");
    let close = dom::add(&head, "button", "", "✕");
    dom::set(&close, "data-do", "dismiss");
    dom::set(&close, "aria-label", "Close");
    let body = dom::add(&dialog, "div", "body", "");
    if !dialog.open() {
        // Refused only for one that is open in another way.
        let _ = dialog.show_modal();
    }
    Some(body)
}

/// Closes it.
pub fn close() {
    if let Some(dialog) = dialog() {
        dialog.close();
        dialog.set_text_content(None);
    }
}

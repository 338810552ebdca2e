//! What the bar and a chart's title offer: [`span`] a typed span and an earlier one to compare with, [`changed`] what
//! changed, [`menu`] what one chart offers, [`table`] it as a table, [`take`] what is taken away of it.

pub mod changed;
pub mod menu;
pub mod span;
pub mod table;
pub mod take;

use crate::browser;
use crate::gestures::pointer;
use crate::state::Page;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::HtmlInputElement;

/// Closes what lies over the page; true when something did.
pub fn close_all(page: Page) -> bool {
    let sheet = page.sheet.get_untracked();
    if sheet {
        page.sheet.set(false);
    }
    pointer::cancel() | menu::close(page) | sheet
}

/// Puts the keys into the field for a typed span, which a narrow page shows when it is asked for.
pub fn focus_range(page: Page) {
    page.tools.set(true);
    // The field is hidden until that is seen to.
    request_animation_frame(|| {
        if let Some(field) = browser::by_id("range").and_then(|e| e.dyn_into::<HtmlInputElement>().ok()) {
            // A focus is never refused.
            let _ = field.focus();
            field.select();
        }
    });
}

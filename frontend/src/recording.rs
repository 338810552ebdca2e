//! A recording that is dropped on the page, or chosen in a dialog, is opened here in the browser: nothing is sent anywhere.

use crate::link;
use crate::page::Page;
use crate::range;
use crate::widgets::dom;
use leptos::ev;
use leptos::prelude::*;
use shared::recording::{Recording, TITLE};
use std::time::Duration;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;
use web_sys::{HtmlElement, HtmlInputElement};

/// The largest file that a page opens: it is held in memory, and its columns beside it.
const MOST: f64 = 1_000_000_000.0;

/// Takes files that are dropped anywhere.
pub fn listen(page: Page) {
    let on_over = window_event_listener(ev::dragover, |event| event.prevent_default());
    let on_drop = window_event_listener(ev::drop, move |event| {
        event.prevent_default();
        if let Some(file) = event.data_transfer().and_then(|d| d.files()).and_then(|files| files.get(0)) {
            open(page, file);
        }
    });
    on_cleanup(move || {
        on_over.remove();
        on_drop.remove();
    });
}

/// Lets a person choose a file, as if it had been dropped.
pub fn choose(page: Page) {
    let input = dom::document().create_element("input").ok().and_then(|e| e.dyn_into::<HtmlInputElement>().ok());
    let Some(input) = input else { return };
    input.set_type("file");
    let chosen = input.clone();
    let on_change = Closure::once_into_js(move || {
        if let Some(file) = chosen.files().and_then(|files| files.get(0)) {
            open(page, file);
        }
    });
    input.set_onchange(Some(on_change.unchecked_ref()));
    input.click();
}

/// Saves the span that is shown, of all machines, as a file: the server records it.
pub fn save(page: Page) {
    if page.link.borrow().is_over() {
        return refuse(page, "This recording", "is a file on this machine already");
    }
    let (from, to) = page.span();
    let link = dom::document().create_element("a").ok().and_then(|e| e.dyn_into::<HtmlElement>().ok());
    let Some(link) = link else { return };
    let span = format!("api/v1/record?from={}&to={}", range::seconds(from), range::seconds(to));
    dom::set(&link, "href", &span);
    // The server says the name; what is refused is not shown in the page's place.
    dom::set(&link, "download", "");
    link.click();
}

/// Opens a file; what is wrong with it is said on the page.
pub fn open(page: Page, file: web_sys::File) {
    let name = file.name();
    if file.size() > MOST {
        return refuse(page, &name, "is too large for a page; watchglass replay shows it");
    }
    let failed = name.clone();
    let on_bytes = Closure::once(move |buffer: JsValue| {
        let bytes = js_sys::Uint8Array::new(&buffer).to_vec();
        match Recording::open_in_order(bytes) {
            Ok(recording) => show(page, name, recording),
            Err(error) => refuse(
                page,
                &name,
                &format!(
                    "is {error}. A page opens recordings of watchglass record; W&B's files and CSV open with watchglass import"
                ),
            ),
        }
    });
    let on_error = Closure::once(move |_: JsValue| refuse(page, &failed, "could not be read"));
    // What comes of it is said by the two, which live as long as the page.
    let _ = file.array_buffer().then2(&on_bytes, &on_error);
    on_bytes.forget();
    on_error.forget();
}

/// Says why on the page, for as long as it takes to read.
fn refuse(page: Page, name: &str, why: &str) {
    page.refused.set(format!("{name} {why}."));
    set_timeout(move || page.refused.set(String::new()), Duration::from_secs(20));
}

fn show(page: Page, name: String, mut recording: Recording) {
    if recording.span().is_none() {
        let why = format!("holds no sample that can be read. {}", recording.notes.join("; "));
        return refuse(page, &name, why.trim_end());
    }
    if !recording.about.iter().any(|(fact, _)| fact == TITLE) {
        recording.about.push((TITLE.into(), name));
    }
    let Some(recorded) = recording.told() else { return };
    link::end(page);
    page.begin_anew();
    // Panels that showed another machine leave the page first: they remember what they drew.
    set_timeout(
        move || {
            for message in recording.messages() {
                page.store.borrow_mut().take(message);
            }
            page.recorded(recorded);
        },
        Duration::ZERO,
    );
}

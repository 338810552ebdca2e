//! A recording that is dropped on the page, or chosen in a dialog, is opened here in the browser: nothing is sent anywhere.

mod reader;

use crate::browser;
use crate::range;
use crate::state::{LinkState, Page};
use js_sys::{ArrayBuffer, Promise};
use leptos::ev;
use leptos::prelude::*;
use reader::Reader;
use shared::wire::{Received, ServerMessage, decode_server};
use std::cell::Cell;
use std::time::Duration;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;

/// The largest file that a page opens: it is held in memory while it is read, and its columns for longer.
const MOST: f64 = 1_000_000_000.0;

thread_local! {
    /// Files that were shown: of two that come at once the later one counts, and takes in nothing of the other.
    static SHOWN: Cell<u32> = const { Cell::new(0) };
}

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
    browser::choose_file(move |file| open(page, file));
}

/// Saves the span that is shown, of all machines, as a file: the server records it, and says its name.
pub fn save(page: Page) {
    if page.over.get_untracked() {
        return refuse(page, "This recording", "it is a file on this machine already");
    }
    let (from, to) = page.span();
    browser::save(&format!("api/v1/record?from={}&to={}", range::seconds(from), range::seconds(to)), "");
}

/// Opens a file; what is wrong with it is said on the page.
pub fn open(page: Page, file: web_sys::File) {
    const AWAY: &str = "what opens files could not be loaded. Is the server gone? \
                        When it is back, reload the page and try again";
    let name = file.name();
    if file.size() > MOST {
        return refuse(page, &name, "too large for a page; watchglass replay shows it");
    }
    let failed = name.clone();
    // The file is read when it can be opened: until then the page holds nothing of it.
    let on_loaded = move |came: JsValue| {
        let failed = name.clone();
        let on_bytes = move |bytes: JsValue| read(page, name, &came, bytes.unchecked_into());
        then(file.array_buffer().unchecked_into(), on_bytes, move || {
            refuse(page, &failed, "not read; of a run's folder, drop the file run-*.wandb")
        });
    };
    match reader::load() {
        Ok(coming) => then(coming, on_loaded, move || refuse(page, &failed, AWAY)),
        Err(_) => refuse(page, &failed, AWAY),
    }
}

fn read(page: Page, name: String, came: &JsValue, file: ArrayBuffer) {
    let opened = reader::loaded(came).and_then(|reader| {
        reader.give(&file, &name)?;
        Ok((reader.take()?, reader))
    });
    match opened {
        Ok((first, reader)) => match decode_server(&first) {
            Ok(Received::Control(ServerMessage::Goodbye { reason })) => refuse(page, &name, &reason),
            _ => show(page, name, first, reader),
        },
        Err(_) => refuse(page, &name, STOPPED),
    }
}

/// Why a file that made the module stop is not shown.
const STOPPED: &str =
    "it made its reader stop: it is damaged, or too large for this browser. watchglass replay may show it";

/// Does the one or the other with what comes of a promise. Both live as long as the page: files are few.
fn then(promise: Promise, done: impl FnOnce(JsValue) + 'static, failed: impl FnOnce() + 'static) {
    let done = Closure::once(done);
    let failed = Closure::once(move |_: JsValue| failed());
    // What comes of it is said by the two.
    let _ = promise.then2(&done, &failed);
    done.forget();
    failed.forget();
}

/// Says why on the page, for as long as it takes to read.
fn refuse(page: Page, name: &str, why: &str) {
    let words = format!("{name}: {why}.");
    page.refused.set(words.clone());
    let over = move || {
        // What was said since has its own time.
        if page.refused.with_untracked(|now| *now == words) {
            page.refused.set(String::new());
        }
    };
    set_timeout(over, Duration::from_secs(20));
}

fn show(page: Page, name: String, first: Vec<u8>, reader: Reader) {
    let number = SHOWN.get() + 1;
    SHOWN.set(number);
    page.over.set(true);
    page.goodbye.set(String::new());
    page.state.set(LinkState::Live);
    page.refused.set(String::new());
    page.begin_anew();
    // Panels that showed another machine leave the page first: they remember what they drew.
    set_timeout(
        move || {
            if SHOWN.get() != number {
                return;
            }
            let mut message = Ok(first);
            while let Ok(bytes) = &message
                && !bytes.is_empty()
            {
                page.receive(bytes);
                message = reader.take();
            }
            if message.is_err() {
                refuse(page, &name, STOPPED);
            }
        },
        Duration::ZERO,
    );
}

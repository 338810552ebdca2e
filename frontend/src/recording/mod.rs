//! Opens a recording that a person drops on the page or chooses in a dialog. The browser reads the file; nothing is
//! sent.

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

/// Size in bytes of the largest file that a page opens. The file is held in memory while it is read, its columns for
/// longer.
const MAX_FILE_BYTES: f64 = 1_000_000_000.0;

thread_local! {
    /// Number of files that were shown. Of two files that are opened at the same time, only the later one is shown.
    static SHOWN: Cell<u32> = const { Cell::new(0) };
}

/// Opens files that are dropped anywhere on the page.
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

/// Lets a person choose a file, and opens it.
pub fn choose(page: Page) {
    browser::choose_file(move |file| open(page, file));
}

/// Saves the shown span of all machines as a file. The server makes the recording and its name.
pub fn save(page: Page) {
    if page.over.get_untracked() {
        return refuse(page, "This recording", "it is a file on this machine already");
    }
    let (from, to) = page.span();
    browser::save(&format!("api/v1/record?from={}&to={}", range::seconds(from), range::seconds(to)), "");
}

/// Opens a file. The page says what is wrong with a file that cannot be opened.
pub fn open(page: Page, file: web_sys::File) {
    const AWAY: &str = "what opens files could not be loaded. Is the server gone? \
                        When it is back, reload the page and try again";
    let name = file.name();
    if file.size() > MAX_FILE_BYTES {
        return refuse(page, &name, "too large for a page; watchglass replay shows it");
    }
    let failed = name.clone();
    // The file is read only when the module for it is there, so that the page holds no file in vain.
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

/// The message about a file that made the module stop.
const STOPPED: &str =
    "it made its reader stop: it is damaged, or too large for this browser. watchglass replay may show it";

/// Calls `done` or `failed` when a promise ends. Both closures stay in memory as long as the page exists, which is
/// little, since files are few.
fn then(promise: Promise, done: impl FnOnce(JsValue) + 'static, failed: impl FnOnce() + 'static) {
    let done = Closure::once(done);
    let failed = Closure::once(move |_: JsValue| failed());
    // The two closures handle the result.
    let _ = promise.then2(&done, &failed);
    done.forget();
    failed.forget();
}

/// Shows on the page for 20 s why a file was not opened.
fn refuse(page: Page, name: &str, why: &str) {
    let words = format!("{name}: {why}.");
    page.refused.set(words.clone());
    let over = move || {
        // A newer message has its own time.
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
    // The panels of the machine before leave the page first, because they keep what they drew.
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

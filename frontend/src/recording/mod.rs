//! Opens a recording that the user drops on the page or chooses in a dialog. A worker of the browser reads the file;
//! nothing is sent.

mod reader;

use crate::browser;
use crate::range;
use crate::state::{LinkState, Opening, Page};
use leptos::ev;
use leptos::prelude::*;
use reader::{Heard, Reader};
use shared::wire::{Received, ServerMessage, decode_server};
use std::cell::{Cell, RefCell};
use std::time::Duration;
use viewer::take::file_name;
use wasm_bindgen::JsCast;

/// Size in bytes of the largest file that a page opens. The file is held in memory while it is read, its columns for
/// longer.
const MAX_FILE_BYTES: f64 = 1_000_000_000.0;

thread_local! {
    /// Number of files that were opened or given up. When two files are opened at the same time, only the later one is
    /// shown.
    static NEWEST: Cell<u32> = const { Cell::new(0) };
    /// Reader of the newest file; None when no file is being opened.
    static READER: RefCell<Option<Reader>> = const { RefCell::new(None) };
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
    let on_click = window_event_listener(ev::click, move |event| follow(page, &event));
    on_cleanup(move || {
        on_over.remove();
        on_drop.remove();
        on_click.remove();
    });
}

/// Goes where a link leads without loading that page while a file is shown, which would be lost.
fn follow(page: Page, event: &ev::MouseEvent) {
    // With a modifier key, the browser opens the link itself.
    let held = event.ctrl_key() || event.meta_key() || event.shift_key() || event.alt_key();
    if !page.over.get_untracked() || held || event.default_prevented() || event.button() != 0 {
        return;
    }
    let target = event.target().and_then(|target| target.dyn_into::<web_sys::Element>().ok());
    let link = target.and_then(|target| target.closest("a[href^='?']").ok().flatten());
    if link.and_then(|link| link.get_attribute("href")).is_some_and(|to| page.go_within(&to)) {
        event.prevent_default();
    }
}

/// Opens the file dialog, and then the chosen file.
pub fn choose(page: Page) {
    browser::choose_file(move |file| open(page, file));
}

/// Saves the shown span of all machines as a file. The server makes the recording.
pub fn save(page: Page) {
    if page.over.get_untracked() {
        return refuse(page, NOT_OPENED, "This recording", "it is already a file on this machine");
    }
    let (from, to) = page.span();
    let name = match page.store.read_value().sources.len() {
        0 | 1 => page.machine(),
        n => format!("{n}-machines"),
    };
    let name = file_name(&[&name, "recording", &(to / 1000).to_string()], "watchglass");
    browser::save(&format!("api/v1/record?from={}&to={}", range::seconds(from), range::seconds(to)), &name);
}

/// Opens a file in a worker. The page shows the progress, and the error of a file that cannot be opened.
pub fn open(page: Page, file: web_sys::File) {
    cancel(page);
    let name = file.name();
    if file.size() > MAX_FILE_BYTES {
        return refuse(page, NOT_OPENED, &name, "too large for the page; open it with watchglass replay");
    }
    let number = NEWEST.get();
    page.opening.set(Some(Opening { name: name.clone(), share: 0.0 }));
    let hear = move |heard| {
        // A message of an earlier worker may still arrive.
        if NEWEST.get() == number {
            self::handle_heard(page, &name, number, heard);
        }
    };
    match Reader::start(&file, hear.clone()) {
        Ok(reader) => READER.set(Some(reader)),
        Err(_) => hear(Heard::Away),
    }
}

/// Gives up the file that is being opened, if there is one.
pub fn cancel(page: Page) {
    NEWEST.set(NEWEST.get() + 1);
    READER.set(None);
    page.opening.set(None);
}

/// Closes the file that is shown: the page reloads, because the server does not know the file's parameters in the
/// address.
pub fn close() {
    let location = browser::window().location();
    // If the browser refuses, the user can still reload the page.
    let _ = location.pathname().and_then(|path| location.set_href(&path));
}

fn handle_heard(page: Page, name: &str, number: u32, heard: Heard) {
    const NO_READER: &str = "the reader could not be loaded. Check that the server runs, reload the page and try again";
    const UNREAD: &str = "unsupported file; of a run's folder, drop the file run-*.wandb";
    let messages = match heard {
        Heard::Share(share) => {
            let (name, share) = (name.to_string(), share.clamp(0.0, 1.0));
            return page.opening.set(Some(Opening { name, share }));
        }
        Heard::Messages(messages) => messages,
        Heard::Away => return refuse(page, NOT_OPENED, name, NO_READER),
        Heard::Unread => return refuse(page, NOT_OPENED, name, UNREAD),
        Heard::Stopped => return refuse(page, NOT_OPENED, name, STOPPED),
    };
    if messages.is_empty() {
        return cancel(page);
    }
    if let Ok(Received::Control(message)) = decode_server(&messages[0]) {
        match message {
            ServerMessage::Goodbye { reason } => return refuse(page, "Not a recording:", name, &reason),
            // The first message of a file resets the page.
            ServerMessage::Hello(_) => begin(page),
            _ => {}
        }
    }
    // The panels of the machine before leave the page first, because they keep what they drew.
    set_timeout(
        move || {
            if NEWEST.get() == number {
                for bytes in &messages {
                    page.receive(bytes);
                }
                READER.with_borrow(|reader| reader.iter().for_each(Reader::go_on));
            }
        },
        Duration::ZERO,
    );
}

/// The message about a file that made the module stop.
const STOPPED: &str = "the reader crashed: the file is damaged, or too large for this browser. Try watchglass replay";

/// Begin of the message about a file that may be a recording.
const NOT_OPENED: &str = "Not opened:";

/// Shows on the page for 20 s why a file was not opened.
fn refuse(page: Page, head: &'static str, name: &str, why: &str) {
    cancel(page);
    let words = format!("{name}: {why}.");
    page.refused.set((head, words.clone()));
    let over = move || {
        // A newer message has its own time.
        if page.refused.with_untracked(|now| now.1 == words) {
            page.refused.set(Default::default());
        }
    };
    set_timeout(over, Duration::from_secs(20));
}

/// Forgets the machine that is shown, because a file follows.
fn begin(page: Page) {
    page.over.set(true);
    page.goodbye.set(String::new());
    page.state.set(LinkState::Live);
    page.refused.set(Default::default());
    page.begin_anew();
}

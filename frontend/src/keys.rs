//! Keys of the page, with one listener for all of it. The table in [`shortcuts`](crate::shortcuts) gives each key an
//! action; this file carries the actions out.

use crate::browser;
use crate::gestures::{crosshair, roving};
use crate::panels::board::Board;
use crate::player::Player;
use crate::recording;
use crate::shortcuts::{self, Action};
use crate::state::{Dialog, Sheet};
use crate::tools::{self, about, menu};
use leptos::ev::{self, KeyboardEvent};
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::Element;

/// Most letters that are kept for the search while it loads, bytes.
const MAX_EARLY: usize = 200;

/// Listens for keys until the component that calls this is removed.
pub fn listen(board: Board) {
    let going = StoredValue::new(false);
    let handle = window_event_listener(ev::keydown, move |event| pressed(board, &event, going));
    on_cleanup(move || handle.remove());
}

fn pressed(board: Board, event: &KeyboardEvent, going: StoredValue<bool>) {
    let page = board.page;
    let key = event.key();
    // Letters mean the same with caps lock.
    let key = if key.len() == 1 { key.to_ascii_lowercase() } else { key };
    if let Some(dialog) = page.dialog.get_untracked() {
        // In other dialogs a question mark is typed text.
        if key == "Escape" || (key == "?" && dialog == Dialog::Keys) {
            page.dialog.set(None);
            page.typed_early.set_value(String::new());
            event.prevent_default();
        }
        // Letters before the field is there are its first.
        let letter = event.key().chars().count() == 1 && !event.ctrl_key() && !event.meta_key() && !event.alt_key();
        if dialog == Dialog::Find && letter && browser::by_id("find").is_none() {
            page.typed_early
                .update_value(|typed| typed.extend(event.key().chars().take(MAX_EARLY - typed.len().min(MAX_EARLY))));
            event.prevent_default();
        }
        return;
    }
    if key == "k" && (event.ctrl_key() || event.meta_key()) {
        page.dialog.set(Some(Dialog::Find));
        event.prevent_default();
        return;
    }
    let again = event.repeat() && !(key.starts_with("Arrow") || "+-=[]".contains(&key));
    if event.ctrl_key() || event.meta_key() || event.alt_key() || again {
        return;
    }
    if std::mem::take(&mut *going.write_value()) && matches!(key.as_str(), "f" | "r" | "t") {
        match (key.as_str(), page.accounts.get_untracked()) {
            ("r", _) => page.go_to_runs(),
            ("t", true) => page.go_to_people(),
            ("t", false) => {}
            _ => drop(act(board, Action::Go, false)),
        }
        return event.prevent_default();
    }
    let focused = event.target().and_then(|t| t.dyn_into::<Element>().ok());
    let tag = focused.as_ref().map(|e| e.tag_name()).unwrap_or_default();
    let plot = focused.as_ref().is_some_and(|e| e.class_list().contains("plot"));
    if matches!(tag.as_str(), "INPUT" | "SELECT" | "TEXTAREA") && key == "Escape" {
        if !tools::close_all(page) {
            // Without the focus in a field, keys mean the page again.
            let _ = focused.map(|e| e.unchecked_into::<web_sys::HtmlElement>().blur());
        }
        return;
    }
    // The focused element handles these keys itself.
    let theirs = match tag.as_str() {
        "INPUT" | "SELECT" | "TEXTAREA" => true,
        "BUTTON" | "SUMMARY" | "A" => matches!(key.as_str(), " " | "Enter"),
        _ => false,
    };
    // Outside of a plot these keys scroll the page, or mean nothing.
    let at_plot = plot || !matches!(key.as_str(), "Home" | "End" | "Enter" | "ArrowUp" | "ArrowDown");
    let meant = shortcuts::action(&key, page.is_recorded()).filter(|_| !theirs && at_plot);
    if meant == Some(Action::Go) {
        return going.set_value(true);
    }
    let (before, heard) = (board.page.whereabouts(), board.said.get_untracked());
    if meant.is_some_and(|action| act(board, action, event.shift_key())) {
        event.prevent_default();
        let now = board.page.whereabouts();
        // Actions on a mark announce themselves.
        if now != before && board.said.get_untracked() == heard {
            board.said.set(now);
        }
    }
}

/// Carries out an action; `far` is true with shift. Returns false when the action is not possible now.
pub fn act(board: Board, action: Action, far: bool) -> bool {
    let page = board.page;
    if !page.is_host() {
        let finder = (action == Action::Find).then(|| browser::by_id("filter")).flatten();
        if let Some(finder) = finder {
            browser::focus(&finder);
            return true;
        }
        if action == Action::Compare {
            return page.compare_ticked();
        }
        if !action.anywhere() {
            return false;
        }
    }
    // A viewer with a share link cannot download a recording.
    if action == Action::Record && page.view.with_untracked(|v| v.share.is_some()) {
        return false;
    }
    let (from, to) = page.span();
    let zoom = |factor| {
        page.begin_step();
        page.zoom(crosshair::instant(board).unwrap_or(from + (to - from) / 2), factor);
    };
    match action {
        Action::Chart(by) => return roving::go(board, by),
        Action::Read(by @ (i64::MIN | i64::MAX)) => crosshair::step(board, by),
        Action::Read(by) => crosshair::step(board, if far { by * 10 } else { by }),
        Action::Mark(by) => return crosshair::to_mark(board, by),
        Action::Pin => crosshair::toggle_pin(board),
        Action::Menu => menu::by_key(board),
        Action::About => about::by_key(board),
        Action::Window(i) => match page.windows().nth(i) {
            Some(window) => page.choose(window.ms),
            None => return false,
        },
        Action::Find => page.dialog.set(Some(Dialog::Find)),
        Action::Layouts => page.dialog.set(Some(Dialog::Layouts)),
        Action::Closer => zoom(0.5),
        Action::Wider => zoom(2.0),
        Action::Pan(halves) => page.pan((to - from) / 2 * halves),
        Action::Back => page.step_back(),
        Action::Freeze => page.toggle_frozen(),
        Action::Leave => {
            if !tools::close_all(page) {
                page.go_live();
            }
        }
        Action::Compare => page.step(|v| v.versus = if v.versus.is_some() { None } else { Some(0) }),
        Action::Changed => page.toggle_sheet(Sheet::Changed),
        Action::Differs => page.toggle_sheet(Sheet::Differs),
        Action::Findings => page.go_to_findings(),
        Action::Alerts => return page.go_to_alerts(),
        Action::Note => return page.write_note(crosshair::instant(board)),
        Action::Record => recording::save(page),
        Action::Open => recording::choose(page),
        Action::Theme => page.toggle_theme(),
        Action::Keys => page.dialog.set(Some(Dialog::Keys)),
        Action::Go => page.go_to_fleet(),
        Action::Play => page.play(Player::toggle),
        Action::Speed(by) => page.play(|p| p.shift(by)),
        Action::Jump(tenths) => {
            let step = page.view.with_untracked(|v| v.window) / 10 * tenths;
            page.play(|p| p.jump(p.t + step));
        }
    }
    true
}

//! Keys of the page, heard once for all of it: the table in [`shortcuts`](crate::shortcuts) says what they mean, here is
//! what they do.

use crate::gestures::{crosshair, roving};
use crate::panels::board::Board;
use crate::player::Player;
use crate::recording;
use crate::shortcuts::{self, Action, KEYS};
use crate::state::Dialog;
use crate::tools::{self, menu};
use leptos::ev::{self, KeyboardEvent};
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::Element;

/// Hears keys for as long as its part of the page stands.
pub fn listen(board: Board) {
    let handle = window_event_listener(ev::keydown, move |event| pressed(board, &event));
    on_cleanup(move || handle.remove());
}

fn pressed(board: Board, event: &KeyboardEvent) {
    let page = board.page;
    let key = event.key();
    // Letters are the same with capitals on.
    let key = if key.len() == 1 { key.to_ascii_lowercase() } else { key };
    if page.dialog.with_untracked(Option::is_some) {
        if key == "Escape" || key == "?" {
            page.dialog.set(None);
            event.prevent_default();
        }
        return;
    }
    let again = event.repeat() && !(key.starts_with("Arrow") || "+-=[]".contains(&key));
    if event.ctrl_key() || event.meta_key() || event.alt_key() || again {
        return;
    }
    let focused = event.target().and_then(|t| t.dyn_into::<Element>().ok());
    let tag = focused.as_ref().map(|e| e.tag_name()).unwrap_or_default();
    let plot = focused.as_ref().is_some_and(|e| e.class_list().contains("plot"));
    if matches!(tag.as_str(), "INPUT" | "SELECT") && key == "Escape" {
        if !tools::close_all(page) {
            // Keys mean the page again.
            let _ = focused.map(|e| e.unchecked_into::<web_sys::HtmlElement>().blur());
        }
        return;
    }
    // What a focused element does with the key itself.
    let theirs = match tag.as_str() {
        "INPUT" | "SELECT" => true,
        "BUTTON" | "SUMMARY" | "A" => matches!(key.as_str(), " " | "Enter"),
        _ => false,
    };
    // Elsewhere these scroll the page, or mean nothing.
    let at_plot = plot || !matches!(key.as_str(), "Home" | "End" | "Enter" | "ArrowUp" | "ArrowDown");
    let meant = shortcuts::action(&key, page.is_recorded()).filter(|_| !theirs && at_plot);
    if meant.is_some_and(|action| act(board, action, event.shift_key())) {
        event.prevent_default();
    }
}

/// Does what a key means, `far` with shift; false where it means nothing right now.
fn act(board: Board, action: Action, far: bool) -> bool {
    let page = board.page;
    let (from, to) = page.span();
    let zoom = |factor| {
        page.remember();
        page.zoom(crosshair::instant(board).unwrap_or(from + (to - from) / 2), factor);
    };
    match action {
        Action::Chart(by) => return roving::go(board, by),
        Action::Read(by @ (i64::MIN | i64::MAX)) => crosshair::step(board, by),
        Action::Read(by) => crosshair::step(board, if far { by * 10 } else { by }),
        Action::Pin => crosshair::toggle_pin(board),
        Action::Menu => menu::by_key(board),
        Action::Window(i) => match page.windows().nth(i) {
            Some(window) => page.choose(window.ms),
            None => return false,
        },
        Action::Type => tools::focus_range(page),
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
        Action::Compare => page.change(|v| v.versus = if v.versus.is_some() { None } else { Some(0) }),
        Action::Changed => page.sheet.update(|open| *open = !*open),
        Action::Record => recording::save(page),
        Action::Open => recording::choose(page),
        Action::Theme => page.toggle_theme(),
        Action::Keys => page.dialog.set(Some(Dialog::Keys)),
        Action::Play => page.play(Player::toggle),
        Action::Speed(by) => page.play(|p| p.shift(by)),
        Action::Jump(tenths) => {
            let step = page.view.with_untracked(|v| v.window) / 10 * tenths;
            page.play(|p| p.jump(p.t + step));
        }
    }
    true
}

/// The list of all keys; those of a recording while one is shown.
#[component]
pub fn KeyList(
    /// Whether a recording is shown.
    recorded: bool,
) -> impl IntoView {
    let names = |names: &'static str| names.split(' ').map(|key| view! { <kbd>{key}</kbd> }).collect_view();
    let row = move |row: &'static shortcuts::Row| view! { <dt>{names(row.names)}</dt><dd>{row.words}</dd> };
    let group = move |group: &'static shortcuts::Group| {
        view! {
            <section>
                <h3>{group.title}</h3>
                <dl>{group.rows.iter().map(row).collect_view()}</dl>
            </section>
        }
    };
    let shown = KEYS.iter().filter(|group| recorded || !group.recorded);
    view! { <div class="body keys">{shown.map(group).collect_view()}</div> }
}

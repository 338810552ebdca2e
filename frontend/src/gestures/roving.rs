//! Moving the focus through the charts. Tab stops at one chart only, at its title and its plot; arrow keys go from
//! there to the others.

use super::crosshair;
use crate::browser;
use crate::panels::board::Board;
use leptos::ev;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::Element;

/// Keeps one panel the stop for Tab: the one that had the focus last, else the first. It works until the
/// component that calls this is removed.
pub fn start(board: Board) {
    let handle = window_event_listener(ev::focusin, move |event| {
        let article = event.target().and_then(|t| t.dyn_into::<Element>().ok()?.closest("article.chart").ok()?);
        if let Some(id) = article.and_then(|a| a.get_attribute("data-panel")) {
            stop_at(board, id);
        }
    });
    on_cleanup(move || handle.remove());
    Effect::new(move || {
        board.crowd.track();
        // The elements are in the document one frame after they were made.
        request_animation_frame(move || settle(board));
    });
}

fn stop_at(board: Board, id: String) {
    if board.stop.with_untracked(|stop| stop.as_ref() != Some(&id)) {
        board.stop.set(Some(id));
    }
}

fn id(panel: &Element) -> String {
    panel.get_attribute("data-panel").unwrap_or_default()
}

/// After panels were added or removed, makes sure that one of them is the stop for Tab.
fn settle(board: Board) {
    let panels = browser::all("article.chart");
    let stop = board.stop.get_untracked();
    if !panels.iter().any(|panel| Some(id(panel)) == stop)
        && let Some(first) = panels.first()
    {
        stop_at(board, id(first));
    }
}

/// The panel that has the focus, itself or in one of its elements.
pub fn focused() -> Option<Element> {
    browser::focused()?.closest("article.chart").ok()?
}

/// Moves the focus `by` charts forward; false when no chart has the focus.
pub fn go(board: Board, by: i32) -> bool {
    let Some(here) = focused() else { return false };
    let panels = browser::all("article.chart");
    let Some(at) = panels.iter().position(|p| *p == here) else { return false };
    let next = (at as i32 + by).clamp(0, panels.len() as i32 - 1) as usize;
    if let Some(plot) = panels[next].query_selector(".plot").ok().flatten() {
        browser::focus(&plot);
        crosshair::follow_focus(board);
    }
    true
}

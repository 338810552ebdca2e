//! The keys' way through the charts: one of them is a stop for Tab, with its title; the others are reached from it.

use super::crosshair;
use crate::browser;
use crate::panels::board::Board;
use leptos::ev;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::Element;

/// Keeps one panel the stop for as long as its part of the page stands: the one that had the keys last, else the first.
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
        // The elements stand on the page in the frame after they were made.
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

/// After panels came or went: one of them is the stop.
fn settle(board: Board) {
    let panels = browser::all("article.chart");
    let stop = board.stop.get_untracked();
    if !panels.iter().any(|panel| Some(id(panel)) == stop)
        && let Some(first) = panels.first()
    {
        stop_at(board, id(first));
    }
}

/// The panel that has the keys.
pub fn focused() -> Option<Element> {
    browser::focused()?.closest("article.chart").ok()?
}

/// Gives the keys to the chart so many further; false where no chart has them.
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

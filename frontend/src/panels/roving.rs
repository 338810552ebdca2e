//! The keys' way through the charts: one of them is a stop for Tab, with its title; the others are reached from it.

use super::crosshair;
use crate::page::Page;
use crate::widgets::dom;
use leptos::prelude::request_animation_frame;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement};

/// What is a stop of one panel alone.
const STOPS: &str = ".plot, h3 button";

fn all(selector: &str) -> Vec<Element> {
    let Ok(found) = dom::document().query_selector_all(selector) else { return Vec::new() };
    (0..found.length()).filter_map(|i| found.item(i)?.dyn_into().ok()).collect()
}

/// After panels came or went: one of them is the stop.
pub fn settle() {
    // The elements stand on the page in the frame after they were made.
    request_animation_frame(|| {
        let stops = all(".plot[tabindex='0']");
        if stops.len() != 1
            && let Some(first) = stops.into_iter().next().or_else(|| all(".plot").into_iter().next())
        {
            stop_at(&first);
        }
    });
}

/// Makes the panel around an element the stop.
pub fn stop_at(inside: &Element) {
    let Some(here) = inside.closest("article").ok().flatten() else { return };
    for stop in all("article.chart").iter().flat_map(|a| a.query_selector_all(STOPS).ok().map(|l| (a, l))) {
        let index = if *stop.0 == here { "0" } else { "-1" };
        for i in 0..stop.1.length() {
            if let Some(element) = stop.1.item(i).and_then(|n| n.dyn_into::<Element>().ok()) {
                dom::set(&element, "tabindex", index);
            }
        }
    }
}

/// The panel that has the keys.
pub fn focused() -> Option<Element> {
    dom::document().active_element()?.closest("article.chart").ok()?
}

/// Gives the keys to the chart so many further; false where no chart has them.
pub fn go(page: Page, by: i32) -> bool {
    let Some(here) = focused() else { return false };
    let panels = all("article.chart");
    let Some(at) = panels.iter().position(|p| *p == here) else { return false };
    let next = (at as i32 + by).clamp(0, panels.len() as i32 - 1) as usize;
    if let Some(plot) = panels[next].query_selector(".plot").ok().flatten() {
        // A focus is never refused.
        let _ = plot.unchecked_into::<HtmlElement>().focus();
        crosshair::follow_focus(page);
    }
    true
}

//! The tools of the bar and of a chart's title: [`span`] typed spans and the comparison, [`changed`] the changes,
//! [`differs`] the outliers, [`find`] the search, [`menu`] the menu of a chart, [`about`] its description, [`layouts`]
//! stored layouts, [`alert`] the draft of a rule over a chart, [`table`] a chart as a table, [`take`] pictures and data
//! to save.

pub mod about;
mod alert;
pub mod changed;
pub mod csv;
pub mod differs;
pub mod find;
pub mod layouts;
pub mod menu;
pub mod span;
pub mod table;
pub mod take;

use crate::browser;
use crate::gestures::{pointer, roving};
use crate::panels::board::Board;
use crate::state::Page;
use leptos::prelude::*;
use std::time::Duration;
use wasm_bindgen::JsCast;
use web_sys::HtmlDetailsElement;

/// Closes all dialogs and menus over the page; true when one was open.
pub fn close_all(page: Page) -> bool {
    let sheet = page.sheet.get_untracked().is_some();
    if sheet {
        page.sheet.set(None);
    }
    let tools = page.tools.get_untracked();
    if tools {
        page.tools.set(false);
    }
    pointer::cancel() | menu::close(page) | sheet | tools
}

/// Id of the chart that has the focus, or is pointed at.
fn pointed(board: Board) -> Option<String> {
    let focused = roving::focused().and_then(|article| article.get_attribute("data-panel"));
    focused.or_else(|| board.page.hover.with_value(|hover| hover.as_ref().map(|hover| hover.panel.clone())))
}

/// The charts of a family appear in the frame after it was opened.
const OPEN_CHART_PAUSE: Duration = Duration::from_millis(60);

/// Scrolls to a chart that is not wholly in view, and moves the focus there. The chart's family is opened first.
pub fn open_chart(chart: String) {
    for family in browser::all("details[data-charts]") {
        let charts = family.get_attribute("data-charts").unwrap_or_default();
        if charts.split(' ').any(|c| c == chart) {
            family.unchecked_into::<HtmlDetailsElement>().set_open(true);
        }
    }
    let found = move || {
        for panel in browser::all("article[data-panel]") {
            let found = panel.get_attribute("data-panel").as_ref() == Some(&chart);
            // This fails only for invalid names of classes.
            let _ = panel.class_list().toggle_with_force("found", found);
            if found {
                let (place, bar) = (panel.get_bounding_client_rect(), browser::all(".bar"));
                let top = bar.first().map_or(0.0, |bar| bar.get_bounding_client_rect().bottom());
                if place.top() < top || place.bottom() > browser::viewport().1 {
                    panel.scroll_into_view();
                }
                panel.query_selector(".plot").ok().flatten().iter().for_each(browser::focus);
            }
        }
    };
    set_timeout(found, OPEN_CHART_PAUSE);
}

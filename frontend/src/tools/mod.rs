//! The tools of the bar and of a chart's title: [`span`] typed spans and the comparison, [`changed`] the changes,
//! [`differs`] the outliers, [`find`] the search, [`keys`] the list of keys, [`menu`] the menu of a chart, [`about`] its description, [`layouts`]
//! stored layouts, [`alert`] the draft of a rule over a chart, [`table`] a chart as a table, [`take`] pictures and data
//! to save.

pub mod about;
mod alert;
pub mod changed;
pub mod csv;
pub mod differs;
pub mod find;
mod keys;
pub mod layouts;
pub mod menu;
pub mod span;
pub mod table;
pub mod take;

use crate::browser;
use crate::gestures::{pointer, roving};
use crate::panels::board::Board;
use crate::parts::parts;
use crate::state::{Dialog, Page, Sheet};
use leptos::prelude::*;
use std::time::Duration;
use wasm_bindgen::JsCast;
use web_sys::HtmlDetailsElement;

/// A tool that is loaded when it is first opened.
#[derive(Clone, Debug)]
pub enum Tool {
    /// The content of a dialog; the search is a part of the pages.
    Dialog(Dialog),
    /// The content of the menu of the chart with this id.
    Menu(String),
    /// The content of the sheet.
    Sheet(Sheet),
}

parts! {
    /// The menu of a chart, the other dialogs, and the sheet of changes and outliers.
    menus(Tool) = part;
}

/// The view of a tool.
fn part(tool: Tool) -> AnyView {
    match tool {
        Tool::Dialog(Dialog::Layouts) => view! { <layouts::Layouts/> }.into_any(),
        Tool::Dialog(Dialog::Keys) => {
            let page = expect_context::<Page>();
            view! { <keys::KeyList recorded=page.is_recorded()/> }.into_any()
        }
        Tool::Dialog(Dialog::Table(chart)) => view! { <table::ChartTable chart/> }.into_any(),
        Tool::Dialog(Dialog::About(id)) => view! { <about::About id section=false/> }.into_any(),
        Tool::Dialog(Dialog::AboutSection(id)) => view! { <about::About id section=true/> }.into_any(),
        Tool::Dialog(Dialog::Find) => ().into_any(),
        Tool::Menu(chart) => view! { <menu::Offers chart/> }.into_any(),
        Tool::Sheet(sheet) => changed::list(sheet),
    }
}

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

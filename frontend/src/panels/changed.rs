//! The list of what changed in the span that is shown, against the span of the same length before it. A row opens its
//! chart.

use super::picture::states;
use crate::page::{Page, offset};
use crate::store::difference::{Difference, rank};
use crate::store::trace::unit;
use crate::widgets::dom;
use charts::axis;
use shared::catalog::{Lane, Metric};
use shared::unit::Unit;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlDetailsElement};

/// Rows, at most.
const ROWS: usize = 40;

/// Opens the list, or closes it.
pub fn toggle(page: Page) {
    let Some(sheet) = dom::by_id("sheet") else { return };
    let open = sheet.has_attribute("hidden");
    dom::set_hidden(&sheet, !open);
    if open {
        let (from, to) = page.span();
        page.want(&[(from - (to - from), from), (from, to)]);
        fill(page);
    }
}

/// Older history arrived: an open list may know more.
pub fn again(page: Page) {
    if dom::by_id("sheet").is_some_and(|s| !s.has_attribute("hidden")) {
        let (from, to) = page.span();
        page.want(&[(from - (to - from), from), (from, to)]);
        fill(page);
    }
}

fn fill(page: Page) {
    let Some(sheet) = dom::by_id("sheet") else { return };
    let (from, to) = page.span();
    let clock = |t: i64| axis::clock(t + offset(t), true);
    sheet.set_text_content(None);
    let head = dom::add(&sheet, "header", "", "");
    dom::add(&head, "h2", "", "What changed");
    let close = dom::add(&head, "button", "", "✕");
    dom::set(&close, "data-do", "close");
    dom::set(&close, "aria-label", "Close");
    let length = axis::duration(to - from);
    let words =
        format!("{}–{} against the {length} before; furthest from its usual spread first.", clock(from), clock(to));
    dom::add(&sheet, "p", "", &words);
    let store = page.store.borrow();
    let view = page.view_now();
    let Some(source) = store.source(view.source.as_deref()) else { return };
    let shown = |id: &str| page.is_planned(id);
    let Some(found) = rank(source, &store.catalog, (from, to)) else {
        dom::add(&sheet, "p", "", &format!("There is no data of the {length} before to compare with."));
        return;
    };
    let list = dom::add(&sheet, "ol", "", "");
    // A chart stands there once, with the series of it that moved most.
    let mut charts: Vec<(&Difference, &Metric, usize)> = Vec::new();
    for d in &found {
        let metric = store.catalog.metric(&source.defs[d.series as usize]).filter(|m| shown(&m.chart));
        let Some(metric) = metric else { continue };
        match charts.iter_mut().find(|(_, m, _)| m.chart == metric.chart) {
            Some((_, _, others)) => *others += 1,
            None => charts.push((d, metric, 0)),
        }
    }
    for (d, metric, others) in charts.iter().take(ROWS) {
        let title = store.catalog.layout.charts.iter().find(|c| c.id == metric.chart).map_or("", |c| &c.title);
        let name = store.catalog.label(&source.defs[d.series as usize]);
        let name = match others {
            0 if name == title => String::new(),
            0 => name,
            n => format!("{name} and {n} more"),
        };
        let lane = store.catalog.layout.lanes.iter().find(|lane| lane.metric == metric.tag);
        row(&list, &metric.chart, title, &name, &values(d, unit(metric), lane), d.score);
    }
    if charts.is_empty() {
        dom::add(&sheet, "p", "", "Nothing moved beyond its usual spread.");
    } else if charts.len() > ROWS {
        dom::add(&sheet, "p", "", &format!("… {} more", charts.len() - ROWS));
    }
}

/// What moved, and from what to what; states in their words.
fn values(d: &Difference, unit: Unit, lane: Option<&Lane>) -> String {
    let (before, after) = d.values;
    if lane.is_some() {
        return format!("{} → {}", states::word(lane, before), states::word(lane, after));
    }
    let scale = unit.scale(before.abs().max(after.abs()));
    let what = if d.what.is_empty() { String::new() } else { format!("{} ", d.what) };
    format!("{what}{} → {} {}", scale.number(before), scale.number(after), scale.symbol)
}

fn row(list: &Element, chart: &str, title: &str, name: &str, values: &str, score: f64) {
    let item = dom::add(list, "li", "", "");
    let button = dom::add(&item, "button", "", "");
    dom::set(&button, "data-do", "chart");
    dom::set(&button, "data-chart", chart);
    let words = dom::add(&button, "span", "what", title);
    if !name.is_empty() {
        dom::add(&words, "small", "", name);
    }
    dom::add(&button, "span", "values", values);
    dom::add(&button, "span", "score", &format!("{}×", score.min(999.0).round() as i64));
}

/// Brings a row's chart into view, opening its family.
pub fn open_chart(button: &Element) {
    let chart = button.get_attribute("data-chart").unwrap_or_default();
    let families = dom::document().query_selector_all("details[data-charts]");
    let Ok(families) = families else { return };
    for i in 0..families.length() {
        let Some(details) = families.item(i).and_then(|n| n.dyn_into::<HtmlDetailsElement>().ok()) else { continue };
        let charts = details.get_attribute("data-charts").unwrap_or_default();
        if charts.split(' ').any(|c| c == chart) {
            details.set_open(true);
        }
    }
    // A family's charts appear in the frame after it was opened.
    leptos::prelude::set_timeout(
        move || {
            let panels = dom::document().query_selector_all("article[data-panel]");
            let Ok(panels) = panels else { return };
            let all = (0..panels.length()).filter_map(|i| panels.item(i)?.dyn_into::<Element>().ok());
            for panel in all {
                let found = panel.get_attribute("data-panel").as_ref() == Some(&chart);
                // Refused only for names that are no class names.
                let _ = panel.class_list().toggle_with_force("found", found);
                if found {
                    panel.scroll_into_view();
                    if let Some(plot) = panel.query_selector(".plot").ok().flatten() {
                        let _ = plot.dyn_into::<web_sys::HtmlElement>().map(|p| p.focus());
                    }
                }
            }
        },
        std::time::Duration::from_millis(60),
    );
}

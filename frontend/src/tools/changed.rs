//! The list of what changed in the span that is shown, against the span of the same length before it. A row opens its
//! chart.

use crate::browser::{self, offset};
use crate::panels::picture::states;
use crate::state::Page;
use crate::store::difference::{Difference, rank};
use crate::store::trace::unit;
use charts::axis;
use leptos::prelude::*;
use shared::catalog::{Lane, Metric};
use shared::unit::Unit;
use std::time::Duration;
use wasm_bindgen::JsCast;
use web_sys::HtmlDetailsElement;

/// Rows, at most.
const ROWS: usize = 40;

/// A chart that changed, with the series of it that moved most.
struct Row {
    chart: String,
    title: String,
    /// Of the series and how many more; empty where the title says it.
    name: String,
    values: String,
    /// How many times further than usual.
    score: i64,
}

/// What the list says.
struct Ranking {
    /// Which span against which.
    words: String,
    rows: Vec<Row>,
    /// What is below the rows; empty where there is nothing to say.
    rest: String,
}

/// The list; it is made when it is opened, and again when older history arrives.
#[component]
pub fn Changed() -> impl IntoView {
    let page = expect_context::<Page>();
    Effect::new(move || {
        if page.sheet.get() {
            page.history.track();
            let (from, to) = page.span();
            page.want(&[(from - (to - from), from), (from, to)]);
        }
    });
    let list = move || {
        page.sheet.get().then(|| {
            page.history.track();
            let Ranking { words, rows, rest } = ranking(page);
            view! {
                <header>
                    <h2>"What changed"</h2>
                    <button data-do="close" aria-label="Close" on:click=move |_| page.sheet.set(false)>"✕"</button>
                </header>
                <p>{words}</p>
                {(!rows.is_empty()).then(|| view! { <ol>{rows.into_iter().map(line).collect_view()}</ol> })}
                {(!rest.is_empty()).then(|| view! { <p>{rest}</p> })}
            }
        })
    };
    view! { <aside id="sheet" class="sheet" aria-label="What changed" hidden=move || !page.sheet.get()>{list}</aside> }
}

fn line(row: Row) -> impl IntoView {
    let chart = row.chart.clone();
    view! {
        <li>
            <button data-do="chart" data-chart=row.chart on:click=move |_| open_chart(chart.clone())>
                <span class="what">
                    {row.title}
                    {(!row.name.is_empty()).then(|| view! { <small>{row.name}</small> })}
                </span>
                <span class="values">{row.values}</span>
                <span class="score">{row.score}"×"</span>
            </button>
        </li>
    }
}

fn ranking(page: Page) -> Ranking {
    let (from, to) = page.span();
    let clock = |t: i64| axis::clock(t + offset(t), true);
    let length = axis::duration(to - from);
    let words =
        format!("{}–{} against the {length} before; furthest from its usual spread first.", clock(from), clock(to));
    let store = page.store.read_value();
    let view = page.view_now();
    let Some(source) = store.source(view.source.as_deref()) else {
        return Ranking { words, rows: Vec::new(), rest: String::new() };
    };
    let Some(found) = rank(source, &store.catalog, (from, to)) else {
        let rest = format!("There is no data of the {length} before to compare with.");
        return Ranking { words, rows: Vec::new(), rest };
    };
    // A chart stands there once, with the series of it that moved most.
    let mut charts: Vec<(&Difference, &Metric, usize)> = Vec::new();
    for d in &found {
        let metric = store.catalog.metric(&source.defs[d.series as usize]).filter(|m| page.is_planned(&m.chart));
        let Some(metric) = metric else { continue };
        match charts.iter_mut().find(|(_, m, _)| m.chart == metric.chart) {
            Some((_, _, others)) => *others += 1,
            None => charts.push((d, metric, 0)),
        }
    }
    let rest = match charts.len() {
        0 => "Nothing moved beyond its usual spread.".to_string(),
        n if n > ROWS => format!("… {} more", n - ROWS),
        _ => String::new(),
    };
    let row = |(d, metric, others): &(&Difference, &Metric, usize)| {
        let title = store.catalog.layout.charts.iter().find(|c| c.id == metric.chart).map_or("", |c| &c.title);
        let name = store.catalog.label(&source.defs[d.series as usize]);
        let name = match others {
            0 if name == title => String::new(),
            0 => name,
            n => format!("{name} and {n} more"),
        };
        let lane = store.catalog.layout.lanes.iter().find(|lane| lane.metric == metric.tag);
        Row {
            chart: metric.chart.clone(),
            title: title.to_string(),
            name,
            values: values(d, unit(metric), lane),
            score: d.score.min(999.0).round() as i64,
        }
    };
    Ranking { words, rows: charts.iter().take(ROWS).map(row).collect(), rest }
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

/// Brings a row's chart into view, opening its family.
fn open_chart(chart: String) {
    for family in browser::all("details[data-charts]") {
        let charts = family.get_attribute("data-charts").unwrap_or_default();
        if charts.split(' ').any(|c| c == chart) {
            family.unchecked_into::<HtmlDetailsElement>().set_open(true);
        }
    }
    // A family's charts appear in the frame after it was opened.
    let found = move || {
        for panel in browser::all("article[data-panel]") {
            let found = panel.get_attribute("data-panel").as_ref() == Some(&chart);
            // Refused only for names that are no class names.
            let _ = panel.class_list().toggle_with_force("found", found);
            if found {
                panel.scroll_into_view();
                panel.query_selector(".plot").ok().flatten().iter().for_each(browser::focus);
            }
        }
    };
    set_timeout(found, Duration::from_millis(60));
}

//! The list of devices that are unlike their peers in the shown span: each with its value, the range of the others, and
//! its position. A row opens its chart.

use crate::browser::offset;
use crate::state::Page;
use crate::store::difference::{Dissenter, dissenters};
use crate::store::trace::unit;
use charts::axis;
use leptos::prelude::*;
use shared::catalog::{Metric, Range};

/// Largest number of rows in the list.
const MAX_ROWS: usize = 40;

/// The texts of a row, and the places of its marks.
struct DifferenceRow {
    chart: String,
    title: String,
    name: String,
    value: String,
    others: String,
    /// Start and end of the others' range and the place of the device, from 0 to 100.
    marks: [f64; 3],
}

/// The list at the moment of opening, and again when older history arrives.
#[component]
pub fn Differs() -> impl IntoView {
    let page = expect_context::<Page>();
    let (words, rows, whole) = rows(page);
    let none = rows.is_empty().then_some(if whole { "No device stands out." } else { "Loading history." });
    view! {
        <p>{words}</p>
        <ol>{rows.into_iter().map(line).collect_view()}</ol>
        <p>{none}</p>
    }
}

fn line(row: DifferenceRow) -> impl IntoView {
    let chart = row.chart.clone();
    let [from, to, at] = row.marks;
    let range = format!("{}, {}: {}, others {}", row.title, row.name, row.value, row.others);
    view! {
        <li>
            <button data-do="chart" data-chart=row.chart title=range on:click=move |_| super::open_chart(chart.clone())>
                <span class="what"><span>{row.title}</span><small>{row.name}</small></span>
                <span class="values"><b>{row.value}</b>", others "{row.others}</span>
                <svg class="range" viewBox="-4 0 108 12" aria-hidden="true">
                    <line x1="0" x2="100" y1="6" y2="6"/>
                    <rect x=from width=(to - from).max(2.0) y="4" height="4"/>
                    <circle cx=at cy="6" r="4"/>
                </svg>
            </button>
        </li>
    }
}

/// The span in words, the rows with the furthest first, and whether the samples of the span have arrived. A chart is
/// listed once.
fn rows(page: Page) -> (String, Vec<DifferenceRow>, bool) {
    let (from, to) = page.span();
    let clock = |t: i64| axis::clock(t + offset(t), true);
    let words =
        format!("{}–{}: each device compared with its peers, largest difference first.", clock(from), clock(to));
    let store = page.store.read_value();
    let view = page.view_now();
    let Some(source) = store.source(view.source.as_deref()) else { return (words, Vec::new(), false) };
    let mut rows: Vec<DifferenceRow> = Vec::new();
    for found in dissenters(source, &store.catalog, (from, to)) {
        let def = &source.defs[found.series as usize];
        let metric = store.catalog.metric(def).filter(|m| page.is_planned(&m.chart));
        let Some(metric) = metric.filter(|m| !rows.iter().any(|row| row.chart == m.chart)) else { continue };
        let title = store.catalog.layout.charts.iter().find(|c| c.id == metric.chart).map_or("", |c| &c.title);
        rows.push(row(&found, metric, title, store.catalog.label(def)));
        if rows.len() == MAX_ROWS {
            break;
        }
    }
    (words, rows, source.has_all(from, to, (from, to)))
}

fn row(found: &Dissenter, metric: &Metric, title: &str, name: String) -> DifferenceRow {
    let (low, high) = found.peers;
    let axis = axis::values(unit(metric), Range::FromZero, low.min(found.value), high.max(found.value));
    let (a, b) = (axis.number(low), axis.number(high));
    let others = if a == b { a } else { format!("{a}–{b}") };
    // A tenth to either side, so that no mark is at the edge.
    let (least, most) = (low.min(found.value), high.max(found.value));
    let wide = (most - least).max(f64::MIN_POSITIVE);
    let place = |v: f64| ((v - least) / wide * 80.0 + 10.0).round();
    DifferenceRow {
        chart: metric.chart.clone(),
        title: title.to_string(),
        name,
        value: axis.number(found.value),
        others: format!("{others} {}", axis.scale.symbol),
        marks: [place(low), place(high), place(found.value)],
    }
}

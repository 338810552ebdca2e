//! The list of changes in the shown span against the previous span of the same length. A row opens its chart.

use super::Tool;
use super::differs::Differs;
use crate::browser::offset;
use crate::shortcuts::{self, Action};
use crate::state::{Page, Sheet};
use crate::store::difference::{Difference, rank};
use crate::store::trace::unit;
use charts::axis;
use leptos::prelude::*;
use shared::catalog::{Lane, Metric, Range};
use shared::series::SeriesDef;
use shared::unit::{Unit, rough_duration};
use viewer::picture::states;

/// Largest number of rows in the list.
const MAX_ROWS: usize = 40;

/// A chart that changed, with its series that moved most.
struct ChangedChart {
    chart: String,
    title: String,
    /// Name of the series, and the number of further ones; empty where the title has it.
    name: String,
    values: String,
    /// Change of the series, as a multiple of its usual spread.
    score: i64,
}

/// The texts of the list.
struct Ranking {
    /// The two spans that are compared.
    words: String,
    rows: Vec<ChangedChart>,
    /// Text below the rows; may be empty.
    rest: String,
}

/// The sheet with both lists. A list is made when it is opened, and again when older history arrives.
#[component]
pub fn Changed() -> impl IntoView {
    let page = expect_context::<Page>();
    Effect::new(move || {
        if page.sheet.get().is_some() {
            page.history.track();
            let (from, to) = page.span();
            page.want(&[(from - (to - from), from), (from, to)]);
        }
    });
    let list = move || {
        page.sheet.get().map(|sheet| {
            page.history.track();
            super::menus(Tool::Sheet(sheet))
        })
    };
    let tab = move |sheet: Sheet, words: &'static str, key: Action| {
        let pressed = move || (page.sheet.get() == Some(sheet)).to_string();
        let title = shortcuts::title(words, &[key]);
        view! { <button data-do="sheet" title=title aria-pressed=pressed on:click=move |_| page.sheet.set(Some(sheet))>{words}</button> }
    };
    view! {
        <aside id="sheet" class="sheet" aria-label="Changes and outliers" hidden=move || page.sheet.get().is_none()>
            <header>
                <h2>
                    {tab(Sheet::Changed, "Changes", Action::Changed)}
                    {tab(Sheet::Differs, "Outliers", Action::Differs)}
                </h2>
                <button data-do="close" aria-label="Close" on:click=move |_| page.sheet.set(None)>"✕"</button>
            </header>
            {list}
        </aside>
    }
}

/// The list of the sheet at this moment.
pub fn list(sheet: Sheet) -> AnyView {
    match sheet {
        Sheet::Changed => view! { <Ranked/> }.into_any(),
        Sheet::Differs => view! { <Differs/> }.into_any(),
    }
}

/// The list of changes at this moment.
#[component]
fn Ranked() -> impl IntoView {
    let Ranking { words, rows, rest } = ranking(expect_context::<Page>());
    view! {
        <p>{words}</p>
        <ol>{rows.into_iter().map(line).collect_view()}</ol>
        <p>{rest}</p>
    }
}

fn line(row: ChangedChart) -> impl IntoView {
    let chart = row.chart.clone();
    view! {
        <li>
            <button data-do="chart" data-chart=row.chart on:click=move |_| super::open_chart(chart.clone())>
                <span class="what">
                    <span>{row.title}</span>
                    {(!row.name.is_empty()).then(|| view! { <small>{row.name}</small> })}
                </span>
                <span class="values">{row.values}</span>
                <span class="score" title="Change as a multiple of the usual one">{row.score}"×"</span>
            </button>
        </li>
    }
}

fn ranking(page: Page) -> Ranking {
    let (from, to) = page.span();
    let clock = |t: i64| axis::clock(t + offset(t), true);
    let length = rough_duration(to - from);
    let words = format!("{}–{} compared with the {length} before; most unusual change first.", clock(from), clock(to));
    let store = page.store.read_value();
    let view = page.view_now();
    let Some(source) = store.source(view.source.as_deref()) else {
        return Ranking { words, rows: Vec::new(), rest: String::new() };
    };
    if !source.has_all(from - (to - from), to, (from, to)) {
        // The newest ticks arrive first. The list is rebuilt when the history of both spans has arrived.
        return Ranking { words, rows: Vec::new(), rest: "Loading history.".into() };
    }
    let Some(found) = rank(source, &store.catalog, (from, to)) else {
        let rest = format!("There is no data of the {length} before to compare with.");
        return Ranking { words, rows: Vec::new(), rest };
    };
    // A chart is listed once, with its series that moved most.
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
        0 => "Nothing changed more than usual.".to_string(),
        n if n > MAX_ROWS => format!("… {} more", n - MAX_ROWS),
        _ => String::new(),
    };
    let row = |(d, metric, others): &(&Difference, &Metric, usize)| {
        let title = store.catalog.layout.charts.iter().find(|c| c.id == metric.chart).map_or("", |c| &c.title);
        let name = store.catalog.label(&source.defs[d.series as usize]);
        let drawn = |def: &&SeriesDef| store.catalog.metric(def).is_some_and(|m| m.chart == metric.chart);
        let name = match others {
            0 if name == title => String::new(),
            0 => name,
            n if *n > 1 && source.defs.iter().filter(drawn).count() == n + 1 => format!("all {}", n + 1),
            n => format!("{name} and {n} more"),
        };
        let lane = store.catalog.layout.lanes.iter().find(|lane| lane.metric == metric.tag);
        ChangedChart {
            chart: metric.chart.clone(),
            title: title.to_string(),
            name,
            values: values(d, unit(metric), lane),
            score: d.score.min(999.0).round() as i64,
        }
    };
    Ranking { words, rows: charts.iter().take(MAX_ROWS).map(row).collect(), rest }
}

/// The part of the series that moved, its value before and its value now. States are written as words.
fn values(d: &Difference, unit: Unit, lane: Option<&Lane>) -> String {
    let (before, after) = d.values;
    if lane.is_some() {
        return format!("{} → {}", states::state_word(lane, before), states::state_word(lane, after));
    }
    let axis = axis::values(unit, Range::FromZero, before.min(after), before.max(after));
    let what = if d.what.is_empty() { String::new() } else { format!("{} ", d.what) };
    format!("{what}{} → {} {}", axis.number(before), axis.number(after), axis.scale.symbol)
}

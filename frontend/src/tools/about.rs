//! Description of a chart: meaning, formula, unit and source of each of its metrics, and its names in other programs,
//! each to be copied.

use crate::browser;
use crate::panels::board::Board;
use crate::state::Page;
use crate::store::plan::HEAT_SUFFIX;
use leptos::html;
use leptos::prelude::*;
use shared::catalog::{Kind, Metric, prometheus};
use shared::unit::Unit;

/// Opens the description of the chart that has the focus or is pointed at.
pub fn by_key(board: Board) {
    if let Some(chart) = super::pointed(board) {
        board.page.dialog.set(Some(crate::state::Dialog::About(chart)));
    }
}

/// The description of a chart, or of all charts of a section; a sentence when there are no series.
#[component]
pub fn About(
    /// Id of the chart or the section.
    id: String,
    /// True for all charts of a section.
    section: bool,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let metrics = metrics(page, id.trim_end_matches(HEAT_SUFFIX), section);
    let body = NodeRef::<html::Div>::new();
    let did = RwSignal::new(String::new());
    let name = move |what: &'static str, text: String| {
        let (shown, copied) = (text.clone(), text.clone());
        let copy = move |_| {
            let done = body.get_untracked().is_some_and(|body| browser::copy(&text, &body));
            did.set(if done { format!("Copied: {copied}") } else { "Copying was blocked by the browser.".into() });
        };
        view! {
            <dt>{what}</dt>
            <dd><code>{shown}</code> <button data-do="copy" title=format!("Copy the name: {what}") on:click=copy>"Copy"</button></dd>
        }
    };
    let one = move |metric: Metric| {
        let also = (!metric.aliases.is_empty())
            .then(|| metric.aliases.iter().map(|alias| name("Also", alias.clone())).collect_view());
        view! {
            <section>
                <h3>{metric.title.clone()}</h3>
                <p>{metric.help.clone()}</p>
                <dl>
                    <dt>"Unit"</dt>
                    <dd>{unit(&metric)}</dd>
                    {name("Tag, as in W&B", metric.tag.clone())}
                    {also}
                    {name("Prometheus", prometheus::written(&metric))}
                </dl>
            </section>
        }
    };
    let none = metrics.is_empty().then_some("There are no series at the moment.");
    view! {
        <div node_ref=body class="body about">
            <p class="did" role="status">{did}</p>
            {none}
            {metrics.into_iter().map(one).collect_view()}
            <p class="below"><a href="docs/reference/metrics.html" target="_blank">"All metrics"</a></p>
        </div>
    }
}

/// The metrics of a chart or of a section: those of lines, limits and states, each once.
fn metrics(page: Page, id: &str, section: bool) -> Vec<Metric> {
    let store = page.store.read_value();
    let view = page.view_now();
    let Some(source) = store.source(view.source.as_deref()) else { return Vec::new() };
    let layout = &store.catalog.layout;
    let here = |metric: &Metric| {
        let on = |chart: &str| {
            metric.chart == chart || layout.lanes.iter().any(|l| l.chart == chart && l.metric == metric.tag)
        };
        match section {
            true => layout.charts.iter().filter(|chart| chart.section == id).any(|chart| on(&chart.id)),
            false => on(id),
        }
    };
    let mut rows: Vec<u16> = source.defs.iter().map(|def| def.metric).collect();
    rows.sort_unstable();
    rows.dedup();
    let metrics = rows.into_iter().filter_map(|row| store.catalog.metrics.get(usize::from(row)));
    metrics.filter(|metric| here(metric)).cloned().collect()
}

/// The unit in words, and the form in which a counter is drawn.
fn unit(metric: &Metric) -> String {
    let unit = match metric.unit {
        Unit::State => "a state".to_string(),
        Unit::Count => "a number".to_string(),
        unit => unit.name().to_string(),
    };
    match metric.kind {
        Kind::Counter => format!("{unit}, a counter; drawn as its increase per second"),
        _ => unit,
    }
}

//! The ranks of a run: a lane each from begin to end, grouped by machine, and small multiples of how busy they were.

use super::parts::shape;
use crate::state::Page;
use crate::store::fleet::words::count;
use crate::widgets::spark::Small;
use leptos::prelude::*;
use shared::unit::rough_duration;
use viewer::runs::{Measured, Ranked, Whole};

/// Lanes that are shown at first.
const MAX_LANES: usize = 32;
/// Cells of the small multiples.
const MAX_CELLS: usize = 512;

/// A lane for each process of the run.
#[component]
pub fn RankLanes(
    /// The run.
    #[prop(into)]
    whole: Signal<Option<Whole>>,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let all = RwSignal::new(false);
    let lanes = move || {
        let whole = whole.get()?;
        let most = if all.get() { usize::MAX } else { MAX_LANES };
        // The rank that caused the failure is always shown.
        let shown = |(at, one): &(usize, &Ranked)| *at < most || one.is_cause;
        let now = page.server_now();
        let span = (whole.run.began, whole.run.ended.unwrap_or(now));
        let mut host = String::new();
        let rows: Vec<_> = whole.processes.iter().enumerate().filter(shown).map(|(_, one)| one.clone()).collect();
        let rows = rows.into_iter().map(|one| {
            let first = one.source != host;
            host.clone_from(&one.source);
            lane(page, one, first, span, now)
        });
        Some(rows.collect_view())
    };
    let further = move || whole.with(|whole| whole.as_ref().map_or(0, |w| w.processes.len().saturating_sub(MAX_LANES)));
    let heading = move || {
        whole.with(|whole| {
            whole.as_ref().map_or(String::new(), |whole| count(whole.processes.len(), "process", "processes"))
        })
    };
    view! {
        <section class="panel rank-lanes" aria-label="Ranks">
            <header><h2>"Ranks"</h2><span class="u">{heading}", start to end"</span></header>
            <ol>{lanes}</ol>
            <Show when=move || { further() > 0 && !all.get() }>
                <button class="more-rows" data-do="all-ranks" on:click=move |_| all.set(true)>{move || format!("{} more", further())}</button>
            </Show>
        </section>
    }
}

fn lane(page: Page, one: Ranked, first: bool, (from, to): (i64, i64), now: i64) -> impl IntoView {
    let length = (to - from).max(1) as f64;
    let place = |t: i64| ((t - from) as f64 / length * 100.0).clamp(0.0, 100.0);
    let (begin, end) = (place(one.began), place(one.ended.unwrap_or(now)));
    let (left, wide) = (format!("{begin:.2}%"), format!("{:.2}%", (end - begin).max(0.4)));
    let machine = page.address_of(None, std::slice::from_ref(&one.source));
    let lasted = rough_duration((one.ended.unwrap_or(now) - one.began).max(0));
    let (words, glyph) = one.describe();
    let state = one.shown_state();
    let name = one.name();
    view! {
        {first.then(|| view! { <li class="host"><a class="source-name" href=machine>{one.source.clone()}</a></li> })}
        <li data-rank=one.rank data-source=one.source.clone() data-cause=one.is_cause.then_some("")>
            <span class="who">{name}" "<span class="u">{one.gpus}</span></span>
            <span class="track"><i class=shape(state) style:left=left style:width=wide></i></span>
            <span class="how">
                {one.is_cause.then(|| view! { <b>"▼ first to stop "</b> })}
                <span class=shape(state) aria-hidden="true">{glyph.to_string()}</span>" "{words}
                <span class="u">" "{lasted}</span>
            </span>
        </li>
    }
}

/// Small multiples of one measure: a row a machine, a cell a rank.
#[component]
pub fn Multiples(
    /// The measure.
    #[prop(into)]
    measured: Signal<Option<Measured>>,
    /// The run.
    #[prop(into)]
    whole: Signal<Option<Whole>>,
) -> impl IntoView {
    let rows = move || {
        let (measured, whole) = (measured.get()?, whole.get()?);
        let most = measured.chart.curves.iter().flat_map(|curve| &curve.values).flatten().copied().fold(0.0, f64::max);
        let most = if measured.chart.unit == shared::unit::Unit::Percent { 100.0 } else { most };
        // Lines and processes come in one order: by machine and rank, each rank once.
        let mut ranks: Vec<(String, u32, bool)> = Vec::new();
        for one in &whole.processes {
            let Some(rank) = one.rank else { continue };
            match ranks.iter_mut().find(|(source, known, _)| *source == one.source && *known == rank) {
                Some(known) => known.2 |= one.is_cause,
                None => ranks.push((one.source.clone(), rank, one.is_cause)),
            }
        }
        let mut hosts: Vec<(String, Vec<AnyView>)> = Vec::new();
        for ((source, rank, is_cause), curve) in ranks.into_iter().zip(measured.chart.curves).take(MAX_CELLS) {
            let title = format!("rank {rank} on {source}");
            let cell = view! {
                <span class="cell" title=title data-rank=rank data-cause=is_cause.then_some("")>
                    <small>{rank}</small>
                    <Small values=curve.values most/>
                </span>
            };
            match hosts.last_mut().filter(|(name, _)| *name == source) {
                Some((_, cells)) => cells.push(cell.into_any()),
                None => hosts.push((source, vec![cell.into_any()])),
            }
        }
        let row = |(name, cells): (String, Vec<AnyView>)| view! { <li><span class="source-name">{name}</span><span class="cells-row">{cells}</span></li> };
        Some(hosts.into_iter().map(row).collect_view())
    };
    let title = move || {
        measured.with(|m| {
            m.as_ref()
                .map_or(String::new(), |m| format!("{}, one scale; one row per machine, one cell per rank", m.title))
        })
    };
    view! {
        <section class="panel multiples" aria-label="Ranks, small multiples">
            <header><h2>"Ranks"</h2><span class="u">{title}</span></header>
            <ol>{rows}</ol>
        </section>
    }
}

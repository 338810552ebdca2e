//! Several training jobs beside each other: a line each over the time since its start, by the clock or by step, and what
//! [`differs`].
//!
//! [`differs`]: super::differs

use super::differs::table;
use super::one::AskedRun;
use super::parts::{shape, state_word, where_it_ran};
use crate::address::{CLOCK, Route, STEP};
use crate::panels::curves::Curves;
use crate::state::Page;
use crate::widgets::clock::clock;
use crate::widgets::parts::{Each, If, flag, text};
use charts::marks::CellMark;
use leptos::prelude::*;
use shared::wire::MAX_OPENED;
use std::sync::Arc;
use viewer::curves::CurveChart;
use viewer::runs::differs::headline;
use viewer::runs::side::{RunBySteps, aligned, by_step, steps_of};
use viewer::runs::{Measured, STEPS, Whole};

/// The names of runs; equal names are distinguished by the ends of their ids.
fn told_apart(all: &[Option<Whole>]) -> Vec<String> {
    let runs: Vec<_> = all.iter().flatten().map(|whole| &whole.run).collect();
    let tail = |id: &str| id.chars().skip(id.chars().count().saturating_sub(6)).collect::<String>();
    let names = runs.iter().map(|run| {
        let is_twice = runs.iter().filter(|other| other.name == run.name).count() > 1;
        if is_twice { format!("{} {}", run.name, tail(&run.id)) } else { run.name.clone() }
    });
    names.collect()
}

/// Ids of the measures that at least two of them have.
fn in_common(all: &[Option<Whole>]) -> Vec<String> {
    let mut ids: Vec<(String, usize)> = Vec::new();
    for measured in all.iter().flatten().flat_map(|whole| &whole.measures) {
        match ids.iter_mut().find(|(id, _)| *id == measured.id) {
            Some((_, n)) => *n += 1,
            None => ids.push((measured.id.clone(), 1)),
        }
    }
    ids.into_iter().filter(|(_, n)| *n > 1).map(|(id, _)| id).collect()
}

/// The page of several runs.
#[component]
pub fn SidePage(
    /// Their ids.
    ids: Vec<String>,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let left_out = ids.len().saturating_sub(MAX_OPENED);
    let asked: Vec<AskedRun> = ids.into_iter().take(MAX_OPENED).map(|id| AskedRun::follow(page, id)).collect();
    let asked = StoredValue::new(asked);
    let wholes = Memo::new(move |_| {
        asked.with_value(|asked| asked.iter().map(|one| one.whole.get()).collect::<Vec<Option<Whole>>>())
    });
    let names = Memo::new(move |_| wholes.with(|all| told_apart(all)));
    let wrong = text(move || {
        asked.with_value(|asked| {
            let mut all: Vec<String> =
                asked.iter().map(|one| one.wrong.get()).filter(|wrong| !wrong.is_empty()).collect();
            all.extend(
                (left_out > 0).then(|| format!("{left_out} more are not shown: at most {MAX_OPENED} can be compared.")),
            );
            all.join(" ")
        })
    });
    let measures = Memo::new(move |_| wholes.with(|all| in_common(all)));
    let read = move || wholes.with(|all| all.iter().flatten().cloned().collect::<Vec<Whole>>());
    let said =
        Memo::new(move |_| Some(headline(&read())).filter(|said| !said.is_empty()).map_or(String::new(), |s| s + "."));
    let at = RwSignal::new(None::<i64>);
    let chart = Callback::new(move |id: String| view! { <SideChart id wholes names at/> }.into_any());
    let list = page.address_of(Some(Route::Runs), &[]);
    let align = move |words: &'static str, how: &'static str| {
        let pressed = text(move || page.view.with(|view| view.align == how).to_string());
        let choose = move |_| page.step(|view| view.align = how.into());
        view! { <button data-do="align" aria-pressed=pressed on:click=choose>{words}</button> }
    };
    view! {
        <main id="page" class="fleet run-page side-page">
            <p class="wrong" role="status">{wrong}</p>
            <header class="run-head">
                <div>
                    <p class="crumbs"><a href=list>"Runs"</a>" / compare"</p>
                    <h2 class="source-name">{text(move || names.with(|names| names.join(" vs. ")))}</h2>
                    <p class="how"><b data-headline>{text(move || said.get())}</b></p>
                </div>
                <span class="choice" role="group" aria-label="Align">
                    {align("from start", "")}
                    {align("by time", CLOCK)}
                    <If when=flag(move || wholes.with(|all| all.iter().flatten().filter_map(steps_of).count() > 1))>{align("by step", STEP)}</If>
                </span>
            </header>
            {move || wholes.with(|all| key(page, &names.get(), all))}
            <div class="side-body">
                <div class="run-charts">
                    <If when=flag(move || measures.with(Vec::is_empty) && wholes.with(|all| all.iter().all(Option::is_some)))>
                        <p class="panel below">"These runs have no metric in common."</p>
                    </If>
                    <Each keys=measures row=chart/>
                </div>
                {move || table(page, &names.get(), read())}
            </div>
        </main>
    }
}

/// The legend of the lines, with the state of each run.
fn key(page: Page, names: &[String], all: &[Option<Whole>]) -> impl IntoView + use<> {
    let rows = all.iter().flatten().zip(names).enumerate().map(|(i, (whole, name))| {
        let class = format!("hue-{}{}", i % 8, if i % 8 > 3 { " dashed" } else { "" });
        let run = &whole.run;
        let said = format!("{}, {}, {}", state_word(run.state), where_it_ran(run), clock(run.began / 1_000));
        let to = page.address_of_runs(std::slice::from_ref(&run.id));
        view! {
            <li data-run=run.id.clone() data-state=run.state.name()>
                <svg viewBox="0 0 14 8" class=class aria-hidden="true"><path d="M0 4h14"/></svg>
                <a class="source-name" href=to><b>{name.clone()}</b></a>
                <span class=shape(run.state) aria-hidden="true">{run.state.shape().to_string()}</span>
                <span class="u">{said}</span>
            </li>
        }
    });
    view! { <ul class="key">{rows.collect_view()}</ul> }
}

#[component]
fn SideChart(
    id: String,
    wholes: Memo<Vec<Option<Whole>>>,
    names: Memo<Vec<String>>,
    at: RwSignal<Option<i64>>,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let own = id.clone();
    let by = Memo::new(move |_| page.view.with(|view| view.align.clone()));
    let made = Memo::new(move |_| {
        wholes.with(|all| {
            let names = names.get();
            let named = all.iter().flatten().zip(names);
            let found: Vec<RunBySteps<'_>> = named
                .filter_map(|(whole, name)| {
                    let measured = whole.measures.iter().find(|measured| measured.id == own)?;
                    Some((name, measured, steps_of(whole)))
                })
                .collect();
            let first = &found.first()?.1;
            let how = match first.of_gpus.as_str() {
                _ if first.id == STEPS => "by the newest marker",
                "sum" => "sum of all ranks",
                "max" => "the largest of all ranks",
                "" => "mean of its machines",
                _ => "mean of all ranks",
            };
            let chart = by.with(|by| match by.as_str() {
                STEP => by_step(&found),
                by => {
                    let runs: Vec<(String, &Measured)> = found.iter().map(|(name, m, _)| (name.clone(), *m)).collect();
                    aligned(&runs, by == CLOCK)
                }
            })?;
            let symbol = chart.symbol();
            let said = if symbol.is_empty() { how.to_string() } else { format!("{symbol}; {how}") };
            Some((first.title.clone(), said, Arc::new(chart)))
        })
    });
    let title = text(move || made.with(|made| made.as_ref().map(|(title, ..)| title.clone()).unwrap_or_default()));
    let said = text(move || made.with(|made| made.as_ref().map(|(_, said, _)| said.clone()).unwrap_or_default()));
    let marks: RwSignal<Arc<Vec<CellMark>>> = RwSignal::new(Arc::new(Vec::new()));
    let chart = Signal::derive(move || made.with(|made| made.as_ref().map(|(.., chart)| chart.clone())));
    view! {
        <article class="panel" data-measure=id>
            <header><h2>{title}</h2><span class="u">{said}</span></header>
            <div class="lines-plot tall">
                <If when=flag(move || chart.with(Option::is_some))>
                    <Curves chart=Signal::derive(move || chart.get().unwrap_or_else(CurveChart::nothing)) marks at label=title/>
                </If>
            </div>
        </article>
    }
}

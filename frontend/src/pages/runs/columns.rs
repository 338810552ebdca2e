//! The columns of the list of runs as rows of a list: see [`viewer::runs::columns`].

use super::parts::{percent, shape, state_word};
use crate::state::Page;
use crate::widgets::list::line::{Cell, Head, Line, Mark};
use crate::widgets::parts::flag;
use leptos::prelude::*;
use shared::run::RunState;
use shared::unit::rough_duration;
use viewer::runs::Listed;
use viewer::runs::columns::{COLUMNS, NAME, RunColumn, Shown, chosen, toggled};

/// An idle share that is marked, 0 to 1.
const MUCH_IDLE: f64 = 0.3;

/// The name, the faint text after it (its group, and the cause of a bad end), and on a phone its state.
fn name(page: Page, run: &Listed) -> Cell {
    let group = [&run.group, &run.job_type].into_iter().find(|name| !name.is_empty()).cloned();
    let how = (!matches!(run.state, RunState::Running | RunState::Finished)).then(|| run.sentence.clone());
    let about = group.into_iter().chain(how).collect::<Vec<_>>().join(", ");
    let to = page.address_of_runs(std::slice::from_ref(&run.id));
    let lasted = rough_duration(run.lasted(page.server_now()));
    let short = Mark { words: format!("{}, {lasted}", state_word(run.state)), ..mark(run.state) };
    Cell::Link(to, run.name.clone(), about, short)
}

fn mark(state: RunState) -> Mark {
    Mark { class: shape(state), glyph: state.shape().to_string(), words: state_word(state) }
}

fn cell(page: Page, column: &RunColumn, run: &Listed) -> Cell {
    match (column.cell)(run) {
        Shown::State(state) => Cell::Stands(state.name().to_string(), mark(state), String::new()),
        Shown::Name => name(page, run),
        Shown::Spark(values) => Cell::Spark(values),
        Shown::Words(words) => Cell::Text(words),
        Shown::Strong(words) => Cell::Strong(words),
        Shown::Titled(words, title) => Cell::Titled(words, title),
        Shown::Idle(idle) => Cell::Share(idle, percent(idle), idle.is_some_and(|idle| idle >= MUCH_IDLE)),
        Shown::At(ms) => Cell::At(ms / 1_000),
        Shown::Lasted(began, ended) => Cell::Lasts(began, ended),
    }
}

/// The row of a run.
pub fn line(page: Page, columns: &[&'static RunColumn], run: &Listed) -> Line {
    let cells = columns.iter().map(|column| cell(page, column, run)).collect();
    Line { id: run.id.clone(), name: run.name.clone(), cells, deeds: Vec::new() }
}

/// The heading of a column.
pub fn head(column: &'static RunColumn) -> Head {
    Head {
        id: column.id.to_string(),
        words: column.words,
        class: if column.left { format!("l {}", column.id) } else { column.id.to_string() },
        names: column.id == NAME,
        sorts: column.order.is_some().then(|| column.rises()),
    }
}

/// The columns that there are, each to be ticked.
#[component]
pub fn ColumnChoice() -> impl IntoView {
    let page = expect_context::<Page>();
    let tick = move |column: &'static RunColumn| {
        let is_shown = flag(move || page.view.with(|view| chosen(&view.columns).iter().any(|own| own.id == column.id)));
        let press = move |_| page.step(|view| view.columns = toggled(&view.columns, column.id));
        view! {
            <label><input type="checkbox" data-column=column.id prop:checked=is_shown on:change=press/>" "{column.words}</label>
        }
    };
    let all = COLUMNS.iter().filter(|column| column.id != NAME).map(tick).collect_view();
    view! {
        <details class="columns">
            <summary class="chip">"Columns"</summary>
            <div class="menu" role="group" aria-label="Columns">
                {all}
                <button class="plain" data-do="usual-columns" on:click=move |_| page.step(|view| view.columns.clear())>"Reset columns"</button>
            </div>
        </details>
    }
}

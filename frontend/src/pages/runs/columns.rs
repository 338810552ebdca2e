//! The columns of the list of runs as elements: see [`viewer::runs::columns`].

use super::parts::{Small, percent, shape, word};
use super::read::Listed;
use crate::pages::team::list::clock;
use crate::state::Page;
use crate::widgets::parts::{flag, text};
use leptos::prelude::*;
use shared::run::RunState;
use shared::unit::rough_duration;
use viewer::runs::columns::{BEGAN, COLUMNS, NAME, RunColumn, Shown, chosen, toggled};

/// An idle share that is marked, 0 to 1.
const MUCH_IDLE: f64 = 0.3;

/// The name, what stands faint behind it (its group, and how it ended where that was not well), and on a phone how it stands.
fn name(run: &Listed, now: i64) -> AnyView {
    let page = expect_context::<Page>();
    let group = [&run.group, &run.job_type].into_iter().find(|name| !name.is_empty()).cloned();
    let how = (!matches!(run.state, RunState::Running | RunState::Finished)).then(|| run.sentence.clone());
    let about = group.into_iter().chain(how).collect::<Vec<_>>().join(", ");
    let to = page.address_of_runs(std::slice::from_ref(&run.id));
    let lasted = rough_duration(run.lasted(now));
    view! {
        <a class="source-name" href=to>{run.name.clone()}</a>" "
        <span class="u">{about}</span>
        <span class="u short"><span class=shape(run.state) aria-hidden="true">{run.state.shape().to_string()}</span>" "{word(run.state)}", "{lasted}</span>
    }
    .into_any()
}

/// A cell of a run.
fn drawn(column: &RunColumn, run: &Listed, now: i64) -> AnyView {
    match (column.cell)(run, now) {
        Shown::State(state) => {
            let sign = view! { <span class=shape(state) aria-hidden="true">{state.shape().to_string()}</span> };
            view! { {sign}" "{word(state)} }.into_any()
        }
        Shown::Name => name(run, now),
        Shown::Spark(values) => (!values.is_empty()).then(|| view! { <Small values most=100.0/> }).into_any(),
        Shown::Words(words) => words.into_any(),
        Shown::Strong(words) => view! { <b>{words}</b> }.into_any(),
        Shown::Titled(words, title) => view! { <span title=title>{words}</span> }.into_any(),
        Shown::Idle(idle) => {
            let class = if idle.is_some_and(|idle| idle >= MUCH_IDLE) { "is-much" } else { "" };
            let wide =
                |idle: f64| view! { <i class="share"><i style:width=format!("{:.0}%", idle * 100.0)></i></i>" " };
            view! { <span class=class>{idle.map(wide)}{percent(idle)}</span> }.into_any()
        }
        Shown::At(ms) => clock(ms / 1_000).into_any(),
    }
}

/// A heading; a press sorts, a second one turns the order.
pub fn head(column: &'static RunColumn) -> AnyView {
    let page = expect_context::<Page>();
    let by = column.id;
    let class = if column.left { format!("l {by}") } else { by.to_string() };
    if column.order.is_none() {
        return view! { <th scope="col" class=class>{column.words}</th> }.into_any();
    }
    let now = move || page.view.with(|view| if view.sort.is_empty() { BEGAN.to_string() } else { view.sort.clone() });
    let sorted = text(move || {
        let now = now();
        let turned = now.strip_prefix('-') == Some(by);
        match (now == by || turned, turned != column.rises()) {
            (false, _) => "none",
            (true, true) => "ascending",
            (true, false) => "descending",
        }
    });
    let press = move |_| {
        let turned = now() == by;
        page.step(|view| view.sort = if turned { format!("-{by}") } else { by.to_string() });
    };
    view! {
        <th scope="col" class=class aria-sort=sorted data-column=by><button data-do="sort" on:click=press>{column.words}</button></th>
    }
    .into_any()
}

/// The cell of a run.
pub fn cell(column: &'static RunColumn, run: Memo<Option<Listed>>) -> AnyView {
    let page = expect_context::<Page>();
    let shown = move || {
        if column.id == "lasted" {
            page.beat.track();
        }
        run.with(|run| run.as_ref().map(|run| drawn(column, run, page.server_now())))
    };
    let class = if column.left { format!("l {}", column.id) } else { column.id.to_string() };
    match column.id {
        NAME => view! { <th scope="row" class=class>{shown}</th> }.into_any(),
        _ => view! { <td class=class>{shown}</td> }.into_any(),
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

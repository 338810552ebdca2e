//! The list of training jobs: how each does or ended, filtered, sorted and grouped, and ticked to be compared.

use super::columns::{ColumnChoice, head, line};
use super::parts::{listed, shape};
use crate::access::Access;
use crate::address::Route;
use crate::fetch::{Json, WrongShape};
use crate::pages::poll::{PollAnswer, poll};
use crate::state::Page;
use crate::store::fleet::words::{count, thousands};
use crate::widgets::list::filter::{Choice, Filter, options};
use crate::widgets::list::line::{Cell, Head, Line};
use crate::widgets::list::ticks::{Ticked, Ticks};
use crate::widgets::list::{List, More, Sort};
use crate::widgets::parts::{If, flag, text};
use leptos::prelude::*;
use shared::answer::runs::RunTotals;
use shared::role::Role;
use shared::run::RunState;
use shared::wire::MAX_OPENED;
use viewer::runs::Listed;
use viewer::runs::columns::{BEGAN, RunColumn, chosen as chosen_columns};
use viewer::runs::list::{gist, keys};

/// Seconds between two polls.
const REFRESH_SECONDS: u32 = 5;
/// Number of rows requested at first, and with each press of the button.
const PAGE: usize = 50;
/// The most that the server lists at once.
const MAX_LISTED: usize = 1_000;
/// The chips: label, shape, and the states.
const CHIPS: [(&str, char, &[RunState]); 4] = [
    ("Running", '●', &[RunState::Running, RunState::Suspended]),
    ("Finished", '✓', &[RunState::Finished]),
    ("Failed, crashed", '■', &RunState::CRASHED),
    (
        "Lost, cancelled",
        '◌',
        &[RunState::Unreachable, RunState::Lost, RunState::Cancelled, RunState::Preempted, RunState::Ended],
    ),
];

/// Groupings of runs: name in the address, and label.
const GROUPS: [(&str, &str); 6] =
    [("", "project"), ("group", "group"), ("type", "type"), ("user", "user"), ("failure", "failure"), ("none", "none")];

/// Content of the list.
#[derive(Clone, Debug, Default, PartialEq)]
struct KnownRuns {
    runs: Vec<Listed>,
    /// Number of runs of each state.
    states: Vec<(String, usize)>,
    /// Runs that fit, listed or not.
    total: usize,
}

/// The request for the address: words as `project:llm` filter, others are searched in names.
fn question(find: &str, state: &str, limit: usize) -> String {
    let encode = |text: &str| String::from(js_sys::encode_uri_component(text));
    let (mut asked, mut parts) = (format!("api/v1/runs?sums=true&limit={limit}"), Vec::new());
    for word in find.split_whitespace() {
        let named = word.split_once(':').and_then(|(name, value)| {
            let name = match name {
                "project" | "group" | "user" | "source" | "failure" => name,
                "type" => "job_type",
                _ => return None,
            };
            (!value.is_empty()).then_some((name, value))
        });
        match named {
            Some((name, value)) => asked += &format!("&{name}={}", encode(value)),
            None => parts.push(word),
        }
    }
    if !parts.is_empty() {
        asked += &format!("&q={}", encode(&parts.join(" ")));
    }
    if !state.is_empty() {
        asked += &format!("&state={}", encode(state));
    }
    asked
}

fn read_known(body: &Json) -> Result<KnownRuns, WrongShape> {
    let RunTotals { total, states, .. } = body.read()?;
    let states = RunState::ALL.into_iter().filter_map(|state| {
        let n = states.get(state.name())?;
        Some((state.name().to_string(), *n as usize))
    });
    Ok(KnownRuns { states: states.collect(), total: total as usize, runs: listed(body)? })
}

/// The page.
#[component]
pub fn RunsPage() -> impl IntoView {
    let page = expect_context::<Page>();
    let known = RwSignal::new(None::<KnownRuns>);
    let wrong = RwSignal::new(String::new());
    let limit = RwSignal::new(PAGE);
    let ticks = Ticks(RwSignal::new(page.view.with_untracked(|view| view.runs.clone())));
    let path = move || Some(page.view.with(|view| question(&view.find, &view.state, limit.get())));
    poll(page, expect_context::<Access>(), REFRESH_SECONDS, path, move |polled| match polled {
        PollAnswer::Told(body) => {
            let new = match read_known(body) {
                Ok(new) => Some(new),
                Err(why) => return wrong.set(why.to_string()),
            };
            wrong.set(String::new());
            if known.with_untracked(|old| *old != new) {
                known.set(new);
            }
        }
        PollAnswer::Refused => wrong.set("This server does not show training jobs here.".into()),
        PollAnswer::Failed(why) => wrong.set(why),
    });
    let with = move |of: fn(&KnownRuns) -> usize| known.with(|known| known.as_ref().map_or(0, of));
    let more = move || with(|known| known.total.saturating_sub(known.runs.len()));
    let is_empty = move || known.with(|known| known.as_ref().is_some_and(|known| known.states.is_empty()));
    let asks = move || page.view.with(|view| !view.find.is_empty() || !view.state.is_empty());
    let columns = Memo::new(move |_| page.view.with(|view| view.columns.clone()));
    let heads = Signal::derive(move || chosen_columns(&columns.get()).into_iter().map(head).collect::<Vec<Head>>());
    let by = Memo::new(move |_| page.view.with(|view| (view.by.clone(), view.sort.clone())));
    let rows = Memo::new(move |_| {
        let (columns, (by, sort)) = (chosen_columns(&columns.get()), by.get());
        known.with(|known| {
            known.as_ref().map(|known| lines(page, &known.runs, &columns, &by, &sort)).unwrap_or_default()
        })
    });
    let sort = Sort {
        by: text(move || by.with(|(_, sort)| if sort.is_empty() { BEGAN.to_string() } else { sort.clone() })),
        choose: Callback::new(move |sort| page.step(|view| view.sort = sort)),
    };
    let left = text(move || match more() {
        0 => String::new(),
        _ if limit.get() >= MAX_LISTED => String::new(),
        n => format!("{} more", thousands(n)),
    });
    let is_loading = flag(move || known.with(Option::is_none) && wrong.with(String::is_empty));
    let page_more = Callback::new(move |()| limit.update(|n| *n = (*n + PAGE).min(MAX_LISTED)));
    view! {
        <main id="page" class="fleet runs-page">
            <p class="wrong" role="status">{text(move || wrong.get())}</p>
            <If when=flag(move || is_empty() && !asks())>
                <Nothing/>
            </If>
            <If when=flag(move || !is_empty() || asks())>
                <Tools known/>
                <section class="panel flush" aria-label="Runs">
                    <List
                        id="runs"
                        class="rows runs-table"
                        label="Table of runs"
                        heads
                        rows
                        known=flag(move || is_empty() && asks())
                        empty="No run matches. Change the filter, or choose All."
                        ticks
                        sort
                    />
                    <If when=is_loading><p class="below pad" role="status">"Loading runs…"</p></If>
                    <More words=left press=page_more/>
                    <If when=flag(move || more() > 0 && limit.get() >= MAX_LISTED)>
                        <p class="below pad">{text(move || format!("{} more: use the filter", thousands(more())))}</p>
                    </If>
                </section>
                <Compare ticks known/>
            </If>
        </main>
    }
}

/// The rows in their order, those of a group below its heading.
fn lines(page: Page, runs: &[Listed], columns: &[&'static RunColumn], by: &str, sort: &str) -> Vec<Line> {
    let row = |key: String| match key.split_at(1) {
        ("=", name) => {
            let shown = if name.is_empty() { "without a name".to_string() } else { name.to_string() };
            let cells = vec![Cell::Group(shown, gist(runs, by, name))];
            Some(Line { id: key, cells, ..Line::default() })
        }
        (_, id) => runs.iter().find(|run| run.id == id).map(|run| line(page, columns, run)),
    };
    keys(runs.to_vec(), by, sort, page.server_now()).into_iter().filter_map(row).collect()
}

/// Chips of states, the filter, and the grouping.
#[component]
fn Tools(known: RwSignal<Option<KnownRuns>>) -> impl IntoView {
    let page = expect_context::<Page>();
    // Before the answer no number is known, also not zero.
    let of = move |states: &'static [RunState]| {
        known.with(|known| {
            let own = |(name, _): &&(String, usize)| states.iter().any(|state| state.name() == name);
            let count = |known: &KnownRuns| known.states.iter().filter(own).map(|(_, n)| n).sum::<usize>();
            known.as_ref().map(count).map_or_else(String::new, thousands)
        })
    };
    let chip = move |(words, glyph, states): (&'static str, char, &'static [RunState])| {
        // One word means all ends by a fault.
        let names = match states == RunState::CRASHED {
            true => RunState::Crashed.name().to_string(),
            false => states.iter().map(|state| state.name()).collect::<Vec<_>>().join(","),
        };
        let (own, wanted) = (names.clone(), names.clone());
        let pressed = text(move || page.view.with(|view| view.state == own).to_string());
        let press =
            move |_| page.step(|view| view.state = if view.state == wanted { String::new() } else { wanted.clone() });
        let class = states.first().map_or("", |state| shape(*state));
        view! {
            <button class="chip" data-do="state" data-states=names aria-pressed=pressed on:click=press>
                <span class=class aria-hidden="true">{glyph.to_string()}</span>" "{words}" "<b>{text(move || of(states))}</b>
            </button>
        }
    };
    // A server without accounts shows all its reader may see.
    let access = expect_context::<Access>();
    let is_member = move || access.team_here().is_some_and(|team| team.role >= Role::Member);
    let sees_usage = flag(move || !page.accounts.get() || is_member());
    let usage = text(move || page.address_of(Some(Route::Usage), &[]));
    view! {
        <div class="run-tools">
            <div class="chips" role="group" aria-label="State">
                <button
                    class="chip"
                    data-do="state"
                    data-states=""
                    aria-pressed=text(move || page.view.with(|view| view.state.is_empty()).to_string())
                    on:click=move |_| page.step(|view| view.state.clear())
                >
                    "All "<b>{text(move || of(&RunState::ALL))}</b>
                </button>
                {CHIPS.map(chip).collect_view()}
            </div>
            <Filter
                label="Filter runs: a part of the name, project:NAME, group:NAME, type:NAME, source:NAME, failure:CLASS"
                hint="name, project:llm, source:node-1"
                value=text(move || page.view.with(|view| view.find.clone()))
                put=Callback::new(move |find| page.change(|view| view.find = find))
            />
            <Choice
                label="Group by"
                before="group by"
                deed="group"
                options=options(&GROUPS)
                is=text(move || page.view.with(|view| view.by.clone()))
                choose=Callback::new(move |by| page.step(|view| view.by = by))
            />
            <ColumnChoice/>
            <If when=sees_usage>
                <a class="btn" data-do="usage" href=usage>"Usage"</a>
            </If>
        </div>
    }
}

/// The ticked runs, and the link that compares them.
#[component]
fn Compare(ticks: Ticks, known: RwSignal<Option<KnownRuns>>) -> impl IntoView {
    let page = expect_context::<Page>();
    let names = text(move || {
        known.with(|known| {
            let all = known.as_ref().map(|known| known.runs.as_slice()).unwrap_or_default();
            let name =
                |id: &String| all.iter().find(|run| run.id == *id).map_or_else(|| id.clone(), |run| run.name.clone());
            ticks.0.with(|chosen| chosen.iter().map(name).collect::<Vec<_>>().join(", "))
        })
    });
    let to = text(move || page.address_of_runs(&ticks.0.get()));
    view! { <Ticked ticks most=MAX_OPENED count=text(move || count(ticks.0.with(Vec::len), "run", "runs")) names to/> }
}

/// The page before there is a run.
#[component]
fn Nothing() -> impl IntoView {
    view! {
        <section class="empty">
            <h2>"No training job yet"</h2>
            <p>"Put two words before your start command. The run then appears here."</p>
            <p class="codeline"><code>"watchglass run -- python train.py"</code></p>
            <p class="below">"The ranks of torchrun, Slurm, MPI and others are detected. "<a href="docs/use/runs.html" target="_blank">"How runs are detected"</a></p>
        </section>
    }
}

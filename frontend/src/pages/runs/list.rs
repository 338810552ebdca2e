//! The list of training jobs: how each does or ended, filtered, sorted and grouped, and ticked to be compared.

use super::columns::{ColumnChoice, cell, head};
use super::parts::shape;
use super::read::{Listed, listed};
use crate::browser::document;
use crate::fetch;
use crate::panels::fleet::map::toggle;
use crate::state::{LinkState, Page};
use crate::store::fleet::words::{count, thousands};
use crate::widgets::icons::Glass;
use crate::widgets::parts::{Each, If, flag, text};
use leptos::prelude::*;
use shared::run::RunState;
use shared::wire::MAX_OPENED;
use viewer::runs::columns::chosen as chosen_columns;
use viewer::runs::list::{gist, keys};

/// Seconds between two questions.
const REFRESH_SECONDS: u32 = 5;
/// Rows that are asked for at first, and how many more with each press.
const PAGE: usize = 50;
/// The most that the server lists at once.
const MAX_LISTED: usize = 1_000;
/// What chips stand for: a word, and the states.
const CHIPS: [(&str, char, &[RunState]); 4] = [
    ("Running", '●', &[RunState::Running, RunState::Suspended]),
    ("Finished", '✓', &[RunState::Finished]),
    (
        "Failed, crashed",
        '■',
        &[RunState::Failed, RunState::Crashed, RunState::OutOfMemory, RunState::TimedOut, RunState::NodeFailed],
    ),
    (
        "Lost, cancelled",
        '◌',
        &[RunState::Unreachable, RunState::Lost, RunState::Cancelled, RunState::Preempted, RunState::Ended],
    ),
];

/// By what runs are grouped: name in the address, and word.
const GROUPS: [(&str, &str); 5] =
    [("", "project"), ("group", "group"), ("type", "type"), ("user", "user"), ("none", "none")];

/// What is listed.
#[derive(Clone, Debug, Default, PartialEq)]
struct Known {
    runs: Vec<Listed>,
    /// How many there are of each state.
    states: Vec<(String, usize)>,
    /// Runs that fit, listed or not.
    total: usize,
}

/// The question of the address: words as `project:llm` choose, others are looked for in names.
fn question(find: &str, state: &str, limit: usize) -> String {
    let encode = |text: &str| String::from(js_sys::encode_uri_component(text));
    let (mut asked, mut parts) = (format!("api/v1/runs?sums=true&limit={limit}"), Vec::new());
    for word in find.split_whitespace() {
        let named = word.split_once(':').and_then(|(name, value)| {
            let name = match name {
                "project" | "group" | "user" | "source" => name,
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

/// The page.
#[component]
pub fn RunsPage() -> impl IntoView {
    let page = expect_context::<Page>();
    let known = RwSignal::new(None::<Known>);
    let wrong = RwSignal::new(String::new());
    let limit = RwSignal::new(PAGE);
    let chosen = RwSignal::new(page.view.with_untracked(|view| view.runs.clone()));
    // Rows keep their order while a pointer is over them.
    let held = RwSignal::new(false);
    let asked = StoredValue::new((String::new(), 0u32, 0u32));
    Effect::new(move || {
        page.beat.track();
        let path = page.view.with(|view| question(&view.find, &view.state, limit.get()));
        let live = page.state.get() == LinkState::Live;
        // What is asked anew is asked at once; the rest now and then, while somebody looks.
        let due = asked.with_value(|(before, since, _)| *before != path || (live && *since >= REFRESH_SECONDS));
        if !due || document().hidden() {
            return asked.update_value(|(_, since, _)| *since += 1);
        }
        let turn = asked.with_value(|(.., turn)| turn + 1);
        asked.set_value((path.clone(), 0, turn));
        fetch::ask("GET", &path, None, move |answer| {
            // An answer to an older question comes too late.
            if asked.try_with_value(|(.., newest)| *newest == turn) != Some(true) {
                return;
            }
            if !answer.is_ok() {
                return wrong.set(answer.problem());
            }
            wrong.set(String::new());
            let runs: Vec<Listed> = answer.body.get("runs").list().iter().filter_map(listed).collect();
            let states = RunState::ALL.into_iter().filter_map(|state| {
                let n = answer.body.get("states").get(state.name()).number()?;
                Some((state.name().to_string(), n as usize))
            });
            let total = answer.body.get("total").number().map_or(runs.len(), |n| n as usize);
            let new = Some(Known { states: states.collect(), total, runs });
            if known.with_untracked(|old| *old != new) {
                known.set(new);
            }
        });
    });
    let order = RwSignal::new(Vec::<String>::new());
    Effect::new(move |before: Option<(String, String)>| {
        let (by, sorted) = page.view.with(|view| (view.by.clone(), view.sort.clone()));
        let runs = known.with(|known| known.as_ref().map(|known| known.runs.clone()).unwrap_or_default());
        let chosen_anew = before.is_some_and(|before| before != (by.clone(), sorted.clone()));
        let all_known = order.with_untracked(|order| {
            let is_listed = |key: &String| key.strip_prefix(':').is_none_or(|id| runs.iter().any(|run| run.id == id));
            !order.is_empty() && order.iter().all(is_listed)
        });
        if !held.get() || chosen_anew || !all_known {
            let new = keys(runs, &by, &sorted, page.server_now());
            if order.with_untracked(|order| *order != new) {
                order.set(new);
            }
        }
        (by, sorted)
    });
    let with = move |of: fn(&Known) -> usize| known.with(|known| known.as_ref().map_or(0, of));
    let more = move || with(|known| known.total.saturating_sub(known.runs.len()));
    let is_empty = move || known.with(|known| known.as_ref().is_some_and(|known| known.states.is_empty()));
    let asks = move || page.view.with(|view| !view.find.is_empty() || !view.state.is_empty());
    let columns = Signal::derive(move || page.view.with(|view| chosen_columns(&view.columns)));
    let row = Callback::new(move |key: String| match key.split_at(1) {
        ("=", name) => view! { <GroupRow name=name.to_string() known/> }.into_any(),
        (_, id) => view! { <RunRow id=id.to_string() known chosen/> }.into_any(),
    });
    view! {
        <main id="page" class="fleet runs-page">
            <p class="wrong" role="status">{text(move || wrong.get())}</p>
            <If when=flag(move || is_empty() && !asks())>
                <Nothing/>
            </If>
            <If when=flag(move || !is_empty() || asks())>
                <Tools known/>
                <section
                    class="panel flush"
                    aria-label="Runs"
                    on:pointerenter=move |_| held.set(true)
                    on:pointerleave=move |_| held.set(false)
                >
                    <div class="scroll" tabindex="0" role="region" aria-label="Table of runs">
                        <table class="rows runs-table" id="runs">
                            <thead><tr><td></td>{move || columns.get().into_iter().map(head).collect_view()}</tr></thead>
                            <tbody><Each keys=order row/></tbody>
                        </table>
                    </div>
                    <If when=flag(move || is_empty() && asks())>
                        <p class="below pad">"No run matches. Change the filter, or choose All."</p>
                    </If>
                    <If when=flag(move || more() > 0 && limit.get() < MAX_LISTED)>
                        <button class="more-rows" data-do="more" on:click=move |_| limit.update(|n| *n = (*n + PAGE).min(MAX_LISTED))>
                            {text(move || format!("{} more", thousands(more())))}
                        </button>
                    </If>
                    <If when=flag(move || more() > 0 && limit.get() >= MAX_LISTED)>
                        <p class="below pad">{text(move || format!("{} more: use the filter", thousands(more())))}</p>
                    </If>
                </section>
                <Ticked chosen known/>
            </If>
        </main>
    }
}

/// Chips of states, the filter, and by what runs are grouped.
#[component]
fn Tools(known: RwSignal<Option<Known>>) -> impl IntoView {
    let page = expect_context::<Page>();
    let of = move |states: &'static [RunState]| {
        known.with(|known| {
            let own = |(name, _): &&(String, usize)| states.iter().any(|state| state.name() == name);
            known.as_ref().map_or(0, |known| known.states.iter().filter(own).map(|(_, n)| n).sum::<usize>())
        })
    };
    let chip = move |(words, glyph, states): (&'static str, char, &'static [RunState])| {
        let names = states.iter().map(|state| state.name()).collect::<Vec<_>>().join(",");
        let (own, wanted) = (names.clone(), names.clone());
        let pressed = text(move || page.view.with(|view| view.state == own).to_string());
        let press =
            move |_| page.step(|view| view.state = if view.state == wanted { String::new() } else { wanted.clone() });
        let class = states.first().map_or("", |state| shape(*state));
        view! {
            <button class="chip" data-do="state" data-states=names aria-pressed=pressed on:click=press>
                <span class=class aria-hidden="true">{glyph.to_string()}</span>" "{words}" "<b>{text(move || thousands(of(states)))}</b>
            </button>
        }
    };
    let group = move |(by, words): (&'static str, &'static str)| {
        let pressed = text(move || page.view.with(|view| view.by == by).to_string());
        view! { <button data-do="group" aria-pressed=pressed on:click=move |_| page.step(|view| view.by = by.into())>{words}</button> }
    };
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
                    "All "<b>{text(move || thousands(of(&RunState::ALL)))}</b>
                </button>
                {CHIPS.map(chip).collect_view()}
            </div>
            <label class="filter">
                <Glass/>
                <input
                    id="filter"
                    type="search"
                    aria-label="Filter runs: a part of the name, project:NAME, group:NAME, type:NAME, source:NAME"
                    placeholder="name, project:llm, source:node-1"
                    autocomplete="off"
                    spellcheck="false"
                    prop:value=text(move || page.view.with(|view| view.find.clone()))
                    on:input=move |event| page.change(|view| view.find = event_target_value(&event))
                />
                <kbd aria-hidden="true">"/"</kbd>
            </label>
            <span class="choice" role="group" aria-label="Group by">
                <span class="u">"group by"</span>
                {GROUPS.map(group).collect_view()}
            </span>
            <ColumnChoice/>
        </div>
    }
}

/// The heading of a group.
#[component]
fn GroupRow(name: String, known: RwSignal<Option<Known>>) -> impl IntoView {
    let page = expect_context::<Page>();
    let own = name.clone();
    let said = text(move || {
        let by = page.view.with(|view| view.by.clone());
        known.with(|known| known.as_ref().map_or(String::new(), |known| gist(&known.runs, &by, &own)))
    });
    let columns = text(move || page.view.with(|view| chosen_columns(&view.columns).len() + 1).to_string());
    let name = if name.is_empty() { "No project".to_string() } else { name };
    view! {
        <tr class="group"><th scope="rowgroup" colspan=columns><b class="source-name">{name}</b>" "<span class="u">{said}</span></th></tr>
    }
}

/// One run.
#[component]
fn RunRow(id: String, known: RwSignal<Option<Known>>, chosen: RwSignal<Vec<String>>) -> impl IntoView {
    let page = expect_context::<Page>();
    let own = StoredValue::new(id.clone());
    let run = Memo::new(move |_| {
        known.with(|known| {
            let all = &known.as_ref()?.runs;
            own.with_value(|id| all.iter().find(|run| run.id == *id).cloned())
        })
    });
    let of =
        move |read: fn(&Listed) -> String| text(move || run.with(|run| run.as_ref().map(read).unwrap_or_default()));
    let ticked = flag(move || chosen.with(|chosen| own.with_value(|id| chosen.contains(id))));
    let cells = move || {
        let columns = page.view.with(|view| chosen_columns(&view.columns));
        columns.into_iter().map(|column| cell(column, run)).collect_view()
    };
    view! {
        <tr data-run=id data-state=of(|run| run.state.name().to_string()) class:ticked=ticked>
            <td>
                <input
                    type="checkbox"
                    aria-label=of(|run| format!("Compare {}", run.name))
                    prop:checked=ticked
                    on:change=move |_| toggle(chosen, own.get_value())
                />
            </td>
            {cells}
        </tr>
    }
}

/// The runs that are ticked, and the way to compare them.
#[component]
fn Ticked(chosen: RwSignal<Vec<String>>, known: RwSignal<Option<Known>>) -> impl IntoView {
    let page = expect_context::<Page>();
    let n = move || chosen.with(Vec::len);
    let names = text(move || {
        known.with(|known| {
            let all = known.as_ref().map(|known| known.runs.as_slice()).unwrap_or_default();
            let name =
                |id: &String| all.iter().find(|run| run.id == *id).map_or_else(|| id.clone(), |run| run.name.clone());
            chosen.with(|chosen| chosen.iter().map(name).collect::<Vec<_>>().join(", "))
        })
    });
    let to = text(move || page.address_of_runs(&chosen.get()));
    view! {
        <If when=flag(move || n() > 0)>
            <div class="ticked" role="status">
                <b>{text(move || count(n(), "run", "runs"))}</b>
                <span class="source-name u">{names}</span>
                <If when=flag(move || (2..=MAX_OPENED).contains(&n()))>
                    <a class="btn primary" data-do="compare" href=to>"Compare"</a>
                </If>
                <If when=flag(move || n() == 1)>
                    <span class="u">"select another run to compare"</span>
                </If>
                <If when=flag(move || n() > MAX_OPENED)>
                    <span class="u">"at most 8 can be compared"</span>
                </If>
                <button class="plain" data-do="untick" on:click=move |_| chosen.set(Vec::new())>"Clear"</button>
            </div>
        </If>
    }
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

//! Adding machines: the command to paste, and the machines that joined by it, each as soon as it is connected.

use super::agents::{Agents, texts};
use crate::access::Access;
use crate::browser::{self, now};
use crate::pages::fleet::table::{number, shape};
use crate::state::Page;
use crate::store::fleet::hosts::{COLUMNS, Host};
use crate::store::fleet::words;
use crate::widgets::parts::{Each, If, flag, text};
use leptos::html;
use leptos::prelude::*;
use shared::catalog::fleet::Grain;
use shared::session::{Agent, Joined};
use shared::unit::rough_duration;
use shared::wire::{PageMessage, SourceId};
use viewer::team::labels as read_labels;
use wasm_bindgen::JsValue;

/// Lifetimes of install commands: value for the hub, and label.
const TIMES: [(&str, &str); 4] = [("1h", "1 h"), ("24h", "24 h"), ("7d", "7 d"), ("never", "never")];
/// Number of machines that may join by one command, and its label; 0 is any number.
const USES: [(u32, &str); 3] = [(0, "any number"), (1, "one"), (16, "16")];

/// The line with its button, and below it the machines that joined since this was opened.
#[component]
pub fn JoinHere() -> impl IntoView {
    let page = expect_context::<Page>();
    let access = expect_context::<Access>();
    let team = Memo::new(move |_| access.team());
    let before: Vec<SourceId> = page.store.with_value(|store| store.index.iter().map(|entry| entry.id).collect());
    // The first values of a machine are those of the overview.
    page.ask(PageMessage::Overview { grain: Grain::Sources, on: true });
    page.ask(PageMessage::Overview { grain: Grain::Gpus, on: true });
    let (line, wrong) = (RwSignal::new(String::new()), RwSignal::new(String::new()));
    let choices = Choices::new();
    let make = move || {
        let Some(team) = team.get_untracked() else { return };
        let body = match choices.body() {
            Ok(body) => body,
            Err(why) => return wrong.set(why.into()),
        };
        access.ask("POST", format!("api/v1/teams/{}/join", team.id), body, move |answer| {
            match answer.read::<Joined>() {
                Ok(made) => {
                    wrong.set(String::new());
                    line.set(made.line.reveal().into());
                }
                Err(why) => wrong.set(why),
            }
        });
    };
    let agents = Agents::follow(access);
    let made = flag(move || line.with(|line| !line.is_empty()));
    let before = StoredValue::new(before);
    view! {
        <If when=flag(move || team.with(Option::is_none))>
            <p class="below">"Only an admin of the team can add machines."</p>
        </If>
        <If when=flag(move || team.with(Option::is_some))>
            <div class="join" data-form="join">
                <If when=flag(move || !made.get())>
                    <Options choices make=Callback::new(move |()| make())/>
                    <Further choices agents/>
                </If>
                <If when=made>
                    <Line line/>
                    <p class="below">"Run it on each machine: in a terminal, a job's prolog or a service. It is not shown again."</p>
                </If>
                <p class="wrong" role="alert">{wrong}</p>
                <Came before=before.get_value() agents/>
                <p class="below">
                    "No machine after a minute? Run on the machine: "
                    <code>{format!("watchglass doctor --hub {}", origin())}</code>
                </p>
            </div>
        </If>
    }
}

/// The choices for an install command so far; copies share the same signals.
#[derive(Clone, Copy)]
struct Choices {
    /// Number of machines that may join by it; 0 is any number.
    uses: RwSignal<u32>,
    /// Its lifetime, as the hub parses it.
    ends: RwSignal<String>,
    approve: RwSignal<bool>,
    by_name: RwSignal<bool>,
    ephemeral: RwSignal<bool>,
    labels: RwSignal<String>,
    /// The machine that is replaced, by its id; empty without one.
    place: RwSignal<String>,
}

impl Choices {
    fn new() -> Choices {
        Choices {
            uses: RwSignal::new(0),
            ends: RwSignal::new("24h".to_string()),
            approve: RwSignal::new(false),
            by_name: RwSignal::new(false),
            ephemeral: RwSignal::new(false),
            labels: RwSignal::new(String::new()),
            place: RwSignal::new(String::new()),
        }
    }

    /// The request body, or the error.
    fn body(self) -> Result<Vec<(&'static str, JsValue)>, &'static str> {
        let mut body = vec![("expires", JsValue::from(self.ends.get_untracked()))];
        if self.uses.get_untracked() > 0 {
            body.push(("uses", f64::from(self.uses.get_untracked()).into()));
        }
        for (name, on) in [("approve", self.approve), ("by_name", self.by_name), ("ephemeral", self.ephemeral)] {
            if on.get_untracked() {
                body.push((name, true.into()));
            }
        }
        match read_labels(&self.labels.get_untracked()) {
            Some(pairs) if pairs.is_empty() => {}
            Some(pairs) => body.push(("labels", texts(&pairs))),
            None => return Err("Write labels as key=value, separated by spaces."),
        }
        if self.place.with_untracked(|place| !place.is_empty()) {
            body.push(("as", self.place.get_untracked().into()));
        }
        Ok(body)
    }
}

/// A choice that is on or off.
fn tick(name: &'static str, words: &'static str, on: RwSignal<bool>) -> impl IntoView {
    view! {
        <label class="tick">
            <input type="checkbox" name=name on:change=move |event| on.set(event_target_checked(&event))/>
            <span>{words}</span>
        </label>
    }
}

/// The number of machines, the lifetime, and the button that creates the command.
#[component]
fn Options(choices: Choices, make: Callback<()>) -> impl IntoView {
    let Choices { uses, ends, approve, .. } = choices;
    view! {
        <div class="join-options">
            <label>
                <span>"for"</span>
                <select
                    name="uses"
                    aria-label="Number of machines"
                    on:change=move |event| uses.set(event_target_value(&event).parse().unwrap_or(0))
                >
                    {USES.map(|(n, words)| view! { <option value=n.to_string()>{words}</option> }).collect_view()}
                </select>
            </label>
            <label>
                <span>"holds"</span>
                <select
                    name="expires"
                    aria-label="Expires after"
                    on:change=move |event| ends.set(event_target_value(&event))
                >
                    {TIMES
                        .map(|(value, words)| view! {
                            <option value=value selected=value == "24h">{words}</option>
                        })
                        .collect_view()}
                </select>
            </label>
            {tick("approve", "Approve each machine", approve)}
            <button class="btn primary" data-do="join" on:click=move |_| make.run(())>"Create join line"</button>
        </div>
    }
}

/// Rare options: labels, a machine to replace, containers and jobs.
#[component]
fn Further(choices: Choices, agents: Agents) -> impl IntoView {
    let Choices { labels, place, by_name, ephemeral, .. } = choices;
    // Names do not change during the choice; states do.
    let names = Memo::new(move |_| {
        agents.list.with(|all| all.iter().map(|agent| (agent.id.clone(), agent.name.clone())).collect::<Vec<_>>())
    });
    let places = move || {
        let option = |(id, name)| view! { <option value=id>{name}</option> };
        names.get().into_iter().map(option).collect_view()
    };
    view! {
        <details class="further">
            <summary>"Labels, containers, replacement of a machine"</summary>
            <div class="join-options">
                <label>
                    <span>"labels"</span>
                    <input
                        type="text"
                        name="labels"
                        placeholder="rack=r01 room=2"
                        autocomplete="off"
                        spellcheck="false"
                        on:input=move |event| labels.set(event_target_value(&event))
                    />
                </label>
                <label>
                    <span>"replaces"</span>
                    <select name="as" on:change=move |event| place.set(event_target_value(&event))>
                        <option value="">"no machine"</option>
                        {places}
                    </select>
                </label>
                {tick("by_name", "identified by its name (containers)", by_name)}
                {tick("ephemeral", "removed after an hour of absence (jobs)", ephemeral)}
            </div>
        </details>
    }
}

fn origin() -> String {
    browser::window().location().origin().unwrap_or_default()
}

/// The line with a button that copies it.
#[component]
fn Line(line: RwSignal<String>) -> impl IntoView {
    let code = NodeRef::<html::Code>::new();
    let copied = RwSignal::new(false);
    let copy = move |_| {
        if let Some(code) = code.get_untracked() {
            copied.set(code.parent_element().is_some_and(|near| browser::copy(&line.get_untracked(), &near)));
        }
    };
    view! {
        <div class="codeline">
            <code node_ref=code id="join-line">{line}</code>
            <button class="btn primary" data-do="copy" on:click=copy>
                {text(move || if copied.get() { "Copied" } else { "Copy" })}
            </button>
        </div>
    }
}

/// The machines that are there now and were not before, the newest first, and those that wait to be confirmed.
#[component]
fn Came(before: Vec<SourceId>, agents: Agents) -> impl IntoView {
    let page = expect_context::<Page>();
    let seen = StoredValue::new(Vec::<(SourceId, i64)>::new());
    let came = Memo::new(move |_| {
        page.fleet.track();
        page.beat.track();
        let store = page.store.read_value();
        let values = store.fleet.values();
        let mut hosts = Vec::new();
        for entry in store.index.iter().filter(|entry| !before.contains(&entry.id)) {
            let known = seen.with_value(|seen| seen.iter().find(|(id, _)| *id == entry.id).map(|(_, at)| *at));
            let at = known.unwrap_or_else(|| {
                seen.write_value().push((entry.id, now()));
                now()
            });
            let values = values.get(usize::from(entry.id)).cloned().unwrap_or_default();
            hosts.push((at, Host { entry: entry.clone(), values }));
        }
        hosts.reverse();
        hosts
    });
    let each = Signal::derive(move || {
        came.with(|came| came.iter().map(|(_, host)| host.entry.name.clone()).collect::<Vec<String>>())
    });
    let row = move |name: String| {
        let own = StoredValue::new(name.clone());
        let of = move |read: fn(&Host, i64, i64) -> String| {
            text(move || {
                came.with(|came| {
                    let found = came.iter().find(|(_, host)| own.with_value(|own| host.entry.name == *own));
                    found.map_or(String::new(), |(at, host)| read(host, *at, page.server_now()))
                })
            })
        };
        let link = page.address_of(None, std::slice::from_ref(&name));
        view! {
            <li data-came=name.clone()>
                <span class=of(|host, _, _| shape(&host.entry.state).1.to_string()) aria-hidden="true">
                    {of(|host, _, _| shape(&host.entry.state).0.to_string())}
                </span>
                <span><b class="source-name">{name.clone()}</b>" "{of(first_words)}</span>
                <a href=link>"Open"</a>
            </li>
        }
        .into_any()
    };
    let pending = Signal::derive(move || {
        let waits = |agent: &&Agent| agent.state == "pending";
        agents.list.with(|all| all.iter().filter(waits).map(|agent| agent.id.clone()).collect::<Vec<String>>())
    });
    let asks = move |id: String| {
        let agent =
            agents.list.with_untracked(|all| all.iter().find(|agent| agent.id == id).cloned()).unwrap_or_default();
        let own = id.clone();
        view! {
            <li data-row=id>
                <span class="shape is-warn" aria-hidden="true">"▲"</span>
                <span><b class="source-name">{agent.name}</b>" asks to join, from "{agent.host.unwrap_or_default()}</span>
                <button class="btn" data-do="approve" on:click=move |_| agents.approve(&own)>"Approve"</button>
            </li>
        }
        .into_any()
    };
    let waiting = text(move || {
        format!("{} so far; waiting for more …", words::count(came.with(Vec::len), "machine", "machines"))
    });
    view! {
        <ul class="steps" aria-live="polite">
            <Each keys=each row=Callback::new(row)/>
            <Each keys=pending row=Callback::new(asks)/>
            <li class="wait"><span class="spin" aria-hidden="true"></span><span>{waiting}</span></li>
        </ul>
    }
}

/// Text for a machine that has just joined: since when, its GPUs and first values.
fn first_words(host: &Host, at: i64, server_now: i64) -> String {
    let since = rough_duration((now() - at).max(0));
    let gpus = host.values.gpus.len();
    let gpus = if gpus == 0 { None } else { Some(words::count(gpus, "GPU", "GPUs")) };
    let values = COLUMNS.iter().filter(|(row, _)| host.values.value_of(row).is_finite()).take(3);
    let values: Vec<String> =
        values.map(|(row, name)| format!("{name} {}", number(row, host.values.value_of(row)))).collect();
    let state = words::explained(host, server_now);
    let known = if values.is_empty() { vec!["waiting for the first samples".to_string()] } else { values };
    let all: Vec<String> = gpus.into_iter().chain(known).chain((state != "live").then_some(state)).collect();
    format!("joined {since} ago: {}", all.join(", "))
}

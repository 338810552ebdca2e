//! The list of a team's machines: names, states, labels, keys.

use super::agents::{Agents, texts};
use super::asked::Polled;
use super::join::JoinHere;
use crate::access::Access;
use crate::browser::{self, now};
use crate::state::Page;
use crate::widgets::list::List;
use crate::widgets::list::line::{Cell, Done, Line, Mark};
use crate::widgets::modal::Modal;
use crate::widgets::parts::{If, flag, text};
use leptos::html;
use leptos::prelude::*;
use shared::hub::AboutHub;
use shared::session::Agent;
use shared::unit::rough_duration;
use std::collections::BTreeMap;
use viewer::team::labels;

/// An action on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Rename,
    Label,
    Revoke,
    Remove,
}

impl Deed {
    const ALL: [Deed; 4] = [Deed::Rename, Deed::Label, Deed::Revoke, Deed::Remove];

    fn name(self) -> &'static str {
        match self {
            Deed::Rename => "rename",
            Deed::Label => "label",
            Deed::Revoke => "revoke",
            Deed::Remove => "remove",
        }
    }
}

/// The page.
#[component]
pub fn MachinesPage() -> impl IntoView {
    let page = expect_context::<Page>();
    let access = expect_context::<Access>();
    let agents = Agents::follow(access);
    let about = Polled::follow(access, move || access.is_hub_admin().then(|| "api/v1/hub".into()));
    let away = Memo::new(move |_| about.read(|hub: &AboutHub| turned_away(&hub.turned_away)));
    let (joining, deed) = (RwSignal::new(false), RwSignal::new(None::<(Deed, Agent)>));
    let admin = flag(move || access.team().is_some());
    let count = text(move || {
        let (all, live) =
            agents.list.with(|l| (l.len(), l.iter().filter(|a| a.state == "live" || a.state == "filling").count()));
        format!("{all} machines, {live} online")
    });
    let join_title = Signal::derive(move || joining.get().then(|| "Add machines".to_string()));
    let deed_title = Signal::derive(move || {
        deed.with(|deed| {
            deed.as_ref().map(|(deed, agent)| match deed {
                Deed::Rename => format!("Rename {}", agent.name),
                Deed::Label => format!("Labels of {}", agent.name),
                Deed::Revoke => format!("Revoke the key of {}?", agent.name),
                Deed::Remove => format!("Remove {} and its samples?", agent.name),
            })
        })
    });
    let form = move || {
        deed.get().map(|(deed_of, agent)| view! { <DeedForm agents deed=deed_of agent done=move || deed.set(None)/> })
    };
    let rows = Memo::new(move |_| {
        page.beat.track();
        let hub_admin = access.is_hub_admin();
        agents.list.with(|all| all.iter().map(|agent| line(page, agent, hub_admin)).collect::<Vec<Line>>())
    });
    let act = move |(line, done, _): Done| {
        let Some(what) = Deed::ALL.into_iter().find(|deed| deed.name() == done) else {
            return agents.approve(&line.id);
        };
        let agent = agents.list.with_untracked(|all| all.iter().find(|agent| agent.id == line.id).cloned());
        deed.set(agent.map(|agent| (what, agent)));
    };
    view! {
            <If when=flag(move || !admin.get())>
                <p class="say calm">"Only an admin of the team can add and rename machines."</p>
            </If>
            <If when=admin>
                <section class="panel flush" aria-label="Machines">
                    <header>
                        <h2>"Machines"</h2>
                        <span class="u">{count}</span>
                        <span class="end">
                            <button class="btn primary" data-do="add" on:click=move |_| joining.set(true)>"Add machines…"</button>
                        </span>
                    </header>
                    <p class="wrong" role="alert">{agents.wrong}</p>
                    <List
                        id="agents"
                        class="rows"
                        label="Table of machines"
                        heads=&["machine", "state", "labels", "host", "joined", "version"]
                        rows
                        known=agents.known
                        empty="No machine has joined yet."
                        act=Callback::new(act)
                    />
                    <If when=flag(move || !away.read().is_empty())>
                        <p class="below pad" data-say="turned-away">{text(move || away.get())}</p>
                    </If>
                </section>
            </If>
            <Modal id="join" title=join_title closed=Callback::new(move |()| joining.set(false))>
                {move || joining.get().then(|| view! { <div class="body"><JoinHere/></div> })}
            </Modal>
            <Modal id="deed" title=deed_title closed=Callback::new(move |()| deed.set(None))>{form}</Modal>
    }
}

/// Reasons of refused connections: name in the API, and label.
const REFUSED_REASONS: [(&str, &str); 3] =
    [("key", "invalid key"), ("handshake", "over the rate limit"), ("link", "invalid hello")];

/// Text about refused connections, with the number for each cause; empty without any.
fn turned_away(by_cause: &BTreeMap<String, u64>) -> String {
    let counted =
        REFUSED_REASONS.iter().filter_map(|(why, words)| Some((by_cause.get(*why).filter(|n| **n > 0)?, words)));
    let words: Vec<String> = counted.map(|(n, words)| format!("{n} {words}")).collect();
    if words.is_empty() {
        return String::new();
    }
    format!("Connections rejected since this hub started: {}.", words.join(", "))
}

/// The shape of a state's word.
fn shape(state: &str) -> (&'static str, &'static str) {
    match state {
        "live" => ("●", "shape is-ok"),
        "filling" => ("◐", "shape is-ok"),
        "pending" | "refused" => ("▲", "shape is-warn"),
        "unreachable" => ("✕", "shape is-unknown"),
        "revoked" | "stopped" => ("■", "shape is-unknown"),
        _ => ("◌", "shape is-unknown"),
    }
}

fn ago(seconds: Option<i64>) -> String {
    seconds.map_or(String::new(), |t| format!("{} ago", rough_duration((now() - t * 1_000).max(0))))
}

/// The row of a machine.
fn line(page: Page, agent: &Agent, hub_admin: bool) -> Line {
    let Agent { id, name, state, .. } = agent.clone();
    let (glyph, class) = shape(&state);
    let shown = Mark { class, glyph: glyph.into(), words: state.clone() };
    let host = [agent.host.clone(), agent.platform.clone()].into_iter().flatten().collect::<Vec<_>>().join(", ");
    let deeds = [
        (state == "pending", ("approve", "Approve")),
        (true, (Deed::Rename.name(), "Rename…")),
        (true, (Deed::Label.name(), "Labels…")),
        (state != "revoked", (Deed::Revoke.name(), "Revoke…")),
        (hub_admin, (Deed::Remove.name(), "Remove…")),
    ];
    let cells = vec![
        Cell::Link(page.address_of(None, std::slice::from_ref(&name)), name.clone(), String::new(), Mark::default()),
        Cell::Stands(state, shown, since(agent)),
        Cell::Text(labels_of(agent)),
        Cell::Text(host),
        Cell::Text(ago(Some(agent.joined))),
        Cell::Text(agent.version.clone().unwrap_or_default()),
    ];
    Line { id, name, cells, deeds: deeds.into_iter().filter(|(may, _)| *may).map(|(_, deed)| deed).collect() }
}

fn since(agent: &Agent) -> String {
    if agent.state == "live" { String::new() } else { ago(agent.since.or(agent.seen)) }
}

fn labels_of(agent: &Agent) -> String {
    agent.labels.iter().map(|(key, value)| format!("{key}:{value}")).collect::<Vec<_>>().join(" ")
}

#[component]
fn DeedForm(agents: Agents, deed: Deed, agent: Agent, done: impl Fn() + Copy + 'static) -> impl IntoView {
    let field = NodeRef::<html::Input>::new();
    field.on_load(|input| {
        browser::focus(&input);
        input.select();
    });
    let wrong = RwSignal::new(String::new());
    let (id, name) = (agent.id.clone(), agent.name.clone());
    let submit = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let typed = field.get_untracked().map(|input| input.value()).unwrap_or_default();
        let Some(path) = agents.path() else { return };
        let path = format!("{path}/{id}");
        match deed {
            Deed::Rename => agents.change("PATCH", path, vec![("name", typed.trim().into())]),
            Deed::Label => match labels(&typed) {
                Some(pairs) => agents.change("PATCH", path, vec![("labels", texts(&pairs))]),
                None => return wrong.set("Write labels as key=value, separated by spaces.".into()),
            },
            Deed::Revoke => agents.change("DELETE", path, Vec::new()),
            Deed::Remove if typed.trim() == name => agents.change("DELETE", format!("api/v1/sources/{id}"), Vec::new()),
            Deed::Remove => return wrong.set(format!("Type {name} to remove it.")),
        }
        done();
    };
    let asks = |label: &'static str, value: String| {
        view! {
            <label>
                <span>{label}</span>
                <input node_ref=field name="value" type="text" autocomplete="off" spellcheck="false" value=value/>
            </label>
        }
    };
    let known = agent.labels.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" ");
    let (words, input, button) = match deed {
        Deed::Rename => ("The old name redirects for 90 days.", Some(asks("New name", agent.name.clone())), "Rename"),
        Deed::Label => ("Labels group and filter the fleet, such as rack=r01.", Some(asks("Labels", known)), "Save"),
        Deed::Revoke => ("Its key is revoked; its history stays. A join line for it restores it.", None, "Revoke"),
        Deed::Remove => (
            "Its key is revoked and all its history is erased. This cannot be undone.",
            Some(asks("Type its name to confirm", String::new())),
            "Remove",
        ),
    };
    view! {
        <form class="body form" data-form=deed.name() on:submit=submit>
            <p>{words}</p>
            {input}
            <p class="wrong" role="alert">{wrong}</p>
            <button class="btn primary">{button}</button>
        </form>
    }
}

//! The page of some machines on one chart each: a line for each machine, in the same hue in all charts.

use crate::panels::fleet::lines::{HostLines, Newest, is_reported};
use crate::state::Page;
use crate::widgets::parts::{Each, If, flag, text};
use leptos::prelude::*;
use shared::catalog::fleet::{self, FleetRow};
use shared::wire::MAX_OPENED;

static ROWS: [&FleetRow; 8] = [
    &fleet::GPU_BUSY,
    &fleet::GPU_POWER,
    &fleet::GPU_TEMP,
    &fleet::GPU_MEMORY,
    &fleet::CPU,
    &fleet::MEMORY,
    &fleet::NETWORK_IN,
    &fleet::NETWORK_OUT,
];

/// The page.
#[component]
pub fn ComparePage() -> impl IntoView {
    let page = expect_context::<Page>();
    let names = Signal::derive(move || {
        page.view.with(|v| v.source.iter().chain(&v.with).take(MAX_OPENED).cloned().collect::<Vec<String>>())
    });
    let said = text(move || match names.with(Vec::len) {
        0 | 1 => "Select at least two machines on the fleet page.".to_string(),
        n => format!("{n} machines, one line each"),
    });
    let wrong = text(move || {
        page.machines.track();
        page.fleet.track();
        let store = page.store.read_value();
        let known = |name: &String| store.index.iter().any(|entry| entry.name == *name || entry.key == *name);
        let unknown: Vec<String> = names.get().into_iter().filter(|name| !known(name)).collect();
        if store.index.is_empty() || unknown.is_empty() {
            String::new()
        } else {
            format!("Not found: {}.", unknown.join(", "))
        }
    });
    view! {
        <main id="page" class="fleet compare">
            <section class="say calm">
                <span class="shape is-ok" aria-hidden="true">"●"</span>
                <div>
                    <p><b>"Compared: "</b>{text(move || names.get().join(", "))}</p>
                    <p class="below">{said}" "{wrong}</p>
                </div>
            </section>
            <section class="pairs" aria-label="Charts">
                {ROWS
                    .map(|row| {
                        let reported = flag(move || names.with(|names| is_reported(page, row, names)));
                        view! { <If when=reported><Chart row names/></If> }
                    })
                    .collect_view()}
            </section>
        </main>
    }
}

#[component]
fn Chart(row: &'static FleetRow, names: Signal<Vec<String>>) -> impl IntoView {
    let newest: RwSignal<Newest> = RwSignal::new(Vec::new());
    let key = move |name: String| {
        let place = names.with_untracked(|names| names.iter().position(|known| *known == name)).unwrap_or(0);
        let class = format!("hue-{}{}", place % 8, if place % 8 > 3 { " dashed" } else { "" });
        let own = name.clone();
        let value = text(move || {
            newest.with(|all| {
                all.iter().find(|(known, _)| *known == own).map_or(String::new(), |(_, value)| value.clone())
            })
        });
        view! {
            <li>
                <svg viewBox="0 0 14 8" class=class aria-hidden="true"><path d="M0 4h14"/></svg>
                <span class="source-name">{name}</span>
                <b>{value}</b>
            </li>
        }
        .into_any()
    };
    view! {
        <article class="panel" data-row=row.id>
            <header><h2>{row.title}</h2></header>
            <div class="lines-plot tall"><HostLines row names newest/></div>
            <ul class="key"><Each keys=names row=Callback::new(key)/></ul>
        </article>
    }
}

//! The machines as a table: sorted by any column, filtered as the map is, ticked to be compared.

use super::Crowd;
use crate::address::Route;
use crate::state::Page;
use crate::store::fleet::hosts::{self, BY_NAME, BY_STATE, COLUMNS, Host};
use crate::store::fleet::words;
use crate::widgets::list::line::{Cell, Head, Line, Mark};
use crate::widgets::list::ticks::Ticked;
use crate::widgets::list::{List, More, Sort};
use crate::widgets::parts::{flag, text};
use leptos::prelude::*;
use shared::catalog::fleet::FleetRow;
use shared::connection_state::ConnectionState;
use shared::unit::Unit;
use shared::wire::MAX_OPENED;

/// Rows that are shown at first, and how many more with each press.
const PAGE: usize = 24;

/// A value with its unit; always with as many digits, so that a column has one precision. Shares and degrees are whole.
pub fn number(row: &FleetRow, value: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let scale = row.unit.base().scale(value);
    let number = match row.unit {
        Unit::Percent | Unit::Celsius => scale.number(value.round()),
        _ => scale.steady(value),
    };
    format!("{number} {}", scale.symbol)
}

/// Shape and color of a state.
pub fn shape(state: &ConnectionState) -> (&'static str, &'static str) {
    match state {
        ConnectionState::Live => ("●", "shape is-ok"),
        ConnectionState::Filling { .. } => ("◐", "shape is-ok"),
        ConnectionState::Late => ("◌", "shape is-unknown"),
        ConnectionState::Unreachable => ("✕", "shape is-unknown"),
        ConnectionState::Stopped(_) => ("■", "shape is-unknown"),
        ConnectionState::Refused(_) => ("▲", "shape is-warn"),
        ConnectionState::Ended => ("○", "shape is-unknown"),
    }
}

/// The table.
#[component]
pub fn Table() -> impl IntoView {
    let page = expect_context::<Page>();
    let crowd = expect_context::<Crowd>();
    let (by, most) = (RwSignal::new(BY_STATE.to_string()), RwSignal::new(PAGE));
    let sorted = Memo::new(move |_| {
        let filter = page.view.with(|v| v.find.clone());
        crowd.hosts.with(|hosts| by.with(|by| hosts::sorted(hosts, &filter, by)))
    });
    // Columns without any value are omitted.
    let has = move |i: &usize| {
        crowd.hosts.with(|hosts| hosts.iter().any(|host| host.values.value_of(COLUMNS[*i].0).is_finite()))
    };
    let columns = Memo::new(move |_| (0..COLUMNS.len()).filter(has).collect::<Vec<usize>>());
    let heads = Signal::derive(move || columns.with(|columns| heads(columns)));
    let rows = Memo::new(move |_| {
        page.beat.track();
        let (order, columns) = (sorted.get(), columns.get());
        let shown = order.into_iter().take(most.get());
        crowd.hosts.with(|hosts| {
            let known = shown.filter_map(|at| hosts.get(at));
            known.map(|host| line(page, host, &columns)).collect::<Vec<Line>>()
        })
    });
    let more = text(move || match sorted.with(Vec::len).saturating_sub(most.get()) {
        0 => String::new(),
        n => format!("{} more", words::thousands(n)),
    });
    view! {
        <section class="panel flush" aria-label="Machines">
            <header>
                <h2>"Machines"</h2>
                <span class="u">{text(move || words::count(sorted.with(Vec::len), "host", "hosts"))}</span>
            </header>
            <List
                id="hosts"
                class="rows"
                label="Table of machines"
                heads
                rows
                known=flag(|| true)
                empty="No machine fits. Take a word of the filter away."
                ticks=crowd.chosen
                sort=Sort { by: by.into(), choose: Callback::new(move |order| by.set(order)) }
            />
            <More words=more press=Callback::new(move |()| most.update(|n| *n += 4 * PAGE))/>
        </section>
        <Compare/>
    }
}

/// The headings: name, state, and these columns.
fn heads(columns: &[usize]) -> Vec<Head> {
    let head = |id: String, words: &'static str, rises: bool| Head { id, words, sorts: Some(rises), ..Head::default() };
    let name = Head { names: true, ..head(BY_NAME.into(), "machine", true) };
    let state = Head { class: "state".into(), ..head(BY_STATE.into(), "state", false) };
    let figure = |at: &usize| head(at.to_string(), COLUMNS[*at].1, false);
    [name, state].into_iter().chain(columns.iter().map(figure)).collect()
}

/// A machine of the table, with these columns.
fn line(page: Page, host: &Host, columns: &[usize]) -> Line {
    let name = host.entry.name.clone();
    let (glyph, class) = shape(&host.entry.state);
    let shown = Mark { class, glyph: glyph.into(), words: words::explained(host, page.server_now()) };
    let to = page.address_of(None, std::slice::from_ref(&name));
    let mut cells = vec![
        Cell::Link(to, name.clone(), String::new(), Mark::default()),
        Cell::Stands(host.entry.state.as_str().to_string(), shown, String::new()),
    ];
    cells.extend(
        columns.iter().map(|at| COLUMNS[*at].0).map(|row| Cell::Number(number(row, host.values.value_of(row)))),
    );
    Line { id: name.clone(), name, cells, deeds: Vec::new() }
}

/// The ticked machines, and the link that compares them.
#[component]
fn Compare() -> impl IntoView {
    let page = expect_context::<Page>();
    let crowd = expect_context::<Crowd>();
    let chosen = crowd.chosen.0;
    let to = text(move || page.address_of(Some(Route::Compare), &chosen.get()));
    let count = text(move || words::count(chosen.with(Vec::len), "host", "hosts"));
    let names = text(move || chosen.with(|chosen| chosen.join(", ")));
    view! { <Ticked ticks=crowd.chosen most=MAX_OPENED count names to/> }
}

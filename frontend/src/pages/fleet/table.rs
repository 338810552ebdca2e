//! The machines as a table: sorted by any column, filtered as the map is, ticked to be compared.

use super::Crowd;
use crate::address::Route;
use crate::panels::fleet::map::toggle;
use crate::state::Page;
use crate::store::fleet::hosts::{self, COLUMNS, HostOrder};
use crate::store::fleet::words;
use crate::widgets::parts::{Each, If, flag, text};
use leptos::prelude::*;
use shared::catalog::fleet::FleetRow;
use shared::standing::Standing;
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
pub fn shape(state: &Standing) -> (&'static str, &'static str) {
    match state {
        Standing::Live => ("●", "shape is-ok"),
        Standing::Filling { .. } => ("◐", "shape is-ok"),
        Standing::Late => ("◌", "shape is-unknown"),
        Standing::Unreachable => ("✕", "shape is-unknown"),
        Standing::Stopped(_) => ("■", "shape is-unknown"),
        Standing::Refused(_) => ("▲", "shape is-warn"),
        Standing::Ended => ("○", "shape is-unknown"),
    }
}

/// The table.
#[component]
pub fn Table() -> impl IntoView {
    let page = expect_context::<Page>();
    let crowd = expect_context::<Crowd>();
    let (order, most) = (RwSignal::new(HostOrder::State), RwSignal::new(PAGE));
    let sorted = Memo::new(move |_| {
        let filter = page.view.with(|v| v.find.clone());
        crowd.hosts.with(|hosts| {
            let sorted = hosts::sorted(hosts, &filter, order.get());
            sorted.into_iter().map(|i| hosts[i].entry.name.clone()).collect::<Vec<String>>()
        })
    });
    let shown = Signal::derive(move || sorted.with(|names| names.iter().take(most.get()).cloned().collect::<Vec<_>>()));
    let more = move || sorted.with(Vec::len).saturating_sub(most.get());
    // Columns that nobody has a value for are left out.
    let has =
        move |i: &usize| crowd.hosts.with(|hosts| hosts.iter().any(|host| host.values.of(COLUMNS[*i].0).is_finite()));
    let columns = Memo::new(move |_| (0..COLUMNS.len()).filter(has).map(|i| i.to_string()).collect::<Vec<String>>());
    let head = move |words: &'static str, by: HostOrder| {
        let way = if by == HostOrder::Name { "ascending" } else { "descending" };
        let sort = text(move || if order.get() == by { way } else { "none" });
        view! {
            <th scope="col" aria-sort=sort>
                <button data-do="sort" on:click=move |_| order.set(by)>{words}</button>
            </th>
        }
        .into_any()
    };
    let column = move |key: String| {
        let i = key.parse().unwrap_or(0);
        head(COLUMNS[i].1, HostOrder::Row(i))
    };
    let body = move |name: String| view! { <Row name columns/> }.into_any();
    view! {
        <section class="panel flush" aria-label="Machines">
            <header>
                <h2>"Machines"</h2>
                <span class="u">{text(move || words::count(sorted.with(Vec::len), "host", "hosts"))}</span>
                <Chosen/>
            </header>
            <div class="scroll" tabindex="0" role="region" aria-label="Table of machines">
                <table class="rows" id="hosts">
                    <thead>
                        <tr>
                            <td></td>
                            {head("machine", HostOrder::Name)}
                            {head("state", HostOrder::State)}
                            <Each keys=columns row=Callback::new(column)/>
                        </tr>
                    </thead>
                    <tbody>
                        <Each keys=shown row=Callback::new(body)/>
                    </tbody>
                </table>
            </div>
            <If when=flag(move || more() > 0)>
                <button class="more-rows" data-do="more" on:click=move |_| most.update(|n| *n += 4 * PAGE)>
                    {text(move || format!("{} more", words::thousands(more())))}
                </button>
            </If>
        </section>
    }
}

/// A machine of the table. It has the columns of these numbers.
#[component]
fn Row(name: String, columns: Memo<Vec<String>>) -> impl IntoView {
    let page = expect_context::<Page>();
    let crowd = expect_context::<Crowd>();
    let own = StoredValue::new(name);
    let state = crowd.of(own, |host, _| host.entry.state.word().to_string());
    let words = crowd.of(own, words::explained);
    let glyph = crowd.of(own, |host, _| shape(&host.entry.state).0.to_string());
    let class = crowd.of(own, |host, _| shape(&host.entry.state).1.to_string());
    let cell = move |key: String| {
        let row = COLUMNS[key.parse::<usize>().unwrap_or(0)].0;
        let value = text(move || crowd.with(own, |host| number(row, host.values.of(row))).unwrap_or_default());
        view! { <td>{value}</td> }.into_any()
    };
    let name = own.get_value();
    let link = page.address_of(None, std::slice::from_ref(&name));
    view! {
        <tr data-host=name.clone() data-state=state>
            <td>
                <input
                    type="checkbox"
                    aria-label=format!("Compare {name}")
                    prop:checked=flag(move || crowd.chosen.with(|chosen| own.with_value(|own| chosen.contains(own))))
                    on:change=move |_| toggle(crowd.chosen, own.get_value())
                />
            </td>
            <th scope="row"><a class="source-name" href=link>{name.clone()}</a></th>
            <td class="state"><span class=class aria-hidden="true">{glyph}</span>" "{words}</td>
            <Each keys=columns row=Callback::new(cell)/>
        </tr>
    }
}

/// The way to compare those that are ticked.
#[component]
pub fn Chosen() -> impl IntoView {
    let page = expect_context::<Page>();
    let crowd = expect_context::<Crowd>();
    let n = move || crowd.chosen.with(Vec::len);
    let to = text(move || page.address_of(Some(Route::Compare), &crowd.chosen.get()));
    view! {
        <span class="end">
            <If when=flag(move || n() > 0)>
                <span class="u">{text(move || format!("{} ticked", n()))}</span>
                <button class="plain" data-do="untick" on:click=move |_| crowd.chosen.set(Vec::new())>"None"</button>
            </If>
            <If when=flag(move || (2..=MAX_OPENED).contains(&n()))>
                <a class="btn primary" data-do="compare" href=to>"Compare"</a>
            </If>
            <If when=flag(move || n() > MAX_OPENED)>
                <span class="u">"at most 8 can be compared"</span>
            </If>
        </span>
    }
}

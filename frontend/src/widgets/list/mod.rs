//! The list of the page: rows of words under their headings, which may be sorted, ticked, filtered and grouped, each
//! with its actions. Rows are data, so all lists are one piece of code; a changed row is updated in place.
//!
//! [`line`]: the content; [`filter`]: the field above it; [`ticks`]: the selection; [`picks`]: a list with one entry
//! shown beside it.

mod cell;
pub mod filter;
pub mod line;
pub mod picks;
pub mod ticks;

use crate::widgets::parts::{Each, If, flag, text};
use leptos::prelude::*;
use line::{Cell, Done, Head, Heads, Line};
use ticks::Ticks;

/// Sort order of a list, and the callback for its choice. The name of a heading; a leading `-` turns the order.
#[derive(Clone, Copy)]
pub struct Sort {
    /// The present order.
    pub by: Signal<String>,
    /// Called with another one.
    pub choose: Callback<String>,
}

/// State shared by the rows of a list; copies share the same signals.
#[derive(Clone, Copy)]
struct Table {
    heads: Signal<Vec<Head>>,
    rows: Signal<Vec<Line>>,
    act: Option<Callback<Done>>,
    ticks: Option<Ticks>,
}

/// The list.
#[component]
pub fn List(
    /// Id of the table.
    id: &'static str,
    /// Its class: of figures (`rows`), or of words (`rows list`).
    #[prop(default = "rows list")]
    class: &'static str,
    /// Label for screen readers.
    label: &'static str,
    /// Its headings.
    #[prop(into)]
    heads: Heads,
    /// Its rows.
    #[prop(into)]
    rows: Signal<Vec<Line>>,
    /// Whether the rows are known.
    #[prop(into)]
    known: Signal<bool>,
    /// Text of an empty table.
    #[prop(into)]
    empty: Signal<String>,
    /// Called with each action; None where rows have no actions.
    #[prop(optional)]
    act: Option<Callback<Done>>,
    /// Ticked rows; None where rows cannot be ticked.
    #[prop(optional)]
    ticks: Option<Ticks>,
    /// Sort order; None where it cannot be chosen.
    #[prop(optional)]
    sort: Option<Sort>,
) -> impl IntoView {
    let Heads(heads) = heads;
    let table = Table { heads, rows, act, ticks };
    let (order, hold) = order(rows, sort);
    let row = Callback::new(move |id: String| view! { <Row id table/> }.into_any());
    let none = flag(move || known.get() && rows.with(Vec::is_empty) && empty.with(|words| !words.is_empty()));
    view! {
        <div class="scroll" tabindex="0" role="region" aria-label=label>
            <table class=class id=id>
                <thead>
                    <tr>
                        {ticks.map(|_| view! { <td></td> })}
                        {move || heads.get().into_iter().map(|one| head(one, sort)).collect_view()}
                        {act.map(|_| view! { <td></td> })}
                    </tr>
                </thead>
                <tbody on:pointerenter=move |_| hold.set(true) on:pointerleave=move |_| hold.set(false)>
                    <Each keys=order row/>
                </tbody>
            </table>
        </div>
        <If when=none><p class="below pad">{empty}</p></If>
    }
}

/// The ids of rows in their order. In a sortable list the values change all the time. Rows therefore keep their order
/// while a pointer is over them and none is removed, until another order is chosen.
fn order(rows: Signal<Vec<Line>>, sort: Option<Sort>) -> (Signal<Vec<String>>, RwSignal<bool>) {
    let hold = RwSignal::new(false);
    let order = Memo::new(move |before: Option<&(String, Vec<String>)>| {
        let by = sort.map(|sort| sort.by.get()).unwrap_or_default();
        let new = rows.with(|rows| rows.iter().map(|row| row.id.clone()).collect::<Vec<String>>());
        let held = before.filter(|(sorted, old)| {
            sort.is_some()
                && hold.get()
                && *sorted == by
                && old.len() == new.len()
                && old.iter().all(|id| new.contains(id))
        });
        (by, held.map_or(new, |(_, old)| old.clone()))
    });
    (Signal::derive(move || order.with(|(_, ids)| ids.clone())), hold)
}

/// A heading; a press sorts, a second one turns the order.
fn head(head: Head, sort: Option<Sort>) -> AnyView {
    let (Some(rises), Some(sort)) = (head.sorts, sort) else {
        return view! { <th scope="col" class=head.class>{head.words}</th> }.into_any();
    };
    let by = StoredValue::new(head.id.clone());
    let is_here = move || sort.by.with(|now| by.with_value(|by| now == by));
    let sorted = text(move || {
        let turned = sort.by.with(|now| by.with_value(|by| now.strip_prefix('-') == Some(by)));
        match (is_here() || turned, turned != rises) {
            (false, _) => "none",
            (true, true) => "ascending",
            (true, false) => "descending",
        }
    });
    let press = move |_| {
        let own = by.get_value();
        sort.choose.run(if untrack(is_here) { format!("-{own}") } else { own });
    };
    view! {
        <th scope="col" class=head.class aria-sort=sorted data-column=head.id><button data-do="sort" on:click=press>{head.words}</button></th>
    }
    .into_any()
}

#[component]
fn Row(id: String, table: Table) -> impl IntoView {
    let own = StoredValue::new(id.clone());
    // Each cell updates on its own, so that a link or a field keeps the focus while a number beside it changes.
    let line = Memo::new(move |before: Option<&Option<Line>>| {
        let found = table.rows.with(|rows| rows.iter().find(|row| own.with_value(|id| row.id == *id)).cloned());
        // A removed row keeps its last content.
        found.or_else(|| before.cloned().flatten())
    });
    let read = move |of: fn(&Line) -> Option<String>| move || line.with(|line| line.as_ref().and_then(of));
    let is_group = Memo::new(move |_| line.with(|line| line.as_ref().is_some_and(|line| line.group().is_some())));
    let cells = move || match is_group.get() {
        true => group(line, table),
        false => cells(line, table),
    };
    let ticked = flag(move || table.ticks.is_some_and(|ticks| own.with_value(|id| ticks.has(id))));
    view! {
        <tr data-row=id data-state=read(Line::state) class:group=is_group class:ticked=ticked>{cells}</tr>
    }
}

/// The heading of a group.
fn group(line: Memo<Option<Line>>, table: Table) -> AnyView {
    let said = move |of: fn((String, String)) -> String| {
        text(move || line.with(|line| line.as_ref().and_then(Line::group).map(of).unwrap_or_default()))
    };
    let wide = text(move || {
        let more = usize::from(table.ticks.is_some()) + usize::from(table.act.is_some());
        (table.heads.with(Vec::len) + more).to_string()
    });
    view! {
        <th scope="rowgroup" colspan=wide><b class="source-name">{said(|words| words.0)}</b>" "<span class="u">{said(|words| words.1)}</span></th>
    }
    .into_any()
}

/// The cells of a row, with its checkbox and its actions.
fn cells(line: Memo<Option<Line>>, table: Table) -> AnyView {
    let name = move || line.with(|line| line.as_ref().map(|line| line.name.clone()).unwrap_or_default());
    let act = move |deed: &'static str, value: String| {
        if let (Some(act), Some(line)) = (table.act, line.get_untracked()) {
            act.run((line, deed, value));
        }
    };
    let send = Callback::new(move |(deed, value): (&'static str, String)| act(deed, value));
    let tick = |ticks: Ticks| {
        let id =
            StoredValue::new(line.with_untracked(|line| line.as_ref().map(|line| line.id.clone()).unwrap_or_default()));
        view! {
            <td>
                <label class="box">
                    <input
                        type="checkbox"
                        aria-label=text(move || format!("Compare {}", name()))
                        prop:checked=flag(move || id.with_value(|id| ticks.has(id)))
                        on:change=move |_| ticks.toggle(id.get_value())
                    />
                </label>
            </td>
        }
    };
    let cell = move |(at, head): (usize, Head)| {
        let cell: Memo<Option<Cell>> =
            Memo::new(move |_| line.with(|line| line.as_ref().and_then(|line| line.cells.get(at).cloned())));
        let content = move || cell.get().map(|cell| cell::drawn(cell, untrack(name), send));
        match head.names {
            true => view! { <th scope="row" class=head.class>{content}</th> }.into_any(),
            false => view! { <td class=head.class>{content}</td> }.into_any(),
        }
    };
    let deeds = Memo::new(move |_| line.with(|line| line.as_ref().map(|line| line.deeds.clone()).unwrap_or_default()));
    let deed = move |(deed, words): (&'static str, &'static str)| {
        let label = format!("{words} {}", untrack(name));
        view! { <button data-do=deed aria-label=label on:click=move |_| act(deed, String::new())>{words}</button> }
    };
    let deeds = move || deeds.get().into_iter().map(deed).collect_view();
    view! {
        {table.ticks.map(tick)}
        {move || table.heads.get().into_iter().enumerate().map(cell).collect_view()}
        {table.act.map(|_| view! { <td class="deeds">{deeds}</td> })}
    }
    .into_any()
}

/// The button below a list that shows more of it.
#[component]
pub fn More(
    /// Its words; empty while there is no more.
    #[prop(into)]
    words: Signal<String>,
    /// Its name in `data-do`.
    #[prop(default = "more")]
    deed: &'static str,
    /// Called when it is pressed.
    press: Callback<()>,
) -> impl IntoView {
    view! {
        <If when=flag(move || words.with(|words| !words.is_empty()))>
            <button class="more-rows" data-do=deed on:click=move |_| press.run(())>{words}</button>
        </If>
    }
}

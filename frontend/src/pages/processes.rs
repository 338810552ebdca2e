//! What runs here: the process table, now or at the instant that is looked at.

use crate::browser::offset;
use crate::state::Page;
use crate::store::processes::{Column, Line, by_tree, each, sort};
use crate::widgets::icons::Triangle;
use leptos::html;
use leptos::prelude::*;
use shared::processes::ProcessTable;
use shared::unit::{Unit, number, quantity};
use shared::wire::PageMessage;

/// Lines that are shown; the rest is counted.
const LINES: usize = 24;
/// Seconds between two questions while nothing is frozen.
const EVERY: u32 = 5;

/// The instant that is looked at; none when the page is live and nothing is pointed at.
fn instant(page: Page) -> Option<i64> {
    let hover = page.hover.with_value(|hover| hover.as_ref().map(|hover| hover.t));
    hover.or(page.view.with_untracked(|view| view.frozen).map(|(_, to)| to))
}

fn bytes(value: Option<f64>, unit: Unit) -> String {
    value.map_or_else(
        || "–".into(),
        |v| {
            let (number, symbol) = quantity(v, unit);
            format!("{number} {symbol}")
        },
    )
}

/// The columns, and whether they are read from the left.
const COLUMNS: [(&str, Column, bool); 8] = [
    ("Name", Column::Name, true),
    ("PID", Column::Pid, false),
    ("User", Column::User, true),
    ("CPU %", Column::Cpu, false),
    ("Memory", Column::Memory, false),
    ("Threads", Column::Threads, false),
    ("Disk", Column::Disk, false),
    ("GPU memory", Column::Gpu, false),
];

/// The table under a fold; it is asked for only while it is open.
#[component]
pub fn Processes() -> impl IntoView {
    let page = expect_context::<Page>();
    let (open, column, trees) = (RwSignal::new(false), RwSignal::new(Column::Cpu), RwSignal::new(false));
    let asked = StoredValue::new((EVERY, None::<i64>));
    Effect::new(move || {
        page.beat.track();
        let mut asked = asked.write_value();
        if !open.get() {
            asked.0 = EVERY;
            return;
        }
        let at = instant(page);
        if asked.0 >= EVERY || at != asked.1 {
            *asked = (0, at);
            page.ask(PageMessage::Processes { at });
        } else {
            asked.0 += 1;
        }
    });
    let table = move || page.processes.get().filter(|table| table.t > 0);
    let gist = move || match table() {
        _ if !open.get() => "who uses CPU, memory, disks and GPUs".to_string(),
        None => "no table yet".to_string(),
        Some(table) => words(page, &table),
    };
    let choice = move |tree: bool, words: &'static str| {
        let pressed = move || (trees.get() == tree).to_string();
        view! { <button aria-pressed=pressed on:click=move |_| trees.set(tree)>{words}</button> }
    };
    let head = move |(name, this, left): (&'static str, Column, bool)| {
        let sorted = move || (column.get() == this).then_some("descending");
        view! {
            <th class=if left { "l" } else { "" } scope="col" aria-sort=sorted>
                <button on:click=move |_| column.set(this)>{name}</button>
            </th>
        }
    };
    let rows = move || {
        table().map(|table| {
            let mut lines = if trees.get() { by_tree(&table.rows) } else { each(&table.rows) };
            sort(&mut lines, column.get());
            let rest = lines.len().saturating_sub(LINES);
            let rest = (rest > 0).then(|| view! { <tr><td class="rest" colspan="8">"… "{rest}" more"</td></tr> });
            view! { {lines.into_iter().take(LINES).map(row).collect_view()}{rest} }
        })
    };
    let details = NodeRef::<html::Details>::new();
    let toggled = move |_| open.set(details.get_untracked().is_some_and(|details| details.open()));
    view! {
        <details node_ref=details class="fold processes" on:toggle=toggled>
            <summary>
                <Triangle/>
                <span class="name">"Processes"</span>
                <span class="n">{move || table().map(|table| table.total)}</span>
                <span class="gist">{gist}</span>
            </summary>
            <div class="scroll">
                <p class="choices" role="group" aria-label="Lines">
                    {choice(false, "each process")}
                    {choice(true, "by tree")}
                </p>
                <table>
                    <thead><tr>{COLUMNS.into_iter().map(head).collect_view()}</tr></thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
        </details>
    }
}

/// When the table is of, and what part of it is known.
fn words(page: Page, table: &ProcessTable) -> String {
    let clock = |t: i64| charts::axis::clock(t + offset(t), true);
    let kept = if table.whole { "" } else { ", the largest users" };
    let now = instant(page).is_none();
    if now { format!("now{kept}") } else { format!("at {}{kept}", clock(table.t)) }
}

fn row(line: Line) -> impl IntoView {
    let p = line.process;
    let more = if line.processes > 1 { format!(" and {} more", line.processes - 1) } else { String::new() };
    let place = if p.container.is_empty() { String::new() } else { format!(" in {}", p.container) };
    let disk = p.read.or(p.written).map(|_| f64::from(p.read.unwrap_or(0.0)) + f64::from(p.written.unwrap_or(0.0)));
    let share = p.gpu_share.map_or_else(String::new, |s| format!(", {} %", number(f64::from(s))));
    let gpu = p.gpu_memory.map_or_else(|| "–".to_string(), |b| bytes(Some(b as f64), Unit::Bytes) + &share);
    let watched = p.watched.then(|| view! { <span class="shape is-ok" title="watched">"●"</span>" " });
    view! {
        <tr>
            <td class="cmd l">{watched}<b>{p.name.clone()}</b><span>{more + &place}</span></td>
            <td>{p.pid}</td>
            <td class="l">{p.user.clone()}</td>
            <td>{p.cpu.map_or_else(|| "–".to_string(), |cpu| number(f64::from(cpu)))}</td>
            <td>{bytes(Some(p.rss as f64), Unit::Bytes)}</td>
            <td>{(p.threads > 0).then_some(p.threads)}</td>
            <td>{bytes(disk, Unit::BytesPerSecond)}</td>
            <td>{gpu}</td>
        </tr>
    }
}

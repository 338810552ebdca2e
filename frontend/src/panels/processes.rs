//! What runs here: the process table, now or at the instant that is looked at.

use super::sections::Triangle;
use crate::page::{Page, page};
use crate::store::processes::{Column, Line, by_tree, each, sort};
use crate::widgets::live;
use leptos::prelude::*;
use shared::processes::ProcessTable;
use shared::unit::{Unit, number, quantity};
use shared::wire::PageMessage;
use wasm_bindgen::JsCast;

/// Lines that are shown; the rest is counted.
const LINES: usize = 24;
/// Seconds between two questions while nothing is frozen.
const EVERY: u32 = 5;

/// The instant that is looked at; none when the page is live and nothing is pointed at.
fn instant(page: Page) -> Option<i64> {
    let hover = page.board.borrow().hover.as_ref().map(|hover| hover.t);
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

/// The table under a fold; it is asked for only while it is open.
#[component]
pub fn Processes() -> impl IntoView {
    let page = page();
    let open = RwSignal::new(false);
    let column = RwSignal::new(Column::Cpu);
    let trees = RwSignal::new(false);
    let asked = StoredValue::new_local((0u32, None::<i64>));
    let ask = move || {
        let at = instant(page);
        asked.set_value((0, at));
        page.link.borrow().ask(&PageMessage::Processes { at });
    };
    Effect::new(move |_| {
        page.beat.track();
        if !open.get_untracked() {
            return;
        }
        let (waited, at) = asked.get_value();
        if waited >= EVERY || at != instant(page) {
            ask();
        } else {
            asked.set_value((waited + 1, at));
        }
    });
    let toggled = move |event: leptos::ev::Event| {
        let details = event.target().and_then(|t| t.dyn_into::<web_sys::HtmlDetailsElement>().ok());
        if let Some(details) = details {
            open.set(details.open());
            if details.open() {
                ask();
            }
        }
    };
    let table = move || page.processes.get().filter(|table| table.t > 0);
    let gist = move || {
        if !open.get() {
            return "who uses CPU, memory, disks and GPUs".to_string();
        }
        match table() {
            None => "no table yet".to_string(),
            Some(table) => words(page, &table),
        }
    };
    let lines = move || {
        let Some(table) = table() else { return (Vec::new(), 0) };
        let mut lines = if trees.get() { by_tree(&table.rows) } else { each(&table.rows) };
        sort(&mut lines, column.get());
        let rest = lines.len().saturating_sub(LINES);
        lines.truncate(LINES);
        (lines, rest)
    };
    let head = move |name: &'static str, this: Column, left: bool| {
        view! {
            <th scope="col" class:l=left aria-sort=move || (column.get() == this).then_some("descending")>
                <button on:click=move |_| column.set(this)>{name}</button>
            </th>
        }
    };
    view! {
        <details class="fold processes" on:toggle=toggled>
            <summary>
                <Triangle/>
                <span class="name">"Processes"</span>
                <span class="n">{live::words(move || table().map_or_else(String::new, |t| t.total.to_string()))}</span>
                <span class="gist">{live::words(gist)}</span>
            </summary>
            <div class="scroll">
                <p class="choices" role="group" aria-label="Lines">
                    <button aria-pressed=live::words(move || (!trees.get()).to_string()) on:click=move |_| trees.set(false)>"each process"</button>
                    <button aria-pressed=live::words(move || trees.get().to_string()) on:click=move |_| trees.set(true)>"by tree"</button>
                </p>
                <table>
                    <thead>
                        <tr>
                            {head("Name", Column::Name, true)}
                            {head("PID", Column::Pid, false)}
                            {head("User", Column::User, true)}
                            {head("CPU %", Column::Cpu, false)}
                            {head("Memory", Column::Memory, false)}
                            {head("Threads", Column::Threads, false)}
                            {head("Disk", Column::Disk, false)}
                            {head("GPU memory", Column::Gpu, false)}
                        </tr>
                    </thead>
                    <tbody>
                        {move || lines().0.into_iter().map(row).collect_view()}
                        {move || {
                            let rest = lines().1;
                            (rest > 0).then(|| view! { <tr><td class="rest" colspan="8">{format!("… {rest} more")}</td></tr> })
                        }}
                    </tbody>
                </table>
            </div>
        </details>
    }
}

/// When the table is of, and what part of it is known.
fn words(page: Page, table: &ProcessTable) -> String {
    let clock = |t: i64| charts::axis::clock(t + crate::page::offset(t), true);
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
    view! {
        <tr>
            <td class="cmd l">
                {p.watched.then(|| view! { <span class="shape is-ok" title="watched">"●"</span>" " })}
                <b>{p.name}</b>
                <span>{more}{place}</span>
            </td>
            <td>{p.pid}</td>
            <td class="l">{p.user}</td>
            <td>{p.cpu.map_or_else(|| "–".to_string(), |cpu| number(f64::from(cpu)))}</td>
            <td>{bytes(Some(p.rss as f64), Unit::Bytes)}</td>
            <td>{(p.threads > 0).then_some(p.threads)}</td>
            <td>{bytes(disk, Unit::BytesPerSecond)}</td>
            <td>{gpu}</td>
        </tr>
    }
}

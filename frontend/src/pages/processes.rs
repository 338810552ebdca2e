//! The process table, of now or of the selected instant.

use super::past::Past;
use crate::browser::offset;
use crate::state::Page;
use crate::store::plan::PROCESSES;
use crate::store::processes::{Column, Line, Listing, disk, lines};
use crate::widgets::icons::Triangle;
use charts::order;
use leptos::html;
use leptos::prelude::*;
use shared::processes::ProcessTable;
use shared::unit::{Unit, grouped};
use shared::wire::PageMessage;

/// Number of lines that are shown at first.
const FIRST_LINES: usize = 24;
/// Largest number of lines that are shown; the others are only counted.
const MAX_LINES: usize = 500;
/// Most users to choose from.
const MAX_USERS: usize = 100;
/// Seconds between two polls of the table while the instant stays the same.
const REFRESH_SECONDS: u32 = 5;

/// The selected instant, ms since the epoch; None when the page is live without a crosshair.
fn instant(page: Page) -> Option<i64> {
    let hover = page.hover.with_value(|hover| hover.as_ref().map(|hover| hover.t));
    hover.or(page.view.with_untracked(|view| view.frozen).map(|(_, to)| to))
}

/// Title and key of each column, and whether its cells are aligned to the left. Each column has one unit and one
/// precision, so that its numbers can be compared.
const COLUMNS: [(&str, Column, bool); 9] = [
    ("Name", Column::Name, true),
    ("PID", Column::Pid, false),
    ("User", Column::User, true),
    ("CPU %", Column::Cpu, false),
    ("Memory MiB", Column::Memory, false),
    ("Threads", Column::Threads, false),
    ("Disk MiB/s", Column::Disk, false),
    ("GPU memory MiB", Column::Gpu, false),
    ("GPU %", Column::GpuShare, false),
];

/// The process that is drawn over time: number, name, span in ms since the epoch.
type Drawn = RwSignal<Option<(u32, String, (i64, i64))>>;

/// Polls the table every few seconds while it is open, and with it the drawn process.
fn ask_while_open(page: Page, open: Memo<bool>, drawn: Drawn) {
    let asked = StoredValue::new((REFRESH_SECONDS, None::<i64>));
    Effect::new(move || {
        page.beat.track();
        let mut asked = asked.write_value();
        if !open.get() {
            asked.0 = REFRESH_SECONDS;
            return;
        }
        let at = instant(page);
        if asked.0 >= REFRESH_SECONDS || at != asked.1 {
            *asked = (0, at);
            page.ask(PageMessage::Processes { at });
            drawn.update(|drawn| drawn.iter_mut().for_each(|drawn| drawn.2 = page.span()));
        } else {
            asked.0 += 1;
        }
    });
}

/// The heading of a column, which sorts by it.
fn head(choice: RwSignal<Listing>, (name, this, left): (&'static str, Column, bool)) -> impl IntoView {
    let sorted =
        move || choice.with(|c| (c.by == this).then_some(if c.ascending { "ascending" } else { "descending" }));
    // The first click brings the largest number or the letter A to the top, the second one turns the order around.
    let press = move |_| {
        choice.update(|c| {
            c.ascending = if c.by == this { !c.ascending } else { left || this == Column::Pid };
            c.by = this;
        });
    };
    view! {
        <th class=if left { "l" } else { "" } scope="col" aria-sort=sorted>
            <button on:click=press>{name}</button>
        </th>
    }
}

/// The choice of processes and columns.
#[component]
fn Choices(choice: RwSignal<Listing>) -> impl IntoView {
    let page = expect_context::<Page>();
    let table = move || page.processes.get().filter(|table| table.t > 0);
    let kind = move |tree: bool, words: &'static str| {
        let pressed = move || choice.with(|choice| choice.tree.is_some() == tree).to_string();
        let choose = move |_| choice.update(|choice| choice.tree = tree.then(Vec::new));
        view! { <button aria-pressed=pressed on:click=choose>{words}</button> }
    };
    let users = Memo::new(move |_| {
        let mut users: Vec<String> = table().into_iter().flat_map(|t| t.rows).map(|p| p.user).collect();
        order::sort(&mut users);
        users.dedup();
        users.truncate(MAX_USERS);
        users
    });
    let user = move |name: String| {
        let selected = choice.with_untracked(|choice| choice.user == name);
        view! { <option value=name.clone() selected=selected>{name.clone()}</option> }
    };
    view! {
        <p class="choices" role="group" aria-label="Lines">
            {kind(false, "list")}
            {kind(true, "tree")}
            <input
                type="search"
                aria-label="Filter processes"
                placeholder="name, PID or user"
                autocomplete="off"
                spellcheck="false"
                prop:value=page.seek
                on:input=move |event| page.seek.set(event_target_value(&event))
            />
            <select aria-label="User" on:change=move |event| choice.update(|c| c.user = event_target_value(&event))>
                <option value="">"all users"</option>
                {move || users.get().into_iter().map(user).collect_view()}
            </select>
        </p>
    }
}

/// The table in a section that folds. The table is requested only while the section is open.
#[component]
pub fn Processes() -> impl IntoView {
    let page = expect_context::<Page>();
    let open = Memo::new(move |_| page.is_open(PROCESSES, false));
    let (choice, all) = (RwSignal::new(Listing::default()), RwSignal::new(false));
    // The process that is drawn over time, and the requested span.
    let drawn = Drawn::new(None);
    let draw = Callback::new(move |(pid, name): (u32, String)| {
        let closes = drawn.with_untracked(|drawn| drawn.as_ref().is_some_and(|drawn| drawn.0 == pid));
        drawn.set((!closes).then(|| (pid, name, page.span())));
    });
    Effect::new(move || {
        if let Some((pid, name, (from, to))) = drawn.get() {
            page.ask(PageMessage::Past { pid, name, from, to });
        }
    });
    ask_while_open(page, open, drawn);
    let table = move || page.processes.get().filter(|table| table.t > 0);
    let gist = move || match table() {
        _ if !open.get() => "use of CPU, memory, disks and GPUs".to_string(),
        None => "waiting for the process list".to_string(),
        Some(table) => words(page, &table),
    };
    let shown = move || open.get().then(table).flatten();
    let rows = move || {
        shown().map(|table| {
            let lines = lines(&table.rows, &choice.get(), &page.seek.get());
            let (n, most) = (lines.len(), if all.get() { MAX_LINES } else { FIRST_LINES });
            let rest = match n {
                0 => "No process matches.".to_string(),
                _ if n <= most => String::new(),
                _ => format!("… {} more", n - most),
            };
            let button = (n > FIRST_LINES && !(all.get() && n > MAX_LINES && most < n)).then(|| {
                let word = if all.get() { "show fewer" } else { "show all" };
                view! { " "<button on:click=move |_| all.update(|all| *all = !*all)>{word}</button> }
            });
            view! {
                {lines.into_iter().take(most).map(|line| row(choice, drawn, draw, line)).collect_view()}
                <tr><td class="rest" colspan="9">{rest}{button}</td></tr>
            }
        })
    };
    let details = NodeRef::<html::Details>::new();
    let toggled = move |_| {
        let now = details.get_untracked().is_some_and(|details| details.open());
        if now != open.get_untracked() {
            page.fold(PROCESSES, false, now);
        }
    };
    view! {
        <details node_ref=details class="fold processes" open=move || open.get() data-section=PROCESSES on:toggle=toggled>
            <summary>
                <Triangle/>
                <span class="name">"Processes"</span>
                <span class="n">{move || table().map(|table| table.total)}</span>
                <span class="gist">{gist}</span>
            </summary>
            <div class="scroll">
                <Choices choice/>
                <table class:tree=move || choice.with(|choice| choice.tree.is_some())>
                    <thead><tr>{COLUMNS.into_iter().map(|column| head(choice, column)).collect_view()}</tr></thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
        </details>
    }
}

/// The time of the table, and whether it has all processes.
fn words(page: Page, table: &ProcessTable) -> String {
    let clock = |t: i64| charts::axis::clock(t + offset(t), true);
    let kept = if table.whole { "" } else { ", top 8 by CPU and memory" };
    let now = instant(page).is_none();
    if now { format!("now{kept}") } else { format!("at {}{kept}", clock(table.t)) }
}

/// A number with `decimals` digits after the point; a dash for an unknown one.
fn cell(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".into(), |v| grouped(v, decimals))
}

fn row(choice: RwSignal<Listing>, drawn: Drawn, draw: Callback<(u32, String)>, line: Line) -> impl IntoView {
    let p = line.process;
    let more = if line.processes > 1 { format!(" and {} more", line.processes - 1) } else { String::new() };
    let place = if p.container.is_empty() { String::new() } else { format!(" in {}", p.container) };
    let watched = p.watched.then(|| view! { <span class="shape is-ok" title="watched">"●"</span> });
    let mib = |bytes: f64| bytes / Unit::Mebibytes.to_base();
    let pid = p.pid;
    // A process without children is aligned with those that have a triangle.
    let leaf = line.open.is_none() && choice.with_untracked(|choice| choice.tree.is_some());
    let indent = format!("{}px", 16 * (line.depth + usize::from(leaf)));
    let script = p.script().map(|script| format!(" {script}"));
    let name = view! { <b>{p.name.clone()}</b>{script} };
    let own = p.name.clone();
    let over_time = move |_| draw.run((pid, own.clone()));
    let is_drawn = move || drawn.with(|drawn| drawn.as_ref().is_some_and(|drawn| drawn.0 == pid));
    let past = move || {
        let span = drawn.with(|drawn| drawn.as_ref().filter(|drawn| drawn.0 == pid).map(|drawn| drawn.2))?;
        Some(view! { <tr class="past"><td colspan="9"><Past pid span/></td></tr> })
    };
    let fold = move |_| {
        choice.update(|choice| {
            let open = choice.tree.get_or_insert_default();
            match open.iter().position(|other| *other == pid) {
                Some(at) => drop(open.swap_remove(at)),
                None => open.push(pid),
            }
        });
    };
    let name = match line.open {
        Some(open) => {
            view! { <button class="twig" aria-expanded=open.to_string() on:click=fold><Triangle/>{name}</button> }
                .into_any()
        }
        None => name.into_any(),
    };
    view! {
        <tr>
            <td class="cmd l" title=p.args.clone()><span style:padding-left=indent>{name}" "{watched}</span><span>{more + &place}</span></td>
            <td><button class="pid" data-do="past" title="History" aria-expanded=move || is_drawn().to_string() on:click=over_time>{pid}</button></td>
            <td class="l">{p.user.clone()}</td>
            <td>{cell(p.cpu.map(f64::from), 1)}</td>
            <td>{cell(Some(mib(p.rss as f64)), 0)}</td>
            <td>{(p.threads > 0).then_some(p.threads)}</td>
            <td>{cell(disk(&p).map(|v| mib(f64::from(v))), 1)}</td>
            <td>{cell(p.gpu_memory.map(|v| mib(v as f64)), 0)}</td>
            <td>{cell(p.gpu_share.map(f64::from), 0)}</td>
        </tr>
        {past}
    }
}

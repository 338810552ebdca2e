//! The page beside a notebook: a line about its kernel, and the runs of its cells in a table.

use crate::address;
use crate::browser;
use crate::fetch::{self, Json};
use crate::state::{CellRun, KernelState, Page, file_name};
use crate::widgets::icons::Triangle;
use charts::axis;
use charts::order;
use leptos::prelude::*;
use shared::answer::markers::{CellList, CellRow, KernelList, KernelRow};
use shared::json::Seconds;
use shared::new_marker::is_kernel;
use shared::unit::{self, Unit, duration};
use std::cell::Cell;
use std::rc::Rc;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;

/// Seconds between two polls.
const ASK_SECONDS: u32 = 3;
/// Rows that are shown at first, at the side of a notebook at first, and at most.
const FIRST_ROWS: usize = 12;
const SIDE_ROWS: usize = 6;
const MAX_ROWS: usize = 200;
/// Smallest change of memory that is shown, in bytes.
const MIN_KEPT: f64 = 4e6;
/// Name that marks the messages between Lab and the page.
const MESSAGE: &str = "watchglass";

/// Polls the kernel and its cells as long as there is a kernel, and receives messages of the surrounding page.
pub fn follow(page: Page) {
    let (count, waits) = (StoredValue::new(ASK_SECONDS), Rc::new(Cell::new(false)));
    let waits = StoredValue::new_local(waits);
    Effect::new(move || {
        page.beat.track();
        let asked = page.view.with(|view| view.kernel.clone());
        let due = count.with_value(|count| *count >= ASK_SECONDS);
        count.set_value(if due { 0 } else { count.get_value() + 1 });
        let other = page.is_recorded() || page.over.get_untracked() || browser::document().hidden();
        if !due || other || asked.is_none() && !page.has_kernels() || waits.with_value(|waits| waits.replace(true)) {
            return;
        }
        let waits = waits.get_value();
        ask(page, asked, move || waits.set(false));
    });
    listen(page);
}

/// Requests the kernels, and then the cells of the shown one: that of the address, else all of them.
fn ask(page: Page, asked: Option<String>, done: impl FnOnce() + 'static) {
    fetch::ask("GET", "api/v1/kernels", None, move |answer| {
        // A server that shows no kernels to this reader may show cells.
        let all = answer.read::<KernelList>().unwrap_or_default().kernels;
        let is_alone = all.len() == 1;
        let is = |kernel: &KernelRow| asked.as_ref().is_none_or(|id| kernel.id == *id);
        let kernel = all.into_iter().find(is).map(kernel_of);
        let path = match &asked {
            Some(id) => format!("api/v1/cells?kernel={id}"),
            None => "api/v1/cells".to_string(),
        };
        fetch::ask("GET", &path, None, move |answer| {
            if let Ok(list) = answer.read::<CellList>() {
                let cells = list.cells.into_iter().map(cell_of).collect();
                // Without a kernel in the address, a line about one of several would mislead.
                page.set_notebook(kernel.filter(|_| asked.is_some() || is_alone), cells);
            }
            done();
        });
    });
}

fn bracket(n: Option<u64>) -> String {
    n.map_or_else(|| "[ ]".into(), |n| format!("[{n}]"))
}

fn kernel_of(kernel: KernelRow) -> KernelState {
    KernelState {
        id: kernel.id,
        name: file_name(&kernel.path.unwrap_or_default()),
        pid: f64::from(kernel.pid),
        how: kernel.how.unwrap_or_default(),
        ended: kernel.ended.map(Seconds::ms),
        warning: kernel.warning.unwrap_or_default(),
        busy: kernel.busy.map(|busy| bracket(busy.n)).unwrap_or_default(),
    }
}

fn cell_of(cell: CellRow) -> CellRun {
    let memory = cell.memory.unwrap_or_default();
    let kept = memory.before.zip(memory.after).map(|(before, after)| after as f64 - before as f64);
    CellRun {
        cell: cell.cell.unwrap_or_default(),
        name: bracket(cell.n),
        from: cell.from.ms(),
        to: cell.to.map(Seconds::ms),
        seconds: cell.seconds.0,
        error: (cell.ok == Some(false)).then(|| cell.error.unwrap_or_default()),
        label: cell.label.unwrap_or_default(),
        line: cell.line,
        finding: cell.finding.unwrap_or_default(),
        kept: kept.filter(|_| cell.to.is_some()),
        peak: memory.peak.map(|peak| peak as f64),
        idle: cell.gpus.iter().filter_map(|gpu| gpu.idle).reduce(f64::max),
    }
}

/// Tells the page around this one, of the same origin, where there is one.
fn tell(fields: &[(&str, JsValue)]) {
    let window = browser::window();
    let Ok(Some(parent)) = window.parent() else { return };
    let Ok(origin) = window.location().origin() else { return };
    if parent != window {
        let message = Json::object([(MESSAGE, JsValue::from(1))].into_iter().chain(fields.iter().cloned()));
        // Only a page that is gone refuses it.
        let _ = parent.post_message(&message, &origin);
    }
}

/// Follows the messages of the surrounding page: the shown kernel, and the theme.
fn listen(page: Page) {
    let heard = Closure::<dyn FnMut(web_sys::MessageEvent)>::new(move |event: web_sys::MessageEvent| {
        let window = browser::window();
        let around = window.parent().ok().flatten().filter(|parent| *parent != window);
        let from = event.source().map(JsValue::from);
        let ours = window.location().origin().is_ok_and(|origin| origin == event.origin());
        if !ours || around.is_none() || from != around.map(JsValue::from) {
            return;
        }
        let said = Json::from_value(event.data());
        if said.get(MESSAGE).number() != Some(1.0) {
            return;
        }
        if let Some(id) = said.get("kernel").maybe().filter(|id| is_kernel(id)) {
            page.show_kernel(Some(id));
            page.name_notebook(&said.get("path").text());
        }
        if page.view.with_untracked(|view| view.lab)
            && let Some(tone) = address::tone(&said.get("theme").text())
        {
            page.tone.set(tone);
        }
    });
    // The browser always accepts a listener.
    let _ = browser::window().add_event_listener_with_callback("message", heard.as_ref().unchecked_ref());
    // It is needed as long as the page exists.
    heard.forget();
    tell(&[("ready", JsValue::TRUE)]);
}

/// State of a kernel: the class of a shape, the shape, and words. `brief` words omit its process.
fn state_of_kernel(kernel: &KernelState, brief: bool) -> (&'static str, &'static str, String) {
    let pid = if brief { String::new() } else { format!(", pid {}", kernel.pid) };
    match kernel.ended {
        Some(at) => {
            let clock = axis::clock(at + browser::offset(at), true);
            ("shape is-warn", "■", format!("ended at {clock}. {}", kernel.how))
        }
        None if !kernel.warning.is_empty() => ("shape is-warn", "▲", kernel.warning.clone()),
        None if kernel.busy.is_empty() => ("shape is-ok", "●", format!("idle{pid}")),
        None => ("shape is-ok", "●", format!("busy, cell {}{pid}", kernel.busy)),
    }
}

/// A line about the kernel: its notebook, its state, and its warning. At the side of a notebook it is the head of the
/// page, and links to the machine and back.
#[component]
pub fn KernelLine() -> impl IntoView {
    let page = expect_context::<Page>();
    let asked = Memo::new(move |_| page.view.with(|view| view.kernel.clone()));
    let side = Memo::new(move |_| page.view.with(|view| view.compact));
    // The kernel to which the line leads back.
    let last = RwSignal::new(None::<String>);
    Effect::new(move || asked.get().into_iter().for_each(|id| last.set(Some(id))));
    let kernel = Memo::new(move |_| page.notebook.with(|notebook| notebook.kernel.clone()));
    let empty = Memo::new(move |_| page.notebook.with(|notebook| notebook.cells.is_empty()));
    let name = move || {
        let named = page.notebook.with(|notebook| notebook.name.clone());
        match kernel.get() {
            _ if asked.get().is_none() && side.get() => "This machine".to_string(),
            None => "This kernel".into(),
            Some(kernel) => [named, kernel.name].into_iter().find(|name| !name.is_empty()).unwrap_or("Kernel".into()),
        }
    };
    let does = move || match kernel.get() {
        _ if asked.get().is_none() && side.get() => ("shape", "", String::new()),
        None => ("shape is-unknown", "◌", "was not found; it may have ended.".to_string()),
        Some(kernel) => state_of_kernel(&kernel, side.get()),
    };
    let trouble = move || kernel.with(|k| k.as_ref().is_some_and(|k| k.ended.is_some() || !k.warning.is_empty()));
    let idles = move || asked.with(Option::is_some) && empty.get() && kernel.with(Option::is_some);
    let is_there = move || asked.with(Option::is_some) || trouble() || (side.get() && last.with(Option::is_some));
    view! {
        <Show when=is_there>
            <div class="absent kernel" class:trouble=trouble class:lost=move || kernel.with(Option::is_none) tabindex="0" data-kernel=move || kernel.get().map(|k| k.id)>
                <span class=move || does().0>{move || does().1}</span>
                <span class="says"><b title=name>{name}</b>" "<span>{move || does().2}</span></span>
                <Show when=move || asked.with(Option::is_some)>
                    <button data-do="show-machine" aria-label="Show the machine" on:click=move |_| page.show_kernel(None)>
                        {move || if side.get() { "Machine" } else { "Show the machine" }}
                    </button>
                </Show>
                <Show when=move || asked.with(Option::is_none) && side.get()>
                    <button data-do="show-kernel" aria-label="Show the kernel" on:click=move |_| page.show_kernel(last.get_untracked())>"Kernel"</button>
                </Show>
                <Show when=idles>
                    <span class="idles">"It has run nothing yet: run a cell, and its time, memory and GPU use appear here."</span>
                </Show>
            </div>
        </Show>
    }
}

/// Sort order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Newest,
    Time,
    Kept,
    Peak,
    Idle,
}

const COLUMNS: [(&str, By); 5] = [
    ("Cell", By::Newest),
    ("Time", By::Time),
    ("Memory retained", By::Kept),
    ("Peak", By::Peak),
    ("GPU idle", By::Idle),
];

fn key(run: &CellRun, by: By) -> f64 {
    match by {
        By::Newest => run.from as f64,
        By::Time => run.seconds,
        By::Kept => run.kept.unwrap_or(f64::NEG_INFINITY),
        By::Peak => run.peak.unwrap_or(f64::NEG_INFINITY),
        By::Idle => run.idle.unwrap_or(f64::NEG_INFINITY),
    }
}

/// The runs of cells, a row each; the largest of a column, or the newest, first.
#[component]
pub fn Cells() -> impl IntoView {
    let page = expect_context::<Page>();
    let (by, all) = (RwSignal::new(By::Newest), RwSignal::new(false));
    let any = Memo::new(move |_| page.notebook.with(|notebook| !notebook.cells.is_empty()));
    let head = move |(name, this): (&'static str, By)| {
        let sorted = move || (by.get() == this).then_some("descending");
        view! {
            <th class=if this == By::Newest { "l" } else { "" } scope="col" aria-sort=sorted>
                <button on:click=move |_| by.set(this)>{name}</button>
            </th>
        }
    };
    let rows = move || {
        let (mut runs, chosen) = page.notebook.with(|notebook| (notebook.cells.clone(), notebook.chosen));
        let longest = runs.iter().map(|run| run.seconds).fold(0.001, f64::max);
        order::sort_by(&mut runs, |a, b| key(b, by.get()).total_cmp(&key(a, by.get())));
        let first = if page.view.with(|view| view.compact) { SIDE_ROWS } else { FIRST_ROWS };
        let (count, most) = (runs.len(), if all.get() { MAX_ROWS } else { first });
        let rest = (count > first).then(|| {
            let words = if all.get() { "show fewer" } else { "show all" };
            let more = if count > most { format!("… {} more ", count - most) } else { String::new() };
            view! { <tr><td class="rest" colspan="5">{more}<button on:click=move |_| all.update(|all| *all = !*all)>{words}</button></td></tr> }
        });
        let rows: Vec<_> = runs.into_iter().take(most).map(|run| row(page, run, longest, chosen)).collect();
        view! { {rows}{rest} }
    };
    let gist = move || page.notebook.with(|notebook| notebook.cells.first().map(|run| run.line.clone()));
    view! {
        <Show when=move || any.get()>
            <details class="fold processes cells" open data-section="cells">
                <summary>
                    <Triangle/>
                    <span class="name">"Cells"</span>
                    <span class="n">{move || page.notebook.with(|notebook| notebook.cells.len())}</span>
                    <span class="gist">{gist}</span>
                </summary>
                <div class="scroll">
                    <table>
                        <thead><tr>{COLUMNS.into_iter().map(head).collect_view()}</tr></thead>
                        <tbody>{rows}</tbody>
                    </table>
                </div>
            </details>
        </Show>
    }
}

fn size(bytes: f64) -> String {
    unit::text(bytes, Unit::Bytes)
}

fn time(seconds: f64) -> String {
    duration((seconds * 1_000.0) as i64)
}

fn row(page: Page, run: CellRun, longest: f64, chosen: Option<i64>) -> impl IntoView {
    let (class, shape, state) = match (&run.error, run.to) {
        (Some(_), _) => ("shape is-warn", "■", "failed"),
        (None, None) => ("shape is-ok", "●", "running"),
        (None, Some(_)) => ("shape is-ok", "✓", "ok"),
    };
    let words = [run.error.clone().unwrap_or_default(), run.label.clone(), run.finding.clone()];
    let words = words.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(" · ");
    let kept = run.kept.filter(|kept| kept.abs() >= MIN_KEPT);
    let kept = kept.map(|kept| format!("{}{}", if kept > 0.0 { "+" } else { "−" }, size(kept.abs())));
    let share = format!("{:.0}%", 100.0 * run.seconds / longest);
    let is_chosen = (chosen == Some(run.from)).to_string();
    let (name, line, peak, idle) = (run.name.clone(), run.line.clone(), run.peak.map(size), run.idle.map(time));
    let took = time(run.seconds);
    let go = move |_| {
        page.choose_cell(&run);
        if !run.cell.is_empty() {
            tell(&[("go", JsValue::from(run.cell.as_str()))]);
        }
    };
    view! {
        <tr data-cell-state=state title=line>
            <td class="cmd l">
                <span><span class=class>{shape}</span>" "<button class="pid" data-do="cell" aria-pressed=is_chosen on:click=go>{name}</button></span>
                <span>{words}</span>
            </td>
            <td class="took"><i style:width=share></i>{took}</td>
            <td>{kept}</td>
            <td>{peak}</td>
            <td>{idle}</td>
        </tr>
    }
}

//! What runs here: the process table, now or at the instant that is looked at.

use super::sections::opened;
use crate::page::{Page, page};
use crate::signal::Signal;
use crate::store::processes::{Column, Line, by_tree, each, sort};
use crate::widgets::{dom, live};
use shared::processes::ProcessTable;
use shared::unit::{Unit, number, quantity};
use shared::wire::PageMessage;
use web_sys::Element;

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

const FOLD: &str = "<details class='fold processes'>\
    <summary>\
        <svg class=tri viewBox='0 0 10 10' aria-hidden=true><path d='M3.5 2 6.5 5l-3 3'/></svg>\
        <span class=name>Processes</span><span class=n></span><span class=gist></span>\
    </summary>\
    <div class=scroll>\
        <p class=choices role=group aria-label=Lines><button>each process</button><button>by tree</button></p>\
        <table><thead><tr></tr></thead><tbody></tbody></table>\
    </div>\
</details>";

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
pub fn processes() -> Element {
    let (page, fold) = (page(), live::made(FOLD));
    let part = |selector: &str| dom::find(&fold, selector);
    let open = opened(&fold);
    let (column, trees) = (Signal::kept(Column::Cpu), Signal::kept(false));
    let mut asked = (EVERY, None::<i64>);
    live::follow(move || {
        page.beat.track();
        if !open.get() {
            asked.0 = EVERY;
            return;
        }
        let at = instant(page);
        if asked.0 >= EVERY || at != asked.1 {
            asked = (0, at);
            page.link.borrow().ask(&PageMessage::Processes { at });
        } else {
            asked.0 += 1;
        }
    });
    let table = move || page.processes.get().filter(|table| table.t > 0);
    live::text(&part(".n"), move || table().map_or_else(String::new, |t| t.total.to_string()));
    live::text(&part(".gist"), move || match table() {
        _ if !open.get() => "who uses CPU, memory, disks and GPUs".to_string(),
        None => "no table yet".to_string(),
        Some(table) => words(page, &table),
    });
    for (selector, tree) in [("p button", false), ("p button + button", true)] {
        let button = part(selector);
        live::attribute(&button, "aria-pressed", move || (trees.get() == tree).to_string());
        live::hear(&button, "click", move |_| trees.set(tree));
    }
    let head = part("thead tr");
    for (name, this, left) in COLUMNS {
        let cell = dom::add(&head, "th", if left { "l" } else { "" }, "");
        dom::set(&cell, "scope", "col");
        live::hear(&dom::add(&cell, "button", "", name), "click", move |_| column.set(this));
        live::follow(move || {
            let _ = if column.get() == this {
                cell.set_attribute("aria-sort", "descending")
            } else {
                cell.remove_attribute("aria-sort")
            };
        });
    }
    let body = part("tbody");
    live::follow(move || {
        body.set_text_content(None);
        let Some(table) = table() else { return };
        let mut lines = if trees.get() { by_tree(&table.rows) } else { each(&table.rows) };
        sort(&mut lines, column.get());
        let rest = lines.len().saturating_sub(LINES);
        lines.into_iter().take(LINES).for_each(|line| row(&body, line));
        if rest > 0 {
            let cell = dom::add(&dom::add(&body, "tr", "", ""), "td", "rest", &format!("… {rest} more"));
            dom::set(&cell, "colspan", "8");
        }
    });
    fold
}

/// When the table is of, and what part of it is known.
fn words(page: Page, table: &ProcessTable) -> String {
    let clock = |t: i64| charts::axis::clock(t + crate::page::offset(t), true);
    let kept = if table.whole { "" } else { ", the largest users" };
    let now = instant(page).is_none();
    if now { format!("now{kept}") } else { format!("at {}{kept}", clock(table.t)) }
}

fn row(body: &Element, line: Line) {
    let p = line.process;
    let more = if line.processes > 1 { format!(" and {} more", line.processes - 1) } else { String::new() };
    let place = if p.container.is_empty() { String::new() } else { format!(" in {}", p.container) };
    let disk = p.read.or(p.written).map(|_| f64::from(p.read.unwrap_or(0.0)) + f64::from(p.written.unwrap_or(0.0)));
    let share = p.gpu_share.map_or_else(String::new, |s| format!(", {} %", number(f64::from(s))));
    let gpu = p.gpu_memory.map_or_else(|| "–".to_string(), |b| bytes(Some(b as f64), Unit::Bytes) + &share);
    let row = dom::add(body, "tr", "", "");
    let command = dom::add(&row, "td", "cmd l", "");
    if p.watched {
        command.set_inner_html("<span class='shape is-ok' title=watched>●</span> ");
    }
    dom::add(&command, "b", "", &p.name);
    dom::add(&command, "span", "", &(more + &place));
    dom::add(&row, "td", "", &p.pid.to_string());
    dom::add(&row, "td", "l", &p.user);
    dom::add(&row, "td", "", &p.cpu.map_or_else(|| "–".to_string(), |cpu| number(f64::from(cpu))));
    dom::add(&row, "td", "", &bytes(Some(p.rss as f64), Unit::Bytes));
    dom::add(&row, "td", "", &if p.threads > 0 { p.threads.to_string() } else { String::new() });
    dom::add(&row, "td", "", &bytes(disk, Unit::BytesPerSecond));
    dom::add(&row, "td", "", &gpu);
}

//! The process table.

use crate::model::Model;
use crate::palette::{Ink, Palette};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Modifier;
use shared::processes::Process;
use shared::unit::{Unit, rough_duration};
use viewer::findings::words::ranges;
use viewer::store::processes::{self, Column, Line};

/// A column: its header, its width and its sort key.
type Head = (&'static str, usize, Column);

/// All columns except the name, in order.
const HEADS: [Head; 10] = [
    ("PID", 8, Column::Pid),
    ("USER", 9, Column::User),
    ("GPU", 8, Column::GpuIndex),
    ("S", 3, Column::State),
    ("CPU %", 8, Column::Cpu),
    ("MEM", 10, Column::Memory),
    ("GPU MEM", 10, Column::Gpu),
    ("DISK", 10, Column::Disk),
    ("THR", 6, Column::Threads),
    ("TIME", 12, Column::Age),
];
/// Columns that a narrow terminal leaves out, the least needed first.
const DROPPED: [Column; 8] = [
    Column::Threads,
    Column::Disk,
    Column::Age,
    Column::State,
    Column::User,
    Column::GpuIndex,
    Column::Gpu,
    Column::Pid,
];
/// Cells that the name has before a column is left out.
const NAME: usize = 14;

/// The columns that have values here and leave room for the name in a table of `width` cells. A column is shown whole or
/// not at all, because part of a figure is another figure.
fn heads(model: &Model, width: usize) -> Vec<Head> {
    let any = |fits: &dyn Fn(&Process) -> bool| model.processes.rows.iter().any(fits);
    let wanted = |column: Column| match column {
        Column::Gpu => any(&|p| p.gpu_memory.is_some()),
        Column::Disk => any(&|p| processes::disk(p).is_some()),
        Column::GpuIndex => any(&|p| !p.gpus.is_empty()),
        Column::State => any(&|p| p.state.is_some()),
        Column::Age => any(&|p| p.started.is_some()),
        _ => true,
    };
    let mut heads: Vec<Head> = HEADS.into_iter().filter(|(.., column)| wanted(*column)).collect();
    for least in DROPPED {
        if heads.iter().map(|(_, wide, _)| wide).sum::<usize>() + NAME <= width {
            break;
        }
        heads.retain(|(.., column)| *column != least);
    }
    heads
}

/// An amount in its own unit, in at most nine letters.
pub fn amount(unit: Unit, value: f64) -> String {
    let scale = unit.scale(value);
    format!("{} {}", scale.number(value), scale.symbol)
}

/// Indexes of the GPUs of a process: `0–3, 6`, or their number where that is too long.
fn gpus(p: &Process) -> String {
    let said = ranges(&p.gpus);
    match (p.gpus.len(), said.chars().count() < HEADS[2].1) {
        (0, _) => "–".into(),
        (_, true) => said,
        (n, false) => format!("{n}×"),
    }
}

/// The text of a cell; `now` is the time of the table, ms since the epoch.
fn cell(column: Column, p: &Process, now: i64) -> String {
    let none = || "–".to_string();
    match column {
        Column::Pid => p.pid.to_string(),
        Column::User => p.user.chars().take(8).collect(),
        Column::Cpu => p.cpu.map_or_else(none, |cpu| shared::unit::fixed(f64::from(cpu), 1)),
        Column::Memory => amount(Unit::Bytes, p.rss as f64),
        Column::Gpu => p.gpu_memory.map_or_else(none, |bytes| amount(Unit::Bytes, bytes as f64)),
        Column::Disk => processes::disk(p).map_or_else(none, |rate| amount(Unit::BytesPerSecond, f64::from(rate))),
        Column::GpuIndex => gpus(p),
        Column::State => p.state.map_or_else(none, String::from),
        Column::Age => p.started.map_or_else(none, |t| rough_duration(now.saturating_sub(t))),
        _ => p.threads.to_string(),
    }
}

/// Name of a process: in a tree, the fold marker; its command line if arguments are shown, else its name; and the
/// number of processes in the line.
fn name(line: &Line, is_tree: bool) -> String {
    let p = &line.process;
    let program = p.args.split(' ').next().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    let command = match () {
        () if p.args.is_empty() => p.name.clone(),
        // The kernel keeps 15 bytes of a name.
        () if program.starts_with(&p.name) => p.args.clone(),
        () => format!("{}: {}", p.name, p.args),
    };
    let more = if line.processes > 1 { format!(" ({})", line.processes) } else { String::new() };
    let mark = match line.open {
        Some(true) => "▾ ",
        Some(false) => "▸ ",
        None if is_tree => "  ",
        None => "",
    };
    format!("{}{mark}{command}{more}", "  ".repeat(line.depth))
}

/// The table's header and one row of text for each line; `width` cells wide.
pub fn texts(model: &Model, lines: &[Line], width: usize) -> Vec<String> {
    let heads = heads(model, width);
    let (by, now) = (&model.view.listing, model.processes.t);
    let title = if lines.iter().any(|line| !line.process.args.is_empty()) { "COMMAND" } else { "NAME" };
    let row = |each: &dyn Fn(&Head) -> String, name: &str| {
        let mut text = String::new();
        for head in &heads {
            let (cell, room) = (each(head), head.1 - 1);
            match head.2 {
                Column::User | Column::State => text += &format!("{cell:<room$} "),
                _ => text += &format!("{cell:>room$} "),
            }
        }
        (text + name).chars().take(width).collect::<String>()
    };
    let mark = |column: Column| match (column == by.by, by.ascending) {
        (true, true) => "↑",
        (true, false) => "↓",
        _ => "",
    };
    let head = row(&|(word, _, column)| format!("{word}{}", mark(*column)), &format!("{title}{}", mark(Column::Name)));
    let is_tree = by.tree.is_some();
    let body = lines.iter().map(|line| row(&|(.., column)| cell(*column, &line.process, now), &name(line, is_tree)));
    std::iter::once(head).chain(body).collect()
}

/// Draws the table into an area of at least two rows.
pub fn draw(model: &mut Model, palette: Palette, area: Rect, buffer: &mut Buffer) {
    let (width, faint) = (usize::from(area.width), palette.style(Ink::Faint));
    let (shown, all) = (usize::from(area.height.saturating_sub(2)), model.listed.len());
    let view = &mut model.view;
    // The selected process stays visible, and no row stays empty while lines are scrolled out above.
    if let Some((_, at)) = view.chosen {
        view.first = view.first.clamp((at + 1).saturating_sub(shown), at);
    }
    view.first = view.first.min(all.saturating_sub(shown));
    let first = view.first;
    let lines = &model.listed[first..all.min(first + shown)];
    let texts = texts(model, lines, width);
    let mut words = format!("{all} of {}", model.processes.total.max(model.processes.rows.len() as u32));
    for (word, text) in [("of", &model.view.listing.user), ("with", &model.view.words)] {
        if !text.is_empty() {
            words += &format!(", {word} {text}");
        }
    }
    if model.processes.t == 0 {
        words = "not known yet".into();
    } else if !model.processes.whole {
        words += ", the largest of that time";
    }
    let bold = palette.style(Ink::Text).add_modifier(Modifier::BOLD);
    let (x, _) = buffer.set_stringn(area.x, area.y, "Processes", width, bold);
    let room = usize::from(area.right().saturating_sub(x));
    buffer.set_stringn(x, area.y, palette.text(&format!(" {words}")), room, faint);
    if area.height < 3 {
        return;
    }
    let head: String = texts[0].replace('↑', palette.sign("↑", "^")).replace('↓', palette.sign("↓", "v"));
    buffer.set_stringn(area.x, area.y + 1, format!("{head:<width$}"), width, faint.add_modifier(Modifier::REVERSED));
    for (row, (text, line)) in texts[1..].iter().zip(lines).enumerate() {
        let style = if line.process.watched { bold } else { palette.style(Ink::Text) };
        let is_chosen = model.view.chosen.is_some_and(|(_, at)| at == first + row);
        let style = if is_chosen { style.add_modifier(Modifier::REVERSED) } else { style };
        // The style covers the whole row, not only its words.
        let text = if is_chosen { &format!("{text:<width$}") } else { text };
        buffer.set_stringn(area.x, area.y + 2 + row as u16, palette.text(text), width, style);
    }
}

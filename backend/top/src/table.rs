//! The process table.

use crate::model::Model;
use crate::palette::{Ink, Palette};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Modifier;
use shared::processes::Process;
use shared::unit::Unit;
use viewer::store::processes::{self, Column, Line};

/// A column: its header, its width and its sort key.
type Head = (&'static str, usize, Column);

/// All columns except the name, in order.
const HEADS: [Head; 7] = [
    ("PID", 8, Column::Pid),
    ("USER", 9, Column::User),
    ("CPU %", 8, Column::Cpu),
    ("MEM", 10, Column::Memory),
    ("GPU MEM", 10, Column::Gpu),
    ("DISK", 10, Column::Disk),
    ("THR", 6, Column::Threads),
];

/// The columns that have values here.
fn heads(model: &Model) -> Vec<Head> {
    let any = |fits: &dyn Fn(&Process) -> bool| model.processes.rows.iter().any(fits);
    let wanted = |column: Column| match column {
        Column::Gpu => any(&|p| p.gpu_memory.is_some()),
        Column::Disk => any(&|p| processes::disk(p).is_some()),
        _ => true,
    };
    HEADS.into_iter().filter(|(.., column)| wanted(*column)).collect()
}

/// An amount in its own unit, in at most nine letters.
pub fn amount(unit: Unit, value: f64) -> String {
    let scale = unit.scale(value);
    format!("{} {}", scale.number(value), scale.symbol)
}

fn cell(column: Column, p: &Process) -> String {
    let none = || "–".to_string();
    match column {
        Column::Pid => p.pid.to_string(),
        Column::User => p.user.chars().take(8).collect(),
        Column::Cpu => p.cpu.map_or_else(none, |cpu| shared::unit::fixed(f64::from(cpu), 1)),
        Column::Memory => amount(Unit::Bytes, p.rss as f64),
        Column::Gpu => p.gpu_memory.map_or_else(none, |bytes| amount(Unit::Bytes, bytes as f64)),
        Column::Disk => processes::disk(p).map_or_else(none, |rate| amount(Unit::BytesPerSecond, f64::from(rate))),
        _ => p.threads.to_string(),
    }
}

/// Name of a process: in a tree, the fold marker; its name, the script of an interpreter, and the number of processes
/// in the line.
fn name(line: &Line, is_tree: bool) -> String {
    let p = &line.process;
    let run = p.script().map_or(String::new(), |script| format!(" {script}"));
    let more = if line.processes > 1 { format!(" ({})", line.processes) } else { String::new() };
    let mark = match line.open {
        Some(true) => "▾ ",
        Some(false) => "▸ ",
        None if is_tree => "  ",
        None => "",
    };
    format!("{}{mark}{}{run}{more}", "  ".repeat(line.depth), p.name)
}

/// The table's header and one row of text for each line; `width` cells wide.
pub fn texts(model: &Model, lines: &[Line], width: usize) -> Vec<String> {
    let heads = heads(model);
    let by = &model.view.listing;
    let row = |each: &dyn Fn(&Head) -> String, name: &str| {
        let mut text = String::new();
        for head in &heads {
            let (cell, room) = (each(head), head.1 - 1);
            match head.2 {
                Column::User => text += &format!("{cell:<room$} "),
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
    let head = row(&|(word, _, column)| format!("{word}{}", mark(*column)), &format!("NAME{}", mark(Column::Name)));
    let is_tree = by.tree.is_some();
    let body = lines.iter().map(|line| row(&|(.., column)| cell(*column, &line.process), &name(line, is_tree)));
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

//! Overlays on the picture: the list of keys, search results, machines.

use crate::fit::shortened;
use crate::keys::{OWN, found};
use crate::model::{Model, Over};
use crate::palette::{Ink, Palette};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Modifier, Style};
use shared::unit::rough_duration;
use viewer::shortcuts::{Action, KEYS, Shortcut};

/// A line: text, and whether it is selected.
type MenuLine = (String, bool);

/// Draws the overlay, if there is one.
pub fn draw(model: &Model, palette: Palette, area: Rect, buffer: &mut Buffer) {
    let (title, lines, chosen) = match &model.view.over {
        Over::Nothing => return,
        Over::Help(passed) => {
            let (lines, rows) = (help(), usize::from(area.height.saturating_sub(2)));
            let title = if lines.len() > rows { "Keys, more by ↓" } else { "Keys" };
            let last = (passed + rows).min(lines.len()).saturating_sub(1);
            (arrows(palette, title), lines, last)
        }
        Over::Find(text, at) => {
            let all = found(model, text).into_iter().enumerate().map(|(i, (_, words))| (words, i == *at)).collect();
            (format!("Find: {text}_"), all, *at)
        }
        Over::Machines(at) => ("Machines".into(), machines(model, *at), *at),
    };
    let wide =
        lines.iter().map(|(text, _)| text.chars().count()).chain([title.chars().count(), 40]).max().unwrap_or(40);
    let width = (wide as u16 + 4).min(area.width);
    let height = (lines.len() as u16 + 2).min(area.height);
    let rect = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    frame(&palette.text(&title), palette, rect, buffer);
    let rows = usize::from(height.saturating_sub(2));
    let first = (chosen + 1).saturating_sub(rows);
    for (row, (text, chosen)) in lines.iter().skip(first).take(rows).enumerate() {
        let style = palette.style(Ink::Text);
        let style = if *chosen { style.add_modifier(Modifier::REVERSED) } else { style };
        let room = usize::from(width - 4);
        let text = palette.text(&shortened(&arrows(palette, text), room));
        buffer.set_stringn(rect.x + 2, rect.y + 1 + row as u16, format!("{text:<room$}"), room, style);
    }
}

fn arrows(palette: Palette, text: &str) -> String {
    let ascii =
        [("↑ ↓", "up down"), ("↓ ↑", "down up"), ("↓", "down"), ("← →", "left right"), ("“", "\""), ("”", "\"")];
    let plain =
        ascii.iter().fold(text.to_string(), |text, (sign, words)| text.replace(sign, palette.sign(sign, words)));
    palette.text(&plain)
}

/// An empty box with a title.
fn frame(title: &str, palette: Palette, rect: Rect, buffer: &mut Buffer) {
    let (style, wide) = (palette.style(Ink::Faint), usize::from(rect.width));
    for y in rect.y..rect.bottom() {
        for x in rect.x..rect.right() {
            if let Some(cell) = buffer.cell_mut((x, y)) {
                cell.reset();
            }
        }
        buffer.set_string(rect.x, y, palette.sign("│", "|"), style);
        buffer.set_string(rect.right() - 1, y, palette.sign("│", "|"), style);
    }
    let edge =
        |left: &str, right: &str| format!("{left}{}{right}", palette.sign("─", "-").repeat(wide.saturating_sub(2)));
    buffer.set_string(rect.x, rect.y, edge(palette.sign("┌", "+"), palette.sign("┐", "+")), style);
    buffer.set_string(rect.x, rect.bottom() - 1, edge(palette.sign("└", "+"), palette.sign("┘", "+")), style);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    buffer.set_stringn(rect.x + 2, rect.y, format!(" {title} "), wide.saturating_sub(4), bold);
}

/// Whether the terminal supports this shortcut of the page.
fn is_here(row: &Shortcut) -> bool {
    use Action::{Changed, Compare, Layouts, Menu, Note, Open, Record};
    let elsewhere = |action: &Action| matches!(action, Compare | Changed | Layouts | Menu | Note | Open | Record);
    !row.keys.iter().any(|(_, action)| elsewhere(action))
}

/// Maximum number of lines that the list of keys can be scrolled.
pub fn most_passed(area: Rect) -> usize {
    help().len().saturating_sub(usize::from(area.height.saturating_sub(2)))
}

fn help() -> Vec<MenuLine> {
    let rows = KEYS.iter().filter(|group| !group.recorded).flat_map(|group| group.rows).filter(|row| is_here(row));
    let page = rows.map(|row| match row.keys {
        [(_, Action::Pin)] => (row.names, "enlarge one chart"),
        [(_, Action::Go), ..] => ("G", "machines"),
        [(_, Action::Window(_)), ..] => ("1–7", "windows from a minute to 12 hours"),
        _ => (row.names, row.words),
    });
    page.chain(OWN.iter().copied()).map(|(names, words)| (format!("{names:<14} {words}"), false)).collect()
}

fn machines(model: &Model, at: usize) -> Vec<MenuLine> {
    let index = &model.store.index;
    let wide = index.iter().map(|entry| entry.name.chars().count()).max().unwrap_or(0).min(40);
    let newest = index.iter().map(|entry| entry.since).max().unwrap_or(0).max(model.newest());
    let line = |(i, entry): (usize, &shared::wire::IndexEntry)| {
        let since = rough_duration((newest - entry.since).max(0));
        let labels: Vec<String> = entry.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let why = entry.state.why().map_or(String::new(), |why| format!(": {why}"));
        let state = format!("{} for {since}{why}", entry.state.as_str());
        (format!("{:<wide$}  {state:<24} {}", entry.name, labels.join(" ")), i == at)
    };
    index.iter().enumerate().map(line).collect()
}

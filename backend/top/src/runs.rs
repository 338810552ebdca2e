//! The training jobs of the machine, one line each: those that run, and those that ended a moment ago.

use crate::fit::shortened;
use crate::model::Model;
use crate::palette::{Ink, Palette};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Modifier;
use shared::run::RunLine;
use shared::unit::rough_duration;

/// Maximum lines of runs in the picture; the number of further ones is shown.
const MAX_LINES: usize = 4;
/// Minimum rows left to the rest of the picture.
const MIN_OTHER_ROWS: u16 = 8;
/// Maximum letters of a name.
const NAME: usize = 24;

/// A line for each run: symbol of its state, name, duration, resources, state with the cause.
pub fn texts(model: &Model, palette: Palette) -> Vec<String> {
    let now = model.newest();
    model.runs.iter().flatten().map(|run| text(run, now, palette)).collect()
}

fn text(run: &RunLine, now: i64, palette: Palette) -> String {
    let shape = match run.state.shape() {
        '●' => palette.sign("●", "*"),
        '✓' => palette.sign("✓", "+"),
        '‖' => palette.sign("‖", "="),
        '■' => palette.sign("■", "#"),
        _ => palette.sign("◌", "o"),
    };
    let name = run.name.as_deref().unwrap_or(&run.id);
    let mut parts: Vec<String> = vec![name.chars().take(NAME).collect()];
    parts.push(rough_duration(run.ended.unwrap_or(now) - run.began));
    match run.ranks {
        0 => {}
        1 => parts.push("1 rank".into()),
        ranks => parts.push(format!("{ranks} ranks")),
    }
    parts.extend(run.gpu_hours.map(|hours| format!("{hours:.1} GPU h")));
    parts.extend(run.gpu_utilization.map(|used| format!("{used:.0} % used")));
    parts.push(run.sentence.clone());
    parts.extend(run.ended.map(|ended| format!("{} ago", rough_duration(now - ended))));
    format!("{shape} {}", palette.text(&parts.join("  ")))
}

/// Draws the runs into the first rows of an area that is high enough. Returns the remaining area.
pub fn draw(model: &Model, palette: Palette, area: Rect, buffer: &mut Buffer) -> Rect {
    let runs = model.runs.as_deref().unwrap_or_default();
    let room = MAX_LINES.min(usize::from(area.height.saturating_sub(MIN_OTHER_ROWS)));
    let shown = runs.len().min(room);
    if shown == 0 || model.view.zoomed || model.view.table {
        return area;
    }
    let (now, wide) = (model.newest(), usize::from(area.width));
    for (row, run) in runs[..shown].iter().enumerate() {
        let has_more = row + 1 == shown && runs.len() > shown;
        let more = if has_more { format!("  +{} more", runs.len() - shown) } else { String::new() };
        let line = shortened(&text(run, now, palette), wide.saturating_sub(more.chars().count()));
        let line = palette.text(&(line + &more));
        let style = match run.state {
            state if state.is_crash() => palette.style(Ink::Warn),
            _ if run.ended.is_some() => palette.style(Ink::Faint),
            _ => palette.style(Ink::Text).add_modifier(Modifier::BOLD),
        };
        buffer.set_stringn(area.x, area.y + row as u16, line, wide, style);
    }
    let shown = shown as u16;
    Rect { y: area.y + shown, height: area.height - shown, ..area }
}

//! All cores in one line, a cell each.

use crate::model::Model;
use crate::palette::{Ink, Palette};
use crate::rows::bar;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use shared::catalog::cpu;
use viewer::store::reading;

/// Minimum rows of the area that gives one to the cores.
const MIN_AREA_ROWS: u16 = 14;
/// Width of the title and a space.
const TITLE: usize = 6;

/// Use of each core in percent, by number, at the crosshair or the end of the span.
fn used(model: &Model) -> Vec<f64> {
    let at = model.view.crosshair.unwrap_or(model.span().1);
    let (Some(source), catalog) = (model.shown(), &model.store.catalog) else { return Vec::new() };
    let Some(metric) = catalog.position(cpu::CORE_PERCENT.tag) else { return Vec::new() };
    let mut cores: Vec<(u32, f64)> = source
        .defs
        .iter()
        .enumerate()
        .filter(|(_, def)| def.metric == metric)
        .filter_map(|(id, def)| Some((def.instance.parse().ok()?, reading::at(source, catalog, id as u32, at)?)))
        .collect();
    cores.sort_by_key(|(core, _)| *core);
    cores.into_iter().map(|(_, used)| used).collect()
}

/// Draws the line into the first row of an area that is high enough. Returns the remaining area. There is no line if
/// the cores have rows of their own.
pub fn draw(model: &Model, palette: Palette, area: Rect, buffer: &mut Buffer) -> Rect {
    let is_lead = model.plan.top.first().is_some_and(|lead| lead.id.starts_with(cpu::CORE_PERCENT.chart));
    if area.height < MIN_AREA_ROWS || is_lead || model.view.zoomed || model.view.table {
        return area;
    }
    let cores = used(model);
    let room = usize::from(area.width).saturating_sub(TITLE);
    if cores.len() < 2 || room == 0 {
        return area;
    }
    buffer.set_string(area.x, area.y, "cores", palette.style(Ink::Faint));
    // A cell shows the busiest of several cores if there are more cores than cells.
    let each = cores.len().div_ceil(room);
    for (x, part) in cores.chunks(each).enumerate() {
        let share = (part.iter().copied().fold(0.0, f64::max) / 100.0).clamp(0.0, 1.0);
        buffer.set_string(area.x + (TITLE + x) as u16, area.y, bar(palette, share), palette.style(Ink::Heat(share)));
    }
    Rect { y: area.y + 1, height: area.height - 1, ..area }
}

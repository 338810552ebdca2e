//! Draws many series as rows of cells, colored by the value or by its distance from the median at that time. Rows are
//! whole device pixels high. A space after every eighth row makes them easy to count.

use crate::frame::{Frame, Line, Plot};
use crate::kind::{Shows, Traits, no_note};
use crate::paint::{block, hatch, shorten, width, words};
use crate::theme::Theme;
use crate::{Area, Drawn, order};
use plotters::style::RGBAColor;
use plotters::style::text_anchor::HPos;
use plotters_backend::DrawingBackend;

/// Number of color steps on a ramp.
const RAMP_LEVELS: usize = 100;
/// Share of the axis: a value that is this far from the median gets the last color of the ramp.
const RAMP_AXIS_SHARE: f64 = 0.31;
/// Number of rows between two spaces.
pub(crate) const ROWS_PER_GROUP: usize = 8;

/// Places of the rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rows {
    /// Upper edge of the first row in units.
    pub top: i32,
    /// Distance from one row to the next in units.
    pub pitch: i32,
    /// Space after every eighth row in units.
    pub gap: i32,
    /// Number of rows.
    pub count: usize,
}

impl Rows {
    /// Fits the rows of a frame into its plot; each row is at most 64 CSS pixels high.
    pub fn new(frame: &Frame, plot: &Plot) -> Rows {
        let count = frame.lines.len().max(1);
        let device = (frame.device as i32).max(1);
        let (height, groups) = (plot.bottom - plot.top, (count - 1).div_euclid(ROWS_PER_GROUP) as i32);
        let fit = |gap: i32| (height - groups * gap) / count as i32 / device * device;
        let mut gap = frame.whole(6.0 * frame.css);
        if fit(gap) < gap {
            // Such low rows need the whole height. The remaining pixels go into the spaces.
            gap = (height - fit(0) * count as i32).max(0) / groups.max(1) / device * device;
        }
        let pitch = fit(gap).min(frame.px(64.0) / device * device);
        Rows { top: plot.top, pitch: pitch.max(device), gap, count }
    }

    /// Upper edge of a row in units.
    pub fn y(&self, row: usize) -> i32 {
        self.top + row as i32 * self.pitch + (row / ROWS_PER_GROUP) as i32 * self.gap
    }

    /// Middle of a row in units.
    pub fn middle(&self, row: usize) -> i32 {
        self.y(row) + self.pitch / 2
    }
}

/// A map that the user selected.
pub(crate) const TRAITS: Traits = Traits { fits: |shape| shape.map, shows: Shows::Rows, column_px: 2, note: no_note };

/// Draws the cells of a frame with heat settings. Its gaps are hatched row by row.
pub(crate) fn draw<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot) -> Drawn<DB> {
    let Some(heat) = frame.heat else { return Ok(()) };
    let rows = Rows::new(frame, plot);
    // High rows are separated by a seam.
    let seam =
        if f64::from(rows.pitch) >= 6.0 * frame.css { frame.whole(frame.css).max(frame.device as i32) } else { 0 };
    let start = frame.lines.iter().filter_map(|l| l.columns.first()).map(|c| c.first_t - frame.interval).min();
    for gap in frame.gaps.iter().filter(|gap| start.is_some_and(|start| gap.to <= start + frame.interval)) {
        hatch(area, frame, (plot.x_within(gap.from), plot.top), (plot.x_within(gap.to), plot.bottom))?;
    }
    let mut cells: Vec<(u8, usize, i32, i32)> = Vec::new();
    for (row, line) in frame.lines.iter().enumerate() {
        let (y, end) = (rows.y(row), rows.y(row) + rows.pitch - seam);
        let mut from = plot.x_within(start.unwrap_or(plot.to));
        for (level, x0, x1) in row_cells(frame, plot, line, heat.values) {
            let x0 = if x0 - from <= frame.device as i32 { from } else { x0 };
            if x0 > from {
                hatch(area, frame, (from, y), (x0, end))?;
            }
            match cells.last_mut() {
                Some(last) if (last.0, last.1, last.3) == (level, row, x0) => last.3 = x1,
                _ => cells.push((level, row, x0, x1)),
            }
            from = x1;
        }
        if from < plot.right {
            hatch(area, frame, (from, y), (plot.right, end))?;
        }
    }
    // Cells are sorted by color, because setting a color costs more than filling a cell.
    let (stops, hair): (&[RGBAColor], i32) =
        if heat.values { (&frame.theme.heat, frame.hair()) } else { (&frame.theme.diverge, 0) };
    for i in order::by(cells.iter().map(|c| i64::from(c.0))) {
        let (level, row, x0, x1) = cells[i];
        let (y, color) = (rows.y(row), Theme::ramp(stops, f64::from(level.saturating_sub(1)) / RAMP_LEVELS as f64));
        block(area, (x0, y), (x1, y + rows.pitch - seam), color)?;
        if level == 0 && hair > 0 {
            let middle = frame.whole(f64::from(y + (rows.pitch - seam - hair) / 2));
            block(area, (x0, middle), (x1, middle + hair), frame.theme.zero)?;
        }
    }
    let style = words(frame, frame.theme.text_3, false, HPos::Right);
    let each = if f64::from(rows.pitch) >= frame.measures.text * frame.css { 1 } else { ROWS_PER_GROUP };
    for (row, name) in heat.names.iter().enumerate().step_by(each) {
        let y = if each == 1 { rows.middle(row) } else { rows.y(row) + frame.px(frame.measures.text / 2.0) };
        let room = plot.left - frame.px(10.0);
        let short = shorten(name, |text| width(area, text, &style) <= room);
        area.draw_text(&short, &style, (plot.left - frame.px(8.0), y))?;
    }
    Ok(())
}

/// The cells of a row within the plot: level, left edge and right edge. Level 0 is a value of zero; other levels begin
/// at 1.
fn row_cells(frame: &Frame, plot: &Plot, line: &Line, values: bool) -> Vec<(u8, i32, i32)> {
    let (mut band, mut cells) = (frame.band, Vec::new());
    for c in line.columns {
        let (from, to) =
            if frame.step > 1 { (c.slot * frame.step, (c.slot + 1) * frame.step) } else { (c.t - frame.interval, c.t) };
        if to <= plot.from || from >= plot.to {
            continue;
        }
        let (x0, x1) =
            (frame.whole(f64::from(plot.x_within(from))), frame.whole(f64::from(plot.x_within(to))).min(plot.right));
        let (mean, span) = (c.mean(), plot.hi - plot.lo);
        let share = if values {
            (mean - plot.lo) / span
        } else {
            band = &band[band.partition_point(|b| b.slot < c.slot)..];
            let median = band.first().filter(|b| b.slot == c.slot).map_or(mean, |b| b.values[2]);
            0.5 + (median - mean) / span / (2.0 * RAMP_AXIS_SHARE)
        };
        let zero = values && c.min == 0.0 && c.max == 0.0;
        let level = if zero { 0 } else { 1 + (share.clamp(0.0, 1.0) * RAMP_LEVELS as f64).round() as u8 };
        if x1 > x0 {
            cells.push((level, x0, x1));
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chart;
    use crate::frame::{Hue, Measures};

    #[test]
    fn rows_of_any_number_fill_the_plot_and_leave_it_never() {
        let axis = crate::axis::values(shared::unit::Unit::Percent, shared::catalog::Range::FromZero, 0.0, 100.0);
        let line = Line { columns: &[], hue: Hue::Ink, bright: true };
        for (count, height, pitch, gap) in [(9, 584, 60, 6), (64, 584, 8, 6), (256, 584, 2, 1), (256, 1_168, 4, 3)] {
            let lines = vec![line; count];
            let frame = Frame {
                chart: Chart::Heat,
                size: (700, height),
                css: 1.0,
                device: 1.0,
                theme: &crate::theme::DARK,
                measures: Measures::default(),
                from: 0,
                to: 1_000,
                zone: crate::axis::Zone::UTC,
                along: crate::axis::Along::Time,
                axis: &axis,
                step: 1,
                interval: 1_000,
                lines: &lines,
                band: &[],
                heat: None,
                lanes: &[],
                limits: &[],
                gaps: &[],
                live: true,
                age: "",
            };
            let (plot, rows) = (frame.plot(), Rows::new(&frame, &frame.plot()));
            let end = rows.y(count - 1) + rows.pitch;
            assert_eq!((rows.pitch, rows.gap), (pitch, gap), "{count} rows of {height}");
            assert!((plot.bottom - 42..=plot.bottom).contains(&end), "{count} rows end at {end} of {}", plot.bottom);
        }
    }
}

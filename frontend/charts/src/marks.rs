//! Runs of a notebook's cells under the data: a hairline at the start, the cell's number, and a bar along the top for
//! its duration. A running or selected one has a background. A failed one has a square, which is visible without color.
//! Times of a problem are drawn, too.

use crate::frame::{Frame, Plot};
use crate::paint::{block, faint, width, words};
use crate::{Area, Drawn};
use plotters::style::text_anchor::HPos;
use plotters_backend::DrawingBackend;

/// One run of a cell, or the time of a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct CellMark {
    /// Start, ms since the epoch.
    pub from: i64,
    /// End, ms since the epoch; a time far ahead while it runs.
    pub to: i64,
    /// Its name, as `[7]`.
    pub name: String,
    /// A run that ended with an error, or a critical problem.
    pub failed: bool,
    /// Whether it is running or selected.
    pub strong: bool,
    /// Whether it is the time of a problem.
    pub fault: bool,
}

/// Draws the marks in the span of a frame, below everything drawn later.
///
/// # Errors
/// Returns the error of the drawing backend.
pub fn draw<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, marks: &[CellMark]) -> Drawn<DB> {
    let plot = frame.plot();
    let (hair, high, theme) = (frame.hair(), frame.px(3.0), frame.theme);
    // Names that would touch the previous one are left out; hairlines that would touch are merged.
    let (mut name_end, mut line_end) = (plot.left, i32::MIN);
    for mark in marks.iter().filter(|mark| mark.to >= plot.from && mark.from <= plot.to) {
        let (a, b) = (plot.x_within(mark.from), plot.x_within(mark.to));
        if mark.fault {
            fault(area, frame, &plot, mark)?;
            continue;
        }
        let ink = if mark.failed { theme.warn } else { theme.ink };
        if mark.strong {
            block(area, (a, plot.top), (b.max(a + hair), plot.bottom), faint(theme.ink, 0.09))?;
        }
        block(
            area,
            (a, plot.top),
            (b.max(a + hair), plot.top + high),
            faint(ink, if mark.strong { 0.7 } else { 0.35 }),
        )?;
        if mark.from >= plot.from && a >= line_end {
            block(area, (a, plot.top), (a + hair, plot.bottom), faint(theme.text_3, 0.45))?;
            line_end = a + frame.px(6.0);
        }
        if mark.failed {
            square(area, frame, &plot, b)?;
        }
        let style = words(frame, if mark.strong { theme.text } else { theme.text_3 }, mark.strong, HPos::Left);
        let (x, wide) = (a + frame.px(3.0), width(area, &mark.name, &style));
        if x >= name_end && x + wide <= plot.right {
            area.draw_text(&mark.name, &style, (x, plot.top + high + frame.px(frame.measures.text / 2.0 + 2.0)))?;
            name_end = x + wide + frame.px(4.0);
        }
    }
    Ok(())
}

/// The shape of an error, at the end of a run.
fn square<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot, x: i32) -> Drawn<DB> {
    let side = frame.px(7.0);
    let left = (x - side).max(plot.left);
    block(area, (left, plot.top), (left + side, plot.top + side), frame.theme.warn)
}

/// The time of a problem: a hairline at its start, and a background if it is strong.
fn fault<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot, mark: &CellMark) -> Drawn<DB> {
    let (a, b) = (plot.x_within(mark.from), plot.x_within(mark.to));
    let ink = if mark.failed { frame.theme.bad } else { frame.theme.warn };
    if mark.strong {
        block(area, (a, plot.top), (b.max(a + frame.hair()), plot.bottom), faint(ink, 0.08))?;
    }
    if mark.from >= plot.from {
        block(area, (a, plot.top), (a + frame.hair(), plot.bottom), faint(ink, 0.75))?;
    }
    Ok(())
}

//! Runs of a notebook's cells under the data: a hairline where each begins, its number, a bar along the top for its time. One
//! that runs, or that a person chose, has a ground of its own. One that failed has a square, for who sees no colors. And times in
//! which something was wrong.

use crate::frame::{Frame, Plot};
use crate::paint::{block, faint, width, words};
use crate::{Area, Drawn};
use plotters::style::text_anchor::HPos;
use plotters_backend::DrawingBackend;

/// One run of a cell, or a time in which something was wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct CellMark {
    /// When it began, ms since the epoch.
    pub from: i64,
    /// When it ended, ms since the epoch; of one that runs a time far ahead.
    pub to: i64,
    /// What it is called, as `[7]`.
    pub name: String,
    /// It ended with an error; of a time in which something was wrong: it is critical.
    pub failed: bool,
    /// It runs, or a person chose it.
    pub strong: bool,
    /// It is a time in which something was wrong.
    pub fault: bool,
}

/// Draws the runs that lie in the span of a frame, beneath what is drawn later.
///
/// # Errors
/// Returns the error of the drawing backend.
pub fn draw<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, marks: &[CellMark]) -> Drawn<DB> {
    let plot = frame.plot();
    let (hair, high, theme) = (frame.hair(), frame.px(3.0), frame.theme);
    // Names that would touch the one before are left out, hairlines that would touch are one.
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

/// The shape of an error, where a run ended.
fn square<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot, x: i32) -> Drawn<DB> {
    let side = frame.px(7.0);
    let left = (x - side).max(plot.left);
    block(area, (left, plot.top), (left + side, plot.top + side), frame.theme.warn)
}

/// A time in which something was wrong: a hairline at its begin; of a strong one a ground as well.
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

//! The title above a chart that is saved as a picture or copied.

use crate::frame::Frame;
use crate::paint::{block, words};
use crate::{Area, Drawn};
use plotters::style::text_anchor::HPos;
use plotters_backend::DrawingBackend;

/// Height of the title above the chart in CSS pixels.
pub const TITLE_HEIGHT_PX: f64 = 56.0;

/// The texts above a chart.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// Title of the chart.
    pub title: &'a str,
    /// Unit, and remarks on the axis.
    pub note: &'a str,
    /// Name of the machine, and the span of time.
    pub source: &'a str,
}

/// Draws the background and the texts, and returns the area below them. This area is as large as the frame.
///
/// # Errors
/// Returns the error of the drawing backend.
pub fn head<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, head: &Head) -> Result<Area<DB>, Refused<DB>> {
    let (width, height) = frame.size;
    let top = frame.px(TITLE_HEIGHT_PX);
    block(area, (0, 0), (width, height + top), frame.theme.card)?;
    text(area, frame, (16.0, 19.0), head)?;
    Ok(area.clone().shrink((0, top), (width, height)))
}

type Refused<DB> = plotters::drawing::DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>;

fn text<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, (x, y): (f64, f64), head: &Head) -> Drawn<DB> {
    let mut large = frame.clone();
    large.measures.text = 15.0;
    let title = words(&large, frame.theme.text, true, HPos::Left);
    area.draw_text(head.title, &title, (frame.px(x), frame.px(y)))?;
    let beside = frame.px(x + 8.0) + crate::paint::width(area, head.title, &title);
    area.draw_text(head.note, &words(frame, frame.theme.text_3, false, HPos::Left), (beside, frame.px(y + 1.0)))?;
    let source = words(frame, frame.theme.text_2, false, HPos::Left);
    area.draw_text(head.source, &source, (frame.px(x), frame.px(y + 21.0)))
}

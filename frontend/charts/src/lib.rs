//! Pure drawing of a chart: a frame goes in, strokes and words come out on any plotters backend.
//!
//! Reading order: [`reduce`] (samples to columns), [`frame`] (what a chart is given), [`axis`] (round ticks), then the
//! drawings [`line`](mod@line), `area`, `band`, [`heat`] and [`lanes`], [`over`] (labels and crosshair), [`value`]
//! (sparklines), [`poster`] (what stands above a chart that is taken away), [`canvas`] (our backend), and what
//! its calls end in: [`raster`] (pixels) or [`svg`] (text). This crate knows no metric, no Leptos and no clock, and holds no
//! state; it is the only user of plotters.

mod area;
mod line;
mod paint;

pub mod axis;
pub mod band;
pub mod canvas;
pub mod frame;
pub mod ghost;
pub mod heat;
pub mod hit;
pub mod lanes;
pub mod order;
pub mod over;
pub mod poster;
pub mod raster;
pub mod reduce;
pub mod svg;
pub mod theme;
pub mod value;

pub use frame::{Band, Bar, Chart, Frame, Gap, Heat, Hue, Lane, Limit, Line, Measures, Plot};
pub use theme::Theme;

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind};
use plotters_backend::DrawingBackend;

/// Where a chart is drawn.
pub type Area<DB> = DrawingArea<DB, Shift>;

/// What the backend said.
pub type Drawn<DB> = Result<(), DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>>;

/// Draws everything of a chart that changes with the data: gaps, grid, axes, limits, lines.
///
/// # Errors
/// What the backend refused.
pub fn draw<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame) -> Drawn<DB> {
    let plot = frame.plot();
    paint::axes(area, frame, &plot)?;
    if let Some(heat) = frame.heat {
        return heat::draw(area, frame, &plot, heat);
    }
    paint::gaps(area, frame, &plot)?;
    paint::limits(area, frame, &plot)?;
    match frame.chart {
        Chart::Area => area::draw(area, frame, &plot)?,
        Chart::Band => band::draw(area, frame, &plot)?,
        _ => {}
    }
    // Those of a band are the few that are named.
    line::draw(area, frame, &plot)?;
    lanes::draw(area, frame, &plot)?;
    paint::gap_words(area, frame, &plot)
}

/// The drawing area of a backend, so that callers need no plotters of their own.
pub fn into_area<DB: DrawingBackend>(backend: DB) -> Area<DB> {
    use plotters::drawing::IntoDrawingArea;
    backend.into_drawing_area()
}

//! Pure drawing of a chart: the input is a [`frame`], the output are calls to any plotters backend.
//!
//! Reading order:
//! - [`reduce`] (samples to columns), [`frame`] (the input of a chart), [`axis`] (round ticks), [`kind`] (the table of
//!   kinds);
//! - the kinds [`line`](mod@line), `area`, `band`, [`heat`] and [`lanes`];
//! - [`over`] (labels and crosshair), [`value`] (sparklines), [`map`] (hosts and their devices), [`poster`] (the title
//!   above a saved chart);
//! - [`canvas`] (the backend), and the two outputs of its calls: [`raster`] (pixels) and [`svg`] (text).
//!
//! This crate is independent of metrics, Leptos and clocks, and holds no state. It is the only user of plotters.

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
pub mod kind;
pub mod labels;
pub mod lanes;
pub mod map;
pub mod marks;
pub mod order;
pub mod over;
pub mod poster;
pub mod raster;
pub mod reduce;
pub mod svg;
pub mod theme;
pub mod value;

pub use frame::{Band, Bar, Frame, Gap, Grade, Heat, Hue, Lane, Limit, Line, Measures, Plot};
pub use kind::{Shape, Shows, Traits};
pub use theme::Theme;

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind};
use plotters_backend::DrawingBackend;

/// The area of a plotters backend on which a chart is drawn.
pub type Area<DB> = DrawingArea<DB, Shift>;

/// The result of a drawing; the error is the backend's.
pub type Drawn<DB> = Result<(), DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>>;

/// Makes [`Chart`] of the table: a kind and its module a row.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident => $module:ident,)*) => {
        /// Kinds of charts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Chart {
            $($(#[$doc])* $kind,)*
        }

        impl Chart {
            /// All kinds, in the order in which they are tried.
            pub const ALL: &[Chart] = &[$(Chart::$kind),*];

            /// Properties of this kind that the page needs.
            pub fn traits(self) -> &'static Traits {
                match self {
                    $(Chart::$kind => &$module::TRAITS,)*
                }
            }

            /// Draws the data of a frame with its decoration.
            pub(crate) fn draw<DB: DrawingBackend>(self, area: &Area<DB>, frame: &Frame, plot: &Plot) -> Drawn<DB> {
                match self {
                    $(Chart::$kind => $module::draw(area, frame, plot),)*
                }
            }
        }
    };
}

kinds! {
    /// A row of cells for each series.
    Heat => heat,
    /// A row of bars for each series of states.
    Lanes => lanes,
    /// One series: a line in ink, filled to its baseline.
    Area => area,
    /// Two to eight series: lines, each in its hue.
    Line => line,
    /// More than eight series: median, middle 80 % and extremes, and a few series by name.
    Band => band,
}

impl Chart {
    /// The kind of a chart of this shape.
    pub fn new(shape: Shape) -> Chart {
        Self::ALL.iter().copied().find(|kind| (kind.traits().fits)(shape)).unwrap_or(Chart::Band)
    }

    /// The kind of a chart with this number of series of amounts.
    pub fn for_series(series: usize) -> Chart {
        Self::new(Shape { series, ..Shape::default() })
    }
}

/// Draws all parts of a chart that change with the data: gaps, grid, axes, limits, lines.
///
/// A drawing without space for data stays empty.
///
/// # Errors
/// Returns the error of the drawing backend.
pub fn draw<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame) -> Drawn<DB> {
    let plot = frame.plot();
    if plot.is_empty() {
        return Ok(());
    }
    paint::axes(area, frame, &plot)?;
    frame.chart.draw(area, frame, &plot)
}

/// Draws `data` between the lower and upper layers of most kinds: gaps and limits, rows of states and words.
fn over_time<DB: DrawingBackend>(
    area: &Area<DB>,
    frame: &Frame,
    plot: &Plot,
    data: impl FnOnce() -> Drawn<DB>,
) -> Drawn<DB> {
    paint::gaps(area, frame, plot)?;
    paint::limits(area, frame, plot)?;
    data()?;
    lanes::bars(area, frame, plot)?;
    paint::gap_words(area, frame, plot)
}

/// Makes the drawing area of a backend, so that callers need no dependency on plotters.
pub fn into_area<DB: DrawingBackend>(backend: DB) -> Area<DB> {
    use plotters::drawing::IntoDrawingArea;
    backend.into_drawing_area()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_has_one_kind_and_every_kind_a_shape() {
        let shape = |series, states, map| Shape { series, states, map };
        let kinds: Vec<Chart> = [
            shape(12, true, true),
            shape(12, true, false),
            shape(0, false, false),
            shape(1, false, false),
            shape(2, false, false),
            shape(8, false, false),
            shape(9, false, false),
        ]
        .into_iter()
        .map(Chart::new)
        .collect();
        let expected = [Chart::Heat, Chart::Lanes, Chart::Area, Chart::Area, Chart::Line, Chart::Line, Chart::Band];
        assert_eq!(kinds, expected);
        assert!(Chart::ALL.iter().all(|kind| kinds.contains(kind)), "a kind that no chart has");
    }
}

//! Lines of other data under the same plot: an earlier period, or another chart with its own axis. They are thin,
//! dashed and without marks, so that they are not mistaken for the chart's own lines.

use crate::frame::{Frame, Plot};
use crate::kind::Shows;
use crate::line::{clip, runs};
use crate::paint::{Point, dashed, faint};
use crate::{Area, Drawn};
use plotters::style::RGBAColor;
use plotters_backend::DrawingBackend;

/// Draws the lines of a frame without axes, each through the means of its columns; of a band only the median.
/// `strength` is the opacity of the lines, 0 to 1.
///
/// # Errors
/// Returns the error of the drawing backend.
pub fn draw<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, strength: f64) -> Drawn<DB> {
    let plot = frame.plot();
    if frame.shows() == Shows::Outliers {
        for run in frame.band.chunk_by(|_, next| next.joined) {
            let points = clip(run, &plot, |b, out| out.push((plot.x(b.t), y(&plot, b.values[2]))));
            stroke(area, frame, &points, faint(frame.theme.ink, strength))?;
        }
        return Ok(());
    }
    for line in frame.lines {
        for run in runs(line.columns, &plot) {
            let points = clip(run, &plot, |c, out| out.push((plot.x(c.t), y(&plot, c.mean()))));
            stroke(area, frame, &points, faint(line.hue.color(frame.theme), strength))?;
        }
    }
    Ok(())
}

/// Vertical position of a value, limited to the plot, because the axis was made for other values.
fn y(plot: &Plot, v: f64) -> i32 {
    plot.y(v).clamp(plot.top, plot.bottom)
}

fn stroke<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, points: &[Point], color: RGBAColor) -> Drawn<DB> {
    let width = (frame.measures.line * 0.67 * frame.css).max(frame.device);
    dashed(area, points, color, width, (3.0 * frame.css, 3.0 * frame.css))
}

//! One series: its line in ink, filled to the baseline.

use crate::frame::{Frame, Plot};
use crate::line::{between, runs, shade, stroke};
use crate::paint::faint;
use crate::{Area, Drawn};
use plotters_backend::DrawingBackend;

pub(crate) fn draw<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot) -> Drawn<DB> {
    for line in frame.lines {
        let color = faint(line.hue.color(frame.theme), 0.1);
        for run in runs(line.columns, plot) {
            between(area, plot, run, color, |_| plot.bottom, |c| plot.y(c.mean()))?;
        }
        shade(area, frame, plot, line)?;
        stroke(area, frame, plot, line)?;
    }
    Ok(())
}

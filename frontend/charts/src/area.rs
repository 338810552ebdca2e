//! What lies under the line of a single series, down to the baseline.

use crate::frame::{Frame, Plot};
use crate::line::{between, runs};
use crate::paint::faint;
use crate::{Area, Drawn};
use plotters_backend::DrawingBackend;

pub(crate) fn draw<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot) -> Drawn<DB> {
    for line in frame.lines {
        let color = faint(line.hue.color(frame.theme), 0.1);
        for run in runs(line.columns, plot) {
            between(area, plot, run, color, |_| plot.bottom, |c| plot.y(c.mean()))?;
        }
    }
    Ok(())
}

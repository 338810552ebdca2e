//! The faint fill between the line of a single series and the baseline.

use crate::frame::{Frame, Plot};
use crate::kind::{Shows, Traits, no_note};
use crate::line::{between, lines, runs};
use crate::paint::faint;
use crate::{Area, Drawn, over_time};
use plotters_backend::DrawingBackend;

/// One series of amounts, or none.
pub(crate) const TRAITS: Traits =
    Traits { fits: |shape| shape.series <= 1, shows: Shows::Each, column_px: 1, note: no_note };

/// Draws the area and its line.
pub(crate) fn draw<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot) -> Drawn<DB> {
    over_time(area, frame, plot, || {
        // On a cut axis the height of an area would be misleading.
        if !frame.axis.cut {
            shade(area, frame, plot)?;
        }
        lines(area, frame, plot)
    })
}

fn shade<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot) -> Drawn<DB> {
    for line in frame.lines {
        let color = faint(line.hue.color(frame.theme), 0.1);
        for run in runs(line.columns, plot) {
            between(area, plot, run, color, |_| plot.bottom, |c| plot.y(c.mean()))?;
        }
    }
    Ok(())
}

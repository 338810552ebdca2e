//! Draws many series as one shape: the median as a line, the middle 80 % as a fill, both extremes as hairlines.

use crate::frame::{Band, Frame, Plot};
use crate::kind::{Shows, Traits};
use crate::line::{clip, lines};
use crate::paint::{Point, faint, fill, path};
use crate::{Area, Drawn, over_time};
use plotters_backend::DrawingBackend;

/// More series than can be distinguished as lines.
pub(crate) const TRAITS: Traits = Traits {
    fits: |shape| shape.series > 8,
    shows: Shows::Outliers,
    column_px: 2,
    note: |series| format!("median, p10–p90 of {series}"),
};

/// Draws the band, and over it the few series that stand out.
pub(crate) fn draw<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot) -> Drawn<DB> {
    over_time(area, frame, plot, || {
        spread(area, frame, plot)?;
        lines(area, frame, plot)
    })
}

fn spread<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot) -> Drawn<DB> {
    let width = frame.measures.line * frame.css;
    let ink = frame.theme.ink;
    let start = frame.band.partition_point(|b| b.t < plot.from).saturating_sub(1);
    for run in frame.band[start..].chunk_by(|_, next| next.joined) {
        let edge = |k: usize| -> Vec<Point> {
            clip(run, plot, |b: &Band, out| out.push((plot.x(b.t), plot.snap(b.values[k], width, frame.device))))
        };
        let mut middle = edge(3);
        middle.extend(edge(1).into_iter().rev());
        fill(area, middle, faint(ink, 0.22))?;
        path(area, edge(0), faint(ink, 0.3), frame.css)?;
        path(area, edge(4), faint(ink, 0.3), frame.css)?;
        path(area, edge(2), ink, width)?;
    }
    Ok(())
}

/// The quantile `share` (0 to 1) of sorted values, interpolated between neighbors; NaN when there are no values.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(top) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = top as f64 * share;
    let i = at.floor() as usize;
    sorted[i] + (sorted[(i + 1).min(top)] - sorted[i]) * (at - i as f64)
}

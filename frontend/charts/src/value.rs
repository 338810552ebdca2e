//! Draws a sparkline: the small line in a tile with the recent values of its number.

use crate::paint::{faint, fill, path};
use crate::theme::Theme;
use crate::{Area, Drawn};
use plotters_backend::DrawingBackend;

/// Input of a sparkline. Lengths are in units, as in [`crate::frame`].
#[derive(Clone, Copy, Debug)]
pub struct Spark<'a> {
    /// Width and height of the drawing in units.
    pub size: (i32, i32),
    /// Units in a CSS pixel.
    pub css: f64,
    /// Width of the line in CSS pixels.
    pub line: f64,
    /// Colors of the drawing.
    pub theme: &'a Theme,
    /// Start and end of the span, ms since the epoch.
    pub span: (i64, i64),
    /// Times (ms since the epoch) and values, oldest first. A value that is NaN ends the line.
    pub points: &'a [(i64, f64)],
    /// Value at the upper edge; the lower edge is zero.
    pub hi: f64,
}

/// Draws the line, its fill, and a dot at the newest value.
///
/// # Errors
/// Returns the error of the drawing backend.
pub fn draw<DB: DrawingBackend>(area: &Area<DB>, spark: &Spark) -> Drawn<DB> {
    let px = |n: f64| (n * spark.css).round() as i32;
    let (right, bottom, top) = (spark.size.0 - px(4.0), spark.size.1 - px(1.0), px(3.0));
    let (from, to) = spark.span;
    let x = |t: i64| ((t - from) as f64 / (to - from).max(1) as f64 * f64::from(right)).round() as i32;
    let hi = if spark.hi > 0.0 { spark.hi } else { 1.0 };
    let y = |v: f64| bottom - ((v / hi).clamp(0.0, 1.0) * f64::from(bottom - top)).round() as i32;
    let width = spark.line * spark.css;
    let seen: Vec<_> = spark.points.iter().filter(|(t, _)| *t >= from && *t <= to).collect();
    for run in seen.split(|(_, v)| !v.is_finite()).filter(|r| !r.is_empty()) {
        let points: Vec<_> = run.iter().map(|(t, v)| (x(*t), y(*v))).collect();
        let mut shape = points.clone();
        shape.extend([(points[points.len() - 1].0, bottom), (points[0].0, bottom)]);
        fill(area, shape, faint(spark.theme.ink, 0.08))?;
        path(area, points, spark.theme.ink, width)?;
    }
    if let Some((t, v)) = seen.last().filter(|(_, v)| v.is_finite()) {
        let (cx, cy, r) = (x(*t), y(*v), px(2.0));
        let dot = plotters::element::Circle::new((cx, cy), r, plotters::style::Color::filled(&spark.theme.ink));
        area.draw(&dot)?;
    }
    Ok(())
}

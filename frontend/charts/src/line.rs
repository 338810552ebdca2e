//! Draws a line for each series. Area charts use this too, and bands use it for their named series.

use crate::frame::{Frame, Line, Plot};
use crate::kind::{Shows, Traits, no_note};
use crate::paint::{Point, block, dashed, faint, fill, path};
use crate::reduce::{Column, four};
use crate::{Area, Drawn, order, over_time};
use plotters::style::RGBAColor;
use plotters_backend::DrawingBackend;

/// A few series of amounts.
pub(crate) const TRAITS: Traits =
    Traits { fits: |shape| (2..=8).contains(&shape.series), shows: Shows::Each, column_px: 1, note: no_note };

/// Draws a chart of lines.
pub(crate) fn draw<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot) -> Drawn<DB> {
    over_time(area, frame, plot, || lines(area, frame, plot))
}

/// Draws the lines of a frame; for a band, only the named ones.
pub(crate) fn lines<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot) -> Drawn<DB> {
    let order = order::by(frame.lines.iter().map(|l| i64::from(l.bright) * 16 + l.hue.depth() as i64));
    let order: Vec<&Line> = order.into_iter().map(|i| &frame.lines[i]).collect();
    for line in &order {
        shade(area, frame, plot, line)?;
    }
    for line in &order {
        stroke(area, frame, plot, line)?;
    }
    Ok(())
}

fn alpha(line: &Line) -> f64 {
    if line.bright { 1.0 } else { 0.2 }
}

/// In a dense chart, shades the space between the extremes of the columns.
fn shade<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot, line: &Line) -> Drawn<DB> {
    if !frame.dense() || frame.shows() == Shows::Outliers {
        return Ok(());
    }
    // Bands of many lines overlap, so each of them is fainter.
    let strength = 0.3 / (frame.lines.len() as f64).clamp(1.0, 6.0);
    let color = faint(line.hue.color(frame.theme), strength * alpha(line));
    for run in runs(line.columns, plot) {
        between(area, plot, run, color, |c| plot.y(c.min), |c| plot.y(c.max))?;
    }
    Ok(())
}

/// Fills the space between the lower and the upper edge of a run of columns.
pub(crate) fn between<DB: DrawingBackend>(
    area: &Area<DB>,
    plot: &Plot,
    run: &[Column],
    color: RGBAColor,
    low: impl Fn(&Column) -> i32,
    high: impl Fn(&Column) -> i32,
) -> Drawn<DB> {
    let mut shape: Vec<Point> = clip(run, plot, |c, out| out.push((plot.x(c.t), high(c))));
    let lower: Vec<Point> = clip(run, plot, |c, out| out.push((plot.x(c.t), low(c))));
    shape.extend(lower.into_iter().rev());
    fill(area, shape, color)
}

/// Draws the line of a series.
fn stroke<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot, line: &Line) -> Drawn<DB> {
    let width = frame.measures.line * frame.css;
    let color = faint(line.hue.color(frame.theme), alpha(line));
    let y = |v: f64| plot.snap(v, width, frame.device);
    let dense = frame.dense();
    for run in runs(line.columns, plot) {
        let points = clip(run, plot, |c, out| {
            let x = plot.x(c.t);
            if dense {
                out.push((x, y(c.mean())));
            } else {
                out.extend(four(c).map(|v| (x, y(v))));
            }
        });
        if let [(x, y)] = points[..] {
            // A sample between two gaps is a square dot, as wide as the line.
            let r = (width / 2.0).round().max(1.0) as i32;
            block(area, (x - r, y - r), (x + r, y + r), color)?;
        } else if line.hue.dashed() {
            // A faint solid line lies below the dashes, so that a spike cannot disappear between two dashes.
            path(area, points.clone(), faint(color, 0.45), width)?;
            dashed(area, &points, color, width, (6.0 * frame.css, 3.0 * frame.css))?;
        } else {
            path(area, points, color, width)?;
        }
    }
    Ok(())
}

/// Runs of joined columns that touch the plot.
pub(crate) fn runs<'a>(columns: &'a [Column], plot: &Plot) -> impl Iterator<Item = &'a [Column]> {
    let start = columns.partition_point(|c| c.t < plot.from).saturating_sub(1);
    let end = (columns.partition_point(|c| c.t <= plot.to) + 1).min(columns.len());
    let (from, to) = (plot.from, plot.to);
    columns[start..end]
        .chunk_by(|_, next| next.joined)
        .filter(move |run| run.last().is_some_and(|c| c.t >= from) && run.first().is_some_and(|c| c.t <= to))
}

/// The points of a run, cut at the left and the right edge of the plot.
pub(crate) fn clip<T>(items: &[T], plot: &Plot, place: impl Fn(&T, &mut Vec<Point>)) -> Vec<Point> {
    let mut all = Vec::with_capacity(items.len() + 8);
    items.iter().for_each(|item| place(item, &mut all));
    let cut = |a: Point, b: Point, x: i32| {
        let share = f64::from(x - a.0) / f64::from((b.0 - a.0).max(1));
        (x, a.1 + (share * f64::from(b.1 - a.1)).round() as i32)
    };
    let first = all.partition_point(|p| p.0 < plot.left);
    let last = all.partition_point(|p| p.0 <= plot.right);
    let mut out = Vec::with_capacity(last.saturating_sub(first) + 2);
    if first > 0 && first < all.len() {
        out.push(cut(all[first - 1], all[first], plot.left));
    }
    out.extend(all.get(first..last).unwrap_or_default());
    if last > 0 && last < all.len() && last >= first {
        out.push(cut(all[last - 1], all[last], plot.right));
    }
    out
}

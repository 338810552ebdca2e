//! Strokes that all drawings use: text, hairlines, paths, dashes, hatch, axes.

use crate::axis;
use crate::frame::{Frame, Plot};
use crate::{Area, Drawn};
use plotters::element::{PathElement, Polygon, Rectangle};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontDesc, FontFamily, FontStyle, RGBAColor, ShapeStyle, TextStyle};
use plotters_backend::DrawingBackend;

/// A position as x and y in units.
pub(crate) type Point = (i32, i32);

/// A color whose opacity is multiplied by `alpha` (0 to 1).
pub(crate) fn faint(color: RGBAColor, alpha: f64) -> RGBAColor {
    let RGBAColor(r, g, b, a) = color;
    RGBAColor(r, g, b, a * alpha)
}

/// The style of a text: color, weight, and the end of the text that is at its position.
pub(crate) fn words(frame: &Frame, color: RGBAColor, bold: bool, at: HPos) -> TextStyle<'static> {
    let style = if bold { FontStyle::Bold } else { FontStyle::Normal };
    let font = FontDesc::new(FontFamily::SansSerif, frame.measures.text * frame.css, style);
    TextStyle { font, color: color.to_backend_color(), pos: Pos::new(at, VPos::Center) }
}

/// Width of a text in units; 0 when the backend cannot measure it.
pub(crate) fn width<DB: DrawingBackend>(area: &Area<DB>, text: &str, style: &TextStyle) -> i32 {
    area.estimate_text_size(text, style).map_or(0, |(w, _)| w as i32)
}

/// The longest beginning of a text that fits, with an ellipsis when the text was cut; empty when nothing fits.
pub(crate) fn shorten(text: &str, fits: impl Fn(&str) -> bool) -> String {
    if fits(text) {
        return text.to_string();
    }
    let mut short: Vec<char> = text.chars().collect();
    while short.pop().is_some() {
        let candidate: String = short.iter().chain(['…'].iter()).collect();
        if fits(&candidate) {
            return if short.is_empty() { String::new() } else { candidate };
        }
    }
    String::new()
}

/// Fills a rectangle, given by its left upper and its right lower corner.
pub(crate) fn block<DB: DrawingBackend>(area: &Area<DB>, a: Point, b: Point, color: RGBAColor) -> Drawn<DB> {
    area.draw(&Rectangle::new([a, b], color.filled()))
}

/// Draws a line through points; `width` is in units.
pub(crate) fn path<DB: DrawingBackend>(area: &Area<DB>, points: Vec<Point>, color: RGBAColor, width: f64) -> Drawn<DB> {
    if points.is_empty() {
        return Ok(());
    }
    area.draw(&PathElement::new(points, stroke(color, width)))
}

fn stroke(color: RGBAColor, width: f64) -> ShapeStyle {
    ShapeStyle { color, filled: false, stroke_width: width.round().max(1.0) as u32 }
}

/// Fills a shape of three points or more.
pub(crate) fn fill<DB: DrawingBackend>(area: &Area<DB>, points: Vec<Point>, color: RGBAColor) -> Drawn<DB> {
    if points.len() < 3 {
        return Ok(());
    }
    area.draw(&Polygon::new(points, color.filled()))
}

/// Draws a dashed line; `on` and `off` are the lengths of dash and space in units.
pub(crate) fn dashed<DB: DrawingBackend>(
    area: &Area<DB>,
    points: &[Point],
    color: RGBAColor,
    width: f64,
    (on, off): (f64, f64),
) -> Drawn<DB> {
    for dash in dashes(points, on, off) {
        path(area, dash, color, width)?;
    }
    Ok(())
}

fn dashes(points: &[Point], on: f64, off: f64) -> Vec<Vec<Point>> {
    let mut list = Vec::new();
    let (mut pen, mut left) = (true, on);
    let mut dash: Vec<Point> = points.first().copied().into_iter().collect();
    for pair in points.windows(2) {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let (dx, dy) = (f64::from(x1 - x0), f64::from(y1 - y0));
        let length = dx.hypot(dy);
        let mut done = 0.0;
        while length - done > left {
            done += left;
            let at = (x0 + (dx * done / length).round() as i32, y0 + (dy * done / length).round() as i32);
            if pen {
                dash.push(at);
                list.push(std::mem::take(&mut dash));
            } else {
                dash = vec![at];
            }
            pen = !pen;
            left = if pen { on } else { off };
        }
        left -= length - done;
        if pen {
            dash.push((x1, y1));
        }
    }
    if pen && dash.len() > 1 {
        list.push(dash);
    }
    list
}

/// Hatches every gap.
pub(crate) fn gaps<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot) -> Drawn<DB> {
    for gap in frame.gaps {
        hatch(area, frame, (plot.x_within(gap.from), plot.top), (plot.x_within(gap.to), plot.bottom))?;
    }
    Ok(())
}

/// Hatches a rectangle with faint diagonals, which mark missing data.
pub(crate) fn hatch<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, (x0, y0): Point, (x1, y1): Point) -> Drawn<DB> {
    let pitch = frame.px(6.0).max(1);
    let h = y1 - y0;
    let mut x = (x0 - h).div_euclid(pitch) * pitch;
    while x < x1 {
        // This is the part of the diagonal from (x, y1) to (x + h, y0) that lies in the rectangle.
        let (a, b) = (x.max(x0), (x + h).min(x1));
        if b > a {
            path(area, vec![(a, y1 - (a - x)), (b, y1 - (b - x))], frame.theme.hatch, frame.css)?;
        }
        x += pitch;
    }
    Ok(())
}

/// Writes the text of each gap that is wide enough for it.
pub(crate) fn gap_words<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot) -> Drawn<DB> {
    let style = words(frame, frame.theme.text_3, false, HPos::Center);
    for gap in frame.gaps.iter().filter(|g| !g.text.is_empty()) {
        let (x0, x1) = (plot.x_within(gap.from), plot.x_within(gap.to));
        let wide = width(area, &gap.text, &style);
        if x1 - x0 < wide + frame.px(16.0) {
            continue;
        }
        let (x, y) = ((x0 + x1) / 2, plot.bottom - frame.px(20.0));
        let (w, h) = (wide / 2 + frame.px(4.0), frame.px(9.0));
        block(area, (x - w, y - h), (x + w, y + h), frame.theme.card)?;
        area.draw_text(&gap.text, &style, (x, y))?;
    }
    Ok(())
}

/// Draws the horizontal hairlines with their numbers, and the times along the bottom.
pub(crate) fn axes<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot) -> Drawn<DB> {
    let (theme, hair) = (frame.theme, frame.hair());
    let number = words(frame, theme.text_3, false, HPos::Right);
    for (value, text) in frame.axis.ticks.iter().filter(|_| !frame.chart.traits().has_rows()) {
        let y = frame.whole(f64::from(plot.y(*value)));
        let color = if *value == 0.0 { theme.zero } else { theme.grid };
        block(area, (plot.left, y), (plot.right, y + hair), color)?;
        area.draw_text(text, &number, (plot.left - frame.px(8.0), y))?;
    }
    let time = words(frame, theme.text_3, false, HPos::Center);
    let room = f64::from(plot.right - plot.left) / frame.css / (frame.measures.text * axis::clock_room());
    let y = frame.foot();
    let under = plot.bottom + frame.px(frame.lanes_height());
    for (t, text) in frame.along.ticks(plot.from, plot.to, room, frame.zone) {
        let x = frame.whole(f64::from(plot.x(t)));
        let half = width(area, &text, &time) / 2;
        if x - half < plot.left - frame.px(12.0) || x + half > plot.right + frame.px(4.0) {
            continue;
        }
        area.draw_text(&text, &time, (x, y))?;
        let top = under + frame.device as i32;
        block(area, (x, top), (x + hair, top + frame.px(3.0)), theme.hair_strong)?;
    }
    Ok(())
}

/// Middle of a text with half the height `high` that is `off` above a line; below it where the upper edge of the chart
/// would cut it.
fn beside_line(line: i32, off: i32, high: i32) -> i32 {
    if line - off - high < 0 { line + off } else { line - off }
}

/// Draws limits as dashed lines, each with its text above the left end, or below in a low chart.
pub(crate) fn limits<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot) -> Drawn<DB> {
    let style = words(frame, frame.theme.text_3, false, HPos::Left);
    // Middle and right end of the previous text; an overlapping text is placed beside it.
    let mut before = (i32::MIN / 2, plot.left);
    for limit in frame.limits.iter().filter(|l| l.value >= plot.lo && l.value <= plot.hi) {
        let y = frame.whole(f64::from(plot.y(limit.value))) + frame.hair() / 2;
        let dash = f64::from(frame.px(4.0));
        let color = faint(frame.theme.text_3, 0.8);
        dashed(area, &[(plot.left, y), (plot.right, y)], color, f64::from(frame.hair()), (dash, dash))?;
        // The text has a background, so that no grid line crosses it.
        let high = frame.px(frame.measures.text / 2.0);
        let middle = beside_line(y, frame.px(9.0), high);
        let beside = (middle - before.0).abs() < 2 * high;
        let x = if beside { before.1 + frame.px(8.0) } else { plot.left + frame.px(4.0) };
        let right = x + width(area, &limit.text, &style) + frame.px(2.0);
        block(area, (x - frame.px(2.0), middle - high), (right, middle + high), frame.theme.card)?;
        area.draw_text(&limit.text, &style, (x, middle))?;
        before = (middle, right);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_run_on_around_corners() {
        let list = dashes(&[(0, 0), (10, 0), (10, 10)], 6.0, 3.0);
        assert_eq!(list, [vec![(0, 0), (6, 0)], vec![(9, 0), (10, 0), (10, 5)], vec![(10, 8), (10, 10)]]);
    }

    #[test]
    fn the_text_of_a_limit_at_the_upper_edge_is_below_its_line() {
        assert_eq!([beside_line(40, 9, 6), beside_line(15, 9, 6)], [31, 6]);
        assert_eq!([beside_line(14, 9, 6), beside_line(3, 9, 6)], [23, 12]);
    }

    #[test]
    fn a_long_name_is_cut_and_a_hopeless_one_left_out() {
        assert_eq!(shorten("/mnt/scratch", |t| t.chars().count() <= 6), "/mnt/…");
        assert_eq!(shorten("eth0", |t| t.chars().count() <= 6), "eth0");
        assert_eq!(shorten("eth0", |_| false), "");
    }
}

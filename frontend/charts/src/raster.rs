//! Turns strokes into pixels: an anti-aliased picture in memory, which a browser shows with one call.
//!
//! A browser without a GPU takes far longer to stroke a noisy line than to show a finished picture. Here
//! [`CUTS_PER_PIXEL`] vertical lines, the cuts, divide each column of pixels. A segment with the width of its stroke
//! covers an interval of each cut that it crosses. Intervals of one stroke that touch become one, so that nothing is
//! painted twice where segments meet. The ends of the intervals are added to a column of differences, in fixed-point
//! numbers. The running sum of this column is the covered part of each pixel: exact from top to bottom, in
//! [`CUTS_PER_PIXEL`] steps from left to right. One batch of lines is blended once, and only where it covers something.

use crate::Theme;
use std::ops::Range;

/// Number of vertical lines that divide a column of pixels.
const CUTS_PER_PIXEL: usize = 8;
/// Fixed-point steps in the height of a pixel.
const ROWS_PER_PIXEL: f32 = 256.0;
/// Value of the running sum at a pixel that is fully covered.
const FULL_COVERAGE: i32 = 256 * CUTS_PER_PIXEL as i32;
/// An interval that covers nothing.
const EMPTY_SPAN: Span = (f32::INFINITY, f32::NEG_INFINITY);

/// An interval of a cut: upper and lower end in pixels.
type Span = (f32, f32);
type Corner = (f32, f32);

/// Red, green and blue from 0 to 255, and opacity from 0 to 1.
pub type Color = (u8, u8, u8, f64);

/// The shape of a text: how much of each pixel it covers, 0 to 255.
#[derive(Clone, Debug, Default)]
pub struct Mask {
    /// Number of pixels in a row.
    pub width: usize,
    /// Cover of each pixel, row by row from the top.
    pub cover: Vec<u8>,
}

/// A rectangle of pixels: left and upper edge, then right and lower edge, which are outside it.
pub type PixelRect = (u32, u32, u32, u32);

/// A picture in memory. On a transparent ground, colors are multiplied by their opacity until [`Raster::straighten`].
#[derive(Default)]
pub struct Raster {
    width: usize,
    height: usize,
    ground: [u8; 4],
    /// Red, green, blue and opacity of each pixel, row by row.
    pixels: Vec<[u8; 4]>,
    /// Differences of cover, column by column, `height + 2` for each; all are 0 between two strokes.
    sums: Vec<i32>,
    /// The interval of the current stroke at each cut that is not yet added to `sums`.
    open: Vec<Span>,
    /// First row, and the row after the last, that the current stroke touches in each column.
    rows: Vec<(u32, u32)>,
    /// First column, and the column after the last, that the current stroke touches.
    columns: (usize, usize),
    /// First row, and the row after the last, that was touched in each column since the last wipe.
    touched: Vec<(u32, u32)>,
}

/// The value of `rows` and `touched` for a column without touched rows.
const NO_ROWS: (u32, u32) = (u32::MAX, 0);

impl Raster {
    /// Makes the picture empty and sets its size in pixels. The ground is the card color of a theme, or transparent
    /// for None.
    pub fn wipe(&mut self, (width, height): (u32, u32), ground: Option<&Theme>) {
        let ground = ground.map_or([0; 4], |t| [t.card.0, t.card.1, t.card.2, 255]);
        if (self.width, self.height, self.ground) == (width as usize, height as usize, ground) {
            for (left, top, right, bottom) in self.parts() {
                for y in top as usize..bottom as usize {
                    self.pixels[y * self.width + left as usize..y * self.width + right as usize].fill(ground);
                }
            }
            self.touched.fill(NO_ROWS);
            return;
        }
        (self.width, self.height, self.ground) = (width as usize, height as usize, ground);
        self.pixels.clear();
        self.pixels.resize(self.width * self.height, ground);
        self.touched.clear();
        self.touched.resize(self.width, NO_ROWS);
        // These hold nothing between two strokes, so a new size needs no clearing.
        self.columns = (usize::MAX, 0);
        self.sums.resize(self.width * (self.height + 2), 0);
        self.rows.resize(self.width, NO_ROWS);
        self.open.resize(self.width * CUTS_PER_PIXEL, EMPTY_SPAN);
    }

    /// True when the ground is opaque.
    pub fn has_ground(&self) -> bool {
        self.ground[3] == 255
    }

    /// Red, green, blue and opacity of a pixel on which nothing is drawn.
    pub fn ground(&self) -> [u8; 4] {
        self.ground
    }

    /// Red, green, blue and opacity of each pixel, row by row.
    pub fn bytes(&self) -> &[u8] {
        self.pixels.as_flattened()
    }

    /// Rectangles that together hold all touched pixels. They are few and do not overlap.
    pub fn parts(&self) -> Vec<PixelRect> {
        /// Number of untouched columns from which on a second rectangle is worth its cost.
        const MIN_UNTOUCHED: u32 = 24;
        let mut parts: Vec<PixelRect> = Vec::new();
        for (x, (top, end)) in (0u32..).zip(&self.touched).filter(|(_, rows)| rows.0 < rows.1) {
            match parts.last_mut() {
                Some(last) if x < last.2 + MIN_UNTOUCHED => *last = (last.0, last.1.min(*top), x + 1, last.3.max(*end)),
                _ => parts.push((x, *top, x + 1, *end)),
            }
        }
        parts
    }

    /// Divides the colors in a part by their opacity, as browsers expect. Needed only on a transparent ground.
    pub fn straighten(&mut self, (left, top, right, bottom): PixelRect) {
        for y in top as usize..bottom as usize {
            for pixel in &mut self.pixels[y * self.width + left as usize..y * self.width + right as usize] {
                let a = u32::from(pixel[3]);
                if a != 0 && a != 255 {
                    for color in &mut pixel[..3] {
                        *color = ((u32::from(*color) * 255 + a / 2) / a).min(255) as u8;
                    }
                }
            }
        }
    }

    /// Draws lines of `width` pixels in one stroke. `points` holds x and y in turn; `ends` holds the index in `points`
    /// at which each line ends. Joins are bevelled, ends are square.
    pub fn polylines(&mut self, points: &[f32], ends: &[usize], width: f32, color: Color) {
        let half = width / 2.0;
        let mut start = 0;
        for &end in ends {
            let mut before: Option<Corner> = None;
            for pair in points[start..end].windows(4).step_by(2) {
                let (p, q) = ((pair[0], pair[1]), (pair[2], pair[3]));
                let (dx, dy) = (q.0 - p.0, q.1 - p.1);
                let length = (dx * dx + dy * dy).sqrt();
                if length == 0.0 {
                    continue;
                }
                let (ux, uy) = (dx / length, dy / length);
                let n = (-uy * half, ux * half);
                if ux < 0.0 {
                    self.segment(q, p, (-ux, -uy), half);
                } else {
                    self.segment(p, q, (ux, uy), half);
                }
                let m = before.replace(n).unwrap_or(n);
                let turn = m.0 * n.1 - m.1 * n.0;
                // A corner that is smaller than a tenth of a pixel is left out.
                if turn.abs() > 0.2 {
                    // The triangle fills the outer side of the corner. It comes after both segments, because these may
                    // overlap where the triangle touches only one of them.
                    let s = if turn > 0.0 { -1.0 } else { 1.0 };
                    self.triangle(p, (p.0 + s * m.0, p.1 + s * m.1), (p.0 + s * n.0, p.1 + s * n.1));
                }
            }
            start = end;
        }
        self.close(color);
    }

    /// Fills a shape whose edges do not cross; `points` holds x and y of its corners in turn.
    pub fn polygon(&mut self, points: &[f32], color: Color) {
        let corner = |i: usize| (points[i * 2], points[i * 2 + 1]);
        let n = points.len() / 2;
        let bottom = self.height as f32;
        for i in 0..n {
            let (a, b) = (corner(i), corner((i + 1) % n));
            let (sign, a, b) = if a.0 < b.0 { (1, a, b) } else { (-1, b, a) };
            let mut cuts = self.cuts(a.0, b.0);
            let edge = Edge::new(a, b);
            self.reach(&cuts);
            while !cuts.is_empty() {
                let column = cuts.start / CUTS_PER_PIXEL;
                let end = cuts.end.min((column + 1) * CUTS_PER_PIXEL);
                let (rows, sums) = self.column(column);
                if a.1 == b.1 {
                    add(rows, sums, within(a.1, 0.0, bottom), sign * (end - cuts.start) as i32);
                } else {
                    (cuts.start..end).for_each(|cut| add(rows, sums, within(edge.at(cut), 0.0, bottom), sign));
                }
                cuts.start = end;
            }
        }
        self.blend(color);
    }

    /// Fills a disc around the point (`x`, `y`).
    pub fn disc(&mut self, x: f32, y: f32, radius: f32, color: Color) {
        self.spans(x - radius, x + radius, |cut| {
            let dx = middle(cut) - x;
            let half = (radius * radius - dx * dx).max(0.0).sqrt();
            (y - half, y + half)
        });
        self.close(color);
    }

    /// Fills a rectangle. Pixels on its edges are covered in part.
    pub fn rect(&mut self, x: f32, y: f32, width: f32, height: f32, color: Color) {
        let edge = |v: f32, most: usize| v.clamp(0.0, most as f32);
        let (x0, x1) = (edge(x.min(x + width), self.width), edge(x.max(x + width), self.width));
        let (y0, y1) = (edge(y.min(y + height), self.height), edge(y.max(y + height), self.height));
        if x0 >= x1 || y0 >= y1 {
            return;
        }
        let ink = Ink::new(color);
        let share = |i: usize, from: f32, to: f32| (to.min(i as f32 + 1.0) - from.max(i as f32)) * 16.0;
        let (left, right) = (x0 as usize, x1.ceil() as usize);
        let (top, bottom) = (y0 as usize, y1.ceil() as usize);
        for row in top..bottom {
            let high = share(row, y0, y1);
            let line = &mut self.pixels[row * self.width..(row + 1) * self.width];
            let mut part = |i: usize| line[i] = ink.over(line[i], ink.part((share(i, x0, x1) * high) as i32, 256));
            let (mut a, mut b) = (left, right);
            if x0 > a as f32 {
                part(a);
                a += 1;
            }
            if x1 < b as f32 && b > a {
                b -= 1;
                part(b);
            }
            ink.span(&mut line[a..b], ink.part((high * 16.0) as i32, 256));
        }
        for rows in &mut self.touched[left..right] {
            *rows = (rows.0.min(top as u32), rows.1.max(bottom as u32));
        }
    }

    /// Paints a mask; its left upper corner is at the pixel (`x`, `y`).
    pub fn mask(&mut self, mask: &Mask, x: i32, y: i32, color: Color) {
        if mask.width == 0 {
            return;
        }
        let ink = Ink::new(color);
        let inside = |at: i32, long: usize, most: usize| {
            let (from, to) = (at.clamp(0, most as i32), at.saturating_add(long as i32).clamp(0, most as i32));
            (from as usize, to as usize)
        };
        let (left, right) = inside(x, mask.width, self.width);
        let (top, bottom) = inside(y, mask.cover.len() / mask.width, self.height);
        if left >= right || top >= bottom {
            return;
        }
        for row in top..bottom {
            let cover = &mask.cover[(row as i32 - y) as usize * mask.width..][(left as i32 - x) as usize..];
            for (pixel, &c) in self.pixels[row * self.width..][left..right].iter_mut().zip(cover) {
                if c != 0 {
                    *pixel = ink.over(*pixel, ink.part(i32::from(c), 255));
                }
            }
        }
        for rows in &mut self.touched[left..right] {
            *rows = (rows.0.min(top as u32), rows.1.max(bottom as u32));
        }
    }

    /// Numbers of the cuts whose middle is at `x0` or right of it, and left of `x1`.
    fn cuts(&self, x0: f32, x1: f32) -> Range<usize> {
        let cut =
            |x: f32| ((x * CUTS_PER_PIXEL as f32 - 0.5).ceil().max(0.0) as usize).min(self.width * CUTS_PER_PIXEL);
        cut(x0)..cut(x1)
    }

    /// Adds the columns of some cuts to the columns that the stroke touches.
    fn reach(&mut self, cuts: &Range<usize>) {
        if !cuts.is_empty() {
            let (left, right) = self.columns;
            self.columns = (left.min(cuts.start / CUTS_PER_PIXEL), right.max((cuts.end - 1) / CUTS_PER_PIXEL + 1));
        }
    }

    /// The touched rows of a column, and its sums.
    fn column(&mut self, column: usize) -> (&mut (u32, u32), &mut [i32]) {
        let high = self.height + 2;
        (&mut self.rows[column], &mut self.sums[column * high..(column + 1) * high])
    }

    /// Adds the rectangle around a segment to the stroke. The segment goes from left to right; (`ux`, `uy`) is its
    /// direction, `half` is half its width. At each cut the rectangle covers the points that are close enough to the
    /// middle line and not beyond the ends.
    fn segment(&mut self, p: Corner, q: Corner, (ux, uy): Corner, half: f32) {
        if ux < 1e-3 {
            let (x, ends) = ((p.0 + q.0) / 2.0, (less(p.1, q.1), more(p.1, q.1)));
            return self.spans(x - half, x + half, |_| ends);
        }
        let (slope, reach) = (uy / ux, half / ux);
        let side = move |cut: usize| p.1 + (middle(cut) - p.0) * slope;
        if uy.abs() < 1e-3 {
            return self.spans(p.0, q.0, |cut| (side(cut) - reach, side(cut) + reach));
        }
        let steep = -ux / uy;
        let (first, last) = if uy > 0.0 { (p, q) } else { (q, p) };
        let wide = half * uy.abs();
        self.spans(p.0 - wide, q.0 + wide, |cut| {
            let (x, y) = (middle(cut), side(cut));
            let (upper, lower) = (first.1 + (x - first.0) * steep, last.1 + (x - last.0) * steep);
            (more(y - reach, upper), less(y + reach, lower))
        });
    }

    /// Adds a triangle to the stroke.
    fn triangle(&mut self, a: Corner, b: Corner, c: Corner) {
        let (a, b) = if a.0 <= b.0 { (a, b) } else { (b, a) };
        let (b, c) = if b.0 <= c.0 { (b, c) } else { (c, b) };
        let (a, b) = if a.0 <= b.0 { (a, b) } else { (b, a) };
        let (long, left, right) = (Edge::new(a, c), Edge::new(a, b), Edge::new(b, c));
        self.spans(a.0, c.0, |cut| {
            let (y, other) = (long.at(cut), if middle(cut) < b.0 { left.at(cut) } else { right.at(cut) });
            (less(y, other), more(y, other))
        });
    }

    /// Adds an interval to each cut from `left` to `right`. It is joined to the open interval when both touch; else the
    /// open interval is settled first.
    #[inline]
    fn spans(&mut self, left: f32, right: f32, span: impl Fn(usize) -> Span) {
        let cuts = self.cuts(left, right);
        self.reach(&cuts);
        for cut in cuts {
            let new = span(cut);
            let open = &mut self.open[cut];
            if new.0 <= open.1 && new.1 >= open.0 {
                *open = (less(open.0, new.0), more(open.1, new.1));
            } else if new.0 < new.1 {
                let before = std::mem::replace(open, new);
                self.settle(cut, before);
            }
        }
    }

    /// Adds an interval of a cut to the sums.
    fn settle(&mut self, cut: usize, (top, bottom): Span) {
        let (top, bottom) = (more(top, 0.0), less(bottom, self.height as f32));
        if top < bottom {
            let (rows, sums) = self.column(cut / CUTS_PER_PIXEL);
            add(rows, sums, top, 1);
            add(rows, sums, bottom, -1);
        }
    }

    /// Settles all open intervals and paints the stroke.
    fn close(&mut self, color: Color) {
        let (left, right) = self.columns;
        for cut in left.min(right) * CUTS_PER_PIXEL..right * CUTS_PER_PIXEL {
            let open = std::mem::replace(&mut self.open[cut], EMPTY_SPAN);
            self.settle(cut, open);
        }
        self.blend(color);
    }

    /// Paints the pixels that the sums cover, and sets the sums to zero.
    fn blend(&mut self, color: Color) {
        let ink = Ink::new(color);
        let (left, right) = std::mem::replace(&mut self.columns, (usize::MAX, 0));
        let high = self.height + 2;
        for column in left.min(right)..right {
            let (top, end) = std::mem::replace(&mut self.rows[column], NO_ROWS);
            if top >= end {
                continue;
            }
            let mut at = top as usize * self.width + column;
            let mut sum = 0;
            // Most pixels look like the one above, so the last result is used again. The sum 0 stands for no result
            // yet.
            let (mut seen, mut made) = (([0; 4], 0), [0; 4]);
            for add in &mut self.sums[column * high..][top as usize..end as usize] {
                sum += std::mem::take(add);
                if let Some(pixel) = self.pixels.get_mut(at).filter(|_| sum != 0) {
                    if seen != (*pixel, sum) {
                        seen = (*pixel, sum);
                        made = ink.over(*pixel, ink.part(sum.abs().min(FULL_COVERAGE), FULL_COVERAGE));
                    }
                    *pixel = made;
                }
                at += self.width;
            }
            let rows = &mut self.touched[column];
            *rows = (rows.0.min(top), rows.1.max(end.min(self.height as u32)));
        }
    }
}

/// An edge of a shape: left end, slope, and its lowest and highest `y`.
struct Edge {
    from: Corner,
    slope: f32,
    ends: Span,
}

impl Edge {
    /// Makes the edge from `a` to `b`, where `a` is left of `b`.
    fn new(a: Corner, b: Corner) -> Self {
        Edge { from: a, slope: (b.1 - a.1) / (b.0 - a.0), ends: (less(a.1, b.1), more(a.1, b.1)) }
    }

    /// Height at which a cut crosses the edge. It is kept between the ends, because the result for a nearly vertical
    /// edge is inexact.
    #[inline]
    fn at(&self, cut: usize) -> f32 {
        within(self.from.1 + (middle(cut) - self.from.0) * self.slope, self.ends.0, self.ends.1)
    }
}

/// Changes the cover of a column from `y` downwards by that of one cut: `sign` 1 adds it, -1 subtracts it.
#[inline]
fn add(rows: &mut (u32, u32), sums: &mut [i32], y: f32, sign: i32) {
    let fixed = (y * ROWS_PER_PIXEL + 0.5) as u32;
    let (row, part) = (fixed >> 8, (fixed & 255) as i32);
    if let Some([here, below]) = sums.get_mut(row as usize..row as usize + 2) {
        *here += (256 - part) * sign;
        *below += part * sign;
        *rows = (rows.0.min(row), rows.1.max(row + 2));
    }
}

// These are the smaller and the larger of two numbers, as one instruction each; `f32::min` and `f32::max` test for NaN
// too.

#[inline]
fn less(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

#[inline]
fn more(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

#[inline]
fn within(v: f32, least: f32, most: f32) -> f32 {
    less(more(v, least), most)
}

/// Horizontal middle of a cut in pixels.
#[inline]
fn middle(cut: usize) -> f32 {
    (cut as f32 + 0.5) / CUTS_PER_PIXEL as f32
}

/// A color that is prepared for blending.
struct Ink {
    color: [u8; 4],
    /// Two of the four bytes of the color each: red and blue, then green and opacity.
    halves: (u32, u32),
    /// Opacity of the color, 0 to 256.
    alpha: i32,
}

impl Ink {
    fn new(color: Color) -> Self {
        let alpha = (color.3 * 256.0).round().clamp(0.0, 256.0) as i32;
        let color = [color.0, color.1, color.2, 255];
        let whole = u32::from_le_bytes(color);
        Ink { color, halves: (whole & 0x00ff_00ff, whole >> 8 & 0x00ff_00ff), alpha }
    }

    /// Opacity (0 to 256) at a pixel of which `cover` out of `full` is covered.
    #[inline]
    fn part(&self, cover: i32, full: i32) -> u32 {
        ((cover * self.alpha + full / 2) / full) as u32
    }

    /// Blends the color over the pixel `under` with the opacity `part` (0 to 256).
    #[inline]
    fn over(&self, under: [u8; 4], part: u32) -> [u8; 4] {
        if part >= 256 {
            return self.color;
        }
        let (under, rest) = (u32::from_le_bytes(under), 256 - part);
        let mix = |under: u32, ink: u32| (under * rest + ink * part + 0x0080_0080) >> 8 & 0x00ff_00ff;
        (mix(under & 0x00ff_00ff, self.halves.0) | mix(under >> 8 & 0x00ff_00ff, self.halves.1) << 8).to_le_bytes()
    }

    /// Blends the color over many pixels, most of which are equal.
    fn span(&self, pixels: &mut [[u8; 4]], part: u32) {
        if part >= 256 {
            return pixels.fill(self.color);
        }
        let (mut seen, mut made) = ([0; 4], self.over([0; 4], part));
        for pixel in pixels {
            if *pixel != seen {
                seen = *pixel;
                made = self.over(seen, part);
            }
            *pixel = made;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::DARK;
    use proptest::prelude::*;

    const SIZE: (u32, u32) = (40, 32);
    const WHITE: Color = (255, 255, 255, 1.0);

    fn raster(draw: impl FnOnce(&mut Raster)) -> Raster {
        let mut raster = Raster::default();
        raster.wipe(SIZE, None);
        draw(&mut raster);
        assert!(raster.sums.iter().all(|s| *s == 0), "a stroke leaves something behind");
        assert!(raster.open.iter().all(|o| *o == EMPTY_SPAN) && raster.rows.iter().all(|r| *r == NO_ROWS));
        raster
    }

    #[test]
    fn no_size_ends_a_stroke() {
        let far = [0.0, -1e9, 1e9, 3.5, f32::MAX];
        for (w, h) in (0..12).flat_map(|w| [0, 1, 2, 7].map(|h| (w, h))) {
            let mut raster = Raster::default();
            for size in [(w, h), (40, 32), (w, h)] {
                raster.wipe(size, Some(&DARK));
                let points: Vec<f32> = far.iter().flat_map(|&x| far.map(|y| [x, y])).flatten().collect();
                raster.polylines(&points, &[3, 9, points.len() / 2], 1.5, WHITE);
                raster.polygon(&points, WHITE);
                for (x, y) in [(-5.0, -5.0), (0.0, 0.0), (1e9, 1e9)] {
                    raster.disc(x, y, 3.0, WHITE);
                    raster.rect(x, y, 1e9, 1e9, WHITE);
                    raster.mask(&Mask { width: 3, cover: vec![255; 9] }, x as i32, y as i32, WHITE);
                }
                raster.straighten((0, 0, size.0, size.1));
                assert_eq!(raster.bytes().len(), (size.0 * size.1 * 4) as usize);
            }
        }
    }

    /// Cover of each pixel from 0 to 1. White on a transparent ground has the opacity of its cover.
    fn cover(raster: &Raster) -> Vec<f64> {
        raster.pixels.iter().map(|p| f64::from(p[3]) / 255.0).collect()
    }

    /// Cover of each pixel, found by testing 16 x 16 points in each.
    fn tried(inside: impl Fn(f32, f32) -> bool) -> Vec<f64> {
        let at = |i: u32, k: u32| i as f32 + (k as f32 + 0.5) / 16.0;
        let points = |x, y| (0..256).filter(|k| inside(at(x, k % 16), at(y, k / 16))).count() as f64 / 256.0;
        (0..SIZE.1).flat_map(|y| (0..SIZE.0).map(move |x| (x, y))).map(|(x, y)| points(x, y)).collect()
    }

    /// Largest and mean difference of two lists of cover. The mean counts only pixels that one of them covers.
    fn apart(a: &[f64], b: &[f64]) -> (f64, f64) {
        let each = || a.iter().zip(b).filter(|(a, b)| **a > 0.0 || **b > 0.0).map(|(a, b)| (a - b).abs());
        (each().fold(0.0, f64::max), each().sum::<f64>() / (each().count().max(1) as f64))
    }

    fn in_convex(corners: &[Corner], x: f32, y: f32) -> bool {
        let sides = || {
            (0..corners.len()).map(|i| {
                let (a, b) = (corners[i], corners[(i + 1) % corners.len()]);
                (b.0 - a.0) * (y - a.1) - (b.1 - a.1) * (x - a.0)
            })
        };
        sides().all(|s| s >= 0.0) || sides().all(|s| s <= 0.0)
    }

    /// The shapes that make up a stroke: a rectangle around each segment, two triangles at each corner.
    fn stroke(line: &[Corner], width: f32) -> Vec<Vec<Corner>> {
        let line: Vec<Corner> = line.iter().copied().fold(Vec::new(), |mut l, p| {
            if l.last() != Some(&p) {
                l.push(p);
            }
            l
        });
        let normal = |p: Corner, q: Corner| {
            let length = (q.0 - p.0).hypot(q.1 - p.1);
            ((p.1 - q.1) / length * width / 2.0, (q.0 - p.0) / length * width / 2.0)
        };
        let mut shapes = Vec::new();
        for pair in line.windows(2) {
            let (p, q, n) = (pair[0], pair[1], normal(pair[0], pair[1]));
            let corner = |p: Corner, s: f32| (p.0 + s * n.0, p.1 + s * n.1);
            shapes.push(vec![corner(p, 1.0), corner(q, 1.0), corner(q, -1.0), corner(p, -1.0)]);
        }
        for three in line.windows(3) {
            let (m, n, p) = (normal(three[0], three[1]), normal(three[1], three[2]), three[1]);
            for s in [1.0, -1.0] {
                shapes.push(vec![p, (p.0 + s * m.0, p.1 + s * m.1), (p.0 + s * n.0, p.1 + s * n.1)]);
            }
        }
        shapes
    }

    fn flat(line: &[Corner]) -> Vec<f32> {
        line.iter().flat_map(|p| [p.0, p.1]).collect()
    }

    #[test]
    fn a_line_has_the_same_weight_at_every_slope() {
        for degrees in 0..180 {
            let (dy, dx) = (degrees as f32).to_radians().sin_cos();
            let line = [20.0 - dx * 15.0, 16.0 - dy * 15.0, 20.0 + dx * 15.0, 16.0 + dy * 15.0];
            let drawn = raster(|r| r.polylines(&line, &[4], 1.5, WHITE));
            let weight: f64 = cover(&drawn).iter().sum();
            assert!((weight - 45.0).abs() < 1.0, "{degrees} degrees weigh {weight}");
        }
    }

    #[test]
    fn a_line_that_is_nearly_upright_lies_in_the_middle_of_its_ends() {
        let mut tall = Raster::default();
        tall.wipe((8, 1_000), None);
        tall.polylines(&[3.75, 0.0, 4.25, 1_000.0], &[4], 2.0, WHITE);
        assert_eq!(tall.parts(), [(3, 0, 5, 1_000)]);
        assert!(cover(&tall).iter().all(|c| *c == 0.0 || *c == 1.0));
    }

    #[test]
    fn edges_on_pixels_are_sharp() {
        let line = raster(|r| r.polylines(&[4.0, 9.0, 20.0, 9.0], &[4], 2.0, WHITE));
        let rect = raster(|r| r.rect(4.0, 8.0, 16.0, 2.0, WHITE));
        assert_eq!(line.pixels, rect.pixels);
        assert!(cover(&rect).iter().all(|c| *c == 0.0 || *c == 1.0));
        assert_eq!(cover(&rect).iter().sum::<f64>(), 32.0);
        assert_eq!(rect.parts(), [(4, 8, 20, 10)]);
    }

    #[test]
    fn a_stroke_is_blended_once_where_it_crosses_itself() {
        let faint = (255, 255, 255, 0.5);
        let cross = raster(|r| r.polylines(&[4.0, 20.0, 36.0, 20.0, 22.0, 4.0, 22.0, 30.0], &[4, 8], 2.0, faint));
        assert_eq!(cover(&cross).into_iter().fold(0.0, f64::max), 128.0 / 255.0);
    }

    #[test]
    fn what_lies_outside_is_left_out() {
        let all = raster(|r| {
            r.polylines(&[-900.0, -50.0, 20.0, 20.0, 900.0, 1e7], &[6], 1.5, WHITE);
            r.polygon(&[-9.0, -9.0, 99.0, -9.0, 99.0, 99.0, -9.0, 99.0], WHITE);
            r.disc(0.0, 32.0, 5.0, WHITE);
            r.rect(-5.0, -5.0, 500.0, 500.0, WHITE);
            let square = Mask { width: 3, cover: vec![255; 9] };
            [(-2, -2), (39, 31), (-3, 0), (90, 90)].into_iter().for_each(|(x, y)| r.mask(&square, x, y, WHITE));
        });
        assert!(cover(&all).iter().all(|c| *c == 1.0));
        assert_eq!(all.parts(), [(0, 0, SIZE.0, SIZE.1)]);
    }

    #[test]
    fn a_card_stays_opaque_and_a_faint_color_on_no_ground_keeps_its_own() {
        let mut card = Raster::default();
        card.wipe(SIZE, Some(&DARK));
        card.polylines(&[1.0, 1.0, 40.0, 30.0], &[4], 1.5, (200, 100, 50, 0.5));
        assert!(card.pixels.iter().all(|p| p[3] == 255));
        let mut none = raster(|r| r.rect(2.0, 2.0, 4.0, 4.0, (200, 100, 50, 0.25)));
        none.straighten((0, 0, SIZE.0, SIZE.1));
        let pixel = none.pixels[3 * SIZE.0 as usize + 3];
        assert!(pixel.iter().zip([200, 100, 50, 64]).all(|(a, b)| a.abs_diff(b) <= 2), "{pixel:?}");
    }

    #[test]
    fn parts_hold_what_was_touched_and_lie_apart() {
        let mut two = Raster::default();
        two.wipe((200, 40), None);
        two.rect(10.0, 5.0, 2.0, 20.0, WHITE);
        two.rect(100.25, 1.5, 40.0, 4.0, WHITE);
        assert_eq!(two.parts(), [(10, 5, 12, 25), (100, 1, 141, 6)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 60, ..ProptestConfig::default() })]

        #[test]
        fn a_stroke_is_what_points_in_it_say(
            steps in prop::collection::vec((1u8..12, 0u8..128), 2..10),
            width in prop::sample::select(vec![1.0f32, 1.5, 2.0, 3.0]),
        ) {
            // Positions are multiples of a quarter of a pixel, as in the canvas backend.
            let mut x = 8;
            let line: Vec<Corner> =
                steps.iter().map(|(dx, y)| { x += i32::from(*dx); (x as f32 / 4.0, f32::from(*y) / 4.0) }).collect();
            let shapes = stroke(&line, width);
            let drawn = raster(|r| r.polylines(&flat(&line), &[line.len() * 2], width, WHITE));
            let expected = tried(|x, y| shapes.iter().any(|s| in_convex(s, x, y)));
            let (most, mean) = apart(&cover(&drawn), &expected);
            // A spike that turns back within a pixel has both of its sides in it.
            prop_assert!(most < 0.4 && mean < 0.05, "{} {}", most, mean);
        }

        #[test]
        fn a_band_is_what_points_in_it_say_and_has_no_seams(
            columns in prop::collection::vec((1u8..10, 0u8..60, 4u8..60), 2..14),
        ) {
            let mut x = 8;
            let columns: Vec<(f32, f32, f32)> = columns
                .iter()
                .map(|(dx, y, high)| { x += i32::from(*dx); (x as f32 / 4.0, f32::from(*y) / 4.0, f32::from(y + high) / 4.0) })
                .collect();
            let mut shape: Vec<Corner> = columns.iter().map(|c| (c.0, c.1)).collect();
            shape.extend(columns.iter().rev().map(|c| (c.0, c.2)));
            let drawn = raster(|r| r.polygon(&flat(&shape), WHITE));
            let expected = tried(|x, y| columns.windows(2).any(|pair| {
                let ((x0, a0, b0), (x1, a1, b1)) = (pair[0], pair[1]);
                let share = (x - x0) / (x1 - x0);
                (x0..x1).contains(&x) && (a0 + (a1 - a0) * share..b0 + (b1 - b0) * share).contains(&y)
            }));
            let (most, mean) = apart(&cover(&drawn), &expected);
            // Cuts locate a steep edge to a sixteenth, and points to a thirty-second. Both edges of a narrow column may
            // be in one pixel.
            prop_assert!(most < 0.2 && mean < 0.08, "{} {}", most, mean);
            // There are no seams between columns of pixels. An edge may cut off a corner in which no test point lies.
            prop_assert!(cover(&drawn).iter().zip(&expected).all(|(c, e)| *e < 1.0 || *c > 0.97));
        }

        #[test]
        fn a_rectangle_and_a_disc_are_what_points_in_them_say(
            x in 4.0f32..18.0, y in 4.0f32..14.0, width in 0.1f32..20.0, high in 0.1f32..16.0, radius in 0.5f32..8.0,
        ) {
            let drawn = raster(|r| r.rect(x, y, width, high, WHITE));
            let expected = tried(|a, b| (x..x + width).contains(&a) && (y..y + high).contains(&b));
            let (most, mean) = apart(&cover(&drawn), &expected);
            // The points measure the width of a narrow one only to a sixteenth.
            prop_assert!(most < 0.13 && mean < 0.08, "rectangle {} {}", most, mean);
            let (cx, cy) = (x + 8.0, y + 8.0);
            let drawn = raster(|r| r.disc(cx, cy, radius, WHITE));
            let expected = tried(|a, b| (a - cx).hypot(b - cy) < radius);
            let (most, mean) = apart(&cover(&drawn), &expected);
            prop_assert!(most < 0.15 && mean < 0.04, "disc {} {}", most, mean);
        }
    }
}

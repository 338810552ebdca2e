//! The plotters backend of the page. It draws through the trait [`Surface`], so that this crate needs no browser.
//!
//! It makes fewer calls than a backend that passes every call on to the browser. The canvas measures each text once,
//! and the width is cached. Consecutive lines of one style are drawn in one stroke. A style that is already set is not
//! set again. Coordinates count quarters of a device pixel, so that a line 1.5 pixels wide is placed exactly.

use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind, FontStyle,
};
use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;

/// Units of this backend in a device pixel.
pub const SUBPIXELS: i32 = 4;

/// Maximum number of cached text widths. When it is exceeded, the cache is cleared.
const MAX_CACHED_WIDTHS: usize = 4096;

/// The calls of a canvas that the backend needs. Lengths are device pixels; a color is red, green, blue (0 to 255) and
/// opacity (0 to 1).
pub trait Surface {
    /// Sets the fill color of shapes and texts.
    fn set_fill(&mut self, color: (u8, u8, u8, f64));
    /// Sets the color of lines, and their width in device pixels.
    fn set_stroke(&mut self, color: (u8, u8, u8, f64), width: f32);
    /// Sets the size of texts in device pixels, and whether they are bold.
    fn set_font(&mut self, size: f32, bold: bool);
    /// Draws lines in one stroke. `points` holds x and y in turn; `ends` holds the index in `points` at which each line
    /// ends.
    fn polylines(&mut self, points: &[f32], ends: &[usize]);
    /// Fills a shape; `points` holds x and y of its corners in turn.
    fn polygon(&mut self, points: &[f32]);
    /// Fills a rectangle, given by its left upper corner and its size.
    fn rect(&mut self, x: f32, y: f32, width: f32, height: f32);
    /// Fills a disc around the point (`x`, `y`).
    fn disc(&mut self, x: f32, y: f32, radius: f32);
    /// Writes a text whose middle is at height `y`. `align` is the part of the text at `x`: 0 left end, 1 middle, 2
    /// right end.
    fn text(&mut self, text: &str, x: f32, y: f32, align: u8);
    /// Width of a text in the current font, in device pixels.
    fn measure(&mut self, text: &str) -> f32;
}

/// The state of a canvas between two drawings: the styles that are set on it, lines that wait to be drawn, and widths
/// of texts.
#[derive(Default)]
pub struct Pen {
    fill: Option<(u8, u8, u8, f64)>,
    stroke: Option<((u8, u8, u8, f64), f32)>,
    font: Option<(f32, bool)>,
    widths: HashMap<(u32, bool, String), f32>,
    points: Vec<f32>,
    lines: Vec<f32>,
    ends: Vec<usize>,
}

impl Pen {
    /// Clears the cached styles. Call this before drawing on another canvas, or on a resized one.
    pub fn reset(&mut self) {
        (self.fill, self.stroke, self.font) = (None, None, None);
        self.lines.clear();
        self.ends.clear();
    }

    /// Clears the cached text widths. Call this when the font family has changed.
    pub fn forget_widths(&mut self) {
        self.widths.clear();
    }
}

/// A surface as a plotters backend.
pub struct Canvas<'a, S: Surface> {
    size: (u32, u32),
    inner: RefCell<(&'a mut S, &'a mut Pen)>,
}

impl<'a, S: Surface> Canvas<'a, S> {
    /// Makes the backend of a surface of `width` times `height` device pixels.
    pub fn new(surface: &'a mut S, pen: &'a mut Pen, (width, height): (u32, u32)) -> Self {
        Canvas { size: (width * SUBPIXELS as u32, height * SUBPIXELS as u32), inner: RefCell::new((surface, pen)) }
    }
}

fn px(units: i32) -> f32 {
    units as f32 / SUBPIXELS as f32
}

type Refused = DrawingErrorKind<Infallible>;

impl<S: Surface> Canvas<'_, S> {
    /// Draws the lines that were collected for one stroke.
    fn flush(&mut self) {
        let (surface, pen) = self.inner.get_mut();
        if pen.ends.is_empty() {
            return;
        }
        surface.polylines(&pen.lines, &pen.ends);
        pen.lines.clear();
        pen.ends.clear();
    }

    fn fill(&mut self, color: BackendColor) -> &mut S {
        self.flush();
        let (surface, pen) = self.inner.get_mut();
        let color = (color.rgb.0, color.rgb.1, color.rgb.2, color.alpha);
        if pen.fill != Some(color) {
            pen.fill = Some(color);
            surface.set_fill(color);
        }
        surface
    }

    fn stroke(&mut self, style: &impl BackendStyle) {
        let color = style.color();
        let key =
            ((color.rgb.0, color.rgb.1, color.rgb.2, color.alpha), style.stroke_width() as f32 / SUBPIXELS as f32);
        if self.inner.get_mut().1.stroke != Some(key) {
            self.flush();
            let (surface, pen) = self.inner.get_mut();
            pen.stroke = Some(key);
            surface.set_stroke(key.0, key.1);
        }
    }
}

impl<S: Surface> Drop for Canvas<'_, S> {
    fn drop(&mut self) {
        self.flush();
    }
}

fn set_font<S: Surface>(surface: &mut S, pen: &mut Pen, style: &impl BackendTextStyle) -> (f32, bool) {
    let font = (style.size() as f32 / SUBPIXELS as f32, matches!(style.style(), FontStyle::Bold));
    if pen.font != Some(font) {
        pen.font = Some(font);
        surface.set_font(font.0, font.1);
    }
    font
}

impl<S: Surface> DrawingBackend for Canvas<'_, S> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Result<(), Refused> {
        Ok(())
    }

    fn present(&mut self) -> Result<(), Refused> {
        self.flush();
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, color: BackendColor) -> Result<(), Refused> {
        let unit = 1.0 / SUBPIXELS as f32;
        self.fill(color).rect(px(x), px(y), unit, unit);
        Ok(())
    }

    fn draw_line<T: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &T) -> Result<(), Refused> {
        self.draw_path([from, to], style)
    }

    fn draw_rect<T: BackendStyle>(
        &mut self,
        a: BackendCoord,
        b: BackendCoord,
        style: &T,
        fill: bool,
    ) -> Result<(), Refused> {
        if !fill {
            return self.draw_path([a, (b.0, a.1), b, (a.0, b.1), a], style);
        }
        self.fill(style.color()).rect(px(a.0), px(a.1), px(b.0 - a.0), px(b.1 - a.1));
        Ok(())
    }

    fn draw_path<T: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &T,
    ) -> Result<(), Refused> {
        self.stroke(style);
        let (_, pen) = self.inner.get_mut();
        for (x, y) in path {
            pen.lines.extend([px(x), px(y)]);
        }
        pen.ends.push(pen.lines.len());
        Ok(())
    }

    fn draw_circle<T: BackendStyle>(
        &mut self,
        center: BackendCoord,
        radius: u32,
        style: &T,
        _fill: bool,
    ) -> Result<(), Refused> {
        self.fill(style.color()).disc(px(center.0), px(center.1), radius as f32 / SUBPIXELS as f32);
        Ok(())
    }

    fn fill_polygon<T: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &T,
    ) -> Result<(), Refused> {
        self.fill(style.color());
        let (surface, pen) = self.inner.get_mut();
        pen.points.clear();
        for (x, y) in path {
            pen.points.extend([px(x), px(y)]);
        }
        surface.polygon(&pen.points);
        Ok(())
    }

    fn draw_text<T: BackendTextStyle>(&mut self, text: &str, style: &T, pos: BackendCoord) -> Result<(), Refused> {
        self.fill(style.color());
        let (surface, pen) = self.inner.get_mut();
        set_font(*surface, pen, style);
        let align = match style.anchor().h_pos {
            HPos::Left => 0,
            HPos::Center => 1,
            HPos::Right => 2,
        };
        let lift = match style.anchor().v_pos {
            VPos::Top => style.size() / 2.0,
            VPos::Center => 0.0,
            VPos::Bottom => -style.size() / 2.0,
        };
        surface.text(text, px(pos.0), px(pos.1) + lift as f32 / SUBPIXELS as f32, align);
        Ok(())
    }

    fn estimate_text_size<T: BackendTextStyle>(&self, text: &str, style: &T) -> Result<(u32, u32), Refused> {
        let inner = &mut *self.inner.borrow_mut();
        let (surface, pen) = (&mut *inner.0, &mut *inner.1);
        let (size, bold) = set_font(surface, pen, style);
        let key = (size.to_bits(), bold, text.to_string());
        let width = match pen.widths.get(&key) {
            Some(width) => *width,
            None => {
                let width = surface.measure(text);
                if pen.widths.len() >= MAX_CACHED_WIDTHS {
                    pen.widths.clear();
                }
                pen.widths.insert(key, width);
                width
            }
        };
        Ok(((width * SUBPIXELS as f32).ceil() as u32, style.size().ceil() as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plotters::prelude::*;

    /// A surface that records each call.
    #[derive(Default)]
    struct Notes(Vec<String>);

    impl Surface for Notes {
        fn set_fill(&mut self, (r, g, b, a): (u8, u8, u8, f64)) {
            self.0.push(format!("fill {r} {g} {b} {a}"));
        }
        fn set_stroke(&mut self, _: (u8, u8, u8, f64), width: f32) {
            self.0.push(format!("stroke {width}"));
        }
        fn set_font(&mut self, size: f32, bold: bool) {
            self.0.push(format!("font {size} {bold}"));
        }
        fn polylines(&mut self, points: &[f32], ends: &[usize]) {
            self.0.push(format!("lines {points:?} {ends:?}"));
        }
        fn polygon(&mut self, points: &[f32]) {
            self.0.push(format!("shape {points:?}"));
        }
        fn rect(&mut self, x: f32, y: f32, w: f32, h: f32) {
            self.0.push(format!("rect {x} {y} {w} {h}"));
        }
        fn disc(&mut self, x: f32, y: f32, r: f32) {
            self.0.push(format!("disc {x} {y} {r}"));
        }
        fn text(&mut self, text: &str, x: f32, y: f32, align: u8) {
            self.0.push(format!("text {text} {x} {y} {align}"));
        }
        fn measure(&mut self, text: &str) -> f32 {
            self.0.push(format!("measure {text}"));
            text.len() as f32 * 6.5
        }
    }

    #[test]
    fn lines_of_a_style_go_over_in_one_stroke_and_in_quarter_pixels() {
        let (mut notes, mut pen) = (Notes::default(), Pen::default());
        {
            let area = Canvas::new(&mut notes, &mut pen, (100, 50)).into_drawing_area();
            assert_eq!(area.dim_in_pixel(), (400, 200));
            let style = ShapeStyle { color: RED.to_rgba(), filled: false, stroke_width: 6 };
            area.draw(&PathElement::new(vec![(0, 0), (6, 9), (10, 0)], style)).unwrap();
            area.draw(&PathElement::new(vec![(0, 0), (4, 4)], style)).unwrap();
        }
        let lines = "lines [0.0, 0.0, 1.5, 2.25, 2.5, 0.0, 0.0, 0.0, 1.0, 1.0] [6, 10]";
        assert_eq!(notes.0, ["stroke 1.5", lines]);
    }

    #[test]
    fn a_text_is_measured_once() {
        let (mut notes, mut pen) = (Notes::default(), Pen::default());
        for _ in 0..2 {
            let area = Canvas::new(&mut notes, &mut pen, (100, 50)).into_drawing_area();
            let style = TextStyle::from(("sans-serif", 48).into_font());
            assert_eq!(area.estimate_text_size("14:02", &style).unwrap().0, 130);
        }
        assert_eq!(notes.0, ["font 12 false", "measure 14:02"]);
    }
}

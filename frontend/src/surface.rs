//! The surface of all drawings: pixels in memory, or SVG text. Both are one type, so that the code of each drawing is
//! in the page only once.
//!
//! Letters come from the browser. A text is drawn once on a canvas that is not in the document. The result is kept as a
//! mask with the coverage of each pixel, so that a text which is shown each second is drawn only once.

use charts::canvas::Surface;
use charts::raster::{Color, Mask, Raster};
use charts::svg::Svg;
use std::collections::HashMap;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement};

/// Maximum size of all cached masks, in bytes.
const MAX_MASK_BYTES: usize = 4 << 20;
/// Free pixels around a text in its mask, because letters can reach beyond their box.
const TEXT_MARGIN_PX: u32 = 2;

/// A text that the browser has drawn.
struct Cut {
    mask: Mask,
    width: f32,
}

/// The key of a drawn text: size, weight, color, and the offset below a whole pixel in quarters of a pixel. The color
/// counts, because browsers draw bright letters thinner.
type Style = (u32, bool, [u8; 3], u8);

/// The surface of a drawing, with the font of its texts.
pub struct CanvasSurface {
    /// The picture in memory.
    pub raster: Raster,
    /// The SVG text. While it is there, calls are written to it and the picture does not change.
    pub svg: Option<Svg>,
    /// Font family of the page, as CSS has it.
    family: String,
    fill: Color,
    stroke: (Color, f32),
    font: (f32, bool),
    context: CanvasRenderingContext2d,
    /// Size and weight that the context has now; None when they must be set.
    set: Option<(f32, bool)>,
    size: (u32, u32),
    cuts: HashMap<Style, HashMap<String, Cut>>,
    bytes: usize,
}

/// The drawing context of a canvas; None when the browser gives no context.
pub fn context(canvas: &HtmlCanvasElement) -> Option<CanvasRenderingContext2d> {
    let options = js_sys::Object::new();
    // This option keeps the canvas in memory. Without it each picture would travel to another process and back.
    js_sys::Reflect::set(&options, &"willReadFrequently".into(), &JsValue::TRUE).ok()?;
    canvas.get_context_with_context_options("2d", &options).ok()??.dyn_into().ok()
}

impl CanvasSurface {
    /// Makes a surface that lets the browser draw letters on `canvas`, which is not in the document.
    pub fn new(canvas: &HtmlCanvasElement) -> Option<Self> {
        let none = (0, 0, 0, 1.0);
        Some(CanvasSurface {
            raster: Raster::default(),
            svg: None,
            family: String::new(),
            fill: none,
            stroke: (none, 1.0),
            font: (0.0, false),
            context: context(canvas)?,
            set: None,
            size: (0, 0),
            cuts: HashMap::new(),
            bytes: 0,
        })
    }

    /// Sets the font family; true when this is a change.
    pub fn family(&mut self, family: &str) -> bool {
        if self.family == family {
            return false;
        }
        self.family = family.to_string();
        self.set = None;
        self.forget();
        true
    }

    fn forget(&mut self) {
        self.cuts.clear();
        self.bytes = 0;
    }

    /// Sets the current font on the context, if it is another.
    fn type_in(&mut self) {
        if self.set != Some(self.font) {
            self.set = Some(self.font);
            let weight = if self.font.1 { 500 } else { 400 };
            self.context.set_font(&format!("{weight} {:.1}px {}", self.font.0, self.family));
            self.context.set_text_baseline("middle");
        }
    }

    /// Lets the browser draw a text whose middle is `quarters` quarters of a pixel below a whole pixel.
    fn cut(&mut self, text: &str, quarters: u8) -> Option<Cut> {
        let width = self.measure(text);
        let size = (width.ceil() as u32 + 2 * TEXT_MARGIN_PX, 2 * self.reach());
        if size.0 > self.size.0 || size.1 > self.size.1 {
            self.size = (size.0.max(self.size.0), size.1.max(self.size.1));
            let canvas = self.context.canvas()?;
            canvas.set_width(self.size.0);
            canvas.set_height(self.size.1);
            self.set = None;
        }
        self.type_in();
        let (w, h) = (f64::from(size.0), f64::from(size.1));
        self.context.clear_rect(0.0, 0.0, w, h);
        let (r, g, b, _) = self.fill;
        self.context.set_fill_style_str(&format!("rgb({r},{g},{b})"));
        self.context.fill_text(text, f64::from(TEXT_MARGIN_PX), h / 2.0 + f64::from(quarters) / 4.0).ok()?;
        let data = self.context.get_image_data(0.0, 0.0, w, h).ok()?.data();
        let cover = data.iter().skip(3).step_by(4).copied().collect();
        Some(Cut { mask: Mask { width: size.0 as usize, cover }, width })
    }

    /// Pixels from the middle of a text to the upper and lower edge of its mask.
    fn reach(&self) -> u32 {
        (self.font.0 * 0.8).ceil() as u32
    }
}

impl Surface for CanvasSurface {
    fn set_fill(&mut self, color: Color) {
        self.fill = color;
        if let Some(svg) = &mut self.svg {
            svg.set_fill(color);
        }
    }

    fn set_stroke(&mut self, color: Color, width: f32) {
        self.stroke = (color, width);
        if let Some(svg) = &mut self.svg {
            svg.set_stroke(color, width);
        }
    }

    fn set_font(&mut self, size: f32, bold: bool) {
        self.font = (size, bold);
        if let Some(svg) = &mut self.svg {
            svg.set_font(size, bold);
        }
    }

    fn polylines(&mut self, points: &[f32], ends: &[usize]) {
        match &mut self.svg {
            Some(svg) => svg.polylines(points, ends),
            None => self.raster.polylines(points, ends, self.stroke.1, self.stroke.0),
        }
    }

    fn polygon(&mut self, points: &[f32]) {
        match &mut self.svg {
            Some(svg) => svg.polygon(points),
            None => self.raster.polygon(points, self.fill),
        }
    }

    fn rect(&mut self, x: f32, y: f32, width: f32, height: f32) {
        match &mut self.svg {
            Some(svg) => svg.rect(x, y, width, height),
            None => self.raster.rect(x, y, width, height, self.fill),
        }
    }

    fn disc(&mut self, x: f32, y: f32, radius: f32) {
        match &mut self.svg {
            Some(svg) => svg.disc(x, y, radius),
            None => self.raster.disc(x, y, radius, self.fill),
        }
    }

    fn text(&mut self, text: &str, x: f32, y: f32, align: u8) {
        if let Some(svg) = &mut self.svg {
            return svg.text(text, x, y, align);
        }
        // Texts are moved down by half a pixel, because the middle of digits is above the middle of their box.
        let y = y + 0.5;
        let quarters = ((y - y.floor()) * 4.0) as u8;
        let style = (self.font.0.to_bits(), self.font.1, [self.fill.0, self.fill.1, self.fill.2], quarters);
        if !self.cuts.get(&style).is_some_and(|texts| texts.contains_key(text)) {
            let Some(cut) = self.cut(text, quarters) else { return };
            let more = cut.mask.cover.len() + text.len();
            if self.bytes + more > MAX_MASK_BYTES {
                self.forget();
            }
            self.bytes += more;
            self.cuts.entry(style).or_default().insert(text.to_string(), cut);
        }
        let reach = self.reach() as i32;
        let Some(cut) = self.cuts.get(&style).and_then(|texts| texts.get(text)) else { return };
        let left = x - cut.width * [0.0, 0.5, 1.0][usize::from(align.min(2))];
        // Texts are placed on whole pixels, like the text of the page.
        let place = (left.round() as i32 - TEXT_MARGIN_PX as i32, y.floor() as i32 - reach);
        self.raster.mask(&cut.mask, place.0, place.1, self.fill);
    }

    fn measure(&mut self, text: &str) -> f32 {
        self.type_in();
        self.context.measure_text(text).map_or(0.0, |m| m.width() as f32)
    }
}

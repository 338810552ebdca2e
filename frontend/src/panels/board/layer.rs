//! The surfaces of the board: canvases, and elements whose text changes.
//!
//! All pictures are drawn in the same memory, one after the other. Each is then copied to its canvas by one call or a
//! few.

use crate::browser;
use crate::surface::{CanvasSurface, context};
use charts::canvas::{Canvas, Pen, SUBPIXELS};
use charts::raster::{PixelRect, Raster};
use charts::svg::Svg;
use charts::{Theme, into_area};
use std::cell::RefCell;
use wasm_bindgen::Clamped;
use web_sys::{CanvasRenderingContext2d, Element, HtmlCanvasElement, ImageData};

/// The memory and the tools that all layers share.
struct Easel {
    surface: CanvasSurface,
    pen: Pen,
    /// The second picture, which is not in use now. One picture is for opaque grounds and one for transparent grounds,
    /// so that only the drawn parts must be wiped.
    other: Raster,
}

thread_local! {
    /// The shared easel, made with the first picture.
    static EASEL: RefCell<Option<Easel>> = const { RefCell::new(None) };
}

impl Easel {
    fn new() -> Option<Self> {
        Some(Easel { surface: CanvasSurface::new(&browser::canvas()?)?, pen: Pen::default(), other: Raster::default() })
    }
}

/// A canvas, and the state of the drawing on it.
pub struct Layer {
    /// The canvas element.
    pub canvas: HtmlCanvasElement,
    context: CanvasRenderingContext2d,
    family: String,
    svg: Option<Svg>,
    size: (u32, u32),
    /// The color of the ground on the canvas, and the parts that show something else.
    shown: ([u8; 4], Vec<PixelRect>),
}

impl Layer {
    /// Makes a layer on a canvas element; None when the browser gives no context.
    pub fn new(canvas: HtmlCanvasElement) -> Option<Self> {
        let context = context(&canvas)?;
        Some(Layer { canvas, context, family: "sans-serif".into(), svg: None, size: (0, 0), shown: Default::default() })
    }

    /// Takes the size from the page: the canvas gets one pixel for each device pixel. `dpr` is the number of device
    /// pixels in a CSS pixel, `family` the CSS font family. Returns true when the layer must be drawn again.
    pub fn fit(&mut self, dpr: f64, family: &str) -> bool {
        let place = self.canvas.get_bounding_client_rect();
        let size = ((place.width() * dpr).round() as u32, (place.height() * dpr).round() as u32);
        let other = size != self.size || self.family != family;
        if size != self.size {
            self.resize(size);
        }
        self.family = family.to_string();
        other
    }

    fn resize(&mut self, size: (u32, u32)) {
        self.size = size;
        self.canvas.set_width(size.0);
        self.canvas.set_height(size.1);
        self.shown = Default::default();
    }

    /// Makes a layer with a size in device pixels on a canvas that is not in the document. With `svg` it writes SVG
    /// text and does not draw.
    pub fn apart(canvas: HtmlCanvasElement, size: (u32, u32), family: &str, svg: bool) -> Option<Self> {
        let mut layer = Layer::new(canvas)?;
        layer.family = family.to_string();
        layer.size = size;
        if svg {
            layer.svg = Some(Svg::new(size, family));
        } else {
            layer.resize(size);
        }
        Some(layer)
    }

    /// Takes the SVG text; None when the layer draws pixels.
    pub fn written(&mut self) -> Option<String> {
        self.svg.take().map(Svg::finish)
    }

    /// Width and height in the units of the backend.
    pub fn units(&self) -> (i32, i32) {
        (self.size.0 as i32 * SUBPIXELS, self.size.1 as i32 * SUBPIXELS)
    }

    /// Draws on the card color of a theme, or on a transparent ground for None. The old picture is replaced. Returns
    /// None when the canvas is empty or the browser gives no context.
    pub fn draw<T>(
        &mut self,
        ground: Option<&Theme>,
        draw: impl FnOnce(&charts::Area<Canvas<'_, CanvasSurface>>) -> T,
    ) -> Option<T> {
        if self.size.0 == 0 || self.size.1 == 0 {
            return None;
        }
        EASEL.with_borrow_mut(|easel| {
            if easel.is_none() {
                *easel = Easel::new();
            }
            let Easel { surface, pen, other } = easel.as_mut()?;
            pen.reset();
            if surface.family(&self.family) {
                pen.forget_widths();
            }
            surface.svg = self.svg.take();
            if surface.raster.has_ground() != ground.is_some() {
                std::mem::swap(&mut surface.raster, other);
            }
            if surface.svg.is_none() {
                surface.raster.wipe(self.size, ground);
            }
            let drawn = draw(&into_area(Canvas::new(surface, pen, self.size)));
            self.svg = surface.svg.take();
            if self.svg.is_none() {
                self.show(&mut surface.raster);
            }
            Some(drawn)
        })
    }

    /// Copies the picture to the canvas: only the parts that differ from the ground now or differed before.
    fn show(&mut self, raster: &mut Raster) {
        let parts = raster.parts();
        let mut put = parts.clone();
        if !raster.has_ground() {
            parts.iter().for_each(|part| raster.straighten(*part));
        }
        let (ground, before) = std::mem::replace(&mut self.shown, (raster.ground(), parts));
        if ground == raster.ground() {
            put = join(put, before);
        } else {
            put = vec![(0, 0, self.size.0, self.size.1)];
        }
        // The pixels are borrowed memory, which does not grow during the calls. Their number fits the picture's size,
        // so this does not fail.
        let Ok(image) = ImageData::new_with_u8_clamped_array(Clamped(raster.bytes()), self.size.0) else { return };
        for (left, top, right, bottom) in put {
            let [x, y, width, height] = [left, top, right - left, bottom - top].map(f64::from);
            // This fails only for an image whose memory is gone.
            let _ = self.context.put_image_data_with_dirty_x_and_dirty_y_and_dirty_width_and_dirty_height(
                &image, 0.0, 0.0, x, y, width, height,
            );
        }
    }
}

/// Rectangles that cover both lists. A rectangle of the second list is merged into one of the first with which it
/// shares columns.
fn join(mut parts: Vec<PixelRect>, more: Vec<PixelRect>) -> Vec<PixelRect> {
    for b in more {
        match parts.iter_mut().find(|a| a.0 < b.2 && b.0 < a.2) {
            Some(a) => *a = (a.0.min(b.0), a.1.min(b.1), a.2.max(b.2), a.3.max(b.3)),
            None => parts.push(b),
        }
    }
    parts
}

/// An element whose text is set only when it changes. Such a text is a part of a drawing: it is made of samples, which
/// are never signals, and the board writes those of all panels of a frame in one pass.
pub struct Words {
    element: Element,
    text: String,
}

impl Words {
    /// Finds the element by a selector below `root`; None when there is none.
    pub fn find(root: &Element, selector: &str) -> Option<Self> {
        let element = root.query_selector(selector).ok()??;
        Some(Words { element, text: String::new() })
    }

    /// Adds a class to the element (`on`), or removes it.
    pub fn mark(&self, class: &str, on: bool) {
        let list = self.element.class_list();
        if list.contains(class) != on {
            // This fails only for an empty class.
            let _ = list.toggle(class);
        }
    }

    /// Sets a property of the element's style.
    pub fn style(&self, name: &str, value: &str) {
        browser::set_style(&self.element, name, value);
    }

    /// Sets the text of the element.
    pub fn set(&mut self, text: &str) {
        if self.text != text {
            self.text = text.to_string();
            self.element.set_text_content(Some(text));
        }
    }
}

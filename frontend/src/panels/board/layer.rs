//! What the board draws on: canvases, and elements whose text changes.
//!
//! Every picture is made in the same memory, one after the other, and shown on its canvas by one call or a few.

use crate::browser;
use crate::surface::{CanvasSurface, context};
use charts::canvas::{Canvas, Pen, SUBPIXELS};
use charts::raster::{Part, Raster};
use charts::svg::Svg;
use charts::{Theme, into_area};
use std::cell::RefCell;
use wasm_bindgen::Clamped;
use web_sys::{CanvasRenderingContext2d, Element, HtmlCanvasElement, ImageData};

/// What is shared by all layers.
struct Easel {
    surface: CanvasSurface,
    pen: Pen,
    /// The picture that is not in use: of two, so that each keeps its ground, and what was drawn alone is wiped.
    other: Raster,
}

thread_local! {
    /// Made when the first picture is.
    static EASEL: RefCell<Option<Easel>> = const { RefCell::new(None) };
}

impl Easel {
    fn new() -> Option<Self> {
        Some(Easel { surface: CanvasSurface::new(&browser::canvas()?)?, pen: Pen::default(), other: Raster::default() })
    }
}

/// A canvas, and what is drawn on it.
pub struct Layer {
    /// The element.
    pub canvas: HtmlCanvasElement,
    context: CanvasRenderingContext2d,
    family: String,
    svg: Option<Svg>,
    size: (u32, u32),
    /// The colour of its ground, and where there is something else.
    shown: ([u8; 4], Vec<Part>),
}

impl Layer {
    /// A layer on a canvas element; none when the browser gives no context.
    pub fn new(canvas: HtmlCanvasElement) -> Option<Self> {
        let context = context(&canvas)?;
        Some(Layer { canvas, context, family: "sans-serif".into(), svg: None, size: (0, 0), shown: Default::default() })
    }

    /// Takes its size from the page: the canvas gets one pixel per device pixel. True when it must be drawn anew.
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

    /// A layer of so many device pixels on a canvas that stands nowhere; `svg` writes text in place of drawing.
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

    /// The text that was written in place of drawing.
    pub fn written(&mut self) -> Option<String> {
        self.svg.take().map(Svg::finish)
    }

    /// Width and height in units.
    pub fn units(&self) -> (i32, i32) {
        (self.size.0 as i32 * SUBPIXELS, self.size.1 as i32 * SUBPIXELS)
    }

    /// Draws on the card of a theme, or on nothing; what was there before is gone.
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

    /// Puts the picture on the canvas: what differs from its ground now or did before.
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
        // The memory that it views does not grow meanwhile. Its length is that of the picture, which is all that is asked.
        let Ok(image) = ImageData::new_with_u8_clamped_array(Clamped(raster.bytes()), self.size.0) else { return };
        for (left, top, right, bottom) in put {
            let [x, y, width, height] = [left, top, right - left, bottom - top].map(f64::from);
            // Only an image without memory is refused.
            let _ = self.context.put_image_data_with_dirty_x_and_dirty_y_and_dirty_width_and_dirty_height(
                &image, 0.0, 0.0, x, y, width, height,
            );
        }
    }
}

/// Rectangles that hold those of two lists: those of the second that meet one of the first are one with it.
fn join(mut parts: Vec<Part>, more: Vec<Part>) -> Vec<Part> {
    for b in more {
        match parts.iter_mut().find(|a| a.0 < b.2 && b.0 < a.2) {
            Some(a) => *a = (a.0.min(b.0), a.1.min(b.1), a.2.max(b.2), a.3.max(b.3)),
            None => parts.push(b),
        }
    }
    parts
}

/// An element whose text is set only when it is another.
pub struct Words {
    element: Element,
    text: String,
}

impl Words {
    /// The element at a selector below another.
    pub fn find(root: &Element, selector: &str) -> Option<Self> {
        let element = root.query_selector(selector).ok()??;
        Some(Words { element, text: String::new() })
    }

    /// Has a class, or has it not.
    pub fn mark(&self, class: &str, on: bool) {
        let list = self.element.class_list();
        if list.contains(class) != on {
            // Only an empty class is refused.
            let _ = list.toggle(class);
        }
    }

    /// Sets the text.
    pub fn set(&mut self, text: &str) {
        if self.text != text {
            self.text = text.to_string();
            self.element.set_text_content(Some(text));
        }
    }
}

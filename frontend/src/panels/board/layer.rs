//! What the board draws on: canvases, and elements whose text changes.
//!
//! Every picture is made in the same memory, one after the other, and shown on its canvas by one call or a few.

use crate::surface::{CanvasSurface, context};
use crate::widgets::dom;
use charts::canvas::{Canvas, Pen, SUBPIXELS};
use charts::raster::Part;
use charts::svg::Svg;
use charts::{Theme, into_area};
use std::cell::RefCell;
use wasm_bindgen::{Clamped, JsCast};
use web_sys::{CanvasRenderingContext2d, Element, HtmlCanvasElement, ImageData};

/// What is shared by all layers.
struct Easel {
    surface: CanvasSurface,
    pen: Pen,
}

thread_local! {
    /// Made when the first picture is.
    static EASEL: RefCell<Option<Easel>> = const { RefCell::new(None) };
}

impl Easel {
    fn new() -> Option<Self> {
        let canvas = dom::document().create_element("canvas").ok()?.dyn_into().ok()?;
        Some(Easel { surface: CanvasSurface::new(&canvas)?, pen: Pen::default() })
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
    /// Where there is something, on a transparent ground.
    parts: Vec<Part>,
}

impl Layer {
    /// A layer on a canvas element; none when the browser gives no context.
    pub fn new(canvas: HtmlCanvasElement) -> Option<Self> {
        let context = context(&canvas)?;
        Some(Layer { canvas, context, family: "sans-serif".into(), svg: None, size: (0, 0), parts: Vec::new() })
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
        self.parts.clear();
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
            let Easel { surface, pen } = easel.as_mut()?;
            pen.reset();
            if surface.family(&self.family) {
                pen.forget_widths();
            }
            surface.svg = self.svg.take();
            if surface.svg.is_none() {
                surface.raster.wipe(self.size, ground);
            }
            let drawn = draw(&into_area(Canvas::new(surface, pen, self.size)));
            self.svg = surface.svg.take();
            if self.svg.is_none() {
                self.show(surface, ground.is_some());
            }
            Some(drawn)
        })
    }

    /// Puts the picture on the canvas: all of it, or what differs from nothing now or did before.
    fn show(&mut self, surface: &mut CanvasSurface, whole: bool) {
        let raster = &mut surface.raster;
        let mut parts = if whole { vec![(0, 0, self.size.0, self.size.1)] } else { raster.parts() };
        if !whole {
            parts.iter().for_each(|part| raster.straighten(*part));
            let before = std::mem::replace(&mut self.parts, parts.clone());
            parts.extend(before);
        }
        // The memory that it views must not grow meanwhile. Its length is that of the picture, which is all that is asked.
        let Ok(image) = ImageData::new_with_u8_clamped_array(Clamped(raster.bytes()), self.size.0) else { return };
        for (left, top, right, bottom) in parts {
            let [x, y, width, height] = [left, top, right - left, bottom - top].map(f64::from);
            // Only an image without memory is refused.
            let _ = self.context.put_image_data_with_dirty_x_and_dirty_y_and_dirty_width_and_dirty_height(
                &image, 0.0, 0.0, x, y, width, height,
            );
        }
    }
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

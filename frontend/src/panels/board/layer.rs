//! What the board draws on: canvases, and elements whose text changes.

use crate::surface::CanvasSurface;
use charts::canvas::{Canvas, Pen, SUBPIXELS};
use charts::into_area;
use charts::svg::Svg;
use wasm_bindgen::JsCast;
use web_sys::{CanvasRenderingContext2d, Element, HtmlCanvasElement};

/// A canvas with what is set on it.
pub struct Layer {
    /// The element.
    pub canvas: HtmlCanvasElement,
    surface: CanvasSurface,
    pen: Pen,
    size: (u32, u32),
}

impl Layer {
    /// A layer on a canvas element; none when the browser gives no context.
    pub fn new(canvas: HtmlCanvasElement) -> Option<Self> {
        let context = canvas.get_context("2d").ok()??.dyn_into::<CanvasRenderingContext2d>().ok()?;
        let surface = CanvasSurface { context, family: "sans-serif".into(), svg: None };
        Some(Layer { canvas, surface, pen: Pen::default(), size: (0, 0) })
    }

    /// Takes its size from the page: the canvas gets one pixel per device pixel. True when it must be drawn anew.
    pub fn fit(&mut self, dpr: f64, family: &str) -> bool {
        let place = self.canvas.get_bounding_client_rect();
        let size = ((place.width() * dpr).round() as u32, (place.height() * dpr).round() as u32);
        let other = size != self.size || self.surface.family != family;
        if size != self.size {
            self.size = size;
            self.canvas.set_width(size.0);
            self.canvas.set_height(size.1);
            self.pen.reset();
        }
        if self.surface.family != family {
            self.surface.family = family.to_string();
            self.pen.reset();
            self.pen.forget_widths();
        }
        other
    }

    /// A layer of so many device pixels on a canvas that stands nowhere; `svg` writes text in place of drawing.
    pub fn apart(canvas: HtmlCanvasElement, size: (u32, u32), family: &str, svg: bool) -> Option<Self> {
        let mut layer = Layer::new(canvas)?;
        layer.size = size;
        layer.surface.family = family.to_string();
        layer.surface.svg = svg.then(|| Svg::new(size, family));
        if !svg {
            layer.canvas.set_width(size.0);
            layer.canvas.set_height(size.1);
        }
        Some(layer)
    }

    /// The text that was written in place of drawing.
    pub fn written(&mut self) -> Option<String> {
        self.surface.svg.take().map(Svg::finish)
    }

    /// Width and height in units.
    pub fn units(&self) -> (i32, i32) {
        (self.size.0 as i32 * SUBPIXELS, self.size.1 as i32 * SUBPIXELS)
    }

    /// Wipes it and draws.
    pub fn draw<T>(&mut self, draw: impl FnOnce(&charts::Area<Canvas<'_, CanvasSurface>>) -> T) -> Option<T> {
        if self.size.0 == 0 || self.size.1 == 0 {
            return None;
        }
        self.surface.context.clear_rect(0.0, 0.0, f64::from(self.size.0), f64::from(self.size.1));
        Some(draw(&into_area(Canvas::new(&mut self.surface, &mut self.pen, self.size))))
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

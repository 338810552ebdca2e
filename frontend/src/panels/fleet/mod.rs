//! Drawings of many machines: the [`map`], small lines of tiles ([`spark`]), and [`lines`], a chart with a line for
//! each machine. Each has its own canvas and is drawn in the frame in which its data changed.

pub mod lines;
pub mod map;
pub mod spark;

use super::board::layer::Layer;
use super::board::measures;
use super::theme::theme;
use crate::browser::window;
use crate::state::Page;
use charts::canvas::SUBPIXELS;
use charts::{Measures, Theme};
use leptos::html::Canvas;
use leptos::prelude::*;

/// Present settings for drawing a canvas.
pub struct Brush {
    /// Colors of the theme.
    pub theme: &'static Theme,
    /// Measures in CSS pixels.
    pub measures: Measures,
    /// Device pixels in a CSS pixel.
    pub dpr: f64,
    /// Font family of the page.
    pub family: String,
}

impl Brush {
    /// Reads theme, measures and font from the page.
    pub fn new(page: Page) -> Self {
        let (measures, family) = measures();
        let theme = theme(page.tone.get_untracked());
        Brush { theme, measures, dpr: window().device_pixel_ratio(), family }
    }

    /// Units of a drawing in a CSS pixel.
    pub fn css(&self) -> f64 {
        self.dpr * f64::from(SUBPIXELS)
    }

    /// Units of a drawing in a device pixel.
    pub fn device(&self) -> f64 {
        f64::from(SUBPIXELS)
    }
}

/// Draws on a canvas with each frame that the page requests, as long as the calling component exists.
pub fn follow(page: Page, canvas: NodeRef<Canvas>, mut draw: impl FnMut(&mut Layer, &Brush) + 'static) {
    let layer = StoredValue::new_local(None::<Layer>);
    canvas.on_load(move |canvas| {
        layer.set_value(Layer::new(canvas));
        page.redraw();
    });
    let resized = window_event_listener(leptos::ev::resize, move |_| page.redraw());
    let gone = StoredValue::new(false);
    let draw = StoredValue::new_local(move |layer: &mut Layer, brush: &Brush| draw(layer, brush));
    let paint = move || {
        if gone.try_get_value() != Some(false) {
            return;
        }
        layer.try_update_value(|layer| {
            let Some(layer) = layer else { return };
            let brush = Brush::new(page);
            layer.fit(brush.dpr, &brush.family);
            draw.try_update_value(|draw| draw(layer, &brush));
        });
    };
    // The printer takes its picture before the next frame.
    let before = window_event_listener_untyped("beforeprint", move |_| paint());
    let after = window_event_listener_untyped("afterprint", move |_| page.redraw());
    on_cleanup(move || {
        gone.set_value(true);
        [resized, before, after].into_iter().for_each(|handle| handle.remove());
    });
    Effect::new(move || {
        page.frame.track();
        request_animation_frame(paint);
    });
}

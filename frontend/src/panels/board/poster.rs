//! A panel by itself, for saving: in the theme of the page, and wide enough for full names.

use super::Board;
use super::layer::Layer;
use super::view::{Data, Poster};
use crate::browser;
use charts::Measures;
use charts::canvas::SUBPIXELS;
use charts::poster::TITLE_HEIGHT_PX;
use leptos::prelude::*;
use viewer::picture::Look;

/// Width of the picture in CSS pixels.
const POSTER_WIDTH_PX: f64 = 960.0;
/// Device pixels of a bitmap in one CSS pixel.
const POSTER_SCALE: u32 = 2;

impl Board {
    /// Draws a panel with its title, labels and a line of text (`words`: machine and span), as a bitmap or, with `svg`,
    /// as SVG text. Returns None when there is no such panel.
    pub fn poster(self, id: &str, words: &str, svg: bool) -> Option<Layer> {
        let page = self.page;
        let mut drawn = self.drawn.write_value();
        let look = drawn.make_look(page);
        let family = drawn.measured.as_ref()?.1.clone();
        let at = page.hover.with_value(|h| h.as_ref().map(|h| h.t));
        let store = page.store.read_value();
        let view = page.view_now();
        let source = store.source(view.source.as_deref());
        let beside = super::follow(page, &look);
        let data = Data { store: &store, source, beside: beside.as_ref().map(|beside| super::under(beside, source)) };
        let panel = drawn.panels.iter_mut().find(|p| p.id == id)?;
        let scale = if svg { 1 } else { POSTER_SCALE };
        let measures = Measures { text: 12.0, left: 48.0, right: 140.0, line: 1.5 };
        let (css, device) = (f64::from(scale as i32 * SUBPIXELS), f64::from(SUBPIXELS));
        let look = Look { css, device, measures, live: false, frozen: true, ..look };
        let at = at.map(|t| panel.picture.snap(t).unwrap_or(t));
        let size = (POSTER_WIDTH_PX as u32 * scale, (panel.height() + TITLE_HEIGHT_PX) as u32 * scale);
        let mut layer = Layer::apart(browser::canvas()?, size, &family, svg)?;
        panel.poster(&data, &view, &look, Poster { layer: &mut layer, words: words.to_string(), at });
        drop((beside, store, drawn));
        page.redraw();
        Some(layer)
    }
}

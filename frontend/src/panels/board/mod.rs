//! All panels and tiles that are on the page, and the one place where they are drawn: at most once a frame, panels in
//! view only, and texts only where they changed.
//!
//! [`view`] one panel; [`layer`] its canvases and words; [`measures`] lengths from the stylesheet;
//! [`poster`] a panel by itself, to be taken away.

pub mod layer;
mod measures;
pub mod poster;
pub mod view;

use super::crosshair::{self, Hover, Tip};
use super::picture::Look;
use super::roving;
use super::tiles::TileView;
use crate::address::Tone;
use crate::page::{LinkState, Page, browser, offset, performance};
use crate::range;
use charts::canvas::SUBPIXELS;
use charts::{Measures, theme};
use leptos::prelude::*;
use measures::measures;
use view::PanelView;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;
use web_sys::{Element, HtmlCanvasElement};

/// Everything that is drawn.
#[derive(Default)]
pub struct Board {
    /// Panels in the order in which they came.
    pub panels: Vec<PanelView>,
    /// Tiles likewise.
    pub tiles: Vec<TileView>,
    /// The instant that all charts show.
    pub hover: Option<Hover>,
    /// What the tooltip says.
    pub tip: Option<Tip>,
    /// The series that has the attention: panel and position.
    pub focus: Option<(String, usize)>,
    /// Whether what the tooltip says next is to be heard: keys moved it.
    pub speak: bool,
    observer: Option<web_sys::IntersectionObserver>,
    sizes: Option<web_sys::ResizeObserver>,
    page: Option<(Measures, String, f64)>,
    over_scheduled: bool,
    typed: bool,
    /// What is drawn now is for paper.
    paper: bool,
    /// Milliseconds that the last full drawing took, and how many there were.
    pub took: (f64, u32),
}

impl Board {
    /// Takes a panel on.
    pub fn add(page: Page, id: String, wide: bool, article: Element) {
        let Some(view) = PanelView::new(id, wide, article) else { return };
        {
            let mut board = page.board.borrow_mut();
            board.observe(page, &view.article);
            board.watch_size(page, &view.base.canvas);
            board.panels.push(view);
        }
        roving::settle();
        page.redraw();
    }

    /// Lets a panel go.
    pub fn remove(page: Page, id: &str) {
        let mut board = page.board.borrow_mut();
        if let Some(i) = board.panels.iter().position(|p| p.id == id) {
            let view = board.panels.remove(i);
            if let Some(observer) = &board.observer {
                observer.unobserve(&view.article);
            }
            if let Some(sizes) = &board.sizes {
                sizes.unobserve(&view.base.canvas);
            }
        }
        roving::settle();
    }

    /// Takes a tile on.
    pub fn add_tile(page: Page, tile: TileView) {
        {
            let mut board = page.board.borrow_mut();
            board.watch_size(page, &tile.layer.canvas);
            board.tiles.push(tile);
        }
        page.redraw();
    }

    /// A canvas changes its size without the window: a scroll bar comes, a number beside it gets longer.
    fn watch_size(&mut self, page: Page, canvas: &HtmlCanvasElement) {
        self.page = None;
        let sizes = self.sizes.get_or_insert_with(|| {
            let changed = Closure::<dyn FnMut()>::new(move || Board::resized(page));
            // Kept for the life of the page, as the observer is.
            let callback: js_sys::Function = changed.into_js_value().unchecked_into();
            web_sys::ResizeObserver::new(&callback).expect("a function is a callback")
        });
        sizes.observe(canvas);
    }

    fn observe(&mut self, page: Page, article: &Element) {
        let observer = self.observer.get_or_insert_with(|| {
            let seen = Closure::<dyn FnMut(js_sys::Array)>::new(move |entries: js_sys::Array| {
                for entry in entries.iter().filter_map(|e| e.dyn_into::<web_sys::IntersectionObserverEntry>().ok()) {
                    let id = entry.target().get_attribute("data-panel").unwrap_or_default();
                    let mut board = page.board.borrow_mut();
                    if let Some(p) = board.panels.iter_mut().find(|p| p.id == id) {
                        p.in_view = entry.is_intersecting();
                    }
                }
                page.redraw();
            });
            let options = web_sys::IntersectionObserverInit::new();
            options.set_root_margin("200px");
            // Kept for the life of the page, as the observer is.
            let callback: js_sys::Function = seen.into_js_value().unchecked_into();
            web_sys::IntersectionObserver::new_with_options(&callback, &options)
                .expect("a margin in pixels is understood")
        });
        observer.observe(article);
    }

    /// Space left and right of every plot, CSS pixels.
    pub fn gutters(&self) -> (f64, f64) {
        let m = self.page.as_ref().map_or_else(Measures::default, |p| p.0);
        (m.left, m.right)
    }

    /// Sizes have changed, or may have.
    pub fn resized(page: Page) {
        page.board.borrow_mut().page = None;
        page.redraw();
    }

    /// Draws everything, in view or not, as it stands on paper now; or as on the screen again.
    pub fn print(page: Page, paper: bool) {
        {
            let mut board = page.board.borrow_mut();
            (board.paper, board.page) = (paper, None);
        }
        Board::draw(page);
    }

    /// A font has arrived: canvases, unlike elements, do not notice.
    pub fn retype(page: Page) {
        {
            let mut board = page.board.borrow_mut();
            board.typed = !board.typed;
        }
        Board::resized(page);
    }

    fn look(&mut self, page: Page) -> Look {
        if self.page.is_none() {
            let (measures, mut family) = measures();
            if self.typed {
                // Another name of the same: what was measured with the font before is forgotten.
                family.push(' ');
            }
            // Printers have finer dots than screens.
            let dpr = browser().device_pixel_ratio() * if self.paper { 2.0 } else { 1.0 };
            for panel in &mut self.panels {
                panel.fit(dpr, &family);
            }
            for tile in &mut self.tiles {
                tile.layer.fit(dpr, &family);
            }
            self.page = Some((measures, family, dpr));
        }
        let (measures, _, dpr) = self.page.as_ref().expect("it was set above");
        let span = page.span();
        let frozen = page.view.with_untracked(|v| v.frozen.is_some());
        Look {
            theme: if page.tone.get_untracked() == Tone::Dark { &theme::DARK } else { &theme::LIGHT },
            measures: *measures,
            css: dpr * f64::from(SUBPIXELS),
            device: f64::from(SUBPIXELS),
            span,
            offset: offset(span.1),
            now: if page.link.borrow().is_told() { page.told() } else { page.server_now() },
            live: !frozen && page.state.get_untracked() == LinkState::Live,
            frozen,
        }
    }

    /// Draws everything in view.
    pub fn draw(page: Page) {
        let start = performance();
        let mut board = page.board.borrow_mut();
        let board = &mut *board;
        let look = board.look(page);
        crosshair::follow_span(board, look.span);
        let store = page.store.borrow();
        let view = page.view.get_untracked();
        let source = store.source(view.source.as_deref());
        let window = range::name(look.span.1 - look.span.0);
        for panel in &mut board.panels {
            panel.say(source, &look, &window);
            if panel.in_view || board.paper {
                let focus = board.focus.as_ref().filter(|(id, _)| *id == panel.id).map(|(_, i)| *i);
                panel.draw(&store, source, &view, &look, focus);
                panel.draw_over(&look, board.hover.as_ref(), focus);
            }
        }
        for tile in &mut board.tiles {
            tile.draw(&store, source, &look);
        }
        board.took = (performance() - start, board.took.1 + 1);
        crosshair::follow(board, &look);
    }

    /// Draws the layer over the data at the next frame.
    pub fn redraw_over(page: Page) {
        if std::mem::replace(&mut page.board.borrow_mut().over_scheduled, true) {
            return;
        }
        request_animation_frame(move || {
            let mut board = page.board.borrow_mut();
            let board = &mut *board;
            board.over_scheduled = false;
            let look = board.look(page);
            for panel in board.panels.iter_mut().filter(|p| p.in_view) {
                let focus = board.focus.as_ref().filter(|(id, _)| *id == panel.id).map(|(_, i)| *i);
                panel.draw_over(&look, board.hover.as_ref(), focus);
            }
            crosshair::follow(board, &look);
        });
    }
}

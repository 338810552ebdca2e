//! The observers of the browser: which panels are on the screen or near it, and which canvases changed their size.

use super::Board;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;
use web_sys::{
    Element, HtmlCanvasElement, IntersectionObserver, IntersectionObserverEntry, IntersectionObserverInit,
    ResizeObserver,
};

/// Distance from the screen within which a panel counts as visible.
const DRAW_AHEAD_MARGIN: &str = "200px";

/// The callback for panels that entered or left the view.
type Crossed = Closure<dyn FnMut(js_sys::Array)>;

/// Both observers with their callbacks.
#[derive(Default)]
pub struct Observers {
    seen: Option<(IntersectionObserver, Crossed)>,
    sizes: Option<(ResizeObserver, Closure<dyn FnMut()>)>,
}

impl Observers {
    /// Watches whether a panel is in view, and the size of its canvas.
    pub fn watch_panel(&mut self, board: Board, article: &Element, canvas: &HtmlCanvasElement) {
        let (observer, _) = self.seen.get_or_insert_with(|| {
            let seen = Crossed::new(move |entries: js_sys::Array| crossed(board, &entries));
            let options = IntersectionObserverInit::new();
            options.set_root_margin(DRAW_AHEAD_MARGIN);
            let observer = IntersectionObserver::new_with_options(seen.as_ref().unchecked_ref(), &options);
            (observer.expect("a margin in pixels is understood"), seen)
        });
        observer.observe(article);
        self.watch_size(board, canvas);
    }

    /// Watches the size of a canvas. It can change without the window, for example when a scroll bar appears or a
    /// number beside it gets longer.
    pub fn watch_size(&mut self, board: Board, canvas: &HtmlCanvasElement) {
        let (observer, _) = self.sizes.get_or_insert_with(|| {
            let changed = Closure::<dyn FnMut()>::new(move || board.resized());
            let observer = ResizeObserver::new(changed.as_ref().unchecked_ref());
            (observer.expect("a function is a callback"), changed)
        });
        observer.observe(canvas);
    }

    /// Stops watching a panel and its canvas.
    pub fn forget_panel(&self, article: &Element, canvas: &HtmlCanvasElement) {
        if let Some((observer, _)) = &self.seen {
            observer.unobserve(article);
        }
        if let Some((observer, _)) = &self.sizes {
            observer.unobserve(canvas);
        }
    }
}

fn crossed(board: Board, entries: &js_sys::Array) {
    let entries = entries.iter().filter_map(|e| e.dyn_into::<IntersectionObserverEntry>().ok());
    for entry in entries {
        let id = entry.target().get_attribute("data-panel").unwrap_or_default();
        if let Some(panel) = board.drawn.write_value().panels.iter_mut().find(|p| p.id == id) {
            panel.in_view = entry.is_intersecting();
        }
    }
    board.page.redraw();
}

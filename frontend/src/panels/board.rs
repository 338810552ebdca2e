//! All panels and tiles that are on the page, and the one place where they are drawn: at most once a frame, panels in
//! view only, and texts only where they changed.

use super::crosshair::{self, Hover};
use super::picture::{Look, Picture, Sight, State};
use super::tiles::TileView;
use crate::address::Tone;
use crate::page::{LinkState, Page, browser, offset};
use crate::surface::CanvasSurface;
use charts::axis;
use charts::canvas::{Canvas, Pen, SUBPIXELS};
use charts::into_area;
use charts::{Measures, theme};
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;
use web_sys::{CanvasRenderingContext2d, Element, HtmlCanvasElement};

/// A canvas with what is set on it.
pub struct Layer {
    canvas: HtmlCanvasElement,
    surface: CanvasSurface,
    pen: Pen,
    size: (u32, u32),
}

impl Layer {
    /// A layer on a canvas element; none when the browser gives no context.
    pub fn new(canvas: HtmlCanvasElement) -> Option<Self> {
        let context = canvas.get_context("2d").ok()??.dyn_into::<CanvasRenderingContext2d>().ok()?;
        let surface = CanvasSurface { context, family: "sans-serif".into() };
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

    /// Sets the text.
    pub fn set(&mut self, text: &str) {
        if self.text != text {
            self.text = text.to_string();
            self.element.set_text_content(Some(text));
        }
    }
}

/// A panel on the page.
pub struct PanelView {
    /// Id of its chart.
    pub id: String,
    /// Whether it has the whole width.
    pub wide: bool,
    /// Its data.
    pub picture: Picture,
    /// Middle of each label, CSS pixels from the top of the plot.
    pub places: Vec<(usize, f64)>,
    article: Element,
    base: Layer,
    over: Layer,
    note: Words,
    sums: [Words; 3],
    age: Words,
    in_view: bool,
    drawn: Option<Sight>,
    said: (&'static str, usize, &'static str),
}

impl PanelView {
    /// A panel around its element; none when a part of it is missing.
    pub fn new(id: String, wide: bool, article: Element) -> Option<Self> {
        let canvas = |n: u32| article.query_selector_all("canvas").ok()?.item(n)?.dyn_into::<HtmlCanvasElement>().ok();
        Some(PanelView {
            base: Layer::new(canvas(0)?)?,
            over: Layer::new(canvas(1)?)?,
            note: Words::find(&article, ".note")?,
            sums: [
                Words::find(&article, ".sum-min")?,
                Words::find(&article, ".sum-mean")?,
                Words::find(&article, ".sum-max")?,
            ],
            age: Words::find(&article, ".age")?,
            id,
            wide,
            picture: Picture::default(),
            places: Vec::new(),
            article,
            in_view: true,
            drawn: None,
            said: ("", usize::MAX, ""),
        })
    }

    /// True when its series are drawn one by one.
    pub fn lines(&self) -> bool {
        charts::Chart::for_series(self.picture.names.len()) == charts::Chart::Line
    }

    fn say(&mut self, window: &'static str, now: i64) {
        let state = self.picture.state.name();
        let said = (window, self.picture.samples, state);
        if self.said != said {
            let set = |name: &str, value: &str, changed: bool| {
                if changed {
                    // Only names that are no attribute names are refused.
                    let _ = self.article.set_attribute(name, value);
                }
            };
            set("data-window", window, self.said.0 != window);
            set("data-samples", &said.1.to_string(), self.said.1 != said.1);
            set("data-state", state, self.said.2 != state);
            self.said = said;
        }
        let age = if self.picture.state == State::Stale {
            format!("last sample {} ago", axis::duration(now - self.picture.newest))
        } else {
            String::new()
        };
        self.age.set(&age);
    }
}

/// Everything that is drawn.
#[derive(Default)]
pub struct Board {
    /// Panels in the order in which they came.
    pub panels: Vec<PanelView>,
    /// Tiles likewise.
    pub tiles: Vec<TileView>,
    /// Where the pointer is.
    pub hover: Option<Hover>,
    /// The series that has the attention: panel and position.
    pub focus: Option<(String, usize)>,
    observer: Option<web_sys::IntersectionObserver>,
    sizes: Option<web_sys::ResizeObserver>,
    page: Option<(Measures, String, f64)>,
    over_scheduled: bool,
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

    fn look(&mut self, page: Page) -> Look {
        if self.page.is_none() {
            let (measures, family) = measures();
            let dpr = browser().device_pixel_ratio();
            for panel in &mut self.panels {
                if panel.base.fit(dpr, &family) {
                    panel.drawn = None;
                }
                panel.over.fit(dpr, &family);
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
            now: page.server_now(),
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
        let store = page.store.borrow();
        let view = page.view.get_untracked();
        let source = store.source(view.source.as_deref());
        for panel in &mut board.panels {
            panel.picture.measure(source, &panel.id, &look);
            panel.say(view.window.name, look.now);
            if !panel.in_view {
                continue;
            }
            let units = panel.base.units();
            panel.picture.update(&store, source, &panel.id, panel.wide, &look, units.0);
            let focus = board.focus.as_ref().filter(|(id, _)| *id == panel.id).map(|(_, i)| *i);
            let sight = panel.picture.sight(&look, units, focus, source.map_or(0, |s| s.epoch));
            let PanelView { picture, base, note, sums, drawn, .. } = panel;
            if drawn.as_ref() != Some(&sight) {
                picture.with_frame(&look, units, focus, |frame| {
                    // Our backend refuses nothing.
                    base.draw(|area| drop(charts::draw(area, frame)));
                });
                *drawn = Some(sight);
            }
            note.set(&picture.note);
            sums.iter_mut().zip(&picture.sums).for_each(|(w, text)| w.set(text));
            draw_over(panel, &look, board.hover.as_ref(), focus);
        }
        for tile in &mut board.tiles {
            tile.draw(&store, source, &look);
        }
        board.took = (performance() - start, board.took.1 + 1);
        crosshair::follow(page, board, &look);
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
                draw_over(panel, &look, board.hover.as_ref(), focus);
            }
            crosshair::follow(page, board, &look);
        });
    }
}

fn draw_over(panel: &mut PanelView, look: &Look, hover: Option<&Hover>, focus: Option<usize>) {
    let PanelView { picture, over, places, .. } = panel;
    let at = hover.map(|h| picture.snap(h.t).unwrap_or(h.t));
    let labels = picture.labels(at, look.span.1, focus);
    let (unit, newest) = (picture.unit, picture.last(look.span.1));
    let units = over.units();
    let drawn = picture.with_frame(look, units, focus, |frame| {
        over.draw(|area| charts::over::draw(area, frame, unit, at, newest, &labels).unwrap_or_default())
    });
    *places = drawn.flatten().unwrap_or_default();
}

/// Milliseconds on the browser's fine clock.
pub fn performance() -> f64 {
    browser().performance().map_or(0.0, |p| p.now())
}

/// Lengths and the font's family, as the stylesheet has them at this width.
fn measures() -> (Measures, String) {
    let root = browser().document().and_then(|d| d.document_element());
    let style = root.and_then(|r| browser().get_computed_style(&r).ok().flatten());
    let text = |name: &str| {
        style.as_ref().and_then(|s| s.get_property_value(name).ok()).map(|v| v.trim().to_string()).unwrap_or_default()
    };
    // The browser's parser: it knows `12px`, and ours would weigh ten kilobytes.
    let number = |name: &str, otherwise: f64| {
        let value = js_sys::parse_float(&text(name));
        if value.is_finite() { value } else { otherwise }
    };
    let d = Measures::default();
    let measures = Measures {
        text: number("--t-axis", d.text),
        left: number("--gutter-l", d.left),
        right: number("--gutter-r", d.right),
        line: number("--line", d.line),
    };
    let family = text("--font");
    (measures, if family.is_empty() { "sans-serif".into() } else { family })
}

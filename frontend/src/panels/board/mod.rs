//! All panels and tiles that are on the page, and the one place where they are drawn: at most once a frame, panels in
//! view only, and texts only where they changed.
//!
//! [`view`] one panel; [`layer`] its canvases and words; [`sight`] who tells the board what is seen and how large it is;
//! [`measures`] lengths from the stylesheet; [`poster`] a panel by itself, to be taken away.

pub mod layer;
mod measures;
pub mod poster;
mod sight;
pub mod view;

use super::picture::Look;
use super::reading;
use super::tiles::TileView;
use crate::address::Tone;
use crate::browser::{offset, window};
use crate::range;
use crate::state::{LinkState, Page};
use crate::widgets::tooltip::Tip;
use charts::canvas::SUBPIXELS;
use charts::{Measures, theme};
use leptos::prelude::*;
use measures::measures;
use sight::Sight;
use std::ops::Deref;
use view::PanelView;
use web_sys::Element;

/// Everything that is drawn.
#[derive(Default)]
pub struct Drawn {
    /// Panels in the order in which they came.
    pub panels: Vec<PanelView>,
    /// Tiles likewise.
    tiles: Vec<TileView>,
    /// The series that has the attention: panel and position.
    focus: Option<(String, usize)>,
    /// Whether what the tooltip says next is to be heard: keys moved it.
    speak: bool,
    sight: Sight,
    /// Lengths, font and device pixels for a CSS pixel, as they were measured last; none when they may have changed.
    measured: Option<(Measures, String, f64)>,
    over_scheduled: bool,
    typed: bool,
    /// What is drawn now is for paper.
    paper: bool,
}

/// The board; a copy is the same board. Parts of the page find it in their context.
#[derive(Clone, Copy)]
pub struct Board {
    /// The state that it draws.
    pub page: Page,
    /// What the tooltip says.
    pub tip: RwSignal<Option<Tip>>,
    /// What a screen reader is to say of it.
    pub said: RwSignal<String>,
    /// The panel that is a stop for Tab, by its id.
    pub stop: RwSignal<Option<String>>,
    /// Panels came or went.
    pub crowd: Trigger,
    drawn: StoredValue<Drawn, LocalStorage>,
}

impl Board {
    /// A board that draws the frames which the state asks for.
    pub fn start(page: Page) -> Self {
        let drawn = StoredValue::new_local(Drawn::default());
        let board = Board {
            page,
            tip: RwSignal::new(None),
            said: RwSignal::default(),
            stop: RwSignal::new(None),
            crowd: Trigger::new(),
            drawn,
        };
        Effect::new(move || {
            page.frame.track();
            request_animation_frame(move || {
                page.begin_frame();
                board.draw();
            });
        });
        board
    }

    /// What is drawn, to read it.
    pub fn drawn(&self) -> impl Deref<Target = Drawn> + use<> {
        self.drawn.read_value()
    }

    /// Takes a panel on; nothing where a part of its element is missing.
    pub fn add(self, id: String, wide: bool, article: Element) {
        let Some(view) = PanelView::new(id, wide, article) else { return };
        {
            let mut drawn = self.drawn.write_value();
            drawn.measured = None;
            drawn.sight.watch_panel(self, &view.article, &view.base.canvas);
            drawn.panels.push(view);
        }
        self.crowd.notify();
        self.page.redraw();
    }

    /// Lets a panel go.
    pub fn remove(self, id: &str) {
        let mut drawn = self.drawn.write_value();
        if let Some(i) = drawn.panels.iter().position(|p| p.id == id) {
            let view = drawn.panels.remove(i);
            drawn.sight.forget_panel(&view.article, &view.base.canvas);
        }
        drop(drawn);
        self.crowd.notify();
    }

    /// Takes a tile on.
    pub fn add_tile(self, tile: TileView) {
        {
            let mut drawn = self.drawn.write_value();
            drawn.measured = None;
            drawn.sight.watch_size(self, &tile.layer.canvas);
            drawn.tiles.push(tile);
        }
        self.page.redraw();
    }

    /// Lets a tile go.
    pub fn remove_tile(self, id: &str) {
        self.drawn.write_value().tiles.retain(|t| t.id != id);
    }

    /// The name of the series at a position of a panel.
    pub fn series_name(&self, panel: &str, i: usize) -> Option<String> {
        let drawn = self.drawn.read_value();
        let panel = drawn.panels.iter().find(|p| p.id == panel)?;
        Some(panel.picture.names.get(i)?.full.clone())
    }

    /// Space left and right of every plot, CSS pixels.
    pub fn gutters(&self) -> (f64, f64) {
        self.drawn.read_value().gutters()
    }

    /// Gives a series the attention, by panel and position, or takes it; true when it had it not.
    pub fn attend(&self, focus: Option<(String, usize)>) -> bool {
        let mut drawn = self.drawn.write_value();
        let other = drawn.focus != focus;
        drawn.focus = focus;
        other
    }

    /// What the tooltip says next is to be heard.
    pub fn speak(&self) {
        self.drawn.write_value().speak = true;
    }

    /// A panel counts as seen from now on: where its element says so itself it may be too late.
    pub fn bring_into_view(&self, id: Option<&str>) {
        if let Some(panel) = self.drawn.write_value().panels.iter_mut().find(|p| Some(p.id.as_str()) == id) {
            panel.in_view = true;
        }
    }

    /// Sizes have changed, or may have.
    pub fn resized(self) {
        self.drawn.write_value().measured = None;
        self.page.redraw();
    }

    /// Draws everything, in view or not, as it stands on paper now; or as on the screen again.
    pub fn print(self, paper: bool) {
        self.drawn.update_value(|drawn| (drawn.paper, drawn.measured) = (paper, None));
        self.draw();
    }

    /// A font has arrived: canvases, unlike elements, do not notice.
    pub fn retype(self) {
        self.drawn.update_value(|drawn| drawn.typed = !drawn.typed);
        self.resized();
    }

    /// Draws everything in view.
    fn draw(self) {
        let page = self.page;
        let mut drawn = self.drawn.write_value();
        let drawn = &mut *drawn;
        let look = drawn.look(page);
        page.hover.update_value(|hover| reading::follow_span(hover, look.span));
        let hover = page.hover.read_value();
        let store = page.store.read_value();
        let view = page.view.read_untracked();
        let source = store.source(view.source.as_deref());
        let window = range::name(look.span.1 - look.span.0);
        for panel in &mut drawn.panels {
            panel.say(source, &look, &window);
            if panel.in_view || drawn.paper {
                let focus = drawn.focus.as_ref().filter(|(id, _)| *id == panel.id).map(|(_, i)| *i);
                panel.draw(&store, source, &view, &look, focus);
                panel.draw_over(&look, hover.as_ref(), focus);
            }
        }
        for tile in &mut drawn.tiles {
            tile.draw(&store, source, &look);
        }
        drop((store, view, hover));
        self.tell(drawn, &look);
    }

    /// Draws the layer over the data at the next frame.
    pub fn redraw_over(self) {
        if std::mem::replace(&mut self.drawn.write_value().over_scheduled, true) {
            return;
        }
        request_animation_frame(move || {
            let mut drawn = self.drawn.write_value();
            let drawn = &mut *drawn;
            drawn.over_scheduled = false;
            let look = drawn.look(self.page);
            let hover = self.page.hover.read_value();
            for panel in drawn.panels.iter_mut().filter(|p| p.in_view) {
                let focus = drawn.focus.as_ref().filter(|(id, _)| *id == panel.id).map(|(_, i)| *i);
                panel.draw_over(&look, hover.as_ref(), focus);
            }
            drop(hover);
            self.tell(drawn, &look);
        });
    }

    /// Brings the tooltip up to date after a drawing.
    fn tell(self, drawn: &mut Drawn, look: &Look) {
        let tip = self.page.hover.with_value(|hover| {
            let hover = hover.as_ref()?;
            let panel = drawn.panels.iter().find(|p| p.id == hover.panel)?;
            Some(reading::tip(panel, hover, look, drawn.gutters()))
        });
        if *self.tip.read_untracked() != tip {
            if let Some(tip) = tip.as_ref().filter(|_| drawn.speak) {
                self.said.set(reading::spoken(tip));
                drawn.speak = false;
            }
            self.tip.set(tip);
        }
    }
}

impl Drawn {
    fn gutters(&self) -> (f64, f64) {
        let m = self.measured.as_ref().map_or_else(Measures::default, |m| m.0);
        (m.left, m.right)
    }

    fn look(&mut self, page: Page) -> Look {
        if self.measured.is_none() {
            let (measures, mut family) = measures();
            if self.typed {
                // Another name of the same: what was measured with the font before is forgotten.
                family.push(' ');
            }
            // Printers have finer dots than screens.
            let dpr = window().device_pixel_ratio() * if self.paper { 2.0 } else { 1.0 };
            for panel in &mut self.panels {
                panel.fit(dpr, &family);
            }
            for tile in &mut self.tiles {
                tile.layer.fit(dpr, &family);
            }
            self.measured = Some((measures, family, dpr));
        }
        let (measures, _, dpr) = self.measured.as_ref().expect("it was set above");
        let span = page.span();
        let frozen = page.view.with_untracked(|v| v.frozen.is_some());
        Look {
            theme: if page.tone.get_untracked() == Tone::Dark { &theme::DARK } else { &theme::LIGHT },
            measures: *measures,
            css: dpr * f64::from(SUBPIXELS),
            device: f64::from(SUBPIXELS),
            span,
            offset: offset(span.1),
            now: page.reads_as_now(),
            live: !frozen && page.state.get_untracked() == LinkState::Live,
            frozen,
        }
    }
}

//! All panels and tiles of the page, and the one place that draws them: at most once a frame, only panels in view, and
//! texts only where they changed.
//!
//! [`view`] is one panel; [`layer`] its canvases and texts; [`turns`](viewer::turns) are the panels that the next
//! frames draw; [`observers`] report the visible panels and their sizes to the board; [`measures`] are lengths from the
//! stylesheet; [`poster`] is a panel by itself, for saving.

pub mod layer;
mod measures;
mod observers;
pub mod poster;
pub mod view;

use super::reading;
use super::theme::theme;
use super::tiles::TileView;
use crate::browser::{performance, window, zone_of};
use crate::range;
use crate::state::{Beside, Hover, LinkState, Page};
use crate::store::Store;
use crate::store::source::Source;
use crate::widgets::tooltip::Tip;
use charts::Measures;
use charts::canvas::SUBPIXELS;
use leptos::prelude::*;
pub(super) use measures::measures;
use observers::Observers;
use std::ops::Deref;
use view::{Data, PanelView};
use viewer::picture::Look;
use viewer::turns::Turns;
use web_sys::Element;

/// Everything that the board draws.
#[derive(Default)]
pub struct Drawn {
    /// Panels in the order in which they were added.
    pub panels: Vec<PanelView>,
    /// Tiles in the order in which they were added.
    tiles: Vec<TileView>,
    /// The highlighted series: id of the panel and position of the series.
    focus: Option<(String, usize)>,
    /// True when the next text of the tooltip must be announced, because a key moved the crosshair.
    speak: bool,
    observers: Observers,
    turns: Turns,
    /// Measures, font family and device pixels in a CSS pixel, from the last measuring. None when they may have
    /// changed.
    measured: Option<(Measures, String, f64)>,
    over_scheduled: bool,
    typed: bool,
    /// True while the page is drawn for paper.
    paper: bool,
}

/// The board; copies share it. Components find it in their context.
#[derive(Clone, Copy)]
pub struct Board {
    /// The state that the board draws.
    pub page: Page,
    /// The content of the tooltip; None while there is no tooltip.
    pub tip: RwSignal<Option<Tip>>,
    /// The announcement of the tooltip for screen readers.
    pub said: RwSignal<String>,
    /// Id of the panel at which Tab stops.
    pub stop: RwSignal<Option<String>>,
    /// Fires when panels were added or removed.
    pub crowd: Trigger,
    drawn: StoredValue<Drawn, LocalStorage>,
}

impl Board {
    /// Makes the board, which draws each frame that the state requests.
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

    /// Read access to everything that is drawn.
    pub fn drawn(&self) -> impl Deref<Target = Drawn> + use<> {
        self.drawn.read_value()
    }

    /// Adds a panel. Nothing happens when a part of its element is missing.
    pub fn add(self, id: String, wide: bool, article: Element) {
        let Some(view) = PanelView::new(id, wide, article) else { return };
        {
            let mut drawn = self.drawn.write_value();
            drawn.measured = None;
            drawn.observers.watch_panel(self, &view.article, &view.base.canvas);
            drawn.panels.push(view);
        }
        self.crowd.notify();
        self.page.redraw();
    }

    /// Removes a panel.
    pub fn remove(self, id: &str) {
        let mut drawn = self.drawn.write_value();
        if let Some(i) = drawn.panels.iter().position(|p| p.id == id) {
            let view = drawn.panels.remove(i);
            drawn.observers.forget_panel(&view.article, &view.base.canvas);
        }
        drop(drawn);
        self.crowd.notify();
    }

    /// Adds a tile.
    pub fn add_tile(self, tile: TileView) {
        {
            let mut drawn = self.drawn.write_value();
            drawn.measured = None;
            drawn.observers.watch_size(self, &tile.layer.canvas);
            drawn.tiles.push(tile);
        }
        self.page.redraw();
    }

    /// Removes a tile.
    pub fn remove_tile(self, id: &str) {
        self.drawn.write_value().tiles.retain(|t| t.id != id);
    }

    /// The name of the series at position `i` of a panel.
    pub fn series_name(&self, panel: &str, i: usize) -> Option<String> {
        let drawn = self.drawn.read_value();
        let panel = drawn.panels.iter().find(|p| p.id == panel)?;
        Some(panel.picture.names.get(i)?.full.clone())
    }

    /// Space left and right of every plot in CSS pixels.
    pub fn gutters(&self) -> (f64, f64) {
        self.drawn.read_value().gutters()
    }

    /// Highlights a series, given by panel and position, or none. Returns true when this is a change.
    pub fn attend(&self, focus: Option<(String, usize)>) -> bool {
        let mut drawn = self.drawn.write_value();
        let other = drawn.focus != focus;
        drawn.focus = focus;
        other
    }

    /// Announces the next text of the tooltip to screen readers.
    pub fn speak(&self) {
        self.drawn.write_value().speak = true;
    }

    /// Marks a panel as visible. The browser's observer may report this too late.
    pub fn bring_into_view(&self, id: Option<&str>) {
        if let Some(panel) = self.drawn.write_value().panels.iter_mut().find(|p| Some(p.id.as_str()) == id) {
            panel.in_view = true;
        }
    }

    /// Measures everything again in the next frame, because sizes may have changed.
    pub fn resized(self) {
        self.drawn.write_value().measured = None;
        self.page.redraw();
    }

    /// Draws everything now. For paper this includes the panels that are not in view.
    pub fn print(self, paper: bool) {
        self.drawn.update_value(|drawn| (drawn.paper, drawn.measured) = (paper, None));
        self.draw();
    }

    /// Measures and draws everything again, because a font was loaded. Unlike elements, canvases do not follow by
    /// themselves.
    pub fn retype(self) {
        self.drawn.update_value(|drawn| drawn.typed = !drawn.typed);
        self.resized();
    }

    /// Draws all tiles and all panels in view, because something changed.
    fn draw(self) {
        self.paint(true);
    }

    /// Draws for the time of a frame; the next frame continues with the rest. With `anew` a round begins; else the last
    /// one continues. Each panel is drawn whole or not at all.
    fn paint(self, anew: bool) {
        let (page, begun) = (self.page, performance());
        let mut drawn = self.drawn.write_value();
        let drawn = &mut *drawn;
        let look = drawn.make_look(page);
        page.hover.update_value(|hover| reading::follow_span(hover, look.span));
        let hover = page.hover.read_value();
        let store = page.store.read_value();
        let view = page.view.read_untracked();
        let source = store.source(view.source.as_deref());
        let beside = follow(page, &look);
        let data = Data { store: &store, source, beside: beside.as_ref().map(|beside| under(beside, source)) };
        let plot = drawn.hovered(hover.as_ref());
        let window = range::name(look.span.1 - look.span.0);
        let Drawn { panels, tiles, turns, focus, paper, .. } = drawn;
        let pointed = hover.as_ref().map(|hover| hover.panel.as_str());
        if anew {
            panels.iter_mut().for_each(|panel| panel.describe_data(source, &look, &window));
            tiles.iter_mut().for_each(|tile| tile.draw(&store, source, &look));
            let seen = panels.iter().filter(|panel| panel.in_view || *paper).map(|panel| panel.id.as_str());
            turns.begin(seen, pointed);
        } else {
            turns.lead(pointed);
        }
        // Printing waits for all panels.
        let clock = || if *paper { begun } else { performance() };
        let done = turns.go(begun, clock, |id| {
            let Some(panel) = panels.iter_mut().find(|panel| panel.id == id) else { return };
            let focus = focus.as_ref().filter(|(id, _)| *id == panel.id).map(|(_, i)| *i);
            panel.draw(&data, &view, &look, focus);
            panel.draw_over(&look, hover.as_ref(), focus);
        });
        let round = turns.round();
        drop((beside, store, view, hover));
        self.tell(drawn, &look, plot);
        if !done {
            request_animation_frame(move || self.go_on(round));
        }
    }

    /// Goes on with a round, unless another one has begun or begins in this frame.
    fn go_on(self, round: u64) {
        if self.drawn.read_value().turns.round() == round && !self.page.is_due() {
            self.paint(false);
        }
    }

    /// Draws the layer over the data in the next frame.
    pub fn redraw_over(self) {
        if std::mem::replace(&mut self.drawn.write_value().over_scheduled, true) {
            return;
        }
        request_animation_frame(move || {
            let mut drawn = self.drawn.write_value();
            let drawn = &mut *drawn;
            drawn.over_scheduled = false;
            let look = drawn.make_look(self.page);
            let hover = self.page.hover.read_value();
            let plot = drawn.hovered(hover.as_ref());
            // A panel whose turn comes is drawn with both layers then, so that they never show two spans.
            for panel in drawn.panels.iter_mut().filter(|p| p.in_view && !drawn.turns.waits(&p.id)) {
                let focus = drawn.focus.as_ref().filter(|(id, _)| *id == panel.id).map(|(_, i)| *i);
                panel.follow(&look, hover.as_ref(), focus);
            }
            drop(hover);
            self.tell(drawn, &look, plot);
        });
    }

    /// Updates the tooltip after a drawing; `plot` is the place of the plot that is pointed at.
    fn tell(self, drawn: &mut Drawn, look: &Look, plot: Option<web_sys::DomRect>) {
        let tip = self.page.hover.with_value(|hover| {
            let hover = hover.as_ref()?;
            let panel = drawn.panels.iter().find(|p| p.id == hover.panel)?;
            Some(reading::tip(panel, hover, look, (drawn.gutters(), plot)))
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

/// The recording under the charts; its place in time follows a live span and stays with a frozen one.
fn follow(page: Page, look: &Look) -> impl Deref<Target = Option<Beside>> + use<> {
    page.beside.update_value(|beside| {
        if let Some(beside) = beside.as_mut().filter(|beside| !look.frozen || beside.shift == 0) {
            beside.shift = look.span.1 - beside.at;
        }
    });
    page.beside.read_value()
}

/// The parts of a recording that a panel is drawn from: of its machines the one that is called as the shown one.
fn under<'a>(beside: &'a Beside, source: Option<&Source>) -> (&'a Store, Option<&'a Source>, i64) {
    let name = source.map(|source| source.info.name.as_str());
    (&beside.store, beside.store.source(name), beside.shift)
}

impl Drawn {
    /// The position of the plot under the pointer. It is read before texts change, because otherwise the browser lays
    /// out the page twice.
    fn hovered(&self, hover: Option<&Hover>) -> Option<web_sys::DomRect> {
        self.panels.iter().find(|p| hover.is_some_and(|h| h.panel == p.id))?.plot()
    }

    fn gutters(&self) -> (f64, f64) {
        let m = self.measured.as_ref().map_or_else(Measures::default, |m| m.0);
        (m.left, m.right)
    }

    fn make_look(&mut self, page: Page) -> Look {
        if self.measured.is_none() {
            let (measures, mut family) = measures();
            if self.typed {
                // A space makes the family another text, so that widths measured with the old font are forgotten.
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
            theme: theme(page.tone.get_untracked()),
            measures: *measures,
            css: dpr * f64::from(SUBPIXELS),
            device: f64::from(SUBPIXELS),
            span,
            zone: zone_of(span.0, span.1),
            now: page.reads_as_now(),
            live: !frozen && page.state.get_untracked() == LinkState::Live,
            frozen,
            marks: page.drawn_marks(),
            alerts: page.alerted.get_value(),
            subjects: page.subjects.get_value(),
        }
    }
}

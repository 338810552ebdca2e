//! The instant that all charts show. Pointers and keys move it.

use crate::browser;
use crate::panels::board::view::PanelView;
use crate::panels::board::{Board, Drawn};
use crate::state::Hover;
use charts::axis;
use leptos::prelude::*;

/// A place on the plot of a chart.
#[derive(Clone, Debug)]
pub struct PlotPlace {
    /// Id of the chart.
    pub panel: String,
    /// Distance from the left edge of the plot's element in CSS pixels.
    pub x: f64,
    /// Distance from the top of the plot's element in CSS pixels.
    pub y: f64,
    /// Width of the plot's element in CSS pixels.
    pub width: f64,
    /// Top of the plot's element in the window, in CSS pixels.
    pub top: f64,
}

/// A label under the pointer.
#[derive(Clone, Copy, Debug)]
pub struct Labeled {
    /// Position of its series, or of the first of several.
    pub series: usize,
    /// False when lines that lie together share this label.
    pub alone: bool,
}

impl PlotPlace {
    /// Place in the shown span: 0 is its start, 1 its end. The result can lie outside of these.
    pub fn share(&self, board: Board) -> f64 {
        let (left, right) = board.gutters();
        (self.x - left) / (self.width - left - right).max(1.0)
    }

    /// The instant at this place, limited to the shown span; ms since the epoch.
    pub fn t(&self, board: Board) -> i64 {
        let (from, to) = board.page.span();
        from + (self.share(board).clamp(0.0, 1.0) * (to - from) as f64).round() as i64
    }

    /// The label at this place; None when there is none.
    pub fn label(&self, board: Board) -> Option<Labeled> {
        let right = self.width - board.gutters().1;
        let drawn = board.drawn();
        let panel = drawn.panels.iter().find(|p| p.id == self.panel && p.lines() && p.picture.names.len() > 1)?;
        let near = panel.places.iter().min_by(|a, b| (a.y - self.y).abs().total_cmp(&(b.y - self.y).abs()))?;
        let hit = self.x > right + 4.0 && (near.y - self.y).abs() < 24.0;
        hit.then_some(Labeled { series: *near.series.first()?, alone: near.series.len() == 1 })
    }
}

/// The pointer moved to a place on a plot. With `pinned` the instant stays when the pointer leaves.
pub fn moved(board: Board, place: &PlotPlace, pinned: bool) {
    let focus = place.label(board).map(|label| (place.panel.clone(), label.series));
    let (share, t) = (place.share(board).clamp(0.0, 1.0), place.t(board));
    let mut hover = board.page.hover.write_value();
    if pinned || !hover.as_ref().is_some_and(|h| h.pinned) {
        let share = (!pinned).then_some(share);
        let here = Hover { panel: place.panel.clone(), t, share, y: place.y, top: place.top, pinned };
        *hover = focus.is_none().then_some(here);
    }
    drop(hover);
    again(board, board.attend(focus));
}

/// Shows the series of a chart one by one, so that one of those that share a label can be chosen.
pub fn unfold(board: Board, panel: &str, series: usize) {
    again(board, board.attend(Some((panel.to_string(), series))));
}

/// The pointer left the plots. A pinned instant stays.
pub fn left(board: Board) {
    board.page.hover.update_value(|hover| *hover = hover.take().filter(|h| h.share.is_none()));
    again(board, board.attend(None));
}

/// The page was scrolled under a pointer that did not move. When the plot has moved, the instant is dropped unless it
/// is pinned.
pub fn scrolled(board: Board) {
    let hover = board.page.hover.get_value();
    let plot = hover.as_ref().and_then(|h| board.drawn().panels.iter().find(|p| p.id == h.panel)?.plot());
    if let (Some(hover), Some(plot)) = (hover, plot)
        && (plot.top() - hover.top).abs() > 1.0
    {
        left(board);
    }
}

/// Removes the crosshair from all charts, and the highlight from all series.
pub fn clear(board: Board) {
    board.page.hover.set_value(None);
    board.attend(None);
}

fn again(board: Board, all: bool) {
    if all { board.page.redraw() } else { board.redraw_over() }
}

/// The instant that all charts show, ms since the epoch; None when nothing points at one.
pub fn instant(board: Board) -> Option<i64> {
    board.page.hover.with_value(|h| h.as_ref().map(|h| h.t))
}

/// Pins the instant, so that it stays when the pointer leaves, or unpins it.
pub fn toggle_pin(board: Board) {
    board.page.hover.update_value(|hover| {
        if let Some(hover) = hover {
            hover.pinned = !hover.pinned;
            hover.share = None;
        }
    });
    board.redraw_over();
}

/// The panel whose values are announced: the focused one, else that of the instant before, else the first in view.
fn target<'a>(drawn: &'a Drawn, before: Option<&Hover>) -> Option<&'a PanelView> {
    let focused = browser::focused().and_then(|e| e.closest("article").ok()?);
    let focused = focused.and_then(|e| e.get_attribute("data-panel"));
    let id = focused.or_else(|| before.map(|h| h.panel.clone()));
    let mut panels = drawn.panels.iter();
    let known = panels.clone().find(|p| Some(&p.id) == id.as_ref());
    known.or_else(|| panels.find(|p| p.in_view))
}

/// Moves the instant to the next mark, or to the one before; the span follows when it is outside. False without such a
/// mark.
pub fn to_mark(board: Board, by: i32) -> bool {
    let (page, (from, to)) = (board.page, board.page.span());
    let start = instant(board).unwrap_or(if by > 0 { from - 1 } else { to + 1 });
    let Some(mark) = page.mark_beside(start, by) else { return false };
    if !(from..=to).contains(&mark.from) {
        page.begin_step();
        page.show(mark.from - (to - from) / 2, mark.from + (to - from) / 2);
    }
    let before = page.hover.write_value().take();
    let drawn = board.drawn();
    let Some(panel) = target(&drawn, before.as_ref()) else { return false };
    let y = panel.plot().map_or(0.0, |plot| plot.height() / 2.0);
    let pinned = before.is_some_and(|h| h.pinned);
    let hover = Hover { panel: panel.id.clone(), t: mark.from, share: None, y, top: 0.0, pinned };
    drop(drawn);
    page.hover.set_value(Some(hover));
    board.said.set(format!("{}, {}", mark.name, axis::clock(mark.from + browser::offset(mark.from), true)));
    page.redraw();
    true
}

/// Moves the instant by `by` samples, starting at the newest when there is none. `i64::MIN` and `i64::MAX` go to the
/// ends of the span.
pub fn step(board: Board, by: i64) {
    let (from, to) = board.page.span();
    let before = board.page.hover.write_value().take();
    let drawn = board.drawn();
    let Some(panel) = target(&drawn, before.as_ref()) else { return };
    let picture = &panel.picture;
    let (t, width) = (before.as_ref().map_or(to, |h| h.t), picture.width());
    let at = match (by, &before) {
        (i64::MIN, _) => picture.snap(from),
        (i64::MAX, _) | (_, None) => picture.snap(to),
        _ => {
            let next = |n: i64| picture.snap(t + width * by + width / 2 * n * by.signum());
            // A series that is read seldom has samples many columns apart, so up to 600 columns are tried.
            (0..600).map_while(next).find(|at| *at != t)
        }
    };
    let hover = Hover {
        panel: panel.id.clone(),
        t: at.unwrap_or(t).clamp(from, to),
        share: None,
        y: panel.plot().map_or(0.0, |plot| plot.height() / 2.0),
        top: 0.0,
        pinned: before.is_some_and(|h| h.pinned),
    };
    drop(drawn);
    board.page.hover.set_value(Some(hover));
    board.speak();
    board.redraw_over();
}

/// The focus went to another chart, so the instant moves to this chart too.
pub fn follow_focus(board: Board) {
    if instant(board).is_some() {
        step(board, 0);
        let id = board.page.hover.with_value(|h| h.as_ref().map(|h| h.panel.clone()));
        // The browser reports the chart as visible too late, and its values are needed at once.
        board.bring_into_view(id.as_deref());
        board.page.redraw();
    }
}

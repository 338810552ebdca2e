//! The instant that all charts show, moved by pointers and keys.

use crate::browser;
use crate::panels::board::Board;
use crate::state::Hover;
use leptos::prelude::*;

/// A place on a plot.
#[derive(Clone, Debug)]
pub struct Place {
    /// The chart.
    pub panel: String,
    /// CSS pixels from the plot's corner.
    pub x: f64,
    /// Likewise.
    pub y: f64,
    /// Width of the plot's element.
    pub width: f64,
    /// Its top in the window.
    pub top: f64,
}

impl Place {
    /// Place in the span: 0 its start, 1 its end; beyond them too.
    pub fn share(&self, board: Board) -> f64 {
        let (left, right) = board.gutters();
        (self.x - left) / (self.width - left - right).max(1.0)
    }

    /// The instant there, within the span.
    pub fn t(&self, board: Board) -> i64 {
        let (from, to) = board.page.span();
        from + (self.share(board).clamp(0.0, 1.0) * (to - from) as f64).round() as i64
    }

    /// The series whose label is there.
    pub fn label(&self, board: Board) -> Option<usize> {
        let right = self.width - board.gutters().1;
        let drawn = board.drawn();
        let panel = drawn.panels.iter().find(|p| p.id == self.panel && p.lines() && p.places.len() > 1)?;
        let near = panel.places.iter().min_by(|a, b| (a.1 - self.y).abs().total_cmp(&(b.1 - self.y).abs()))?;
        (self.x > right + 4.0 && (near.1 - self.y).abs() < 24.0).then_some(near.0)
    }
}

/// The pointer moved over a plot.
pub fn moved(board: Board, place: &Place, pinned: bool) {
    let focus = place.label(board).map(|i| (place.panel.clone(), i));
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

/// The pointer left the plots.
pub fn left(board: Board) {
    board.page.hover.update_value(|hover| *hover = hover.take().filter(|h| h.share.is_none()));
    again(board, board.attend(None));
}

/// The page moved under the pointer, which says nothing until it moves too; what stays goes with its chart.
pub fn scrolled(board: Board) {
    let hover = board.page.hover.get_value();
    let plot = hover.as_ref().and_then(|h| board.drawn().panels.iter().find(|p| p.id == h.panel)?.plot());
    if let (Some(hover), Some(plot)) = (hover, plot)
        && (plot.top() - hover.top).abs() > 1.0
    {
        left(board);
    }
}

/// Nothing is pointed at any more.
pub fn clear(board: Board) {
    board.page.hover.set_value(None);
    board.attend(None);
}

fn again(board: Board, all: bool) {
    if all { board.page.redraw() } else { board.redraw_over() }
}

/// The instant that is pointed at.
pub fn instant(board: Board) -> Option<i64> {
    board.page.hover.with_value(|h| h.as_ref().map(|h| h.t))
}

/// Lets the instant stay where it is, or go.
pub fn toggle_pin(board: Board) {
    board.page.hover.update_value(|hover| {
        if let Some(hover) = hover {
            hover.pinned = !hover.pinned;
            hover.share = None;
        }
    });
    board.redraw_over();
}

/// Moves the instant by so many samples, from the newest when nothing is pointed at.
pub fn step(board: Board, by: i64) {
    let (from, to) = board.page.span();
    let focused = browser::focused().and_then(|e| e.closest("article").ok()?);
    let focused = focused.and_then(|e| e.get_attribute("data-panel"));
    let before = board.page.hover.write_value().take();
    let id = focused.or_else(|| before.as_ref().map(|h| h.panel.clone()));
    let drawn = board.drawn();
    let mut panels = drawn.panels.iter();
    let known = panels.clone().find(|p| Some(&p.id) == id.as_ref());
    let Some(panel) = known.or_else(|| panels.find(|p| p.in_view)) else { return };
    let picture = &panel.picture;
    let (t, width) = (before.as_ref().map_or(to, |h| h.t), picture.width());
    let at = match (by, &before) {
        (i64::MIN, _) => picture.snap(from),
        (i64::MAX, _) | (_, None) => picture.snap(to),
        _ => {
            let next = |n: i64| picture.snap(t + width * by + width / 2 * n * by.signum());
            // Series that are read seldom are many widths apart.
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

/// The keys went to another chart: the instant that is read goes with them.
pub fn follow_focus(board: Board) {
    if instant(board).is_some() {
        step(board, 0);
        let id = board.page.hover.with_value(|h| h.as_ref().map(|h| h.panel.clone()));
        // It comes into view with the keys, and is read at once.
        board.bring_into_view(id.as_deref());
        board.page.redraw();
    }
}

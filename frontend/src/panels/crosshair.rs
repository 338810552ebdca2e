//! The pointer on the charts: an instant that all of them show, and one tooltip in the chart under it.

use super::board::{Board, PanelView};
use super::picture::Look;
use crate::page::Page;
use charts::axis;
use charts::band::quantile;
use charts::{Chart, Hue};
use leptos::prelude::*;

/// Rows of a tooltip, at most.
const ROWS: usize = 8;

/// Where the pointer is.
#[derive(Clone, Debug, PartialEq)]
pub struct Hover {
    /// The chart under it.
    pub panel: String,
    /// The instant.
    pub t: i64,
    /// Place in the window, CSS pixels.
    pub place: (f64, f64),
}

/// One series in the tooltip.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its colour.
    pub hue: Hue,
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// What the tooltip says.
#[derive(Clone, Debug, PartialEq)]
pub struct Tip {
    /// The instant.
    pub when: String,
    /// The unit.
    pub unit: String,
    /// Largest first.
    pub rows: Vec<Row>,
    /// What is left out.
    pub rest: String,
    /// Place of the pointer, CSS pixels.
    pub place: (f64, f64),
}

/// The pointer moved over a plot: `x` and `y` in CSS pixels from its corner, `place` in the window.
pub fn moved(page: Page, panel: &str, (x, y): (f64, f64), place: (f64, f64), size: f64) {
    let (from, to) = page.span();
    let mut board = page.board.borrow_mut();
    let (left, right) = board.gutters();
    let plot_right = size - right;
    let over_names = x > plot_right + 4.0;
    let named = board.panels.iter().find(|p| p.id == panel).filter(|p| p.places.len() > 1 && over_names && p.lines());
    let focus = named.and_then(|p| {
        let near = p.places.iter().min_by(|a, b| (a.1 - y).abs().total_cmp(&(b.1 - y).abs()))?;
        Some((panel.to_string(), near.0))
    });
    let refocus = board.focus != focus;
    let focused = focus.is_some();
    board.focus = focus;
    let share = ((x - left) / (plot_right - left).max(1.0)).clamp(0.0, 1.0);
    let t = from + (share * (to - from) as f64) as i64;
    board.hover = (!focused).then(|| Hover { panel: panel.to_string(), t, place });
    drop(board);
    if refocus {
        page.redraw();
    } else {
        Board::redraw_over(page);
    }
}

/// The pointer left the plot.
pub fn left(page: Page) {
    let refocus = {
        let mut board = page.board.borrow_mut();
        board.hover = None;
        board.focus.take().is_some()
    };
    page.tip.set(None);
    if refocus {
        page.redraw();
    } else {
        Board::redraw_over(page);
    }
}

/// Brings the tooltip up to date after a drawing.
pub fn follow(page: Page, board: &Board, look: &Look) {
    let tip = board.hover.as_ref().and_then(|hover| {
        let panel = board.panels.iter().find(|p| p.id == hover.panel)?;
        Some(tip(panel, hover, look))
    });
    if page.tip.with_untracked(|t| *t != tip) {
        page.tip.set(tip);
    }
}

fn tip(panel: &PanelView, hover: &Hover, look: &Look) -> Tip {
    let picture = &panel.picture;
    let at = picture.snap(hover.t);
    let values = picture.values(Some(at.unwrap_or(hover.t)), look.span.1);
    let mut rows: Vec<(usize, f64)> = values.into_iter().enumerate().filter(|(_, v)| v.is_finite()).collect();
    rows.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let band = Chart::for_series(picture.names.len()) == Chart::Band;
    let rest = if rows.is_empty() {
        "no data here".to_string()
    } else if rows.len() > ROWS {
        let mut all: Vec<f64> = rows.iter().map(|r| r.1).collect();
        all.sort_unstable_by(f64::total_cmp);
        let word = |share: f64| picture.number(quantile(&all, share));
        format!("… {} more (min {}, median {}, max {})", rows.len() - ROWS, word(0.0), word(0.5), word(1.0))
    } else {
        String::new()
    };
    let row = |(i, v): &(usize, f64)| Row {
        hue: if band { Hue::Ink } else { picture.names[*i].hue },
        name: picture.names[*i].full.clone(),
        value: picture.number(*v),
    };
    let mean = if picture.step > 1 { format!(", mean of {}", axis::duration(picture.step)) } else { String::new() };
    Tip {
        when: format!("{}{mean}", axis::clock(at.unwrap_or(hover.t) + look.offset, true)),
        unit: picture.unit.to_string(),
        rows: rows.iter().take(ROWS).map(row).collect(),
        rest,
        place: hover.place,
    }
}

//! The instant that all charts show, and one tooltip in the chart that is pointed at.

use super::board::Board;
use super::board::view::PanelView;
use super::picture::{Look, Picture, is};
use crate::page::Page;
pub use crate::widgets::tooltip::Tip;
use crate::widgets::tooltip::{self, Row};
use charts::axis;
use charts::band::quantile;
use charts::{Chart, Hue, order};

/// Rows of a tooltip, at most; of a pinned one, which scrolls.
const ROWS: (usize, usize) = (8, 500);

/// Where the pointer is, or the keys are.
#[derive(Clone, Debug, PartialEq)]
pub struct Hover {
    /// The chart that is pointed at.
    pub panel: String,
    /// The instant.
    pub t: i64,
    /// Place in the span while the pointer rests there; none where the instant stays.
    pub share: Option<f64>,
    /// Height on the plot, CSS pixels from its top.
    pub y: f64,
    /// Where that top was in the window.
    pub top: f64,
    /// Whether it stays where it is when the pointer goes.
    pub pinned: bool,
}

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
    pub fn share(&self, page: Page) -> f64 {
        let (left, right) = page.board.borrow().gutters();
        (self.x - left) / (self.width - left - right).max(1.0)
    }

    /// The instant there, within the span.
    pub fn t(&self, page: Page) -> i64 {
        let (from, to) = page.span();
        from + (self.share(page).clamp(0.0, 1.0) * (to - from) as f64).round() as i64
    }

    /// The series whose label is there.
    pub fn label(&self, page: Page) -> Option<usize> {
        let board = page.board.borrow();
        let right = self.width - board.gutters().1;
        let panel = board.panels.iter().find(|p| p.id == self.panel && p.lines() && p.places.len() > 1)?;
        let near = panel.places.iter().min_by(|a, b| (a.1 - self.y).abs().total_cmp(&(b.1 - self.y).abs()))?;
        (self.x > right + 4.0 && (near.1 - self.y).abs() < 24.0).then_some(near.0)
    }
}

/// The pointer moved over a plot.
pub fn moved(page: Page, place: &Place, pinned: bool) {
    let focus = place.label(page).map(|i| (place.panel.clone(), i));
    let (share, t) = (place.share(page).clamp(0.0, 1.0), place.t(page));
    let mut board = page.board.borrow_mut();
    let refocus = board.focus != focus;
    let stays = board.hover.as_ref().is_some_and(|h| h.pinned) && !pinned;
    if !stays {
        let share = (!pinned).then_some(share);
        let hover = Hover { panel: place.panel.clone(), t, share, y: place.y, top: place.top, pinned };
        board.hover = focus.is_none().then_some(hover);
    }
    board.focus = focus;
    drop(board);
    again(page, refocus);
}

/// The pointer left the plots.
pub fn left(page: Page) {
    let refocus = {
        let mut board = page.board.borrow_mut();
        board.hover = board.hover.take().filter(|h| h.share.is_none());
        board.focus.take().is_some()
    };
    again(page, refocus);
}

/// The page moved under the pointer, which says nothing until it moves too; what stays goes with its chart.
pub fn scrolled(page: Page) {
    let moved = {
        let board = page.board.borrow();
        let plot = |hover: &Hover| Some((board.panels.iter().find(|p| p.id == hover.panel)?.plot()?, hover.top));
        board.hover.as_ref().and_then(plot).is_some_and(|(plot, top)| (plot.top() - top).abs() > 1.0)
    };
    if moved {
        left(page);
    }
}

/// Nothing is pointed at any more.
pub fn clear(page: Page) {
    let mut board = page.board.borrow_mut();
    (board.hover, board.focus) = (None, None);
}

fn again(page: Page, all: bool) {
    if all { page.redraw() } else { Board::redraw_over(page) }
}

/// The instant that is pointed at.
pub fn instant(page: Page) -> Option<i64> {
    page.board.borrow().hover.as_ref().map(|h| h.t)
}

/// Lets the instant stay where it is, or go.
pub fn toggle_pin(page: Page) {
    if let Some(hover) = &mut page.board.borrow_mut().hover {
        hover.pinned = !hover.pinned;
        hover.share = None;
    }
    Board::redraw_over(page);
}

/// Moves the instant by so many samples, from the newest when nothing is pointed at.
pub fn step(page: Page, by: i64) {
    let (from, to) = page.span();
    let focused = crate::widgets::dom::document().active_element().and_then(|e| e.closest("article").ok()?);
    let focused = focused.and_then(|e| e.get_attribute("data-panel"));
    let mut board = page.board.borrow_mut();
    let before = board.hover.take();
    let id = focused.or_else(|| before.as_ref().map(|h| h.panel.clone()));
    let mut panels = board.panels.iter();
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
    board.hover = Some(hover);
    board.speak = true;
    drop(board);
    Board::redraw_over(page);
}

/// The keys went to another chart: the instant that is read goes with them.
pub fn follow_focus(page: Page) {
    if instant(page).is_some() {
        step(page, 0);
        let id = page.board.borrow().hover.as_ref().map(|h| h.panel.clone());
        if let Some(panel) = page.board.borrow_mut().panels.iter_mut().find(|p| Some(&p.id) == id.as_ref()) {
            // It comes into view with the keys, and is read at once.
            panel.in_view = true;
        }
        page.redraw();
    }
}

/// Where the instant is before a drawing: a resting pointer stays at its place while time goes on.
pub fn follow_span(board: &mut Board, (from, to): (i64, i64)) {
    if let Some((hover, share)) = board.hover.as_mut().and_then(|h| h.share.map(|s| (h, s))) {
        hover.t = from + (share * (to - from) as f64).round() as i64;
    }
    board.hover = board.hover.take().filter(|h| (from..=to).contains(&h.t));
}

/// Brings the tooltip up to date after a drawing.
pub fn follow(board: &mut Board, look: &Look) {
    let tip = board.hover.as_ref().and_then(|hover| {
        let panel = board.panels.iter().find(|p| p.id == hover.panel)?;
        Some(tip(panel, hover, look, board.gutters()))
    });
    if board.tip != tip {
        tooltip::show(tip.as_ref());
        if let Some(tip) = tip.as_ref().filter(|_| board.speak) {
            tooltip::say(spoken(tip));
            board.speak = false;
        }
        board.tip = tip;
    }
}

/// What the tooltip says, for ears: as many rows as are seen, and the unit once.
fn spoken(tip: &Tip) -> String {
    let unit = match tip.unit.as_str() {
        "%" => "percent",
        "°C" => "degrees",
        "W" => "watts",
        other => other,
    };
    let row = |(i, r): (usize, &Row)| match i {
        0 => format!(", {}, {} {unit}", r.name, r.value),
        _ => format!("; {}, {}", r.name, r.value),
    };
    let rows: String = tip.rows.iter().take(ROWS.0).enumerate().map(row).collect();
    let rest = if tip.rows.is_empty() { format!(", {}", tip.rest) } else { String::new() };
    format!("{}{rows}{rest}", tip.when)
}

fn tip(panel: &PanelView, hover: &Hover, look: &Look, (left, right): (f64, f64)) -> Tip {
    let picture = &panel.picture;
    let at = picture.snap(hover.t).unwrap_or(hover.t);
    let then = panel.past.as_ref().map(|past| {
        let look = past.look(look);
        past.picture.values(Some(past.picture.snap(at - past.shift).unwrap_or(at - past.shift)), look.span.1)
    });
    let most = if hover.pinned { ROWS.1 } else { ROWS.0 };
    let (rows, rest) = rows(picture, at, look.span.1, then.as_deref(), most, panel.row(hover));
    let other = panel.other.as_ref().map(|other| {
        let at = other.picture.snap(hover.t).unwrap_or(hover.t);
        (format!("{}, {}", other.title, other.picture.unit), rows_of(other, at, look.span.1, most))
    });
    let mean = if picture.step > 1 { format!(", mean of {}", axis::duration(picture.step)) } else { String::new() };
    let share = (hover.t - look.span.0) as f64 / (look.span.1 - look.span.0).max(1) as f64;
    let place = panel.plot().map(|p| (p.left() + left + share * (p.width() - left - right), p.top() + hover.y));
    Tip {
        when: format!("{}{mean}", axis::clock(at + look.offset, true)),
        unit: picture.unit.to_string(),
        rows,
        rest,
        other,
        place: place.unwrap_or_default(),
        pinned: hover.pinned,
    }
}

fn rows_of(other: &super::board::view::Under, at: i64, to: i64, most: usize) -> Vec<Row> {
    rows(&other.picture, at, to, None, most, None).0
}

/// The series by value, the largest first; on a heat map `first`, then the furthest from the median. At most so many;
/// and what is to be said of the others.
fn rows(
    picture: &Picture,
    at: i64,
    to: i64,
    then: Option<&[f64]>,
    most: usize,
    first: Option<usize>,
) -> (Vec<Row>, String) {
    let values = picture.values(Some(at), to).into_iter().enumerate();
    let mut all: Vec<(usize, f64)> = values.filter(|(i, v)| v.is_finite() && !is(&picture.muted, *i)).collect();
    all = order::by(all.iter().map(|r| order::key(-r.1))).into_iter().map(|i| all[i]).collect();
    let rest = if all.is_empty() {
        "no data here".to_string()
    } else if all.len() > most {
        let mut sorted: Vec<f64> = all.iter().map(|r| r.1).collect();
        sorted.reverse();
        let word = |share: f64| picture.number(quantile(&sorted, share));
        format!("… {} more (min {}, median {}, max {})", all.len() - most, word(0.0), word(0.5), word(1.0))
    } else {
        String::new()
    };
    let band = Chart::for_series(picture.names.len()) == Chart::Band;
    let row = |(i, v): &(usize, f64)| Row {
        hue: if band { Hue::Ink } else { picture.names[*i].hue },
        name: picture.names[*i].full.clone(),
        value: picture.number(*v),
        then: then
            .and_then(|t| t.get(*i))
            .filter(|v| v.is_finite())
            .map_or_else(String::new, |v| format!("was {}", picture.number(*v))),
    };
    if first.is_some() {
        // On a heat map the furthest from the median count, not the largest.
        let median = all.get(all.len() / 2).map_or(0.0, |m| m.1);
        let rank = |r: &(usize, f64)| if Some(r.0) == first { i64::MIN } else { order::key(-(r.1 - median).abs()) };
        all = order::by(all.iter().map(rank)).into_iter().map(|i| all[i]).collect();
    }
    (all.iter().take(most).map(row).collect(), rest)
}

//! Drawing settings of the page, the state of a panel, and a key that detects whether a drawing would change.

use super::rows::Rows;
use crate::alerts::Alerted;
use crate::findings::evidence::Subjects;
use charts::axis::Zone;
use charts::marks::CellMark;
use charts::theme::RGBAColor;
use charts::{Measures, Theme};
use std::rc::Rc;

/// State of the data of a panel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PanelState {
    /// The newest sample is at most 2.25 intervals old.
    Live,
    /// There is no sample in the window.
    #[default]
    Empty,
    /// The newest sample is older than 2.25 intervals.
    Stale,
}

impl PanelState {
    /// Name of the state in `data-state`.
    pub fn name(self) -> &'static str {
        match self {
            PanelState::Live => "live",
            PanelState::Empty => "empty",
            PanelState::Stale => "stale",
        }
    }
}

/// Present drawing settings of the page, the same for all panels.
#[derive(Clone, Debug)]
pub struct Look {
    /// Colors of the theme.
    pub theme: &'static Theme,
    /// Measures of the charts in CSS pixels.
    pub measures: Measures,
    /// Units in a CSS pixel.
    pub css: f64,
    /// Units in a device pixel.
    pub device: f64,
    /// Span shown, ms since the epoch.
    pub span: (i64, i64),
    /// Local time minus UTC.
    pub zone: Zone,
    /// The server's clock, ms since the epoch.
    pub now: i64,
    /// True when the right edge is now and ticks arrive.
    pub live: bool,
    /// True when the span is frozen.
    pub frozen: bool,
    /// Runs of a notebook's cells, in order of time.
    pub marks: Rc<[CellMark]>,
    /// Alerts to draw.
    pub alerts: Rc<Alerted>,
    /// Whom the finding that leads the page is about.
    pub subjects: Rc<Subjects>,
}

impl Look {
    /// Device pixels from the left to the right of a plot on a canvas of `width` units; at least 1.
    pub(super) fn pixels(&self, width: i32) -> f64 {
        let gutters = self.css * (self.measures.left + self.measures.right);
        ((f64::from(width) - gutters) / self.device).floor().max(1.0)
    }

    /// The span that is drawn on a canvas of `width` units. A live span ends at a whole pixel since the epoch, at most
    /// one pixel late. So it moves by whole pixels, and lines do not flicker.
    pub(super) fn drawn(&self, width: i32) -> (i64, i64) {
        let (from, to) = self.span;
        if !self.live {
            return self.span;
        }
        let pixel = (to - from).max(1) as f64 / self.pixels(width);
        let end = ((to as f64 / pixel).ceil() * pixel).round() as i64;
        (end - (to - from), end)
    }
}

/// The inputs that determine a drawing. While they stay the same, a new drawing would hardly change a pixel. Time
/// counts in quarters of a pixel. So a window of 12 h is drawn a few times a minute, and one of 5 min every second.
#[derive(Clone, Debug, PartialEq)]
pub struct RedrawKey {
    pub(super) edges: (i64, i64),
    pub(super) size: (i32, i32),
    pub(super) axis: Option<(f64, f64)>,
    pub(super) sums: [String; 3],
    pub(super) gaps: (usize, i64),
    pub(super) limits: usize,
    pub(super) step: i64,
    pub(super) epoch: u32,
    pub(super) ground: RGBAColor,
    pub(super) focus: Option<usize>,
    pub(super) kept: (Vec<bool>, Vec<bool>),
    pub(super) looks: (PanelState, bool, usize),
    pub(super) marks: Rc<[CellMark]>,
    pub(super) alerts: Rc<Alerted>,
    pub(super) rows: (Rows, Vec<usize>, Vec<usize>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_window_moves_by_whole_pixels_and_one_that_stands_is_drawn_as_it_is() {
        let look = |to: i64, live: bool| Look {
            theme: &charts::theme::DARK,
            measures: Measures { left: 40.0, right: 100.0, ..Measures::default() },
            css: 4.0,
            device: 4.0,
            span: (to - 300_000, to),
            zone: Zone::UTC,
            now: to,
            live,
            frozen: !live,
            marks: Rc::default(),
            alerts: Rc::default(),
            subjects: Rc::default(),
        };
        // This makes 460 pixels of 652.2 ms each.
        let (width, newest) = (600 * 4, 1_700_000_000_123);
        let ends: Vec<i64> = (0..200).map(|i| look(newest + i * 1_000, true).drawn(width).1).collect();
        for (i, end) in (0..).zip(&ends) {
            let late = end - (newest + i * 1_000);
            assert!((0..=653).contains(&late), "{late}");
            let moved = (end - ends[0]) as f64 / (300_000.0 / 460.0);
            assert!((moved - moved.round()).abs() < 0.01, "{moved}");
        }
        let stands = look(newest, false);
        assert_eq!(stands.drawn(width), stands.span);
    }
}

//! How the page looks at the moment, how a panel stands, and what a drawing looks like from afar.

use super::rows::Rows;
use charts::{Measures, Theme};

/// How a panel stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The newest sample is at most two intervals old.
    Live,
    /// No sample in the window.
    #[default]
    Empty,
    /// The newest sample is older.
    Stale,
}

impl State {
    /// Its name in `data-state`.
    pub fn name(self) -> &'static str {
        match self {
            State::Live => "live",
            State::Empty => "empty",
            State::Stale => "stale",
        }
    }
}

/// How the page looks at the moment; the same for all panels.
#[derive(Clone, Debug)]
pub struct Look {
    /// Colours.
    pub theme: &'static Theme,
    /// Lengths.
    pub measures: Measures,
    /// Units in a CSS pixel.
    pub css: f64,
    /// Units in a device pixel.
    pub device: f64,
    /// Span shown, ms.
    pub span: (i64, i64),
    /// Local time minus UTC, ms.
    pub offset: i64,
    /// The server's clock, ms.
    pub now: i64,
    /// Whether the right edge is now and ticks come.
    pub live: bool,
    /// Whether the span stands still.
    pub frozen: bool,
}

/// What a drawing looks like from afar: as long as it is the same, drawing again would change no pixel worth it. Time
/// counts in quarters of a pixel, so that a window of 12 h is drawn a few times a minute and one of 5 min each second.
#[derive(Clone, Debug, PartialEq)]
pub struct Sight {
    pub(super) edges: (i64, i64),
    pub(super) size: (i32, i32),
    pub(super) axis: Option<(f64, f64)>,
    pub(super) sums: [String; 3],
    pub(super) gaps: (usize, i64),
    pub(super) limits: usize,
    pub(super) step: i64,
    pub(super) epoch: u32,
    pub(super) dark: bool,
    pub(super) focus: Option<usize>,
    pub(super) kept: (Vec<bool>, Vec<bool>),
    pub(super) looks: (State, bool, usize),
    pub(super) rows: (Rows, Vec<usize>),
}

//! What a chart is given, and where things lie on it.
//!
//! Lengths are in *units*: a backend counts whole numbers, so a canvas is drawn in quarters of a device pixel
//! ([`crate::canvas::SUBPIXELS`]) and an SVG in whole ones. `css` and `device` say how many units a CSS pixel and a
//! device pixel have; drawing code writes CSS pixels and multiplies.

use crate::axis::Axis;
use crate::reduce::Column;
use crate::theme::Theme;
use plotters::style::RGBAColor;

/// Kinds of drawings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chart {
    /// One series: a line in ink, filled to its baseline.
    Area,
    /// Two to eight series: lines, each in its hue.
    Line,
    /// More: median, middle 80 % and extremes, and a few by name.
    Band,
    /// As many, a row of cells each.
    Heat,
    /// States, a row of bars each.
    Lanes,
}

impl Chart {
    /// The drawing for that many series.
    pub fn for_series(n: usize) -> Self {
        match n {
            0 | 1 => Chart::Area,
            2..=8 => Chart::Line,
            _ => Chart::Band,
        }
    }

    /// True when the vertical place says which series it is, not how much.
    pub fn has_rows(self) -> bool {
        matches!(self, Chart::Heat | Chart::Lanes)
    }
}

/// The colour of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hue {
    /// The neutral one.
    Ink,
    /// One of eight; from the fifth on they are dashed too.
    Of(u8),
}

impl Hue {
    /// Its colour.
    pub fn color(self, theme: &Theme) -> RGBAColor {
        match self {
            Hue::Ink => theme.ink,
            Hue::Of(i) => theme.hues[usize::from(i) % 8],
        }
    }

    /// Whether its lines are dashed.
    pub fn dashed(self) -> bool {
        matches!(self, Hue::Of(i) if i % 8 > 3)
    }

    /// Its place in the order of drawing: dashed under solid and warm under cold, so that a bundle of equal lines never
    /// reads as a warning.
    pub fn depth(self) -> usize {
        const DEPTH: [u8; 8] = [7, 5, 6, 4, 0, 3, 2, 1];
        match self {
            Hue::Ink => 8,
            Hue::Of(i) => DEPTH.iter().position(|&d| d == i % 8).unwrap_or(0),
        }
    }
}

/// One series.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Its columns, oldest first.
    pub columns: &'a [Column],
    /// Its colour.
    pub hue: Hue,
    /// False when another series has the attention.
    pub bright: bool,
}

/// The spread of many series in one column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// Number of the column, as in [`Column`].
    pub slot: i64,
    /// Time, ms.
    pub t: i64,
    /// Smallest of all, tenth percentile, median, ninetieth percentile, largest of all.
    pub values: [f64; 5],
    /// False when a gap lies before it.
    pub joined: bool,
}

/// What something was in from one instant to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Start, ms.
    pub from: i64,
    /// End, ms.
    pub to: i64,
    /// The state in words.
    pub word: String,
    /// Opacity of the bar; 0 for a state that is nothing to speak of.
    pub strength: f64,
    /// True for a state that someone should look at.
    pub alert: bool,
}

/// A row of bars. Where none is, nothing is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lane {
    /// Whose states.
    pub name: String,
    /// In order of time.
    pub bars: Vec<Bar>,
}

/// How rows of cells are drawn; the rows are the frame's lines.
#[derive(Clone, Copy, Debug)]
pub struct Heat<'a> {
    /// Name of each row.
    pub names: &'a [&'a str],
    /// True for the values themselves, false for their distance from the median.
    pub values: bool,
}

/// A fact that is drawn as a dashed line.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Where, in base units.
    pub value: f64,
    /// What it is.
    pub text: String,
}

/// A span without data.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// Start, ms.
    pub from: i64,
    /// End, ms.
    pub to: i64,
    /// What is said in it where it is wide enough; empty for nothing.
    pub text: String,
}

/// Measures in CSS pixels; they follow the width of the page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measures {
    /// Size of axis and label text.
    pub text: f64,
    /// Left of the plot.
    pub left: f64,
    /// Right of the plot.
    pub right: f64,
    /// Width of a line.
    pub line: f64,
}

impl Default for Measures {
    fn default() -> Self {
        Measures { text: 12.0, left: 40.0, right: 100.0, line: 1.5 }
    }
}

/// Everything that a chart shows.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    /// Which drawing.
    pub chart: Chart,
    /// Width and height in units.
    pub size: (i32, i32),
    /// Units in a CSS pixel.
    pub css: f64,
    /// Units in a device pixel.
    pub device: f64,
    /// Colours.
    pub theme: &'a Theme,
    /// Lengths.
    pub measures: Measures,
    /// Start of the span shown, ms since the epoch.
    pub from: i64,
    /// Its end.
    pub to: i64,
    /// Local time minus UTC, ms.
    pub offset: i64,
    /// The vertical axis.
    pub axis: &'a Axis,
    /// Width of a column, ms.
    pub step: i64,
    /// Time between samples, ms.
    pub interval: i64,
    /// The series; of a band those that are named, of a heat map its rows.
    pub lines: &'a [Line<'a>],
    /// The spread, when there are too many series for lines.
    pub band: &'a [Band],
    /// How the rows of a heat map are drawn.
    pub heat: Option<Heat<'a>>,
    /// Rows of bars under the plot; of a chart of states in it.
    pub lanes: &'a [Lane],
    /// Limits.
    pub limits: &'a [Limit],
    /// Spans without data.
    pub gaps: &'a [Gap],
    /// True when the right edge is now.
    pub live: bool,
    /// How often there is a sample and how old the newest is, in words; empty where that is said elsewhere.
    pub age: &'a str,
}

impl Frame<'_> {
    /// A length of `px` CSS pixels, in units.
    pub fn px(&self, px: f64) -> i32 {
        (px * self.css).round() as i32
    }

    /// The thinnest line that is sharp: three quarters of a CSS pixel, at least a device pixel.
    pub fn hair(&self) -> i32 {
        ((self.css * 0.75 / self.device).round().max(1.0) * self.device) as i32
    }

    /// A length in units to the nearest device pixel.
    pub fn whole(&self, units: f64) -> i32 {
        ((units / self.device).round() * self.device) as i32
    }

    /// Where the data lies.
    pub fn plot(&self) -> Plot {
        let m = &self.measures;
        let stretch = m.text - 12.0;
        Plot {
            left: self.whole(m.left * self.css),
            right: self.size.0 - self.whole(m.right * self.css),
            top: self.whole(8.0 * self.css),
            bottom: self.size.1 - self.whole((22.0 + stretch + self.lanes_height()) * self.css),
            from: self.from,
            to: self.to,
            lo: self.axis.lo,
            hi: self.axis.hi,
        }
    }

    /// CSS pixels that the rows of bars under the plot take.
    pub fn lanes_height(&self) -> f64 {
        if self.chart == Chart::Lanes || self.lanes.is_empty() {
            return 0.0;
        }
        self.lanes.len() as f64 * (self.measures.text + 4.0) + 8.0
    }

    /// Middle of the words along the bottom, units.
    pub fn foot(&self) -> i32 {
        self.size.1 - self.px(8.0 + (self.measures.text - 12.0) / 2.0)
    }

    /// True when the columns hold so many samples that a line through all extremes would be a solid block.
    pub fn dense(&self) -> bool {
        self.step > self.interval * 3
    }
}

/// The rectangle of the data and the way from values to places on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plot {
    /// Left edge, units.
    pub left: i32,
    /// Right edge.
    pub right: i32,
    /// Upper edge.
    pub top: i32,
    /// Lower edge.
    pub bottom: i32,
    /// Start, ms.
    pub from: i64,
    /// End, ms.
    pub to: i64,
    /// Value at the lower edge.
    pub lo: f64,
    /// Value at the upper edge.
    pub hi: f64,
}

impl Plot {
    /// Place of an instant; beyond the edges too.
    pub fn x(&self, t: i64) -> i32 {
        let share = (t - self.from) as f64 / (self.to - self.from).max(1) as f64;
        self.left + (share * f64::from(self.right - self.left)).round() as i32
    }

    /// Place of an instant, within the plot.
    pub fn x_within(&self, t: i64) -> i32 {
        self.x(t.clamp(self.from, self.to))
    }

    /// Place of a value.
    pub fn y(&self, v: f64) -> i32 {
        let share = (v - self.lo) / (self.hi - self.lo);
        // What lies beyond the axis stays near it, so that no coordinate overflows.
        self.bottom - (share.clamp(-4.0, 4.0) * f64::from(self.bottom - self.top)).round() as i32
    }

    /// Place of a line of `width` units at a value, so that its upper edge lies on a device pixel.
    pub fn snap(&self, v: f64, width: f64, device: f64) -> i32 {
        let edge = ((f64::from(self.y(v)) - width / 2.0) / device).round() * device;
        (edge + width / 2.0).round() as i32
    }

    /// The instant at a place.
    pub fn t(&self, x: f64) -> i64 {
        let share = (x - f64::from(self.left)) / f64::from((self.right - self.left).max(1));
        self.from + (share.clamp(0.0, 1.0) * (self.to - self.from) as f64).round() as i64
    }
}

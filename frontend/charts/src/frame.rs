//! The input of a chart, and the positions of its parts.
//!
//! Lengths are in *units*, because a plotters backend counts in whole numbers. A canvas has four units in a device
//! pixel ([`crate::canvas::SUBPIXELS`]), an SVG picture has one. `css` and `device` are the numbers of units
//! in a CSS pixel and a device pixel. Drawing code writes CSS pixels and multiplies.

use crate::Chart;
use crate::axis::{Along, Axis, Zone};
use crate::kind::Shows;
use crate::reduce::Column;
use crate::theme::Theme;
use plotters::style::RGBAColor;

/// The color of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hue {
    /// The neutral color.
    Ink,
    /// One of the eight hues of series, 0 to 7; lines of hue 4 to 7 are dashed.
    Of(u8),
    /// The color of a series that differs from its peers. The number counts such series from 0, and all but the first
    /// are dashed.
    Odd(u8),
}

impl Hue {
    /// The color of this hue in a theme.
    pub fn color(self, theme: &Theme) -> RGBAColor {
        match self {
            Hue::Ink => theme.ink,
            Hue::Of(i) => theme.hues[usize::from(i) % 8],
            Hue::Odd(_) => theme.odd,
        }
    }

    /// True when lines of this hue are dashed.
    pub fn dashed(self) -> bool {
        matches!(self, Hue::Of(i) if i % 8 > 3) || matches!(self, Hue::Odd(1..))
    }

    /// Position of this hue in the drawing order, 0 at the bottom. Dashed lines are under solid ones and warm hues
    /// under cold ones, so that many equal lines never look like a warning.
    pub fn depth(self) -> usize {
        const DEPTH: [u8; 8] = [7, 5, 6, 4, 0, 3, 2, 1];
        match self {
            Hue::Odd(_) => 9,
            Hue::Ink => 8,
            Hue::Of(i) => DEPTH.iter().position(|&d| d == i % 8).unwrap_or(0),
        }
    }
}

/// One series of a chart.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Columns of the series, oldest first.
    pub columns: &'a [Column],
    /// Color of the series.
    pub hue: Hue,
    /// False when the pointer or the user has chosen another series; the line is then drawn faint.
    pub bright: bool,
}

/// The spread of many series in one column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// Number of the column, as in [`Column::slot`].
    pub slot: i64,
    /// Time at which the column is drawn, ms since the epoch.
    pub t: i64,
    /// Smallest of all, tenth percentile, median, ninetieth percentile, largest of all.
    pub values: [f64; 5],
    /// False when there is a gap between the previous column and this one.
    pub joined: bool,
}

/// Drawing style of a bar, if its opacity is not enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grade {
    /// By its opacity, or in the color of a warning.
    #[default]
    Plain,
    /// A pending alert: a hairline.
    Pending,
    /// An alert of severity info.
    Info,
    /// An alert of severity warning: a triangle at its start.
    Warning,
    /// An alert of severity critical: a square at its start.
    Critical,
}

/// One state that lasted from one instant to another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bar {
    /// Start, ms since the epoch.
    pub from: i64,
    /// End, ms since the epoch.
    pub to: i64,
    /// Name of the state.
    pub word: String,
    /// Opacity of the bar, 0 to 1; it is 0 for the normal state, which is not drawn.
    pub strength: f64,
    /// True for a state that the user should look at.
    pub alert: bool,
    /// Severity, if the bar is an alert.
    pub grade: Grade,
}

/// A row of bars. Where there is no bar, the state is unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lane {
    /// Name of the row, written left of it.
    pub name: String,
    /// Bars of the row, oldest first.
    pub bars: Vec<Bar>,
}

/// Drawing settings of the rows of cells; the values are in the frame's lines, one for each row.
#[derive(Clone, Copy, Debug)]
pub struct Heat<'a> {
    /// Name of each row.
    pub names: &'a [&'a str],
    /// True when cells show the values, false when they show the distance from the median.
    pub values: bool,
}

/// A limit, drawn as a dashed horizontal line.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Value of the limit in base units.
    pub value: f64,
    /// Text written above the line.
    pub text: String,
}

/// A span without data.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// Start, ms since the epoch.
    pub from: i64,
    /// End, ms since the epoch.
    pub to: i64,
    /// Text written in the gap if it is wide enough; empty for no text.
    pub text: String,
}

/// Measures of a chart in CSS pixels; they depend on the width of the page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measures {
    /// Font size of axes and labels.
    pub text: f64,
    /// Space left of the plot.
    pub left: f64,
    /// Space right of the plot.
    pub right: f64,
    /// Width of the lines.
    pub line: f64,
}

impl Measures {
    /// True if only values, and no full names, have space beside a plot: on a phone.
    pub fn near(&self) -> bool {
        self.right < 90.0
    }
}

impl Default for Measures {
    fn default() -> Self {
        Measures { text: 12.0, left: 40.0, right: 100.0, line: 1.5 }
    }
}

/// All inputs of one drawing.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    /// Kind of the drawing.
    pub chart: Chart,
    /// Width and height of the drawing in units.
    pub size: (i32, i32),
    /// Units in a CSS pixel.
    pub css: f64,
    /// Units in a device pixel.
    pub device: f64,
    /// Colors of the drawing.
    pub theme: &'a Theme,
    /// Measures in CSS pixels.
    pub measures: Measures,
    /// Start of the span shown, ms since the epoch.
    pub from: i64,
    /// End of the span shown, ms since the epoch.
    pub to: i64,
    /// Local time minus UTC.
    pub zone: Zone,
    /// The meaning of the horizontal axis.
    pub along: Along,
    /// The vertical axis.
    pub axis: &'a Axis,
    /// Width of a column in ms.
    pub step: i64,
    /// Time between two samples in ms.
    pub interval: i64,
    /// The series. For a band these are the few that are named, for a heat map its rows.
    pub lines: &'a [Line<'a>],
    /// The spread in each column, when there are too many series for lines; else empty.
    pub band: &'a [Band],
    /// Drawing settings of the rows of a heat map; None for the other drawings.
    pub heat: Option<Heat<'a>>,
    /// Rows of bars under the plot; for [`Chart::Lanes`] they fill the plot.
    pub lanes: &'a [Lane],
    /// Limits to draw.
    pub limits: &'a [Limit],
    /// Spans without data, drawn as hatch.
    pub gaps: &'a [Gap],
    /// True when the right edge of the plot is now.
    pub live: bool,
    /// Text with the sample interval and the age of the newest sample; empty if the page shows it elsewhere.
    pub age: &'a str,
}

impl Frame<'_> {
    /// The series that the chart shows one by one.
    pub fn shows(&self) -> Shows {
        self.chart.traits().shows
    }

    /// A length of `px` CSS pixels, in units.
    pub fn px(&self, px: f64) -> i32 {
        (px * self.css).round() as i32
    }

    /// Width in units of the thinnest sharp line: three quarters of a CSS pixel, at least a device pixel.
    pub fn hair(&self) -> i32 {
        ((self.css * 0.75 / self.device).round().max(1.0) * self.device) as i32
    }

    /// Rounds a length in units to whole device pixels.
    pub fn whole(&self, units: f64) -> i32 {
        ((units / self.device).round() * self.device) as i32
    }

    /// The rectangle in which the data are drawn. If the drawing is too small, the space of the names is removed first,
    /// then that of the axis. The edges never cross.
    pub fn plot(&self) -> Plot {
        let m = &self.measures;
        let stretch = m.text - 12.0;
        let (wide, tall) = (self.size.0.max(0), self.size.1.max(0));
        let least = self.px(MIN_PLOT);
        let (left, right) = (self.whole(m.left * self.css), wide - self.whole(m.right * self.css));
        let right = if right - left < least { wide } else { right };
        let left = if right - left < least { 0 } else { left };
        let top = self.whole(8.0 * self.css).min(tall);
        Plot {
            left,
            right,
            top,
            bottom: (tall - self.whole((22.0 + stretch + self.lanes_height()) * self.css)).max(top),
            from: self.from,
            to: self.to,
            lo: self.axis.lo,
            hi: self.axis.hi,
        }
    }

    /// True if names and values have space beside the plot.
    pub fn has_names(&self) -> bool {
        self.plot().right < self.size.0
    }

    /// Height in CSS pixels of the rows of bars under the plot.
    pub fn lanes_height(&self) -> f64 {
        if self.shows() == Shows::States || self.lanes.is_empty() {
            return 0.0;
        }
        self.lanes.len() as f64 * (self.measures.text + 4.0) + 8.0
    }

    /// Height of the middle of the texts along the bottom, in units from the top.
    pub fn foot(&self) -> i32 {
        self.size.1 - self.px(8.0 + (self.measures.text - 12.0) / 2.0)
    }

    /// True when the columns hold so many samples that a line through all extremes would be a solid block.
    pub fn dense(&self) -> bool {
        self.step > self.interval * 3
    }
}

/// Minimum width in CSS pixels of a plot with names beside it, and of one with an axis.
const MIN_PLOT: f64 = 40.0;

/// The rectangle of the data; it converts times and values to positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plot {
    /// Left edge in units.
    pub left: i32,
    /// Right edge in units.
    pub right: i32,
    /// Upper edge in units.
    pub top: i32,
    /// Lower edge in units.
    pub bottom: i32,
    /// Time at the left edge, ms since the epoch.
    pub from: i64,
    /// Time at the right edge, ms since the epoch.
    pub to: i64,
    /// Value at the lower edge.
    pub lo: f64,
    /// Value at the upper edge.
    pub hi: f64,
}

impl Plot {
    /// True if there is no space for any data.
    pub fn is_empty(&self) -> bool {
        self.left >= self.right || self.top >= self.bottom
    }

    /// Horizontal position of an instant in units. It may be beyond the edges.
    pub fn x(&self, t: i64) -> i32 {
        let share = (t - self.from) as f64 / (self.to - self.from).max(1) as f64;
        self.left + (share * f64::from(self.right - self.left)).round() as i32
    }

    /// Horizontal position of an instant in units, moved to the nearest edge when the instant is outside.
    pub fn x_within(&self, t: i64) -> i32 {
        self.x(t.min(self.to).max(self.from))
    }

    /// Vertical position of a value in units.
    pub fn y(&self, v: f64) -> i32 {
        let share = (v - self.lo) / (self.hi - self.lo);
        // A value far beyond the axis is placed near the plot, so that no coordinate overflows.
        self.bottom - (share.clamp(-4.0, 4.0) * f64::from(self.bottom - self.top)).round() as i32
    }

    /// Vertical position of a line of `width` units at a value, moved so that its upper edge is between two device
    /// pixels.
    pub fn snap(&self, v: f64, width: f64, device: f64) -> i32 {
        let edge = ((f64::from(self.y(v)) - width / 2.0) / device).round() * device;
        (edge + width / 2.0).round() as i32
    }

    /// The instant at a horizontal position in units; positions outside the plot return the time of the nearest edge.
    pub fn t(&self, x: f64) -> i64 {
        let share = (x - f64::from(self.left)) / f64::from((self.right - self.left).max(1));
        self.from + (share.clamp(0.0, 1.0) * (self.to - self.from) as f64).round() as i64
    }
}

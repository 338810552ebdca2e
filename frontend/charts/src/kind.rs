//! What the page must know of a kind of chart. A kind is a file with its `TRAITS` and its `draw`, and a row of the table
//! in `lib.rs`; nothing else knows a kind by its name.

/// What a chart has to show, by which its kind is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Number of series.
    pub series: usize,
    /// Whether the values are states, not amounts.
    pub states: bool,
    /// Whether a person asked for one row of cells for each series.
    pub map: bool,
}

/// Which of its series a chart shows one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Every series, as a line.
    Each,
    /// The few that stand out of the spread of all.
    Outliers,
    /// Every series, as a row of cells.
    Rows,
    /// Every series, as a row of states.
    States,
}

impl Shows {
    /// Whether the median of all series is named beside the series.
    pub fn median(self) -> bool {
        matches!(self, Shows::Outliers | Shows::Rows)
    }
}

/// What the page must know of a kind of chart.
pub struct Traits {
    /// Whether a chart of this shape is of this kind. The first row of the table that says so counts.
    pub fits: fn(Shape) -> bool,
    /// Which series it shows one by one.
    pub shows: Shows,
    /// The least width of a column in CSS pixels once samples are denser than pixels.
    pub column_px: i64,
    /// What stands beside the title, by the number of series; empty for nothing.
    pub note: fn(usize) -> String,
}

impl Traits {
    /// True when the vertical place says which series it is, not how much.
    pub fn has_rows(&self) -> bool {
        matches!(self.shows, Shows::Rows | Shows::States)
    }
}

/// A note of kinds that have none.
pub(crate) fn no_note(_: usize) -> String {
    String::new()
}

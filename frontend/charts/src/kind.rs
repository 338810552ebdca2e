//! Properties of a kind of chart that the page needs. A kind is a file with its `TRAITS` and its `draw`, and a row of
//! the table in `lib.rs`. No other code names a kind.

/// Properties of the data by which the kind of a chart is selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Number of series.
    pub series: usize,
    /// Whether the values are states, not amounts.
    pub states: bool,
    /// Whether the user selected one row of cells per series.
    pub map: bool,
}

/// The series that a chart shows one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Every series, as a line.
    Each,
    /// The few series that differ most from the others.
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

/// Properties of a kind of chart that the page needs.
pub struct Traits {
    /// Whether a chart of this shape is of this kind. The first matching row of the table counts.
    pub fits: fn(Shape) -> bool,
    /// The series that it shows one by one.
    pub shows: Shows,
    /// Minimum width of a column in CSS pixels once samples are denser than pixels.
    pub column_px: i64,
    /// Text beside the title, by the number of series; empty for none.
    pub note: fn(usize) -> String,
}

impl Traits {
    /// True if the vertical position identifies the series, and not a value.
    pub fn has_rows(&self) -> bool {
        matches!(self.shows, Shows::Rows | Shows::States)
    }
}

/// The empty note, for kinds without one.
pub(crate) fn no_note(_: usize) -> String {
    String::new()
}

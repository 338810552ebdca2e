//! Content of a list: headings, rows and cells.

use leptos::prelude::*;

/// A heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Head {
    /// Its name, by which the list is sorted.
    pub id: String,
    /// Its words.
    pub words: &'static str,
    /// The class of its cells.
    pub class: String,
    /// Whether its cells name their rows.
    pub names: bool,
    /// None where a press does not sort; else whether the first sort is ascending.
    pub sorts: Option<bool>,
}

/// The headings of a list.
#[derive(Clone, Copy)]
pub struct Heads(pub Signal<Vec<Head>>);

impl From<&'static [&'static str]> for Heads {
    /// Headings that sort nothing, the first of them over names. One that begins with `>` is aligned right.
    fn from(words: &'static [&'static str]) -> Heads {
        let head = |(at, words): (usize, &&'static str)| {
            let right = words.strip_prefix('>');
            let class = if right.is_some() { "right" } else { "" };
            Head { words: right.unwrap_or(words), class: class.into(), names: at == 0, ..Head::default() }
        };
        Heads(Signal::stored(words.iter().enumerate().map(head).collect()))
    }
}

impl<const N: usize> From<&'static [&'static str; N]> for Heads {
    fn from(words: &'static [&'static str; N]) -> Heads {
        words.as_slice().into()
    }
}

impl From<Signal<Vec<Head>>> for Heads {
    fn from(heads: Signal<Vec<Head>>) -> Heads {
        Heads(heads)
    }
}

/// A state: the class of its shape, the shape, and its words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mark {
    /// Class of the shape.
    pub class: &'static str,
    /// The shape, which shows the state without a color.
    pub glyph: String,
    /// Its words.
    pub words: String,
}

/// Content of one cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// Words that matter less.
    Faint(String),
    /// Emphasized words.
    Strong(String),
    /// Words, and their tooltip.
    Titled(String, String),
    /// A name, and the faint text after it.
    Name(String, String),
    /// The same as a link: its address, the name, the faint text after it, and the state that a phone shows there.
    Link(String, String, String, Mark),
    /// A number.
    Number(String),
    /// A state: whether it is good, and its label.
    State(bool, String),
    /// A state of the whole row: its name in `data-state`, its mark, and the faint text after it.
    Stands(String, Mark, String),
    /// Time of a past event, Unix seconds, shown as its age; and the word for never.
    Ago(Option<i64>, &'static str),
    /// Time of an end, Unix seconds, shown as the remaining time.
    Ends(Option<i64>),
    /// Begin and end, ms since the epoch, shown as a duration; None for no end yet.
    Lasts(i64, Option<i64>),
    /// A time of the clock, Unix seconds.
    At(i64),
    /// A small line of percentages; without any values nothing.
    Spark(Vec<Option<f64>>),
    /// A share, 0 to 1, in words and as a bar that may be marked.
    Share(Option<f64>, String, bool),
    /// One of several words, which can be changed: the name of the action, the words, the present one.
    Choice(&'static str, Vec<&'static str>, String),
    /// The heading of a group, in place of all cells: its name, and its text.
    Group(String, String),
}

/// One row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// Its id; no other row has it.
    pub id: String,
    /// Its name in titles and for screen readers.
    pub name: String,
    /// Its cells in the order of the headings.
    pub cells: Vec<Cell>,
    /// Names and labels of its actions.
    pub deeds: Vec<(&'static str, &'static str)>,
}

impl Line {
    /// Value of `data-state`, where a cell has the state of the row.
    pub(super) fn state(&self) -> Option<String> {
        self.cells.iter().find_map(|cell| match cell {
            Cell::Stands(state, ..) => Some(state.clone()),
            _ => None,
        })
    }

    /// Name and words of the group that it begins.
    pub(super) fn group(&self) -> Option<(String, String)> {
        match self.cells.first() {
            Some(Cell::Group(name, words)) => Some((name.clone(), words.clone())),
            _ => None,
        }
    }
}

/// An action on a row: the row, the name of the action, and the chosen value.
pub type Done = (Line, &'static str, String);

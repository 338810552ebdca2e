//! The page of a machine in a terminal: same data, words and keys as the page, from the package `viewer`, in cells.
//!
//! Reading order:
//! - [`model`] (data and view), [`keys`] (actions of keys);
//! - [`canvas`] (dots in cells), [`palette`] (colors of this terminal), [`chart`], [`rows`], [`cores`], [`runs`] and
//!   [`table`] (parts of the picture), [`board`] (their layout), [`over`] (overlays);
//! - [`listing`] and [`pointer`] (processes and mouse), [`text`] (plain lines and JSON);
//! - [`screen`] (the terminal and its restoration), [`ground`] (its background color) and [`follow`] (the event loop).
//!
//! It opens no socket and reads no clock. It receives [`follow::Input`]s, and returns [`follow::Wish`]es.

pub mod board;
pub mod canvas;
pub mod chart;
pub mod cores;
pub mod fit;
pub mod follow;
pub mod ground;
pub mod keys;
pub mod listing;
pub mod model;
pub mod over;
pub mod palette;
pub mod pointer;
pub mod rows;
pub mod runs;
pub mod screen;
pub mod table;
pub mod text;

#[cfg(test)]
mod tests;

use std::time::Duration;

/// Options of the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The machine, by name or key; none: the first one.
    pub source: Option<String>,
    /// Whether the mouse is captured from the start.
    pub mouse: bool,
    /// Whether the terminal may be queried for its background color.
    pub ask: bool,
    /// The form of the output.
    pub form: Form,
}

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The whole screen, until a person ends it.
    Screen,
    /// One picture.
    Once,
    /// One picture as JSON.
    Json,
    /// Plain lines at this interval, for a screen reader or a log.
    Plain(Duration),
}

//! The picture of a machine in a terminal: the same data, words and keys as the page, of the package `viewer`, in cells.
//!
//! Reading order: [`model`] (what is held and looked at), [`keys`] (what a key does), [`canvas`] (dots in cells) and
//! [`palette`] (colors of this terminal), [`chart`], [`rows`], [`runs`] and [`table`] (its parts), [`board`] (where they stand), [`over`] (what
//! lies over them), [`listing`] and [`pointer`] (processes and the mouse), [`text`] (the same in lines and as JSON), [`screen`] (the terminal itself, and how it is given
//! back), [`ground`] (whether it is light) and [`follow`] (the loop).
//!
//! It opens no socket and reads no clock: it is handed [`follow::Input`]s, and hands back what it asks for.

pub mod board;
pub mod canvas;
pub mod chart;
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

/// What a person asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The machine, by its name or key; none: the first.
    pub source: Option<String>,
    /// The mouse is taken from the begin.
    pub mouse: bool,
    /// The terminal may be asked whether its ground is light.
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
    /// Plain lines, again and again, for a screen reader or a log.
    Plain(Duration),
}

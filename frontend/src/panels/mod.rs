//! Charts on the page: the elements of each, and the board that draws them.
//!
//! [`board`] has all panels and tiles and schedules drawing; [`picture`](viewer::picture) makes the frame of one panel
//! from the store; [`reading`] makes the texts of the tooltip; [`tiles`] are the numbers on top; [`panel`] has the
//! elements; [`fleet`] draws many machines, [`curves`] draws series from the server; [`theme`] has the colors of all of
//! them.

pub mod board;
pub mod curves;
pub mod fleet;
pub mod panel;
pub mod reading;
pub mod summary;
pub mod theme;
pub mod tiles;

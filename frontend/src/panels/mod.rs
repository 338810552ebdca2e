//! Charts on the page: the elements of each, and the board that draws them.
//!
//! [`board`] knows all panels and tiles and when to draw; [`picture`](viewer::picture) makes the frame of one panel from the store;
//! [`reading`] makes the texts of the tooltip; [`tiles`] are the numbers on top; [`panel`] has the elements; [`fleet`] draws
//! many machines, [`curves`] lines that the server made; [`theme`] has the colors of all of them.

pub mod board;
pub mod curves;
pub mod fleet;
pub mod panel;
pub mod reading;
pub mod summary;
pub mod theme;
pub mod tiles;

//! Charts on the page: the elements of each, and the board that draws them.
//!
//! [`board`] knows all panels and tiles and when to draw; [`picture`] makes the frame of one panel from the store;
//! [`names`] names and colours its series; [`reading`] says what is read at an instant; [`tiles`] the numbers on top;
//! [`panel`] the elements.

pub mod board;
pub mod names;
pub mod panel;
pub mod picture;
pub mod reading;
pub mod tiles;

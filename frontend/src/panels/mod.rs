//! Panels on the page: the components that make their elements, and the board that draws them.
//!
//! [`board`] knows all panels and tiles and when to draw; [`picture`] makes the frame of one panel from the store;
//! [`names`] names and colours its series; [`tiles`] the numbers on top; [`pointer`] what pointers do to plots;
//! [`crosshair`] the instant that all charts show and its tooltip; [`series`] which of them are seen; [`tools`] and [`changed`]
//! what the bar and titles offer; [`menu`], [`table`] and [`take`] what one chart offers; [`roving`] how keys reach it; [`panel`] and
//! [`sections`] the elements.

pub mod board;
pub mod changed;
pub mod crosshair;
pub mod menu;
pub mod names;
pub mod panel;
pub mod picture;
pub mod pointer;
pub mod processes;
pub mod roving;
pub mod sections;
pub mod series;
pub mod table;
pub mod take;
pub mod tiles;
pub mod tools;

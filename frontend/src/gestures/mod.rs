//! What hands do to charts: [`pointer`] mouse and fingers, [`crosshair`] the instant that is read, [`roving`] the keys' way
//! from chart to chart, [`series`] which series are seen.

pub mod crosshair;
pub mod pointer;
pub mod roving;
pub mod series;

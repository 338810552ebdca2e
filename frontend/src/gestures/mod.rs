//! What a person can do with charts: [`pointer`] mouse and fingers, [`crosshair`] the instant that is read, [`roving`]
//! moving the focus from chart to chart, [`series`] which series are visible.

pub mod crosshair;
pub mod pointer;
pub mod roving;
pub mod series;

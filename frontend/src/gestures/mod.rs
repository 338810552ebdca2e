//! Interaction with charts: [`pointer`] handles mouse and touch, [`crosshair`] the selected instant, [`roving`] the
//! focus between charts, [`series`] the visibility of series.

pub mod crosshair;
pub mod pointer;
pub mod roving;
pub mod series;

//! Parts of the page that know no metric and no state: what they show is handed to them.

pub mod icons;
pub mod modal;
pub mod tooltip;

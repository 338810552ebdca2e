//! Parts of the page that know no metric and no state. They get all that they show as props.

pub mod icons;
pub mod modal;
pub mod parts;
pub mod tooltip;

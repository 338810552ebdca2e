//! Parts of the page that know no metric and no state. They get all that they show as props.

pub mod clock;
pub mod icons;
pub mod list;
pub mod modal;
pub mod parts;
pub mod spark;
pub mod tooltip;

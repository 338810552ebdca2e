//! Parts of the page without metrics and state. Props have all their content.

pub mod clock;
pub mod icons;
pub mod list;
pub mod modal;
pub mod parts;
pub mod spark;
pub mod tooltip;

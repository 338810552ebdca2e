//! Parts of the page that know no metric: the bar with its buttons, the banner, the tooltip.

pub mod banner;
pub mod bar;
pub mod dialog;
pub mod dom;
pub mod help;
pub mod live;
pub mod player;
pub mod tooltip;

//! The page of Watchglass: a link to the server, a store of what it sends, and panels that draw it.
//!
//! Reading order: [`page`] (what all parts share), [`signal`] (values that they follow), [`link`] (the WebSocket),
//! [`store`] (data, natively testable), [`panels`] (from the store to canvases), [`widgets`] and [`pages`] (the elements
//! around them). There is no tag and no chart's id in here: what stands where comes from the catalogue in the server's
//! first messages.

pub mod address;
pub mod app;
pub mod link;
pub mod page;
pub mod pages;
pub mod panels;
pub mod player;
pub mod range;
pub mod recording;
pub mod signal;
pub mod store;
pub mod surface;
pub mod widgets;

//! The page of Watchglass: a link to the server, a store of what it sends, and panels that draw it.
//!
//! Reading order: [`state`] (what all parts share), [`link`] (the WebSocket), [`store`] (data, natively testable),
//! [`panels`] (from the store to canvases), [`gestures`] and [`tools`] (what hands do), [`shortcuts`] and [`keys`] (what
//! keys do), [`widgets`] and [`pages`] (the elements around them). There is no tag and no chart's id in here: what stands
//! where comes from the catalogue in the server's first messages.

pub mod address;
pub mod app;
pub mod browser;
pub mod gestures;
pub mod keys;
pub mod link;
pub mod pages;
pub mod panels;
pub mod player;
pub mod range;
pub mod recording;
pub mod shortcuts;
pub mod state;
pub mod store;
pub mod surface;
pub mod tools;
pub mod widgets;

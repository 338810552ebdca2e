//! The page of Watchglass: a link to the server, a store of the data that it sends, and panels that draw them.
//!
//! Reading order: [`state`] (shared by all parts), [`link`] (the WebSocket), [`store`] (data, tested without a
//! browser), [`panels`] (from the store to canvases), [`gestures`] and [`tools`] (pointers, menus, tools),
//! [`shortcuts`] and [`keys`] (keys), [`widgets`] and [`pages`] (the elements around them); on a hub [`access`] and
//! [`fetch`] (the session). This crate has no tag and no chart's id: the catalog in the server's first messages lists
//! the charts.

pub mod access;
pub use viewer::address;
pub use viewer::card;
pub mod app;
pub mod browser;
pub mod carrier;
pub mod fetch;
pub mod gestures;
pub mod keys;
pub mod link;
pub mod pages;
pub mod panels;
pub mod parts;
pub use viewer::player;
pub use viewer::range;
pub mod recording;
pub use viewer::shortcuts;
pub mod state;
pub use viewer::store;
pub mod surface;
pub mod tools;
pub mod widgets;

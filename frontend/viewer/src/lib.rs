//! What the page and the terminal have in common: neither a browser nor a screen is known here.
//!
//! [`store`] is the data that a server sends, [`tile`] a number on top with its words, [`names`] what series are called and
//! their colours, [`spread`] many series at once, [`shortcuts`] the one table of keys.

pub mod alerts;
pub mod draft;
pub mod names;
pub mod shortcuts;
pub mod spread;
pub mod store;
pub mod tile;

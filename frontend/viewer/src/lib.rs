//! What the page and the terminal have in common, and all of the page that needs no browser: neither a browser nor a screen is
//! known here.
//!
//! [`store`] is the data that a server sends, [`tile`] a number on top with its words, [`names`] what series are called and
//! their colors, [`spread`] many series at once, [`shortcuts`] the one table of keys. [`address`] is the view as it stands in
//! a link, with spans as people type them in [`range`]; [`player`] the clock of a recording. [`picture`] makes the frame of a
//! chart, [`curves`] those of lines that the server made, and [`turns`] says which chart is drawn next; [`take`] is what a
//! person takes from it. [`flow`] is how the samples of a machine
//! come, [`find`] ranks what was typed, [`findings`] are what is wrong, [`runs`] the training jobs,
//! [`past`] is one process over time, [`team`] people and machines in words.

pub mod address;
pub mod alerts;
pub mod curves;
pub mod draft;
pub mod find;
pub mod findings;
pub mod flow;
pub mod names;
pub mod past;
pub mod picture;
pub mod player;
pub mod range;
pub mod runs;
pub mod shortcuts;
pub mod spread;
pub mod store;
pub mod take;
pub mod team;
pub mod tile;
pub mod turns;

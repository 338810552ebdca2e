//! Code shared by the page and the terminal, and all parts of the page that need no browser. It uses neither a browser
//! nor a screen.
//!
//! - [`store`]: the data that a server sends; [`flow`]: the state of a machine's samples.
//! - [`tile`]: a number at the top with its texts; [`names`]: names and colors of series; [`spread`]: many series at
//!   once.
//! - [`shortcuts`]: the one table of keys; [`find`]: ranks of search results.
//! - [`address`]: the view in a link; [`range`]: typed spans; [`player`]: the clock of a recording.
//! - [`picture`]: the frame of a chart; [`curves`]: charts of lines that the server computed; [`turns`]: the drawing
//!   order; [`take`]: exports of a chart.
//! - [`findings`]: problems; [`runs`]: training jobs; [`past`]: one process over time; [`team`]: texts for people and
//!   machines.

pub mod address;
pub mod alerts;
pub mod card;
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

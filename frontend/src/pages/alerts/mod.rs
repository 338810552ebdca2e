//! What fires and who is told: [`follow`] asks for it again and again; [`bell`] is in the bar of each page, [`page`] the page
//! with its parts: the alerts themselves ([`list`], and [`one`] of them), the [`rules`] with one that is being written
//! ([`draft`]), the [`channels`] and the [`silences`]. [`series`] draws what is watched, [`deeds`] is what is done. [`read`] takes in what the server says, [`words`] is how it is said.

pub mod bell;
mod channels;
pub mod deeds;
mod draft;
pub mod follow;
mod list;
mod one;
pub mod page;
mod rules;
mod series;
mod silences;
mod words;

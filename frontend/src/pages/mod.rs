//! The pages, and the parts around them: [`overview`] of one machine with its [`sections`] and [`processes`]; [`fleet`]
//! of all machines; [`runs`] of training jobs; [`findings`]; [`alerts`] with their notifications; [`notes`] of people; [`team`] of a hub's
//! people and machines; [`bar`] above, [`player`] below, [`banner`] over the page. [`poll`] polls the server for them.
//! [`offers`] are their results in the search.

pub mod alerts;
pub mod banner;
pub mod bar;
pub mod cells;
pub mod findings;
pub mod fleet;
pub mod notes;
pub mod offers;
pub mod overview;
mod past;
pub mod player;
mod poll;
pub mod processes;
pub mod runs;
pub mod sections;
pub mod team;

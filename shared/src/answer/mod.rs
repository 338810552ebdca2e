//! The answers of the API about what a machine or a hub has measured, as JSON: the server writes these types, and the page,
//! the command line and other programs read the same. Each field stands here once, with its unit.
//!
//! [`runs`]: training jobs; [`logs`]: what they printed; [`markers`]: what was marked, with kernels and cells of notebooks;
//! [`fleet`]: machines and rows of them over time; [`series`]: what there is to be asked for.
//!
//! Times are [`Seconds`](crate::json::Seconds) since the Unix epoch. What is not known is null or left out, as each type says; it is never zero.

use serde::{Deserialize, Serialize};

pub mod fleet;
pub mod logs;
pub mod markers;
pub mod runs;
pub mod series;

/// The answer where a thing was changed and there is nothing to say but which.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ById {
    /// Its ID.
    pub id: String,
}

/// The answer where there is nothing to say.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nothing {}

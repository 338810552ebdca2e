//! API answers about the measurements of a machine or a hub, as JSON. The server writes these types; the page, the
//! command line and other programs read them. Each field is defined here once, with its unit.
//!
//! [`runs`]: training jobs; [`logs`]: their output; [`markers`]: markers, kernels and cells of notebooks; [`fleet`]:
//! machines and rows of them over time; [`series`]: metrics, machines, series, processes and checks; [`usage`]: GPU time
//! of training jobs.
//!
//! Times are [`Seconds`](crate::json::Seconds) since the Unix epoch. Unknown values are null or left out, as each type
//! documents; they are never zero.

use serde::{Deserialize, Serialize};

pub mod fleet;
pub mod logs;
pub mod markers;
pub mod runs;
pub mod series;
pub mod usage;

/// Answer with only the ID of the changed object.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ById {
    /// Its ID.
    pub id: String,
}

/// An empty answer.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nothing {}

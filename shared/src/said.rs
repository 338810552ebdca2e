//! The body of the messages of a page that has no socket, as JSON.

use serde::{Deserialize, Serialize};

/// `POST /api/v1/live/VIEWER`: messages of a page as over a socket, the oldest first. Answered by `{}`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    /// The bytes of each, as numbers.
    pub messages: Vec<Vec<u8>>,
}

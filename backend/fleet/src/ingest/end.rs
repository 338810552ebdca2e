//! End of an agent's link.

use super::map::MapError;
use shared::agent::{ByeReason, close};
use shared::tick::FrameError;

/// Reason for the end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkEnd {
    /// The agent receives the reason.
    Told {
        /// One of [`close`].
        code: u16,
        /// One sentence.
        reason: String,
        /// Minimum time until it reconnects, ms.
        wait: u32,
    },
    /// The agent sent its goodbye.
    Bye(ByeReason),
    /// The connection is gone.
    Gone,
}

impl LinkEnd {
    /// An end with one of [`close`].
    pub fn from_close(code: u16, reason: impl Into<String>) -> Self {
        LinkEnd::Told { code, reason: reason.into(), wait: 0 }
    }

    /// An end because the agent's bytes violate the protocol.
    pub fn frame_error(reason: impl Into<String>) -> Self {
        Self::from_close(close::FRAME_ERROR, reason)
    }
}

impl From<FrameError> for LinkEnd {
    fn from(error: FrameError) -> Self {
        Self::frame_error(format!("the data cannot be decoded: {error}"))
    }
}

impl From<MapError> for LinkEnd {
    fn from(error: MapError) -> Self {
        match error {
            MapError::Nonsense => Self::frame_error("a series has no row, or an invalid one"),
            MapError::TooMuch => {
                Self::from_close(close::LIMIT, "this machine has too many names of series; reduce its labels")
            }
        }
    }
}

//! How the link of an agent ends.

use super::map::MapError;
use shared::agent::{ByeReason, close};
use shared::tick::FrameError;

/// How a link ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkEnd {
    /// The agent is told why.
    Told {
        /// One of [`close`].
        code: u16,
        /// One sentence.
        reason: String,
        /// How long it waits at least before it comes back, ms.
        wait: u32,
    },
    /// The agent said that it ends.
    Bye(ByeReason),
    /// There is nobody to tell.
    Gone,
}

impl LinkEnd {
    /// With one of [`close`].
    pub fn told(code: u16, reason: impl Into<String>) -> Self {
        LinkEnd::Told { code, reason: reason.into(), wait: 0 }
    }

    /// The agent's bytes are none of the protocol.
    pub fn frame_error(reason: impl Into<String>) -> Self {
        Self::told(close::FRAME_ERROR, reason)
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
                Self::told(close::LIMIT, "this machine has too many names of series; reduce its labels")
            }
        }
    }
}

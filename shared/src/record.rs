//! Records: events of a machine that are not samples, such as a marker, the start and end of a run, a finding.
//!
//! They take the same path as samples (log, segments, recordings, exports, stream), each once and in order. Only the
//! kind defines the content. Code that transports records reads only number and time, so that unknown kinds are
//! transported like any other.

use crate::unit::size;
use serde::{Deserialize, Serialize};

/// Maximum length of a kind's name, in bytes.
pub const MAX_KIND_BYTES: usize = 32;

/// Maximum size of a record's body, bytes.
pub const MAX_BODY_BYTES: usize = 64 << 10;

/// One record of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its number: numbers of a source rise in the order of arrival, by one within a life.
    pub n: u64,
    /// When it happened, milliseconds since the Unix epoch.
    pub t: i64,
    /// Its kind, such as `marker` or `run.begin`: lower-case letters, digits, dots and lines, at most
    /// [`MAX_KIND_BYTES`].
    pub kind: String,
    /// Its content, defined by the kind: JSON if people and scripts read it. At most [`MAX_BODY_BYTES`].
    #[serde(with = "serde_bytes")]
    pub body: Vec<u8>,
}

impl Record {
    /// Its approximate size in memory, bytes.
    pub fn size(&self) -> usize {
        size_of::<Record>() + self.kind.len() + self.body.len()
    }
}

/// Reason why a record is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadRecord {
    /// Its kind is invalid.
    Kind,
    /// Its body is too large.
    Body,
}

impl std::fmt::Display for BadRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BadRecord::Kind => write!(
                f,
                "the kind of a record is 1 to {MAX_KIND_BYTES} lower-case letters, digits, dots, \"_\" and \"-\""
            ),
            BadRecord::Body => write!(f, "a record has at most {}: shorten it", size(MAX_BODY_BYTES as u64)),
        }
    }
}
impl std::error::Error for BadRecord {}

/// Whether a record may be of this kind and have this body.
///
/// # Errors
/// [`BadRecord`] names the invalid part.
pub fn check(kind: &str, body: &[u8]) -> Result<(), BadRecord> {
    let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b".-_".contains(&b);
    if kind.is_empty() || kind.len() > MAX_KIND_BYTES || !kind.bytes().all(letter) {
        return Err(BadRecord::Kind);
    }
    if body.len() > MAX_BODY_BYTES { Err(BadRecord::Body) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_short_words_and_bodies_are_bounded() {
        for kind in ["marker", "run.begin", "x-1_2", &"k".repeat(MAX_KIND_BYTES)] {
            assert_eq!(check(kind, &[0; MAX_BODY_BYTES]), Ok(()));
        }
        for kind in ["", "Marker", "a b", "a\"", "é", &"k".repeat(MAX_KIND_BYTES + 1)] {
            assert_eq!(check(kind, &[]), Err(BadRecord::Kind), "{kind}");
        }
        assert_eq!(check("marker", &[0; MAX_BODY_BYTES + 1]), Err(BadRecord::Body));
    }
}

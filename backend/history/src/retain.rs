//! Retention: which segments go.

use crate::segments::Segment;
use std::sync::Arc;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Samples are kept this long at least, ms; whole segments go once their newest is older.
    pub retention: i64,
    /// Bytes of all segments at most; the oldest go first.
    pub bytes: Option<u64>,
}

/// The segments that are to be removed, oldest first.
pub fn expired(now: i64, limits: Limits, segments: &[Arc<Segment>]) -> Vec<Arc<Segment>> {
    todo!()
}

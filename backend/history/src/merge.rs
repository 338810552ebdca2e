//! Merging: the quarters of an hour become one segment.

use crate::files::Files;
use crate::segments::Segment;
use shared::segment::Damage;
use std::io;
use std::sync::Arc;

/// What [`merge`] made.
pub struct Merged {
    /// The hour. Its sources are removed with [`crate::segments::remove`] once nobody starts to read them any more: [`replaced`](Self::replaced).
    pub segment: Arc<Segment>,
    /// Names of the files it stands for.
    pub replaced: Vec<String>,
    /// What could not be read, with the file's name.
    pub damages: Vec<(String, Damage)>,
}

/// The segments of the oldest hour that is over by `now` (ms) and has quarters; none when there is nothing to do.
pub fn due(now: i64, segments: &[Arc<Segment>]) -> Option<Vec<Arc<Segment>>> {
    todo!()
}

/// Merges segments into the hour of the oldest.
///
/// # Errors
/// `StorageFull` when there is too little room; as the system says.
pub fn merge(files: &dyn Files, serial: u64, parts: &[Arc<Segment>]) -> io::Result<Merged> {
    todo!()
}

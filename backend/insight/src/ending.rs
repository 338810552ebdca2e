//! What is kept of jobs that end because memory is full: see `ended`.

use crate::Source;
use crate::key::Key;

/// What is kept of a GPU that is nearly full: the most it held, percent, and the members of the largest group that it was of,
/// for that is no more when the job has ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Brim {
    pub most: f64,
    /// When it was nearly full last, second.
    pub at: i64,
    pub members: Vec<(Source, usize)>,
    pub pids: Vec<u32>,
}

/// A job that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// The second at which its memory was given back, or the kernel killed it.
    pub at: i64,
    /// The GPUs that were full, and how full the first of them was, in words; none where the machine was.
    pub full: Vec<(Source, usize)>,
    pub words: String,
    pub most: f64,
    /// The processes that the first of them had: they are listed for a while when they are gone.
    pub pids: Vec<u32>,
    pub members: Vec<(Source, usize)>,
    /// The finding and its sentence, without what became of the others, once it is told.
    pub told: Option<(Key, String)>,
    /// When the next job had worked for long enough.
    pub next: Option<i64>,
}

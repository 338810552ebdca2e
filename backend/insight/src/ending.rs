//! State of jobs that end because memory is full: see `ended`.

use crate::Source;
use crate::key::Key;

/// State of a GPU that is nearly full: its maximum memory, percent, and the members of its largest group. The group
/// itself is gone when the job has ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Brim {
    pub most: f64,
    /// Newest second at which it was nearly full.
    pub at: i64,
    pub members: Vec<(Source, usize)>,
    pub pids: Vec<u32>,
}

/// A job that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// Second at which its memory was released, or the kernel killed it.
    pub at: i64,
    /// The full GPUs, and the fill level of the first as text; empty where the memory of the machine was full.
    pub full: Vec<(Source, usize)>,
    pub words: String,
    pub most: f64,
    /// Processes of the first GPU: they stay listed for a while after their end.
    pub pids: Vec<u32>,
    pub members: Vec<(Source, usize)>,
    /// The finding and its sentence, without the state of the other members, once it is raised.
    pub told: Option<(Key, String)>,
    /// Second at which the next job had worked for long enough.
    pub next: Option<i64>,
}

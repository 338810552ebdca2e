//! What a source has beside its samples.

use collectors::{GpuNumbers, Processes};
use std::sync::Arc;
use tokio::sync::watch;

/// What a source has beside its samples. The collectors fill it for the machine that is measured here, and the
/// demo the process tables of simulated ones; of a source that is replayed it stays empty.
#[derive(Default)]
pub struct SourceState {
    /// The newest process table, and the largest users of the last hours.
    pub processes: Arc<Processes>,
    /// Which GPU each of its numbers stands for.
    pub gpus: Arc<GpuNumbers>,
    /// Rises when readers are to look for new ticks.
    pub(super) ticks: watch::Sender<u64>,
}

/// Where the values come from that are served; both may hold at once. Neither: they are measured here and now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// They are simulated, and pages say so.
    pub simulated: bool,
    /// They are replayed from this recording, and nothing new comes.
    pub recorded: Option<shared::wire::Recorded>,
}

impl Provenance {
    /// Whether they are measured here and now.
    pub fn is_measured(&self) -> bool {
        *self == Provenance::default()
    }
}

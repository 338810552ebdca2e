//! What a source has beside its samples.

use inventory::{GpuNumbers, Kernels, Processes};
use serde::{Deserialize, Serialize};
use shared::standing::Standing;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// What a source has beside its samples. The collectors fill it for the machine that is measured here, the demo the
/// process tables of simulated ones, and a hub how the link to a machine stands; of a source that is replayed it stays
/// empty.
#[derive(Default)]
pub struct SourceState {
    /// The newest process table, and the largest users of the last hours.
    pub processes: Arc<Processes>,
    /// Jupyter kernels of the user who runs this program.
    pub kernels: Arc<Kernels>,
    /// Which GPU each of its numbers stands for.
    pub gpus: Arc<GpuNumbers>,
    /// What was taken of it since the start.
    pub taken: TakenCounts,
    /// Rises when readers are to look for new ticks.
    pub(super) ticks: watch::Sender<u64>,
    /// When that was last, by the steady clock, milliseconds.
    pub(super) heard: AtomicU64,
    /// Who has its link, a [`Holder`](super::Holder).
    pub(super) holder: AtomicU8,
    /// When somebody wanted to see it last that another hub holds, by the steady clock, milliseconds; 0: never.
    pub(super) wanted: AtomicU64,
    /// What that hub has of it comes here.
    pub(super) brought: AtomicBool,
    about: Mutex<About>,
}

/// What was taken of a source since the start; each only rises.
#[derive(Debug, Default)]
pub struct TakenCounts {
    /// Samples appended, those that came late included.
    pub samples: AtomicU64,
    /// Of these, samples that came in blocks, when their time was over.
    pub late: AtomicU64,
    /// Bytes of the messages that they came in; of what is measured here nothing.
    pub bytes: AtomicU64,
}

/// What is said of a source in the index.
#[derive(Default)]
pub(super) struct About {
    pub standing: Standing,
    /// Since when, milliseconds since the Unix epoch.
    pub since: i64,
    pub labels: Vec<(String, String)>,
    pub figures: LinkFigures,
    /// Another hub has told of it: that no sample is here says nothing.
    pub told: bool,
    /// What the count of all changes was at the last one here.
    pub version: u64,
    /// Spans whose samples came in late, each with its number, the newest at the end.
    pub refills: VecDeque<(u64, i64, i64)>,
}

/// How the link to a source does, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkFigures {
    /// How far the newest tick is behind the source's own, milliseconds.
    pub behind_ms: Option<u64>,
    /// By how much the source's clock is ahead of ours, milliseconds.
    pub skew_ms: Option<i64>,
    /// Version of the program there.
    pub version: Option<String>,
    /// Its host name.
    pub host: Option<String>,
    /// What was left out of what it sent, by cause.
    pub refused: Vec<(String, u64)>,
    /// Times of the first and last ticks that are lacking and on their way, or waited for, rising; milliseconds since the
    /// Unix epoch, about.
    pub holes: Vec<(i64, i64)>,
}

impl About {
    /// Nobody waits for its ticks.
    pub fn has_gone(&self) -> bool {
        matches!(self.standing, Standing::Unreachable | Standing::Stopped(_) | Standing::Ended)
    }
}

impl SourceState {
    /// One that stands well, and was heard of just now, by both clocks in milliseconds.
    pub(super) fn begun(wall: i64, steady: u64) -> Self {
        let about = Mutex::new(About { since: wall, ..About::default() });
        SourceState { heard: AtomicU64::new(steady), about, ..SourceState::default() }
    }

    pub(super) fn about(&self) -> MutexGuard<'_, About> {
        self.about.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rises with each announcement that concerns the source.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.ticks.subscribe()
    }

    /// How it stands, and since when, milliseconds since the Unix epoch.
    pub fn standing(&self) -> (Standing, i64) {
        let about = self.about();
        (about.standing.clone(), about.since)
    }

    /// The labels by which people group and filter.
    pub fn labels(&self) -> Vec<(String, String)> {
        self.about().labels.clone()
    }

    /// How the link to it does.
    pub fn figures(&self) -> LinkFigures {
        self.about().figures.clone()
    }
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

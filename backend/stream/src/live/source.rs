//! State of a source beside its samples.

use inventory::{GpuNumbers, JobValues, Kernels, Processes};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use shared::connection_state::ConnectionState;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64};
use tokio::sync::watch;

/// State of a source beside its samples. The collectors fill it for the machine measured here, the demo the process
/// tables of simulated machines, and a hub the connection state of a machine. It stays empty for a replayed source.
#[derive(Default)]
pub struct SourceState {
    /// The newest process table, and the largest users of the last hours.
    pub processes: Arc<Processes>,
    /// Jupyter kernels of the user who runs this program.
    pub kernels: Arc<Kernels>,
    /// GPU of each of its numbers.
    pub gpus: Arc<GpuNumbers>,
    /// Values of the machine's jobs that are in no tick yet.
    pub job_values: Arc<JobValues>,
    /// Counts of received data since the start.
    pub taken: TakenCounts,
    /// Incremented when readers are to check for new ticks.
    pub(super) ticks: watch::Sender<u64>,
    /// Time of the last increment, by the steady clock, milliseconds.
    pub(super) heard: AtomicU64,
    /// The holder of its connection, a [`Holder`](super::Holder).
    pub(super) holder: AtomicU8,
    /// Time when a reader last wanted it from another hub, by the steady clock, milliseconds; 0: never.
    pub(super) wanted: AtomicU64,
    /// Whether its data on another hub is fetched.
    pub(super) brought: AtomicBool,
    /// Whether it is known by an endpoint alone.
    pub(super) is_found: AtomicBool,
    about: Mutex<About>,
}

/// Counts of received data of a source since the start; each only grows.
#[derive(Debug, Default)]
pub struct TakenCounts {
    /// Samples appended, including late ones.
    pub samples: AtomicU64,
    /// Late samples among these, which arrived in blocks.
    pub late: AtomicU64,
    /// Bytes of the messages that carried them; 0 for samples measured here.
    pub bytes: AtomicU64,
}

/// The entry of a source in the index.
#[derive(Default)]
pub(super) struct About {
    pub connection_state: ConnectionState,
    /// Time of the last change of the state, milliseconds since the Unix epoch.
    pub since: i64,
    pub labels: Vec<(String, String)>,
    pub figures: LinkFigures,
    /// Another hub has reported it: the absence of samples here means nothing.
    pub told: bool,
    /// The count of all changes at the last change of this source.
    pub version: u64,
    /// Spans of late samples, each with its number, oldest first.
    pub refills: VecDeque<(u64, i64, i64)>,
}

/// Figures of the connection to a source, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkFigures {
    /// Delay of the newest tick behind the source's own, milliseconds.
    pub behind_ms: Option<u64>,
    /// Lead of the source's clock over ours, milliseconds.
    pub skew_ms: Option<i64>,
    /// Version of the program there.
    pub version: Option<String>,
    /// Its host name.
    pub host: Option<String>,
    /// Data of its messages that was left out, by cause.
    pub refused: Vec<(String, u64)>,
    /// Times of the first and last missing ticks of each gap that is being filled or waits to be, ascending;
    /// milliseconds since the Unix epoch, approximate.
    pub holes: Vec<(i64, i64)>,
}

impl About {
    /// Whether no more ticks are expected.
    pub fn has_gone(&self) -> bool {
        matches!(
            self.connection_state,
            ConnectionState::Unreachable | ConnectionState::Stopped(_) | ConnectionState::Ended
        )
    }
}

impl SourceState {
    /// A source in good state, with a tick just received, by both clocks in milliseconds.
    pub(super) fn begun(wall: i64, steady: u64) -> Self {
        let about = Mutex::new(About { since: wall, ..About::default() });
        SourceState { heard: AtomicU64::new(steady), about, ..SourceState::default() }
    }

    pub(super) fn about(&self) -> MutexGuard<'_, About> {
        self.about.lock()
    }

    /// Incremented with each notification about the source.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.ticks.subscribe()
    }

    /// Its connection state, and the time of the last change, milliseconds since the Unix epoch.
    pub fn connection_state(&self) -> (ConnectionState, i64) {
        let about = self.about();
        (about.connection_state.clone(), about.since)
    }

    /// The labels for grouping and filtering.
    pub fn labels(&self) -> Vec<(String, String)> {
        self.about().labels.clone()
    }

    /// The figures of its connection.
    pub fn figures(&self) -> LinkFigures {
        self.about().figures.clone()
    }
}

/// Origin of the served values. Both flags may be set. With neither, the values are measured here and now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// They are simulated, and pages show that.
    pub simulated: bool,
    /// They are replayed from this recording, and nothing new is appended.
    pub recorded: Option<shared::wire::Recorded>,
}

impl Provenance {
    /// Whether they are measured here and now.
    pub fn is_measured(&self) -> bool {
        *self == Provenance::default()
    }
}

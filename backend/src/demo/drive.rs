//! What the job does on one machine at one instant: all that the readings of its GPUs and of the rest follow from.

use super::job::{Phase, Spent};

/// The job on one machine at one instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drive {
    /// Milliseconds since the Unix epoch.
    pub t: i64,
    pub phase: Phase,
    /// Milliseconds since the phase began.
    pub into: i64,
    /// Milliseconds since the run began.
    pub age: i64,
    /// Number of the run.
    pub run: i64,
    /// See [`super::job::Moment`].
    pub ramp: f64,
    pub warmth: (f64, f64),
    /// Kernels run that never end.
    pub hung: bool,
    /// Share of its work that the job does: all wait for what is slow.
    pub share: f64,
    /// Its data come too late.
    pub starved: bool,
    /// How full the memory is beyond what is usual, as a share of the way, 0 to 1.
    pub fills: f64,
    /// 0 to 1: how much of the work stands still because the next data are late.
    pub dip: f64,
    /// 0 to 1: how much the GPUs tell each other.
    pub traffic: f64,
    /// Milliseconds since the machine was started.
    pub up: f64,
    /// Since then, in each phase.
    pub spent: Spent,
    /// Likewise: milliseconds of training less what was lost waiting for a slow GPU.
    pub done: f64,
    /// Milliseconds of training since the fault's moment.
    pub felt: f64,
    /// Milliseconds since the job stopped, 0 while it goes on.
    pub stopped: f64,
}

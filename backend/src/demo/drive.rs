//! State of the job on one machine at one instant: all readings of its GPUs and of the rest follow from it.

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
    /// Its kernels never end.
    pub hung: bool,
    /// Share of its work that the job does: all ranks wait for the slowest.
    pub share: f64,
    /// Its data arrive too late.
    pub starved: bool,
    /// Extra memory use above the usual one, as a share of the way to the limit, 0 to 1.
    pub fills: f64,
    /// 0 to 1: share of the work that waits for the next data.
    pub dip: f64,
    /// 0 to 1: traffic between the GPUs.
    pub traffic: f64,
    /// Milliseconds since the machine was started.
    pub up: f64,
    /// Milliseconds since then, in each phase.
    pub spent: Spent,
    /// Since then: milliseconds of training, without the time lost waiting for a slow GPU.
    pub done: f64,
    /// Milliseconds of training since the fault's moment.
    pub felt: f64,
    /// Milliseconds since the job stopped, 0 while it goes on.
    pub stopped: f64,
}

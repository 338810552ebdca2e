//! Training jobs: [`runs`] detects them and records how each ended, [`markers`] stores the markers of notebooks and
//! jobs, [`code_alerts`] the alerts that code sends. All of them become records of the [`stream`]. [`values`] takes the
//! numbers that jobs log, which become samples. [`failure`] names the class of a failure, [`nccl`] the ranks that a
//! hanging job waits for. [`submissions`] takes runs, markers and values by request.
//!
//! This crate depends on the stream, on [`launch`], which starts jobs, and on its own settings. It has no collector,
//! page, account or alert; other crates read its results.

// A lock in the head of a `match` or `for` is held to its end, where it may be taken again.
#![warn(clippy::significant_drop_in_scrutinee, clippy::await_holding_lock)]

pub mod code_alerts;
pub mod failure;
pub mod markers;
pub mod nccl;
pub mod runs;
pub mod submissions;
pub mod values;

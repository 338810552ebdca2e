//! Training jobs: [`runs`] finds them and says how each ended, [`markers`] keeps what notebooks and jobs mark, [`calls`]
//! what code says is wrong. All of it becomes records of the [`stream`].
//!
//! This crate knows the stream, what a job is started by ([`launch`]), and its own settings. It has no collector, no page,
//! no account and no alert; what others show of it they read.

// A lock that is taken in the head of a `match` or `for` is held to its end, in which it may be taken again.
#![warn(clippy::significant_drop_in_scrutinee, clippy::await_holding_lock)]

pub mod code_alerts;
pub mod markers;
pub mod runs;

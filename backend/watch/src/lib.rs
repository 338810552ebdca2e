//! Problems and notices: [`findings`] stores the problems that [`insight`] detects in the samples. [`alerts`] evaluates
//! the rules of each team on samples, runs and findings, and sends their notices. [`written`] stores what people write
//! about runs and machines.
//!
//! This crate knows the stream, the jobs, and the team. It has no listening socket, page or settings.

// A lock taken in the head of a `match` or `for` is held to its end. Taking it again inside would deadlock.
#![warn(clippy::significant_drop_in_scrutinee, clippy::await_holding_lock)]

pub mod alerts;
pub mod findings;
pub mod written;

//! What is wrong and who is notified: [`findings`] keeps what [`insight`] sees in the samples, [`alerts`] has the rules of each
//! team watch samples, runs and findings, and sends their notices.
//!
//! This crate knows the stream, the jobs, and the team. It has no socket that listens, no page and no settings.

// A lock that is taken in the head of a `match` or `for` is held to its end, in which it may be taken again.
#![warn(clippy::significant_drop_in_scrutinee, clippy::await_holding_lock)]

pub mod alerts;
pub mod findings;

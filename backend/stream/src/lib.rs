//! Ticks and records of all machines on their way: [`store`] keeps them, [`live`] takes them and hands them to readers,
//! [`archive`] writes them to disk, [`recording`] makes one file of a span. [`clock`] is the only place that reads a clock.
//!
//! This crate knows the words of [`shared`], the disk by [`history`], and what else a machine has by [`inventory`].
//! It has no collector, no socket, no settings, and knows nothing of people, runs or alerts.

// A lock that is taken in the head of a `match` or `for` is held to its end, in which it may be taken again.
#![warn(clippy::significant_drop_in_scrutinee, clippy::await_holding_lock)]

pub mod archive;
pub mod clock;
pub mod live;
pub mod recording;
pub mod store;
pub mod testing;
pub mod throttle;

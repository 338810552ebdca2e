//! Ticks and records of all machines: [`store`] holds them, [`live`] appends them and sends them to readers,
//! [`archive`] writes them to disk, [`recording`] exports a span as one file, [`names`] hides people. [`clock`] is the only place that reads a
//! clock.
//!
//! This crate uses the types of [`shared`], the disk through [`history`], and other data of machines through
//! [`inventory`]. It has no collector, socket or settings, and no knowledge of people, runs or alerts.

// A lock taken in the head of a `match` or `for` is held to its end. Taking it again inside would deadlock.
#![warn(clippy::significant_drop_in_scrutinee, clippy::await_holding_lock)]

pub mod archive;
pub mod clock;
pub mod live;
pub mod names;
pub mod recording;
pub mod store;
pub mod testing;
pub mod throttle;

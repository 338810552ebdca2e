//! The server of Watchglass. Read it along the pipe: [`sampler`] calls the collectors on the second, [`store`] keeps
//! the ticks, [`live`] hands them to readers, [`http`] is the guard and the paths behind it. [`config`] is everything
//! that a user may choose; [`clock`] is the only place that reads a clock; [`doctor`] says what is here and what is not;
//! [`demo`] simulates machines in place of the sampler; [`modes`] puts these rooms together.

// A lock that is taken in the head of a `match` or `for` is held to its end, in which it may be taken again.
#![warn(clippy::significant_drop_in_scrutinee, clippy::await_holding_lock)]

pub mod accounts;
pub mod admin;
pub mod alerts;
pub mod archive;
pub mod build_info;
pub mod calls;
pub mod clock;
pub mod cluster;
pub mod config;
pub mod control;
pub mod data;
pub mod demo;
pub mod doctor;
pub mod drain;
pub mod export;
mod figure;
pub mod file;
pub mod findings;
pub mod follow;
pub mod http;
pub mod ingest;
pub mod live;
pub mod markers;
pub mod modes;
pub mod over;
pub mod program;
mod providers;
pub mod recording;
pub mod remote_write;
pub mod runs;
pub mod sampler;
#[cfg(unix)]
mod socket_file;
pub mod stderr;
pub mod store;
pub mod terminal;
pub mod throttle;
pub mod uplink;
pub mod usage;

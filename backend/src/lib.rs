//! The server of Watchglass. Read it along the pipe: [`sampler`] calls the collectors on the second and appends to the
//! [`stream`], [`http`] is the guard and the paths behind it. [`config`] is everything that a user may choose; [`doctor`]
//! says what is here and what is not; [`demo`] simulates machines in place of the sampler; [`modes`] puts these rooms
//! together.

// A lock that is taken in the head of a `match` or `for` is held to its end, in which it may be taken again.
#![warn(clippy::significant_drop_in_scrutinee, clippy::await_holding_lock)]

pub mod admin;
pub mod build_info;
pub mod config;
pub mod control;
pub mod data;
pub mod demo;
pub mod doctor;
pub mod export;
mod figure;
pub mod findings;
pub mod follow;
pub mod http;
pub mod modes;
pub mod program;
pub mod remote_write;
mod report;
pub mod sampler;
pub mod stderr;
pub mod terminal;

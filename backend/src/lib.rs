//! The server of Watchglass. Read it in the order of the data: [`sampler`] calls the collectors on the second and
//! appends to the [`stream`]; [`http`] has the guard and the paths behind it. [`config`] has all settings of a user.
//! [`doctor`] reports present and absent families. [`demo`] simulates machines in place of the sampler. [`modes`]
//! assembles these parts.

// A lock taken in the head of a `match` or `for` is held to its end, and may be taken again there.
#![warn(clippy::significant_drop_in_scrutinee, clippy::await_holding_lock)]

pub mod admin;
pub mod build_info;
pub mod config;
pub mod control;
pub mod data;
pub mod demo;
pub mod doctor;
pub mod export;
pub mod findings;
pub mod follow;
pub mod http;
pub mod modes;
pub mod program;
mod remote;
pub mod remote_write;
mod report;
pub mod sampler;
pub mod stderr;
mod svg_chart;
pub mod terminal;

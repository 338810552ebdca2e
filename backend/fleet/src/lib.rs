//! The hub's end of the links of agents: [`ingest`] receives their samples as the stream of their machines, and sends
//! them questions; [`drain`] closes connections gradually at shutdown.
//!
//! This crate depends on the stream, and on the team of each machine. It has no listening socket, no page and no
//! settings.

// A lock in the head of a `match` or `for` is held to its end, where it may be taken again.
#![warn(clippy::significant_drop_in_scrutinee, clippy::await_holding_lock)]

pub mod drain;
pub mod ingest;

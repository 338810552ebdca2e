//! A hub's end of the links of agents: [`ingest`] takes in what they send, as the stream of their machines, and asks them;
//! [`drain`] is how a hub that ends lets go of who is linked.
//!
//! This crate knows the stream, and of the team whose a machine is. It has no socket that listens, no page and no settings.

// A lock that is taken in the head of a `match` or `for` is held to its end, in which it may be taken again.
#![warn(clippy::significant_drop_in_scrutinee, clippy::await_holding_lock)]

pub mod drain;
pub mod ingest;

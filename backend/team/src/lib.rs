//! People, keys and machines of a hub: [`accounts`] says who they are, what they may, and what they changed; [`usage`] counts
//! what each team uses.
//!
//! This crate knows the database by [`records`], and machines by the [`stream`]. It has no socket, no page and no settings.

// A lock that is taken in the head of a `match` or `for` is held to its end, in which it may be taken again.
#![warn(clippy::significant_drop_in_scrutinee, clippy::await_holding_lock)]

pub mod accounts;
pub mod usage;

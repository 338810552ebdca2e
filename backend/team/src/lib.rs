//! People, keys and machines of a hub: [`accounts`] is about their identity, permissions and changes; [`usage`]
//! measures the usage of each team.
//!
//! This crate uses the database through [`records`], and machines through the [`stream`]. It has no socket, page or
//! settings.

// A lock taken in the head of a `match` or `for` is held to its end. Taking it again inside would deadlock.
#![warn(clippy::significant_drop_in_scrutinee, clippy::await_holding_lock)]

pub mod accounts;
pub mod usage;

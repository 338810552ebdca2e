//! Recordings: a span of all machines in one file that stands for itself, and what replays one.
//!
//! `write.rs` makes one of a store, `replay.rs` serves one. The file is a [`shared::segment`], and
//! [`shared::recording::Recording`] is what is read of it, here and in the page.

mod replay;
mod write;

pub use replay::store;
pub use write::{Nothing, Recorder};

#[cfg(test)]
mod tests;

//! Recordings: a span of all machines in one self-contained file, and their replay.
//!
//! `write.rs` writes one from a store, `replay.rs` serves one. The file is a [`shared::segment`].
//! [`shared::recording::Recording`] is its parsed form, here and in the page.

mod replay;
mod write;

pub use replay::store;
pub use write::{Nothing, Recorder};

#[cfg(test)]
mod tests;

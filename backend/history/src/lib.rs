//! History on disk: a write-ahead log of ticks, and sealed segments made from it. In reading order:
//!
//! - [`files`]: operations on a folder; [`calls`]: its pending calls; [`faults`]: a failing one, for tests.
//! - [`log`]: the bytes of a log file; [`journal`]: its records, each of which can be lost alone.
//! - [`writer`]: the log that is being written.
//! - [`segments`], [`compaction`], [`retain`]: sealed history; [`indexes`] caches the most frequent reads of it.
//! - [`folder`]: the lock of the data folder; [`found`]: its data at the start.
//!
//! This crate reads no wall clock, uses no network and prints nothing.

pub mod calls;
pub mod compaction;
pub mod faults;
pub mod files;
pub mod folder;
pub mod found;
pub mod indexes;
pub mod journal;
pub mod log;
mod replay;
pub mod retain;
pub mod segments;
mod spans;
mod table;
pub mod writer;

pub use folder::{Folder, OpenError, Options};
pub use found::{Damage, Found, FoundSource, LoggedTick, Report, TickSpan};
pub use indexes::Indexes;
pub use journal::Journal;
pub use segments::Segment;
pub use writer::{Health, Log, Written};

#[cfg(test)]
mod tests;

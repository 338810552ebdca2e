//! History on disk: a write-ahead log of ticks, and sealed segments that are made of it. In the order to read it:
//!
//! - [`files`]: what is asked of a folder; [`calls`]: what it has not answered; [`faults`]: one that fails, for tests.
//! - [`log`]: the bytes of a log file; [`journal`]: what is written into it, so that every record can be lost alone.
//! - [`writer`]: the log that is being written.
//! - [`segments`], [`compaction`], [`retain`]: sealed history; [`indexes`] keeps in memory what is read most of it.
//! - [`folder`]: who has the data folder; [`found`]: what is in it at the start.
//!
//! This crate reads no wall clock, knows no network and prints nothing.

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

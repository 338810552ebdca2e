//! History on disk: a write-ahead log of ticks, and sealed segments that are made of it.

pub mod files;
pub mod folder;
pub mod log;
pub mod merge;
mod replay;
pub mod retain;
pub mod segments;
pub mod writer;

pub use folder::{Damage, Folder, Found, FoundSource, OpenError, Options, Report, Run};
pub use segments::Segment;
pub use writer::{Health, Log, Written};

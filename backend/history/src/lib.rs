//! History on disk: a write-ahead log of ticks, and sealed segments that are made of it.

pub mod files;
pub mod merge;
pub mod retain;
pub mod segments;

//! Streams for tests, of this crate and of those that depend on it: short-lived series, a disk with injected faults,
//! two machines over hours. Not behind a feature, which would compile this crate twice.

pub mod bench;
pub mod fleeting;
pub mod machines;

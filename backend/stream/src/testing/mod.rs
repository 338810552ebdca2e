//! Streams for tests, of this crate and of those above it: with series that come and go, on a disk that fails, of two
//! machines for hours. Behind no feature, by which this crate would be compiled twice.

pub mod bench;
pub mod fleeting;
pub mod machines;

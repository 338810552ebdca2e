//! Support for the tests.

pub mod server;
pub mod stream;

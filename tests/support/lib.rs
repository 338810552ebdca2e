//! Support for the tests.

pub mod browser;
pub mod proxy;
pub mod server;
pub mod stream;

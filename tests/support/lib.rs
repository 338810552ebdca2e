//! Support for the tests.

pub mod browser;
pub mod exporter;
pub mod proxy;
pub mod server;
pub mod stream;

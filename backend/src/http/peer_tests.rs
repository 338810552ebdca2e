//! Real loopback connections.

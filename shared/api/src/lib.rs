//! The HTTP API as one table: [`Operation`] names each operation, and [`Row`] has its method, path, right, body,
//! parameters, answer and meaning. It generates the server's router, the requests of the command line and the page, the
//! reference page of the docs, and the OpenAPI document.
//!
//! This crate does no input or output. The server implements each operation in one handler.

#[cfg(feature = "schema")]
mod bodies;
#[cfg(feature = "schema")]
mod markdown;
pub mod need;
#[cfg(feature = "schema")]
pub mod openapi;
mod operation;
pub mod parameter;
mod path;
mod row;
mod table;

pub use operation::Operation;
pub use row::{Answer, Body, Carries, Method, Row, Shape};

/// The reference page of the docs.
#[cfg(feature = "schema")]
pub fn reference() -> String {
    markdown::operations() + &bodies::section()
}

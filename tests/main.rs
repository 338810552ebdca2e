//! Tests of the whole product.

mod api;
mod catalog;
mod cli;
mod door;
mod house;
mod stream;

//! Tests of the whole product.

mod catalog;
mod cli;
mod door;
mod house;

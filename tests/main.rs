//! Tests of the whole product.

mod api;
mod browser;
mod catalog;
mod cli;
mod demo;
mod doctor;
mod door;
mod ends;
mod export;
mod files;
mod history;
mod house;
mod prometheus;
mod recording;
mod remote;
mod scrape;
mod stream;

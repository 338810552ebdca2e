//! Tests of the whole product.

mod agent;
mod alerts_from_code;
mod alerts_whole;
mod answers;
mod api;
mod browser;
mod catalog;
mod cli;
mod cluster;
mod cluster_away;
mod cluster_many;
mod dcgm;
#[cfg(target_os = "linux")]
mod delivery;
mod demo;
mod deploy;
mod doctor;
mod doctor_servers;
mod ends;
mod export;
mod files;
mod findings;
mod first_findings;
mod first_machine_findings;
mod first_wave;
mod forge;
mod guard;
mod hang_answers;
mod history;
mod house;
mod hub;
mod kernels;
mod ledger;
mod mcp;
#[cfg(target_os = "linux")]
mod notebook;
mod operations;
mod options;
mod overview;
mod packages;
#[cfg(target_os = "linux")]
mod pods;
mod prometheus;
mod recording;
mod remote_write;
mod run_safety;
mod runs;
mod sample_stores;
mod scrape;
mod servers;
mod stream;
mod surface;
mod top;
mod unix;
mod values;
mod views;

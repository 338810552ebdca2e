//! Support for the tests.

pub mod agent;
pub mod audit;
pub mod browser;
pub mod certificate;
#[cfg(target_os = "linux")]
pub mod cgroup;
pub mod chromium;
#[cfg(target_os = "linux")]
pub mod cluster;
pub mod crowd;
pub mod cutter;
pub mod exporter;
pub mod fleet;
#[cfg(unix)]
pub mod hooks;
pub mod hub;
#[cfg(target_os = "linux")]
pub mod jupyter;
pub mod keys;
pub mod kills;
pub mod kubernetes;
pub mod ledger;
pub mod link;
pub mod mail;
pub mod postgresql;
pub mod programs;
pub mod provider;
pub mod proxy;
pub mod receiver;
pub mod road;
pub mod server;
pub mod stage;
pub mod stream;
#[cfg(target_os = "linux")]
pub mod terminal;
pub mod waiting;

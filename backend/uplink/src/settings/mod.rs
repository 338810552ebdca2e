//! Settings of an agent: its hubs, and the machine that it measures.

mod hub;
mod hub_url;
mod pin;
mod proxy;

pub use hub::{HubEntry, KeyFrom, MAX_LABELS, TOO_MANY_LABELS, label, machine_name};
pub use hub_url::HubUrl;
pub use pin::Pin;
pub use proxy::{ProxyChoice, ProxyEnvironment, ProxyUrl};

use std::path::PathBuf;

/// The hubs of an agent.
#[derive(Clone, Debug, Default)]
pub struct UplinkSettings {
    /// Each gets a link of its own.
    pub hubs: Vec<HubEntry>,
    /// The proxy variables of the environment.
    pub proxies: ProxyEnvironment,
    /// Joins as a new machine, regardless of the data folder.
    pub new_identity: bool,
    /// Stores nothing on disk.
    pub memory: bool,
    /// Paths of the data that identifies its machine.
    pub machine: MachineSettings,
}

/// Paths of the data that identifies this machine.
#[derive(Clone, Debug, Default)]
pub struct MachineSettings {
    /// The folder that contains `etc`.
    pub root: PathBuf,
    /// Its `/proc`.
    pub proc: PathBuf,
    /// Its `/sys`.
    pub sys: PathBuf,
    /// Its host name; empty if the system has none.
    pub host: String,
}

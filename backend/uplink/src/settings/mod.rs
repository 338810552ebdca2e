//! What an agent is told of its hubs, and of the machine that it measures.

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
    /// What the environment says of proxies.
    pub proxies: ProxyEnvironment,
    /// It joins as a new machine, whatever the data folder says.
    pub new_identity: bool,
    /// It keeps nothing on disk.
    pub memory: bool,
    /// What tells its machine from others is read there.
    pub machine: MachineSettings,
}

/// Where this machine's own marks are read.
#[derive(Clone, Debug, Default)]
pub struct MachineSettings {
    /// The folder in which `etc` is.
    pub root: PathBuf,
    /// `/proc` of it.
    pub proc: PathBuf,
    /// `/sys` of it.
    pub sys: PathBuf,
    /// Its host name; empty where the system has none.
    pub host: String,
}

//! Everything that a user may choose, as one value: [`Config`]. Flags win over the configuration file, the file over the
//! defaults. This module reads no clock, opens no socket and prints nothing; [`parse`] gets the environment and the
//! files handed in.
//!
//! Read [`Config`], then `flags.rs` (the command line), `file.rs` (TOML) and `value.rs` (how one value is written).

mod endpoints;
mod export;
mod file;
mod flags;
mod fleet;
mod print;
mod record;
mod remote;
mod secret;
pub mod user;
mod value;
mod when;

pub use export::Export;
pub use file::read_file;
pub use fleet::{Fail, Fleet};
pub use record::Tape;
pub use remote::RemoteWrite;
pub use value::{is_host_name, show_duration, split_authority};
pub use when::{When, step, when};

use flags::{Flags, Word};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Collect and serve the page.
    Serve(Config),
    /// Say per collector what was tried and found.
    Doctor {
        /// What the server would run with.
        config: Config,
        /// JSON instead of text.
        json: bool,
        /// Where to write a report that can be passed on.
        bundle: Option<PathBuf>,
    },
    /// Write what is stored as text.
    Export {
        /// What the server would run with, the data folder in it.
        config: Config,
        /// What to write.
        export: Export,
    },
    /// Simulate a fleet and serve the page.
    Demo {
        /// What to serve with.
        config: Config,
        /// What to simulate.
        fleet: Fleet,
    },
    /// Make or show a recording.
    Tape {
        /// What to serve with, or whose history to record.
        config: Config,
        /// Which, and what to do.
        tape: Tape,
    },
    /// Print what is in force, [`Config::to_toml`], and leave.
    PrintConfig(Config),
    /// Print this text (help or version) to standard output and leave with status 0.
    Say(String),
}

/// Everything that a server needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Addresses to listen on, all on one port; loopback only, never empty.
    pub bind: Vec<IpAddr>,
    /// TCP port; 0 is any free one.
    pub port: u16,
    /// Time between ticks, 100 ms to 60 s.
    pub interval: Duration,
    /// How long ticks are kept, at least 1 minute.
    pub retention: Duration,
    /// Path below which everything is served; begins and ends with a slash.
    pub base_path: String,
    /// Other names the page is reached by; lower case, without port.
    pub hosts: Vec<String>,
    /// Other origins that may call: `scheme://host[:port]`, lower case, no default port.
    pub origins: Vec<String>,
    /// Uids of other local users who may read.
    pub allow_users: Vec<u32>,
    /// Uid of the user who called sudo, from SUDO_UID; not part of the configuration file.
    pub sudo_uid: Option<u32>,
    /// Whether local callers are told apart.
    pub local_auth: LocalAuth,
    /// Origins that may show the page in a frame, written as in `origins`.
    pub embed: Vec<String>,
    /// Paths whose file systems are watched; absolute.
    pub disk_paths: Vec<PathBuf>,
    /// Processes to watch, with descendants; empty: none.
    pub pids: Vec<u32>,
    /// GPUs to keep, by their vendor's own number; empty: all.
    pub gpus: Vec<u32>,
    /// Folder below which /proc and /sys are read; none: this machine's own.
    pub root: Option<PathBuf>,
    /// NVIDIA's library by absolute path, instead of the system's.
    pub nvml_library: Option<PathBuf>,
    /// Where TPU programs serve their metrics; empty: the usual port.
    pub tpu_endpoints: Vec<SocketAddr>,
    /// Endpoints to scrape, each name once.
    pub endpoints: Vec<collectors::openmetrics::Endpoint>,
    /// A server that samples are also sent to.
    pub remote_write: Option<RemoteWrite>,
    /// Settings of every collector, in the order of the registration table.
    pub collectors: Vec<CollectorConfig>,
    /// What to log: a level, or directives of `tracing`.
    pub log: String,
    /// Keep nothing on disk.
    pub memory: bool,
    /// Folder of the history; none where the environment names no place for it.
    pub data_dir: Option<PathBuf>,
    /// Sync the log every second, not every five.
    pub durable: bool,
    /// The most bytes of sealed history on disk; none: as many as the retention takes.
    pub retention_bytes: Option<u64>,
}

/// Settings that every collector has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorConfig {
    /// Its name in the registration table.
    pub name: String,
    /// False when it is left out.
    pub enabled: bool,
    /// Time between its readings when it is longer than the interval; none: every tick.
    pub every: Option<Duration>,
    /// How long one reading may take; none: [`collectors::deadline`] of the interval.
    pub deadline: Option<Duration>,
    /// Tools and files that it is to use, by key.
    pub paths: BTreeMap<&'static str, PathBuf>,
}

/// Whether local callers are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalAuth {
    /// By the uid that owns the caller's socket.
    Uid,
    /// Not at all: every local user may read.
    Off,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            bind: vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
            port: 7171,
            interval: Duration::from_secs(1),
            retention: Duration::from_secs(12 * 3600),
            base_path: "/".into(),
            hosts: Vec::new(),
            origins: Vec::new(),
            allow_users: Vec::new(),
            sudo_uid: None,
            local_auth: LocalAuth::Uid,
            embed: Vec::new(),
            disk_paths: vec![collectors::default_disk_path(cfg!(windows), None)],
            pids: Vec::new(),
            gpus: Vec::new(),
            root: None,
            nvml_library: None,
            tpu_endpoints: Vec::new(),
            endpoints: Vec::new(),
            remote_write: None,
            collectors: collector_defaults(&known_collectors()),
            log: "info".into(),
            memory: false,
            data_dir: None,
            durable: false,
            retention_bytes: None,
        }
    }
}

impl Config {
    /// Settings of a collector; one that is not in the table has the defaults.
    pub fn collector(&self, name: &str) -> CollectorConfig {
        self.collectors.iter().find(|c| c.name == name).cloned().unwrap_or_else(|| CollectorConfig::new(name))
    }

    /// Whether a collector is to run.
    pub fn keeps(&self, name: &str) -> bool {
        self.collector(name).enabled
    }

    /// Time between the readings of a collector: its `every`, never shorter than the interval.
    pub fn every(&self, name: &str) -> Duration {
        self.collector(name).every.unwrap_or(self.interval).max(self.interval)
    }

    /// How long a reading of a collector may take before it counts as hung.
    pub fn deadline(&self, name: &str) -> Duration {
        self.collector(name).deadline.unwrap_or_else(|| collectors::deadline(self.every(name)))
    }

    /// What the collectors need to know.
    pub fn options(&self) -> collectors::Options {
        let path = |collector: &str, key: &str| self.collector(collector).paths.get(key).cloned();
        collectors::Options {
            disk_paths: self.disk_paths.clone(),
            pids: self.pids.clone(),
            gpus: self.gpus.clone(),
            nvml_library: self.nvml_library.clone(),
            nvidia_command: path("nvidia", "command"),
            rocm_smi: path("amd", "rocm_smi"),
            amd_smi: path("amd", "amd_smi"),
            intel_command: path("intel", "command"),
            graphcore_command: path("graphcore", "command"),
            trainium_command: path("trainium", "command"),
            trainium_config: path("trainium", "config"),
            tpu_endpoints: self.tpu_endpoints.clone(),
            endpoints: self.endpoints.clone(),
            ..collectors::Options::default()
        }
    }

    /// Where /proc and /sys are read.
    pub fn roots(&self) -> collectors::Roots {
        self.root.as_deref().map(collectors::Roots::below).unwrap_or_default()
    }

    /// What is in force, as a configuration file that gives the same configuration again.
    pub fn to_toml(&self) -> String {
        print::to_toml(self)
    }
}

impl CollectorConfig {
    fn new(name: &str) -> Self {
        CollectorConfig { name: name.into(), enabled: true, every: None, deadline: None, paths: BTreeMap::new() }
    }
}

/// Wrong usage or configuration: the sentences for standard error, without what may be secret, and the exit status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    message: String,
}

impl ConfigError {
    fn new(message: impl Into<String>) -> Self {
        ConfigError { message: secret::hidden(&message.into()) }
    }

    /// The exit status that goes with it.
    pub fn status(&self) -> u8 {
        2
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message.trim_end())
    }
}

impl std::error::Error for ConfigError {}

/// Reads the command line (the first argument is the program's name), the environment (`WATCHGLASS_LOG`, `SUDO_UID`)
/// and the configuration file that `--config` names.
///
/// # Errors
/// [`ConfigError`] for an unknown flag or key, a value that cannot be, a file that cannot be read.
pub fn parse(
    args: impl IntoIterator<Item = OsString>,
    env: &dyn Fn(&str) -> Option<String>,
    read_file: &dyn Fn(&Path) -> std::io::Result<String>,
) -> Result<Command, ConfigError> {
    parse_with(args, env, read_file, &known_collectors())
}

fn parse_with(
    args: impl IntoIterator<Item = OsString>,
    env: &dyn Fn(&str) -> Option<String>,
    read_file: &dyn Fn(&Path) -> std::io::Result<String>,
    known: &[&str],
) -> Result<Command, ConfigError> {
    let flags = match flags::read(args) {
        Ok(flags) => flags,
        Err(flags::Stop::Say(text)) => return Ok(Command::Say(text)),
        Err(flags::Stop::Wrong(error)) => return Err(error),
    };
    let mut config = Config {
        collectors: collector_defaults(known),
        data_dir: state_folder(env),
        disk_paths: vec![collectors::default_disk_path(cfg!(windows), env("SystemDrive").as_deref())],
        ..Config::default()
    };
    if let Some(path) = &flags.config {
        let text = read_file(path).map_err(|error| {
            ConfigError::new(format!("cannot read the configuration file {}: {error}", path.display()))
        })?;
        file::read(&path.display().to_string(), &text, known)?.apply(&mut config);
    }
    if let Some(log) = env("WATCHGLASS_LOG").filter(|log| !log.is_empty()) {
        config.log = value::log(&log).map_err(|error| ConfigError::new(format!("WATCHGLASS_LOG: {error}")))?;
    }
    config.sudo_uid = env("SUDO_UID").and_then(|uid| uid.parse().ok());
    let Flags { print_config, command, .. } = flags.clone();
    let fleet = command.as_ref().and_then(Word::fleet).map(Fleet::check).transpose()?;
    if let (Some(_), [flag, ..]) = (fleet, &flags.of_real_machines()[..]) {
        return Err(ConfigError::new(format!("{flag} chooses what is read of this machine; a demo reads none of it")));
    }
    flags.apply(&mut config, known)?;
    check_bind(&config)?;
    endpoints::told_apart(&config.endpoints)?;
    if let Some(tape) = command.as_ref().and_then(Word::tape).filter(|_| !print_config) {
        return Ok(Command::Tape { config, tape });
    }
    Ok(match (command, fleet) {
        _ if print_config => Command::PrintConfig(config),
        (_, Some(fleet)) => Command::Demo { config, fleet },
        (Some(Word::Export(export)), _) => Command::Export { config, export },
        (Some(Word::Doctor { json, bundle }), _) => Command::Doctor { config, json, bundle },
        _ => Command::Serve(config),
    })
}

/// Listening beyond loopback waits for accounts: nobody could tell who calls.
fn check_bind(config: &Config) -> Result<(), ConfigError> {
    if config.bind.is_empty() {
        return Err(ConfigError::new("bind: write at least one address, 127.0.0.1 or ::1"));
    }
    let Some(wide) = config.bind.iter().find(|ip| !ip.is_loopback()) else { return Ok(()) };
    let port = if config.port == 0 { 7171 } else { config.port };
    Err(ConfigError::new(format!(
        "--bind {wide} would let other machines in, and there are no accounts yet to tell who calls.\n\
         Stay on 127.0.0.1 and ::1 and choose one of these:\n  \
         from another machine:  ssh -L {port}:localhost:{port} USER@HOST   then open http://localhost:{port}/\n  \
         behind a proxy here:   --host NAME --allow-user USER   (the name people type, the proxy's user)\n  \
         in a container:        share the host's network   (docker run --network host ...)"
    )))
}

/// Where programs keep what they know, by the XDG base directories; a relative path there is none.
fn state_folder(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("watchglass"))
}

fn known_collectors() -> Vec<&'static str> {
    collectors::COLLECTORS.iter().map(|entry| entry.name).collect()
}

fn collector_defaults(known: &[&str]) -> Vec<CollectorConfig> {
    known.iter().map(|name| CollectorConfig::new(name)).collect()
}

#[cfg(test)]
mod tests;

//! All settings of a user, as one value: [`Config`]. Flags override the configuration file, the file overrides the
//! defaults. This module reads no clock, opens no socket and prints nothing; [`parse`] gets the environment and the
//! files as arguments.
//!
//! Read `table.rs` (all options, one row each), then `option.rs` (a row), `flags.rs` (the command line), `file.rs`
//! (TOML) and `value.rs` (the syntax of values). The crate [`settings`] defines the tables of the file.

mod administer;
mod alerts;
mod audit;
mod cluster;
mod collector;
mod configured_join;
mod database;
mod endpoints;
mod example;
mod export;
mod file;
mod findings;
mod flags;
mod fleet;
mod hub;
mod insight;
mod keep;
mod option;
pub mod packages;
mod record;
mod reference;
mod remote_write;
mod run;
mod secret;
mod sessions;
mod sharing;
mod sign_in;
mod table;
mod team;
mod top;
mod value;
mod wandb_settings;
mod watching;
mod when;

pub use self::insight::InsightSettings;
pub use self::team::{AddressRange, AgentLimits, Proxies, PublicUrl, Rejoin};
pub use administer::{
    AdminTask, Administration, AgentsTask, AuditTask, EraseTask, Granted, KeyTask, ServiceTask, ShareTask, TeamSetting,
    TeamTask, UsageTask, UserTask, ViewTask,
};
pub use alerts::{AlertSettings, BuiltInRules, SmtpSettings, rules_of_file};
pub use collector::CollectorConfig;
pub use database::DatabaseSettings;
pub use example::example;
pub use export::Export;
pub use file::read_file;
pub use findings::{CheckFrom, FindingsTask};
pub use flags::command;
pub use fleet::{Fail, Fleet};
pub use keep::KeepRules;
pub use record::RecordingTask;
pub use reference::reference;
pub use remote_write::{RemoteWrite, WriteFormat};
pub use run::{AlertTask, LogTask, LogsTask, MarkTask, RunTask, RunsTask, RunsWord};
pub use settings::nearest;
pub use sign_in::{NewAccounts, ProxySignIn};
pub use table::Config;
pub use top::{Origin, Top, entry_here};
pub use value::{is_host_name, show_duration, split_authority};
pub use wandb_settings::translated;
pub use watching::{AlertHistory, AlertsTask, SilenceTask};
pub use when::{When, asked, step, when};

use flags::{Flags, Word};
use shared::run::About;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use uplink::settings::{HubEntry, MachineSettings, ProxyEnvironment, UplinkSettings};

/// The command of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Collect and serve the page.
    Serve(Config),
    /// Collect, and send samples to hubs.
    Agent {
        /// Collectors and hubs.
        config: Config,
        /// The agent's task.
        task: AgentTask,
    },
    /// Receive samples of agents, and serve them to people with accounts.
    Hub(Config),
    /// Report the state of each collector.
    Doctor {
        /// The configuration that the server would run with.
        config: Config,
        /// JSON instead of text.
        json: bool,
        /// Path of a report that can be passed on.
        bundle: Option<PathBuf>,
    },
    /// Export stored samples as text.
    Export {
        /// The configuration that the server would run with, including the data folder.
        config: Config,
        /// The export to write.
        export: Export,
    },
    /// List findings.
    Findings {
        /// The configuration that the server would run with, including the data folder.
        config: Config,
        /// The data to read.
        task: FindingsTask,
    },
    /// Simulate a fleet and serve the page.
    Demo {
        /// The configuration of the server.
        config: Config,
        /// The fleet to simulate.
        fleet: Fleet,
    },
    /// Start a training job.
    Run {
        /// The configuration with the data folder.
        config: Config,
        /// The program to start.
        task: Box<RunTask>,
        /// The names of the run.
        about: Box<About>,
    },
    /// Add a marker.
    Mark {
        /// The configuration with the data folder.
        config: Config,
        /// The marker.
        task: MarkTask,
    },
    /// Log values of a job.
    Log {
        /// The configuration with the data folder.
        config: Config,
        /// The values.
        task: LogTask,
    },
    /// Send an alert.
    Alert {
        /// The configuration with the data folder.
        config: Config,
        /// The alert.
        task: AlertTask,
    },
    /// Show the dashboard in a terminal.
    Top {
        /// The configuration of the collectors, used without a running server.
        config: Config,
        /// Origin and format of the dashboard.
        top: Top,
    },
    /// Answer an assistant.
    Mcp {
        /// The configuration with the data folder and the port.
        config: Config,
        /// The server to ask; none: the one of this machine.
        entry: Option<Box<HubEntry>>,
    },
    /// Make or show a recording.
    Recording {
        /// The configuration of the server, or of the history to record.
        config: Config,
        /// The recording, and the task.
        task: RecordingTask,
    },
    /// Send a task to a hub.
    Administer {
        /// The configuration with the address of the hub.
        config: Config,
        /// The task.
        wanted: Box<Administration>,
    },
    /// Print the effective configuration, [`Config::to_toml`], and exit.
    PrintConfig(Config),
    /// Print this text (help or version) to standard output and leave with status 0.
    Say(String),
    /// Write the manual pages into this folder.
    Manual(PathBuf),
}

/// Tasks of `watchglass agent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentTask {
    /// Measure and send.
    Run,
    /// Print a unit of systemd.
    Unit,
    /// Print the state of the running agent.
    Status,
}

/// Identification of local callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalAuth {
    /// By the uid that owns the caller's socket.
    Uid,
    /// None: every local user may read.
    Off,
}

impl Config {
    /// Settings of a collector; one that is not in the table has the defaults.
    pub fn collector(&self, name: &str) -> CollectorConfig {
        self.collectors.iter().find(|c| c.name == name).cloned().unwrap_or_else(|| CollectorConfig::new(name))
    }

    /// Whether a collector is enabled.
    pub fn keeps(&self, name: &str) -> bool {
        self.collector(name).enabled
    }

    /// Time between the readings of a collector: its `every`, never shorter than the interval.
    pub fn every(&self, name: &str) -> Duration {
        self.collector(name).every.unwrap_or(self.interval).max(self.interval)
    }

    /// Time after which a reading of a collector counts as hung.
    pub fn deadline(&self, name: &str) -> Duration {
        self.collector(name).deadline.unwrap_or_else(|| collectors::deadline(self.every(name)))
    }

    /// Options of the collectors.
    pub fn options(&self) -> collectors::Options {
        let own = self.collectors.iter().flat_map(|collector| {
            let row = |key: &str| collector::own_options(&collector.name).iter().find(|row| row.key == key).copied();
            collector.own.iter().filter_map(move |(key, texts)| Some((row(key)?, texts.clone())))
        });
        collectors::Options {
            disk_paths: self.disk_paths.clone(),
            pids: self.pids.clone(),
            gpus: self.gpus.clone(),
            endpoints: self.endpoints.clone(),
            show_args: self.show_args,
            own: own.collect(),
            ..collectors::Options::default()
        }
    }

    /// Folders of /proc and /sys.
    pub fn roots(&self) -> collectors::Roots {
        self.root.as_deref().map(collectors::Roots::below).unwrap_or_default()
    }

    /// Settings of an agent's links to hubs, and of its machine.
    pub fn uplink_settings(&self) -> UplinkSettings {
        let roots = self.roots();
        UplinkSettings {
            hubs: self.hubs.clone(),
            proxies: self.proxies.clone(),
            new_identity: self.new_identity,
            memory: self.memory,
            machine: MachineSettings {
                root: self.root.clone().unwrap_or_else(|| "/".into()),
                proc: roots.proc,
                sys: roots.sys,
                host: collectors::host_name().unwrap_or_default(),
            },
        }
    }

    /// The effective configuration, as a file that gives the same configuration again, with `***` in place of secrets.
    pub fn to_toml(&self) -> String {
        let all = table::OPTIONS.iter().filter_map(|row| Some((row.key.to_string(), row.kind.show(self)?)));
        all.collect::<toml::Table>().to_string()
    }
}

/// Wrong usage or configuration: the sentences for standard error, without secrets, and the exit status.
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
/// [`ConfigError`] for an unknown flag or key, an invalid value, or an unreadable file.
pub fn parse(
    args: impl IntoIterator<Item = OsString>,
    env: &dyn Fn(&str) -> Option<String>,
    read_file: &dyn Fn(&Path) -> std::io::Result<String>,
) -> Result<Command, ConfigError> {
    parse_with(args, env, read_file, collector::defaults())
}

/// The configuration from the environment and the file, before the flags.
fn base(
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
    read_file: &dyn Fn(&Path) -> std::io::Result<String>,
    collectors: Vec<CollectorConfig>,
) -> Result<Config, ConfigError> {
    let mut config = Config {
        collectors,
        data_dir: state_folder_of(env),
        disk_paths: vec![collectors::default_disk_path(cfg!(windows), env("SystemDrive").as_deref())],
        ..Config::default()
    };
    if let Some(path) = &flags.config {
        let text = read_file(path).map_err(|error| {
            ConfigError::new(format!("the configuration file {} cannot be read: {error}", path.display()))
        })?;
        file::apply(&path.display().to_string(), &text, &mut config)?;
    }
    if let Some(log) = env("WATCHGLASS_LOG").filter(|log| !log.is_empty()) {
        config.log = value::log(&log).map_err(|error| ConfigError::new(format!("WATCHGLASS_LOG: {error}")))?;
    }
    config.sudo_uid = env("SUDO_UID").and_then(|uid| uid.parse().ok());
    Ok(config)
}

/// Adds the hub that the environment names, if the configuration names none.
fn dial_named(config: &mut Config, env: &dyn Fn(&str) -> Option<String>) -> Result<(), ConfigError> {
    if let Some(hub) = env("WATCHGLASS_HUB").filter(|hub| config.hubs.is_empty() && !hub.is_empty()) {
        let named = HubEntry::parse(&hub).map_err(|error| ConfigError::new(format!("WATCHGLASS_HUB: {error}")))?;
        config.hubs.push(named);
    }
    Ok(())
}

/// The command that writes texts for packages and shells, without a configuration.
fn written(word: &Word) -> Option<Command> {
    match word {
        Word::Completions { shell } => Some(Command::Say(packages::completions(*shell))),
        Word::Man { folder: None } => Some(Command::Say(packages::page())),
        Word::Man { folder: Some(folder) } => Some(Command::Manual(folder.clone())),
        _ => None,
    }
}

/// The fleet to simulate, if the command is a demo.
fn simulated(flags: &flags::Flags) -> Result<Option<Fleet>, ConfigError> {
    let fleet = flags.command.as_ref().and_then(Word::fleet).map(Fleet::check).transpose()?;
    if let (Some(_), Some(flag)) = (fleet, flags.of_real_machines()) {
        return Err(ConfigError::new(format!(
            "--{flag} selects what is read from this machine; a demo reads nothing from it"
        )));
    }
    Ok(fleet)
}

fn parse_with(
    args: impl IntoIterator<Item = OsString>,
    env: &dyn Fn(&str) -> Option<String>,
    read_file: &dyn Fn(&Path) -> std::io::Result<String>,
    collectors: Vec<CollectorConfig>,
) -> Result<Command, ConfigError> {
    let mut flags = match flags::read(args) {
        Ok(flags) => flags,
        Err(flags::Stop::Say(text)) => return Ok(Command::Say(text)),
        Err(flags::Stop::Wrong(error)) => return Err(error),
    };
    if let Some(command) = flags.command.as_ref().and_then(written) {
        return Ok(command);
    }
    let mut config = base(&flags, env, read_file, collectors)?;
    let fleet = simulated(&flags)?;
    flags.apply(&mut config)?;
    if fleet.is_some() && !flags.gives("hub") {
        // A hub of the configuration file shows real machines only.
        config.hubs.clear();
    }
    if let Some(Word::Run(task)) = flags.command {
        let about = task.about(env("WATCHGLASS_LABEL"))?;
        return Ok(Command::Run { config, task: Box::new(task), about: Box::new(about) });
    }
    match flags.command {
        Some(Word::Mark(task)) => return Ok(Command::Mark { config, task }),
        Some(Word::Log(task)) => return Ok(Command::Log { config, task }),
        Some(Word::Alert(task)) => return Ok(Command::Alert { config, task }),
        _ => {}
    }
    let named = ["hub", "port", "unix"].map(|flag| flags.gives(flag));
    // A socket without a port or address means that no port is opened.
    config.no_port = matches!(named, [_, false, true]) && !flags.gives("bind");
    let dials = matches!(flags.command, Some(Word::Agent(_) | Word::Doctor { .. }));
    if dials {
        dial_named(&mut config, env)?;
    }
    config.proxies = ProxyEnvironment::read(env);
    let labels = flags.labels_of_others();
    flags.hub.clone().apply(&mut config, env)?;
    let administration = flags.administration(&config, labels)?;
    if let Some(agent) = flags.command.as_ref().and_then(Word::agent) {
        agent.apply(&mut config)?;
    }
    match flags.command {
        Some(Word::Hub) => {
            team::check(&config)?;
            cluster::check(&config)?;
        }
        _ => check_bind(&config)?,
    }
    endpoints::told_apart(&config.endpoints)?;
    if flags.print_config {
        return Ok(Command::PrintConfig(config));
    }
    if let Some(wanted) = administration {
        return Ok(Command::Administer { config, wanted: Box::new(wanted) });
    }
    if let Some(Word::Top(top)) = flags.command {
        let top = top.asked(&config, named)?;
        return Ok(Command::Top { config, top });
    }
    if let Some(task) = flags.command.as_ref().and_then(Word::recording) {
        return Ok(Command::Recording { config, task });
    }
    Ok(match (flags.command, fleet) {
        (_, Some(fleet)) => Command::Demo { config, fleet },
        (Some(Word::Agent(agent)), _) => Command::Agent { config, task: agent.task() },
        (Some(Word::Hub), _) => Command::Hub(config),
        (Some(Word::Mcp), _) => Command::Mcp { entry: top::asked_server(&config, named)?, config },
        (Some(Word::Export(export)), _) => Command::Export { config, export },
        (Some(Word::Findings(task)), _) => Command::Findings { config, task },
        (Some(Word::Doctor { json, bundle }), _) => Command::Doctor { config, json, bundle },
        _ => Command::Serve(config),
    })
}

/// Listening beyond loopback is for a hub, which has accounts: a server without accounts cannot identify remote
/// callers.
fn check_bind(config: &Config) -> Result<(), ConfigError> {
    if config.bind.is_empty() {
        return Err(ConfigError::new("bind: write at least one address, 127.0.0.1 or ::1"));
    }
    let Some(wide) = config.bind.iter().find(|ip| !ip.is_loopback()) else { return Ok(()) };
    let port = if config.port == 0 { 7171 } else { config.port };
    Err(ConfigError::new(format!(
        "--bind {wide} would let other machines connect, and without accounts users cannot be authenticated.\n\
         Keep 127.0.0.1 and ::1 and choose one of these:\n  \
         for a team:            watchglass hub   (accounts, and agents on other machines)\n  \
         from another machine:  ssh -L {port}:localhost:{port} USER@HOST   then open http://localhost:{port}/\n  \
         behind a proxy here:   --host NAME --allow-user USER   (the name people type, the proxy's user)\n  \
         in a container:        share the host's network   (docker run --network host ...)"
    )))
}

/// State folder of this user, where `watchglass run` writes without a server.
pub fn state_folder() -> Option<PathBuf> {
    state_folder_of(&|name| std::env::var(name).ok())
}

/// State folder by the XDG base directories, in which relative paths are invalid.
fn state_folder_of(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("watchglass"))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod walk_tests;

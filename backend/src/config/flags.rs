//! The command line. Its help is what a newcomer reads first: grouped, one line each.

use super::file::{nearest, unique};
use super::{Config, ConfigError, Export, Fail, Fleet, LocalAuth, Tape, When, endpoints, export, fleet, value, when};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use collectors::openmetrics::Endpoint;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Shows this machine live in the browser: CPU, memory, disk, network, GPUs and the processes that you name.
#[derive(Clone, Debug, Parser)]
#[command(name = "watchglass", version, max_term_width = 120)]
#[command(
    after_help = "Lists are written with commas or by repeating the flag. Flags win over the configuration file."
)]
pub struct Flags {
    #[command(subcommand)]
    pub command: Option<Word>,

    /// Port to listen on, 0 for any free one [default: 7171]
    #[arg(long, value_name = "N", global = true, help_heading = "Page")]
    port: Option<u16>,
    /// Addresses to listen on, this machine's own only [default: 127.0.0.1,::1]
    #[arg(long, value_name = "ADDR", value_delimiter = ',', value_parser = value::bind, global = true, help_heading = "Page")]
    bind: Vec<IpAddr>,
    /// Path below which a proxy serves the page, if it does not strip it [default: /]
    #[arg(long, value_name = "PATH", value_parser = value::base_path, global = true, help_heading = "Page")]
    base_path: Option<String>,

    /// Another name the page is reached by, for example through a proxy
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = value::host, global = true, help_heading = "Who may read")]
    host: Vec<String>,
    /// Another web origin that may call, like https://tools.example.org
    #[arg(long, value_name = "URL", value_delimiter = ',', value_parser = value::origin, global = true, help_heading = "Who may read")]
    origin: Vec<String>,
    /// A web origin that may show the page in a frame
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',', value_parser = value::origin, global = true, help_heading = "Who may read")]
    embed: Vec<String>,
    /// Another local user who may read, by name or uid
    #[arg(long, value_name = "USER", value_delimiter = ',', value_parser = value::user, global = true, help_heading = "Who may read")]
    allow_user: Vec<u32>,
    /// How local users are told apart: uid, or off to let all of them read [default: uid]
    #[arg(long, value_name = "uid|off", value_parser = value::local_auth, global = true, help_heading = "Who may read")]
    local_auth: Option<LocalAuth>,

    /// Time between samples, 100ms to 60s [default: 1s]
    #[arg(long, value_name = "DUR", value_parser = value::interval, global = true, help_heading = "What is measured")]
    interval: Option<Duration>,
    /// Process to watch, with all it starts
    #[arg(long, value_name = "PID", value_delimiter = ',', value_parser = value::pid, global = true, help_heading = "What is measured")]
    pid: Vec<u32>,
    /// GPU to keep, by its number in nvidia-smi or N of cardN [default: all]
    #[arg(long, value_name = "INDEX", value_delimiter = ',', value_parser = value::gpu, global = true, help_heading = "What is measured")]
    gpu: Vec<u32>,
    /// Path whose file system is watched [default: /]
    #[arg(long, value_name = "PATH", value_delimiter = ',', value_parser = value::absolute, global = true, help_heading = "What is measured")]
    disk_path: Vec<PathBuf>,
    /// Prometheus endpoint to scrape, under a name of yours
    #[arg(long, value_name = "NAME=URL", value_delimiter = ',', value_parser = endpoints::flag, global = true, help_heading = "What is measured")]
    openmetrics: Vec<Endpoint>,
    /// Collectors to keep (cpu,memory), or with a minus to leave out (-disk)
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        allow_hyphen_values = true,
        global = true,
        help_heading = "What is measured"
    )]
    collectors: Vec<String>,
    /// Folder that holds the proc and sys to read, such as a host's mounted into a container
    #[arg(long, value_name = "DIR", value_parser = value::folder, global = true, help_heading = "What is measured")]
    root: Option<PathBuf>,

    /// How long samples are kept [default: 12h]
    #[arg(long, value_name = "DUR", value_parser = value::retention, global = true, help_heading = "Storage")]
    retention: Option<Duration>,
    /// Keep nothing on disk, and at most 256 MiB in memory, oldest out first
    #[arg(long, global = true, help_heading = "Storage")]
    memory: bool,
    /// Folder that history is kept in [default: watchglass in your state folder, ~/.local/state]
    #[arg(long, value_name = "DIR", value_parser = value::data_dir, global = true, help_heading = "Storage")]
    data_dir: Option<PathBuf>,
    /// Lose at most a second to a power cut, not five, for a sync every second
    #[arg(long, global = true, help_heading = "Storage")]
    durable: bool,

    /// Configuration file, TOML
    #[arg(long, value_name = "FILE", global = true, help_heading = "General")]
    pub config: Option<PathBuf>,
    /// Print what is in force as a configuration file, and leave
    #[arg(long, global = true, help_heading = "General")]
    pub print_config: bool,
    /// What to log: error, warn, info, debug or trace; also WATCHGLASS_LOG [default: info]
    #[arg(long, value_name = "LEVEL", value_parser = value::log, global = true, help_heading = "General")]
    log: Option<String>,
}

#[derive(Clone, Debug, Subcommand)]
pub enum Word {
    /// Collect on this machine and serve the page (what happens without a command)
    Serve,
    /// Say per collector what was tried, what was found and what to do; takes the same flags
    Doctor {
        /// JSON instead of text
        #[arg(long)]
        json: bool,
        /// Also write a report to this file, without names, addresses and secrets, to be passed on
        #[arg(long, value_name = "FILE")]
        bundle: Option<PathBuf>,
    },
    /// Write what is stored as text: CSV, JSON lines or OpenMetrics; also while a server runs
    #[command(after_help = export::AFTER)]
    Export(Export),
    /// Write what is stored to one file that plays back anywhere
    Record {
        /// The file to write
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// First instant: Unix seconds, a date and time such as 2026-05-01T14:00:00Z, or before now, such as -1h [default: all that is stored]
        #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true)]
        from: Option<When>,
        /// Last instant, likewise
        #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true, default_value = "now")]
        to: When,
    },
    /// Show a recording in the page, with a clock of its own; nothing is measured, nothing leaves this machine
    Replay {
        /// The file to show
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Show the system metrics of a W&B run, or of a CSV or JSON export, like a recording
    Import {
        /// run-*.wandb, wandb-events.jsonl, a run's folder, or the CSV of a chart
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Write a recording instead of showing it
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Show simulated machines instead of this one: without a GPU, for pictures, for load
    Demo {
        /// GPUs of each machine, 1 to 512
        #[arg(long, value_name = "N", value_parser = fleet::gpus, default_value = "8")]
        gpus: u32,
        /// Machines, 1 to 64; 4096 GPUs in all
        #[arg(long, value_name = "N", value_parser = fleet::hosts, default_value = "1")]
        hosts: u32,
        /// What went wrong three minutes ago: lost, hang, throttle, ecc, straggler or oom
        #[arg(long, value_name = "KIND", value_parser = fleet::fail)]
        fail: Option<Fail>,
        /// Another number is another fleet; the same number is the same fleet again
        #[arg(long, value_name = "N", default_value = "1")]
        seed: u64,
    },
}

impl Word {
    /// The recording to make or to show, when this asks for one.
    pub fn tape(&self) -> Option<Tape> {
        match self.clone() {
            Word::Record { file, from, to } => Some(Tape::Record { file, from, to }),
            Word::Replay { file } | Word::Import { file, output: None } => Some(Tape::Play(file)),
            Word::Import { file, output: Some(output) } => Some(Tape::Convert { file, output }),
            _ => None,
        }
    }

    /// The fleet to simulate, when this asks for one.
    pub fn fleet(&self) -> Option<Fleet> {
        match *self {
            Word::Demo { gpus, hosts, fail, seed } => Some(Fleet { gpus, hosts, fail, seed }),
            _ => None,
        }
    }
}

/// Why no flags came back.
pub enum Stop {
    /// Help or version was asked for.
    Say(String),
    /// Wrong usage.
    Wrong(ConfigError),
}

/// Flags of the server that `export`, which reads a folder and leaves, shows in its help.
const OF_EXPORT: &[&str] = &["data_dir", "config"];

/// The command line. What every command takes is built into each first, so that a command can hide of it what means
/// nothing to it.
fn command() -> clap::Command {
    let mut command = Flags::command();
    let global: Vec<clap::Id> =
        command.get_arguments().filter(|arg| arg.is_global_set()).map(|arg| arg.get_id().clone()).collect();
    command.build();
    command.mut_subcommand("export", |export| {
        let hidden = |id: &clap::Id| global.contains(id) && !OF_EXPORT.contains(&id.as_str());
        export.mut_args(|arg| if hidden(arg.get_id()) { arg.hide(true) } else { arg })
    })
}

pub fn read(args: impl IntoIterator<Item = OsString>) -> Result<Flags, Stop> {
    let parsed = command().try_get_matches_from(args).and_then(|matches| Flags::from_arg_matches(&matches));
    parsed.map_err(|mut error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Stop::Say(error.to_string()),
        _ => {
            let of_endpoint = |value: &ContextValue| value.to_string().starts_with("--openmetrics");
            if error.get(ContextKind::InvalidArg).is_some_and(of_endpoint) {
                // An address may have a password in it, wherever in the text.
                error.insert(ContextKind::InvalidValue, ContextValue::String("***".into()));
            }
            let text = error.to_string();
            Stop::Wrong(ConfigError::new(text.strip_prefix("error: ").unwrap_or(&text)))
        }
    })
}

impl Flags {
    /// Flags that were given and mean nothing where the machines are simulated.
    pub fn of_real_machines(&self) -> Vec<&'static str> {
        let given = [
            ("--pid", !self.pid.is_empty()),
            ("--gpu", !self.gpu.is_empty()),
            ("--disk-path", !self.disk_path.is_empty()),
            ("--openmetrics", !self.openmetrics.is_empty()),
            ("--collectors", !self.collectors.is_empty()),
            ("--root", self.root.is_some()),
        ];
        given.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag).collect()
    }

    /// Puts what was given over what stands; a list replaces the whole list.
    pub fn apply(self, config: &mut Config, known: &[&str]) -> Result<(), ConfigError> {
        fn put<T>(at: &mut T, given: Option<T>) {
            if let Some(given) = given {
                *at = given;
            }
        }
        fn put_list<T: PartialEq>(at: &mut Vec<T>, given: Vec<T>) {
            if !given.is_empty() {
                *at = unique(given);
            }
        }
        put(&mut config.port, self.port);
        put_list(&mut config.bind, self.bind);
        put(&mut config.base_path, self.base_path);
        put_list(&mut config.hosts, self.host);
        put_list(&mut config.origins, self.origin);
        put_list(&mut config.embed, self.embed);
        put_list(&mut config.allow_users, self.allow_user);
        put(&mut config.local_auth, self.local_auth);
        put(&mut config.interval, self.interval);
        put_list(&mut config.pids, self.pid);
        put_list(&mut config.gpus, self.gpu);
        put_list(&mut config.disk_paths, self.disk_path);
        put_list(&mut config.endpoints, self.openmetrics);
        config.root = self.root.or(config.root.take());
        put(&mut config.retention, self.retention);
        config.memory |= self.memory;
        config.data_dir = self.data_dir.or(config.data_dir.take());
        config.durable |= self.durable;
        put(&mut config.log, self.log);
        select(&self.collectors, config, known)
    }
}

/// `cpu,memory` keeps those two, `-disk` leaves out that one, both together keep and then leave out.
fn select(list: &[String], config: &mut Config, known: &[&str]) -> Result<(), ConfigError> {
    let (left_out, kept): (Vec<&str>, Vec<&str>) = list.iter().map(String::as_str).partition(|n| n.starts_with('-'));
    let left_out: Vec<&str> = left_out.iter().map(|name| &name[1..]).collect();
    if let Some(name) = kept.iter().chain(&left_out).find(|name| !known.contains(name)) {
        return Err(ConfigError::new(format!("--collectors: there is no collector {name:?}{}", nearest(name, known))));
    }
    for collector in &mut config.collectors {
        let name = collector.name.as_str();
        if !kept.is_empty() {
            collector.enabled = kept.contains(&name);
        }
        collector.enabled &= !left_out.contains(&name);
    }
    Ok(())
}

//! The command line. Its flags are the rows of the table of options. Newcomers read its help first: grouped, one line
//! each.

use super::administer::{
    AdminFlags, AdminTask, Administration, AgentsTask, AuditTask, EraseTask, KeyTask, ServiceTask, ShareTask, TeamTask,
    UsageTask, UserTask, ViewTask,
};
use super::hub::{HUB_FLAGS, HubFlags};
use super::option::{ConfigOption, default_text};
use super::run::{self, AlertTask, LogTask, LogsTask, MarkTask, RunTask, RunsTask};
use super::table::{Config, GENERAL, MEASURED, OPTIONS};
use super::top::{self, TopFlags};
use super::watching::AlertsTask;
use super::{
    AgentTask, ConfigError, Export, Fail, FindingsTask, Fleet, RecordingTask, When, export, findings, fleet, value,
    when,
};
use crate::build_info::BUILD;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Subcommand, value_parser};
use settings::Takes;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const ABOUT: &str = "Shows this machine live in the browser: CPU, memory, disk, network, GPUs and chosen processes";

/// Below the flags in `--help`.
const AFTER_HELP: &str =
    "Lists have commas or repeat the flag; '' is the empty list. Flags override the configuration file.";

const AFTER_COMPLETIONS: &str = "\
In this shell:  source <(watchglass completions bash)
In a package:   watchglass completions bash > /usr/share/bash-completion/completions/watchglass";

const AFTER_MAN: &str = "\
To read it:    watchglass man | man -l -
In a package:  watchglass man /usr/share/man/man1";

const AFTER_MCP: &str = "\
Without --hub and --port, it asks the server of the data folder, or that of this machine's port. The page of the docs
about assistants has the lines for Claude Code, Cursor and VS Code.";

/// Default size limit of an agent's spool.
const SPOOL_BYTES: u64 = 256 << 20;

const CONFIG: &str = "config";
const PRINT_CONFIG: &str = "print-config";

/// The commands that administer a hub, and the flags of all of them.
const ADMINISTERING: [&str; 15] = [
    "runs", "logs", "alerts", "user", "key", "service", "agents", "team", "view", "share", "erase", "audit", "usage",
    "backup", "restore",
];
const ADMIN_FLAGS: [&str; 2] = ["team", "json"];

/// A command, with the flags that it alone has.
#[derive(Clone, Debug, Subcommand)]
pub enum Word {
    /// Collect on this machine and serve the page (the default command)
    Serve,
    /// Collect on this machine and send samples to a hub, without a page
    Agent(AgentFlags),
    /// Serve many machines to a team: accounts, and agents that send samples
    Hub,
    /// Diagnose each collector: what works, what is missing, how to fix it
    Doctor {
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
        /// Also write a report without names, addresses and secrets to this file
        #[arg(long, value_name = "FILE")]
        bundle: Option<PathBuf>,
    },
    /// Export stored samples: CSV, JSON lines, OpenMetrics or W&B events
    #[command(after_help = export::AFTER_HELP)]
    Export(Export),
    /// Show detected problems of this machine, a recording or an import
    #[command(after_help = findings::AFTER_HELP)]
    Findings(FindingsTask),
    /// Write stored history to one file that can be replayed anywhere
    Record {
        /// File to write
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// First instant, such as -1h, 2:15pm, 2026-05-01T14:00 or Unix seconds [default: all stored data]
        #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true)]
        from: Option<When>,
        /// Last instant, in the same forms
        #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true, default_value = "now")]
        to: When,
    },
    /// Replay a recording in the page; nothing is measured or sent
    Replay {
        /// Recording to show
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Show the system metrics of a W&B run, or of a CSV or JSON export
    Import {
        /// run-*.wandb, wandb-events.jsonl, a run's folder, or the CSV of a chart
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Write a recording instead of showing it
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Print the configuration that corresponds to a wandb/settings file
        #[arg(long, conflicts_with = "output")]
        settings: bool,
    },
    /// Show simulated machines with GPUs, to try the page or for load tests
    Demo {
        /// Number of GPUs per machine, 1 to 512
        #[arg(long, value_name = "N", value_parser = fleet::gpus, default_value = "8")]
        gpus: u32,
        /// Number of machines, 1 to 256; 4096 GPUs in all
        #[arg(long, value_name = "N", value_parser = fleet::hosts, default_value = "1")]
        hosts: u32,
        /// Fault to simulate, three minutes ago (idle: twenty): none, lost, hang, throttle, ecc, straggler, oom,
        /// starvation, link, memory, idle or links
        #[arg(long, value_name = "KIND", value_parser = fleet::fail)]
        fail: Option<Fail>,
        /// Seed of the simulation; the same seed gives the same machines
        #[arg(long, value_name = "N", default_value = "1")]
        seed: u64,
    },
    /// Show this machine, a server, a hub or a recording in the terminal
    #[command(after_help = top::AFTER_HELP)]
    Top(TopFlags),
    /// Answer an assistant over the Model Context Protocol; it only reads
    #[command(after_help = AFTER_MCP)]
    Mcp,
    /// Start a training job and record its start, end and exit status
    #[command(after_help = run::AFTER_HELP)]
    Run(RunTask),
    /// Add a marker to the charts of this machine and of the current job
    #[command(after_help = run::AFTER_MARK)]
    Mark(MarkTask),
    /// Log numbers of the current job, such as its loss
    #[command(after_help = run::AFTER_LOG)]
    Log(LogTask),
    /// Send an alert from a script about this job or machine
    #[command(after_help = run::AFTER_ALERT)]
    Alert(AlertTask),
    /// List training jobs of this machine or of a hub, and how they ended
    #[command(after_help = run::AFTER_RUNS)]
    Runs {
        #[command(flatten)]
        task: RunsTask,
        /// Print JSON instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Print the output of a training job started with run --logs
    #[command(after_help = run::AFTER_LOGS)]
    Logs(LogsTask),
    /// Manage the accounts of a hub and their roles
    User {
        #[command(subcommand)]
        task: UserTask,
        #[command(flatten)]
        flags: AdminFlags,
    },
    /// Manage the API keys of a hub
    Key {
        #[command(subcommand)]
        task: KeyTask,
        #[command(flatten)]
        flags: AdminFlags,
    },
    /// Manage the service accounts of a team
    Service {
        #[command(subcommand)]
        task: ServiceTask,
        #[command(flatten)]
        flags: AdminFlags,
    },
    /// Manage the machines of a hub and their join keys
    Agents {
        #[command(subcommand)]
        task: AgentsTask,
        #[command(flatten)]
        flags: AdminFlags,
    },
    /// Manage the teams of a hub and their machines
    Team {
        #[command(subcommand)]
        task: TeamTask,
        #[command(flatten)]
        flags: AdminFlags,
    },
    /// Manage the saved views of a hub
    View {
        #[command(subcommand)]
        task: ViewTask,
        #[command(flatten)]
        flags: AdminFlags,
    },
    /// Manage share links, each to one view without an account
    Share {
        #[command(subcommand)]
        task: ShareTask,
        #[command(flatten)]
        flags: AdminFlags,
    },
    /// Back up accounts, keys, views and settings of a hub, without samples
    Backup {
        /// File to write
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Also copy secret.key to FILE.key, which decrypts channels' secrets
        #[arg(long)]
        with_key: bool,
        #[command(flatten)]
        flags: AdminFlags,
    },
    /// Restore a backup into a data folder without a hub's database
    Restore {
        /// File to read
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        flags: AdminFlags,
    },
    /// Erase a person, a run, or a machine with its samples, for good
    Erase {
        #[command(flatten)]
        task: EraseTask,
        #[command(flatten)]
        flags: AdminFlags,
    },
    /// Show the audit log of a hub: who did what
    Audit {
        #[command(flatten)]
        task: AuditTask,
        #[command(flatten)]
        flags: AdminFlags,
    },
    /// Show GPU-hours, idle time, energy and cost, or what a hub stores
    Usage {
        #[command(flatten)]
        task: UsageTask,
        #[command(flatten)]
        flags: AdminFlags,
    },
    /// Show firing and past alerts, test rules and channels, silence alerts
    Alerts {
        #[command(subcommand)]
        task: Option<AlertsTask>,
        #[command(flatten)]
        flags: AdminFlags,
    },
    /// Generate shell completions
    #[command(after_help = AFTER_COMPLETIONS)]
    Completions {
        /// Name of the shell
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write those of all commands to a folder
    #[command(after_help = AFTER_MAN)]
    Man {
        /// Folder for the manual pages; created if it is missing
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
}

/// Flags of an agent alone.
#[derive(Args, Clone, Debug)]
pub struct AgentFlags {
    /// Retention of samples on disk while the hub is unreachable
    #[arg(long, value_name = "DUR", value_parser = value::retention)]
    spool: Option<Duration>,
    /// Maximum size of these samples on disk [default: 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = value::bytes)]
    spool_bytes: Option<u64>,
    /// Print a systemd unit for this command
    #[arg(long)]
    unit: bool,
    /// Print the state of the running agent as JSON; exit 0 if it is connected
    #[arg(long, conflicts_with = "unit")]
    status: bool,
}

impl AgentFlags {
    /// The agent's task.
    pub fn task(&self) -> AgentTask {
        match self {
            AgentFlags { unit: true, .. } => AgentTask::Unit,
            AgentFlags { status: true, .. } => AgentTask::Status,
            _ => AgentTask::Run,
        }
    }

    /// Applies the limits of the spool over those of the history: an agent's history is its spool.
    pub fn apply(&self, config: &mut Config) -> Result<(), ConfigError> {
        config.retention = self.spool.unwrap_or(config.retention);
        config.retention_bytes = self.spool_bytes.or(config.retention_bytes).or(Some(SPOOL_BYTES));
        match config.hubs.is_empty() && self.task() == AgentTask::Run {
            true => Err(ConfigError::new(
                "an agent needs a hub; name it with --hub URL, and the key of its join line with --key",
            )),
            false => Ok(()),
        }
    }
}

impl Word {
    /// The flags of an agent, when this is one.
    pub fn agent(&self) -> Option<&AgentFlags> {
        if let Word::Agent(agent) = self { Some(agent) } else { None }
    }

    /// The task for a hub, if the command has one.
    fn administration(&self) -> Option<(AdminTask, AdminFlags)> {
        match self.clone() {
            Word::User { task, flags } => Some((AdminTask::User(task), flags)),
            Word::Key { task, flags } => Some((AdminTask::Key(task), flags)),
            Word::Service { task, flags } => Some((AdminTask::Service(task), flags)),
            Word::Agents { task, flags } => Some((AdminTask::Agents(task), flags)),
            Word::Team { task, flags } => Some((AdminTask::Team(task), flags)),
            Word::View { task, flags } => Some((AdminTask::View(task), flags)),
            Word::Share { task, flags } => Some((AdminTask::Share(task), flags)),
            Word::Backup { file, with_key, flags } => Some((AdminTask::Backup(file, with_key), flags)),
            Word::Restore { file, flags } => Some((AdminTask::Restore(file), flags)),
            Word::Erase { task, flags } => Some((AdminTask::Erase(task), flags)),
            Word::Audit { task, flags } => Some((AdminTask::Audit(task), flags)),
            Word::Runs { task, json } => Some((AdminTask::Runs(task), AdminFlags::new(json))),
            Word::Logs(task) => {
                let json = task.json;
                Some((AdminTask::Logs(task), AdminFlags::new(json)))
            }
            Word::Usage { task, flags } => Some((AdminTask::Usage(task), flags)),
            Word::Alerts { task, flags } => {
                Some((AdminTask::Alerts(task.unwrap_or(AlertsTask::List { exit_code: false })), flags))
            }
            _ => None,
        }
    }

    /// The recording to make or to show, if the command has one.
    pub fn recording(&self) -> Option<RecordingTask> {
        match self.clone() {
            Word::Record { file, from, to } => Some(RecordingTask::Record { file, from, to }),
            Word::Import { file, settings: true, .. } => Some(RecordingTask::Settings(file)),
            Word::Replay { file } | Word::Import { file, output: None, .. } => Some(RecordingTask::Show(file)),
            Word::Import { file, output: Some(output), .. } => Some(RecordingTask::Convert { file, output }),
            _ => None,
        }
    }

    /// The fleet to simulate, if the command has one.
    pub fn fleet(&self) -> Option<Fleet> {
        match *self {
            Word::Demo { gpus, hosts, fail, seed } => Some(Fleet { gpus, hosts, fail, seed }),
            _ => None,
        }
    }
}

/// The parsed command line.
pub struct Flags {
    /// The command; none is `serve`.
    pub command: Option<Word>,
    /// The configuration file to read.
    pub config: Option<PathBuf>,
    /// Whether to print the effective configuration and exit.
    pub print_config: bool,
    /// Flags of one hub.
    pub hub: HubFlags,
    /// The options that were given, with their values.
    options: Vec<(&'static ConfigOption<Config>, Vec<String>)>,
}

/// The reason why parsing returned no flags.
pub enum Stop {
    /// Help or version was requested.
    Say(String),
    /// Wrong usage.
    Wrong(ConfigError),
}

/// The command line. Every command accepts all flags, and its help lists those that apply to it.
pub fn command() -> Command {
    let mut command = bare().args(shared());
    // Flags common to all commands are built into each first, so that a command can hide those that do not apply.
    command.build();
    let names: Vec<String> = command.get_subcommands().map(|word| word.get_name().to_string()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(&name, |word| with_its_flags(word, &name)))
}

/// The commands, each with the flags that are its own.
fn bare() -> Command {
    let command = Command::new("watchglass").version(BUILD.version).long_version(BUILD.to_string());
    let command = command.after_help(AFTER_HELP).max_term_width(120);
    // The derived commands bring an about text, which ours replaces.
    Word::augment_subcommands(command).about(ABOUT)
}

/// The flags that every command takes, in the order of the help.
fn shared() -> Vec<Arg> {
    let of_section = |general: bool| OPTIONS.iter().filter(move |row| (row.section == GENERAL) == general);
    let flags = |general: bool| of_section(general).filter(|row| !row.flag.is_empty()).map(flag);
    let global = |name: &'static str| Arg::new(name).long(name).global(true).help_heading(GENERAL);
    let config =
        global(CONFIG).value_name("FILE").value_parser(value_parser!(PathBuf)).help("Configuration file (TOML)");
    let print =
        global(PRINT_CONFIG).action(ArgAction::SetTrue).help("Print the effective configuration as a file and exit");
    let hub = HubFlags::augment_args(Command::new("hub"));
    flags(false).chain([config, print]).chain(flags(true)).chain(hub.get_arguments().cloned()).collect()
}

/// The commands, each with only the flags that apply to it, as its help lists them.
pub fn shown_commands() -> Command {
    with_those_told(bare(), None)
}

/// As above, for a command and its subcommands. `name` is the top-level command; none is the program itself.
fn with_those_told(word: Command, name: Option<&str>) -> Command {
    let below: Vec<String> = word.get_subcommands().map(|word| word.get_name().to_string()).collect();
    let known: Vec<String> = word.get_arguments().map(|arg| arg.get_id().to_string()).collect();
    let concerns = |flag: &str| concerns(flag, name.unwrap_or("serve"));
    let flags = shared().into_iter().filter_map(|arg| {
        let id = arg.get_id().as_str();
        let told = concerns(id);
        // A flag that excludes another one names it, so the other must exist.
        let excluded = id == "key" && concerns("key_file");
        let is_own = known.iter().any(|known| known == id);
        ((told || excluded) && !is_own).then(|| arg.global(false).hide(!told))
    });
    let does_something = below.is_empty() || name.is_none() || !word.is_subcommand_required_set();
    let word = if does_something { word.args(flags) } else { word };
    below
        .iter()
        .fold(word, |word, task| word.mut_subcommand(task, |below| with_those_told(below, Some(name.unwrap_or(task)))))
}

/// A command and its subcommands, with help for only the flags that apply.
fn with_its_flags(word: Command, name: &str) -> Command {
    let word = word.mut_args(|arg| {
        if !arg.is_global_set() || ADMIN_FLAGS.contains(&arg.get_id().as_str()) {
            return arg;
        }
        let concerns = concerns(arg.get_id().as_str(), name);
        arg.hide(!concerns)
    });
    let below: Vec<String> = word.get_subcommands().map(|word| word.get_name().to_string()).collect();
    below.iter().fold(word, |word, task| word.mut_subcommand(task, |task| with_its_flags(task, name)))
}

/// Whether a flag is listed in the help of a command.
fn concerns(flag: &str, command: &str) -> bool {
    match OPTIONS.iter().find(|row| row.flag == flag) {
        Some(row) => row.commands.contains(&command),
        None if ADMINISTERING.contains(&command) => {
            [CONFIG, "key_file"].contains(&flag) || (flag, command) == ("label", "agents")
        }
        None if HUB_FLAGS.contains(&flag) && command == "top" => ["key_file", "ca", "pin", "proxy"].contains(&flag),
        None if HUB_FLAGS.contains(&flag) && command == "mcp" => flag == "key_file",
        None if HUB_FLAGS.contains(&flag) && command == "demo" => {
            ["key", "key_file", "ca", "pin", "proxy"].contains(&flag)
        }
        None if HUB_FLAGS.contains(&flag) => ["serve", "agent", "doctor"].contains(&command),
        None if ["completions", "man"].contains(&command) => false,
        None if command == "run" => flag == CONFIG,
        // These print no configuration.
        None => flag != PRINT_CONFIG || !["export", "findings", "mcp"].contains(&command),
    }
}

/// The flag of a row.
fn flag(row: &'static ConfigOption<Config>) -> Arg {
    let default = default_text(row).map_or(String::new(), |default| format!(" [default: {default}]"));
    let arg = Arg::new(row.flag)
        .long(row.flag)
        .value_name(row.value)
        .value_parser(|text: &str| row.kind.check(text).map(|()| text.to_string()))
        .allow_hyphen_values(row.kind.has_hyphens())
        .help(format!("{}{default}", row.help))
        .help_heading(row.section)
        .global(true);
    match row.kind.takes() {
        Takes::Switch => arg.num_args(0..=1).require_equals(true).default_missing_value("true"),
        Takes::One => arg,
        Takes::Many => arg.action(ArgAction::Append).value_delimiter(','),
    }
}

/// Reads the command line.
pub fn read(args: impl IntoIterator<Item = OsString>) -> Result<Flags, Stop> {
    command().try_get_matches_from(args).and_then(|matches| taken(&matches)).map_err(|mut error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Stop::Say(error.to_string()),
        _ => {
            let of = |value: &ContextValue| {
                let text = value.to_string();
                OPTIONS.iter().any(|row| row.kind.is_secret() && text.starts_with(&format!("--{}", row.flag)))
            };
            if error.get(ContextKind::InvalidArg).is_some_and(of) {
                // An address may contain a password anywhere in the text.
                error.insert(ContextKind::InvalidValue, ContextValue::String("***".into()));
            }
            let text = error.to_string();
            Stop::Wrong(ConfigError::new(text.strip_prefix("error: ").unwrap_or(&text)))
        }
    })
}

fn taken(matches: &ArgMatches) -> Result<Flags, clap::Error> {
    let given = |row: &&ConfigOption<Config>| {
        !row.flag.is_empty() && matches.value_source(row.flag) == Some(ValueSource::CommandLine)
    };
    let texts = |flag: &str| matches.get_many::<String>(flag).into_iter().flatten().cloned().collect();
    Ok(Flags {
        command: matches.subcommand().map(|_| Word::from_arg_matches(matches)).transpose()?,
        config: matches.get_one::<PathBuf>(CONFIG).cloned(),
        print_config: matches.get_flag(PRINT_CONFIG),
        hub: HubFlags::from_arg_matches(matches)?,
        options: OPTIONS.iter().filter(given).map(|row| (row, texts(row.flag))).collect(),
    })
}

impl Flags {
    /// The labels, if they belong to the machines that join instead of this one. A name of a run is no longer one of
    /// this machine.
    pub fn labels_of_others(&mut self) -> Vec<(String, String)> {
        if matches!(self.command, Some(Word::Runs { .. })) {
            self.hub.forget_name();
        }
        let administers = self.command.as_ref().is_some_and(|word| word.administration().is_some());
        if administers { self.hub.take_labels() } else { Vec::new() }
    }

    /// The task for a hub, if the command has one.
    pub fn administration(
        &self,
        config: &Config,
        labels: Vec<(String, String)>,
    ) -> Result<Option<Administration>, ConfigError> {
        let Some((task, flags)) = self.command.as_ref().and_then(Word::administration) else { return Ok(None) };
        flags.asked(task, &config.hubs, labels).map(Some)
    }

    /// A given flag that has no effect on simulated machines.
    pub fn of_real_machines(&self) -> Option<&'static str> {
        let real = |row: &ConfigOption<Config>| row.section == MEASURED && !row.commands.contains(&"demo");
        self.options.iter().find(|(row, _)| real(row)).map(|(row, _)| row.flag)
    }

    /// Whether the command line itself gives a flag.
    pub fn gives(&self, flag: &str) -> bool {
        self.options.iter().any(|(row, _)| row.flag == flag)
    }

    /// Applies the given flags over the configuration; a list replaces the whole list.
    pub fn apply(&self, config: &mut Config) -> Result<(), ConfigError> {
        for (row, texts) in &self.options {
            let wrong = |error| ConfigError::new(format!("--{}: {error}", row.flag));
            row.kind.set(config, texts).map_err(wrong)?;
        }
        Ok(())
    }
}

//! The commands that administer a hub: accounts, keys, machines. They describe the task; the program chooses the way
//! to the hub.

use super::ConfigError;
use super::run::{LogsTask, RunsTask};
use super::watching::AlertsTask;
use super::when::{When, when};
use clap::{Args, Subcommand};
use shared::role::{KeyScope, Role};
use shared::team::TeamChange;
use std::collections::BTreeMap;
use std::path::PathBuf;
use uplink::settings::HubEntry;

/// A task for a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Administration {
    /// The task.
    pub task: AdminTask,
    /// The hub, if it is not the one of the data folder.
    pub hub: Option<HubEntry>,
    /// JSON output in place of a table.
    pub json: bool,
    /// The team, by id or name; none: the only one.
    pub team: Option<String>,
    /// Labels of machines, by key.
    pub labels: BTreeMap<String, String>,
}

impl Administration {
    /// Whether CSV output was requested.
    pub fn is_csv(&self) -> bool {
        matches!(&self.task, AdminTask::Usage(task) if task.csv)
    }
}

/// Tasks for a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminTask {
    /// `watchglass user`.
    User(UserTask),
    /// `watchglass key`.
    Key(KeyTask),
    /// `watchglass service`.
    Service(ServiceTask),
    /// `watchglass agents`.
    Agents(AgentsTask),
    /// `watchglass team`.
    Team(TeamTask),
    /// `watchglass view`.
    View(ViewTask),
    /// `watchglass share`.
    Share(ShareTask),
    /// `watchglass audit`.
    Audit(AuditTask),
    /// `watchglass usage`.
    Usage(UsageTask),
    /// `watchglass runs`.
    Runs(RunsTask),
    /// `watchglass logs`.
    Logs(LogsTask),
    /// `watchglass alerts`.
    Alerts(AlertsTask),
    /// `watchglass erase`.
    Erase(EraseTask),
    /// `watchglass backup`: copy the database to this file; the bool: with the key of channels beside it.
    Backup(PathBuf, bool),
    /// `watchglass restore`: restore such a file.
    Restore(PathBuf),
}

/// Arguments that all of these commands share.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct AdminFlags {
    /// Team to act on [default: the only one]
    #[arg(long, value_name = "TEAM", global = true)]
    team: Option<String>,
    /// Print JSON instead of a table
    #[arg(long, global = true)]
    json: bool,
}

impl AdminFlags {
    /// The flags of a command without a team.
    pub fn new(json: bool) -> Self {
        AdminFlags { team: None, json }
    }

    /// The complete task.
    ///
    /// # Errors
    /// [`ConfigError`] when several hubs are named, or a label is invalid.
    pub fn asked(
        self,
        task: AdminTask,
        hubs: &[HubEntry],
        labels: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Administration, ConfigError> {
        let hub = match hubs {
            [] => None,
            [hub] => Some(hub.clone()),
            _ => {
                return Err(ConfigError::new("the configuration file names several hubs; choose one with --hub URL"));
            }
        };
        Ok(Administration { task, hub, json: self.json, team: self.team, labels: labels.into_iter().collect() })
    }
}

/// Manage accounts.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum UserTask {
    /// List accounts
    List,
    /// Create an account; prompts for its password
    Add {
        /// Account name
        #[arg(value_name = "NAME")]
        person: String,
        /// Grant all rights in every team and the management of accounts
        #[arg(long)]
        admin: bool,
        /// Role in the team: viewer, member or admin [default: viewer; with --admin admin]
        #[arg(long, value_name = "ROLE")]
        role: Option<Role>,
        /// File with the password, or - for standard input
        #[arg(long, value_name = "FILE")]
        password_file: Option<PathBuf>,
    },
    /// Reset a password and end all sessions; with --hub print a link
    Reset {
        /// Account name
        #[arg(value_name = "NAME")]
        person: String,
        /// File with the password, or - for standard input
        #[arg(long, value_name = "FILE")]
        password_file: Option<PathBuf>,
    },
    /// Print an invitation link to a team; it works once
    Invite {
        /// Role: viewer, member or admin
        #[arg(long, value_name = "ROLE", default_value = "viewer")]
        role: Role,
        /// E-mail address as a note; nothing is sent
        #[arg(long, value_name = "EMAIL")]
        email: Option<String>,
        /// Lifetime: 24h, 7d, at most 30d [default: 7d]
        #[arg(long, value_name = "DUR")]
        expires: Option<String>,
    },
    /// Remove an account from a team and close its connections
    Leave {
        /// Account name
        #[arg(value_name = "NAME")]
        person: String,
    },
    /// Set the role of an account in a team
    Role {
        /// Account name
        #[arg(value_name = "NAME")]
        person: String,
        /// viewer, member or admin; hub-admin for all teams
        #[arg(value_name = "ROLE", value_parser = granted)]
        role: Granted,
    },
    /// Disable an account and end its sessions
    Disable {
        /// Account name
        #[arg(value_name = "NAME")]
        person: String,
    },
    /// Enable a disabled account
    Enable {
        /// Account name
        #[arg(value_name = "NAME")]
        person: String,
    },
    /// Set an account's user names on machines; their runs become its own
    Logins {
        /// Account name
        #[arg(value_name = "NAME")]
        person: String,
        /// User names on machines; none removes them all
        #[arg(value_name = "LOGIN")]
        logins: Vec<String>,
    },
    /// Remove an account with its sessions and keys
    Remove {
        /// Account name
        #[arg(value_name = "NAME")]
        person: String,
    },
}

/// The role argument of `watchglass user role`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granted {
    /// A role in a team; a role for all teams is removed.
    InTeam(Role),
    /// All rights in every team.
    HubAdmin,
}

fn granted(text: &str) -> Result<Granted, String> {
    match text {
        "hub-admin" => Ok(Granted::HubAdmin),
        text => text
            .parse()
            .map(Granted::InTeam)
            .map_err(|unknown: shared::role::UnknownWord| format!("{unknown}, hub-admin")),
    }
}

/// Manage keys of programs.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum KeyTask {
    /// List the keys of a team
    List {
        /// Only keys of this service account
        #[arg(long, value_name = "SERVICE")]
        service: Option<String>,
        /// Only keys of this person
        #[arg(long, value_name = "NAME", conflicts_with = "service")]
        user: Option<String>,
    },
    /// Create a key; standard output has the key alone
    Add {
        /// Name that says its purpose
        #[arg(value_name = "NAME")]
        program: String,
        /// Scopes: data:read, metrics:read, runs:write, views:write, alerts:write, audit:read, team:admin, hub:admin
        #[arg(long, value_name = "SCOPE", value_delimiter = ',', required = true)]
        scope: Vec<KeyScope>,
        /// Lifetime: 90d, 24h, never [default: 400d]
        #[arg(long, value_name = "DUR")]
        expires: Option<String>,
        /// Service account of the key; limits its rights [default: the team]
        #[arg(long, value_name = "SERVICE")]
        service: Option<String>,
        /// Person of the key; only on the hub's own machine
        #[arg(long, value_name = "NAME", conflicts_with = "service")]
        user: Option<String>,
    },
    /// Revoke a key and close its connections
    Remove {
        /// Key ID, its third part
        #[arg(value_name = "ID")]
        id: String,
        /// Person of the key [default: a key of the team]
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
    },
}

/// Manage accounts of programs.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum ServiceTask {
    /// List the service accounts of a team
    List,
    /// Create a service account; add keys with watchglass key add --service
    Add {
        /// Service account name
        #[arg(value_name = "NAME")]
        program: String,
        /// Highest role of its keys: viewer, member or admin
        #[arg(long, value_name = "ROLE", default_value = "viewer")]
        role: Role,
    },
    /// Set the highest role of its keys
    Role {
        /// Service account name
        #[arg(value_name = "NAME")]
        program: String,
        /// viewer, member or admin
        #[arg(value_name = "ROLE")]
        role: Role,
    },
    /// Disable a service account; its keys stop working
    Disable {
        /// Service account name
        #[arg(value_name = "NAME")]
        program: String,
    },
    /// Enable a disabled service account
    Enable {
        /// Service account name
        #[arg(value_name = "NAME")]
        program: String,
    },
    /// Remove a service account with its keys
    Remove {
        /// Service account name
        #[arg(value_name = "NAME")]
        program: String,
    },
}

/// Manage teams. Agents' `--name` is another argument than `title`.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum TeamTask {
    /// List teams
    List,
    /// Show a team: its members and machines
    Show {
        /// Team name
        #[arg(value_name = "TEAM")]
        title: String,
    },
    /// Create a team
    Add {
        /// Team name
        #[arg(value_name = "TEAM")]
        title: String,
    },
    /// Rename a team
    Rename {
        /// Team name
        #[arg(value_name = "TEAM")]
        title: String,
        /// New name
        #[arg(value_name = "NAME")]
        new: String,
    },
    /// Remove a team; no machine may belong to it
    Remove {
        /// Team name
        #[arg(value_name = "TEAM")]
        title: String,
    },
    /// Grant the team of --team access to a machine
    Grant {
        /// Machine name
        #[arg(value_name = "MACHINE")]
        machine: String,
    },
    /// Revoke the access of the team of --team to a machine
    Revoke {
        /// Machine name
        #[arg(value_name = "MACHINE")]
        machine: String,
    },
    /// Set what members of the team of --team may do, and its limit
    Set {
        /// members_invite, share_links, user_names =true or =false; gpu_hours=N
        #[arg(value_name = "KEY=VALUE", value_parser = team_setting)]
        setting: TeamSetting,
    },
}

/// A setting of a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TeamSetting {
    /// Whether members may invite viewers and members.
    MembersInvite(bool),
    /// Whether the team may have share links.
    ShareLinks(bool),
    /// Whether its viewers and share links see the names of users.
    UserNames(bool),
    /// Limit of GPU-hours in a month; 0: no limit.
    GpuHours(u64),
}

impl TeamSetting {
    /// The change of the team.
    pub fn change(self) -> TeamChange {
        match self {
            TeamSetting::MembersInvite(may) => TeamChange { members_invite: Some(may), ..TeamChange::default() },
            TeamSetting::ShareLinks(on) => TeamChange { share_links: Some(on), ..TeamChange::default() },
            TeamSetting::UserNames(on) => TeamChange { user_names: Some(on), ..TeamChange::default() },
            TeamSetting::GpuHours(hours) => TeamChange { gpu_hours: Some(hours), ..TeamChange::default() },
        }
    }
}

fn team_setting(text: &str) -> Result<TeamSetting, String> {
    let wrong = || "write members_invite, share_links or user_names, = and true or false, or gpu_hours=N".to_string();
    let (key, value) = text.split_once('=').ok_or_else(wrong)?;
    let switch: fn(bool) -> TeamSetting = match key {
        "members_invite" => TeamSetting::MembersInvite,
        "share_links" => TeamSetting::ShareLinks,
        "user_names" => TeamSetting::UserNames,
        "gpu_hours" => return value.parse().map(TeamSetting::GpuHours).map_err(|_| wrong()),
        _ => return Err(wrong()),
    };
    value.parse().map(switch).map_err(|_| wrong())
}

/// Manage saved views.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum ViewTask {
    /// List the saved views of a team
    List,
    /// Save a view for the team, or with --mine for yourself
    Save {
        /// View name
        #[arg(value_name = "NAME")]
        title: String,
        /// Query of the page's address, the part after ?
        #[arg(value_name = "QUERY")]
        query: String,
        /// Keep the view private to the owner of the key
        #[arg(long)]
        mine: bool,
    },
    /// Remove a view
    Remove {
        /// View ID
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// Manage share links.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum ShareTask {
    /// List the share links of a team
    List,
    /// Create a share link to a view; standard output has the link alone
    Add {
        /// View ID, or a query with = in it
        #[arg(value_name = "VIEW")]
        view: String,
        /// Lifetime: 24h, 7d, at most 90d [default: 7d]
        #[arg(long, value_name = "DUR")]
        expires: Option<String>,
        /// Note that says its purpose
        #[arg(long, value_name = "TEXT", default_value = "")]
        note: String,
    },
    /// Revoke a share link and close its connections
    Remove {
        /// Link ID
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// Erase stored data.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[group(required = true, multiple = false)]
pub struct EraseTask {
    /// Person: removes the account and replaces its name in the audit log
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Machine: removes it with all its samples
    #[arg(long, value_name = "MACHINE")]
    pub source: Option<String>,
    /// Run: removes it from all lists; its samples stay for their retention
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
}

/// Filters of the audit log.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditTask {
    /// First instant, such as -1h, 2:15pm, 2026-05-01T14:00 or Unix seconds
    #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true)]
    pub from: Option<When>,
    /// Last instant, in the same forms
    #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true)]
    pub to: Option<When>,
    /// Only actions of this actor
    #[arg(long, value_name = "NAME")]
    pub who: Option<String>,
    /// Only actions with this prefix (key. for all actions on keys)
    #[arg(long, value_name = "ACTION")]
    pub action: Option<String>,
    /// Maximum number of rows, newest first [default: 200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: Option<u32>,
}

/// Sums of usage, and their division.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageTask {
    /// Division of the usage; machine and key only with --data
    #[arg(
        long,
        value_name = "WHAT",
        value_parser = ["day", "month", "project", "user", "run", "source", "key"],
        default_value = "day"
    )]
    pub by: String,
    /// Show what the hub receives, stores and sends in place of GPU time
    #[arg(long)]
    pub data: bool,
    /// A time on the first day, such as a date or -7d [default: 30 days]
    #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true)]
    pub from: Option<When>,
    /// A time on the last day, in the same forms
    #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true)]
    pub to: Option<When>,
    /// Print CSV instead of a table
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
}

/// Manage machines.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum AgentsTask {
    /// List the machines that joined
    List,
    /// Create a join key; standard output has the join line alone
    Join {
        /// Maximum number of machines [default: any number]
        #[arg(long, value_name = "N")]
        uses: Option<u32>,
        /// Lifetime: 30min, 24h, 7d, never [default: 24h]
        #[arg(long, value_name = "DUR")]
        expires: Option<String>,
        /// Machine to replace, such as one that was revoked
        #[arg(long = "as", value_name = "MACHINE")]
        source: Option<String>,
        /// Remove its machines after an hour of absence
        #[arg(long)]
        ephemeral: bool,
        /// Recognize a container by its name
        #[arg(long)]
        by_name: bool,
        /// Require an admin to approve each machine
        #[arg(long = "approve")]
        confirmed: bool,
    },
    /// Approve a machine that waits for approval
    Approve {
        /// Machine name
        #[arg(value_name = "MACHINE")]
        machine: String,
    },
    /// Rename a machine; the old name redirects for 90 days
    Rename {
        /// Machine name
        #[arg(value_name = "MACHINE")]
        machine: String,
        /// New name
        #[arg(value_name = "NAME")]
        new: String,
    },
    /// Replace the labels of a machine
    Label {
        /// Machine name
        #[arg(value_name = "MACHINE")]
        machine: String,
        /// Labels such as rack=r12; none removes them all
        #[arg(value_name = "K=V", value_parser = label)]
        labels: Vec<(String, String)>,
    },
    /// Revoke a machine's key and keep its samples
    Revoke {
        /// Machine name
        #[arg(value_name = "MACHINE")]
        machine: String,
    },
    /// Remove a machine for good
    Remove {
        /// Machine name
        #[arg(value_name = "MACHINE")]
        machine: String,
    },
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
        _ => Err("write a label like rack=r12".into()),
    }
}

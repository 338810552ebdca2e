//! The commands that administer a hub: accounts, keys, machines. They say what is wanted; how the hub is reached is the
//! program's.

use super::run::{LogsTask, RunsTask};
use super::watching::AlertsTask;
use super::when::{When, when};
use super::{ConfigError, HubEntry};
use clap::{Args, Subcommand};
use shared::role::{KeyScope, Role};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What a hub is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Administration {
    /// What is wanted.
    pub task: AdminTask,
    /// The hub, when it is not the one of the data folder.
    pub hub: Option<HubEntry>,
    /// The answer as JSON in place of a table.
    pub json: bool,
    /// The team, by id or name; none: the only one.
    pub team: Option<String>,
    /// Labels of machines, by key.
    pub labels: BTreeMap<String, String>,
}

impl Administration {
    /// Whether the answer is wanted as CSV.
    pub fn is_csv(&self) -> bool {
        matches!(&self.task, AdminTask::Usage(task) if task.csv)
    }
}

/// What is wanted of a hub.
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
    /// `watchglass backup`: copy the database to this file; with the key of channels beside it.
    Backup(PathBuf, bool),
    /// `watchglass restore`: bring such a file back.
    Restore(PathBuf),
}

/// What all of these commands take.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct AdminFlags {
    /// Team that it is about [default: the only one]
    #[arg(long, value_name = "TEAM", global = true)]
    team: Option<String>,
    /// JSON instead of a table
    #[arg(long, global = true)]
    json: bool,
}

impl AdminFlags {
    /// Those of a command that is about no team.
    pub fn of(json: bool) -> Self {
        AdminFlags { team: None, json }
    }

    /// The whole of what is asked for.
    ///
    /// # Errors
    /// [`ConfigError`] when several hubs are named, or a label is none.
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
                return Err(ConfigError::new(
                    "there are several hubs in the configuration file; name one with --hub URL",
                ));
            }
        };
        Ok(Administration { task, hub, json: self.json, team: self.team, labels: labels.into_iter().collect() })
    }
}

/// What is to be done with accounts.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum UserTask {
    /// List accounts
    List,
    /// Make an account; asks for its password
    Add {
        /// Its name
        #[arg(value_name = "NAME")]
        person: String,
        /// It may all in every team, and alone decides about accounts
        #[arg(long)]
        admin: bool,
        /// What it may in the team: viewer, member or admin [default: viewer; with --admin admin]
        #[arg(long, value_name = "ROLE")]
        role: Option<Role>,
        /// File with the password; - reads it from standard input
        #[arg(long, value_name = "FILE")]
        password_file: Option<PathBuf>,
    },
    /// Set a new password and end all sessions of an account; through --hub it prints a link for the person instead
    Reset {
        /// Its name
        #[arg(value_name = "NAME")]
        person: String,
        /// File with the password; - reads it from standard input
        #[arg(long, value_name = "FILE")]
        password_file: Option<PathBuf>,
    },
    /// Make a link by which somebody comes into a team, once; it is the only line on standard output
    Invite {
        /// What they may: viewer, member or admin
        #[arg(long, value_name = "ROLE", default_value = "viewer")]
        role: Role,
        /// For whom it is, as a note; nothing is sent
        #[arg(long, value_name = "EMAIL")]
        email: Option<String>,
        /// How long it holds: 24h, 7d, at most 30d [default: 7d]
        #[arg(long, value_name = "DUR")]
        expires: Option<String>,
    },
    /// Take an account out of a team; what it had open closes at once
    Leave {
        /// Its name
        #[arg(value_name = "NAME")]
        person: String,
    },
    /// Say what an account may in a team
    Role {
        /// Its name
        #[arg(value_name = "NAME")]
        person: String,
        /// viewer, member or admin; hub-admin for all teams
        #[arg(value_name = "ROLE", value_parser = granted)]
        role: Granted,
    },
    /// Keep an account from signing in; its sessions end at once
    Disable {
        /// Its name
        #[arg(value_name = "NAME")]
        person: String,
    },
    /// Let a disabled account sign in again
    Enable {
        /// Its name
        #[arg(value_name = "NAME")]
        person: String,
    },
    /// Say by which names a person works on machines: runs of these users are theirs
    Logins {
        /// Its name
        #[arg(value_name = "NAME")]
        person: String,
        /// Names of users on machines; without one there are none
        #[arg(value_name = "LOGIN")]
        logins: Vec<String>,
    },
    /// Remove an account with its sessions and keys
    Remove {
        /// Its name
        #[arg(value_name = "NAME")]
        person: String,
    },
}

/// What `watchglass user role` gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granted {
    /// A role in a team; what was given for all teams ends.
    InTeam(Role),
    /// All in every team.
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

/// What is to be done with keys of programs.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum KeyTask {
    /// List the keys of a team's programs
    List {
        /// Those of this service account alone
        #[arg(long, value_name = "SERVICE")]
        service: Option<String>,
        /// Those of this person instead
        #[arg(long, value_name = "NAME", conflicts_with = "service")]
        user: Option<String>,
    },
    /// Make a key; it is the only line on standard output
    Add {
        /// What it is for
        #[arg(value_name = "NAME")]
        program: String,
        /// What it may: data:read, metrics:read, runs:write, views:write, alerts:write, audit:read, team:admin, hub:admin
        #[arg(long, value_name = "SCOPE", value_delimiter = ',', required = true)]
        scope: Vec<KeyScope>,
        /// How long it holds: 90d, 24h, never [default: 400d]
        #[arg(long, value_name = "DUR")]
        expires: Option<String>,
        /// The service account whose key it is; it may no more than that one [default: the team itself]
        #[arg(long, value_name = "SERVICE")]
        service: Option<String>,
        /// The person whose key it is; on the hub's own machine only
        #[arg(long, value_name = "NAME", conflicts_with = "service")]
        user: Option<String>,
    },
    /// End a key; its sockets close at once
    Remove {
        /// Its id, which is the third part of it
        #[arg(value_name = "ID")]
        id: String,
        /// The person whose key it is [default: a program of the team]
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
    },
}

/// What is to be done with accounts of programs.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum ServiceTask {
    /// List the service accounts of a team
    List,
    /// Make a service account; its keys come by watchglass key add --service
    Add {
        /// Its name
        #[arg(value_name = "NAME")]
        program: String,
        /// The most that its keys may: viewer, member or admin
        #[arg(long, value_name = "ROLE", default_value = "viewer")]
        role: Role,
    },
    /// Say the most that its keys may
    Role {
        /// Its name
        #[arg(value_name = "NAME")]
        program: String,
        /// viewer, member or admin
        #[arg(value_name = "ROLE")]
        role: Role,
    },
    /// Let none of its keys hold for now
    Disable {
        /// Its name
        #[arg(value_name = "NAME")]
        program: String,
    },
    /// Let its keys hold again
    Enable {
        /// Its name
        #[arg(value_name = "NAME")]
        program: String,
    },
    /// Remove it with its keys
    Remove {
        /// Its name
        #[arg(value_name = "NAME")]
        program: String,
    },
}

/// What is to be done with teams. What `--name` means to agents is another argument than `title`.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum TeamTask {
    /// List teams
    List,
    /// Show a team: its people and the machines that it sees
    Show {
        /// Its name
        #[arg(value_name = "TEAM")]
        title: String,
    },
    /// Make a team
    Add {
        /// Its name
        #[arg(value_name = "TEAM")]
        title: String,
    },
    /// Give a team another name
    Rename {
        /// Its name
        #[arg(value_name = "TEAM")]
        title: String,
        /// Its new name
        #[arg(value_name = "NAME")]
        new: String,
    },
    /// Remove a team that no machine has joined by
    Remove {
        /// Its name
        #[arg(value_name = "TEAM")]
        title: String,
    },
    /// Let the team of --team see a machine
    Grant {
        /// The machine's name
        #[arg(value_name = "MACHINE")]
        machine: String,
    },
    /// Take a machine out of the sight of the team of --team
    Revoke {
        /// The machine's name
        #[arg(value_name = "MACHINE")]
        machine: String,
    },
    /// Set what the members of the team of --team may
    Set {
        /// members_invite=true lets members invite viewers and members
        #[arg(value_name = "KEY=VALUE", value_parser = members_invite, action = clap::ArgAction::Set)]
        members_invite: bool,
    },
}

fn members_invite(text: &str) -> Result<bool, String> {
    match text.split_once('=') {
        Some(("members_invite", "true")) => Ok(true),
        Some(("members_invite", "false")) => Ok(false),
        _ => Err("write members_invite=true or members_invite=false".into()),
    }
}

/// What is to be done with saved views.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum ViewTask {
    /// List the views of a team
    List,
    /// Save a view for the team; with --mine for oneself
    Save {
        /// Its name
        #[arg(value_name = "NAME")]
        title: String,
        /// What the address of the page holds behind its ?
        #[arg(value_name = "QUERY")]
        query: String,
        /// For who has the key alone
        #[arg(long)]
        mine: bool,
    },
    /// Remove a view
    Remove {
        /// Its id
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// What is to be done with share links.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum ShareTask {
    /// List the links of a team
    List,
    /// Make a link to a view; it is the only line on standard output
    Add {
        /// The view's id, or a query with a = in it
        #[arg(value_name = "VIEW")]
        view: String,
        /// How long it holds: 24h, 7d, at most 90d [default: 7d]
        #[arg(long, value_name = "DUR")]
        expires: Option<String>,
        /// What it is for
        #[arg(long, value_name = "TEXT", default_value = "")]
        note: String,
    },
    /// Take a link back; what it has open closes at once
    Remove {
        /// Its id
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// What is to be forgotten.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[group(required = true, multiple = false)]
pub struct EraseTask {
    /// A person: the account goes, and its name in the audit log becomes another
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// A machine, and all of its samples
    #[arg(long, value_name = "MACHINE")]
    pub source: Option<String>,
}

/// Which rows of the audit log are asked for.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditTask {
    /// First instant: Unix seconds, a date and time, or before now, such as -1h
    #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true)]
    pub from: Option<When>,
    /// Last instant, likewise
    #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true)]
    pub to: Option<When>,
    /// By whom
    #[arg(long, value_name = "NAME")]
    pub who: Option<String>,
    /// The begin of the action, such as key.
    #[arg(long, value_name = "ACTION")]
    pub action: Option<String>,
    /// At most so many rows, the newest first [default: 200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: Option<u32>,
}

/// What was used, divided by what.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageTask {
    /// Each day as a whole, each machine or each key
    #[arg(long, value_name = "WHAT", value_parser = ["day", "source", "key"], default_value = "day")]
    pub by: String,
    /// A time of the first day: Unix seconds, a date and time, or before now, such as -7d [default: 30 days]
    #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true)]
    pub from: Option<When>,
    /// A time of the last day, likewise
    #[arg(long, value_name = "T", value_parser = when, allow_hyphen_values = true)]
    pub to: Option<When>,
    /// CSV instead of a table
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
}

/// What is to be done with machines.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum AgentsTask {
    /// List the machines that joined
    List,
    /// Make a join key; the line to start a machine with is the only one on standard output
    Join {
        /// How many machines may join by it [default: any number]
        #[arg(long, value_name = "N")]
        uses: Option<u32>,
        /// How long it holds: 30min, 24h, 7d, never [default: 24h]
        #[arg(long, value_name = "DUR")]
        expires: Option<String>,
        /// The machine that takes this place; so one that was revoked comes back
        #[arg(long = "as", value_name = "MACHINE")]
        source: Option<String>,
        /// Its machines are gone for good when they have been away for an hour
        #[arg(long)]
        ephemeral: bool,
        /// A container is known again by its name
        #[arg(long)]
        by_name: bool,
        /// An admin confirms each machine
        #[arg(long = "approve")]
        confirmed: bool,
    },
    /// Confirm a machine that waits for it
    Approve {
        /// Its name
        #[arg(value_name = "MACHINE")]
        machine: String,
    },
    /// Give a machine another name; the old one leads to it for 90 days
    Rename {
        /// Its name
        #[arg(value_name = "MACHINE")]
        machine: String,
        /// Its new name
        #[arg(value_name = "NAME")]
        new: String,
    },
    /// Set the labels of a machine in place of those that it has
    Label {
        /// Its name
        #[arg(value_name = "MACHINE")]
        machine: String,
        /// Labels such as rack=r12; none at all removes them
        #[arg(value_name = "K=V", value_parser = label)]
        labels: Vec<(String, String)>,
    },
    /// End a machine's key; its samples stay
    Revoke {
        /// Its name
        #[arg(value_name = "MACHINE")]
        machine: String,
    },
    /// Remove a machine for good
    Remove {
        /// Its name
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

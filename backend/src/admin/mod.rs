//! The commands that administer a hub: `watchglass user`, `key`, `service`, `agents`, `team`, `view`, `share`, `audit`, `usage`; and `runs`,
//! `logs` and `alerts`. They work through the control socket of the
//! hub whose data folder it is, on its files where no hub runs, or from elsewhere with `--hub URL --key-file FILE`.

mod alerts;
mod carrier;
mod failed;
mod logs;
mod order;
mod password;
mod table;

pub use failed::AdminFailed;
pub use logs::logs;

use crate::config::{
    AdminTask, Administration, AgentsTask, Config, EraseTask, Granted, KeyTask, ServiceTask, ShareTask, TeamTask,
    UserTask, ViewTask,
};
use order::{HubOrder, RunFilter};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use shared::audit::Usage;
use shared::controls::escaped_json;
use shared::people::{Erased, Made, MadeKey, NewPerson, NewServiceKey, PersonChange};
use shared::secret::Secret;
use shared::session::{AgentChange, NewJoin};
use shared::team::{GrantChange, MemberChange, NewInvite, NewService, NewTeam, ServiceChange, TeamChange, TeamEnd};
use shared::views::{NewShare, NewView, Reach};
use stream::clock::{self, Clock};
use team::accounts::{LogFilter, UsageFilter, usage_csv};

/// The team where none is named.
const MAIN_TEAM: &str = "main";

/// What is to be printed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// For standard output: a list, or the one thing that was asked for.
    pub output: String,
    /// For standard error: what was done.
    pub note: String,
    /// The exit status.
    pub status: u8,
}

/// Does what is wanted of a hub.
///
/// # Errors
/// [`AdminFailed`], with the exit status.
pub fn run(config: &Config, wanted: &Administration) -> Result<Printed, AdminFailed> {
    match &wanted.task {
        AdminTask::Backup(file, with_key) => return carrier::backup(config, wanted.hub.as_ref(), file, *with_key),
        AdminTask::Restore(file) => return carrier::restore(config, wanted.hub.as_ref(), file),
        AdminTask::Alerts(task) => return alerts::alerts(config, wanted, task),
        _ => {}
    }
    let (order, mut note) = order(wanted)?;
    let answer = carrier::carry(config, wanted.hub.as_ref(), &order).map_err(|failed| failed.naming(order.named()))?;
    if wanted.json {
        return Ok(Printed { output: format!("{}\n", escaped_json(format!("{answer:#}"))), note, status: 0 });
    }
    if let HubOrder::Join(_, join) = &order
        && join.expires.as_deref() == Some("never")
    {
        let made: MadeJoin = read(&answer)?;
        note = format!("Write this key into FILE, and let only its owner read it:\n{}", made.key.reveal());
    }
    Ok(Printed { output: for_people(config, wanted, &order, &answer)?, note, status: 0 })
}

/// An answer as its type.
fn read<T: DeserializeOwned>(answer: &Value) -> Result<T, AdminFailed> {
    serde_json::from_value(answer.clone()).map_err(|error| AdminFailed::version(&error))
}

/// What is printed of an answer. What is made for other programs is alone on its line, so that they can take it as it is.
fn for_people(
    config: &Config,
    wanted: &Administration,
    order: &HubOrder,
    answer: &Value,
) -> Result<String, AdminFailed> {
    Ok(match order {
        HubOrder::Usage(_) if wanted.is_csv() => usage_csv(&read::<Usage>(answer)?),
        HubOrder::AddKey(..) | HubOrder::AddKeyOfService(..) | HubOrder::AddKeyOfPerson(..) => {
            format!("{}\n", read::<MadeKey>(answer)?.key.reveal())
        }
        HubOrder::Join(_, join) => {
            let made: MadeJoin = read(answer)?;
            let own = || own_line(config, made.key.reveal(), join.expires.as_deref() != Some("never"));
            format!("{}\n", made.line.as_ref().map_or_else(own, |line| line.reveal().into()))
        }
        HubOrder::Report(..) => read(answer)?,
        HubOrder::ErasePerson(_) => format!("{}\n", read::<Erased>(answer)?.name),
        HubOrder::Invite(..) => read::<MadeLink>(answer)?.line(config, "invite"),
        HubOrder::AddShare(..) => read::<MadeLink>(answer)?.line(config, "share"),
        HubOrder::ResetPerson(_) => match (&wanted.hub, read::<Made>(answer)?.code) {
            (Some(hub), Some(code)) => format!("{}/#reset={}\n", hub.url(), code.reveal()),
            _ => String::new(),
        },
        // A change is told by its note.
        _ => table::table(order.request().operation, answer, clock::System.wall() / 1_000)?.unwrap_or_default(),
    })
}

/// A join key that was made: with the line that a machine joins with where a hub runs, which knows its address.
#[derive(Deserialize)]
struct MadeJoin {
    key: Secret,
    line: Option<Secret>,
}

/// A link that was made: as the hub tells it, or its code alone where none runs.
#[derive(Deserialize)]
struct MadeLink {
    url: Option<Secret>,
    code: Option<Secret>,
}

impl MadeLink {
    fn line(&self, config: &Config, what: &str) -> String {
        match (&self.url, &self.code) {
            (Some(url), _) => format!("{}\n", url.reveal()),
            (None, Some(code)) => format!("{}#{what}={}\n", own_address(config), code.reveal()),
            (None, None) => String::new(),
        }
    }
}

/// The address of the hub of this configuration.
fn own_address(config: &Config) -> String {
    config.public_url.as_ref().map(ToString::to_string).unwrap_or_else(|| {
        let scheme = if config.tls_cert.is_some() { "https" } else { "http" };
        let host = config.hosts.first().map_or("127.0.0.1", String::as_str);
        format!("{scheme}://{host}:{}{}", config.port, config.base_path)
    })
}

/// What a machine is started with to join a hub that does not run now. Arguments are seen by every user of it, so a key
/// without an end stands in a file.
fn own_line(config: &Config, key: &str, ends: bool) -> String {
    let key = if ends { format!("--key {key}") } else { "--key-file FILE".into() };
    let public = own_address(config);
    format!("watchglass agent --hub {public} {key}")
}

/// The order to the hub, and what to say once it is done.
fn order(wanted: &Administration) -> Result<(HubOrder, String), AdminFailed> {
    let team = || wanted.team.clone().unwrap_or_else(|| MAIN_TEAM.into());
    let change =
        |person: &String, change: PersonChange, note: String| (HubOrder::ChangePerson(person.clone(), change), note);
    let read = |file: &Option<std::path::PathBuf>, person: &str| password::read(file.as_deref(), person);
    Ok(match &wanted.task {
        AdminTask::User(UserTask::List) => (HubOrder::People, String::new()),
        AdminTask::User(UserTask::Add { person, admin, role, password_file }) => {
            let new = NewPerson {
                name: person.clone(),
                password: Some(read(password_file, person)?),
                hub_admin: *admin,
                team: wanted.team.clone(),
                role: *role,
            };
            (HubOrder::AddPerson(new), format!("{person} can sign in now."))
        }
        AdminTask::User(UserTask::Reset { person, .. }) if wanted.hub.is_some() => {
            (HubOrder::ResetPerson(person.clone()), "This link sets the password. It works once, within 24 h:".into())
        }
        AdminTask::User(UserTask::Reset { person, password_file }) => {
            let password = Some(read(password_file, person)?);
            let note = format!("{person} has a new password; all sessions have ended.");
            change(person, PersonChange { password, ..PersonChange::default() }, note)
        }
        AdminTask::User(UserTask::Role { person, role }) => {
            let (hub_admin, role, may) = match role {
                Granted::HubAdmin => (true, None, "hub admin".to_string()),
                Granted::InTeam(role) => (false, Some(*role), format!("{role} of {}", team())),
            };
            let to =
                PersonChange { hub_admin: Some(hub_admin), role, team: wanted.team.clone(), ..PersonChange::default() };
            change(person, to, format!("{person} is now {may}."))
        }
        AdminTask::User(UserTask::Disable { person }) => {
            let to = PersonChange { disabled: Some(true), ..PersonChange::default() };
            change(person, to, format!("{person} can no longer sign in."))
        }
        AdminTask::User(UserTask::Enable { person }) => {
            let to = PersonChange { disabled: Some(false), ..PersonChange::default() };
            change(person, to, format!("{person} can sign in again."))
        }
        AdminTask::User(UserTask::Remove { person }) => {
            (HubOrder::RemovePerson(person.clone()), format!("{person} has been removed."))
        }
        AdminTask::User(UserTask::Invite { role, email, expires }) => {
            let new = NewInvite { role: Some(*role), email: email.clone(), expires: expires.clone() };
            (HubOrder::Invite(team(), new), "This link adds one person to the team. It works once:".into())
        }
        AdminTask::User(UserTask::Logins { person, logins }) => {
            let note = match &logins[..] {
                [] => format!("{person} now has no user names in {}.", team()),
                some => format!("Runs of {} now belong to {person} in {}.", some.join(", "), team()),
            };
            let to = MemberChange { role: None, logins: Some(logins.clone()) };
            (HubOrder::ChangeMember(team(), person.clone(), to), note)
        }
        AdminTask::User(UserTask::Leave { person }) => {
            (HubOrder::RemoveMember(team(), person.clone()), format!("{person} is no longer a member of {}.", team()))
        }
        AdminTask::Team(task) => of_team(task, team()),
        AdminTask::View(ViewTask::List) => (HubOrder::Views(wanted.team.clone()), String::new()),
        AdminTask::View(ViewTask::Save { title: name, query, mine }) => {
            let scope = if *mine { Reach::Mine } else { Reach::Team };
            let new = NewView { name: name.clone(), query: query.clone(), scope };
            (HubOrder::AddView(wanted.team.clone(), new), format!("{name} has been saved."))
        }
        AdminTask::View(ViewTask::Remove { id }) => {
            (HubOrder::RemoveView(id.clone()), format!("{id} has been removed."))
        }
        AdminTask::Share(ShareTask::List) => (HubOrder::Shares(wanted.team.clone()), String::new()),
        AdminTask::Share(ShareTask::Add { view, expires, note }) => {
            let (view, query) = if view.contains('=') { (None, Some(view)) } else { (Some(view), None) };
            let new = NewShare {
                view: view.cloned(),
                query: query.cloned(),
                span: None,
                expires: expires.clone(),
                note: note.clone(),
            };
            (HubOrder::AddShare(wanted.team.clone(), new), "This link opens this view only, without an account:".into())
        }
        AdminTask::Share(ShareTask::Remove { id }) => {
            (HubOrder::EndShare(id.clone()), format!("{id} has been revoked."))
        }
        AdminTask::Erase(EraseTask { user: Some(person), .. }) => {
            let note = format!(
                "{person} has been erased. The audit log shows this name instead; copies of the log in files keep \
                the old name."
            );
            (HubOrder::ErasePerson(person.clone()), note)
        }
        AdminTask::Erase(EraseTask { source, .. }) => {
            let machine = source.clone().unwrap_or_default();
            let note = format!(
                "{machine} has been erased. Data on the machine itself stays until its data folder is removed."
            );
            (HubOrder::RemoveAgent(machine), note)
        }
        AdminTask::Backup(..) | AdminTask::Restore(_) | AdminTask::Logs(_) | AdminTask::Alerts(_) => {
            return Err(AdminFailed::new("this asks no hub"));
        }
        AdminTask::Audit(task) => {
            let now = clock::System.wall();
            let asked = LogFilter {
                team: wanted.team.clone(),
                who: task.who.clone(),
                action: task.action.clone(),
                from: task.from.map(|from| from.begin(now)),
                to: task.to.map(|to| to.end(now)),
                limit: task.limit.map(i64::from),
                ..LogFilter::default()
            };
            (HubOrder::Audit(asked), String::new())
        }
        AdminTask::Usage(task) => {
            let now = clock::System.wall();
            let asked = UsageFilter {
                team: wanted.team.clone(),
                by: task.by.parse().map_err(|why| AdminFailed::usage(format!("--by {why}")))?,
                from: task.from.map(|from| from.begin(now)),
                to: task.to.map(|to| to.end(now)),
            };
            (HubOrder::Usage(asked), String::new())
        }
        AdminTask::Runs(crate::config::RunsTask { part: Some(word), run: Some(id), .. }) if word == "report" => {
            (HubOrder::Report(id.clone(), wanted.json), String::new())
        }
        AdminTask::Runs(task) => {
            let asked = RunFilter {
                states: task.state.clone(),
                project: task.project.clone(),
                part: task.part.clone(),
                from: task.from.map(|from| from.begin(clock::System.wall())),
                limit: task.limit,
            };
            (HubOrder::Runs(asked), String::new())
        }
        AdminTask::Key(KeyTask::List { service, user }) => {
            let order = match (service, user) {
                (Some(service), _) => HubOrder::KeysOfService(team(), service.clone()),
                (None, Some(person)) => HubOrder::KeysOfPerson(person.clone()),
                (None, None) => HubOrder::Keys(team()),
            };
            (order, String::new())
        }
        AdminTask::Key(KeyTask::Add { program, scope, expires, service, user }) => {
            let new = NewServiceKey { name: program.clone(), scopes: scope.clone(), expires: expires.clone() };
            let order = match (service, user) {
                (Some(service), _) => HubOrder::AddKeyOfService(team(), service.clone(), new),
                (None, Some(person)) => HubOrder::AddKeyOfPerson(person.clone(), new),
                (None, None) => HubOrder::AddKey(team(), new),
            };
            (order, "Copy this key now: it is not shown again.".into())
        }
        AdminTask::Service(task) => of_service(task, team()),
        AdminTask::Key(KeyTask::Remove { id, user }) => {
            let order = match user {
                Some(person) => HubOrder::EndKeyOfPerson(person.clone(), id.clone()),
                None => HubOrder::EndKey(team(), id.clone()),
            };
            (order, format!("{id} has been revoked."))
        }
        AdminTask::Agents(task) => {
            let team = team();
            match task.clone() {
                AgentsTask::List => (HubOrder::Agents(team), String::new()),
                AgentsTask::Join { uses, expires, source, ephemeral, by_name, confirmed } => {
                    let labels = wanted.labels.clone();
                    let new = NewJoin { uses, expires, labels, by_name, ephemeral, approve: confirmed, source };
                    (HubOrder::Join(team, new), String::new())
                }
                AgentsTask::Approve { machine } => {
                    let note = format!("{machine} can now send samples.");
                    (HubOrder::Approve(team, machine), note)
                }
                AgentsTask::Rename { machine, new } => {
                    let note = format!("{machine} is now {new}; the old name redirects for 90 days.");
                    (HubOrder::ChangeAgent(team, machine, AgentChange { name: Some(new), labels: None }), note)
                }
                AgentsTask::Label { machine, labels } => {
                    let note = format!("{machine} now has {} labels.", labels.len());
                    let labels = Some(labels.into_iter().collect());
                    (HubOrder::ChangeAgent(team, machine, AgentChange { name: None, labels }), note)
                }
                AgentsTask::Revoke { machine } => {
                    let note = format!("{machine} can no longer send samples; its history stays.");
                    (HubOrder::Revoke(team, machine), note)
                }
                AgentsTask::Remove { machine } => {
                    let note = format!("{machine} has been removed.");
                    (HubOrder::RemoveAgent(machine), note)
                }
            }
        }
    })
}

/// The order about an account of a program.
fn of_service(task: &ServiceTask, team: String) -> (HubOrder, String) {
    let change =
        |name: String, change: ServiceChange, note: String| (HubOrder::ChangeService(team.clone(), name, change), note);
    match task.clone() {
        ServiceTask::List => (HubOrder::Services(team), String::new()),
        ServiceTask::Add { program, role } => {
            let note = format!(
                "{program} has been created; add keys with watchglass key add NAME --scope S --service {program}."
            );
            (HubOrder::AddService(team, NewService { name: program, role: Some(role) }), note)
        }
        ServiceTask::Role { program, role } => {
            let note = format!("Keys of {program} now have at most the role {role}.");
            change(program, ServiceChange { role: Some(role), disabled: None }, note)
        }
        ServiceTask::Disable { program } => {
            let note = format!("{program} is disabled; its keys do not work.");
            change(program, ServiceChange { role: None, disabled: Some(true) }, note)
        }
        ServiceTask::Enable { program } => {
            let note = format!("{program} is enabled; its keys work again.");
            change(program, ServiceChange { role: None, disabled: Some(false) }, note)
        }
        ServiceTask::Remove { program } => {
            let note = format!("{program} and its keys have been removed.");
            (HubOrder::RemoveService(team, program), note)
        }
    }
}

/// The order about a team; `named` is the one of `--team`.
fn of_team(task: &TeamTask, named: String) -> (HubOrder, String) {
    match task.clone() {
        TeamTask::List => (HubOrder::Teams, String::new()),
        TeamTask::Show { title: name } => (HubOrder::Team(name), String::new()),
        TeamTask::Add { title: name } => {
            let note =
                format!("{name} has been created; grant machines with watchglass team grant MACHINE --team {name}.");
            (HubOrder::AddTeam(NewTeam { name }), note)
        }
        TeamTask::Rename { title: name, new } => {
            let note = format!("{name} is now {new}.");
            (HubOrder::ChangeTeam(name, TeamChange { name: Some(new), members_invite: None }), note)
        }
        TeamTask::Remove { title: name } => {
            let note = format!("{name} has been removed.");
            (HubOrder::RemoveTeam(name.clone(), TeamEnd { name }), note)
        }
        TeamTask::Grant { machine } => {
            let note = format!("{named} now has access to {machine}.");
            (HubOrder::Grant(machine, GrantChange { add: vec![named], ..GrantChange::default() }), note)
        }
        TeamTask::Revoke { machine } => {
            let note = format!("{named} no longer has access to {machine}.");
            (HubOrder::Grant(machine, GrantChange { remove: vec![named], ..GrantChange::default() }), note)
        }
        TeamTask::Set { members_invite } => {
            let may = if members_invite { "may" } else { "cannot" };
            let note = format!("Members of {named} {may} invite members and viewers.");
            (HubOrder::ChangeTeam(named, TeamChange { name: None, members_invite: Some(members_invite) }), note)
        }
    }
}

#[cfg(test)]
mod tests;

//! The order of each command to the hub, and the note printed after its success.

use super::order::{GpuTimeFilter, HubOrder, RunFilter};
use super::{AdminFailed, password};
use crate::config::{
    AdminTask, Administration, AgentsTask, AuditTask, EraseTask, Granted, KeyTask, RunsTask, RunsWord, ServiceTask,
    ShareTask, TeamSetting, TeamTask, UsageTask, UserTask, ViewTask,
};
use shared::people::{NewPerson, NewServiceKey, PersonChange};
use shared::session::{AgentChange, NewJoin};
use shared::team::{GrantChange, MemberChange, NewInvite, NewService, NewTeam, ServiceChange, TeamChange, TeamEnd};
use shared::views::{NewShare, NewView, Reach};
use std::collections::BTreeMap;
use std::path::PathBuf;
use stream::clock::{self, Clock};
use team::accounts::{LogFilter, UsageFilter};

/// The default team.
const MAIN_TEAM: &str = "main";

/// An order, and the note after its success.
type Noted = (HubOrder, String);

/// The order of a command, with its note.
///
/// # Errors
/// A password that cannot be read, and a command without an order.
pub(super) fn order(wanted: &Administration) -> Result<Noted, AdminFailed> {
    let team = wanted.team.clone().unwrap_or_else(|| MAIN_TEAM.into());
    let named = wanted.team.clone();
    Ok(match &wanted.task {
        AdminTask::User(task) => return user_order(wanted, task, team),
        AdminTask::Team(task) => team_order(task, team),
        AdminTask::View(task) => view_order(task, named),
        AdminTask::Share(task) => share_order(task, named),
        AdminTask::Erase(task) => erase_order(task),
        AdminTask::Audit(task) => (HubOrder::Audit(audit_filter(task, named)), String::new()),
        AdminTask::Usage(task) => (usage_order(task, named)?, String::new()),
        AdminTask::Runs(task) => runs_order(task, wanted.json),
        AdminTask::Key(task) => key_order(task, team),
        AdminTask::Service(task) => service_order(task, team),
        AdminTask::Agents(task) => agents_order(task, team, &wanted.labels),
        AdminTask::Backup(..) | AdminTask::Restore(_) | AdminTask::Logs(_) | AdminTask::Alerts(_) => {
            return Err(AdminFailed::new("this asks no hub"));
        }
    })
}

/// The order about a person; `team` is the one of `--team`, or the main one.
fn user_order(wanted: &Administration, task: &UserTask, team: String) -> Result<Noted, AdminFailed> {
    let change =
        |person: &String, change: PersonChange, note: String| (HubOrder::ChangePerson(person.clone(), change), note);
    let read = |file: &Option<PathBuf>, person: &str| password::read(file.as_deref(), person);
    Ok(match task {
        UserTask::List => (HubOrder::People, String::new()),
        UserTask::Add { person, admin, role, password_file } => {
            let new = NewPerson {
                name: person.clone(),
                password: Some(read(password_file, person)?),
                hub_admin: *admin,
                team: wanted.team.clone(),
                role: *role,
            };
            (HubOrder::AddPerson(new), format!("{person} can sign in now."))
        }
        UserTask::Reset { person, .. } if wanted.hub.is_some() => {
            (HubOrder::ResetPerson(person.clone()), "This link sets the password. It works once, within 24 h:".into())
        }
        UserTask::Reset { person, password_file } => {
            let password = Some(read(password_file, person)?);
            let note = format!("{person} has a new password; all sessions have ended.");
            change(person, PersonChange { password, ..PersonChange::default() }, note)
        }
        UserTask::Role { person, role } => {
            let (hub_admin, role, may) = match role {
                Granted::HubAdmin => (true, None, "hub admin".to_string()),
                Granted::InTeam(role) => (false, Some(*role), format!("{role} of {}", team)),
            };
            let to =
                PersonChange { hub_admin: Some(hub_admin), role, team: wanted.team.clone(), ..PersonChange::default() };
            change(person, to, format!("{person} is now {may}."))
        }
        UserTask::Disable { person } => {
            let to = PersonChange { disabled: Some(true), ..PersonChange::default() };
            change(person, to, format!("{person} can no longer sign in."))
        }
        UserTask::Enable { person } => {
            let to = PersonChange { disabled: Some(false), ..PersonChange::default() };
            change(person, to, format!("{person} can sign in again."))
        }
        UserTask::Remove { person } => (HubOrder::RemovePerson(person.clone()), format!("{person} has been removed.")),
        UserTask::Invite { role, email, expires } => {
            let new = NewInvite { role: Some(*role), email: email.clone(), expires: expires.clone() };
            (HubOrder::Invite(team, new), "This link adds one person to the team. It works once:".into())
        }
        UserTask::Logins { person, logins } => {
            let note = match &logins[..] {
                [] => format!("{person} now has no user names in {team}."),
                some => format!("Runs of {} now belong to {person} in {team}.", some.join(", ")),
            };
            let to = MemberChange { role: None, logins: Some(logins.clone()) };
            (HubOrder::ChangeMember(team, person.clone(), to), note)
        }
        UserTask::Leave { person } => {
            let note = format!("{person} is no longer a member of {team}.");
            (HubOrder::RemoveMember(team, person.clone()), note)
        }
    })
}

/// The order about a saved view.
fn view_order(task: &ViewTask, team: Option<String>) -> Noted {
    match task {
        ViewTask::List => (HubOrder::Views(team), String::new()),
        ViewTask::Save { title: name, query, mine } => {
            let scope = if *mine { Reach::Mine } else { Reach::Team };
            let new = NewView { name: name.clone(), query: query.clone(), scope };
            (HubOrder::AddView(team, new), format!("{name} has been saved."))
        }
        ViewTask::Remove { id } => (HubOrder::RemoveView(id.clone()), format!("{id} has been removed.")),
    }
}

/// The order about a share link.
fn share_order(task: &ShareTask, team: Option<String>) -> Noted {
    match task {
        ShareTask::List => (HubOrder::Shares(team), String::new()),
        ShareTask::Add { view, expires, note } => {
            let (view, query) = if view.contains('=') { (None, Some(view)) } else { (Some(view), None) };
            let new = NewShare {
                view: view.cloned(),
                query: query.cloned(),
                span: None,
                expires: expires.clone(),
                note: note.clone(),
            };
            (HubOrder::AddShare(team, new), "This link opens this view only, without an account:".into())
        }
        ShareTask::Remove { id } => (HubOrder::EndShare(id.clone()), format!("{id} has been revoked.")),
    }
}

/// The order that erases a person, a run or a machine.
fn erase_order(task: &EraseTask) -> Noted {
    match task {
        EraseTask { user: Some(person), .. } => {
            let note = format!(
                "{person} has been erased. The audit log shows this name instead; copies of the log in files keep \
                the old name."
            );
            (HubOrder::ErasePerson(person.clone()), note)
        }
        EraseTask { run: Some(run), .. } => {
            let note = format!("{run} has been deleted. Samples of its machines stay for their retention.");
            (HubOrder::RemoveRun(run.clone()), note)
        }
        EraseTask { source, .. } => {
            let machine = source.clone().unwrap_or_default();
            let note = format!(
                "{machine} has been erased. Data on the machine itself stays until its data folder is removed."
            );
            (HubOrder::RemoveAgent(machine), note)
        }
    }
}

/// The filter of a query of the audit log.
fn audit_filter(task: &AuditTask, team: Option<String>) -> LogFilter {
    let now = clock::System.wall();
    LogFilter {
        team,
        who: task.who.clone(),
        action: task.action.clone(),
        from: task.from.map(|from| from.begin(now)),
        to: task.to.map(|to| to.end(now)),
        limit: task.limit.map(i64::from),
        ..LogFilter::default()
    }
}

/// The order that queries GPU time, or with `--data` the usage of the hub itself.
fn usage_order(task: &UsageTask, team: Option<String>) -> Result<HubOrder, AdminFailed> {
    let now = clock::System.wall();
    let (from, to) = (task.from.map(|from| from.begin(now)), task.to.map(|to| to.end(now)));
    if task.data {
        let by = task.by.parse().map_err(|why| AdminFailed::usage(format!("with --data, --by {why}")))?;
        return Ok(HubOrder::Usage(UsageFilter { team, by, from, to }));
    }
    let by = task.by.parse().map_err(|why| AdminFailed::usage(format!("without --data, --by {why}")))?;
    Ok(HubOrder::GpuTime(GpuTimeFilter { team, by, from, to }))
}

/// The order that lists runs, fetches the report of one, or changes one.
fn runs_order(task: &RunsTask, as_json: bool) -> Noted {
    if let Some(RunsWord::Edit(edit)) = &task.word {
        return (HubOrder::ChangeRun(edit.run.clone(), edit.change()), format!("{} has been changed.", edit.run));
    }
    if let RunsTask { part: Some(word), run: Some(id), .. } = task
        && word == "report"
    {
        return (HubOrder::Report(id.clone(), as_json), String::new());
    }
    let filter = RunFilter {
        states: task.state.clone(),
        failures: task.failure.clone(),
        project: task.project.clone(),
        group: task.group.clone(),
        job_type: task.job_type.clone(),
        part: task.part.clone(),
        from: task.from.map(|from| from.begin(clock::System.wall())),
        limit: task.limit,
    };
    (HubOrder::Runs(filter), String::new())
}

/// The order about a key.
fn key_order(task: &KeyTask, team: String) -> Noted {
    match task {
        KeyTask::List { service, user } => {
            let order = match (service, user) {
                (Some(service), _) => HubOrder::KeysOfService(team, service.clone()),
                (None, Some(person)) => HubOrder::KeysOfPerson(person.clone()),
                (None, None) => HubOrder::Keys(team),
            };
            (order, String::new())
        }
        KeyTask::Add { program, scope, expires, service, user } => {
            let new = NewServiceKey { name: program.clone(), scopes: scope.clone(), expires: expires.clone() };
            let order = match (service, user) {
                (Some(service), _) => HubOrder::AddKeyOfService(team, service.clone(), new),
                (None, Some(person)) => HubOrder::AddKeyOfPerson(person.clone(), new),
                (None, None) => HubOrder::AddKey(team, new),
            };
            (order, "Copy this key now: it is not shown again.".into())
        }
        KeyTask::Remove { id, user } => {
            let order = match user {
                Some(person) => HubOrder::EndKeyOfPerson(person.clone(), id.clone()),
                None => HubOrder::EndKey(team, id.clone()),
            };
            (order, format!("{id} has been revoked."))
        }
    }
}

/// The order about machines; `labels` are those of the machines that join.
fn agents_order(task: &AgentsTask, team: String, labels: &BTreeMap<String, String>) -> Noted {
    match task.clone() {
        AgentsTask::List => (HubOrder::Agents(team), String::new()),
        AgentsTask::Join { uses, expires, source, ephemeral, by_name, confirmed } => {
            let labels = labels.clone();
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

/// The order about an account of a program.
fn service_order(task: &ServiceTask, team: String) -> Noted {
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
fn team_order(task: &TeamTask, named: String) -> Noted {
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
            (HubOrder::ChangeTeam(name, TeamChange { name: Some(new), ..TeamChange::default() }), note)
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
        TeamTask::Set { setting } => {
            let note = match setting {
                TeamSetting::MembersInvite(true) => format!("Members of {named} may invite members and viewers."),
                TeamSetting::MembersInvite(false) => format!("Members of {named} cannot invite members and viewers."),
                TeamSetting::ShareLinks(on) => format!("Share links of {named} are {}.", if on { "on" } else { "off" }),
                TeamSetting::UserNames(true) => format!("Viewers of {named} see the names of users."),
                TeamSetting::UserNames(false) => format!("Names of users are hidden from viewers of {named}."),
                TeamSetting::GpuHours(0) => format!("{named} has no limit of GPU-hours."),
                TeamSetting::GpuHours(hours) => format!("{named} has a limit of {hours} GPU-hours a month."),
            };
            (HubOrder::ChangeTeam(named, setting.change()), note)
        }
    }
}

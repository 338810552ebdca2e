//! One order to a hub, in its two forms: a request over HTTP, and a call of the room that decides, where no hub runs. Both
//! answer with the same JSON.

use crate::accounts::{Accounts, Denied, LogFilter, Principal, UsageFilter};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::{Value, json};
use shared::people::{Keys, NewPerson, NewServiceKey, People, PersonChange};
use shared::run::RunState;
use shared::session::{AgentChange, Agents, NewJoin};
use shared::team::{
    GrantChange, MemberChange, NewInvite, NewService, NewTeam, ServiceChange, Services, TeamChange, TeamEnd, Teams,
};
use shared::views::{NewShare, NewView, Shares, Views};

/// What a hub is to do. Persons, machines and teams are named as people name them.
#[derive(Debug)]
pub(super) enum HubOrder {
    People,
    AddPerson(NewPerson),
    ChangePerson(String, PersonChange),
    ResetPerson(String),
    RemovePerson(String),
    ErasePerson(String),
    Keys(String),
    KeysOfService(String, String),
    AddKey(String, NewServiceKey),
    AddKeyOfService(String, String, NewServiceKey),
    Services(String),
    AddService(String, NewService),
    ChangeService(String, String, ServiceChange),
    RemoveService(String, String),
    EndKey(String, String),
    KeysOfPerson(String),
    AddKeyOfPerson(String, NewServiceKey),
    EndKeyOfPerson(String, String),
    Agents(String),
    Join(String, NewJoin),
    Approve(String, String),
    ChangeAgent(String, String, AgentChange),
    Revoke(String, String),
    RemoveAgent(String),
    Teams,
    Team(String),
    AddTeam(NewTeam),
    ChangeTeam(String, TeamChange),
    RemoveTeam(String, TeamEnd),
    Grant(String, GrantChange),
    Invite(String, NewInvite),
    ChangeMember(String, String, MemberChange),
    RemoveMember(String, String),
    Views(Option<String>),
    AddView(Option<String>, NewView),
    RemoveView(String),
    Shares(Option<String>),
    AddShare(Option<String>, NewShare),
    EndShare(String),
    Audit(LogFilter),
    Usage(UsageFilter),
    Runs(RunFilter),
    /// Something about alerts: method, path below the address, and body.
    Alerts(&'static str, String, Option<Value>),
    /// Of a run, by its id; as JSON.
    Report(String, bool),
}

/// Which runs are listed.
#[derive(Debug, Default)]
pub(super) struct RunFilter {
    pub states: Vec<RunState>,
    pub project: Option<String>,
    pub part: Option<String>,
    /// When they began at the earliest, milliseconds since the Unix epoch.
    pub from: Option<i64>,
    pub limit: u16,
}

/// What is encoded in a part of a path.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'@');

/// A part of a path, so that no name is another path.
pub(super) fn part(name: &str) -> String {
    match name {
        "." | ".." => name.replace('.', "%2E"),
        _ => utf8_percent_encode(name, PART).to_string(),
    }
}

/// A path with those of the parameters that are given.
pub(super) fn asked(path: &str, names: &[(&str, Option<String>)]) -> String {
    let given = names.iter().filter_map(|(name, value)| Some(format!("{name}={}", part(value.as_ref()?))));
    let given = given.collect::<Vec<_>>().join("&");
    if given.is_empty() { path.into() } else { format!("{path}?{given}") }
}

fn body(value: &impl Serialize) -> Option<Value> {
    Some(serde_json::to_value(value).expect("texts and numbers only"))
}

impl HubOrder {
    /// What it is about where only one thing is named that may not be there: what that is, its name, and the command that
    /// lists all.
    pub(super) fn named(&self) -> Option<(&'static str, &str, &'static str)> {
        match self {
            HubOrder::ChangePerson(name, _)
            | HubOrder::ResetPerson(name)
            | HubOrder::RemovePerson(name)
            | HubOrder::ErasePerson(name)
            | HubOrder::KeysOfPerson(name) => Some(("account", name, "user list")),
            HubOrder::RemoveAgent(name)
            | HubOrder::Approve(_, name)
            | HubOrder::ChangeAgent(_, name, _)
            | HubOrder::Revoke(_, name) => Some(("machine", name, "agents list")),
            HubOrder::Team(name) | HubOrder::ChangeTeam(name, _) | HubOrder::RemoveTeam(name, _) => {
                Some(("team", name, "team list"))
            }
            _ => None,
        }
    }

    /// Method, path below the hub's address, and body.
    pub(super) fn request(&self) -> (&'static str, String, Option<Value>) {
        let person = |name: &str| format!("api/v1/accounts/{}", part(name));
        let agent = |team: &str, name: &str| format!("api/v1/teams/{}/agents/{}", part(team), part(name));
        let of = |team: &str, what: &str| format!("api/v1/teams/{}/{what}", part(team));
        let service = |team: &str, name: &str| of(team, &format!("services/{}", part(name)));
        let one = |team: &str| format!("api/v1/teams/{}", part(team));
        let seconds = |ms: Option<i64>| ms.map(|ms| format!("{}.{:03}", ms.div_euclid(1_000), ms.rem_euclid(1_000)));
        match self {
            HubOrder::People => ("GET", "api/v1/accounts".into(), None),
            HubOrder::AddPerson(wanted) => ("POST", "api/v1/accounts".into(), body(wanted)),
            HubOrder::ChangePerson(name, wanted) => ("PATCH", person(name), body(wanted)),
            HubOrder::ResetPerson(name) => ("POST", format!("{}/reset", person(name)), body(&json!({}))),
            HubOrder::RemovePerson(name) => ("DELETE", person(name), None),
            HubOrder::ErasePerson(name) => ("POST", format!("{}/erase", person(name)), body(&json!({}))),
            HubOrder::Keys(team) => ("GET", of(team, "keys"), None),
            HubOrder::KeysOfService(team, name) => ("GET", format!("{}/keys", service(team, name)), None),
            HubOrder::AddKeyOfService(team, name, wanted) => {
                ("POST", format!("{}/keys", service(team, name)), body(wanted))
            }
            HubOrder::Services(team) => ("GET", of(team, "services"), None),
            HubOrder::AddService(team, wanted) => ("POST", of(team, "services"), body(wanted)),
            HubOrder::ChangeService(team, name, wanted) => ("PATCH", service(team, name), body(wanted)),
            HubOrder::RemoveService(team, name) => ("DELETE", service(team, name), None),
            HubOrder::AddKey(team, wanted) => ("POST", of(team, "keys"), body(wanted)),
            HubOrder::EndKey(team, id) => ("DELETE", of(team, &format!("keys/{}", part(id))), None),
            HubOrder::KeysOfPerson(name) => ("GET", format!("{}/keys", person(name)), None),
            HubOrder::AddKeyOfPerson(name, wanted) => ("POST", format!("{}/keys", person(name)), body(wanted)),
            HubOrder::EndKeyOfPerson(name, id) => ("DELETE", format!("{}/keys/{}", person(name), part(id)), None),
            HubOrder::Agents(team) => ("GET", of(team, "agents"), None),
            HubOrder::Join(team, wanted) => ("POST", of(team, "join"), body(wanted)),
            HubOrder::Approve(team, name) => ("POST", format!("{}/approve", agent(team, name)), body(&json!({}))),
            HubOrder::ChangeAgent(team, name, wanted) => ("PATCH", agent(team, name), body(wanted)),
            HubOrder::Revoke(team, name) => ("DELETE", agent(team, name), None),
            HubOrder::RemoveAgent(name) => ("DELETE", format!("api/v1/sources/{}", part(name)), None),
            HubOrder::Teams => ("GET", "api/v1/teams".into(), None),
            HubOrder::Team(team) => ("GET", one(team), None),
            HubOrder::AddTeam(wanted) => ("POST", "api/v1/teams".into(), body(wanted)),
            HubOrder::ChangeTeam(team, wanted) => ("PATCH", one(team), body(wanted)),
            HubOrder::RemoveTeam(team, wanted) => ("DELETE", one(team), body(wanted)),
            HubOrder::Grant(source, wanted) => ("PUT", format!("api/v1/sources/{}/grants", part(source)), body(wanted)),
            HubOrder::Invite(team, wanted) => ("POST", of(team, "invites"), body(wanted)),
            HubOrder::ChangeMember(team, name, wanted) => {
                ("PUT", of(team, &format!("members/{}", part(name))), body(wanted))
            }
            HubOrder::RemoveMember(team, person) => ("DELETE", of(team, &format!("members/{}", part(person))), None),
            HubOrder::Views(team) => ("GET", asked("api/v1/views", &[("team", team.clone())]), None),
            HubOrder::AddView(team, wanted) => ("POST", asked("api/v1/views", &[("team", team.clone())]), body(wanted)),
            HubOrder::RemoveView(id) => ("DELETE", format!("api/v1/views/{}", part(id)), None),
            HubOrder::Shares(team) => ("GET", asked("api/v1/shares", &[("team", team.clone())]), None),
            HubOrder::AddShare(team, wanted) => {
                ("POST", asked("api/v1/shares", &[("team", team.clone())]), body(wanted))
            }
            HubOrder::EndShare(id) => ("DELETE", format!("api/v1/shares/{}", part(id)), None),
            HubOrder::Usage(usage) => {
                let names = [
                    ("team", usage.team.clone()),
                    ("by", Some(usage.by.word().into())),
                    ("from", seconds(usage.from)),
                    ("to", seconds(usage.to)),
                ];
                ("GET", asked("api/v1/usage", &names), None)
            }
            HubOrder::Runs(runs) => {
                let states = runs.states.iter().map(|state| state.name()).collect::<Vec<_>>().join(",");
                let names = [
                    ("state", (!states.is_empty()).then_some(states)),
                    ("project", runs.project.clone()),
                    ("q", runs.part.clone()),
                    ("from", seconds(runs.from)),
                    ("limit", Some(runs.limit.to_string())),
                ];
                ("GET", asked("api/v1/runs", &names), None)
            }
            HubOrder::Alerts(method, path, body) => (method, path.clone(), body.clone()),
            HubOrder::Report(id, as_json) => {
                let format = if *as_json { "json" } else { "html" };
                ("GET", format!("api/v1/runs/{}/report?format={format}", part(id)), None)
            }
            HubOrder::Audit(log) => {
                let names = [
                    ("team", log.team.clone()),
                    ("who", log.who.clone()),
                    ("action", log.action.clone()),
                    ("from", seconds(log.from)),
                    ("to", seconds(log.to)),
                    ("limit", log.limit.map(|limit| limit.to_string())),
                ];
                ("GET", asked("api/v1/audit", &names), None)
            }
        }
    }

    /// Does it on the database itself; nothing else has it open.
    pub(super) async fn on_file(&self, accounts: &Accounts, by: &Principal) -> Result<Value, Denied> {
        let answer = match self {
            HubOrder::People => body(&People { accounts: accounts.people(by).await? }),
            HubOrder::AddPerson(wanted) => body(&accounts.add_person(by, wanted).await?),
            HubOrder::ChangePerson(name, wanted) => body(&accounts.change_person(by, name, wanted).await?),
            HubOrder::ResetPerson(name) => body(&accounts.reset_person(by, name).await?),
            HubOrder::RemovePerson(name) => {
                accounts.remove_person(by, name).await?;
                None
            }
            HubOrder::ErasePerson(name) => body(&accounts.erase_person(by, name).await?),
            HubOrder::Keys(team) => body(&Keys { keys: accounts.service_keys(by, team).await? }),
            HubOrder::KeysOfService(team, name) => {
                body(&Keys { keys: accounts.keys_of_service(by, team, name).await? })
            }
            HubOrder::AddKeyOfService(team, name, wanted) => {
                body(&accounts.add_key_of_service(by, team, name, wanted).await?)
            }
            HubOrder::Services(team) => body(&Services { services: accounts.services(by, team).await? }),
            HubOrder::AddService(team, wanted) => body(&accounts.add_service(by, team, wanted).await?),
            HubOrder::ChangeService(team, name, wanted) => {
                body(&accounts.change_service(by, team, name, wanted).await?)
            }
            HubOrder::RemoveService(team, name) => {
                accounts.remove_service(by, team, name).await?;
                None
            }
            HubOrder::AddKey(team, wanted) => body(&accounts.add_service_key(by, team, wanted).await?),
            HubOrder::EndKey(team, id) => {
                accounts.end_service_key(by, team, id).await?;
                None
            }
            HubOrder::KeysOfPerson(name) => body(&Keys { keys: accounts.keys_of_person(by, name).await? }),
            HubOrder::AddKeyOfPerson(name, wanted) => body(&accounts.add_key_of_person(by, name, wanted).await?),
            HubOrder::EndKeyOfPerson(name, id) => {
                accounts.end_key_of_person(by, name, id).await?;
                None
            }
            HubOrder::Agents(team) => body(&Agents { agents: accounts.agents(by, team).await? }),
            HubOrder::Join(team, wanted) => {
                let made = accounts.new_join(by, team, wanted).await?;
                body(&json!({ "id": made.id, "key": made.key, "ends": made.ends }))
            }
            HubOrder::Approve(team, name) => body(&accounts.approve(by, team, name).await?),
            HubOrder::ChangeAgent(team, name, wanted) => body(&accounts.change(by, team, name, wanted).await?),
            HubOrder::Revoke(team, name) => body(&accounts.revoke(by, team, name).await?),
            HubOrder::RemoveAgent(name) => body(&json!({ "id": accounts.remove(by, name).await? })),
            HubOrder::Teams => body(&Teams { teams: accounts.list_teams(by).await? }),
            HubOrder::Team(team) => body(&accounts.one_team(by, team).await?),
            HubOrder::AddTeam(wanted) => body(&accounts.add_team(by, wanted).await?),
            HubOrder::ChangeTeam(team, wanted) => body(&accounts.change_team(by, team, wanted).await?),
            HubOrder::RemoveTeam(team, wanted) => {
                accounts.remove_team(by, team, wanted).await?;
                None
            }
            HubOrder::Grant(source, wanted) => body(&accounts.set_grants(by, source, wanted).await?),
            HubOrder::Invite(team, wanted) => {
                let (id, code) = accounts.invite(by, team, wanted).await?;
                body(&json!({ "id": id, "code": code }))
            }
            HubOrder::ChangeMember(team, name, wanted) => body(&accounts.set_member(by, team, name, wanted).await?),
            HubOrder::RemoveMember(team, person) => {
                accounts.remove_member(by, team, person).await?;
                None
            }
            HubOrder::Views(team) => body(&Views { views: accounts.views(by, team.as_deref()).await? }),
            HubOrder::AddView(team, wanted) => body(&accounts.add_view(by, team.as_deref(), wanted).await?),
            HubOrder::RemoveView(id) => {
                accounts.remove_view(by, id).await?;
                None
            }
            HubOrder::Shares(team) => body(&Shares { shares: accounts.shares(by, team.as_deref()).await? }),
            HubOrder::AddShare(team, wanted) => {
                let (id, code) = accounts.add_share(by, team.as_deref(), wanted).await?;
                body(&json!({ "id": id, "code": code }))
            }
            HubOrder::EndShare(id) => {
                accounts.end_share(by, id).await?;
                None
            }
            HubOrder::Audit(asked) => body(&accounts.audit_log(by, asked).await?),
            HubOrder::Usage(asked) => body(&accounts.usage(by, asked).await?),
            // They stand among the samples, which a server reads.
            HubOrder::Runs(_) | HubOrder::Report(..) | HubOrder::Alerts(..) => return Err(Denied::Unavailable),
        };
        Ok(answer.unwrap_or_else(|| json!({})))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_never_leads_to_another_path() {
        for (name, path) in [
            ("mara", "api/v1/accounts/mara"),
            ("../teams", "api/v1/accounts/..%2Fteams"),
            ("..", "api/v1/accounts/%2E%2E"),
            ("a?b#c%d e", "api/v1/accounts/a%3Fb%23c%25d%20e"),
            ("\r\nHost: x", "api/v1/accounts/%0D%0AHost%3A%20x"),
        ] {
            assert_eq!(HubOrder::RemovePerson(name.into()).request().1, path);
        }
    }
}

//! One order to a hub, in its two forms: a request over HTTP, or a direct call if no hub runs. Both return the same
//! JSON.

use api::parameter::{self, Parameter};
use api::{Method, Operation};
use serde::Serialize;
use serde_json::{Value, json};
use shared::answer::usage::GpuTimeBy;
use shared::failure::FailureClass;
use shared::people::{Keys, NewPerson, NewServiceKey, People, PersonChange};
use shared::run::RunState;
use shared::run_change::RunChange;
use shared::session::{AgentChange, Agents, NewJoin};
use shared::team::{
    GrantChange, MemberChange, NewInvite, NewService, NewTeam, ServiceChange, Services, TeamChange, TeamEnd, Teams,
};
use shared::unit::instant::seconds;
use shared::views::{NewShare, NewView, Shares, Views};
use team::accounts::{Accounts, Denied, LogFilter, Principal, UsageFilter};

/// Orders to a hub. Persons, machines and teams are given by name.
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
    GpuTime(GpuTimeFilter),
    Runs(RunFilter),
    /// A request about alerts.
    Alerts(HubRequest),
    /// The report of a run, by its id; the bool: as JSON.
    Report(String, bool),
    /// New names of a run, by its id.
    ChangeRun(String, RunChange),
    /// Deletes a run, by its id.
    RemoveRun(String),
}

/// Filter of GPU time.
#[derive(Debug)]
pub(super) struct GpuTimeFilter {
    /// Team, by id or name; none: all for hub admins, else the only team of the caller.
    pub team: Option<String>,
    /// The division.
    pub by: GpuTimeBy,
    /// A time of the first day, milliseconds since the Unix epoch.
    pub from: Option<i64>,
    /// A time of the last day.
    pub to: Option<i64>,
}

/// Filter of listed runs.
#[derive(Debug, Default)]
pub(super) struct RunFilter {
    pub states: Vec<RunState>,
    pub failures: Vec<FailureClass>,
    pub project: Option<String>,
    pub group: Option<String>,
    pub job_type: Option<String>,
    pub part: Option<String>,
    /// Minimum of their start, milliseconds since the Unix epoch.
    pub from: Option<i64>,
    pub limit: u16,
}

/// A request to a server.
#[derive(Clone, Debug)]
pub(super) struct HubRequest {
    /// The operation.
    pub operation: Operation,
    /// Its path below the server's address, with its parameters.
    pub path: String,
    /// Its body.
    pub body: Option<Value>,
}

impl HubRequest {
    /// A request without parameters, and with an empty body if it needs one; `parts` are the named parts of its path.
    pub(super) fn new(operation: Operation, parts: &[&str]) -> HubRequest {
        HubRequest::asking(operation, parts, &[])
    }

    /// As above, with the parameters that are given.
    pub(super) fn asking(
        operation: Operation,
        parts: &[&str],
        parameters: &[(Parameter, Option<String>)],
    ) -> HubRequest {
        let body = (operation.method() == Method::Post).then(|| json!({}));
        HubRequest { operation, path: operation.asking(parts, parameters), body }
    }

    /// With this body.
    pub(super) fn with(self, wanted: &impl Serialize) -> HubRequest {
        HubRequest { body: body(wanted), ..self }
    }
}

fn body(value: &impl Serialize) -> Option<Value> {
    Some(serde_json::to_value(value).expect("texts and numbers only"))
}

impl HubOrder {
    /// The one object that the order names and that may be missing: its kind, its name, and the command that lists
    /// all.
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
            HubOrder::ChangeRun(id, _) | HubOrder::RemoveRun(id) => Some(("run", id, "runs")),
            _ => None,
        }
    }

    /// Whether only a running server can carry it out, as it needs the samples.
    pub(super) fn needs_server(&self) -> bool {
        matches!(
            self,
            HubOrder::Runs(_)
                | HubOrder::GpuTime(_)
                | HubOrder::Alerts(..)
                | HubOrder::ChangeRun(..)
                | HubOrder::RemoveRun(_)
        )
    }

    /// As a request over HTTP.
    pub(super) fn request(&self) -> HubRequest {
        let new = HubRequest::new;
        let of_team = |operation: Operation, team: &Option<String>| {
            HubRequest::asking(operation, &[], &[(parameter::TEAM, team.clone())])
        };
        match self {
            HubOrder::People => new(Operation::ListAccounts, &[]),
            HubOrder::AddPerson(wanted) => new(Operation::AddAccount, &[]).with(wanted),
            HubOrder::ChangePerson(name, wanted) => new(Operation::ChangeAccount, &[name]).with(wanted),
            HubOrder::ResetPerson(name) => new(Operation::ResetAccount, &[name]),
            HubOrder::RemovePerson(name) => new(Operation::RemoveAccount, &[name]),
            HubOrder::ErasePerson(name) => new(Operation::EraseAccount, &[name]),
            HubOrder::Keys(team) => new(Operation::ListTeamKeys, &[team]),
            HubOrder::KeysOfService(team, name) => new(Operation::ListServiceKeys, &[team, name]),
            HubOrder::AddKeyOfService(team, name, wanted) => new(Operation::AddServiceKey, &[team, name]).with(wanted),
            HubOrder::Services(team) => new(Operation::ListServices, &[team]),
            HubOrder::AddService(team, wanted) => new(Operation::AddService, &[team]).with(wanted),
            HubOrder::ChangeService(team, name, wanted) => new(Operation::ChangeService, &[team, name]).with(wanted),
            HubOrder::RemoveService(team, name) => new(Operation::RemoveService, &[team, name]),
            HubOrder::AddKey(team, wanted) => new(Operation::AddTeamKey, &[team]).with(wanted),
            HubOrder::EndKey(team, id) => new(Operation::EndTeamKey, &[team, id]),
            HubOrder::KeysOfPerson(name) => new(Operation::ListAccountKeys, &[name]),
            HubOrder::AddKeyOfPerson(name, wanted) => new(Operation::AddAccountKey, &[name]).with(wanted),
            HubOrder::EndKeyOfPerson(name, id) => new(Operation::EndAccountKey, &[name, id]),
            HubOrder::Agents(team) => new(Operation::ListAgents, &[team]),
            HubOrder::Join(team, wanted) => new(Operation::AddJoinKey, &[team]).with(wanted),
            HubOrder::Approve(team, name) => new(Operation::ApproveAgent, &[team, name]),
            HubOrder::ChangeAgent(team, name, wanted) => new(Operation::ChangeAgent, &[team, name]).with(wanted),
            HubOrder::Revoke(team, name) => new(Operation::RevokeAgent, &[team, name]),
            HubOrder::RemoveAgent(name) => new(Operation::RemoveSource, &[name]),
            HubOrder::Teams => new(Operation::ListTeams, &[]),
            HubOrder::Team(team) => new(Operation::GetTeam, &[team]),
            HubOrder::AddTeam(wanted) => new(Operation::AddTeam, &[]).with(wanted),
            HubOrder::ChangeTeam(team, wanted) => new(Operation::ChangeTeam, &[team]).with(wanted),
            HubOrder::RemoveTeam(team, wanted) => new(Operation::RemoveTeam, &[team]).with(wanted),
            HubOrder::Grant(source, wanted) => new(Operation::SetGrants, &[source]).with(wanted),
            HubOrder::Invite(team, wanted) => new(Operation::AddInvite, &[team]).with(wanted),
            HubOrder::ChangeMember(team, name, wanted) => new(Operation::SetMember, &[team, name]).with(wanted),
            HubOrder::RemoveMember(team, person) => new(Operation::RemoveMember, &[team, person]),
            HubOrder::Views(team) => of_team(Operation::ListViews, team),
            HubOrder::AddView(team, wanted) => of_team(Operation::AddView, team).with(wanted),
            HubOrder::RemoveView(id) => new(Operation::RemoveView, &[id]),
            HubOrder::Shares(team) => of_team(Operation::ListShares, team),
            HubOrder::AddShare(team, wanted) => of_team(Operation::AddShare, team).with(wanted),
            HubOrder::EndShare(id) => new(Operation::EndShare, &[id]),
            HubOrder::Usage(usage) => {
                let by = (parameter::USAGE_BY, usage.by.as_str());
                usage_request(Operation::GetUsage, by, &usage.team, (usage.from, usage.to))
            }
            HubOrder::GpuTime(usage) => {
                let by = (parameter::GPU_TIME_BY, usage.by.as_str());
                usage_request(Operation::GetGpuTime, by, &usage.team, (usage.from, usage.to))
            }
            HubOrder::Runs(runs) => runs.request(),
            HubOrder::Alerts(request) => request.clone(),
            HubOrder::Report(id, as_json) => {
                let format = if *as_json { "json" } else { "html" };
                HubRequest::asking(Operation::GetRunReport, &[id], &[(parameter::REPORT_FORMAT, Some(format.into()))])
            }
            HubOrder::ChangeRun(id, wanted) => new(Operation::ChangeRun, &[id]).with(wanted),
            HubOrder::RemoveRun(id) => new(Operation::RemoveRun, &[id]),
            HubOrder::Audit(log) => log_request(log),
        }
    }

    /// Runs it on the database itself, which no other process has open.
    pub(super) async fn on_file(&self, accounts: &Accounts, by: &Principal) -> Result<Value, Denied> {
        let answer = match self {
            HubOrder::People => body(&People { accounts: accounts.people(by).await? }),
            HubOrder::AddPerson(wanted) => body(&accounts.add_person(by, wanted).await?),
            HubOrder::ChangePerson(name, wanted) => body(&accounts.change_person(by, name, wanted).await?),
            HubOrder::ResetPerson(name) => body(&accounts.reset_person(by, name).await?),
            HubOrder::RemovePerson(name) => accounts.remove_person(by, name).await.map(|()| None)?,
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
            HubOrder::RemoveService(team, name) => accounts.remove_service(by, team, name).await.map(|()| None)?,
            HubOrder::AddKey(team, wanted) => body(&accounts.add_service_key(by, team, wanted).await?),
            HubOrder::EndKey(team, id) => accounts.end_service_key(by, team, id).await.map(|()| None)?,
            HubOrder::KeysOfPerson(name) => body(&Keys { keys: accounts.keys_of_person(by, name).await? }),
            HubOrder::AddKeyOfPerson(name, wanted) => body(&accounts.add_key_of_person(by, name, wanted).await?),
            HubOrder::EndKeyOfPerson(name, id) => accounts.end_key_of_person(by, name, id).await.map(|()| None)?,
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
            HubOrder::RemoveTeam(team, wanted) => accounts.remove_team(by, team, wanted).await.map(|()| None)?,
            HubOrder::Grant(source, wanted) => body(&accounts.set_grants(by, source, wanted).await?),
            HubOrder::Invite(team, wanted) => {
                let (id, code) = accounts.invite(by, team, wanted).await?;
                body(&json!({ "id": id, "code": code }))
            }
            HubOrder::ChangeMember(team, name, wanted) => body(&accounts.set_member(by, team, name, wanted).await?),
            HubOrder::RemoveMember(team, person) => accounts.remove_member(by, team, person).await.map(|()| None)?,
            HubOrder::Views(team) => body(&Views { views: accounts.views(by, team.as_deref()).await? }),
            HubOrder::AddView(team, wanted) => body(&accounts.add_view(by, team.as_deref(), wanted).await?),
            HubOrder::RemoveView(id) => accounts.remove_view(by, id).await.map(|()| None)?,
            HubOrder::Shares(team) => body(&Shares { shares: accounts.shares(by, team.as_deref()).await? }),
            HubOrder::AddShare(team, wanted) => {
                let (id, code) = accounts.add_share(by, team.as_deref(), wanted, &[]).await?;
                body(&json!({ "id": id, "code": code }))
            }
            HubOrder::EndShare(id) => accounts.end_share(by, id).await.map(|()| None)?,
            HubOrder::Audit(asked) => body(&accounts.audit_log(by, asked).await?),
            HubOrder::Usage(asked) => body(&accounts.usage(by, asked).await?),
            // These need the samples, which only a server reads.
            HubOrder::Runs(_)
            | HubOrder::GpuTime(_)
            | HubOrder::Report(..)
            | HubOrder::Alerts(..)
            | HubOrder::ChangeRun(..)
            | HubOrder::RemoveRun(_) => return Err(Denied::Unavailable),
        };
        Ok(answer.unwrap_or_else(|| json!({})))
    }
}

impl RunFilter {
    fn request(&self) -> HubRequest {
        let states = self.states.iter().map(|state| state.name()).collect::<Vec<_>>().join(",");
        let failures = self.failures.iter().map(|class| class.name()).collect::<Vec<_>>().join(",");
        let parameters = [
            (parameter::STATES, (!states.is_empty()).then_some(states)),
            (parameter::FAILURES, (!failures.is_empty()).then_some(failures)),
            (parameter::PROJECT, self.project.clone()),
            (parameter::GROUP, self.group.clone()),
            (parameter::JOB_TYPE, self.job_type.clone()),
            (parameter::SEARCH, self.part.clone()),
            (parameter::FROM, self.from.map(seconds)),
            (parameter::LIMIT, Some(self.limit.to_string())),
        ];
        HubRequest::asking(Operation::ListRuns, &[], &parameters)
    }
}

fn usage_request(
    operation: Operation,
    by: (Parameter, &str),
    team: &Option<String>,
    (from, to): (Option<i64>, Option<i64>),
) -> HubRequest {
    let parameters = [
        (parameter::TEAM, team.clone()),
        (by.0, Some(by.1.into())),
        (parameter::FROM, from.map(seconds)),
        (parameter::TO, to.map(seconds)),
    ];
    HubRequest::asking(operation, &[], &parameters)
}

fn log_request(log: &LogFilter) -> HubRequest {
    let parameters = [
        (parameter::TEAM, log.team.clone()),
        (parameter::WHO, log.who.clone()),
        (parameter::ACTION, log.action.clone()),
        (parameter::FROM, log.from.map(seconds)),
        (parameter::TO, log.to.map(seconds)),
        (parameter::LIMIT, log.limit.map(|limit| limit.to_string())),
    ];
    HubRequest::asking(Operation::ListAudit, &[], &parameters)
}

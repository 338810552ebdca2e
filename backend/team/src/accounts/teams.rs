//! Teams, their members, and the machines that they see.

use super::logins::{self, is_login};
use super::session::normal_name;
use super::watchers::{Ended, Ends};
use super::{Accounts, Denied, Done, Principal, Who, labels, random};
use records::accounts::Account;
use records::{
    Change, Connection, accounts, codes, grants, keys, rules, services, sessions, shares, sources, teams, views,
};
use serde::{Deserialize, Serialize};
use shared::role::Role;
use shared::team::{
    GrantChange, Grants, Member, MemberChange, NamedTeam, NewTeam, Team, TeamChange, TeamEnd, TeamSource,
};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of teams of a hub.
const TEAMS: usize = 100;
/// Maximum limit of GPU-hours in a month.
const MAX_GPU_HOURS: u64 = 1_000_000_000;
/// Maximum number of logins of one member.
const LOGINS: usize = 16;

/// Settings by the admins of a team.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct TeamSettings {
    /// Whether members may invite viewers and members.
    pub members_invite: bool,
    /// Whether share links are off.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_share_links: bool,
    /// Whether names of users and of people are hidden from viewers and share links.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_user_names: bool,
    /// The view for an address without a query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_view: Option<String>,
    /// Limit of the GPU-hours of its runs in a month.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_hours: Option<u64>,
}

/// The settings of a team; values that this version cannot read count as not set.
pub(super) fn settings_of(team: &teams::Team) -> TeamSettings {
    serde_json::from_str(&team.settings).unwrap_or_default()
}

/// Whether the team itself hides names of users and of people from its viewers and share links.
pub(super) fn hides_names(team: &teams::Team) -> bool {
    settings_of(team).no_user_names
}

/// The limit of a team's GPU-hours in a month; None: no limit.
pub fn gpu_hours_limit(team: &teams::Team) -> Option<u64> {
    settings_of(team).gpu_hours
}

/// Checks the name of a team or a service, which is part of paths.
pub(super) fn check_word(name: &str) -> Result<(), Denied> {
    let good = |letter: char| letter.is_ascii_alphanumeric() || ".-_".contains(letter);
    match (1..=64).contains(&name.len()) && name.chars().all(good) && name.chars().any(char::is_alphanumeric) {
        true => Ok(()),
        false => Err(Denied::invalid("a name has 1 to 64 letters, digits, \".\", \"-\" or \"_\"")),
    }
}

impl Accounts {
    /// The principal's teams, by name; all for a hub admin.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn list_teams(&self, by: &Principal) -> Result<Vec<Team>, Denied> {
        let all = teams::all(&mut *self.read().await?).await?;
        Ok(all.iter().filter_map(|team| Some(summary(team, by.role_in(&team.id)?))).collect())
    }

    /// A team with its people and machines.
    ///
    /// # Errors
    /// [`Denied::Unknown`], [`Denied::Unavailable`].
    pub async fn one_team(&self, by: &Principal, word: &str) -> Result<Team, Denied> {
        let mut on = self.read().await?;
        let team = self.team(&mut on, by, word, Role::Viewer).await?;
        self.whole(&mut on, by, &team).await
    }

    /// Creates a team.
    ///
    /// # Errors
    /// [`Denied`]: the principal is no hub admin, or the name is taken.
    pub async fn add_team(&self, by: &Principal, wanted: &NewTeam) -> Result<Team, Denied> {
        self.need_hub_admin(by)?;
        check_word(&wanted.name)?;
        let mut change = self.begin_change().await?;
        if teams::all(&mut change).await?.len() >= TEAMS {
            return Err(Denied::conflict(format!("a hub has at most {TEAMS} teams; remove one first")));
        }
        let team = teams::Team { id: random::id(), name: wanted.name.clone(), settings: "{}".into() };
        teams::add(&mut change, &team).await.map_err(|error| taken(error, &team.name))?;
        let done = Done { action: "team.add", team: Some(&team.id), object: &team.name, ..Done::default() };
        self.audit(&mut change, by, done).await?;
        let whole = self.whole(&mut change, by, &team).await?;
        change.commit().await?;
        self.sources_have_changed();
        Ok(whole)
    }

    /// Renames a team, or changes its settings.
    ///
    /// # Errors
    /// [`Denied`]; [`Denied::Conflict`] when the name is taken.
    pub async fn change_team(&self, by: &Principal, word: &str, wanted: &TeamChange) -> Result<Team, Denied> {
        let mut change = self.begin_change().await?;
        let old = self.team(&mut change, by, word, Role::Admin).await?;
        let mut settings = settings_of(&old);
        settings.members_invite = wanted.members_invite.unwrap_or(settings.members_invite);
        if let Some(hours) = wanted.gpu_hours {
            if hours > MAX_GPU_HOURS {
                return Err(Denied::invalid("gpu_hours is 0 to 1,000,000,000"));
            }
            settings.gpu_hours = Some(hours).filter(|hours| *hours > 0);
        }
        settings.no_share_links = wanted.share_links.map_or(settings.no_share_links, |on| !on);
        settings.no_user_names = wanted.user_names.map_or(settings.no_user_names, |on| !on);
        let name = wanted.name.clone().unwrap_or_else(|| old.name.clone());
        check_word(&name)?;
        let new = teams::Team { id: old.id.clone(), name, settings: labels::json(&settings) };
        teams::set(&mut change, &new).await.map_err(|error| taken(error, &new.name))?;
        let (was, is) =
            (Some(format!("{} {}", old.name, old.settings)), Some(format!("{} {}", new.name, new.settings)));
        let done = Done { action: "team.change", team: Some(&new.id), object: &new.name, before: was, after: is };
        self.audit(&mut change, by, done).await?;
        let whole = self.whole(&mut change, by, &new).await?;
        change.commit().await?;
        if settings != settings_of(&old) {
            // Open pages are checked again: those of links, and those that may show names.
            self.sources_have_changed();
        }
        Ok(whole)
    }

    /// Removes a team with its services, keys, invitations, views and links. Its people stay.
    ///
    /// # Errors
    /// [`Denied`]: the name was not typed again, the team has machines, or it is the last one.
    pub async fn remove_team(&self, by: &Principal, word: &str, wanted: &TeamEnd) -> Result<(), Denied> {
        self.need_hub_admin(by)?;
        self.need_fresh(by)?;
        let mut change = self.begin_change().await?;
        let team = self.team(&mut change, by, word, Role::Admin).await?;
        if wanted.name != team.name {
            return Err(Denied::invalid("the name does not match; type the team's name again"));
        }
        let machines = sources::list(&mut change, Some(&team.id)).await?.len();
        if machines > 0 {
            let sentence = format!("{machines} machines belong to this team; remove them first");
            return Err(Denied::conflict(sentence));
        }
        let all = teams::all(&mut change).await?;
        let Some(other) = all.iter().find(|other| other.id != team.id) else {
            return Err(Denied::conflict("this is the last team; add another one first"));
        };
        let people: Vec<String> = teams::members(&mut change, &team.id).await?.into_iter().map(|one| one.id).collect();
        let programs: Vec<String> =
            services::list(&mut change, &team.id).await?.into_iter().map(|one| one.id).collect();
        keys::team_removed(&mut change, &team.id, &other.id).await?;
        teams::remove(&mut change, &team.id).await?;
        let done = Done { action: "team.remove", team: Some(&team.id), object: &team.name, ..Done::default() };
        self.audit(&mut change, by, done).await?;
        change.commit().await?;
        for person in people {
            self.end_people(Ends::AllOf(person, None), Ended::Rights);
        }
        for program in programs.into_iter().chain([team.id]) {
            self.end_people(Ends::AllOf(program, None), Ended::Key);
        }
        self.sources_have_changed();
        Ok(())
    }

    /// Sets the role of a person in a team. Their sockets close and reconnect with the new rights.
    ///
    /// # Errors
    /// [`Denied`]; [`Denied::Unknown`] for a person outside the team, unless the principal is a hub admin.
    pub async fn set_member(
        &self,
        by: &Principal,
        team: &str,
        person: &str,
        wanted: &MemberChange,
    ) -> Result<Member, Denied> {
        let mut change = self.begin_change().await?;
        let team = self.team(&mut change, by, team, Role::Admin).await?;
        if wanted.role == Some(Role::Admin) {
            self.need_fresh(by)?;
        }
        let account = self.account_in(&mut change, by, &team.id, person).await?;
        let known = member_of(&mut change, &team.id, &account.id).await?;
        if known.is_none() && wanted.role.is_none() {
            let sentence = format!("{} is not in this team; give them a role in it first", account.name);
            return Err(Denied::conflict(sentence));
        }
        let before = known.as_ref().map(|member| member.role.clone());
        let role = match (wanted.role, &before) {
            (Some(role), _) => role.text().to_string(),
            (None, Some(role)) => role.clone(),
            (None, None) => Role::Viewer.text().to_string(),
        };
        teams::set_role(&mut change, &team.id, &account.id, Some(&role)).await?;
        if let Some(logins) = &wanted.logins {
            if logins.len() > LOGINS || !logins.iter().all(|login| is_login(login)) {
                let sentence = format!("logins are at most {LOGINS} user names on machines, without spaces");
                return Err(Denied::invalid(sentence));
            }
            teams::set_logins(&mut change, &team.id, &account.id, &labels::json(logins)).await?;
        }
        let action = if before.is_some() { "member.change" } else { "member.add" };
        let after = match &wanted.logins {
            Some(logins) => format!("{role}, logins: {}", logins.join(" ")),
            None => role,
        };
        let done = Done { action, team: Some(&team.id), object: &account.name, before, after: Some(after) };
        self.audit(&mut change, by, done).await?;
        let member = member_of(&mut change, &team.id, &account.id).await?.ok_or(Denied::Unknown)?;
        let said = logins::list_logins(&mut change, Some(&account.id)).await?;
        let member = shown(member, Some(&said)).ok_or(Denied::Unknown)?;
        change.commit().await?;
        self.end_people(Ends::AllOf(account.id, None), Ended::Rights);
        Ok(member)
    }

    /// Removes a person from a team; people may leave by themselves. Their sockets close at once.
    ///
    /// # Errors
    /// [`Denied`]; [`Denied::Unknown`] for a person outside the team.
    pub async fn remove_member(&self, by: &Principal, team: &str, person: &str) -> Result<(), Denied> {
        let mut change = self.begin_change().await?;
        let team = self.team(&mut change, by, team, Role::Viewer).await?;
        let found = self.account_in(&mut change, by, &team.id, person).await;
        // By the account that would leave, not by the word: somebody's name may be the id of another.
        let leaves = |account: &Account| matches!(&by.who, Who::Account { id, .. } if *id == account.id);
        let own = found.as_ref().is_ok_and(leaves);
        if !own {
            self.team(&mut change, by, &team.id, Role::Admin).await?;
        } else {
            self.need_fresh(by)?;
        }
        let account = found?;
        let Some(was) = member_of(&mut change, &team.id, &account.id).await? else { return Err(Denied::Unknown) };
        self.leave(&mut change, &team.id, &account).await?;
        teams::set_role(&mut change, &team.id, &account.id, None).await?;
        let left = teams::memberships(&mut change, Some(&account.id)).await?;
        // A person without a team has nothing to sign in to.
        let (ended, why) = match left.is_empty() && !account.hub_admin {
            true => {
                sessions::end_all(&mut change, &account.id, None).await?;
                (keys::end_of_owner(&mut change, &account.id, self.now()).await?, Ended::Removed)
            }
            false => (Vec::new(), Ended::Rights),
        };
        let action = if own { "member.leave" } else { "member.remove" };
        let done =
            Done { action, team: Some(&team.id), object: &account.name, before: Some(was.role), ..Done::default() };
        self.audit(&mut change, by, done).await?;
        change.commit().await?;
        self.end_people(Ends::AllOf(account.id, None), why);
        for key in ended {
            self.end_people(Ends::One(key), Ended::Key);
        }
        Ok(())
    }

    /// Removes a person's own objects of a team. Objects of the team stay, with the person's name as text.
    pub(super) async fn leave(&self, change: &mut Change, team: &str, account: &Account) -> Result<(), Denied> {
        codes::end_of_owner(change, team, &account.id).await?;
        views::leave(change, Some(team), &account.id, &left(&account.name)).await?;
        rules::leave(change, Some(team), &account.id, &left(&account.name)).await?;
        // Sockets of links are closed with those of their creator.
        shares::leave(change, team, &account.id).await?;
        Ok(())
    }

    /// The teams that see a machine, by its id or name.
    ///
    /// # Errors
    /// [`Denied`]: the principal is no hub admin, or there is no such machine.
    pub async fn grants(&self, by: &Principal, source: &str) -> Result<Grants, Denied> {
        self.need_hub_admin(by)?;
        let mut on = self.read().await?;
        let source = sources::find(&mut on, source, self.now()).await?.ok_or(Denied::Unknown)?;
        granted(&mut on, &source.id).await
    }

    /// Sets the teams that see a machine. Sockets with fewer rights close at once; those with more show the machine.
    ///
    /// # Errors
    /// [`Denied`]: the principal is no hub admin, or there is no such machine or team.
    pub async fn set_grants(&self, by: &Principal, source: &str, wanted: &GrantChange) -> Result<Grants, Denied> {
        self.need_hub_admin(by)?;
        let mut change = self.begin_change().await?;
        let source = sources::find(&mut change, source, self.now()).await?.ok_or(Denied::Unknown)?;
        let before = granted(&mut change, &source.id).await?;
        let names = |grants: &Grants| grants.teams.iter().map(|team| team.name.clone()).collect::<Vec<_>>().join(", ");
        if let Some(only) = &wanted.teams {
            if only.len() > TEAMS {
                return Err(Denied::invalid(format!("a hub has at most {TEAMS} teams")));
            }
            for team in &before.teams {
                grants::remove(&mut change, &team.id, &source.id).await?;
            }
        }
        for word in wanted.teams.iter().flatten().chain(&wanted.add).take(2 * TEAMS) {
            let team = teams::find(&mut change, word).await?.ok_or(Denied::Unknown)?;
            grants::add(&mut change, &team.id, &source.id).await?;
        }
        for word in wanted.remove.iter().take(TEAMS) {
            let team = teams::find(&mut change, word).await?.ok_or(Denied::Unknown)?;
            grants::remove(&mut change, &team.id, &source.id).await?;
        }
        let after = granted(&mut change, &source.id).await?;
        let (was, is) = (Some(names(&before)), Some(names(&after)));
        let done = Done { action: "grant", team: Some(&source.team), object: &source.name, before: was, after: is };
        self.audit(&mut change, by, done).await?;
        change.commit().await?;
        self.sources_have_changed();
        Ok(after)
    }

    /// An account by its id or name: of a team, or of the whole hub for a hub admin.
    async fn account_in(
        &self,
        on: &mut Connection,
        by: &Principal,
        team: &str,
        person: &str,
    ) -> Result<Account, Denied> {
        let found = match accounts::by_id(on, person).await? {
            Some(found) => Some(found),
            None => match normal_name(person) {
                Ok(name) => accounts::by_name(on, &name).await?,
                Err(_) => None,
            },
        };
        let account = found.ok_or(Denied::Unknown)?;
        match by.is_hub_admin() || member_of(on, team, &account.id).await?.is_some() {
            true => Ok(account),
            false => Err(Denied::Unknown),
        }
    }

    async fn whole(&self, on: &mut Connection, by: &Principal, team: &teams::Team) -> Result<Team, Denied> {
        let role = by.role_in(&team.id).ok_or(Denied::Unknown)?;
        let said = match role {
            Role::Admin => Some(logins::list_logins(on, None).await?),
            _ => None,
        };
        let hides = role == Role::Viewer && self.hides_names(on, &team.id).await?;
        let mut people = teams::members(on, &team.id).await?;
        people.retain(|member| !hides || by.owner.as_ref() == Some(&member.id));
        let people = people.into_iter();
        let machines = grants::list(on, &team.id).await?.into_iter();
        let machines =
            machines.map(|source| TeamSource { home: source.home == team.id, id: source.id, name: source.name });
        Ok(Team {
            members: people.filter_map(|member| shown(member, said.as_ref())).collect(),
            sources: machines.collect(),
            ..summary(team, role)
        })
    }
}

/// The name of a person who left, as text.
pub(super) fn left(name: &str) -> String {
    format!("{name} (left)")
}

async fn granted(on: &mut Connection, source: &str) -> Result<Grants, Denied> {
    let seen = grants::teams(on, source).await?;
    let all = teams::all(on).await?.into_iter().filter(|team| seen.contains(&team.id));
    Ok(Grants { teams: all.map(|team| NamedTeam { id: team.id, name: team.name }).collect() })
}

async fn member_of(on: &mut Connection, team: &str, account: &str) -> Result<Option<teams::Member>, Denied> {
    Ok(teams::members(on, team).await?.into_iter().find(|member| member.id == account))
}

fn summary(team: &teams::Team, role: Role) -> Team {
    let settings = settings_of(team);
    Team {
        id: team.id.clone(),
        name: team.name.clone(),
        role,
        members_invite: settings.members_invite,
        share_links: !settings.no_share_links,
        user_names: !settings.no_user_names,
        default_view: settings.default_view,
        gpu_hours: settings.gpu_hours,
        members: Vec::new(),
        sources: Vec::new(),
    }
}

/// A member in the form of the API; logins from identity providers are for admins. A role unknown to this version gives
/// none.
fn shown(member: teams::Member, said: Option<&BTreeMap<String, BTreeSet<String>>>) -> Option<Member> {
    let admin = said.is_some();
    Some(Member {
        role: member.role.parse().ok()?,
        disabled: member.state != "active",
        logins: if admin { serde_json::from_str(&member.logins).unwrap_or_default() } else { Vec::new() },
        said: said.and_then(|said| said.get(&member.id)).into_iter().flatten().cloned().collect(),
        seen: member.seen.filter(|_| admin).map(|seen| seen / 1_000),
        id: member.id,
        name: member.name,
    })
}

fn taken(error: records::Error, name: &str) -> Denied {
    match error.is_taken() {
        true => Denied::conflict(format!("there is a team {name:?}; choose another name")),
        false => error.into(),
    }
}

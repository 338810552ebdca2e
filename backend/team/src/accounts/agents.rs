//! Machines that joined: listed, confirmed, renamed, labeled, revoked and removed.

use super::enrol::{check_name, name_of_host, need_room};
use super::labels::{check_labels, json, labels_of};
use super::watchers::Ends;
use super::{Accounts, DAY, Denied, Done, LinkDenied, Principal};
use records::sources::Source;
use records::{Change, Connection, alerts, enrolments, eras, keys, notes, run_edits, sources, teams};
use shared::role::Role;
use shared::session::{Agent, AgentChange};
use std::collections::{HashMap, HashSet};

/// Time for which the old name of a machine still finds it.
const ALIAS: i64 = 90 * DAY;

impl Accounts {
    /// The machines that joined by a team's join keys, by name. Their state is `pending`, `revoked` or `active`.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn agents(&self, by: &Principal, team: &str) -> Result<Vec<Agent>, Denied> {
        let mut on = self.read().await?;
        let team = self.team(&mut on, by, team, Role::Admin).await?;
        let pending: HashSet<String> = enrolments::pending(&mut on).await?.into_iter().collect();
        let keys: HashMap<String, String> = keys::of_agents(&mut on).await?.into_iter().collect();
        let all = sources::list(&mut on, Some(&team.id)).await?.into_iter().filter(|source| source.state != "own");
        Ok(all.map(|source| shown(source, &pending, &keys)).collect())
    }

    /// Renames or labels a machine.
    ///
    /// # Errors
    /// [`Denied`]; [`Denied::Conflict`] when the name is taken.
    pub async fn change(&self, by: &Principal, team: &str, word: &str, wanted: &AgentChange) -> Result<Agent, Denied> {
        let now = self.now();
        let mut change = self.begin_change().await?;
        let source = self.agent_of(&mut change, by, team, word).await?;
        if let Some(name) = wanted.name.as_ref().filter(|name| **name != source.name) {
            check_name(name)?;
            let other = sources::find(&mut change, name, now).await?.is_some_and(|other| other.id != source.id);
            if other {
                return Err(Denied::conflict(format!(
                    "the machine name {name:?} is or was recently in use; choose another name"
                )));
            }
            sources::rename(&mut change, &source.id, &source.name, name, now + ALIAS).await?;
            let (was, is) = (Some(source.name.clone()), Some(name.clone()));
            let done = Done { action: "agent.rename", team: Some(&source.team), object: name, before: was, after: is };
            self.audit(&mut change, by, done).await?;
        }
        if let Some(labels) = &wanted.labels {
            check_labels(labels)?;
            sources::set_labels(&mut change, &source.id, &json(labels)).await?;
            let (was, is) = (Some(source.labels.clone()), Some(json(labels)));
            let done =
                Done { action: "agent.label", team: Some(&source.team), object: &source.name, before: was, after: is };
            self.audit(&mut change, by, done).await?;
        }
        let agent = self.agent_now(&mut change, &source.id).await?;
        change.commit().await?;
        self.sources_have_changed();
        Ok(agent)
    }

    /// Confirms a pending machine: it gets its key with its next request.
    ///
    /// # Errors
    /// [`Denied`]; [`Denied::Conflict`] when it is not pending.
    pub async fn approve(&self, by: &Principal, team: &str, word: &str) -> Result<Agent, Denied> {
        let mut change = self.begin_change().await?;
        let source = self.agent_of(&mut change, by, team, word).await?;
        if source.state == "revoked" {
            return Err(Denied::conflict("this machine was revoked; restore it with watchglass agents join --as NAME"));
        }
        if enrolments::approve(&mut change, &source.id).await? == 0 {
            return Err(Denied::conflict("this machine does not wait for approval"));
        }
        sources::set_state(&mut change, &source.id, "active").await?;
        let done = Done { action: "agent.approve", team: Some(&source.team), object: &source.name, ..Done::default() };
        self.audit(&mut change, by, done).await?;
        let agent = self.agent_now(&mut change, &source.id).await?;
        change.commit().await?;
        self.sources_have_changed();
        Ok(agent)
    }

    /// Revokes a machine's key; its connection closes within a second, and its samples stay.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn revoke(&self, by: &Principal, team: &str, word: &str) -> Result<Agent, Denied> {
        let now = self.now();
        let mut change = self.begin_change().await?;
        let source = self.agent_of(&mut change, by, team, word).await?;
        keys::end_of_source(&mut change, &source.id, now, "revoked").await?;
        sources::set_state(&mut change, &source.id, "revoked").await?;
        let done = Done { action: "agent.revoke", team: Some(&source.team), object: &source.name, ..Done::default() };
        self.audit(&mut change, by, done).await?;
        let agent = self.agent_now(&mut change, &source.id).await?;
        change.commit().await?;
        self.0.links.end(Ends::AllOf(source.id, None), LinkDenied::Revoked);
        self.sources_have_changed();
        Ok(agent)
    }

    /// Removes a machine for good: its key is revoked, its id is never reused, and its samples are deleted. Returns the
    /// id.
    ///
    /// # Errors
    /// [`Denied::Forbidden`] without hub admin rights.
    pub async fn remove(&self, by: &Principal, word: &str) -> Result<String, Denied> {
        self.need_hub_admin(by)?;
        let now = self.now();
        let mut change = self.begin_change().await?;
        let source = sources::find(&mut change, word, now).await?.ok_or(Denied::Unknown)?;
        if source.state == "own" && source.host.as_ref() == Some(&source.id) {
            return Err(Denied::conflict("this is the hub's own machine; start the hub with --no-local instead"));
        }
        keys::end_of_source(&mut change, &source.id, now, "removed").await?;
        keys::source_removed(&mut change, &source.id).await?;
        eras::erase(&mut change, &source.id, 0, -1).await?;
        sources::remove(&mut change, &source.id).await?;
        alerts::remove_source(&mut change, &source.id).await?;
        notes::remove_of(&mut change, &source.id, None).await?;
        run_edits::forget_used_of(&mut change, &source.id).await?;
        let done = Done { action: "source.remove", team: Some(&source.team), object: &source.name, ..Done::default() };
        self.audit(&mut change, by, done).await?;
        change.commit().await?;
        self.0.links.end(Ends::AllOf(source.id.clone(), None), LinkDenied::Unknown);
        self.sources_have_changed();
        Ok(source.id)
    }

    /// The id of a source by its id, its name, or a name that it had within 90 days.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn find(&self, word: &str) -> Result<Option<String>, Denied> {
        let mut on = self.read().await?;
        Ok(sources::find(&mut on, word, self.now()).await?.map(|source| source.id))
    }

    /// Adds the hub's own machine to the first team; its id is its host name.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn own_machine(&self, host: &str) -> Result<(), Denied> {
        if sources::get(&mut *self.read().await?, host).await?.is_some() {
            return Ok(());
        }
        let mut change = self.begin_change().await?;
        if sources::get(&mut change, host).await?.is_some() {
            return Ok(());
        }
        self.add_own(&mut change, (host, host), host).await?;
        change.commit().await?;
        self.sources_have_changed();
        Ok(())
    }

    /// Adds a machine that an endpoint tells the hub of under this host name, beside the hub's own machine. A removed one
    /// is not added again.
    ///
    /// # Errors
    /// [`Denied::Unavailable`], [`Denied::Conflict`] above the maximum number of machines.
    pub async fn found_machine(&self, id: &str, host: &str) -> Result<(), Denied> {
        let mut on = self.read().await?;
        if sources::get(&mut on, id).await?.is_some() || eras::removed(&mut on).await?.iter().any(|one| one == id) {
            return Ok(());
        }
        drop(on);
        let mut change = self.begin_change().await?;
        if sources::get(&mut change, id).await?.is_some() {
            return Ok(());
        }
        need_room(&mut change).await?;
        self.add_own(&mut change, (id, &name_of_host(host)), host).await?;
        change.commit().await?;
        self.sources_have_changed();
        Ok(())
    }

    /// Adds a machine without an agent to the first team.
    async fn add_own(&self, change: &mut Change, (id, wanted): (&str, &str), host: &str) -> Result<(), Denied> {
        let team = self.named_team(change, Some(super::MAIN_TEAM)).await?;
        let source = Source {
            id: id.into(),
            team: team.id,
            name: self.free_name(change, wanted).await?,
            labels: "{}".into(),
            state: "own".into(),
            ephemeral: false,
            by_name: None,
            machine: None,
            links: "[]".into(),
            host: Some(host.into()),
            platform: None,
            version: None,
            facts: None,
            first_seen: self.now(),
            last_seen: None,
        };
        Ok(sources::add(change, &source).await?)
    }

    /// All teams that the principal sees, by name.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn teams(&self, by: &Principal) -> Result<Vec<shared::session::TeamRole>, Denied> {
        let all = teams::all(&mut *self.read().await?).await?.into_iter();
        let seen = all.filter_map(|team| {
            Some(shared::session::TeamRole { role: by.role_in(&team.id)?, id: team.id, name: team.name })
        });
        Ok(seen.collect())
    }

    /// A machine of a team by its id, its name or a former name, if the principal is admin there.
    async fn agent_of(&self, on: &mut Connection, by: &Principal, team: &str, word: &str) -> Result<Source, Denied> {
        let team = self.team(on, by, team, Role::Admin).await?;
        let found = sources::find(on, word, self.now()).await?;
        found.filter(|source| source.team == team.id && source.state != "own").ok_or(Denied::Unknown)
    }

    async fn agent_now(&self, on: &mut Connection, id: &str) -> Result<Agent, Denied> {
        let source = sources::get(on, id).await?.ok_or(Denied::Unknown)?;
        let pending: HashSet<String> = enrolments::pending(on).await?.into_iter().collect();
        let keys: HashMap<String, String> = keys::of_agents(on).await?.into_iter().collect();
        Ok(shown(source, &pending, &keys))
    }
}

fn shown(source: Source, pending: &HashSet<String>, keys: &HashMap<String, String>) -> Agent {
    let waits = source.state != "revoked" && (source.state == "pending" || pending.contains(&source.id));
    Agent {
        labels: labels_of(&source),
        key: keys.get(&source.id).cloned(),
        state: if waits { "pending".into() } else { source.state },
        id: source.id,
        name: source.name,
        team: source.team,
        since: None,
        host: source.host,
        platform: source.platform,
        version: source.version,
        joined: source.first_seen / 1_000,
        seen: source.last_seen.map(|seen| seen / 1_000),
    }
}

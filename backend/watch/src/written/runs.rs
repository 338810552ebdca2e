//! Changes and deletions of runs, with the rights to them.
//!
//! The rights are those in the team of the run's machines. Its maker is the member whose logins have the user of its
//! processes. Makers and admins change and delete it; a run without a known maker is changed by any member.

use super::WrittenRegistry;
use crate::alerts::{AlertRegistry, maker};
use jobs::runs::{DeletedUse, PlacedRun, RunEdit, RunEdits};
use records::run_edits::{self, RunEditRow};
use records::{Connection, notes, sources, teams};
use shared::answer::runs::RunRights;
use shared::json::Seconds;
use shared::role::{KeyScope, Role};
use shared::run::{About, RunEdited};
use shared::run_change::RunChange;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use team::accounts::{Denied, Principal, logins, random_id};
use tokio::sync::watch;

/// Maximum number of changed runs of a team.
const MAX_OF_TEAM: i64 = 20_000;

/// Maximum number of changed runs of all teams.
const MAX_RUNS: i64 = 200_000;

/// Maximum length of the old and of the new names in the audit log, bytes.
const MAX_AUDITED_BYTES: usize = 4 << 10;

/// Interval of the checks whether another hub has changed a run.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// The change of a row; None if this version cannot read it.
fn edit_of(row: RunEditRow, has_teams: bool) -> Option<RunEdit> {
    Some(RunEdit {
        machines: serde_json::from_str(&row.machines).ok()?,
        names: serde_json::from_str(&row.names).ok()?,
        edited: RunEdited { version: u64::try_from(row.version).ok()?, by: row.maker, at: Seconds(row.updated) },
        span: (row.began, row.ended),
        deleted: row.deleted,
        used: row.used.and_then(|text| serde_json::from_str(&text).ok()).map(Arc::new),
        team: has_teams.then_some(row.team),
        run: row.run,
    })
}

/// A text for the audit log.
fn audited(names: &RunChange) -> String {
    let mut text = serde_json::to_string(names).expect("texts only");
    text.truncate(text.floor_char_boundary(MAX_AUDITED_BYTES));
    text
}

/// The names that a change replaces.
fn replaced(about: &About, change: &RunChange) -> RunChange {
    let old = |new: &Option<String>, old: &Option<String>| new.as_ref().map(|_| old.clone().unwrap_or_default());
    RunChange {
        name: old(&change.name, &about.name),
        group: old(&change.group, &about.group),
        job_type: old(&change.job_type, &about.job_type),
        notes: old(&change.notes, &about.notes),
        tags: change.tags.as_ref().map(|_| about.tags.clone()),
        version: None,
    }
}

/// The row about a run, if somebody has changed it, and one for the next change of it.
struct Rows {
    old: Option<RunEditRow>,
    new: RunEditRow,
}

impl WrittenRegistry {
    /// The changes of all runs; None without a database.
    async fn run_edits(&self) -> Result<Option<((i64, i64), Vec<RunEditRow>)>, Denied> {
        let Some(records) = self.0.there().await? else { return Ok(None) };
        let mut on = records.read().await?;
        let state = run_edits::state(&mut on).await?;
        Ok(Some((state, run_edits::all(&mut on, MAX_RUNS).await?)))
    }

    /// Reads the changes of all runs again; returns the state of the table.
    ///
    /// # Errors
    /// [`Denied::Unavailable`]; then the known changes stay.
    pub async fn refresh(&self, edits: &RunEdits) -> Result<(i64, i64), Denied> {
        let Some((state, rows)) = self.run_edits().await? else { return Ok((0, 0)) };
        let has_teams = self.has_teams();
        edits.set(rows.into_iter().filter_map(|row| edit_of(row, has_teams)).collect());
        Ok(state)
    }

    /// The teams of the machines of a run, by id.
    async fn teams_of(
        &self,
        on: &mut Connection,
        machines: &BTreeMap<String, Option<i64>>,
    ) -> Result<Vec<String>, Denied> {
        if !self.has_teams() {
            return Ok(teams::all(on).await?.into_iter().take(1).map(|team| team.id).collect());
        }
        let mut found = BTreeSet::new();
        for key in machines.keys() {
            found.insert(sources::get(on, key).await?.ok_or(Denied::Unknown)?.team);
        }
        Ok(found.into_iter().collect())
    }

    /// The principal's rights to a run.
    ///
    /// # Errors
    /// [`Denied`]: its machines are unknown.
    pub async fn run_rights(&self, by: &Principal, placed: &PlacedRun) -> Result<RunRights, Denied> {
        if !self.has_teams() {
            return Ok(RunRights { change: by.hub_admin, delete: by.hub_admin });
        }
        let Some(records) = self.0.there().await? else { return Ok(RunRights::default()) };
        let mut on = records.read().await?;
        let teams = self.teams_of(&mut on, &placed.machines).await?;
        rights_in(&mut on, by, &teams, placed.run.about.user.as_deref()).await
    }

    /// Changes the names of a run.
    ///
    /// # Errors
    /// [`Denied`]: the principal has no right to it, or somebody else was faster.
    pub async fn change_run(&self, by: &Principal, placed: &PlacedRun, wanted: RunChange) -> Result<(), Denied> {
        let wanted = wanted.checked().map_err(Denied::Invalid)?;
        let mut change = self.0.begin().await?;
        let teams = self.teams_of(&mut change, &placed.machines).await?;
        if !rights_in(&mut change, by, &teams, placed.run.about.user.as_deref()).await?.change {
            return Err(missing(by, "change"));
        }
        let Rows { old, mut new } = self.rows(&mut change, by, placed, &teams).await?;
        let version = old.as_ref().map_or(0, |old| old.version);
        if wanted.version.is_some_and(|wanted| i64::try_from(wanted).ok() != Some(version)) {
            return Err(changed_meanwhile());
        }
        let before: RunChange = serde_json::from_str(&new.names).unwrap_or_default();
        let (was, is) = (audited(&replaced(&placed.run.about, &wanted)), audited(&wanted));
        new.names = serde_json::to_string(&before.then(wanted)).expect("texts only");
        self.put(&mut change, old.is_some(), &new).await?;
        self.0.audit(&mut change, by, ("run.change", &new.team), &placed.run.id, (Some(was), Some(is))).await?;
        change.commit().await?;
        self.0.has_changed();
        Ok(())
    }

    /// Deletes a run that has ended; returns the last begin of its processes, milliseconds since the Unix epoch. Its use
    /// stays in the usage of its team: a limit of a team is no matter of its members.
    ///
    /// # Errors
    /// [`Denied`]: the principal has no right to it, or it still runs.
    pub async fn delete_run(&self, by: &Principal, placed: &PlacedRun, used: &DeletedUse) -> Result<i64, Denied> {
        let mut change = self.0.begin().await?;
        let teams = self.teams_of(&mut change, &placed.machines).await?;
        if !rights_in(&mut change, by, &teams, placed.run.about.user.as_deref()).await?.delete {
            return Err(missing(by, "delete"));
        }
        let Some(ended) = placed.run.ended else {
            return Err(Denied::Conflict("this run has not ended; stop the job first".into()));
        };
        let Rows { old, mut new } = self.rows(&mut change, by, placed, &teams).await?;
        new.deleted = Some(self.0.now());
        new.names = "{}".into();
        // Without GPU time nothing of it counts, so its user is forgotten.
        let counts = !used.days.is_empty();
        new.used = counts.then(|| serde_json::to_string(used).expect("texts and numbers only"));
        for machine in placed.machines.keys() {
            notes::remove_of(&mut change, machine, Some(&placed.run.id)).await?;
        }
        self.put(&mut change, old.is_some(), &new).await?;
        let was = RunChange { name: Some(placed.run.about.name.clone().unwrap_or_default()), ..RunChange::default() };
        self.0.audit(&mut change, by, ("run.delete", &new.team), &placed.run.id, (Some(audited(&was)), None)).await?;
        change.commit().await?;
        self.0.has_changed();
        Ok(ended.max(self.0.now()))
    }

    /// The row about a run, and one for the next change.
    async fn rows(
        &self,
        on: &mut Connection,
        by: &Principal,
        placed: &PlacedRun,
        teams: &[String],
    ) -> Result<Rows, Denied> {
        let team = teams.first().ok_or(Denied::Unknown)?;
        let run = placed.run.machine_id();
        let mut machines = placed.machines.clone();
        let own = |row: &RunEditRow| {
            let known: BTreeMap<String, Option<i64>> = serde_json::from_str(&row.machines).unwrap_or_default();
            row.deleted.is_none() && known.iter().any(|(key, job)| placed.machines.get(key) == Some(job))
        };
        let old = run_edits::list(on, run).await?.into_iter().find(own);
        if let Some(old) = &old {
            machines.extend(serde_json::from_str::<BTreeMap<_, _>>(&old.machines).unwrap_or_default());
        } else if run_edits::count(on, team).await? >= MAX_OF_TEAM {
            return Err(Denied::Conflict(format!("a team has at most {MAX_OF_TEAM} changed runs")));
        }
        let new = RunEditRow {
            id: old.as_ref().map_or_else(random_id, |old| old.id.clone()),
            run: run.into(),
            team: team.clone(),
            machines: serde_json::to_string(&machines).expect("texts and numbers only"),
            began: placed.run.began,
            ended: placed.run.ended,
            names: old.as_ref().map_or_else(|| "{}".into(), |old| old.names.clone()),
            maker: maker(by),
            version: old.as_ref().map_or(0, |old| old.version) + 1,
            updated: self.0.now(),
            deleted: None,
            used: None,
        };
        Ok(Rows { old, new })
    }

    async fn put(&self, on: &mut Connection, is_known: bool, row: &RunEditRow) -> Result<(), Denied> {
        if !is_known {
            return Ok(run_edits::add(on, row).await?);
        }
        // Two hubs on one PostgreSQL may have read the same version.
        if run_edits::set(on, row).await? { Ok(()) } else { Err(changed_meanwhile()) }
    }
}

/// Error: the run has a newer version than the one that the change is about.
fn changed_meanwhile() -> Denied {
    Denied::Conflict("somebody else has changed this run meanwhile; load it again and repeat the change".into())
}

/// Error: the principal may not do this with a run.
fn missing(by: &Principal, what: &str) -> Denied {
    if !by.allows(KeyScope::RunsWrite) {
        return Denied::Forbidden(format!("this needs a key with the scope {}", KeyScope::RunsWrite));
    }
    Denied::Forbidden(format!("you cannot {what} this run; its maker and admins of its team can"))
}

/// The principal's rights to a run of a user on machines of these teams.
async fn rights_in(
    on: &mut Connection,
    by: &Principal,
    teams: &[String],
    user: Option<&str>,
) -> Result<RunRights, Denied> {
    let is_member = !teams.is_empty() && teams.iter().all(|team| by.may(team, Role::Member));
    if !is_member || !by.allows(KeyScope::RunsWrite) {
        return Ok(RunRights::default());
    }
    if teams.iter().all(|team| by.may(team, Role::Admin)) {
        return Ok(RunRights { change: true, delete: true });
    }
    let (mut is_own, mut has_maker) = (false, false);
    if let Some(user) = user {
        let said = logins::list_logins(on, None).await?;
        for team in teams {
            for member in teams::members(on, team).await? {
                let given: BTreeSet<String> = serde_json::from_str(&member.logins).unwrap_or_default();
                if given.contains(user) || said.get(&member.id).is_some_and(|said| said.contains(user)) {
                    has_maker = true;
                    is_own |= by.owner() == Some(&member.id);
                }
            }
        }
    }
    Ok(RunRights { change: is_own || !has_maker, delete: is_own })
}

/// Keeps the changes of runs current, also those of other hubs, until `stop` becomes true.
pub async fn follow_run_edits(alerts: AlertRegistry, edits: Arc<RunEdits>, mut stop: watch::Receiver<bool>) {
    let (written, mut changed, mut known) = (WrittenRegistry::beside(&alerts), alerts.changed(), None);
    let mut due = tokio::time::interval(LOOK_INTERVAL);
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = due.tick() => {}
            Ok(()) = changed.changed() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        let state = match alerts.there().await {
            Ok(Some(records)) => match records.read().await {
                Ok(mut on) => run_edits::state(&mut on).await.ok(),
                Err(_) => None,
            },
            _ => None,
        };
        // While the database is unreachable, the known changes apply.
        if state.is_some()
            && state != known
            && let Ok(read) = written.refresh(&edits).await
        {
            known = Some(read);
        }
    }
}

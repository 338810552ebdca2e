//! Join keys, by which a machine becomes a source. Ending one affects no machine that has joined.

use super::key::{self, KeyKind, end_of};
use super::labels::{check_labels, json};
use super::service_keys::row;
use super::{Accounts, DAY, Denied, Done, Principal};
use records::keys::Key;
use records::{Change, keys, sources, teams};
use serde::{Deserialize, Serialize};
use shared::role::{KeyScope, Role};
use shared::secret::Secret;
use shared::session::{Join, NewJoin};
use std::collections::BTreeMap;

/// Default lifetime of a join key.
const DEFAULT_LIFETIME: i64 = DAY;
/// Maximum number of valid join keys of a team.
const JOINS: usize = 200;
/// Name of the join key that the hub prints while it has no account.
const PRINTED: &str = "printed at the start";

/// A new key.
#[derive(Debug)]
pub struct NewKey {
    /// Its id, by which it can be ended.
    pub id: String,
    /// The key itself, returned once.
    pub key: Secret,
    /// Its expiry, milliseconds since the Unix epoch; none: never.
    pub ends: Option<i64>,
}

/// Settings of a join key for its machines.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct JoinSettings {
    pub labels: BTreeMap<String, String>,
    pub by_name: bool,
    pub ephemeral: bool,
    pub approve: bool,
    /// The id of the source that it is bound to.
    pub source: Option<String>,
}

impl Accounts {
    /// Creates a join key for a team.
    ///
    /// # Errors
    /// [`Denied`]; [`Denied::Again`] after an old sign-in.
    pub async fn new_join(&self, by: &Principal, team: &str, wanted: &NewJoin) -> Result<NewKey, Denied> {
        check_labels(&wanted.labels)?;
        if wanted.uses == Some(0) {
            return Err(Denied::invalid("a join key is for at least one machine; leave uses out for any number"));
        }
        let ends = end_of(wanted.expires.as_deref(), Some(DEFAULT_LIFETIME), self.now())?;
        let mut change = self.begin_change().await?;
        let team = self.team(&mut change, by, team, Role::Admin).await?;
        self.need_fresh(by)?;
        if keys::list(&mut change, Some(&team.id), KeyKind::Join.letter(), self.now()).await?.len() >= JOINS {
            return Err(Denied::conflict(format!("a team has at most {JOINS} join keys; revoke one first")));
        }
        let source = match &wanted.source {
            Some(word) => {
                let found = sources::find(&mut change, word, self.now()).await?;
                let found = found.filter(|source| source.team == team.id && source.state != "own");
                Some(found.ok_or(Denied::Unknown)?.id)
            }
            None => None,
        };
        // A key for a single machine has one use.
        let uses = wanted.uses.or(source.is_some().then_some(1));
        let settings = JoinSettings {
            labels: wanted.labels.clone(),
            by_name: wanted.by_name,
            ephemeral: wanted.ephemeral,
            approve: wanted.approve,
            source,
        };
        let made = self.add_join(&mut change, &team, "", uses, ends, &settings).await?;
        let done = Done {
            action: "join.add",
            team: Some(&team.id),
            object: &made.id,
            after: Some(json(&settings)),
            ..Done::default()
        };
        self.audit(&mut change, by, done).await?;
        change.commit().await?;
        Ok(made)
    }

    /// The join key that the hub prints while it has no account: any number of machines within 24 h, into the first
    /// team. It replaces the one before. None when there is an account.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn printed_join(&self) -> Result<Option<Secret>, Denied> {
        let now = self.now();
        let mut on = self.read().await?;
        let printed = |key: &keys::Key| key.name == PRINTED;
        if records::accounts::count(&mut on).await? > 0
            && !keys::list(&mut on, None, KeyKind::Join.letter(), now).await?.iter().any(printed)
        {
            return Ok(None);
        }
        drop(on);
        let mut change = self.begin_change().await?;
        let team = teams::find(&mut change, super::MAIN_TEAM).await?;
        let team = match team {
            Some(team) => team,
            None => teams::all(&mut change).await?.into_iter().next().ok_or(Denied::Unknown)?,
        };
        for old in keys::list(&mut change, None, KeyKind::Join.letter(), now).await? {
            if printed(&old) {
                keys::end(&mut change, &old.id, now, "ended").await?;
            }
        }
        if records::accounts::count(&mut change).await? > 0 {
            change.commit().await?;
            return Ok(None);
        }
        let made = self
            .add_join(&mut change, &team, PRINTED, None, Some(now + DEFAULT_LIFETIME), &JoinSettings::default())
            .await?;
        change.commit().await?;
        Ok(Some(made.key))
    }

    async fn add_join(
        &self,
        change: &mut Change,
        team: &teams::Team,
        name: &str,
        uses: Option<u32>,
        ends: Option<i64>,
        settings: &JoinSettings,
    ) -> Result<NewKey, Denied> {
        let minted = key::mint(KeyKind::Join);
        let row = Key {
            name: name.into(),
            scopes: KeyScope::AgentJoin.text().into(),
            settings: json(settings),
            uses: uses.map(i64::from),
            ends,
            ..row(&minted, KeyKind::Join, &team.id, self.now())
        };
        keys::add(change, &row).await?;
        Ok(NewKey { id: minted.id, key: minted.text, ends })
    }

    /// The valid join keys of a team, newest first.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn joins(&self, by: &Principal, team: &str) -> Result<Vec<Join>, Denied> {
        let mut on = self.read().await?;
        let team = self.team(&mut on, by, team, Role::Admin).await?;
        let rows = keys::list(&mut on, Some(&team.id), KeyKind::Join.letter(), self.now()).await?;
        let shown = rows.into_iter().filter(|key| key.uses != Some(0)).map(|key| {
            let settings: JoinSettings = serde_json::from_str(&key.settings).unwrap_or_default();
            Join {
                id: key.id,
                name: key.name,
                made: key.made / 1_000,
                ends: key.ends.map(|ends| ends / 1_000),
                left: key.uses.map(|uses| u32::try_from(uses).unwrap_or(0)),
                used: u32::try_from(key.joined).unwrap_or(u32::MAX),
                labels: settings.labels,
                by_name: settings.by_name,
                ephemeral: settings.ephemeral,
                approve: settings.approve,
                source: settings.source,
            }
        });
        Ok(shown.collect())
    }

    /// Ends a join key. Machines that joined by it stay.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn end_join(&self, by: &Principal, team: &str, id: &str) -> Result<(), Denied> {
        self.end_key(by, team, id, KeyKind::Join).await
    }
}

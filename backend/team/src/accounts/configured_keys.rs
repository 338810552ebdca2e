//! Join keys of the configuration, `[[agents.join]]`. Each is in a file, so that automated setups need no printed line.
//! It is valid as long as it is configured.

use super::join::JoinSettings;
use super::key::{self, KeyKind};
use super::labels::{check_labels, json};
use super::service_keys::row;
use super::{Accounts, Denied, Done, MAIN_TEAM, Principal};
use records::keys::{CONFIGURED, Key};
use records::{keys, teams};
use shared::role::KeyScope;
use shared::secret::Secret;
use std::collections::BTreeMap;

/// A configured join key.
pub struct ConfiguredKey<'a> {
    /// Its configured name.
    pub name: &'a str,
    /// The team of its machines, by name; none: the first one.
    pub team: Option<&'a str>,
    /// Labels of its machines.
    pub labels: &'a BTreeMap<String, String>,
    /// The key from its file.
    pub key: Secret,
}

/// The text of a new join key, without a row in the database.
pub fn new_join_key() -> Secret {
    key::mint(KeyKind::Join).text
}

impl Accounts {
    /// Registers these join keys, and ends those of an earlier configuration. `by` is the user who started the hub.
    ///
    /// # Errors
    /// A sentence: a file without a join key, a key of another team, a team that does not exist, invalid labels.
    pub async fn register_configured_joins(&self, by: &Principal, all: &[ConfiguredKey<'_>]) -> Result<(), Denied> {
        let now = self.now();
        let is_configured = |key: &Key| key.name.starts_with(CONFIGURED);
        let known = keys::list(&mut *self.read().await?, None, KeyKind::Join.letter(), now).await?;
        if all.is_empty() && !known.iter().any(is_configured) {
            return Ok(());
        }
        let mut change = self.begin_change().await?;
        let mut wanted = Vec::new();
        for configured in all {
            let denied = |why: String| Denied::invalid(format!("agents.join {:?}: {why}", configured.name));
            check_labels(configured.labels).map_err(|why| denied(why.to_string()))?;
            let team = configured.team.unwrap_or(MAIN_TEAM);
            let team = teams::find(&mut change, team).await?;
            let team =
                team.ok_or_else(|| denied(format!("there is no team {:?}", configured.team.unwrap_or(MAIN_TEAM))))?;
            let claimed = key::read(configured.key.reveal()).filter(|claimed| claimed.kind == KeyKind::Join);
            let other = || denied("its file has no join key of this hub; remove it, and the hub creates one".into());
            let claimed = claimed.ok_or_else(other)?;
            wanted.push(claimed.id.to_string());
            let settings = JoinSettings { labels: configured.labels.clone(), ..JoinSettings::default() };
            match keys::get(&mut change, claimed.id).await? {
                Some(known) if known.hash != claimed.hash || known.kind != KeyKind::Join.letter() => {
                    return Err(other());
                }
                Some(known) if known.team != team.id => {
                    return Err(denied(
                        "its key belongs to another team; remove its file, and the hub creates one".into(),
                    ));
                }
                Some(known) if known.ended.is_some() => tracing::warn!(
                    "agents.join {:?}: its key was ended, and nobody joins by it; remove its file, and the hub makes one",
                    configured.name
                ),
                Some(known) if is_configured(&known) => {
                    keys::set_settings(&mut change, &known.id, &json(&settings)).await?;
                }
                // A key created by an admin has its own settings.
                Some(_) => {}
                None => {
                    let minted = key::Minted { id: claimed.id.into(), text: Secret::new(""), hash: claimed.hash };
                    let row = Key {
                        name: format!("{CONFIGURED}{}", configured.name),
                        scopes: KeyScope::AgentJoin.text().into(),
                        settings: json(&settings),
                        ..row(&minted, KeyKind::Join, &team.id, now)
                    };
                    keys::add(&mut change, &row).await?;
                    let done = Done {
                        action: "join.add",
                        team: Some(&team.id),
                        object: &row.id,
                        after: Some(json(&settings)),
                        ..Done::default()
                    };
                    self.audit(&mut change, by, done).await?;
                }
            }
        }
        for old in keys::list(&mut change, None, KeyKind::Join.letter(), now).await? {
            if is_configured(&old) && !wanted.contains(&old.id) {
                keys::end(&mut change, &old.id, now, "ended").await?;
                let done = Done { action: "key.end", team: Some(&old.team), object: &old.id, ..Done::default() };
                self.audit(&mut change, by, done).await?;
            }
        }
        Ok(change.commit().await?)
    }
}

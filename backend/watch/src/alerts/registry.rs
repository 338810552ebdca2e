//! Queries and changes of rules, silences, channels and alerts.

use super::sealing::SealingKey;
use notify::address::Allowed;
use parking_lot::RwLock;
use records::teams::{self, Team};
use records::{Change, Connection, OpenError, Records, alerts, audit, channels, outbox, run_edits, silences};
use shared::alert::{Alert, Rule};
use shared::role::{KeyScope, Role};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use stream::clock::Clock;
use system::user;
use team::accounts::{Denied, Principal, Who, random_id};
use tokio::sync::{Mutex, watch};

/// Retention of ended alerts, milliseconds: 400 days.
const RETENTION_MS: i64 = 400 * 86_400_000;

/// Time for which a deleted run is remembered, milliseconds: ten years, longer than machines keep its samples.
const DELETED_KEPT: i64 = 3_650 * 86_400_000;

/// Retention of finished notices, milliseconds: 30 days.
const SENT_KEPT: i64 = 30 * 86_400_000;

/// Interval at which expired rows are removed, milliseconds.
const TIDY_EVERY: i64 = 3_600_000;

/// The database of a server without accounts, in its data folder.
pub const OWN_FILE: &str = "watchglass.db";

/// The team of a server without accounts.
const OWN_TEAM: &str = "main";

/// Texts about the sending server in notices, and the rules without a row.
#[derive(Clone, Debug, Default)]
pub struct AlertRegistryParts {
    /// The public address of the page; none: notices contain the host's name instead.
    pub public_url: Option<String>,
    /// The host's name.
    pub host: String,
    /// Whether notices contain the name of their team.
    pub names_teams: bool,
    /// Configured and built-in rules, with their ids.
    pub fixed: Vec<Rule>,
    /// Allowed targets of notices besides public addresses.
    pub allowed: Allowed,
    /// Whether there is a server for e-mail.
    pub mail: bool,
    /// Retention of ended runs, milliseconds, and so of the use of deleted ones; none: for ever.
    pub runs_kept: Option<i64>,
}

/// Rules, silences, channels and alerts. Cheap to clone.
#[derive(Clone)]
pub struct AlertRegistry(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    place: RowStorage,
    opened: Mutex<Option<Records>>,
    key_file: Option<PathBuf>,
    key: Mutex<Option<SealingKey>>,
    clock: Arc<dyn Clock>,
    pub about: AlertRegistryParts,
    changed: watch::Sender<u64>,
    mail: watch::Sender<u64>,
    tidy_at: AtomicI64,
    /// Alerts about to fire. They have no rows, because most would never be read.
    pending: RwLock<Vec<PendingAlert>>,
    figures: parking_lot::Mutex<AlertFigures>,
    /// Problems of rules, by their ids, in sentences; those of the server have an empty id.
    troubles: RwLock<BTreeMap<String, Vec<String>>>,
}

/// Figures of alerts, for monitoring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlertFigures {
    /// Alerts that fire now, and alerts about to fire.
    pub firing: u64,
    #[allow(missing_docs, reason = "see firing")]
    pub pending: u64,
    /// Number of subjects that rules watch now.
    pub subjects: u64,
    /// Events and notices dropped because the queue was full while the database was unreachable.
    pub left_out: u64,
    /// Delivery attempts since the start: accepted ones, ones to be retried, and ones given up.
    pub taken: u64,
    #[allow(missing_docs, reason = "see taken")]
    pub tried: u64,
    #[allow(missing_docs, reason = "see taken")]
    pub given_up: u64,
    /// Time when the oldest waiting notice was written, milliseconds since the Unix epoch.
    pub oldest: Option<i64>,
}

/// An alert about to fire, with its team and its machine, both by id.
#[derive(Clone, Debug)]
pub struct PendingAlert {
    #[allow(missing_docs, reason = "None where there is one team alone")]
    pub team: Option<String>,
    #[allow(missing_docs, reason = "None where it is of no machine")]
    pub source: Option<String>,
    #[allow(missing_docs, reason = "see Alert")]
    pub alert: Alert,
}

/// Place of the rows.
enum RowStorage {
    /// In the database of a hub.
    Hub(Records),
    /// In a file of this machine alone, which is created with the first row.
    Own(PathBuf),
    /// In memory.
    Memory,
}

impl AlertRegistry {
    fn new(place: RowStorage, key_file: Option<PathBuf>, clock: Arc<dyn Clock>, about: AlertRegistryParts) -> Self {
        let opened = match &place {
            RowStorage::Hub(records) => Some(records.clone()),
            RowStorage::Own(_) | RowStorage::Memory => None,
        };
        AlertRegistry(Arc::new(Inner {
            place,
            opened: Mutex::new(opened),
            key_file,
            key: Mutex::default(),
            clock,
            about,
            changed: watch::Sender::new(0),
            mail: watch::Sender::new(0),
            tidy_at: AtomicI64::new(0),
            pending: RwLock::default(),
            figures: parking_lot::Mutex::default(),
            troubles: RwLock::default(),
        }))
    }

    /// An instance in the database of a hub. Secrets are sealed under the key in a file, which all hubs of the database
    /// share.
    pub fn of_hub(records: Records, key_file: PathBuf, clock: Arc<dyn Clock>, about: AlertRegistryParts) -> Self {
        Self::new(RowStorage::Hub(records), Some(key_file), clock, about)
    }

    /// An instance of a server without accounts, in a file that is created when the first row is written.
    pub fn of_own(file: PathBuf, key_file: PathBuf, clock: Arc<dyn Clock>, about: AlertRegistryParts) -> Self {
        Self::new(RowStorage::Own(file), Some(key_file), clock, about)
    }

    /// An instance that ends with the program.
    pub fn in_memory(clock: Arc<dyn Clock>, about: AlertRegistryParts) -> Self {
        Self::new(RowStorage::Memory, None, clock, about)
    }

    /// A number that grows when a rule, silence or channel is changed, or an alert is acknowledged.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }

    /// A number that grows when there is a notice to send.
    pub fn mail(&self) -> watch::Receiver<u64> {
        self.0.mail.subscribe()
    }

    /// Signals that there is a notice to send.
    pub fn has_mail(&self) {
        self.0.mail.send_modify(|count| *count += 1);
    }

    /// A number that changes with every change by people, here or on another hub; none without a database.
    pub(super) async fn generation(&self) -> Option<u64> {
        Some(self.there().await.ok()??.generation())
    }

    pub(crate) fn has_changed(&self) {
        self.0.changed.send_modify(|count| *count += 1);
    }

    /// Figures of alerts.
    pub fn figures(&self) -> AlertFigures {
        self.0.figures.lock().clone()
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut AlertFigures)) {
        change(&mut self.0.figures.lock());
    }

    /// Sets the alerts about to fire.
    pub fn set_pending(&self, pending: Vec<PendingAlert>) {
        *self.0.pending.write() = pending;
    }

    pub(super) fn pending(&self, fits: impl Fn(&PendingAlert) -> bool) -> Vec<Alert> {
        let pending = self.0.pending.read();
        pending.iter().filter(|one| fits(one)).map(|one| one.alert.clone()).collect()
    }

    /// Sets the problems of rules, by their ids, in sentences; those of the server have an empty id.
    pub fn set_troubles(&self, troubles: BTreeMap<String, Vec<String>>) {
        *self.0.troubles.write() = troubles;
    }

    pub(super) fn troubles(&self, of: &str) -> Vec<String> {
        self.0.troubles.read().get(of).cloned().unwrap_or_default()
    }

    /// Wall time, milliseconds since the Unix epoch.
    pub(crate) fn now(&self) -> i64 {
        self.0.clock.wall()
    }

    /// The database, if it exists.
    ///
    /// # Errors
    /// [`Denied::Unavailable`]: it cannot be opened; the reason is logged.
    pub async fn there(&self) -> Result<Option<Records>, Denied> {
        let mut opened = self.0.opened.lock().await;
        if opened.is_none()
            && let RowStorage::Own(file) = &self.0.place
            && file.exists()
        {
            *opened = Some(self.open().await?);
        }
        Ok(opened.clone())
    }

    /// The database, which is created if missing.
    ///
    /// # Errors
    /// As [`AlertRegistry::there`].
    pub async fn made(&self) -> Result<Records, Denied> {
        let mut opened = self.0.opened.lock().await;
        if let Some(records) = &*opened {
            return Ok(records.clone());
        }
        Ok(opened.insert(self.open().await?).clone())
    }

    async fn open(&self) -> Result<Records, Denied> {
        let opened = match &self.0.place {
            RowStorage::Hub(records) => return Ok(records.clone()),
            RowStorage::Own(file) => Records::open_file(file).await,
            RowStorage::Memory => Records::in_memory().await,
        };
        let records = opened.map_err(|error| {
            tracing::error!(%error, "the database of rules and alerts cannot be opened");
            match error {
                OpenError::Full { .. } => Denied::Full,
                _ => Denied::Unavailable,
            }
        })?;
        if !teams::all(&mut *records.read().await?).await?.is_empty() {
            return Ok(records);
        }
        let mut change = records.change().await?;
        if teams::all(&mut change).await?.is_empty() {
            teams::add(&mut change, &Team { id: random_id(), name: OWN_TEAM.into(), settings: "{}".into() }).await?;
        }
        change.commit().await?;
        Ok(records)
    }

    /// Begins a change; once an hour it also removes expired rows.
    pub(crate) async fn begin(&self) -> Result<Change, Denied> {
        let mut change = self.made().await?.change().await?;
        self.tidy(&mut change).await?;
        Ok(change)
    }

    /// Removes expired rows, once an hour: alerts and silences after 400 days, notices after 30, the use of deleted runs
    /// with the summaries of others.
    ///
    /// # Errors
    /// A statement failed.
    pub async fn tidy(&self, change: &mut Change) -> Result<(), Denied> {
        let now = self.now();
        if is_tidy(self.0.tidy_at.load(Ordering::Relaxed), now) {
            return Ok(());
        }
        alerts::forget(change, now - RETENTION_MS).await?;
        silences::forget(change, now - RETENTION_MS).await?;
        run_edits::forget(change, now - DELETED_KEPT).await?;
        if let Some(kept) = self.0.about.runs_kept {
            run_edits::forget_used(change, now - kept).await?;
        }
        outbox::forget(change, now - SENT_KEPT).await?;
        channels::forget_own(change).await?;
        alerts::forget_states(change, now - RETENTION_MS).await?;
        self.0.tidy_at.store(now + TIDY_EVERY, Ordering::Relaxed);
        Ok(())
    }

    /// The key that secrets are sealed under, if there is one.
    ///
    /// # Errors
    /// In a sentence: its file cannot be read.
    pub(super) async fn key(&self) -> Result<Option<SealingKey>, String> {
        let mut key = self.0.key.lock().await;
        if key.is_none()
            && let Some(file) = &self.0.key_file
        {
            *key = SealingKey::read(file).map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
        }
        Ok(key.clone())
    }

    /// The same; the key is created if missing.
    pub(super) async fn made_key(&self) -> Result<SealingKey, String> {
        if let Some(key) = self.key().await? {
            return Ok(key);
        }
        let mut key = self.0.key.lock().await;
        let made = match &self.0.key_file {
            Some(file) => {
                SealingKey::make(file).map_err(|error| format!("{} cannot be written: {error}", file.display()))?
            }
            None => SealingKey::fleeting(),
        };
        Ok(key.insert(made).clone())
    }

    /// The teams of the principal, or the named one, with at least this role.
    pub(super) async fn teams(
        &self,
        on: &mut Connection,
        by: &Principal,
        word: Option<&str>,
        role: Role,
    ) -> Result<Vec<Team>, Denied> {
        let mut own = teams::all(on).await?;
        own.retain(|team| {
            by.role_in(&team.id).is_some() && word.is_none_or(|word| team.id == word || team.name == word)
        });
        if word.is_some() && own.is_empty() {
            return Err(Denied::Unknown);
        }
        let named = word.is_some();
        own.retain(|team| by.may(&team.id, role));
        if own.is_empty() && named { Err(missing(role)) } else { Ok(own) }
    }

    /// The named team, else the only one of the principal, with at least this role.
    pub(super) async fn team(
        &self,
        on: &mut Connection,
        by: &Principal,
        word: Option<&str>,
        role: Role,
    ) -> Result<Team, Denied> {
        let own = self.teams(on, by, word, Role::Viewer).await?;
        match <[Team; 1]>::try_from(own) {
            Ok([team]) if by.may(&team.id, role) => Ok(team),
            Ok(_) => Err(missing(role)),
            Err(own) if own.is_empty() => {
                Err(Denied::Forbidden("you are in no team; ask an admin for an invitation".into()))
            }
            Err(_) => Err(Denied::Invalid("you are in several teams; choose one with ?team=NAME".into())),
        }
    }

    /// Writes an audit row in the transaction of the change.
    pub(crate) async fn audit(
        &self,
        on: &mut Connection,
        by: &Principal,
        (action, team): (&str, &str),
        object: &str,
        (before, after): (Option<String>, Option<String>),
    ) -> Result<(), Denied> {
        let entry = audit::AuditRow {
            id: 0,
            t: self.now(),
            who: by.name(),
            by: by.means(),
            network: by.network.text().into(),
            action: action.into(),
            team: Some(team.into()),
            object: object.into(),
            before,
            after,
            result: "ok".into(),
        };
        Ok(audit::add(on, &entry).await?)
    }
}

/// Whether expired rows were removed within an hour, with the time of the next removal. A clock that was set back would
/// else be waited for.
fn is_tidy(next: i64, now: i64) -> bool {
    (next - TIDY_EVERY..next).contains(&now)
}

/// Error: a role is missing.
pub(super) fn missing(role: Role) -> Denied {
    Denied::Forbidden(format!("this needs the team role {role}; ask an admin of the team"))
}

/// Requires a scope of a key.
pub(super) fn scoped(by: &Principal, scope: KeyScope) -> Result<(), Denied> {
    match by.allows(scope) {
        true => Ok(()),
        false => Err(Denied::Forbidden(format!("this needs a key with the scope {scope}"))),
    }
}

/// Name of a creator, for display.
pub fn maker(by: &Principal) -> String {
    match by.who {
        Who::Local { uid } => user::name_of(uid).unwrap_or_else(|| by.name()),
        _ => by.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expired_rows_are_removed_each_hour_also_after_the_clock_was_set_back() {
        let now = 1_800_000_000_000;
        let next = now + TIDY_EVERY;
        assert!(!is_tidy(0, now) && is_tidy(next, now) && is_tidy(next, next - 1) && !is_tidy(next, next));
        assert!(!is_tidy(next, now - 1));
    }
}

//! Cache of principals. A page sends many requests with the same session, and each has to be authorized. The result is
//! cached while no change was made, here or elsewhere.
//!
//! An entry is valid for the [generation](records::Records::generation) in which it was read, and only while the last
//! check for foreign changes is younger than [`CHECK_INTERVAL`]. So a revoked right is effective within a second.

use super::{Accounts, Denied, MINUTE, Network, Principal, random};
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Maximum age of the check for foreign changes: with the time of a check, below a second.
const CHECK_INTERVAL: Duration = Duration::from_millis(600);
/// Timeout of a check; after it the check counts as failed.
const CHECK_TIMEOUT: Duration = Duration::from_millis(300);
/// Interval of a hub's checks.
const LOOK_EVERY: Duration = Duration::from_millis(400);
/// Maximum age of an entry: marks of use are written at each authorization.
const MAX_AGE: i64 = MINUTE;
/// Time for which a cached principal may read while the database is unreachable. Only another hub that still reaches it
/// could revoke rights then.
const WITHOUT_DATABASE: Duration = Duration::from_secs(15 * 60);
/// Maximum number of entries.
const MAX_ENTRIES: usize = 20_000;

/// Key of an entry: a hash of the credential, never the credential itself.
pub(super) type KnownBy = [u8; 32];

/// The hash of a credential and its kind.
pub(super) fn known(kind: &str, text: &str) -> KnownBy {
    random::hash(&format!("{kind} {text}"))
}

#[derive(Debug)]
struct CachedPrincipal {
    principal: Principal,
    generation: u64,
    /// Expiry, wall clock.
    until: i64,
    /// Expiry, steady clock: setting the wall clock back extends nothing.
    steady: Duration,
    /// Expiry while the database is unreachable.
    without_database: Duration,
}

/// Changes by others, and those on which this hub has acted. A change is noticed once only. The action on it may be cut
/// off, with the request that noticed it, or fail; then the next check repeats it.
#[derive(Debug, Default)]
struct ForeignChanges {
    noticed: AtomicU64,
    done: AtomicU64,
}

impl ForeignChanges {
    fn notice(&self) {
        self.noticed.fetch_add(1, Ordering::AcqRel);
    }

    /// The newest change, if there is an action to take.
    fn due(&self) -> Option<u64> {
        let noticed = self.noticed.load(Ordering::Acquire);
        (self.done.load(Ordering::Acquire) < noticed).then_some(noticed)
    }

    /// The actions on all changes up to this one are complete.
    fn finish(&self, change: u64) {
        self.done.fetch_max(change, Ordering::AcqRel);
    }
}

/// The cached principals.
#[derive(Debug, Default)]
pub(super) struct PrincipalCache {
    entries: Mutex<HashMap<KnownBy, CachedPrincipal>>,
    /// Time of the last check for foreign changes, steady; 0: never.
    looked: AtomicU64,
    /// One check serves all concurrent requests.
    looking: tokio::sync::Mutex<()>,
    foreign: ForeignChanges,
    dropped: AtomicU64,
}

impl PrincipalCache {
    fn entries(&self) -> MutexGuard<'_, HashMap<KnownBy, CachedPrincipal>> {
        self.entries.lock()
    }

    /// Number of entries, and number of those evicted at the maximum.
    pub(super) fn figures(&self) -> (usize, u64) {
        (self.entries().len(), self.dropped.load(Ordering::Relaxed))
    }

    fn looked(&self, now: Duration) -> bool {
        let at = self.looked.load(Ordering::Acquire);
        at > 0 && now.saturating_sub(Duration::from_nanos(at)) < CHECK_INTERVAL
    }
}

impl Accounts {
    /// Checks for foreign changes periodically, so that rights revoked elsewhere end here within a second, too. Runs
    /// until it is dropped.
    pub async fn look_for_others(&self) {
        loop {
            self.check_changes().await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// The cached principal of this credential, if no change was made since.
    pub(super) async fn judged(&self, known: &KnownBy, network: &Network) -> Option<Principal> {
        let judged = &self.0.judged;
        if !judged.looked(self.0.clock.steady()) {
            // A request does not wait for another's check: meanwhile it is authorized from the database.
            let _one = judged.looking.try_lock().ok()?;
            if !self.check_changes().await {
                return None;
            }
        }
        let (generation, now, steady) = (self.0.records.generation(), self.now(), self.0.clock.steady());
        let entries = judged.entries();
        let entry = entries.get(known)?;
        let holds = entry.generation == generation && now < entry.until && steady < entry.steady;
        holds.then(|| Principal { network: network.clone(), ..entry.principal.clone() })
    }

    /// The principal cached before the database became unreachable, if no change was made since. For reading only.
    fn judged_before(&self, known: &KnownBy, network: &Network) -> Option<Principal> {
        let (generation, now, steady) = (self.0.records.generation(), self.now(), self.0.clock.steady());
        let entries = self.0.judged.entries();
        let entry = entries.get(known)?;
        let has_ended = entry.principal.ends.is_some_and(|ends| now >= ends);
        let holds = entry.generation == generation && !has_ended && steady < entry.without_database;
        holds.then(|| Principal { network: network.clone(), ..entry.principal.clone() })
    }

    /// Likewise by a key, which excludes everything else, or by a session.
    pub fn known_before(&self, key: Option<&str>, token: Option<&str>, network: &Network) -> Option<Principal> {
        match (key, token) {
            (Some(key), _) => self.judged_before(&known("key", key), network),
            (None, Some(token)) => self.judged_before(&random::hash(token), network),
            (None, None) => None,
        }
    }

    /// Caches a principal; `generation` is the one from before it was read.
    pub(super) fn keep_judged(&self, known: KnownBy, generation: u64, principal: &Principal) {
        let (now, steady) = (self.now(), self.0.clock.steady());
        let entry = CachedPrincipal {
            principal: principal.clone(),
            generation,
            until: principal.ends.unwrap_or(i64::MAX).min(now + MAX_AGE),
            steady: steady + Duration::from_millis(MAX_AGE as u64),
            without_database: steady + WITHOUT_DATABASE,
        };
        let mut entries = self.0.judged.entries();
        if entries.len() >= MAX_ENTRIES {
            let before = entries.len();
            entries.retain(|_, entry| entry.generation == generation && now < entry.until);
            if entries.len() >= MAX_ENTRIES {
                entries.clear();
            }
            self.0.judged.dropped.fetch_add((before - entries.len()) as u64, Ordering::Relaxed);
        }
        entries.insert(known, entry);
    }

    /// Checks for foreign changes; false if the check failed.
    async fn check_changes(&self) -> bool {
        let begun = self.0.clock.steady();
        let Ok(Ok(others)) = tokio::time::timeout(CHECK_TIMEOUT, self.0.records.check_changes()).await else {
            return false;
        };
        self.0.judged.looked.store(u64::try_from(begun.as_nanos()).unwrap_or(u64::MAX).max(1), Ordering::Release);
        let foreign = &self.0.judged.foreign;
        if others {
            foreign.notice();
            // Machines may have changed, and connections check again whether they are still allowed.
            self.sources_have_changed();
        }
        if let Some(change) = foreign.due()
            && self.judge_links().await.is_ok()
            && self.find_first_account().await.is_ok()
        {
            foreign.finish(change);
        }
        true
    }

    /// The first account may have been created at another hub of a cluster.
    async fn find_first_account(&self) -> Result<(), Denied> {
        if !self.is_set_up() && records::accounts::count(&mut *self.read().await?).await? > 0 {
            self.0.set_up.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Notifies connections whose keys were ended elsewhere.
    async fn judge_links(&self) -> Result<(), Denied> {
        for key in self.0.links.watched() {
            let row = records::keys::get(&mut *self.read().await?, &key).await?;
            if let Some(why) = super::link::ended(row.as_ref()) {
                self.0.links.end(super::watchers::Ends::One(key), why);
            }
        }
        Ok(())
    }

    /// The present rights of a principal; none when its session, key or link has ended.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn judge_again(&self, by: &Principal) -> Result<Option<Principal>, Denied> {
        use super::Who;
        Ok(match (&by.who, &by.session) {
            (Who::Account { .. }, Some(hash)) => {
                self.session_of(hash, &by.network).await?.map(|(_, principal)| principal)
            }
            (Who::Account { id, .. }, None) => self.vouched_account(id, &by.network).await?,
            (Who::Key { id, .. }, _) => {
                let row = records::keys::get(&mut *self.read().await?, id).await?;
                match row {
                    Some(key) => self.key_of(&key, &by.network).await?,
                    None => None,
                }
            }
            (Who::Share { id, .. }, _) => {
                let row = records::shares::get(&mut *self.read().await?, id).await?;
                match row {
                    Some(row) => self.share_of(row, &by.network).await?,
                    None => None,
                }
            }
            (Who::Local { .. }, _) => Some(by.clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_changed_is_due_until_all_of_it_was_acted_on() {
        let foreign = ForeignChanges::default();
        assert_eq!(foreign.due(), None);
        foreign.notice();
        let first = foreign.due().expect("a change");
        assert_eq!(foreign.due(), Some(first), "the action on it was cut off");
        // Another change comes meanwhile.
        foreign.notice();
        foreign.finish(first);
        let second = foreign.due().expect("it is not done with the first one");
        foreign.finish(second);
        assert_eq!(foreign.due(), None);
        foreign.finish(first);
        assert_eq!(foreign.due(), None, "an action that took longer");
    }
}

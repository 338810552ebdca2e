//! Who was judged a moment ago. A page asks for many things, and the same session is read again for each: what it may is kept
//! for as long as nothing of it was changed, here or elsewhere.
//!
//! What is kept counts for the [generation](records::Records::generation) in which it was read alone, and only while a look
//! at what others have written is younger than [`LOOKED`]. So nothing that was taken back is kept for longer than a second.

use super::{Accounts, Denied, MINUTE, Network, Principal, random};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How old the look at what others have written may be: with the time that a look may take, below a second.
const LOOKED: Duration = Duration::from_millis(600);
/// How long one may take; later it is as if there was none.
const LOOK: Duration = Duration::from_millis(300);
/// Time between two looks of a hub.
const LOOK_EVERY: Duration = Duration::from_millis(400);
/// How long one counts at most: marks of use are written when somebody is judged.
const KEPT: i64 = MINUTE;
/// How long whoever was judged may read on while the database is away. Nothing can be taken back then, but by another hub
/// that has it still.
const WITHOUT_DATABASE: Duration = Duration::from_secs(15 * 60);
/// The most that are kept.
const MOST: usize = 20_000;

/// By what somebody is known: a hash of it, never the thing itself.
pub(super) type KnownBy = [u8; 32];

/// The hash of a word and of what it is a word for.
pub(super) fn known(kind: &str, text: &str) -> KnownBy {
    random::hash(&format!("{kind} {text}"))
}

#[derive(Debug)]
struct Entry {
    principal: Principal,
    generation: u64,
    /// Until then, wall.
    until: i64,
    /// And until then, steady: a wall clock that is set back lengthens nothing.
    steady: Duration,
    /// While the database is away until then.
    without_database: Duration,
}

/// Those who were judged.
#[derive(Debug, Default)]
pub(super) struct Judged {
    entries: Mutex<HashMap<KnownBy, Entry>>,
    /// When others were looked for last, steady; 0: never.
    looked: AtomicU64,
    /// One looks for all that ask at once.
    looking: tokio::sync::Mutex<()>,
    dropped: AtomicU64,
}

impl Judged {
    fn entries(&self) -> MutexGuard<'_, HashMap<KnownBy, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many are kept, and how many were dropped because there were too many.
    pub(super) fn figures(&self) -> (usize, u64) {
        (self.entries().len(), self.dropped.load(Ordering::Relaxed))
    }

    fn looked(&self, now: Duration) -> bool {
        let at = self.looked.load(Ordering::Acquire);
        at > 0 && now.saturating_sub(Duration::from_nanos(at)) < LOOKED
    }
}

impl Accounts {
    /// Looks for what others have changed from now on, so that what they took back closes here within a second, too. It ends
    /// by being dropped.
    pub async fn look_for_others(&self) {
        loop {
            self.look().await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Who was judged by this a moment ago, where nothing was changed since.
    pub(super) async fn judged(&self, known: &KnownBy, network: &Network) -> Option<Principal> {
        let judged = &self.0.judged;
        if !judged.looked(self.0.clock.steady()) {
            // Nobody waits for the look of another: who asks meanwhile is judged by what is written.
            let _one = judged.looking.try_lock().ok()?;
            if !self.look().await {
                return None;
            }
        }
        let (generation, now, steady) = (self.0.records.generation(), self.now(), self.0.clock.steady());
        let entries = judged.entries();
        let entry = entries.get(known)?;
        let holds = entry.generation == generation && now < entry.until && steady < entry.steady;
        holds.then(|| Principal { network: network.clone(), ..entry.principal.clone() })
    }

    /// Who was judged by this before the database went away, where nothing was changed since. It is for reading alone.
    fn judged_before(&self, known: &KnownBy, network: &Network) -> Option<Principal> {
        let (generation, now, steady) = (self.0.records.generation(), self.now(), self.0.clock.steady());
        let entries = self.0.judged.entries();
        let entry = entries.get(known)?;
        let has_ended = entry.principal.ends.is_some_and(|ends| now >= ends);
        let holds = entry.generation == generation && !has_ended && steady < entry.without_database;
        holds.then(|| Principal { network: network.clone(), ..entry.principal.clone() })
    }

    /// Likewise by a key, in whose place nothing else counts, or else by a session.
    pub fn known_before(&self, key: Option<&str>, token: Option<&str>, network: &Network) -> Option<Principal> {
        match (key, token) {
            (Some(key), _) => self.judged_before(&known("key", key), network),
            (None, Some(token)) => self.judged_before(&random::hash(token), network),
            (None, None) => None,
        }
    }

    /// Keeps who was judged; `generation` is that of before they were read.
    pub(super) fn keep_judged(&self, known: KnownBy, generation: u64, principal: &Principal) {
        let (now, steady) = (self.now(), self.0.clock.steady());
        let entry = Entry {
            principal: principal.clone(),
            generation,
            until: principal.ends.unwrap_or(i64::MAX).min(now + KEPT),
            steady: steady + Duration::from_millis(KEPT as u64),
            without_database: steady + WITHOUT_DATABASE,
        };
        let mut entries = self.0.judged.entries();
        if entries.len() >= MOST {
            let before = entries.len();
            entries.retain(|_, entry| entry.generation == generation && now < entry.until);
            if entries.len() >= MOST {
                entries.clear();
            }
            self.0.judged.dropped.fetch_add((before - entries.len()) as u64, Ordering::Relaxed);
        }
        entries.insert(known, entry);
    }

    /// Looks for what others have changed; false where nobody can say.
    async fn look(&self) -> bool {
        let begun = self.0.clock.steady();
        let Ok(Ok(others)) = tokio::time::timeout(LOOK, self.0.records.look()).await else { return false };
        self.0.judged.looked.store(u64::try_from(begun.as_nanos()).unwrap_or(u64::MAX).max(1), Ordering::Release);
        if others {
            // Machines may have come or gone, and whoever is connected looks whether they still may.
            self.sources_have_changed();
            self.judge_links().await;
            self.find_first_account().await;
        }
        true
    }

    /// The first account may have been made at another hub of a cluster.
    async fn find_first_account(&self) {
        if self.is_set_up() {
            return;
        }
        if let Ok(mut on) = self.read().await
            && let Ok(1..) = records::accounts::count(&mut on).await
        {
            self.0.set_up.store(true, Ordering::Release);
        }
    }

    /// Tells links whose keys others have ended.
    async fn judge_links(&self) {
        for key in self.0.links.watched() {
            let row = match self.read().await {
                Ok(mut on) => records::keys::get(&mut on, &key).await,
                Err(_) => return,
            };
            if let Ok(row) = row
                && let Some(why) = super::link::ended(row.as_ref())
            {
                self.0.links.end(super::watchers::Ends::One(key), why);
            }
        }
    }

    /// What somebody may now; none when that has ended.
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

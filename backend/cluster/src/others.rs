//! The other hubs of a cluster, as the links of this hub's agents use them: the holder of a source, and its answers.

use super::calls::{ASK_TIMEOUT, Announced, Call, CallReply, HELD_SUBJECT, YIELD_TIMEOUT, decode, encode, subject_of};
use super::holders::{HeldLink, Holders, RECORDS_TIMEOUT};
use super::{Bus, BusError, new_hub_id};
use fleet::ingest::{AskedElsewhere, LinkProcess, NoAnswer, NoTake, OtherHubs};
use records::Records;
use records::links::{self, LinkRow};
use shared::agent::Question;
use shared::wire::SourceId;
use std::sync::Arc;
use std::time::Duration;
use stream::live::{Holder, Live};
use team::accounts::Accounts;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// This hub among the others. It is created before the first link, which uses it.
pub struct Others {
    /// ID of this hub, 16 hexadecimal digits.
    pub id: String,
    /// Name of this hub: its machine's name and its port.
    pub name: String,
    /// Messages to the other hubs.
    pub bus: Bus,
    pub(super) live: Arc<Live>,
    pub(super) records: Records,
    /// The key of the machine that this hub measures itself.
    pub(super) own: Option<String>,
    pub(super) holders: Holders,
    /// Incremented when a source has moved to another hub.
    pub(super) moved: watch::Sender<u64>,
}

impl Others {
    /// Creates it for one hub of several. `own` is the key of the machine that this hub measures itself.
    pub fn new(bus: Bus, name: String, own: Option<String>, live: Arc<Live>, accounts: &Accounts) -> Arc<Self> {
        Arc::new(Others {
            id: new_hub_id(),
            name,
            bus,
            live,
            records: accounts.records(),
            own,
            holders: Holders::default(),
            moved: watch::Sender::default(),
        })
    }

    /// Whether this hub measures a machine itself, or an endpoint that it scrapes tells of it.
    pub(super) fn is_own(&self, key: &str, source: Option<SourceId>) -> bool {
        self.own.as_deref() == Some(key) || source.is_some_and(|source| self.live.is_found(source))
    }

    /// The machines for which [`is_own`](Self::is_own) holds and that have samples now.
    pub(super) fn all_own(&self) -> Vec<String> {
        let found = self.live.found().borrow().clone();
        let store = self.live.store();
        let keys = found.iter().filter_map(|machine| Some(store.source(machine.source)?.0.key.clone()));
        self.own.clone().into_iter().chain(keys).collect()
    }

    /// Whether another hub has the link of this source, as that hub last said. Answers at once.
    pub fn is_linked_elsewhere(&self, key: &str) -> bool {
        is_linked_elsewhere(&self.live, key)
    }

    /// Changes rows that take no part in authorization.
    pub(super) async fn written(
        &self,
        change: impl AsyncFnOnce(&mut records::Connection) -> Result<(), records::Error>,
    ) -> Result<(), String> {
        let written = async {
            let mut on = self.records.note().await?;
            change(&mut on).await?;
            on.commit().await
        };
        match timeout(RECORDS_TIMEOUT, written).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("the database timed out after {} s", RECORDS_TIMEOUT.as_secs())),
        }
    }

    /// Adds a source that another hub has met.
    pub(super) fn add(&self, key: &str) {
        const INTERVAL_MS: i64 = 1_000;
        if let Some((source, true)) = self.live.meet(key, INTERVAL_MS, None) {
            self.live.set_connection_state(source, shared::connection_state::ConnectionState::Unreachable);
        }
    }

    /// Writes this hub down as the holder of a source, and announces it to the others.
    pub(super) async fn put(&self, source: &str) -> Result<(), String> {
        // Clocks of hubs differ: the new holder uses a time after the previous one's.
        let before = self.holders.find(source).map_or(i64::MIN, |held| held.since);
        let since = self.live.clock.wall().max(before.saturating_add(1));
        self.written(async |on| links::take(on, source, &self.id, since).await).await?;
        self.holders.known().mine.insert(source.into(), since);
        self.announced(Announced { source: source.into(), hub: self.id.clone(), since });
        Ok(())
    }

    /// Publishes that this hub holds a source.
    fn announced(&self, said: Announced) {
        self.bus.publish(HELD_SUBJECT, said.encode());
        self.apply_announcement(said);
    }

    /// Applies an announcement that a hub holds a source; false: a newer one is known.
    pub(super) fn apply_announcement(&self, Announced { source, hub, since }: Announced) -> bool {
        if self.holders.find(&source).is_some_and(|held| held.since > since) {
            return false;
        }
        let ours = hub == self.id;
        if !ours {
            self.add(&source);
        }
        let known = self.live.store().named(&source);
        if known.is_none() && !ours {
            return false;
        }
        self.holders.put(&source, HeldLink { hub, since, alive: true, heard: Instant::now() });
        if let Some(id) = known {
            self.live.set_holder(id, if ours { Holder::Here } else { Holder::There });
        }
        self.moved.send_modify(|n| *n += 1);
        true
    }

    /// Takes over a source whose agent has connected here.
    pub(super) async fn take_over(&self, source: &str, process: &LinkProcess) -> Result<(), NoTake> {
        // The last known holder may have ended since.
        let now = self.live.clock.wall();
        let row = async { links::find(&mut *self.records.read().await?, source, now).await };
        let row = match timeout(RECORDS_TIMEOUT, row).await {
            Ok(Ok(row)) => {
                row.map(|LinkRow { hub, since, alive, .. }| HeldLink { hub, since, alive, heard: Instant::now() })
            }
            Ok(Err(_)) | Err(_) => self.holders.find(source),
        };
        if let Some(held) = &row {
            self.holders.put(source, held.clone());
        }
        if let Some(held) = row.filter(|held| held.hub != self.id && held.alive) {
            self.ask_to_yield(&held.hub, source, process).await?;
        }
        let away = |why: String| {
            tracing::warn!("that a machine came here could not be written down: {why}");
            NoTake::Unavailable("the database of this hub is unavailable".into())
        };
        self.put(source).await.map_err(away)
    }

    pub(super) async fn call(&self, hub: &str, call: &Call, wait: Duration) -> Result<CallReply, BusError> {
        let answer = self.bus.request(&subject_of(hub), encode(call), wait).await?;
        Ok(decode(&answer).unwrap_or(CallReply::Busy))
    }

    /// Requests that a hub yields a source. A hub that does not answer has ended, or its agent cannot reach it either.
    pub(super) async fn ask_to_yield(&self, hub: &str, source: &str, process: &LinkProcess) -> Result<(), NoTake> {
        let call = Call::Yield { source: source.into(), process: process.clone() };
        match self.call(hub, &call, YIELD_TIMEOUT).await {
            Ok(CallReply::InUse(process)) => Err(NoTake::InUse(process)),
            Ok(_) => Ok(()),
            Err(why) => {
                tracing::info!("a machine comes from a hub that is not asked: {why}");
                Ok(())
            }
        }
    }

    /// Forwards a question for an agent to the hub that holds its source.
    pub(super) async fn ask_holder(&self, source: SourceId, what: Question) -> Result<(Vec<u8>, i64), NoAnswer> {
        let key = self.live.store().source(source).map(|(source, _)| source.key.clone()).unwrap_or_default();
        let held = self.holders.find(&key).filter(|held| held.alive && held.hub != self.id);
        let held = held.ok_or(NoAnswer::Unlinked)?;
        match self.call(&held.hub, &Call::Ask { source: key, what }, ASK_TIMEOUT).await {
            Ok(CallReply::Said(bytes, shift)) => Ok((bytes, shift)),
            Ok(CallReply::Silent(why)) => Err(why),
            Ok(CallReply::Busy) => Err(NoAnswer::Busy),
            Ok(_) => Err(NoAnswer::Unlinked),
            Err(BusError::Late) => Err(NoAnswer::Late),
            Err(_) => Err(NoAnswer::HubAway),
        }
    }
}

/// Whether another hub holds this source and told that its agent is linked.
pub(super) fn is_linked_elsewhere(live: &Live, key: &str) -> bool {
    let source = live.store().named(key);
    let Some(source) = source else { return false };
    // A hub holds a machine on after its agent has left, and holds none any more once it has ended.
    live.holder(source) == Holder::There && live.source(source).connection_state().0.is_linked()
}

impl OtherHubs for Others {
    fn take<'a>(&'a self, source: &'a str, process: &'a LinkProcess) -> AskedElsewhere<'a, Result<(), NoTake>> {
        Box::pin(self.take_over(source, process))
    }

    fn ask(&self, source: SourceId, what: Question) -> AskedElsewhere<'_, Result<(Vec<u8>, i64), NoAnswer>> {
        Box::pin(self.ask_holder(source, what))
    }
}

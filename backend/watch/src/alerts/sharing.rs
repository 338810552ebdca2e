//! Several hubs of one database: the machines whose alerts this hub evaluates, and whether it makes the notices of all
//! hubs.
//!
//! Each machine is evaluated by one hub, the last one that it was connected to (table `watched`). All hubs write their
//! alerts to the database. One of them, the holder of the lease in `lease.rs`, makes notices: groups, repeats, quiet
//! hours and silences belong to the whole team.
//!
//! The row of an alert has a mark whether that hub has processed it, which is set in the transaction that writes the
//! notice. So a hub may end at any time: the next one continues, loses nothing, and sends nothing twice.

use super::found::alert_of;
use super::kept::Restored;
use super::lease::{LEASE_MS, TellingLease};
use super::registry::AlertRegistry;
use super::team::{CALLS, CODES, ENGINE, Earlier, TeamWatch, shown_rule};
use records::alerts::AlertRow;
use records::{alerts, links, outbox, watched};
use rules::{Transition, What};
use shared::alert::{Alert, AlertState};
use shared::wire::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use team::accounts::Denied;

/// Interval at which the lease is renewed and the assignment of machines is read, milliseconds.
const LOOK_MS: i64 = 2_000;

/// Interval of the check for alerts of hubs that are gone, milliseconds.
const TIDY_MS: i64 = 15_000;

/// Maximum number of alerts and deliveries read at one check.
const MAX_ROWS: i64 = 5_000;

/// A machine that joined longer ago is not new, milliseconds.
const NEW_MS: i64 = 300_000;

/// This hub among several.
pub struct SharingHub {
    /// Its id.
    pub id: String,
    /// Its display name.
    pub name: String,
    /// The key of the machine that it measures itself.
    pub own: Option<String>,
}

/// State of this hub among the others.
pub(super) struct Shared {
    hub: SharingHub,
    pub lease: TellingLease,
    /// Machines evaluated here, by id, whose rules know it.
    pub own: BTreeSet<String>,
    /// Whether it makes notices.
    pub tells: bool,
    looked: i64,
    begun: bool,
    tidied: i64,
    /// Deliveries until then were read.
    delivered: i64,
    /// The database did not answer at the last check.
    blind: bool,
}

/// Result of a check.
#[derive(Default)]
pub(super) struct FoundAlerts {
    /// Machines that another hub evaluates from now on, by id.
    pub lost: BTreeSet<String>,
    /// The stored state of new machines here, and of all that it continues; none without new machines.
    pub gained: Option<(BTreeSet<String>, Arc<Restored>)>,
    /// Machines among them that have just joined.
    pub joined: BTreeSet<String>,
    /// It makes notices from now on, with the stored state of notices.
    pub begins: Option<Arc<Restored>>,
    /// It makes no notices any more.
    pub ends: bool,
    /// Alerts that it has not processed: each with its team.
    pub unheard: Vec<(String, AlertRow, Alert)>,
    /// Results of notices: id, channel, whether it was accepted.
    pub delivered: Vec<(String, String, bool)>,
    /// The database answers again.
    pub sees_again: bool,
}

impl Shared {
    pub fn new(hub: SharingHub) -> Self {
        let (own, lease) = (BTreeSet::new(), TellingLease { hub: hub.id.clone() });
        Shared {
            hub,
            lease,
            own,
            tells: false,
            looked: i64::MIN,
            begun: false,
            tidied: i64::MIN,
            delivered: 0,
            blind: false,
        }
    }

    pub fn hub(&self) -> &SharingHub {
        &self.hub
    }

    /// Reads the state of this hub. After a failed check, alerts found before it must not be written.
    pub async fn read_shared(
        &mut self,
        registry: &AlertRegistry,
        sources: &[Arc<Source>],
        now: i64,
    ) -> Result<FoundAlerts, Denied> {
        let found = self.try_look(registry, sources, now).await;
        match found {
            Ok(mut found) => {
                found.sees_again = std::mem::take(&mut self.blind);
                Ok(found)
            }
            Err(error) => {
                // Partly read data is read again.
                (self.blind, self.looked) = (true, i64::MIN);
                Err(error)
            }
        }
    }

    async fn try_look(
        &mut self,
        registry: &AlertRegistry,
        sources: &[Arc<Source>],
        now: i64,
    ) -> Result<FoundAlerts, Denied> {
        let mut found = FoundAlerts::default();
        let Some(records) = registry.there().await? else { return Ok(found) };
        let told = self.tells;
        if now.saturating_sub(self.looked) >= LOOK_MS || now < self.looked {
            let mut change = records.note().await?;
            let tells = self.lease.take(&mut change, now).await?;
            if let Some(own) = self.hub.own.as_ref().filter(|_| !self.begun) {
                watched::take(&mut change, own, &self.hub.id).await?;
            }
            let new = watched::follow_links(&mut change, &self.hub.id, now - NEW_MS).await?;
            if tells {
                watched::take_left(&mut change, &self.hub.id, now).await?;
            }
            change.commit().await?;
            (self.looked, self.begun) = (now, true);
            let mine: BTreeSet<String> =
                watched::list(&mut *records.read().await?, &self.hub.id).await?.into_iter().collect();
            // The rules' state of a machine requires its name.
            let there: BTreeSet<&String> = sources.iter().map(|source| &source.key).collect();
            let gained: BTreeSet<String> =
                mine.difference(&self.own).filter(|id| there.contains(id)).cloned().collect();
            let lost: BTreeSet<String> = self.own.difference(&mine).cloned().collect();
            let restored = match !gained.is_empty() || (tells && !told) {
                true => Some(Arc::new(Restored::read(registry, now).await?)),
                false => None,
            };
            self.own.retain(|id| !lost.contains(id));
            self.own.extend(gained.iter().cloned());
            found.joined = new.into_iter().filter(|id| gained.contains(id)).collect();
            found.lost = lost;
            found.gained = restored.clone().filter(|_| !gained.is_empty()).map(|restored| (gained, restored));
            found.begins = restored.filter(|_| tells && !told);
            found.ends = told && !tells;
            self.tells = tells;
        }
        if self.tells {
            let mut on = records.read().await?;
            for row in alerts::unheard(&mut on, MAX_ROWS).await? {
                let Some(team) = row.team.clone() else { continue };
                if let Some(alert) = alert_of(row.clone()) {
                    found.unheard.push((team, row, alert));
                }
            }
            if self.looked == now {
                let since = if found.begins.is_some() { 0 } else { self.delivered - 2 * LEASE_MS };
                let done = outbox::done_since(&mut on, since, MAX_ROWS).await?;
                found.delivered = done.into_iter().map(|(id, channel, state)| (id, channel, state == "sent")).collect();
                self.delivered = now;
            }
            if now.saturating_sub(self.tidied) >= TIDY_MS || now < self.tidied {
                self.tidied = now;
                let alive: BTreeSet<String> =
                    links::hubs(&mut on, now).await?.into_iter().map(|(hub, _)| hub).collect();
                found.unheard.extend(left_by_hubs(&mut on, &alive, now).await?);
            }
        }
        Ok(found)
    }

    /// Another hub makes notices.
    pub fn stop_telling(&mut self) {
        self.tells = false;
    }

    /// This hub ends: another may make notices at once.
    pub async fn end(&self, registry: &AlertRegistry) -> Result<(), Denied> {
        let Some(records) = registry.there().await?.filter(|_| self.tells) else { return Ok(()) };
        let mut change = records.note().await?;
        self.lease.give_back(&mut change).await?;
        Ok(change.commit().await?)
    }
}

/// Resolves alerts that hubs which are gone had about themselves.
async fn left_by_hubs(
    on: &mut records::Connection,
    alive: &BTreeSet<String>,
    now: i64,
) -> Result<Vec<(String, AlertRow, Alert)>, Denied> {
    let of_hubs = |row: &AlertRow| row.source.is_none() && row.run.is_none() && row.state == "firing";
    let rows = alerts::open(on).await?.into_iter().filter(of_hubs);
    let gone = rows.filter_map(|row| {
        let (team, alert) = (row.team.clone()?, alert_of(row.clone())?);
        let hub = alert.labels.get("hub").filter(|hub| !alive.contains(*hub))?;
        let sentence = format!("{}; the hub {hub} is unreachable", alert.sentence);
        Some((team, row, Alert { state: AlertState::Resolved, ended: Some(now), sentence, ..alert }))
    });
    Ok(gone.collect())
}

impl TeamWatch {
    /// Drops these machines, by id, which other hubs evaluate now; `names` has their names.
    pub(super) fn lose(&mut self, lost: &BTreeSet<String>, names: &BTreeMap<String, String>) {
        for id in lost {
            self.engine.release_source(id);
            self.calls.remove(id);
            let Some(name) = names.get(id) else { continue };
            if let Some(codes) = &mut self.codes {
                codes.release(name);
            }
            self.firing.retain(|_, alert| alert.labels.get("source") != Some(name));
            self.pending.retain(|_, alert| alert.labels.get("source") != Some(name));
            self.batch.forget_source(id, name);
        }
    }

    /// Continues with these machines, by name, from the state left by other hubs.
    pub(super) fn gain(&mut self, names: &BTreeMap<String, String>, restored: &Restored, now: i64) {
        let Some(id) = &self.id else { return };
        let earlier = restored.earlier_of(id).with_ids_of(&self.rules);
        let called: BTreeSet<String> = names.values().cloned().collect();
        let others = |alert: &&Alert| self.codes.is_none() || shown_rule(&alert.rule) != rules::builtin::FROM_CODE;
        let open: Vec<Alert> = earlier.open.iter().filter(others).cloned().collect();
        self.engine.adopt(&called, &earlier.part(ENGINE), &open, now);
        if let Some(codes) = &mut self.codes {
            codes.adopt(&called, &earlier.part(CODES));
        }
        self.take_calls(&earlier.part(CALLS), |key| names.contains_key(key));
        let own = |alert: &&Alert| alert.labels.get("source").is_some_and(|name| called.contains(name));
        let own: Vec<Alert> = earlier.open.iter().filter(own).cloned().collect();
        self.firing.extend(own.into_iter().map(|alert| (alert.id.clone(), alert)));
    }

    /// Makes notices from now on, from the state left by another hub.
    pub(super) fn begin_telling(&mut self, restored: &Restored, now: i64) {
        self.tells = true;
        let Some(id) = &self.id else { return };
        let earlier = restored.earlier_of(id).with_ids_of(&self.rules);
        self.restore_notices(&earlier, now);
    }

    /// Another hub makes notices.
    pub(super) fn stop_telling(&mut self) {
        self.tells = false;
        self.batch.stop_telling();
    }

    /// Processes an alert written by another hub, or by this one before it held the lease; `row` is its state as known
    /// before.
    pub(super) fn hear_written(&mut self, row: &AlertRow, alert: Alert, now: i64) {
        let open: Vec<Alert> = vec![alert];
        let earlier = Earlier { rows: Vec::new(), open, ended: Vec::new() }.with_ids_of(&self.rules);
        let Some(alert) = earlier.open.into_iter().next() else { return };
        let event = self.is_event(&alert.rule);
        let is_new = row.heard == 0;
        let over = alert.state == AlertState::Resolved;
        let mut hear = |what, alert: &Alert| {
            self.notices.apply(&Transition { what, alert: alert.clone(), event, flapping: false }, now);
        };
        if is_new {
            // An alert that fired and ended meanwhile gets notices, too.
            hear(What::Fired, &Alert { state: AlertState::Firing, ended: None, ..alert.clone() });
        }
        match over {
            true => hear(What::Ended, &alert),
            false if !is_new => hear(What::Changed, &alert),
            false => {}
        }
        if row.state == "firing" && over {
            // It ended because its hub is gone: no other hub writes it.
            self.batch.alerts.insert(alert.id.clone(), alert);
        } else {
            self.batch.heard.push((row.id.clone(), row.state.clone(), row.updated));
        }
    }
}

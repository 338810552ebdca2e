//! Machines that a collector here tells of: each is a source of its own.

use super::Sampler;
use inventory::OtherMachines;
use shared::wire::SourceId;
use std::sync::Arc;
use std::time::Duration;
use stream::live::FoundMachine;

/// Section of rows that only other machines have, and the collector that tells of them.
const SECTION: &str = "openmetrics";
/// A machine is lost after this many of its intervals without a value,
const LOST_AFTER: u32 = 3;
/// but not before this time.
const MIN_LOST: Duration = Duration::from_secs(10);

/// A machine that was told of recently.
pub(super) struct ToldMachine {
    key: String,
    source: SourceId,
    interval: Duration,
    /// Steady time of its newest values.
    at: Duration,
}

impl Sampler {
    /// Marks the machines of an earlier process as lost, until they are told of.
    pub(super) fn lose_earlier(&self) {
        let Some(others) = &self.plan.options.others else { return };
        let sources = self.live.store().sources();
        let earlier = sources.iter().filter(|source| source.id != self.source && others.is_key(&source.key));
        earlier.for_each(|source| self.live.set_lost(source.id));
    }

    /// Appends a tick to the source of each other machine that was told of since the last one. A new machine gets a
    /// source under its host name; none above the maximum number of sources, and none that was removed.
    pub(super) fn append_others(&mut self, t: i64, steady: Duration, clock_step: bool) {
        let Some(others) = self.plan.options.others.clone() else { return };
        let mut changed = false;
        for (host, machine) in others.take() {
            let Some((source, is_new)) = self.told_source(&others, &host, machine.interval, steady) else { continue };
            changed |= is_new;
            let known: Vec<_> = machine
                .values
                .into_iter()
                .filter_map(|(def, instance, value)| Some((self.intern_on(source, def, instance, SECTION)?, value)))
                .collect();
            self.values.clear();
            self.values.resize(self.live.store().series(source, 0).len(), f64::NAN);
            for (id, value) in known {
                if let Some(slot) = self.values.get_mut(id as usize) {
                    *slot = value;
                }
            }
            self.live.append(source, t, clock_step, &self.values);
            self.live.announce(&[source]);
        }
        let before = self.told.len();
        let store = self.live.store();
        self.told.retain(|_, machine| {
            let is_lost = steady.saturating_sub(machine.at) > MIN_LOST.max(machine.interval * LOST_AFTER);
            !is_lost && !store.removed().contains(&machine.key)
        });
        drop(store);
        if changed || self.told.len() != before {
            let found =
                |(host, machine): (&String, &ToldMachine)| FoundMachine { source: machine.source, host: host.clone() };
            self.live.set_found(self.told.iter().map(found).collect());
        }
    }

    /// The source of a machine that is told of, and whether it was not told of before.
    fn told_source(
        &mut self,
        others: &Arc<OtherMachines>,
        host: &str,
        every: Duration,
        steady: Duration,
    ) -> Option<(SourceId, bool)> {
        if let Some(known) = self.told.get_mut(host) {
            known.at = steady;
            return Some((known.source, false));
        }
        let chosen = self.plan.chosen.iter().find(|chosen| chosen.entry.name == SECTION).map(|chosen| chosen.every);
        let interval = every.max(chosen.unwrap_or_default()).max(self.plan.interval).max(Duration::from_millis(1));
        let (key, ms) = (others.key(host), interval.as_millis() as i64);
        let (source, _) = self.live.meet(&key, ms, None).filter(|(source, _)| *source != self.source)?;
        let mut store = self.live.store();
        if store.is_removed(source) {
            return None;
        }
        let facts = store.source(source).map(|(source, _)| source.facts.clone()).unwrap_or_default();
        store.renew(source, ms, facts);
        // A hub refers to ticks by their numbers. One that comes back gets new ones, as a machine that starts again.
        store.begin_life(source, self.clock.wall());
        drop(store);
        self.told.insert(host.to_string(), ToldMachine { key, source, interval, at: steady });
        Some((source, true))
    }
}

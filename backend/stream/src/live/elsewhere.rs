//! Sources that another hub holds: which they are, and who wants to see them here.

use super::Live;
use shared::wire::{MAX_SOURCES, NAME_FACT, SourceId};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// How long an answer waits for what another hub has.
const BRING_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two looks whether it has come.
const BRING_INTERVAL: Duration = Duration::from_millis(50);
/// Sources that one question brings here; of more, what is here already is answered.
const MAX_BROUGHT: usize = 64;

/// Who has the link of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Holder {
    /// This server, as always where there is one alone.
    #[default]
    Here,
    /// Another hub that is there.
    There,
    /// A hub that is not there any more, or none yet.
    Nobody,
}

/// The longest key of one, bytes: that of a hub's own machine is its name.
const MAX_KEY: usize = 255;
/// The longest time between ticks that is believed, milliseconds.
const MAX_INTERVAL: i64 = 86_400_000;

impl Live {
    /// The source of a machine that another hub has met, and whether it is new here: then it is added under this name. None where
    /// it was removed, where there are as many as may be, and where this is no key.
    pub fn meet(&self, key: &str, interval: i64, name: Option<&str>) -> Option<(SourceId, bool)> {
        let mut store = self.store();
        if let Some(source) = store.named(key) {
            return Some((source, false));
        }
        let is_key = (1..=MAX_KEY).contains(&key.len()) && !key.chars().any(char::is_control);
        if !is_key || store.removed().contains(key) || store.sources().len() >= MAX_SOURCES {
            return None;
        }
        let facts = name.map(|name| (NAME_FACT.to_string(), name.to_string())).into_iter().collect();
        Some((store.add_source(key.into(), interval.clamp(1, MAX_INTERVAL), facts), true))
    }

    /// Whether there are as many machines as a hub of a cluster knows of.
    pub fn is_full(&self) -> bool {
        self.store().sources().len() >= MAX_SOURCES
    }
}

impl Live {
    /// Whether a source is this server's own to judge and to hand on: always, but for one that another hub of the cluster
    /// holds, or none.
    pub fn holds(&self, source: SourceId) -> bool {
        self.holder(source) == Holder::Here
    }

    /// Who has the link of a source.
    pub fn holder(&self, source: SourceId) -> Holder {
        match self.source(source).holder.load(Ordering::Acquire) {
            at if at == Holder::There as u8 => Holder::There,
            at if at == Holder::Nobody as u8 => Holder::Nobody,
            _ => Holder::Here,
        }
    }

    /// Says who has it; whether that is new.
    pub fn set_holder(&self, source: SourceId, holder: Holder) -> bool {
        self.source(source).holder.swap(holder as u8, Ordering::AcqRel) != holder as u8
    }

    /// Somebody wants to see these sources here now.
    pub fn want(&self, sources: &[SourceId]) {
        let now = self.steady_ms().max(1);
        let mut new = false;
        for source in sources.iter().filter(|source| self.holder(**source) == Holder::There) {
            let state = self.source(*source);
            state.wanted.store(now, Ordering::Relaxed);
            new |= !state.brought.load(Ordering::Acquire);
        }
        if new {
            self.wants.send_modify(|n| *n += 1);
        }
    }

    /// How long ago somebody wanted to see a source that another hub holds; none: never.
    pub fn wanted(&self, source: SourceId) -> Option<Duration> {
        let at = self.source(source).wanted.load(Ordering::Relaxed);
        (at > 0).then(|| Duration::from_millis(self.steady_ms().saturating_sub(at)))
    }

    /// Rises when somebody wants to see a source that is not brought here yet.
    pub fn wants(&self) -> watch::Receiver<u64> {
        self.wants.subscribe()
    }

    /// Other hubs cannot be reached now, or can again: nobody waits for what they have meanwhile.
    pub fn set_apart(&self, apart: bool) {
        self.apart.store(apart, Ordering::Release);
    }

    /// What another hub has of a source comes here now, and it is known what lacks; or it does not any more.
    pub fn set_brought(&self, source: SourceId, brought: bool) {
        self.source(source).brought.store(brought, Ordering::Release);
    }

    /// Whether what another hub has of a source comes here.
    pub fn is_brought(&self, source: SourceId) -> bool {
        self.source(source).brought.load(Ordering::Acquire)
    }

    /// Waits until what other hubs have of these sources between two times is here, milliseconds since the Unix epoch, but
    /// not for long: what lacks then is told as lacking.
    pub async fn bring(&self, sources: &[SourceId], (from, to): (i64, i64)) {
        let there = sources.iter().copied().filter(|source| self.holder(*source) == Holder::There);
        let there: Vec<SourceId> = there.take(MAX_BROUGHT).collect();
        let lacks = |source: &SourceId| {
            let meets = |(first, last): &(i64, i64)| *first <= to && *last >= from;
            !self.is_brought(*source) || self.source(*source).figures().holes.iter().any(meets)
        };
        let until = Instant::now() + BRING_TIMEOUT;
        self.want(&there);
        while !self.apart.load(Ordering::Acquire) && there.iter().any(lacks) && Instant::now() < until {
            sleep_until(until.min(Instant::now() + BRING_INTERVAL)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Manual;
    use crate::store::{Limits, Store};
    use shared::catalog::{Catalog, cpu};
    use std::sync::Arc;

    #[test]
    fn so_many_machines_are_met_and_nothing_that_is_no_key() {
        let catalog = Arc::new(Catalog::new(cpu::ROWS.iter().copied()));
        let store = Store::new(catalog, Limits { retention: 60_000, bytes: usize::MAX });
        let live = Live::new(store, Arc::new(Manual::at(0, Duration::ZERO)), 1, 60_000);
        for wrong in [String::new(), "a\nb".into(), "x".repeat(MAX_KEY + 1)] {
            assert_eq!(live.meet(&wrong, 1_000, None), None, "{wrong:?}");
        }
        for n in 0..MAX_SOURCES {
            assert_eq!(live.meet(&format!("node-{n}"), -5, Some("node")), Some((n as SourceId, true)));
        }
        assert_eq!(live.meet("node-7", 1_000, None), Some((7, false)));
        assert!(live.is_full() && live.meet("one more", 1_000, None).is_none());
        assert_eq!(live.store().sources()[3].interval, 1);
    }
}

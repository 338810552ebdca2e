//! Sources that another hub holds, and their readers on this hub.

use super::Live;
use shared::wire::{MAX_SOURCES, NAME_FACT, SourceId};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Maximum time that a request waits for data of another hub.
const BRING_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of the checks whether that data has arrived.
const BRING_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum number of sources fetched for one request; with more, the data already here is returned.
const MAX_BROUGHT: usize = 64;

/// Holder of a source's connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Holder {
    /// This server; always so without a cluster.
    #[default]
    Here,
    /// Another hub that is online.
    There,
    /// A hub that is no longer online, or none yet.
    Nobody,
}

/// Maximum length of a source's key, bytes: the key of a hub's own machine is its name.
const MAX_KEY: usize = 255;
/// Maximum accepted time between ticks, milliseconds.
const MAX_INTERVAL: i64 = 86_400_000;

impl Live {
    /// The source of a machine that another hub knows, and whether it is new here; a new one is added under this name.
    /// None if it was removed, if the maximum number of sources is reached, or if the key is invalid.
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

    /// Whether the maximum number of machines of a cluster is reached.
    pub fn is_full(&self) -> bool {
        self.store().sources().len() >= MAX_SOURCES
    }
}

impl Live {
    /// Whether this server evaluates and forwards a source: true unless another hub of the cluster holds it, or none
    /// does.
    pub fn holds(&self, source: SourceId) -> bool {
        self.holder(source) == Holder::Here
    }

    /// The holder of a source's connection.
    pub fn holder(&self, source: SourceId) -> Holder {
        match self.source(source).holder.load(Ordering::Acquire) {
            at if at == Holder::There as u8 => Holder::There,
            at if at == Holder::Nobody as u8 => Holder::Nobody,
            _ => Holder::Here,
        }
    }

    /// Sets the holder; returns whether it changed.
    pub fn set_holder(&self, source: SourceId, holder: Holder) -> bool {
        self.source(source).holder.swap(holder as u8, Ordering::AcqRel) != holder as u8
    }

    /// Marks these sources as wanted by a reader here now.
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

    /// Time since a reader last wanted a source that another hub holds; none: never.
    pub fn wanted(&self, source: SourceId) -> Option<Duration> {
        let at = self.source(source).wanted.load(Ordering::Relaxed);
        (at > 0).then(|| Duration::from_millis(self.steady_ms().saturating_sub(at)))
    }

    /// Incremented when a reader wants a source that is not fetched yet.
    pub fn wants(&self) -> watch::Receiver<u64> {
        self.wants.subscribe()
    }

    /// Sets whether other hubs are unreachable: meanwhile no request waits for their data.
    pub fn set_apart(&self, apart: bool) {
        self.apart.store(apart, Ordering::Release);
    }

    /// Sets whether a source's data is fetched from another hub now, and its missing ranges are known.
    pub fn set_brought(&self, source: SourceId, brought: bool) {
        self.source(source).brought.store(brought, Ordering::Release);
    }

    /// Whether a source's data is fetched from another hub.
    pub fn is_brought(&self, source: SourceId) -> bool {
        self.source(source).brought.load(Ordering::Acquire)
    }

    /// Waits, at most `BRING_TIMEOUT`, for the data of these sources on other hubs between two times, milliseconds
    /// since the Unix epoch. Data that has not arrived then is reported as missing.
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

//! How the links to hubs do: each writes it here, and our own rows and the API read it.

use super::Live;
use shared::wire::SourceId;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Counts of a link to a hub.
#[derive(Debug, Default)]
pub struct UplinkCounts {
    /// Links that stood.
    pub links: AtomicU64,
    /// Attempts that failed, and links that were lost.
    pub failures: AtomicU64,
    /// Ticks sent as they came.
    pub ticks: AtomicU64,
    /// Times a place had left memory, and the link went on with the newest tick.
    pub skipped: AtomicU64,
    /// Bytes of all messages.
    pub bytes: AtomicU64,
    /// Ranges that the hub asked for.
    pub fills: AtomicU64,
    /// Bytes of what it was given of them.
    pub fill_bytes: AtomicU64,
    /// The newest tick that was sent; 0 before the first.
    pub sent: AtomicU64,
    /// The newest tick up to which all is in the hub's log; 0 before the hub said so.
    pub acknowledged: AtomicU64,
}

/// How a link stands, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UplinkStanding {
    /// `starting`, `pending`, `live`, `away` or `refused`.
    pub word: &'static str,
    /// Why, a sentence without a full stop, where there is something to say.
    pub why: Option<String>,
    /// Since when, milliseconds since the Unix epoch.
    pub since: i64,
    /// What this machine is called on the hub, where that is known.
    pub name: Option<String>,
    /// Id of its source there, likewise.
    pub source: Option<String>,
}

/// The link to one hub.
#[derive(Debug)]
pub struct UplinkState {
    /// The hub's first address.
    pub hub: String,
    /// The source that is sent.
    pub source: SourceId,
    /// What went over it.
    pub counts: UplinkCounts,
    standing: Mutex<UplinkStanding>,
}

impl UplinkState {
    /// One that is yet to begin, at this time in milliseconds since the Unix epoch.
    pub fn new(hub: String, source: SourceId, now: i64) -> Self {
        let standing = UplinkStanding { word: "starting", since: now, ..UplinkStanding::default() };
        UplinkState { hub, source, counts: UplinkCounts::default(), standing: Mutex::new(standing) }
    }

    /// How it stands.
    pub fn standing(&self) -> UplinkStanding {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says how it stands.
    pub fn stand(&self, standing: UplinkStanding) {
        *self.standing.lock().unwrap_or_else(PoisonError::into_inner) = standing;
    }
}

/// How far a hub is behind, milliseconds of samples. None before that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UplinkLag {
    /// What was not sent yet as it came.
    pub unsent: Option<i64>,
    /// What the hub has not confirmed to have in its log.
    pub unconfirmed: Option<i64>,
}

impl Live {
    /// A link to a hub begins its work.
    pub fn add_uplink(&self, uplink: Arc<UplinkState>) {
        self.uplinks.lock().unwrap_or_else(PoisonError::into_inner).push(uplink);
    }

    /// The links to hubs, in the order of the configuration; none in most servers.
    pub fn uplinks(&self) -> Vec<Arc<UplinkState>> {
        self.uplinks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How far a hub is behind.
    pub fn lag(&self, uplink: &UplinkState) -> UplinkLag {
        let store = self.store();
        let interval = store.source(uplink.source).map_or(0, |(source, _)| source.interval);
        let after = |seq: &AtomicU64| {
            let seq = Some(seq.load(Relaxed)).filter(|seq| *seq > 0)?;
            Some((store.ticks_after(uplink.source, seq) as i64).saturating_mul(interval))
        };
        UplinkLag { unsent: after(&uplink.counts.sent), unconfirmed: after(&uplink.counts.acknowledged) }
    }
}

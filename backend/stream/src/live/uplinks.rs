//! State of the connections to hubs: each connection writes it here, and the server's own rows and the API read it.

use super::Live;
use parking_lot::Mutex;
use shared::wire::SourceId;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of a connection to a hub.
#[derive(Debug, Default)]
pub struct UplinkCounts {
    /// Connections that were established.
    pub links: AtomicU64,
    /// Attempts that failed, and connections that were lost.
    pub failures: AtomicU64,
    /// Ticks sent live.
    pub ticks: AtomicU64,
    /// Times that a position was no longer in memory, and the connection continued with the newest tick.
    pub skipped: AtomicU64,
    /// Bytes of all messages.
    pub bytes: AtomicU64,
    /// Ranges that the hub requested.
    pub fills: AtomicU64,
    /// Bytes sent for those ranges.
    pub fill_bytes: AtomicU64,
    /// The newest tick that was sent; 0 before the first.
    pub sent: AtomicU64,
    /// The newest tick up to which the hub has logged all; 0 before the hub's first confirmation.
    pub acknowledged: AtomicU64,
}

/// State of a connection, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UplinkStatus {
    /// `starting`, `pending`, `live`, `away` or `refused`.
    pub word: &'static str,
    /// Reason, a sentence without a full stop; none if there is nothing to explain.
    pub why: Option<String>,
    /// Time of the last change, milliseconds since the Unix epoch.
    pub since: i64,
    /// Name of this machine on the hub; none if unknown.
    pub name: Option<String>,
    /// Id of its source there; none if unknown.
    pub source: Option<String>,
}

/// The connection to one hub.
#[derive(Debug)]
pub struct UplinkState {
    /// The hub's first address.
    pub hub: String,
    /// The source that is sent.
    pub source: SourceId,
    /// The host of an endpoint that it is; none for this machine.
    pub host: Option<String>,
    /// Counters of the connection.
    pub counts: UplinkCounts,
    status: Mutex<UplinkStatus>,
}

impl UplinkState {
    /// A connection that has not started yet, at this time in milliseconds since the Unix epoch.
    pub fn new(hub: String, (source, host): (SourceId, Option<String>), now: i64) -> Self {
        let status = UplinkStatus { word: "starting", since: now, ..UplinkStatus::default() };
        UplinkState { hub, source, host, counts: UplinkCounts::default(), status: Mutex::new(status) }
    }

    /// Its state.
    pub fn status(&self) -> UplinkStatus {
        self.status.lock().clone()
    }

    /// Sets its state.
    pub fn stand(&self, status: UplinkStatus) {
        *self.status.lock() = status;
    }
}

/// Backlog of a hub, milliseconds of samples. None while unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UplinkLag {
    /// Ticks that were not sent live yet.
    pub unsent: Option<i64>,
    /// Ticks that the hub has not confirmed to be in its log.
    pub unconfirmed: Option<i64>,
}

impl Live {
    /// Registers a connection to a hub.
    pub fn add_uplink(&self, uplink: Arc<UplinkState>) {
        self.uplinks.lock().push(uplink);
    }

    /// Forgets a connection that has ended for good.
    pub fn remove_uplink(&self, uplink: &Arc<UplinkState>) {
        self.uplinks.lock().retain(|known| !Arc::ptr_eq(known, uplink));
    }

    /// The connections to hubs, those of this machine first, in the order of the configuration; none on most servers.
    pub fn uplinks(&self) -> Vec<Arc<UplinkState>> {
        self.uplinks.lock().clone()
    }

    /// Backlog of a hub.
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

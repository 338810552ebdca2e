//! The hub's end of the links to agents: their samples become sources, as if they were sampled here.
//!
//! `link.rs` has the socket of one agent: authentication and heartbeat; `end.rs` has its close. `intake.rs` processes
//! its messages: it applies frames, `map.rs` maps its rows and series to the hub's numbers, `clock.rs` corrects its
//! timestamps, `limits.rs` has the limits. `append.rs` appends the ticks of many links in groups. `coverage.rs` finds
//! missing samples, and `fetch.rs` requests them. `ask.rs` forwards questions of pages to an agent. `presence.rs`
//! tracks links, and decides about a second link with the same key; `clones.rs` detects machines that use one in turn.
//! `others.rs` has the requests between hubs of a cluster.

mod append;
mod ask;
mod clock;
mod clones;
mod coverage;
mod end;
mod fetch;
mod intake;
mod limits;
mod link;
mod map;
mod names;
mod others;
mod presence;
mod records;
mod remarks;

pub use ask::NoAnswer;
pub use limits::{Cause, IngestLimits, Refusals};
pub use link::{Denial, socket_config};
pub use others::{AskedElsewhere, NoTake, OtherHubs};
pub use presence::LinkProcess;

use crate::drain::Drain;
use append::Gathered;
use ask::Desk;
use clones::Clones;
use fetch::Turns;
use limits::Used;
use map::Vocabulary;
use names::CalledMachines;
use parking_lot::Mutex;
use presence::Presence;
use shared::connection_state::ConnectionState;
use shared::wire::SourceId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use stream::live::Live;
use team::accounts::Accounts;

/// Length of the ID of a source that has a key.
const SOURCE_ID_LETTERS: usize = 26;

/// A source whose link is ended this often within this time for its content must wait.
const STRIKES: usize = 3;
const STRIKES_WITHIN: Duration = Duration::from_secs(60);
const STRIKES_WAIT_MS: u32 = 60_000;

/// Identity of an accepted agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// ID of its source.
    pub source: String,
    /// ID of its key.
    pub key: String,
    /// The network of its address.
    pub from: String,
    /// Its display name.
    pub name: String,
    /// Labels that users gave it: they take precedence over its own.
    pub labels: Vec<(String, String)>,
    /// Another hub relays it: timestamps are already corrected, and that hub evaluates it.
    pub relayed: bool,
}

/// Counters of all links since the start.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub ticks: AtomicU64,
    pub samples: AtomicU64,
    pub duplicates: AtomicU64,
    pub bytes: AtomicU64,
    pub fills: AtomicU64,
    pub fill_bytes: AtomicU64,
}

/// Counters of all links since the start, for `/metrics`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IngestCounts {
    /// Current number of links.
    pub links: u64,
    /// Ticks appended.
    pub ticks: u64,
    /// Samples appended.
    pub samples: u64,
    /// Ticks that were already stored.
    pub duplicates: u64,
    /// Bytes of the agents' messages.
    pub bytes: u64,
    /// Completed requests for missing ranges.
    pub fills: u64,
    /// Bytes of the requested data.
    pub fill_bytes: u64,
    /// Samples that machines have and the hub lacks, milliseconds over all of them.
    pub missing_ms: u64,
    /// Maximum delay of a linked machine's newest tick after its timestamp, milliseconds.
    pub lag_ms: u64,
    /// Dropped items, by [`Cause`].
    pub refused: Vec<(String, u64)>,
}

/// State that all links share.
struct Inner {
    live: Arc<Live>,
    /// Database of clock corrections, last contacts, and erased ticks.
    accounts: Option<Accounts>,
    limits: IngestLimits,
    vocabulary: Vocabulary,
    presence: Arc<Presence>,
    /// The other hubs of a cluster.
    others: Option<Arc<dyn OtherHubs>>,
    clones: Clones,
    names: CalledMachines,
    turns: Turns,
    gathering: Gathered,
    desk: Desk,
    totals: Totals,
    /// By source; refused links have the key None.
    refusals: Mutex<BTreeMap<Option<SourceId>, Arc<Refusals>>>,
    used: Mutex<BTreeMap<SourceId, Arc<Mutex<Used>>>>,
    /// By source: the last times at which its link was ended for its content, by the steady clock.
    strikes: Mutex<BTreeMap<String, VecDeque<Duration>>>,
    drain: Drain,
}

/// The hub's end of all links; a clone is a pointer.
#[derive(Clone)]
pub struct Ingest(Arc<Inner>);

impl Ingest {
    /// Fills this stream, and stores no clock corrections beyond its end.
    pub fn new(live: Arc<Live>, limits: IngestLimits) -> Self {
        Self::build(live, (None, None), limits)
    }

    /// Fills the stream of a hub, which may be part of a cluster. Restored sources with a key are unreachable until
    /// their agent reconnects.
    pub fn of_hub(
        live: Arc<Live>,
        accounts: Accounts,
        others: Option<Arc<dyn OtherHubs>>,
        limits: IngestLimits,
    ) -> Self {
        Self::build(live, (Some(accounts), others), limits)
    }

    fn build(
        live: Arc<Live>,
        (accounts, others): (Option<Accounts>, Option<Arc<dyn OtherHubs>>),
        limits: IngestLimits,
    ) -> Self {
        let sources = live.store().sources();
        for source in sources.into_iter().filter(|source| is_source_id(&source.key)) {
            live.set_connection_state(source.id, ConnectionState::Unreachable);
        }
        Ingest(Arc::new(Inner {
            live,
            accounts,
            limits,
            vocabulary: Vocabulary::new(),
            presence: Arc::default(),
            others,
            clones: Clones::default(),
            names: CalledMachines::default(),
            turns: Turns::default(),
            gathering: Gathered::default(),
            desk: Desk::default(),
            totals: Totals::default(),
            refusals: Mutex::default(),
            used: Mutex::default(),
            strikes: Mutex::default(),
            drain: Drain::default(),
        }))
    }

    /// Counts a link that was refused before it began.
    pub fn turned_away(&self, cause: Cause) {
        self.0.refusals(None).add(cause, 1);
    }

    /// Number of refused links, by [`Cause`].
    pub fn all_turned_away(&self) -> BTreeMap<String, u64> {
        self.0.refusals(None).all().into_iter().collect()
    }

    /// Marks the sources of these IDs as ended, except linked ones.
    pub fn ended(&self, ids: &[String]) {
        let sources: Vec<SourceId> = {
            let store = self.0.live.store();
            ids.iter().filter_map(|id| store.named(id)).collect()
        };
        for source in sources {
            let (connection_state, _) = self.0.live.source(source).connection_state();
            if matches!(connection_state, ConnectionState::Unreachable | ConnectionState::Stopped(_)) {
                self.0.live.set_connection_state(source, ConnectionState::Ended);
            }
        }
    }

    /// Sets names and labels that users gave machines: ID, name and labels of each.
    pub fn called(&self, all: Vec<(String, String, BTreeMap<String, String>)>) {
        for (id, name, labels) in all {
            let source = self.0.live.store().named(&id);
            let labels = labels.into_iter().collect();
            source
                .into_iter()
                .for_each(|source| self.0.names.changed(&self.0.live, source, &name, Vec::clone(&labels)));
        }
    }

    /// Current number of links.
    pub fn links(&self) -> usize {
        self.0.presence.links()
    }

    /// The drain of all connections: agents are notified that the hub shuts down, and reconnect.
    pub fn drain(&self) -> &Drain {
        &self.0.drain
    }

    /// Missing samples of all sources, and the maximum delay of the linked ones, milliseconds.
    fn lack(&self) -> (u64, u64) {
        let all = self.0.refusals.lock();
        // Every source that was linked since the start has an entry there.
        let linked = all.keys().copied().flatten();
        linked.map(|source| self.0.live.source(source)).fold((0, 0), |(missing, lag), state| {
            let behind = || state.figures().behind_ms.unwrap_or(0).max(lag);
            match state.connection_state().0 {
                ConnectionState::Filling { missing: more, .. } => {
                    (missing + u64::try_from(more).unwrap_or(0), behind())
                }
                ConnectionState::Live | ConnectionState::Late => (missing, behind()),
                _ => (missing, lag),
            }
        })
    }

    /// Whether a source is another machine, measured by its agent, or relayed by another hub.
    pub fn has_agent(&self, source: SourceId) -> bool {
        !self.0.live.holds(source)
            || self.0.live.store().source(source).is_some_and(|(info, _)| is_source_id(&info.key))
    }

    /// The counters of all links.
    pub fn counts(&self) -> IngestCounts {
        let Totals { ticks, samples, duplicates, bytes, fills, fill_bytes } = &self.0.totals;
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (missing_ms, lag_ms) = self.lack();
        let all = self.0.refusals.lock();
        let refused = Cause::ALL.iter().map(|cause| {
            let n = all.values().map(|refusals| refusals.count_of(*cause)).sum();
            (cause.as_str().to_owned(), n)
        });
        IngestCounts {
            links: self.0.presence.links() as u64,
            ticks: load(ticks),
            samples: load(samples),
            duplicates: load(duplicates),
            bytes: load(bytes),
            fills: load(fills),
            fill_bytes: load(fill_bytes),
            missing_ms,
            lag_ms,
            refused: refused.collect(),
        }
    }
}

impl Inner {
    /// Counters of a source's dropped items since the start.
    fn refusals(&self, source: Option<SourceId>) -> Arc<Refusals> {
        let mut all = self.refusals.lock();
        all.entry(source).or_default().clone()
    }

    /// Usage of a source's limits since the start.
    fn used(&self, source: SourceId) -> Arc<Mutex<Used>> {
        let mut all = self.used.lock();
        all.entry(source).or_insert_with(|| Arc::new(Mutex::new(Used::new(self.live.clock.steady())))).clone()
    }

    /// Records that a link of a source was ended for its content; returns its wait time, ms. It is long for repeated
    /// cases.
    fn strike(&self, source: &str) -> u32 {
        let now = self.live.clock.steady();
        let mut all = self.strikes.lock();
        all.retain(|_, times| times.back().is_some_and(|last| now.saturating_sub(*last) < STRIKES_WITHIN));
        let times = all.entry(source.into()).or_default();
        times.push_back(now);
        if times.len() > STRIKES {
            times.pop_front();
        }
        let many = times.len() == STRIKES && now.saturating_sub(times[0]) < STRIKES_WITHIN;
        if many { STRIKES_WAIT_MS } else { 0 }
    }
}

/// Whether a source's key is the ID of a source with an agent key.
fn is_source_id(key: &str) -> bool {
    key.len() == SOURCE_ID_LETTERS && key.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

#[cfg(test)]
mod tests;

//! The hub's end of the links to agents: what they send becomes sources, as if it had been sampled here.
//!
//! `link.rs` is the socket of one agent: who it is, its heartbeat, and `end.rs` how it ends. `intake.rs` takes its messages
//! in: it applies frames, `map.rs` gives its rows and series the hub's numbers, `clock.rs` moves its stamps, `limits.rs` says
//! how much of it is taken. `append.rs` appends what many links bring in groups. `coverage.rs` says what is lacking, and
//! `fetch.rs` gets it. `ask.rs` brings an agent what pages ask of its machine. `presence.rs` knows who is linked, and what
//! becomes of a second link with one key; `clones.rs` knows of machines that take turns with one. `others.rs` is what other
//! hubs of a cluster are asked, and ask.

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
use shared::standing::Standing;
use shared::wire::SourceId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use stream::live::Live;
use team::accounts::Accounts;

/// Length of the id of a source that has a key.
const SOURCE_ID_LETTERS: usize = 26;

/// A source whose link is ended so often within this time for what it sent waits so long.
const STRIKES: usize = 3;
const STRIKES_WITHIN: Duration = Duration::from_secs(60);
const STRIKES_WAIT_MS: u32 = 60_000;

/// What an agent was let in as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Id of its source.
    pub source: String,
    /// Id of its key.
    pub key: String,
    /// The network that it came from.
    pub from: String,
    /// The name by which people know it.
    pub name: String,
    /// Labels that people gave it: they stand before its own.
    pub labels: Vec<(String, String)>,
    /// Another hub tells what it took in: stamps are right, and judging is that hub's.
    pub relayed: bool,
}

/// What went through all links since the start.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub ticks: AtomicU64,
    pub samples: AtomicU64,
    pub duplicates: AtomicU64,
    pub bytes: AtomicU64,
    pub fills: AtomicU64,
    pub fill_bytes: AtomicU64,
}

/// What went through all links since the start, for `/metrics`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IngestCounts {
    /// Links that live now.
    pub links: u64,
    /// Ticks appended.
    pub ticks: u64,
    /// Samples appended.
    pub samples: u64,
    /// Ticks that were here already.
    pub duplicates: u64,
    /// Bytes of the messages of agents.
    pub bytes: u64,
    /// Ranges that were asked for and have come.
    pub fills: u64,
    /// Bytes of what was asked for.
    pub fill_bytes: u64,
    /// What machines have that the hub lacks yet, milliseconds of samples of all of them together.
    pub missing_ms: u64,
    /// How far the newest tick of a linked machine is behind its stamp, of the one that is furthest, milliseconds.
    pub lag_ms: u64,
    /// What was left out, by [`Cause`].
    pub refused: Vec<(String, u64)>,
}

/// What all links share.
struct Inner {
    live: Arc<Live>,
    /// Where is written down how clocks were corrected, who was heard of, and what was erased.
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
    /// By source; one whose link could not be taken in has no number.
    refusals: Mutex<BTreeMap<Option<SourceId>, Arc<Refusals>>>,
    used: Mutex<BTreeMap<SourceId, Arc<Mutex<Used>>>>,
    /// By source: when its link was ended for what it sent, by the steady clock, the last times.
    strikes: Mutex<BTreeMap<String, VecDeque<Duration>>>,
    drain: Drain,
}

/// The hub's end of all links; a clone is a pointer.
#[derive(Clone)]
pub struct Ingest(Arc<Inner>);

impl Ingest {
    /// One that fills this stream, and forgets at its end how clocks were corrected.
    pub fn new(live: Arc<Live>, limits: IngestLimits) -> Self {
        Self::of(live, (None, None), limits)
    }

    /// One that fills the stream of a hub, which may be one of several. Sources that were found and have a key are
    /// unreachable until their agent is back.
    pub fn of_hub(
        live: Arc<Live>,
        accounts: Accounts,
        others: Option<Arc<dyn OtherHubs>>,
        limits: IngestLimits,
    ) -> Self {
        Self::of(live, (Some(accounts), others), limits)
    }

    fn of(
        live: Arc<Live>,
        (accounts, others): (Option<Accounts>, Option<Arc<dyn OtherHubs>>),
        limits: IngestLimits,
    ) -> Self {
        let sources = live.store().sources();
        for source in sources.into_iter().filter(|source| is_source_id(&source.key)) {
            live.set_standing(source.id, Standing::Unreachable);
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

    /// A link was turned away before it began.
    pub fn turned_away(&self, cause: Cause) {
        self.0.refusals(None).add(cause, 1);
    }

    /// How often that was, by [`Cause`].
    pub fn all_turned_away(&self) -> BTreeMap<String, u64> {
        self.0.refusals(None).all().into_iter().collect()
    }

    /// The sources of these ids come back no more, those that are linked apart.
    pub fn ended(&self, ids: &[String]) {
        let sources: Vec<SourceId> = {
            let store = self.0.live.store();
            ids.iter().filter_map(|id| store.named(id)).collect()
        };
        for source in sources {
            let (standing, _) = self.0.live.source(source).standing();
            if matches!(standing, Standing::Unreachable | Standing::Stopped(_)) {
                self.0.live.set_standing(source, Standing::Ended);
            }
        }
    }

    /// People call machines so, and gave them these labels: id, name and labels of each.
    pub fn called(&self, all: Vec<(String, String, BTreeMap<String, String>)>) {
        for (id, name, labels) in all {
            let source = self.0.live.store().named(&id);
            let labels = labels.into_iter().collect();
            source
                .into_iter()
                .for_each(|source| self.0.names.changed(&self.0.live, source, &name, Vec::clone(&labels)));
        }
    }

    /// How many links live now.
    pub fn links(&self) -> usize {
        self.0.presence.links()
    }

    /// Lets go of all links, and of who else is bound to it: agents are told that the hub goes, and come back.
    pub fn drain(&self) -> &Drain {
        &self.0.drain
    }

    /// What is missing of all sources, and how far the furthest of those that are linked is behind, milliseconds.
    fn lack(&self) -> (u64, u64) {
        let all = self.0.refusals.lock();
        // Who was linked since the start has a line there.
        let linked = all.keys().copied().flatten();
        linked.map(|source| self.0.live.source(source)).fold((0, 0), |(missing, lag), state| {
            let behind = || state.figures().behind_ms.unwrap_or(0).max(lag);
            match state.standing().0 {
                Standing::Filling { missing: more, .. } => (missing + u64::try_from(more).unwrap_or(0), behind()),
                Standing::Live | Standing::Late => (missing, behind()),
                _ => (missing, lag),
            }
        })
    }

    /// Whether a source is another machine's, which its agent measures, or another hub.
    pub fn has_agent(&self, source: SourceId) -> bool {
        !self.0.live.holds(source)
            || self.0.live.store().source(source).is_some_and(|(info, _)| is_source_id(&info.key))
    }

    /// What went through all links.
    pub fn counts(&self) -> IngestCounts {
        let Totals { ticks, samples, duplicates, bytes, fills, fill_bytes } = &self.0.totals;
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (missing_ms, lag_ms) = self.lack();
        let all = self.0.refusals.lock();
        let refused = Cause::ALL.iter().map(|cause| {
            let n = all.values().map(|refusals| refusals.of(*cause)).sum();
            (cause.word().to_owned(), n)
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
    /// What was left out of a source since the start.
    fn refusals(&self, source: Option<SourceId>) -> Arc<Refusals> {
        let mut all = self.refusals.lock();
        all.entry(source).or_default().clone()
    }

    /// What a source has used of its limits since the start.
    fn used(&self, source: SourceId) -> Arc<Mutex<Used>> {
        let mut all = self.used.lock();
        all.entry(source).or_insert_with(|| Arc::new(Mutex::new(Used::new(self.live.clock.steady())))).clone()
    }

    /// A link of a source is ended for what it sent: how long it waits, ms. That is long where it happens again and again.
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

/// Whether a source's key is the id of one that has a key.
fn is_source_id(key: &str) -> bool {
    key.len() == SOURCE_ID_LETTERS && key.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

#[cfg(test)]
mod tests;

//! Several hubs that act as one: they share a database and a sample store, and exchange messages over NATS.
//!
//! `bus.rs` has the messaging. `others.rs` and `holders.rs` know which hub has the link of which machine. `calls.rs`
//! has the requests between hubs (`columns.rs`: the overview over time). `relay.rs` relays a machine that another hub
//! holds, over `pipe.rs`. [`gossip`] keeps the state of all machines on every hub.

// A lock in the head of a `match` or `for` is held to its end, where it may be taken again.
#![warn(clippy::significant_drop_in_scrutinee, clippy::await_holding_lock)]

mod bus;
mod calls;
mod columns;
mod doctor;
pub mod gossip;
mod holders;
mod others;
mod pipe;
mod relay;
pub mod settings;

pub use doctor::examine;

pub use others::Others;

pub use bus::{Bus, BusCounts, BusError, BusMessage, BusSubscription, MAX_BUS_MESSAGE};

use calls::{Announced, Call, CallReply, HELD_SUBJECT, decode, encode, subject_of};
use fleet::ingest::Ingest;
use holders::{LEASE_INTERVAL, LOOK_INTERVAL};
use jobs::runs::RunRegistry;
use pipe::PipeCounts;
use relay::MAX_RELAYS;
use ring::rand::{SecureRandom, SystemRandom};
use shared::wire::{Check, CheckState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::time::interval;

/// Maximum number of concurrent requests of other hubs.
const MAX_CALLS: usize = 256;
/// Interval at which rows of ended hubs are deleted.
const FORGET_INTERVAL: Duration = Duration::from_secs(3_600);
/// Maximum time of the last messages at shutdown.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Name of the cluster check.
const CHECK: &str = "cluster";

/// A new ID of a hub: 16 hexadecimal digits. It belongs to the process, not to the data folder, so a copied folder
/// makes no second hub of the same ID. Sources that a restarted hub held before are free once another hub asks for
/// them.
pub fn new_hub_id() -> String {
    let mut bytes = [0; 8];
    // Without the system's generator, TLS would not work either.
    let _ = SystemRandom::new().fill(&mut bytes);
    format!("{:016x}", u64::from_le_bytes(bytes))
}

#[derive(Debug, Default)]
struct Counts {
    calls: AtomicU64,
    relays: AtomicU64,
    begun: AtomicU64,
    failed: AtomicU64,
    refused: AtomicU64,
}

/// State of a hub of a cluster, for `/metrics` and `/api/v1/health`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterFigures {
    /// Counters of the bus.
    pub bus: BusCounts,
    /// Hubs with a valid lease: ID and name; this one included.
    pub hubs: Vec<(String, String)>,
    /// Whether the last read of the database succeeded.
    pub database: bool,
    /// Machines that this hub holds.
    pub held: u64,
    /// Machines that other hubs hold.
    pub elsewhere: u64,
    /// Machines of other hubs that are relayed to this one now.
    pub relays: u64,
    /// Machines that this hub relays to other hubs now.
    pub telling: u64,
    /// Relays to this hub that were started.
    pub begun: u64,
    /// Relays to this hub that failed.
    pub failed: u64,
    /// Relays refused because the limit is reached.
    pub refused: u64,
    /// Bytes received from other hubs through relays.
    pub came_bytes: u64,
    /// Bytes sent to other hubs through relays.
    pub told_bytes: u64,
    /// Pipes that ended because a message was lost.
    pub lost: u64,
    /// Requests received from other hubs.
    pub calls: u64,
}

/// One hub of a cluster.
pub struct Cluster {
    others: Arc<Others>,
    ingest: Ingest,
    /// Runs of the machine that this hub measures itself, for their output.
    runs: Arc<RunRegistry>,
    telling: Arc<Semaphore>,
    calling: Arc<Semaphore>,
    pipes: Arc<PipeCounts>,
    counts: Counts,
    stop: watch::Receiver<bool>,
}

impl Cluster {
    /// Joins the cluster; called before the first link is accepted.
    pub async fn begin(
        others: Arc<Others>,
        ingest: Ingest,
        runs: Arc<RunRegistry>,
        stop: watch::Receiver<bool>,
    ) -> Arc<Cluster> {
        let cluster = Arc::new(Cluster {
            others,
            ingest,
            runs,
            telling: Arc::new(Semaphore::new(MAX_RELAYS)),
            calling: Arc::new(Semaphore::new(MAX_CALLS)),
            pipes: Arc::default(),
            counts: Counts::default(),
            stop,
        });
        // Reads the holder of each machine.
        cluster.renew().await;
        cluster.read_holders().await;
        cluster
    }

    /// The other hubs, as this one knows them.
    pub fn others(&self) -> &Others {
        &self.others
    }

    /// Runs the background work until the hub ends; then releases its sources.
    pub async fn run(self: Arc<Self>) {
        let mut stop = self.stop.clone();
        let renews = async {
            let mut due = interval(LEASE_INTERVAL);
            loop {
                due.tick().await;
                self.renew().await;
            }
        };
        let looks = async {
            let mut due = interval(LOOK_INTERVAL);
            loop {
                due.tick().await;
                self.read_holders().await;
                self.publish_problem();
            }
        };
        let forgets = async {
            let mut due = interval(FORGET_INTERVAL);
            loop {
                due.tick().await;
                self.forget().await;
            }
        };
        let apart = async {
            let mut up = self.others.bus.up();
            loop {
                self.others.live.set_apart(!*up.borrow_and_update());
                if up.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
                self.publish_problem();
            }
        };
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => {}
            () = apart => {}
            () = renews => {}
            () = looks => {}
            () = forgets => {}
            () = self.hear_all() => {}
            () = self.be_called() => {}
            () = self.clone().bring_all() => {}
        }
    }

    /// Releases this hub's sources: called once its links have ended.
    pub async fn end(&self) {
        let _ = tokio::time::timeout(LAST_WORDS, self.give_back()).await;
    }

    /// Receives announcements about held sources.
    async fn hear_all(&self) {
        loop {
            let Ok(mut heard) = self.others.bus.subscribe(HELD_SUBJECT).await else {
                tokio::time::sleep(LOOK_INTERVAL).await;
                continue;
            };
            while let Some(message) = heard.next().await {
                if let Some(said) = decode::<Announced>(message.bytes()) {
                    self.apply_announcement(said);
                }
            }
        }
    }

    /// Answers requests of other hubs.
    async fn be_called(self: &Arc<Self>) {
        loop {
            let Ok(mut heard) = self.others.bus.subscribe(&subject_of(&self.others.id)).await else {
                tokio::time::sleep(LOOK_INTERVAL).await;
                continue;
            };
            while let Some(message) = heard.next().await {
                let Some(call) = decode::<Call>(message.bytes()) else {
                    self.others.bus.answer(&message, encode(&CallReply::Busy));
                    continue;
                };
                let Ok(permit) = self.calling.clone().try_acquire_owned() else {
                    self.counts.refused.fetch_add(1, Relaxed);
                    self.others.bus.answer(&message, encode(&CallReply::Busy));
                    continue;
                };
                let own = self.clone();
                tokio::spawn(async move {
                    let reply = own.answer(call).await;
                    own.others.bus.answer(&message, encode(&reply));
                    drop(permit);
                });
            }
        }
    }

    /// The current problem of the cluster, as a sentence; None: no problem.
    pub fn trouble(&self) -> Option<String> {
        if !self.others.bus.is_up() {
            return Some(format!("{}; machines of other hubs are not live here", BusError::Away));
        }
        if !self.others.holders.is_read() {
            return Some(
                "the database of this cluster is unreachable; the assignment of machines to hubs may be \
                out of date"
                    .into(),
            );
        }
        let full = "the limit of machines in this cluster is reached; new machines are visible on their own hub only";
        self.others.live.is_full().then(|| full.into())
    }

    /// Shows the problem among the checks of each machine.
    fn publish_problem(&self) {
        let check = |state, found: &str, reason: String, remedy: &str| Check {
            id: CHECK.into(),
            state,
            tried: Vec::new(),
            found: found.into(),
            reason,
            remedy: remedy.into(),
        };
        let check = match self.trouble() {
            Some(why) => check(
                CheckState::Partial,
                "some machines of other hubs are not live here",
                why,
                "check the database, the sample store and NATS with watchglass doctor --config FILE and the \
                configuration of this hub",
            ),
            None => check(CheckState::Ok, "the hubs of this cluster are connected", String::new(), ""),
        };
        self.others.live.store().set_check(&check);
    }

    /// The current counters and state.
    pub fn figures(&self) -> ClusterFigures {
        let load = |count: &AtomicU64| count.load(Relaxed);
        let (held, elsewhere) = self.others.holders.counts(&self.others.id);
        ClusterFigures {
            bus: self.others.bus.counts(),
            hubs: self.others.holders.hubs(),
            database: self.others.holders.is_read(),
            held: held as u64,
            elsewhere: elsewhere as u64,
            relays: load(&self.counts.relays),
            telling: (MAX_RELAYS - self.telling.available_permits()) as u64,
            begun: load(&self.counts.begun),
            failed: load(&self.counts.failed),
            refused: load(&self.counts.refused),
            came_bytes: load(&self.pipes.came),
            told_bytes: load(&self.pipes.out),
            lost: load(&self.pipes.lost),
            calls: load(&self.counts.calls),
        }
    }
}

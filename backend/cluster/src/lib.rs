//! Several hubs that are one: they share a database and a sample store, and know of one another over NATS.
//!
//! `bus.rs` is what they say to one another. `others.rs` and `holders.rs` know which hub has the link of which machine,
//! `calls.rs` is what one hub asks another (`columns.rs`: the overview over time), `relay.rs` brings a machine here that
//! another hub holds, over `pipe.rs`. [`gossip`] is what every hub knows of all machines.

// A lock that is taken in the head of a `match` or `for` is held to its end, in which it may be taken again.
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

use calls::{Announced, Call, CallReply, HELD, decode, encode, subject_of};
use fleet::ingest::Ingest;
use holders::{LEASE_INTERVAL, LOOK_INTERVAL};
use jobs::runs::RunBook;
use pipe::PipeCounts;
use relay::MAX_RELAYS;
use ring::rand::{SecureRandom, SystemRandom};
use shared::wire::{Check, CheckState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::time::interval;

/// Calls of other hubs that are under way at once.
const MAX_CALLS: usize = 256;
/// Between two looks for what hubs left behind.
const FORGET_INTERVAL: Duration = Duration::from_secs(3_600);
/// How long the last words may take.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// What a check of the cluster is called.
const CHECK: &str = "cluster";

/// A new id of a hub: 16 hexadecimal digits. It is of the process, not of the data folder: a folder that was copied is no
/// second hub of one id, and what a hub that starts again held before is void once another asks for it.
pub fn new_hub_id() -> String {
    let mut bytes = [0; 8];
    // Without the system's generator there would be no TLS either.
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

/// How a hub of a cluster does, for `/metrics` and `/api/v1/health`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterFigures {
    /// What went over the bus.
    pub bus: BusCounts,
    /// Hubs that are there: id, and what people call them; this one among them.
    pub hubs: Vec<(String, String)>,
    /// Whether the database could be read when it was looked at last.
    pub database: bool,
    /// Machines that this hub holds.
    pub held: u64,
    /// Machines that other hubs hold.
    pub elsewhere: u64,
    /// Machines that come here from other hubs now.
    pub relays: u64,
    /// Machines that are told to other hubs now.
    pub telling: u64,
    /// Times that a machine began to come here.
    pub begun: u64,
    /// Times that it could not.
    pub failed: u64,
    /// Machines that were not brought or told because too many are.
    pub refused: u64,
    /// Bytes that came here of machines of other hubs.
    pub came_bytes: u64,
    /// Bytes of machines that were told to other hubs.
    pub told_bytes: u64,
    /// Pipes that ended because a message was lost.
    pub lost: u64,
    /// Questions of other hubs.
    pub calls: u64,
}

/// One hub of a cluster.
pub struct Cluster {
    others: Arc<Others>,
    ingest: Ingest,
    /// What jobs of the machine that this hub measures itself printed.
    runs: Arc<RunBook>,
    telling: Arc<Semaphore>,
    calling: Arc<Semaphore>,
    pipes: Arc<PipeCounts>,
    counts: Counts,
    stop: watch::Receiver<bool>,
}

impl Cluster {
    /// Begins to be one of several: before the first link is taken in.
    pub async fn begin(
        others: Arc<Others>,
        ingest: Ingest,
        runs: Arc<RunBook>,
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
        // Whose each machine is.
        cluster.renew().await;
        cluster.look().await;
        cluster
    }

    /// This hub among the others.
    pub fn others(&self) -> &Others {
        &self.others
    }

    /// Does what there is to do until the hub ends; then what it holds is anybody's.
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
                self.look().await;
                self.say();
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
                self.say();
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

    /// What this hub holds is anybody's: to be called once its links have ended.
    pub async fn end(&self) {
        let _ = tokio::time::timeout(LAST_WORDS, self.give_back()).await;
    }

    /// Hears which hub has taken which source.
    async fn hear_all(&self) {
        loop {
            let Ok(mut heard) = self.others.bus.subscribe(HELD).await else {
                tokio::time::sleep(LOOK_INTERVAL).await;
                continue;
            };
            while let Some(message) = heard.next().await {
                if let Some(said) = decode::<Announced>(message.bytes()) {
                    self.heard(said);
                }
            }
        }
    }

    /// Answers what other hubs ask.
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

    /// What is the matter with the cluster, in a sentence; none: nothing.
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

    /// Shows it with every machine's checks.
    fn say(&self) {
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

    /// How it does.
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

//! Relays: a hub brings a source of another hub here while a user wants to see it. The holder sends it as an agent
//! would, and the same code receives it. A relay ends some time after its last use.

use super::pipe::{self, BUFFER};
use super::{Cluster, new_hub_id};
use fleet::ingest::Arrival;
use shared::agent::close;
use shared::wire::{Check, CheckState, SourceId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use stream::live::Holder;
use tokio::io::duplex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;

/// Maximum number of relays to this hub, and to other hubs.
pub(super) const MAX_RELAYS: usize = 256;
/// A source that is unused for this time is no longer relayed.
const UNWANTED: Duration = Duration::from_secs(60);
/// Pause before the next attempt to relay a source: the first and the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Name of the check that a machine gets when it cannot be relayed here.
const RELAY_CHECK: &str = "relay";
/// Interval of the check whether the source is still wanted.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Whether a run of ticks is part of one that was offered.
fn is_in((first, last): (u64, u64), offered: &[(u64, u64)]) -> bool {
    offered.iter().any(|(from, to)| *from <= first && last <= *to)
}

/// Whether a relay to another hub has started.
pub(super) enum Telling {
    Begun,
    Busy,
}

impl Cluster {
    /// Sends all samples of a source to another hub, over the pipe of this name.
    pub(super) async fn tell(self: &Arc<Self>, source: SourceId, name: &str) -> Telling {
        let plain = !name.is_empty() && name.len() <= 32 && name.bytes().all(|b| b.is_ascii_hexdigit());
        let Some(permit) = self.telling.clone().try_acquire_owned().ok().filter(|_| plain) else {
            self.counts.refused.fetch_add(1, Relaxed);
            return Telling::Busy;
        };
        let Ok(heard) = self.others.bus.subscribe(&format!("pipe.{name}.holder")).await else { return Telling::Busy };
        let (wire, far) = duplex(BUFFER);
        let to = format!("pipe.{name}.asker");
        let carried = pipe::carry(self.others.bus.clone(), heard, to, far, self.pipes.clone());
        let (live, runs, stop, own) = (self.others.live.clone(), self.runs.clone(), self.stop.clone(), self.clone());
        tokio::spawn(async move {
            let _permit = permit;
            let held = async {
                let offered = own.runs(source);
                loop {
                    sleep(LOOK_INTERVAL).await;
                    // Once another hub holds the source, that hub sends it.
                    if !own.others.live.holds(source) {
                        return "another hub holds its link now".to_string();
                    }
                    // All runs were offered at the start. Late runs are offered by starting again.
                    let is_whole = own.others.live.source(source).figures().holes.is_empty();
                    if is_whole && !own.runs(source).iter().all(|run| is_in(*run, &offered)) {
                        return "new samples have arrived".to_string();
                    }
                }
            };
            let why = tokio::select! {
                ((), why) = async { tokio::join!(carried, uplink::tell(live, source, runs, Box::new(wire), stop)) } => why,
                why = held => why,
            };
            tracing::debug!("a machine is not told to another hub any more: {why}");
        });
        Telling::Begun
    }

    /// The stored runs of ticks of a source; the newest has no end.
    fn runs(&self, source: SourceId) -> Vec<(u64, u64)> {
        let runs = self.others.live.store().runs(source);
        let mut runs: Vec<(u64, u64)> = runs.iter().map(|run| (run.first, run.last)).collect();
        if let Some((_, last)) = runs.last_mut() {
            *last = u64::MAX;
        }
        runs
    }

    /// Relays all wanted sources, until the hub ends.
    pub(super) async fn bring_all(self: Arc<Self>) {
        let (mut wants, mut moved) = (self.others.live.wants(), self.others.moved.subscribe());
        let mut running: BTreeMap<SourceId, tokio::task::JoinHandle<()>> = BTreeMap::new();
        let mut ends = self.stop.clone();
        loop {
            running.retain(|_, task| !task.is_finished());
            self.counts.relays.store(running.len() as u64, Relaxed);
            for source in self.wanted() {
                if running.contains_key(&source) {
                    continue;
                }
                if running.len() >= MAX_RELAYS {
                    self.counts.refused.fetch_add(1, Relaxed);
                    self.say_away(source, format!("the limit of {MAX_RELAYS} machines from other hubs is reached"));
                    continue;
                }
                running.insert(source, tokio::spawn(self.clone().keep_bringing(source)));
            }
            tokio::select! {
                _ = ends.wait_for(|stop| *stop) => break,
                _ = wants.changed() => {}
                _ = moved.changed() => {}
                () = sleep(LOOK_INTERVAL) => {}
            }
        }
        running.into_values().for_each(|task| task.abort());
    }

    /// The sources that are to be relayed here.
    fn wanted(&self) -> Vec<SourceId> {
        let sources = self.others.live.store().sources();
        sources.iter().map(|source| source.id).filter(|source| self.is_wanted(*source)).collect()
    }

    fn is_wanted(&self, source: SourceId) -> bool {
        self.others.live.holder(source) == Holder::There
            && self.others.live.wanted(source).is_some_and(|ago| ago < UNWANTED)
    }

    /// Relays a source as long as it is wanted, from the hub that holds it.
    async fn keep_bringing(self: Arc<Self>, source: SourceId) {
        let mut pause = FIRST_PAUSE;
        while self.is_wanted(source) && !*self.stop.borrow() {
            let (begun, mut moved) = (Instant::now(), self.others.moved.subscribe());
            if let Err(why) = self.bring(source).await {
                tracing::debug!("a machine is not brought here: {why}");
                self.say_away(source, why);
                self.counts.failed.fetch_add(1, Relaxed);
            }
            pause = if begun.elapsed() > MAX_PAUSE { FIRST_PAUSE } else { (pause * 2).min(MAX_PAUSE) };
            // A hub that has just taken over the source can be asked at once.
            tokio::select! {
                () = sleep(pause) => {}
                _ = moved.changed() => pause = FIRST_PAUSE,
            }
        }
    }

    /// Adds a check to a machine of another hub: its samples do not arrive here.
    fn say_away(&self, source: SourceId, reason: String) {
        let mut store = self.others.live.store();
        let mut checks = store.own_checks(source);
        checks.retain(|check| check.id != RELAY_CHECK);
        checks.push(Check {
            id: RELAY_CHECK.into(),
            state: CheckState::Partial,
            tried: Vec::new(),
            found: "not live here: another hub holds its link".into(),
            reason,
            remedy: "this hub retries by itself; meanwhile use the page of the other hub".into(),
        });
        store.set_checks(source, checks);
    }

    /// Relays a source until it ends, it is no longer wanted, or another hub holds it.
    async fn bring(&self, source: SourceId) -> Result<(), String> {
        let (key, name) = {
            let store = self.others.live.store();
            let (info, _) = store.source(source).ok_or("the machine no longer exists")?;
            (info.key.clone(), info.name.clone())
        };
        let held = self.others.holders.find(&key).filter(|held| held.alive).ok_or("no hub holds its link")?;
        let pipe = new_hub_id();
        let away = |why: super::BusError| why.to_string();
        let heard = self.others.bus.subscribe(&format!("pipe.{pipe}.asker")).await.map_err(away)?;
        self.ask_to_tell(&held.hub, &key, &pipe).await?;
        self.counts.begun.fetch_add(1, Relaxed);
        let (wire, far) = duplex(BUFFER);
        let to = format!("pipe.{pipe}.holder");
        let carried = pipe::carry(self.others.bus.clone(), heard, to, far, self.pipes.clone());
        let config = Some(fleet::ingest::socket_config());
        let socket = WebSocketStream::from_raw_socket(wire, Role::Server, config).await;
        let from = self.others.holders.name_of(&held.hub).unwrap_or_default();
        let arrival =
            Arrival { source: key.clone(), key: String::new(), from, name, labels: Vec::new(), relayed: true };
        let (over, ended) = watch::channel(());
        let unwanted = async {
            let mut moved = self.others.moved.subscribe();
            let same = || self.others.holders.find(&key).is_some_and(|now| now.alive && now.hub == held.hub);
            while self.is_wanted(source) && same() {
                tokio::select! {
                    () = sleep(LOOK_INTERVAL) => {}
                    _ = moved.changed() => {}
                }
            }
            (close::GOING, "nobody watches it here".to_string())
        };
        let unwanted = std::pin::pin!(unwanted);
        let taken = async {
            self.ingest.relay(arrival, socket, unwanted).await;
            drop(over);
        };
        let mut ended: watch::Receiver<()> = ended;
        let carried = async {
            tokio::select! {
                () = carried => {}
                _ = ended.changed() => {}
            }
        };
        tokio::join!(taken, carried);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::is_in;

    #[test]
    fn what_expired_or_was_added_at_the_end_was_offered_and_what_came_in_late_was_not() {
        let offered = [(10, 19), (30, u64::MAX)];
        for (run, known) in [
            ((10, 19), true),
            ((15, 19), true),
            ((30, 99), true),
            ((200, u64::MAX), true),
            ((10, 20), false),
            ((25, u64::MAX), false),
            ((1, 5), false),
        ] {
            assert_eq!(is_in(run, &offered), known, "{run:?}");
        }
    }
}

//! State of all machines of a cluster on every hub. Once a beat, each hub publishes on `over.HUB` the state of the
//! machines that it holds, their overview values and their findings. The other hubs show them beside their own.
//!
//! `message.rs` has the messages, `send.rs` sends them, `receive.rs` receives them. `records.rs` fetches the records of
//! all machines, from which runs and markers are made. Changes are sent at once, and everything is repeated every ten
//! seconds, so that a lost message is repaired within that time. When a hub misses three beats, its machines become
//! unreachable until another hub has them.

mod message;
mod receive;
mod records;
mod send;

pub use receive::GossipFigures;

use crate::Bus;
use ::watch::findings::FindingRegistry;
use parking_lot::Mutex;
use receive::GossipReceiver;
use send::GossipSender;
use std::sync::Arc;
use std::time::Duration;
use stream::live::Live;
use tokio::sync::watch;

/// Interval of the check for silent hubs.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Pause between two attempts to subscribe.
const SUBSCRIBE_PAUSE: Duration = Duration::from_secs(2);

/// Exchange of machine states with the other hubs, and its counters. Cheap to clone.
#[derive(Clone)]
pub struct Gossip {
    hearer: Arc<Mutex<GossipReceiver>>,
    live: Arc<Live>,
    findings: Arc<FindingRegistry>,
}

impl Gossip {
    /// A new one, which has sent and received nothing yet.
    pub fn new(live: Arc<Live>, findings: Arc<FindingRegistry>) -> Self {
        let hearer = GossipReceiver::new(live.clone(), findings.clone());
        Gossip { hearer: Arc::new(Mutex::new(hearer)), live, findings }
    }

    /// Counters of the exchange.
    pub fn figures(&self) -> GossipFigures {
        self.hearer.lock().figures()
    }

    /// Sends and receives as this hub until `stop` becomes true.
    pub async fn keep(self, bus: Bus, hub: String, mut stop: watch::Receiver<bool>) {
        let hearing = tokio::spawn(self.clone().receive(bus.clone()));
        let giving = tokio::spawn(records::give(self.live.clone(), bus.clone(), hub.clone()));
        let bringing = tokio::spawn(records::bring(self.live.clone(), self.hearer.clone(), bus.clone()));
        tokio::select! {
            () = send_states(self.live, self.findings, bus, hub) => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
        hearing.abort();
        giving.abort();
        bringing.abort();
    }

    async fn receive(self, bus: Bus) {
        let mut due = tokio::time::interval(LOOK_INTERVAL);
        loop {
            let Ok(mut heard) = bus.subscribe("over.*").await else {
                tokio::time::sleep(SUBSCRIBE_PAUSE).await;
                continue;
            };
            loop {
                let message = tokio::select! {
                    message = heard.next() => message,
                    _ = due.tick() => {
                        self.hearer.lock().mark_silent_hubs();
                        continue;
                    }
                };
                let Some(message) = message else { break };
                let Some(hub) = message.subject.strip_prefix("over.") else { continue };
                // Takes milliseconds at most.
                self.hearer.lock().receive(hub, message.bytes());
            }
        }
    }
}

/// Sends the state of this hub's machines, until the future is dropped.
async fn send_states(live: Arc<Live>, findings: Arc<FindingRegistry>, bus: Bus, hub: String) {
    let (subject, up) = (format!("over.{hub}"), bus.up());
    let mut sayer = GossipSender::new(live, findings);
    let mut pause = Duration::from_secs(1);
    let mut connects = 0;
    loop {
        tokio::time::sleep(pause).await;
        if !*up.borrow() && !bus.is_up() {
            continue;
        }
        // After a reconnect everything is sent again: messages during the outage were lost.
        let anew = std::mem::replace(&mut connects, bus.counts().connects) != connects;
        let said = tokio::task::spawn_blocking(move || {
            let words = sayer.beat(anew);
            (sayer, words)
        });
        let Ok((back, words)) = said.await else {
            return tracing::error!("other hubs are not told of this one's machines any more, because a look failed");
        };
        sayer = back;
        pause = sayer.interval();
        // A message that finds no room is repeated within ten seconds; the bus counts it.
        let all = words.into_iter().map(|word| bus.publish(&subject, word)).fold(true, |all, sent| all & sent);
        if !all {
            sayer.anew();
        }
    }
}

#[cfg(test)]
mod tests;

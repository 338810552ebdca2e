//! What every hub of a cluster knows of all machines: each says once a beat, on `over.HUB`, how those stand that it holds,
//! what the fleet's overview shows of them, and what is wrong with them; the others lay it beside their own.
//!
//! `message.rs` is what is sent, `send.rs` sends it, `receive.rs` takes it in. `records.rs` brings the records of all machines here, of
//! which runs and markers are made. What changed is said at once, and all of it anew every
//! ten seconds, so that what was lost on the way lacks for no longer. A hub that falls silent for three beats says nothing
//! of its machines any more: they are unreachable until another hub has them.

mod message;
mod receive;
mod records;
mod send;

pub use receive::GossipFigures;

use crate::Bus;
use ::watch::findings::FindingBook;
use parking_lot::Mutex;
use receive::GossipReceiver;
use send::GossipSender;
use std::sync::Arc;
use std::time::Duration;
use stream::live::Live;
use tokio::sync::watch;

/// How often it is looked which hubs are silent.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Between two attempts to listen.
const SUBSCRIBE_PAUSE: Duration = Duration::from_secs(2);

/// What is shared with the other hubs, and how that goes. Cheap to clone.
#[derive(Clone)]
pub struct Gossip {
    hearer: Arc<Mutex<GossipReceiver>>,
    live: Arc<Live>,
    findings: Arc<FindingBook>,
}

impl Gossip {
    /// Nothing is said or heard yet.
    pub fn new(live: Arc<Live>, findings: Arc<FindingBook>) -> Self {
        let hearer = GossipReceiver::new(live.clone(), findings.clone());
        Gossip { hearer: Arc::new(Mutex::new(hearer)), live, findings }
    }

    /// How it goes.
    pub fn figures(&self) -> GossipFigures {
        self.hearer.lock().figures()
    }

    /// Says and hears as this hub until `stop` becomes true.
    pub async fn keep(self, bus: Bus, hub: String, mut stop: watch::Receiver<bool>) {
        let hearing = tokio::spawn(self.clone().hear(bus.clone()));
        let giving = tokio::spawn(records::give(self.live.clone(), bus.clone(), hub.clone()));
        let bringing = tokio::spawn(records::bring(self.live.clone(), self.hearer.clone(), bus.clone()));
        tokio::select! {
            () = say(self.live, self.findings, bus, hub) => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
        hearing.abort();
        giving.abort();
        bringing.abort();
    }

    async fn hear(self, bus: Bus) {
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
                        self.hearer.lock().look();
                        continue;
                    }
                };
                let Some(message) = message else { break };
                let Some(hub) = message.subject.strip_prefix("over.") else { continue };
                // It takes milliseconds at most.
                self.hearer.lock().hear(hub, message.bytes());
            }
        }
    }
}

/// Says how what is held here does, until it is dropped.
async fn say(live: Arc<Live>, findings: Arc<FindingBook>, bus: Bus, hub: String) {
    let (subject, up) = (format!("over.{hub}"), bus.up());
    let mut sayer = GossipSender::new(live, findings);
    let mut pause = Duration::from_secs(1);
    let mut connects = 0;
    loop {
        tokio::time::sleep(pause).await;
        if !*up.borrow() && !bus.is_up() {
            continue;
        }
        // Who was not connected has missed what was said.
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
        // What has no room is said again within ten seconds; the bus counts it.
        let all = words.into_iter().map(|word| bus.publish(&subject, word)).fold(true, |all, sent| all & sent);
        if !all {
            sayer.anew();
        }
    }
}

#[cfg(test)]
mod tests;

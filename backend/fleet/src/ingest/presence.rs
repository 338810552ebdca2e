//! Tracks the link of each source, and decides about a second one with the same key.
//!
//! One key is one machine. A process that reconnects replaces its own old link at once. Another process, as from a
//! cloned disk, replaces a link that does not answer, and is refused while that answers.

use super::limits::MAX_LINKS;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Maximum time for an older link to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Order of a newer link to an older one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    /// No order.
    #[default]
    Stay,
    /// Ping the agent.
    Ask,
    /// End: another link has replaced it.
    Leave,
}

/// Identity of the process at the other end of a link.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LinkProcess {
    /// Random number of the process.
    pub instance: u64,
    /// Host name of its machine.
    pub host: String,
    /// Its start, milliseconds since the Unix epoch.
    pub started: i64,
}

/// Occupant of a place: an agent, or another hub that relays its source.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Who {
    Agent(LinkProcess),
    Relay,
}

impl Who {
    /// Whether a link of this process may replace it without a check.
    fn yields_to(&self, process: &LinkProcess) -> bool {
        match self {
            Who::Agent(own) => own.instance == process.instance,
            Who::Relay => true,
        }
    }
}

/// A link.
struct Slot {
    number: u64,
    who: Who,
    orders: watch::Sender<Order>,
    heard: watch::Sender<u64>,
}

#[derive(Default)]
struct Slots {
    all: BTreeMap<String, Arc<Slot>>,
    last: u64,
}

/// The links of all sources.
#[derive(Default)]
pub(super) struct Presence(Mutex<Slots>);

/// Reason why a place cannot be taken at once.
enum Taken {
    /// Another process has it.
    By(Arc<Slot>),
    /// The maximum number of links is reached.
    Full,
}

/// Reason why a link gets no place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// This process has one, and answers.
    InUse(LinkProcess),
    /// The maximum number of links is reached.
    Full,
}

/// The place of a link; dropping it releases the place.
pub(super) struct LinkPlace {
    presence: Arc<Presence>,
    /// ID of the source.
    pub source: String,
    slot: Arc<Slot>,
    /// Orders of newer links.
    pub orders: watch::Receiver<Order>,
}

impl LinkPlace {
    /// Records a sign of life of the agent.
    pub fn mark_alive(&self) {
        self.slot.heard.send_modify(|n| *n += 1);
    }

    /// Whether another link has replaced this one.
    pub fn is_taken(&self) -> bool {
        *self.slot.orders.borrow() == Order::Leave
    }
}

impl Drop for LinkPlace {
    fn drop(&mut self) {
        let mut slots = self.presence.slots();
        if slots.all.get(&self.source).is_some_and(|slot| slot.number == self.slot.number) {
            slots.all.remove(&self.source);
        }
    }
}

impl Presence {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.0.lock()
    }

    /// Number of links.
    pub fn links(&self) -> usize {
        self.slots().all.values().filter(|slot| slot.who != Who::Relay).count()
    }

    /// The sources with a linked agent.
    pub fn agents(&self) -> Vec<String> {
        let slots = self.slots();
        let agents = slots.all.iter().filter(|(_, slot)| slot.who != Who::Relay);
        agents.map(|(source, _)| source.clone()).collect()
    }

    /// Whether an agent is linked as this source.
    pub fn has_agent(&self, source: &str) -> bool {
        self.slots().all.get(source).is_some_and(|slot| slot.who != Who::Relay)
    }

    /// Ends the link of an agent, if there is one: another hub has its source.
    pub fn leave(&self, source: &str) {
        let slot = self.slots().all.get(source).filter(|slot| slot.who != Who::Relay).cloned();
        if let Some(slot) = slot {
            slot.orders.send_replace(Order::Leave);
        }
    }

    /// Takes the place of a source, unless `old` is not in it any more. A source that has a place keeps it, whatever
    /// the number of links.
    fn take(self: &Arc<Self>, source: &str, process: &LinkProcess, old: Option<u64>) -> Result<LinkPlace, Taken> {
        let mut slots = self.slots();
        match slots.all.get(source) {
            None if slots.all.len() >= MAX_LINKS => return Err(Taken::Full),
            Some(now) if Some(now.number) != old && !now.who.yields_to(process) => {
                return Err(Taken::By(now.clone()));
            }
            _ => {}
        }
        Ok(self.put(&mut slots, source, Who::Agent(process.clone())))
    }

    fn put(self: &Arc<Self>, slots: &mut Slots, source: &str, who: Who) -> LinkPlace {
        slots.last += 1;
        let (orders, told) = watch::channel(Order::Stay);
        let heard = watch::Sender::default();
        let slot = Arc::new(Slot { number: slots.last, who, orders, heard });
        if let Some(old) = slots.all.insert(source.into(), slot.clone()) {
            old.orders.send_replace(Order::Leave);
        }
        LinkPlace { presence: self.clone(), source: source.into(), slot, orders: told }
    }

    /// Takes the place of a source for a relay of another hub; None if its agent is linked here.
    pub fn enter_relay(self: &Arc<Self>, source: &str) -> Option<LinkPlace> {
        let mut slots = self.slots();
        let is_free = slots.all.get(source).is_none_or(|slot| slot.who == Who::Relay);
        is_free.then(|| self.put(&mut slots, source, Who::Relay))
    }

    /// A link of this process has started on another hub: true if the one here yields to it, by the same rules. It ends
    /// then.
    ///
    /// # Errors
    /// The process that has the link here, and answers.
    pub async fn yields(&self, source: &str, process: &LinkProcess) -> Result<(), LinkProcess> {
        let Some(slot) = self.slots().all.get(source).cloned() else { return Ok(()) };
        if let Who::Agent(own) = &slot.who
            && own.instance != process.instance
        {
            let (own, mut heard) = (own.clone(), slot.heard.subscribe());
            slot.orders.send_replace(Order::Ask);
            drop(slot);
            if let Ok(Ok(())) = tokio::time::timeout(ANSWER_TIMEOUT, heard.changed()).await {
                return Err(own);
            }
        }
        self.leave(source);
        Ok(())
    }

    /// Takes the place of a source for a link of this process.
    ///
    /// # Errors
    /// [`NoPlace`].
    pub async fn enter(self: &Arc<Self>, source: &str, process: &LinkProcess) -> Result<LinkPlace, NoPlace> {
        let mut silent = None;
        loop {
            let other = match self.take(source, process, silent) {
                Ok(place) => return Ok(place),
                Err(Taken::Full) => return Err(NoPlace::Full),
                Err(Taken::By(other)) => other,
            };
            let number = other.number;
            let Who::Agent(of_other) = other.who.clone() else { continue };
            let mut heard = other.heard.subscribe();
            other.orders.send_replace(Order::Ask);
            // While it is held, the end of the other link could not be detected.
            drop(other);
            match tokio::time::timeout(ANSWER_TIMEOUT, heard.changed()).await {
                Ok(Ok(())) => return Err(NoPlace::InUse(of_other)),
                Ok(Err(_)) => {}
                Err(_) => silent = Some(number),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(instance: u64) -> LinkProcess {
        LinkProcess { instance, host: format!("host {instance}"), started: 0 }
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_takes_its_own_place_again_and_another_that_of_a_silent_one() {
        let presence = Arc::new(Presence::default());
        let first = presence.enter("a", &process(1)).await.unwrap_or_else(|_| panic!("there is room"));
        let again = presence.enter("a", &process(1)).await.unwrap_or_else(|_| panic!("it is the same process"));
        assert!(first.is_taken() && !again.is_taken());
        drop(first);
        assert_eq!(presence.links(), 1, "a link that was replaced takes nothing with it");
        // The other link does not answer.
        let other = presence.enter("a", &process(2)).await.unwrap_or_else(|_| panic!("the older one is silent"));
        assert!(again.is_taken() && !other.is_taken());
        drop((again, other));
        assert_eq!(presence.links(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_process_is_refused_while_the_first_answers() {
        let presence = Arc::new(Presence::default());
        let mut first = presence.enter("a", &process(1)).await.unwrap_or_else(|_| panic!("there is room"));
        let answers = async {
            first.orders.wait_for(|order| *order == Order::Ask).await.map(drop).unwrap_or_else(|_| panic!("asked"));
            first.mark_alive();
        };
        let two = process(2);
        let (refused, ()) = tokio::join!(presence.enter("a", &two), answers);
        assert_eq!(refused.err(), Some(NoPlace::InUse(process(1))));
        assert!(!first.is_taken());
    }

    #[tokio::test(start_paused = true)]
    async fn where_all_places_are_taken_a_source_that_has_one_comes_back_and_no_other_comes() {
        let presence = Arc::new(Presence::default());
        let mut places = Vec::new();
        for n in 0..MAX_LINKS {
            places.push(presence.enter(&n.to_string(), &process(1)).await.unwrap_or_else(|_| panic!("there is room")));
        }
        assert_eq!(presence.enter("new", &process(1)).await.err(), Some(NoPlace::Full));
        let again = presence.enter("7", &process(1)).await;
        assert!(again.is_ok() && places[7].is_taken());
        assert_eq!(presence.links(), MAX_LINKS);
        // Another process may replace a silent link even at the limit.
        assert!(presence.enter("8", &process(2)).await.is_ok());
        drop(again);
        assert!(presence.enter("new", &process(1)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn what_another_hub_tells_makes_way_for_an_agent_and_an_agent_for_none_but_itself() {
        let presence = Arc::new(Presence::default());
        let relay = presence.enter_relay("a").expect("nobody is there");
        assert_eq!((presence.links(), presence.agents()), (0, vec![]));
        let agent = presence.enter("a", &process(1)).await.unwrap_or_else(|_| panic!("a relay yields at once"));
        assert!(relay.is_taken() && presence.enter_relay("a").is_none());
        drop(relay);
        assert_eq!((presence.links(), presence.agents()), (1, vec!["a".to_string()]));
        // It has moved to another hub.
        assert_eq!(presence.yields("a", &process(1)).await, Ok(()));
        assert!(agent.is_taken());
        assert_eq!(presence.yields("b", &process(1)).await, Ok(()), "there is none");
        drop(agent);
        let mut agent = presence.enter("a", &process(1)).await.unwrap_or_else(|_| panic!("there is room"));
        let answers = async {
            agent.orders.wait_for(|order| *order == Order::Ask).await.map(drop).unwrap_or_else(|_| panic!("asked"));
            agent.mark_alive();
        };
        let two = process(2);
        let (refused, ()) = tokio::join!(presence.yields("a", &two), answers);
        assert_eq!(refused, Err(process(1)));
        assert!(!agent.is_taken());
        assert_eq!(presence.yields("a", &two).await, Ok(()), "it is silent");
        assert!(agent.is_taken());
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_that_ends_while_it_is_asked_makes_room() {
        let presence = Arc::new(Presence::default());
        let first = presence.enter("a", &process(1)).await.unwrap_or_else(|_| panic!("there is room"));
        let ends = async move {
            let mut orders = first.orders.clone();
            orders.wait_for(|order| *order == Order::Ask).await.map(drop).unwrap_or_else(|_| panic!("asked"));
            drop(first);
        };
        let two = process(2);
        let (entered, ()) = tokio::join!(presence.enter("a", &two), ends);
        assert!(entered.is_ok());
    }
}

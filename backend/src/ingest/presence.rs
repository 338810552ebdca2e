//! Which sources have a link, and what happens when a second one comes with the same key.
//!
//! One key is one machine. A process that comes back takes the place of its own old link at once. Another process, as of a
//! disk that was cloned, takes the place of a link that does not answer, and is refused while that answers.

use super::limits::MAX_LINKS;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How long an older link has to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// What a link is told by those that come after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    /// Nothing.
    #[default]
    Stay,
    /// To ask its agent for a word.
    Ask,
    /// To end: another link has its place.
    Leave,
}

/// Who is at the other end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    /// The random number of the process.
    pub instance: u64,
    /// The name of its machine.
    pub host: String,
    /// When it began, milliseconds since the Unix epoch.
    pub started: i64,
}

/// A link.
struct Slot {
    number: u64,
    process: Process,
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

/// Why a place cannot be taken at once.
enum Taken {
    /// Another process has it.
    By(Arc<Slot>),
    /// There are too many.
    Full,
}

/// Why a link has no place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// This process has one, and answers.
    InUse(Process),
    /// There are too many.
    Full,
}

/// The place of a link; it is given up when it is dropped.
pub(super) struct Place {
    presence: Arc<Presence>,
    /// Id of the source.
    pub source: String,
    slot: Arc<Slot>,
    /// What the link is told.
    pub orders: watch::Receiver<Order>,
}

impl Place {
    /// The agent was heard of.
    pub fn heard(&self) {
        self.slot.heard.send_modify(|n| *n += 1);
    }

    /// Whether another link has this place now.
    pub fn is_taken(&self) -> bool {
        *self.slot.orders.borrow() == Order::Leave
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut slots = self.presence.slots();
        if slots.all.get(&self.source).is_some_and(|slot| slot.number == self.slot.number) {
            slots.all.remove(&self.source);
        }
    }
}

impl Presence {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many links there are.
    pub fn links(&self) -> usize {
        self.slots().all.len()
    }

    /// Takes the place of a source, unless `old` is not in it any more. A source that has a place keeps it, however many
    /// links there are.
    fn take(self: &Arc<Self>, source: &str, process: &Process, old: Option<u64>) -> Result<Place, Taken> {
        let mut slots = self.slots();
        match slots.all.get(source) {
            None if slots.all.len() >= MAX_LINKS => return Err(Taken::Full),
            Some(now) if Some(now.number) != old && now.process.instance != process.instance => {
                return Err(Taken::By(now.clone()));
            }
            _ => {}
        }
        slots.last += 1;
        let (orders, told) = watch::channel(Order::Stay);
        let heard = watch::Sender::default();
        let slot = Arc::new(Slot { number: slots.last, process: process.clone(), orders, heard });
        if let Some(old) = slots.all.insert(source.into(), slot.clone()) {
            old.orders.send_replace(Order::Leave);
        }
        Ok(Place { presence: self.clone(), source: source.into(), slot, orders: told })
    }

    /// Takes the place of a source for a link of this process.
    ///
    /// # Errors
    /// [`NoPlace`].
    pub async fn enter(self: &Arc<Self>, source: &str, process: &Process) -> Result<Place, NoPlace> {
        let mut silent = None;
        loop {
            let other = match self.take(source, process, silent) {
                Ok(place) => return Ok(place),
                Err(Taken::Full) => return Err(NoPlace::Full),
                Err(Taken::By(other)) => other,
            };
            let (number, of_other) = (other.number, other.process.clone());
            let mut heard = other.heard.subscribe();
            other.orders.send_replace(Order::Ask);
            // Held on, it could not be seen that the other link has ended.
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

    fn process(instance: u64) -> Process {
        Process { instance, host: format!("host {instance}"), started: 0 }
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_takes_its_own_place_again_and_another_that_of_a_silent_one() {
        let presence = Arc::new(Presence::default());
        let first = presence.enter("a", &process(1)).await.unwrap_or_else(|_| panic!("there is room"));
        let again = presence.enter("a", &process(1)).await.unwrap_or_else(|_| panic!("it is the same process"));
        assert!(first.is_taken() && !again.is_taken());
        drop(first);
        assert_eq!(presence.links(), 1, "a link that was replaced takes nothing with it");
        // Nobody answers.
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
            first.heard();
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
        // Another process may take the place of a link that is silent, as where there is room.
        assert!(presence.enter("8", &process(2)).await.is_ok());
        drop(again);
        assert!(presence.enter("new", &process(1)).await.is_ok());
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

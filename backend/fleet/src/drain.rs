//! Graceful close at shutdown: a hub closes its connections one after the other, each at its own time. So agents do not
//! reconnect to the next hub all at once, and none waits longer for a link than a reconnect takes.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Maximum time until all connections have been closed.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Closed connections per second, unless that takes longer than [`DRAIN_TIMEOUT`].
const A_SECOND: u32 = 50;

/// Schedule of the closes.
#[derive(Clone, Copy, Debug)]
struct Turns {
    from: Instant,
    spread: Duration,
}

impl Turns {
    fn due_of(&self, place: u32) -> Instant {
        self.from + self.spread.mul_f64(f64::from(place) / f64::from(u32::MAX))
    }
}

/// State of the drain. A clone shares the state.
#[derive(Clone, Debug, Default)]
pub struct Drain(Arc<watch::Sender<Option<Turns>>>);

impl Drain {
    /// Starts the drain with this number of connections; returns the time until the last one is closed, at most 10 s.
    pub fn begin(&self, linked: usize) -> Duration {
        let linked = u32::try_from(linked).unwrap_or(u32::MAX);
        let spread = (Duration::from_secs(1) * linked / A_SECOND).min(DRAIN_TIMEOUT);
        self.0.send_replace(Some(Turns { from: Instant::now(), spread }));
        spread
    }

    /// Whether it has started: new connections are refused.
    pub fn has_begun(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Whether the connection of this place must close.
    pub fn is_due(&self, place: u32) -> bool {
        self.0.borrow().is_some_and(|turns| turns.due_of(place) <= Instant::now())
    }

    /// Resolves when the connection of this place must close, with the total time of the drain.
    pub async fn turn(&self, place: u32) -> Duration {
        let mut begun = self.0.subscribe();
        let turns = match begun.wait_for(Option::is_some).await {
            Ok(turns) => (*turns).expect("it was waited for"),
            // `self` holds the sender.
            Err(_) => return Duration::ZERO,
        };
        tokio::time::sleep_until(turns.due_of(place)).await;
        turns.spread
    }

    /// A random place for a connection without a fixed one.
    pub fn place() -> u32 {
        RandomState::new().hash_one(()) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn few_go_at_once_and_many_over_ten_seconds() {
        let drain = Drain::default();
        assert!(!drain.has_begun() && !drain.is_due(0), "nobody goes before it begins");
        assert!(tokio::time::timeout(Duration::from_secs(60), drain.turn(0)).await.is_err());
        assert_eq!(drain.begin(0), Duration::ZERO);
        assert!(drain.has_begun() && drain.is_due(u32::MAX));
        assert_eq!(drain.begin(5), Duration::from_millis(100));
        assert_eq!(drain.begin(usize::MAX), DRAIN_TIMEOUT);
        let begun = Instant::now();
        assert!(drain.is_due(0) && !drain.is_due(u32::MAX / 2));
        assert_eq!(drain.turn(u32::MAX / 2).await, DRAIN_TIMEOUT);
        assert_eq!(begun.elapsed().as_secs(), 5);
        drain.clone().turn(u32::MAX).await;
        assert_eq!(begun.elapsed(), DRAIN_TIMEOUT);
    }
}

//! How a hub that ends lets go of who is linked: one after the other, each at a place of its own, so that those who move do not
//! come to the next hub all at once, and nobody waits without a link for longer than the way there takes.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// The most that it takes until all have been told to go.
const MOST: Duration = Duration::from_secs(10);
/// How many go in a second, unless that took longer than [`MOST`].
const A_SECOND: u32 = 50;

/// When who goes.
#[derive(Clone, Copy, Debug)]
struct Turns {
    from: Instant,
    spread: Duration,
}

impl Turns {
    fn of(&self, place: u32) -> Instant {
        self.from + self.spread.mul_f64(f64::from(place) / f64::from(u32::MAX))
    }
}

/// Whether a hub lets go of who is linked. A clone is the same one.
#[derive(Clone, Debug, Default)]
pub struct Drain(Arc<watch::Sender<Option<Turns>>>);

impl Drain {
    /// Begins with so many who are linked; how long it takes until all were told to go, at most 10 s.
    pub fn begin(&self, linked: usize) -> Duration {
        let linked = u32::try_from(linked).unwrap_or(u32::MAX);
        let spread = (Duration::from_secs(1) * linked / A_SECOND).min(MOST);
        self.0.send_replace(Some(Turns { from: Instant::now(), spread }));
        spread
    }

    /// Whether it has begun: nobody is let in any more.
    pub fn has_begun(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Whether it is the turn of this place.
    pub fn is_due(&self, place: u32) -> bool {
        self.0.borrow().is_some_and(|turns| turns.of(place) <= Instant::now())
    }

    /// Resolves when it is the turn of this place: with the time in which all go, from the first to the last.
    pub async fn turn(&self, place: u32) -> Duration {
        let mut begun = self.0.subscribe();
        let turns = match begun.wait_for(Option::is_some).await {
            Ok(turns) => (*turns).expect("it was waited for"),
            // This one holds the sender.
            Err(_) => return Duration::ZERO,
        };
        tokio::time::sleep_until(turns.of(place)).await;
        turns.spread
    }

    /// A place for somebody who has none of their own.
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
        assert_eq!(drain.begin(usize::MAX), MOST);
        let begun = Instant::now();
        assert!(drain.is_due(0) && !drain.is_due(u32::MAX / 2));
        assert_eq!(drain.turn(u32::MAX / 2).await, MOST);
        assert_eq!(begun.elapsed().as_secs(), 5);
        drain.clone().turn(u32::MAX).await;
        assert_eq!(begun.elapsed(), MOST);
    }
}

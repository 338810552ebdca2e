//! Rate limits and socket limits of each caller. All counts are in memory and bounded.

use super::Refusal;
use axum::http::StatusCode;
use governor::clock::{Clock, DefaultClock};
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of counted callers. Beyond it idle ones are evicted; if none is idle, new callers are not counted.
const MAX_CALLERS: usize = 100_000;
/// Maximum number of sockets of one principal.
const MAX_SOCKETS: usize = 100;
/// Maximum number of sockets of one share link.
const MAX_LINK_SOCKETS: usize = 500;
/// Maximum number of concurrent responses with stored samples of one principal.
const MAX_QUERIES: usize = 4;

const fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("it is written above 0")
}

/// A rate limit for each caller.
pub struct RequestPace {
    limiter: RateLimiter<String, HashMapStateStore<String>, DefaultClock>,
    clock: DefaultClock,
}

impl RequestPace {
    /// A limit with a burst and a rate per second.
    pub fn per_second(burst: u32, rate: u32) -> Self {
        Self::new(Quota::per_second(number(rate)).allow_burst(number(burst)))
    }

    /// A limit with a rate per hour.
    #[cfg(test)]
    fn per_hour(rate: u32) -> Self {
        Self::new(Quota::per_hour(number(rate)))
    }

    fn new(quota: Quota) -> Self {
        let clock = DefaultClock::default();
        RequestPace { limiter: RateLimiter::new(quota, HashMapStateStore::default(), clock.clone()), clock }
    }

    /// Counts a request. Above the limit it returns the time to wait.
    pub fn count(&self, caller: &str) -> Result<(), Duration> {
        if self.limiter.len() >= MAX_CALLERS {
            self.limiter.retain_recent();
            if self.limiter.len() >= MAX_CALLERS {
                return Err(Duration::from_secs(1));
            }
        }
        let waits = self.limiter.check_key(&caller.to_string());
        waits.map_err(|until| until.wait_time_from(self.clock.now()))
    }

    /// As `count`, with the response for the caller.
    ///
    /// # Errors
    /// 429.
    pub fn ask(&self, caller: &str) -> Result<(), Refusal> {
        self.count(caller).map_err(too_often)
    }
}

/// 429, with the time to wait.
pub fn too_often(wait: Duration) -> Refusal {
    Refusal::new(StatusCode::TOO_MANY_REQUESTS, "too many requests; retry in a few seconds").again_in(wait)
}

/// Counts of a limited resource, by holder.
#[derive(Clone)]
pub struct Seats {
    most: usize,
    /// The resource and the remedy: the end of a sentence.
    what: &'static str,
    held: Arc<Mutex<HashMap<String, usize>>>,
}

/// One held unit of the resource; dropping it frees it.
pub struct Seat {
    seats: Seats,
    holder: String,
}

impl Seats {
    /// The sockets of each principal.
    pub fn of_sockets() -> Self {
        Seats { most: MAX_SOCKETS, what: "streams; close one and try again", held: Arc::default() }
    }

    /// The sockets of each share link.
    pub fn of_links() -> Self {
        Seats { most: MAX_LINK_SOCKETS, ..Self::of_sockets() }
    }

    /// The answers with stored samples that each principal is reading.
    pub fn of_queries() -> Self {
        let what = "responses with stored samples; try again when one has ended";
        Seats { most: MAX_QUERIES, what, held: Arc::default() }
    }

    /// One more unit for a holder.
    ///
    /// # Errors
    /// 429: it already holds the maximum.
    pub fn take(&self, holder: String) -> Result<Seat, Refusal> {
        let mut held = self.held.lock();
        let count = held.entry(holder.clone()).or_default();
        if *count >= self.most {
            let sentence = format!("the limit of {} {} is reached", self.most, self.what);
            return Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, sentence));
        }
        *count += 1;
        drop(held);
        Ok(Seat { seats: self.clone(), holder })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut held = self.seats.held.lock();
        if let Some(count) = held.get_mut(&self.holder) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_who_asks_too_often_waits_and_others_do_not() {
        let pace = RequestPace::per_hour(3);
        assert!((0..3).all(|_| pace.count("a").is_ok()));
        let wait = pace.count("a").expect_err("too often");
        assert!(wait > Duration::ZERO && wait <= Duration::from_secs(3_600), "{wait:?}");
        assert!(pace.count("b").is_ok());
        let refused = pace.ask("a").expect_err("too often");
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    }

    #[test]
    fn sockets_are_counted_by_their_holder_and_given_back() {
        let seats = Seats::of_sockets();
        let held: Vec<Seat> = (0..MAX_SOCKETS).map(|_| seats.take("a".into()).expect("room")).collect();
        assert!(seats.take("a".into()).is_err() && seats.take("b".into()).is_ok());
        drop(held);
        assert!(seats.held.lock().is_empty());
        assert!(seats.take("a".into()).is_ok());
    }

    #[test]
    fn one_principal_reads_four_answers_at_once_and_others_read_on() {
        let seats = Seats::of_queries();
        let held: Vec<Seat> = (0..4).map(|_| seats.take("a".into()).expect("room")).collect();
        let refused = seats.take("a".into()).err().expect("no more");
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        assert!(seats.take("b".into()).is_ok());
        drop(held);
        assert!(seats.take("a".into()).is_ok());
    }
}

//! Rate limits of failures. An attempt counts as failed from its start on, so that parallel attempts gain nothing. A
//! successful one is uncounted. Memory is bounded: the oldest callers are evicted first.

use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// Maximum number of remembered callers; above it half of them are evicted.
const MAX_CALLERS: usize = 100_000;

/// A limit of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Limit {
    /// Sign-ins by one name from one network: 10 in 5 min, then one more after 30 s, 1 min, ... 15 min. Never a lock.
    Name,
    /// Sign-ins by one name from all networks without an earlier sign-in by it: 30 in 5 min, then one more each 10 s.
    /// This slows down guessing from many addresses. People at a network of an earlier sign-in are neither slowed down
    /// nor locked out.
    Elsewhere,
    /// Sign-ins from one network: 100 in 5 min.
    Network,
    /// Codes of setup and reset from one network: 30 in 5 min.
    Code,
    /// Failed answers of a provider, from one network: 30 in 5 min.
    Answer,
    /// Invalid keys, from one network: 10 in a minute.
    Key,
}

impl Limit {
    /// Maximum number of failures and their period.
    const fn rate(self) -> (u32, Duration) {
        match self {
            Limit::Name => (10, Duration::from_secs(300)),
            Limit::Network => (100, Duration::from_secs(300)),
            Limit::Elsewhere | Limit::Code | Limit::Answer => (30, Duration::from_secs(300)),
            Limit::Key => (10, Duration::from_secs(60)),
        }
    }

    /// First wait above the limit, and the maximum that doubling reaches; none: wait until the period ends.
    const fn waits(self) -> Option<(Duration, Duration)> {
        match self {
            Limit::Name => Some((Duration::from_secs(30), Duration::from_secs(900))),
            Limit::Elsewhere => Some((Duration::from_secs(10), Duration::from_secs(10))),
            _ => None,
        }
    }
}

/// Failures of one caller.
#[derive(Clone, Copy, Debug, Default)]
struct Failures {
    /// Start of the counted period, steady.
    since: Duration,
    count: u32,
    /// Above the limit: the earliest next attempt, and the wait after it.
    not_before: Duration,
    wait: Duration,
}

type Counted = HashMap<(Limit, String), Failures>;

/// Recent failures, and the networks of successful sign-ins by name since the start.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    failed: Mutex<(Counted, Counted)>,
    signed_in: Mutex<(HashSet<String>, HashSet<String>)>,
}

impl Attempts {
    /// Begins an attempt, which counts as failed under each of the limits. `now` is steady.
    ///
    /// # Errors
    /// The attempt is refused; the value is the time until the next one is allowed. A refused attempt counts under no
    /// limit.
    pub(super) fn begin(&self, now: Duration, by: &[(Limit, &str)]) -> Result<(), Duration> {
        let mut counted = self.failed.lock();
        let mut after = Vec::with_capacity(by.len());
        for (limit, who) in by {
            let known = lookup(&mut counted, &(*limit, who.to_string())).map_or(Failures::default(), |known| *known);
            after.push(next(*limit, known, now)?);
        }
        for ((limit, who), failures) in by.iter().zip(after) {
            put(&mut counted, (*limit, who.to_string()), failures);
        }
        Ok(())
    }

    /// Uncounts a successful attempt. A name that signed in has its failures reset, and its network is remembered.
    pub(super) fn succeeded(&self, by: &[(Limit, &str)]) {
        for (_, pair) in by.iter().filter(|(limit, _)| *limit == Limit::Name) {
            let mut signed_in = self.signed_in.lock();
            let (new, old) = &mut *signed_in;
            if new.len() >= MAX_CALLERS / 2 {
                *old = std::mem::take(new);
            }
            new.insert(pair.to_string());
        }
        let mut counted = self.failed.lock();
        for (limit, who) in by {
            if let Some(known) = lookup(&mut counted, &(*limit, who.to_string())) {
                match limit {
                    Limit::Name => *known = Failures::default(),
                    _ => known.count = known.count.saturating_sub(1),
                }
            }
        }
    }

    /// Whether a name has signed in from a network, both in the form of [`Limit::Name`].
    pub(super) fn has_signed_in(&self, pair: &str) -> bool {
        let signed_in = self.signed_in.lock();
        signed_in.0.contains(pair) || signed_in.1.contains(pair)
    }

    /// Uncounts an attempt that was not checked for another reason.
    pub(super) fn withdrawn(&self, by: &[(Limit, &str)]) {
        let mut counted = self.failed.lock();
        for (limit, who) in by {
            if let Some(known) = lookup(&mut counted, &(*limit, who.to_string())) {
                known.count = known.count.saturating_sub(1);
            }
        }
    }

    #[cfg(test)]
    fn remembered(&self) -> usize {
        let counted = self.failed.lock();
        counted.0.len() + counted.1.len()
    }
}

fn lookup<'a>(counted: &'a mut (Counted, Counted), key: &(Limit, String)) -> Option<&'a mut Failures> {
    let (new, old) = counted;
    new.get_mut(key).or_else(|| old.get_mut(key))
}

fn put(counted: &mut (Counted, Counted), key: (Limit, String), failures: Failures) {
    let (new, old) = counted;
    old.remove(&key);
    if new.len() >= MAX_CALLERS / 2 && !new.contains_key(&key) {
        *old = std::mem::take(new);
    }
    new.insert(key, failures);
}

/// The count with one more failure; or the time until another attempt is allowed.
fn next(limit: Limit, known: Failures, now: Duration) -> Result<Failures, Duration> {
    let (most, span) = limit.rate();
    if now < known.not_before {
        return Err(known.not_before - now);
    }
    let rest = limit.waits().map_or(Duration::ZERO, |(_, longest)| longest);
    let over = match known.count < most {
        true => known.count == 0 || now >= known.since + span,
        // A caller who has stayed away for the longest wait starts afresh.
        false => now >= (known.since + span).max(known.not_before + rest),
    };
    let failures = match over {
        true => Failures { since: now, count: 1, ..Failures::default() },
        false => Failures { count: known.count.saturating_add(1), ..known },
    };
    match limit.waits() {
        None if failures.count > most => Err(known.since + span - now),
        Some((first, longest)) if failures.count >= most => {
            let wait = failures.wait.max(first);
            Ok(Failures { not_before: now + wait, wait: (wait * 2).min(longest), ..failures })
        }
        _ => Ok(failures),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_name_is_never_locked_but_slower_and_slower() {
        let (attempts, by) = (Attempts::default(), [(Limit::Name, "mara 10.0.0.1")]);
        for second in 0..10 {
            assert_eq!(attempts.begin(seconds(second), &by), Ok(()), "{second}");
        }
        assert_eq!(attempts.begin(seconds(9), &by), Err(seconds(30)));
        let mut now = seconds(9);
        for wait in [30, 60, 120, 240, 480, 900, 900] {
            assert_eq!(attempts.begin(now + seconds(wait - 1), &by), Err(seconds(1)), "{wait}");
            now += seconds(wait);
            assert_eq!(attempts.begin(now, &by), Ok(()), "{wait}");
        }
        // Another network, and another name, are not affected.
        assert_eq!(attempts.begin(now, &[(Limit::Name, "mara 10.0.0.2")]), Ok(()));
        // A caller who stays away starts afresh.
        assert_eq!(attempts.begin(now + seconds(1_800), &by), Ok(()));
        assert_eq!(attempts.begin(now + seconds(1_801), &by), Ok(()));
    }

    #[test]
    fn a_success_is_taken_back() {
        let (attempts, by) = (Attempts::default(), [(Limit::Name, "mara"), (Limit::Network, "10.0.0.1")]);
        for second in 0..300 {
            assert_eq!(attempts.begin(seconds(second), &by), Ok(()), "{second}");
            attempts.succeeded(&by);
        }
    }

    #[test]
    fn a_network_fails_so_often_in_its_time_under_whatever_names() {
        let attempts = Attempts::default();
        for i in 0..100 {
            assert_eq!(attempts.begin(seconds(i), &[(Limit::Name, &i.to_string()), (Limit::Network, "n")]), Ok(()));
        }
        let by = [(Limit::Name, "new"), (Limit::Network, "n")];
        assert_eq!(attempts.begin(seconds(100), &by), Err(seconds(200)));
        for _ in 0..50 {
            assert!(attempts.begin(seconds(101), &by).is_err(), "what is refused is not counted");
        }
        assert_eq!(attempts.begin(seconds(300), &by), Ok(()));
        assert_eq!(attempts.begin(seconds(300), &[(Limit::Key, "n"), (Limit::Code, "n")]), Ok(()));
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_are_forgotten() {
        let attempts = Attempts::default();
        for i in 0..MAX_CALLERS as u64 * 2 {
            let _ = attempts.begin(Duration::from_millis(i), &[(Limit::Key, &i.to_string())]);
        }
        assert!(attempts.remembered() <= MAX_CALLERS, "{}", attempts.remembered());
        for _ in 0..9 {
            assert_eq!(attempts.begin(seconds(200), &[(Limit::Key, "199999")]), Ok(()));
        }
    }
}

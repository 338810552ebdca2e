//! Requests to a hub by people and programs: their number, bytes of answers, and viewers.

use crate::accounts::{Principal, Who};
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use stream::clock::Clock;

/// Maximum number of teams and keys counted at once. Idle ones are dropped each minute. Above the maximum a key counts
/// for its team alone.
const MAX_TABS: usize = 20_000;

/// The payer of usage: a team, by its id, or none for the hub's first; and one of its keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Payer {
    /// The team's id.
    pub team: Option<String>,
    /// The key's id; none for the team as a whole.
    pub key: Option<String>,
}

/// Usage since the last read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Consumed {
    /// Requests for samples.
    pub queries: u64,
    /// Bytes of answers and of messages on sockets.
    pub bytes_out: u64,
    /// Connected time, summed over all viewers.
    pub watched: Duration,
    /// Maximum number of concurrent viewers.
    pub peak: u64,
}

#[derive(Debug, Default)]
struct Counts {
    queries: AtomicU64,
    bytes_out: AtomicU64,
    viewers: Mutex<Viewers>,
}

/// Viewers of one payer, by the steady clock.
#[derive(Debug, Default)]
struct Viewers {
    now: u64,
    peak: u64,
    watched: Duration,
    since: Duration,
}

impl Viewers {
    fn until(&mut self, now: Duration) {
        self.watched += now.saturating_sub(self.since) * u32::try_from(self.now).unwrap_or(u32::MAX);
        self.since = now;
    }
}

impl Counts {
    fn viewers(&self) -> MutexGuard<'_, Viewers> {
        self.viewers.lock()
    }

    fn come(&self, now: Duration) {
        let mut viewers = self.viewers();
        viewers.until(now);
        viewers.now += 1;
        viewers.peak = viewers.peak.max(viewers.now);
    }

    fn go(&self, now: Duration) {
        let mut viewers = self.viewers();
        viewers.until(now);
        viewers.now = viewers.now.saturating_sub(1);
    }

    fn take(&self, now: Duration) -> Consumed {
        let mut viewers = self.viewers();
        viewers.until(now);
        let (watched, peak) = (std::mem::take(&mut viewers.watched), viewers.peak);
        viewers.peak = viewers.now;
        Consumed {
            queries: self.queries.swap(0, Ordering::Relaxed),
            bytes_out: self.bytes_out.swap(0, Ordering::Relaxed),
            watched,
            peak,
        }
    }
}

/// Counters of requests, in memory.
pub struct Meter {
    clock: Arc<dyn Clock>,
    tabs: Mutex<HashMap<Payer, Arc<Counts>>>,
    /// Rows left out because the queue was full while the database was unreachable.
    left_out: AtomicU64,
}

/// Counters of one caller's usage: of their team, and of the key. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tab {
    team: Arc<Counts>,
    key: Option<Arc<Counts>>,
}

/// A connected viewer.
pub struct Watching {
    clock: Arc<dyn Clock>,
    tab: Tab,
}

impl Meter {
    /// A meter without requests.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Meter { clock, tabs: Mutex::default(), left_out: AtomicU64::new(0) }
    }

    /// Rows of usage left out since the start: the database was unreachable for too long.
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    /// Sets the number of rows left out so far.
    pub(super) fn leaves_out(&self, rows: u64) {
        self.left_out.store(rows, Ordering::Relaxed);
    }

    fn tabs(&self) -> MutexGuard<'_, HashMap<Payer, Arc<Counts>>> {
        self.tabs.lock()
    }

    /// The counters of a principal.
    pub fn tab(&self, who: &Principal) -> Tab {
        let team = who.counts_for().map(String::from);
        let mut tabs = self.tabs();
        let key = match &who.who {
            Who::Key { id, .. } => Some(Payer { team: team.clone(), key: Some(id.clone()) }),
            _ => None,
        };
        let key = key.filter(|key| tabs.len() < MAX_TABS || tabs.contains_key(key));
        let key = key.map(|key| tabs.entry(key).or_default().clone());
        // There are fewer teams than keys, and their number is limited at their creation.
        Tab { team: tabs.entry(Payer { team, key: None }).or_default().clone(), key }
    }

    /// Usage of each since the last call, without those that used nothing.
    pub(super) fn take(&self) -> Vec<(Payer, Consumed)> {
        let now = self.clock.steady();
        let mut tabs = self.tabs();
        let mut all: Vec<(Payer, Consumed)> =
            tabs.iter().map(|(payer, counts)| (payer.clone(), counts.take(now))).collect();
        all.retain(|(_, asked)| *asked != Consumed::default());
        tabs.retain(|_, counts| Arc::strong_count(counts) > 1 || counts.viewers().now > 0);
        all
    }
}

impl Tab {
    fn each(&self) -> impl Iterator<Item = &Arc<Counts>> {
        std::iter::once(&self.team).chain(&self.key)
    }

    /// Counts a request for samples.
    pub fn query(&self) {
        for counts in self.each() {
            counts.queries.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts bytes of answers.
    pub fn sent(&self, bytes: usize) {
        for counts in self.each() {
            counts.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Counts a viewer while the result is held.
    pub fn watch(self, clock: Arc<dyn Clock>) -> Watching {
        self.each().for_each(|counts| counts.come(clock.steady()));
        Watching { clock, tab: self }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.tab.each().for_each(|counts| counts.go(self.clock.steady()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stream::clock::Manual;

    fn key(id: &str) -> Principal {
        let mut who = Principal::local(0);
        who.who = Who::Key { id: id.into(), name: "k".into() };
        who
    }

    #[test]
    fn a_key_counts_for_itself_and_for_its_team() {
        let meter = Meter::new(Arc::new(Manual::at(0, Duration::ZERO)));
        for who in [key("a"), key("b"), Principal::local(0)] {
            let tab = meter.tab(&who);
            tab.query();
            tab.sent(10);
        }
        let of = |key: Option<&str>| Payer { team: None, key: key.map(String::from) };
        let asked = |n| Consumed { queries: n, bytes_out: n * 10, ..Consumed::default() };
        let taken: HashMap<Payer, Consumed> = meter.take().into_iter().collect();
        let expected = [(of(None), asked(3)), (of(Some("a")), asked(1)), (of(Some("b")), asked(1))];
        assert_eq!(taken, expected.into_iter().collect());
        assert!(meter.take().is_empty() && meter.tabs().is_empty(), "who asks for nothing is forgotten");
    }

    #[test]
    fn viewers_are_counted_by_their_time_and_at_their_most() {
        let clock = Arc::new(Manual::at(0, Duration::ZERO));
        let meter = Meter::new(clock.clone());
        let watch = || meter.tab(&key("a")).watch(clock.clone());
        let (first, second) = (watch(), watch());
        clock.pass(Duration::from_secs(30));
        drop(second);
        clock.pass(Duration::from_secs(30));
        let taken = |meter: &Meter| meter.take().into_iter().find(|(payer, _)| payer.key.is_some()).expect("a key").1;
        let asked = taken(&meter);
        assert_eq!((asked.watched, asked.peak), (Duration::from_secs(90), 2));
        // The viewer is still connected, though there were no other requests.
        clock.pass(Duration::from_secs(60));
        let asked = taken(&meter);
        assert_eq!((asked.watched, asked.peak), (Duration::from_secs(60), 1));
        drop(first);
    }

    #[test]
    fn keys_without_end_count_for_their_team_alone() {
        let meter = Meter::new(Arc::new(Manual::at(0, Duration::ZERO)));
        for n in 0..MAX_TABS + 10 {
            meter.tab(&key(&n.to_string())).query();
        }
        assert_eq!(meter.tabs().len(), MAX_TABS);
        let all = meter.take();
        let team = all.iter().find(|(payer, _)| payer.key.is_none()).expect("the team");
        assert_eq!(team.1.queries, MAX_TABS as u64 + 10);
    }
}

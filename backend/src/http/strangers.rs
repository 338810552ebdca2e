//! Unauthenticated callers: limits of their connections and requests, for each network and in all, so that there is
//! always room for authenticated callers. A connection begins unauthenticated, until a request on it is authenticated.
//! A connection that becomes a WebSocket or an agent's link is counted elsewhere.

use super::Refusal;
use crate::config::AddressRange;
use axum::http::StatusCode;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use team::accounts::Network;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Maximum number of unauthenticated connections of one network.
const MAX_OF_NETWORK: usize = 64;
/// Maximum number of unauthenticated connections in all: half of all connections.
const MAX_STRANGERS: usize = 512;
/// Maximum number of concurrent unauthenticated requests with a body, of one network and in all. Callers behind a
/// proxy share connections.
const MAX_REQUESTS_OF_NETWORK: usize = 64;
const MAX_REQUESTS: usize = 256;
/// Minimum time before an unauthenticated connection can be closed. When there is no room for more, the oldest
/// connection above this age is closed.
const GRACE: Duration = Duration::from_secs(5);

/// Unauthenticated connections and requests.
pub struct Strangers {
    held: Mutex<Held>,
    /// A connection has ended or became authenticated.
    changed: Notify,
    /// Proxies, whose connections are shared by many callers.
    trusted: Vec<AddressRange>,
    closed: AtomicU64,
    turned_away: AtomicU64,
    late_bodies: AtomicU64,
}

#[derive(Default)]
struct Held {
    next: u64,
    connections: BTreeMap<u64, Connection>,
    requests: BTreeMap<u64, PendingRequest>,
}

struct Connection {
    /// None: a proxy or this machine, where many callers share one address.
    network: Option<Network>,
    is_known: bool,
    since: Instant,
    close: Arc<Notify>,
}

struct PendingRequest {
    network: Network,
    since: Instant,
    /// None for a request by one of our own sockets.
    connection: Option<u64>,
}

/// Counts of unauthenticated callers and of refusals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StrangerFigures {
    /// Connections, including authenticated ones.
    pub connections: u64,
    /// Unauthenticated connections.
    pub strangers: u64,
    /// Unauthenticated connections that were closed to make room.
    pub closed: u64,
    /// Unauthenticated connections and requests that were refused because of the limit of their network or of all.
    pub turned_away: u64,
    /// Bodies that did not arrive in time.
    pub late_bodies: u64,
}

/// An open connection.
pub(super) struct Visit {
    strangers: Arc<Strangers>,
    id: u64,
    close: Arc<Notify>,
}

/// The connection of a request, for code that handles the request.
#[derive(Clone)]
pub(super) struct Visitor {
    strangers: Arc<Strangers>,
    id: u64,
}

/// An unauthenticated request in progress.
pub(super) struct StrangerRequest {
    strangers: Arc<Strangers>,
    id: u64,
}

impl Strangers {
    /// The limits of a server behind these proxies.
    pub fn new(trusted: Vec<AddressRange>) -> Arc<Self> {
        Arc::new(Strangers {
            held: Mutex::default(),
            changed: Notify::new(),
            trusted,
            closed: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
            late_bodies: AtomicU64::new(0),
        })
    }

    /// Current counts.
    pub fn figures(&self) -> StrangerFigures {
        let held = self.held();
        let (connections, strangers) = (held.connections.len(), held.strangers().count());
        drop(held);
        let counted = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StrangerFigures {
            connections: connections as u64,
            strangers: strangers as u64,
            closed: counted(&self.closed),
            turned_away: counted(&self.turned_away),
            late_bodies: counted(&self.late_bodies),
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock()
    }

    /// The network by which the connections of an address are counted. Many callers share the address of a proxy, and
    /// of this machine, where an unconfigured proxy may run.
    fn counted_as(&self, peer: IpAddr) -> Option<Network> {
        let is_shared = peer.is_loopback() || self.trusted.iter().any(|range| range.contains(peer));
        (!is_shared).then(|| Network::from_address(peer))
    }

    /// Resolves once there is room for another unauthenticated connection.
    pub(super) async fn room(&self) {
        while self.held().strangers().count() >= MAX_STRANGERS {
            self.close_oldest().await;
        }
    }

    /// Closes the oldest unauthenticated connection once it is older than the grace period, and returns true. Returns
    /// false when connections change before that.
    pub(super) async fn close_oldest(&self) -> bool {
        let changed = self.changed.notified();
        let oldest = {
            let mut held = self.held();
            let oldest = held.oldest(|_| true);
            match oldest {
                Some((id, since)) if since.elapsed() >= GRACE => {
                    held.close(id);
                    self.closed.fetch_add(1, Ordering::Relaxed);
                    return true;
                }
                other => other.map(|(_, since)| since),
            }
        };
        match oldest {
            Some(since) => tokio::select! {
                () = changed => {}
                () = sleep_until(since + GRACE) => {}
            },
            None => changed.await,
        }
        false
    }

    /// Counts a connection from an address. None if its network has reached its limit and none of its connections is
    /// old enough to be closed.
    pub(super) fn enter(self: &Arc<Self>, peer: IpAddr) -> Option<Visit> {
        let network = self.counted_as(peer);
        let mut held = self.held();
        if let Some(network) = &network {
            let of_network = |connection: &Connection| connection.network.as_ref() == Some(network);
            if held.strangers().filter(|(_, connection)| of_network(connection)).count() >= MAX_OF_NETWORK {
                match held.oldest(of_network) {
                    Some((id, since)) if since.elapsed() >= GRACE => {
                        held.close(id);
                        self.closed.fetch_add(1, Ordering::Relaxed);
                    }
                    _ => {
                        self.turned_away.fetch_add(1, Ordering::Relaxed);
                        return None;
                    }
                }
            }
        }
        let (id, close) = (held.next, Arc::new(Notify::new()));
        held.next += 1;
        let connection = Connection { network, is_known: false, since: Instant::now(), close: close.clone() };
        held.connections.insert(id, connection);
        Some(Visit { strangers: self.clone(), id, close })
    }

    /// Counts an unauthenticated request with a body on this connection.
    ///
    /// # Errors
    /// 429: too many of this network, or in all, are in progress, and none of them is old enough to be ended.
    pub(super) fn request(
        self: &Arc<Self>,
        network: &Network,
        visitor: Option<&Visitor>,
    ) -> Result<StrangerRequest, Refusal> {
        let mut held = self.held();
        let of_network = |one: &PendingRequest| one.network == *network;
        let own = held.requests.values().filter(|one| of_network(one)).count();
        let own_is_full = own >= MAX_REQUESTS_OF_NETWORK && !network.is_this_machine();
        if own_is_full || held.requests.len() >= MAX_REQUESTS {
            if !held.end_request(|one| !own_is_full || of_network(one)) {
                drop(held);
                self.turned_away.fetch_add(1, Ordering::Relaxed);
                let sentence = "too many unauthenticated requests; try again in a moment";
                return Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, sentence).again_in(Duration::from_secs(1)));
            }
            self.closed.fetch_add(1, Ordering::Relaxed);
        }
        let (id, connection) = (held.next, visitor.map(|visitor| visitor.id));
        held.next += 1;
        held.requests.insert(id, PendingRequest { network: network.clone(), since: Instant::now(), connection });
        Ok(StrangerRequest { strangers: self.clone(), id })
    }
}

impl Held {
    fn strangers(&self) -> impl Iterator<Item = (&u64, &Connection)> {
        self.connections.iter().filter(|(_, connection)| !connection.is_known)
    }

    fn oldest(&self, of: impl Fn(&Connection) -> bool) -> Option<(u64, Instant)> {
        let all = self.strangers().filter(|(_, connection)| of(connection));
        all.map(|(id, connection)| (*id, connection.since)).min_by_key(|(_, since)| *since)
    }

    /// Ends the oldest of these requests by closing its connection. Returns whether it was old enough.
    fn end_request(&mut self, of: impl Fn(&PendingRequest) -> bool) -> bool {
        // They are in the order of arrival.
        let oldest = self.requests.iter().find(|(_, one)| of(one) && one.since.elapsed() >= GRACE);
        let Some((id, connection)) = oldest.map(|(id, one)| (*id, one.connection)) else { return false };
        self.requests.remove(&id);
        connection.into_iter().for_each(|connection| self.close(connection));
        true
    }

    fn close(&mut self, id: u64) {
        if let Some(connection) = self.connections.remove(&id) {
            connection.close.notify_one();
        }
    }
}

impl Visit {
    /// Resolves when this connection is closed to make room.
    pub async fn closed(&self) {
        self.close.notified().await;
    }

    /// Handle that requests on this connection carry.
    pub fn visitor(&self) -> Visitor {
        Visitor { strangers: self.strangers.clone(), id: self.id }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.strangers.held().connections.remove(&self.id);
        self.strangers.changed.notify_waiters();
    }
}

impl Visitor {
    /// Marks the connection as authenticated or not.
    pub fn is(&self, known: bool) {
        if let Some(connection) = self.strangers.held().connections.get_mut(&self.id)
            && connection.is_known != known
        {
            (connection.is_known, connection.since) = (known, Instant::now());
        }
        self.strangers.changed.notify_waiters();
    }

    /// Counts a body on this connection that did not arrive in time.
    pub fn is_late(&self) {
        self.strangers.late_bodies.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for StrangerRequest {
    fn drop(&mut self) {
        self.strangers.held().requests.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{advance, timeout};

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn trusted(text: &str) -> Arc<Strangers> {
        let table = format!("trusted = [{text:?}]");
        Strangers::new(crate::config::Proxies::TABLE.read_text(&table).expect("a table").trusted)
    }

    #[tokio::test(start_paused = true)]
    async fn one_network_holds_64_connections_and_its_oldest_makes_room() {
        let strangers = Strangers::new(Vec::new());
        for (first, other, apart) in [
            ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
            ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:3::1"),
            ("::ffff:198.51.100.7", "198.51.100.7", "198.51.100.8"),
        ] {
            let held: Vec<Visit> = (0..MAX_OF_NETWORK).map(|_| strangers.enter(ip(first)).expect("room")).collect();
            assert!(strangers.enter(ip(other)).is_none() && strangers.enter(ip(apart)).is_some(), "{first}");
            // Authenticated connections do not count.
            held[5].visitor().is(true);
            let sixth = strangers.enter(ip(other)).expect("room");
            assert!(strangers.enter(ip(other)).is_none(), "{first}");
            advance(GRACE).await;
            let newest = strangers.enter(ip(other)).expect("the oldest goes");
            timeout(Duration::ZERO, held[0].closed()).await.expect("it is closed");
            for other in [&held[1], &held[5], &sixth, &newest] {
                assert!(timeout(Duration::ZERO, other.closed()).await.is_err(), "nobody else is");
            }
        }
        let figures = strangers.figures();
        assert_eq!(figures, StrangerFigures { closed: 3, turned_away: 6, ..StrangerFigures::default() });
    }

    #[tokio::test(start_paused = true)]
    async fn a_proxy_and_this_machine_are_many_callers() {
        let strangers = trusted("10.0.0.0/24");
        let held: Vec<Visit> = ["10.0.0.5", "127.0.0.1", "::1"]
            .into_iter()
            .flat_map(|from| (0..MAX_OF_NETWORK + 1).map(move |_| from))
            .map(|from| strangers.enter(ip(from)).expect("room"))
            .collect();
        assert_eq!(strangers.figures().strangers, held.len() as u64);
        drop(held);
        assert_eq!(strangers.figures(), StrangerFigures::default());
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_never_hold_all_of_the_room() {
        let strangers = Strangers::new(Vec::new());
        let held: Vec<Visit> = (0..MAX_STRANGERS).map(|_| strangers.enter(ip("127.0.0.1")).expect("room")).collect();
        assert!(timeout(GRACE / 2, strangers.room()).await.is_err(), "they are left alone for a moment");
        held[7].visitor().is(true);
        timeout(Duration::ZERO, strangers.room()).await.expect("one of them is known now");
        held[7].visitor().is(false);
        timeout(GRACE, strangers.room()).await.expect("the oldest goes");
        timeout(Duration::ZERO, held[0].closed()).await.expect("it is closed");
        assert_eq!(strangers.figures().closed, 1);
        // A connection that ends by itself makes room, too.
        let last = strangers.enter(ip("127.0.0.1")).expect("room");
        let (room, ()) = tokio::join!(timeout(GRACE / 2, strangers.room()), async { drop(last) });
        room.expect("room");
    }

    #[tokio::test(start_paused = true)]
    async fn requests_behind_a_proxy_are_counted_by_the_caller() {
        let strangers = Strangers::new(Vec::new());
        let (one, local) = (Network::from_address(ip("192.0.2.1")), Network::from_address(ip("127.0.0.1")));
        let visit = strangers.enter(ip("127.0.0.1")).expect("room");
        let of_one = || strangers.request(&one, Some(&visit.visitor()));
        let held: Vec<_> = (0..MAX_REQUESTS_OF_NETWORK).map(|_| of_one().expect("room")).collect();
        assert_eq!(of_one().err().expect("too many").status, StatusCode::TOO_MANY_REQUESTS);
        let others = (MAX_REQUESTS_OF_NETWORK..MAX_REQUESTS).map(|_| strangers.request(&local, None));
        let others: Vec<_> = others.collect();
        assert!(others.iter().all(Result::is_ok), "this machine may be a proxy");
        let another = || strangers.request(&Network::from_address(ip("192.0.2.2")), None);
        assert!(another().is_err(), "in all");
        // Connections that do not end by themselves are closed.
        advance(GRACE).await;
        let newest = another().expect("room");
        timeout(Duration::ZERO, visit.closed()).await.expect("the connection of the oldest is closed");
        drop(held);
        assert!(of_one().is_ok());
        drop((others, newest));
        assert!(strangers.held().requests.is_empty());
    }
}

//! The parts that a hub has beside the stream: accounts, the machines that joined, and its address.

use super::Caller;
use super::cookie::SessionCookie;
use super::join_road::JoinRoad;
use super::pace::{RequestPace, Seats};
use super::tls::Certificate;
use crate::config::{AddressRange, Config, NewAccounts, ProxySignIn, PublicUrl};
use axum::http::HeaderMap;
use cluster::Cluster;
use fleet::ingest::Ingest;
use providers::Providers;
use shared::secret::Secret;
use std::sync::Arc;
use team::accounts::{Accounts, AuditFile, Network, Principal, Who};
use team::usage::Meter;

/// Burst of new links of one machine. Above it the limit is one per second.
const RETURNS_AT_ONCE: u32 = 30;
/// Requests of one principal: burst, and per second.
const REQUESTS_AT_ONCE: u32 = 200;
const REQUESTS_A_SECOND: u32 = 50;

/// State shared by the handlers of a hub.
pub struct Hub {
    /// People, keys and machines.
    pub accounts: Accounts,
    /// The hub's end of the links of agents.
    pub ingest: Ingest,
    /// The other replicas of the hub, if there are several.
    pub cluster: Option<Arc<Cluster>>,
    /// The file of the audit log, if there is one.
    pub audit_file: Option<Arc<AuditFile>>,
    /// The address that people and agents use.
    pub public: PublicUrl,
    /// Other machines reach the hub without TLS. Every page shows this.
    pub unencrypted: bool,
    /// The certificate sent to clients, if the hub serves TLS itself.
    certificate: Option<Arc<Certificate>>,
    pub(super) cookie: SessionCookie,
    pub(super) requests: RequestPace,
    pub(super) seats: Seats,
    pub(super) link_seats: Seats,
    pub(super) queries: Seats,
    /// Limit of new links of all agents together.
    pub(super) handshakes: RequestPace,
    /// Limit of new links of each machine, including refused ones.
    pub(super) returns: RequestPace,
    /// Usage of people and programs.
    pub(super) meter: Arc<Meter>,
    trusted: Vec<AddressRange>,
    /// Identity providers for sign-in.
    pub(super) providers: Arc<Providers>,
    /// People may sign in by a password.
    pub(super) password: bool,
    /// A proxy in front that has signed people in.
    pub(super) proxy: Option<ProxySignIn>,
    /// A user with an identity from a provider or proxy gets an account at the first sign-in.
    pub(super) admits: bool,
}

impl Hub {
    /// A hub of a configuration that listens on this port.
    pub fn new(
        config: &Config,
        accounts: Accounts,
        ingest: Ingest,
        meter: Arc<Meter>,
        (public, port): (PublicUrl, u16),
        certificate: Option<Arc<Certificate>>,
        providers: Arc<Providers>,
    ) -> Self {
        let handshakes = config.agent_limits.handshakes.max(1);
        Hub {
            unencrypted: Self::is_unencrypted(config, &public),
            cookie: SessionCookie::new(public.is_https(), accounts.instance(), port),
            requests: RequestPace::per_second(REQUESTS_AT_ONCE, REQUESTS_A_SECOND),
            seats: Seats::of_sockets(),
            link_seats: Seats::of_links(),
            queries: Seats::of_queries(),
            handshakes: RequestPace::per_second(handshakes, handshakes),
            returns: RequestPace::per_second(RETURNS_AT_ONCE, 1),
            trusted: config.trusted_proxies.trusted.clone(),
            providers,
            password: config.sign_in.password,
            proxy: config.sign_in.proxy.clone(),
            admits: config.sign_in.new_accounts == NewAccounts::Viewer,
            meter,
            cluster: None,
            audit_file: None,
            accounts,
            ingest,
            public,
            certificate,
        }
    }

    /// Whether the hub accepts sign-ins by an identity of this kind and issuer.
    pub(super) fn takes(&self, kind: &str, issuer: &str) -> bool {
        match kind {
            "password" => self.password,
            "proxy" => self.proxy.is_some(),
            _ => self.providers.issuers().any(|own| own == issuer),
        }
    }

    /// The address and certificate pin by which machines reach the hub.
    pub(super) fn road(&self) -> JoinRoad<'_> {
        let pin = self.certificate.as_ref().and_then(|certificate| certificate.pin());
        JoinRoad { public: &self.public, unencrypted: self.unencrypted, pin }
    }

    /// Whether other machines reach a hub without TLS.
    pub fn is_unencrypted(config: &Config, public: &PublicUrl) -> bool {
        config.plain_http && !public.is_https() && !public.is_loopback()
    }

    /// A link to the hub with a code in its fragment, which no server and no log receives.
    pub(super) fn link(&self, what: &str, code: &Secret) -> Secret {
        Secret::new(format!("{}#{what}={}", self.public, code.reveal()))
    }

    /// The configured proxies: their connections are shared by many callers.
    pub(super) fn proxies(&self) -> Vec<AddressRange> {
        let sign_in = self.proxy.iter().flat_map(|proxy| proxy.ranges());
        self.trusted.iter().chain(sign_in).copied().collect()
    }

    /// The network that a request comes from. In the header of a proxy the right-most address that is no trusted proxy
    /// counts: any client can write the addresses left of it.
    pub(super) fn network(&self, caller: Caller, headers: &HeaderMap) -> Network {
        let Some(peer) = caller.peer else { return Network::local() };
        Network::from_address(origin_of(peer, headers, &self.trusted))
    }
}

fn origin_of(peer: std::net::IpAddr, headers: &HeaderMap, trusted: &[AddressRange]) -> std::net::IpAddr {
    let is_trusted = |ip| trusted.iter().any(|range| range.contains(ip));
    if !is_trusted(peer) {
        return peer;
    }
    let lists = headers.get_all("x-forwarded-for").iter().rev();
    let mut nearest = peer;
    for list in lists {
        let Ok(list) = list.to_str() else { return nearest };
        for text in list.rsplit(',') {
            // A trusted proxy writes only addresses.
            let Some(ip) = address_of(text.trim()) else { return nearest };
            nearest = ip;
            if !is_trusted(ip) {
                return ip;
            }
        }
    }
    nearest
}

/// An address with or without a port: Azure's Application Gateway always writes the port of the client, and other load
/// balancers do so on request.
fn address_of(text: &str) -> Option<std::net::IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(|| Some(text.parse::<std::net::SocketAddr>().ok()?.ip()))
}

/// The key by which requests and sockets of a principal are counted.
pub(super) fn counted_as(principal: &Principal) -> String {
    match &principal.who {
        Who::Account { id, .. } => format!("account {id}"),
        Who::Key { id, .. } => format!("key {id}"),
        Who::Share { id, .. } => format!("link {id}"),
        Who::Local { uid } => format!("uid {uid}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn only_trusted_proxies_say_for_whom_they_ask() {
        let config = |text: &str| crate::config::Proxies::TABLE.read_text(text).expect("a table").trusted;
        let trusted = config("trusted = [\"10.0.0.5\", \"10.1.0.0/16\"]");
        let from = |peer: &str, lists: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for list in lists {
                headers.append("x-forwarded-for", HeaderValue::from_static(list));
            }
            origin_of(peer.parse().expect("an address"), &headers, &trusted).to_string()
        };
        assert_eq!(from("192.0.2.1", &["198.51.100.7"]), "192.0.2.1", "anybody may write it");
        assert_eq!(from("10.0.0.5", &["198.51.100.7"]), "198.51.100.7");
        assert_eq!(from("10.0.0.5", &[]), "10.0.0.5");
        assert_eq!(from("10.0.0.5", &["203.0.113.9, 198.51.100.7, 10.1.2.3"]), "198.51.100.7", "the right-most other");
        assert_eq!(from("10.0.0.5", &["203.0.113.9", "198.51.100.7"]), "198.51.100.7", "the last header counts first");
        assert_eq!(from("10.0.0.5", &["evil, 10.1.2.3"]), "10.1.2.3");
        assert_eq!(from("10.0.0.5", &["unknown"]), "10.0.0.5");
        assert_eq!(from("10.0.0.4", &["198.51.100.7"]), "10.0.0.4", "its neighbor is not trusted");
        assert_eq!(from("10.0.0.5", &["203.0.113.9, 198.51.100.7:51234, 10.1.2.3:80"]), "198.51.100.7", "with ports");
        assert_eq!(from("10.0.0.5", &["[2001:db8::7]:51234"]), "2001:db8::7");
        assert_eq!(from("10.0.0.5", &["[2001:db8::7]"]), "2001:db8::7");
        assert_eq!(from("10.0.0.5", &["198.51.100.7:"]), "10.0.0.5");
    }
}

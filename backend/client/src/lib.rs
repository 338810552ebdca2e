//! Requests to other servers over HTTP/1.1: the one place for trust, timeouts, size limits and error texts.
//!
//! Certificates are verified with the system's roots. Redirects are not followed, because headers may hold secrets.
//! Proxies of the environment are not used, because addresses are configured one by one. Calls block their thread,
//! within [`Limits`]. No sentence of an error holds a header or a secret part of an address.

mod body;
mod counted;
mod gate;

pub use body::{BodyError, MaxBytes, read};
pub use gate::Gate;
pub use ureq::Body;
pub use ureq::http;

use counted::Counted;
use gate::{Gated, Noted};
use parking_lot::Mutex;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use ureq::config::Config;
use ureq::http::{Response, Uri};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{ConnectProxyConnector, Connector, DefaultConnector, RustlsConnector, TcpConnector};
use ureq::{Agent, Error, Proxy};

/// Text of a refused connection; a caller may add the expected listener.
pub const NOTHING_LISTENS: &str = "connection refused";

/// Time limits of a request.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum time for a connection to be established.
    pub connect: Duration,
    /// Maximum time from the first name look-up to the last byte of the answer.
    pub whole: Duration,
    /// Maximum idle time of a kept connection.
    pub idle: Duration,
}

/// Sends requests to servers, one at a time, and keeps the connection for the next one.
#[derive(Debug)]
pub struct Client {
    agent: Agent,
    limits: Limits,
    connections: Arc<AtomicU64>,
    met: Arc<Mutex<Option<SocketAddr>>>,
}

impl Client {
    /// A client without a connection yet.
    pub fn new(limits: Limits) -> Self {
        Self::trusting(limits, RootCerts::PlatformVerifier)
    }

    /// A client that trusts only these authorities: their certificates in PEM.
    ///
    /// # Errors
    /// There is none in it, a sentence without a full stop.
    pub fn trusting_only(limits: Limits, authorities: &[u8]) -> Result<Self, String> {
        let certificates = parse_pem(authorities).filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        });
        let certificates: Vec<_> = certificates.collect();
        match certificates.is_empty() {
            true => Err("the file has no certificate".into()),
            false => Ok(Self::trusting(limits, RootCerts::new_with_certs(&certificates))),
        }
    }

    /// A client that connects only to addresses that a gate allows; the gate is checked for each request. With a proxy
    /// (`http://` or `https://`, user and password may be in it) every request goes through it, by CONNECT with the
    /// host's name: then the proxy resolves names, and the gate is not used.
    ///
    /// # Errors
    /// The proxy's address is invalid, a sentence without a full stop that does not contain it.
    pub fn gated(limits: Limits, gate: Arc<dyn Gate>, proxy: Option<&str>) -> Result<Self, String> {
        Self::gated_trusting(limits, gate, proxy, RootCerts::PlatformVerifier)
    }

    fn gated_trusting(
        limits: Limits,
        gate: Arc<dyn Gate>,
        proxy: Option<&str>,
        roots: RootCerts,
    ) -> Result<Self, String> {
        let proxy = match proxy {
            Some(address) if address.starts_with("http://") || address.starts_with("https://") => {
                Some(Proxy::new(address).map_err(|_| NO_PROXY.to_string())?)
            }
            Some(_) => return Err(NO_PROXY.into()),
            None => None,
        };
        let config = config(limits, roots, proxy, 0);
        let (connections, met) = (Arc::<AtomicU64>::default(), Arc::<Mutex<Option<SocketAddr>>>::default());
        let connector =
            ().chain(ConnectProxyConnector::default())
                .chain(Noted { tcp: TcpConnector::default(), met: met.clone() })
                .chain(RustlsConnector::default())
                .chain(Counted(connections.clone()));
        let agent = Agent::with_parts(config, connector, Gated { gate, longest: limits.connect });
        Ok(Client { agent, limits, connections, met })
    }

    fn trusting(limits: Limits, roots: RootCerts) -> Self {
        let config = config(limits, roots, None, 1);
        let connections = Arc::<AtomicU64>::default();
        let connector = DefaultConnector::default().chain(Counted(connections.clone()));
        let agent = Agent::with_parts(config, connector, DefaultResolver::default());
        Client { agent, limits, connections, met: Arc::default() }
    }

    /// The address of the newest connection of a [`gated`](Self::gated) client, once; None if there was none since. For
    /// a request through a proxy, it is the proxy's.
    pub fn met(&self) -> Option<SocketAddr> {
        self.met.lock().take()
    }

    /// Number of connections so far. It is the only way to detect a silent reconnect, such as after a restart of the
    /// server between two requests.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Sends a GET request to an address, with these query parameters.
    ///
    /// # Errors
    /// The reason why there is no answer, a sentence without a full stop. An answer with any status is not an error.
    pub fn get<'a>(
        &self,
        uri: &Uri,
        parameters: &[(&str, String)],
        headers: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Response<Body>, String> {
        let mut request = self.agent.get(uri).query_pairs(parameters.iter().map(|(name, value)| (*name, value)));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request.call().map_err(|error| self.describe_error(uri, &error))
    }

    /// Sends a body to an address by POST.
    ///
    /// # Errors
    /// As those of [`get`](Self::get).
    pub fn post<'a>(
        &self,
        uri: &Uri,
        headers: impl IntoIterator<Item = (&'a str, &'a str)>,
        body: &[u8],
    ) -> Result<Response<Body>, String> {
        let mut request = self.agent.post(uri);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request.send(body).map_err(|error| self.describe_error(uri, &error))
    }

    /// Sends a request of any method, with a body or without.
    ///
    /// # Errors
    /// As those of [`get`](Self::get).
    pub fn send<'a>(
        &self,
        method: &str,
        uri: &Uri,
        headers: impl IntoIterator<Item = (&'a str, &'a str)>,
        body: Option<&[u8]>,
    ) -> Result<Response<Body>, String> {
        let request =
            headers.into_iter().fold(http::Request::builder().method(method).uri(uri), |request, (name, value)| {
                request.header(name, value)
            });
        let wrong = |error: http::Error| error.to_string();
        let answer = match body {
            Some(body) => self.agent.run(request.body(body).map_err(wrong)?),
            None => self.agent.run(request.body(()).map_err(wrong)?),
        };
        answer.map_err(|error| self.describe_error(uri, &error))
    }

    /// Error text for a failed [`read`] of an answer of this client: a sentence without a full stop.
    pub fn told_of_body(&self, uri: &Uri, error: BodyError) -> String {
        match error {
            BodyError::Lost(error) => self.describe_error(uri, &error),
            error => error.to_string(),
        }
    }

    fn describe_error(&self, uri: &Uri, error: &Error) -> String {
        match error {
            Error::Timeout(ureq::Timeout::Connect) => {
                format!("the connection timed out after {} s", self.limits.connect.as_secs_f64())
            }
            Error::Timeout(_) => format!("the response timed out after {} s", self.limits.whole.as_secs_f64()),
            Error::HostNotFound => format!("the host {:?} cannot be resolved", uri.host().unwrap_or("")),
            Error::ConnectionFailed => NOTHING_LISTENS.into(),
            Error::Other(why) => why.to_string(),
            Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => NOTHING_LISTENS.into(),
            error => refused(&error.to_string()),
        }
    }
}

/// Reason why a proxy's address cannot be used.
const NO_PROXY: &str = "the address of a proxy has http:// or https://, a host and a port";

/// No redirect, no proxy of the environment, no status that is an error.
fn config(limits: Limits, roots: RootCerts, proxy: Option<Proxy>, kept: usize) -> Config {
    Agent::config_builder()
        .timeout_connect(Some(limits.connect))
        .timeout_global(Some(limits.whole))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(proxy)
        .user_agent(concat!("watchglass/", env!("CARGO_PKG_VERSION")))
        .max_idle_connections(kept)
        .max_idle_age(limits.idle)
        .tls_config(TlsConfig::builder().root_certs(roots).build())
        .build()
}

/// The fault of a TLS connection, with the remedy; other errors are unchanged.
fn refused(said: &str) -> String {
    let has = |part: &str| said.to_ascii_lowercase().contains(part);
    if has("unknownissuer") || has("unknown issuer") || has("causedasendentity") {
        "its certificate is from an authority that this machine does not trust: add that authority's certificate to the \
         system's trusted ones, or start Watchglass with SSL_CERT_FILE naming a file with it"
            .into()
    } else if has("not valid for name") || has("notvalidforname") {
        "its certificate is for another name: write into its address the host name that the certificate has".into()
    } else if has("certificate expired") || has("certificate not valid yet") {
        format!("its certificate is not valid at this time: renew it, or set the clock that is wrong ({said})")
    } else if has("corrupt message") || has("invalidcontenttype") {
        "it does not speak TLS: write http:// instead of https:// into its address".into()
    } else {
        said.to_string()
    }
}

/// An address without its possibly secret parts: user, password, query and fragment.
pub fn bare(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or("");
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            format!("{scheme}://{}{path}", authority.rsplit('@').next().unwrap_or(""))
        }
        None => url.rsplit('@').next().unwrap_or("").to_string(),
    }
}

/// Whether an address is this machine's own.
pub fn is_local(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or("").trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_secrets() {
        for (url, shown) in [
            ("https://me:pw@a:1/m?token=pw#pw", "https://a:1/m"),
            ("http://a?token=pw/x", "http://a"),
            ("me:pw@a?x", "a"),
            ("", ""),
        ] {
            assert_eq!(bare(url), shown);
        }
    }

    #[test]
    fn this_machines_own_addresses_are_known() {
        for (url, local) in [
            ("http://localhost/", true),
            ("http://LOCALHOST:1/", true),
            ("http://[::1]:9/", true),
            ("http://127.3.2.1/", true),
            ("http://10.0.0.1/", false),
            ("http://localhost.example.org/", false),
        ] {
            assert_eq!(is_local(&url.parse().expect(url)), local, "{url}");
        }
    }
}

#[cfg(test)]
mod tls_tests;

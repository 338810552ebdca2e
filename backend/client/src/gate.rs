//! The check of addresses between name resolution and connection.

use parking_lot::Mutex;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::time::Duration as Span;
use ureq::unversioned::transport::{ConnectionDetails, Connector, NextTimeout, TcpConnector, Transport};

/// Maximum number of addresses of one name that are tried: the size of the library's list.
const MAX_ADDRESSES: usize = 16;

/// Resolves a name and returns the allowed addresses. Connections are made only to these, so nothing can change between
/// check and connection.
pub trait Gate: fmt::Debug + Send + Sync + 'static {
    /// The allowed addresses of a URI's host, in the order of attempts.
    ///
    /// # Errors
    /// The reason why there is none, a sentence without a full stop.
    fn addresses(&self, uri: &Uri, within: Duration) -> Result<Vec<SocketAddr>, String>;
}

/// A gate as a resolver of the library.
#[derive(Debug)]
pub(crate) struct Gated {
    pub gate: Arc<dyn Gate>,
    /// Time limit if the request has none.
    pub longest: Duration,
}

impl Resolver for Gated {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        // For a request through a proxy, only the proxy is resolved here; it is configured in the machine's own file.
        if config.proxy().is_some() {
            let found = DefaultResolver::default().resolve(uri, config, timeout);
            return found.map_err(|error| match error {
                Error::Timeout(_) => error,
                _ => Error::Other(Box::new(Refused("the name of the proxy cannot be resolved".into()))),
            });
        }
        let within = match timeout.after {
            Span::Exact(after) => after.min(self.longest),
            Span::NotHappening => self.longest,
        };
        let admitted = self.gate.addresses(uri, within).map_err(|why| Error::Other(Box::new(Refused(why))))?;
        let mut addresses = self.empty();
        admitted.into_iter().take(MAX_ADDRESSES).for_each(|address| addresses.push(address));
        if addresses.is_empty() { Err(Error::HostNotFound) } else { Ok(addresses) }
    }
}

/// Reason why a gate allows no address.
#[derive(Debug)]
struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// Connects to one address after the other, and records the successful one.
#[derive(Debug)]
pub(crate) struct Noted {
    pub tcp: TcpConnector,
    pub met: Arc<Mutex<Option<SocketAddr>>>,
}

impl<In: Transport> Connector<In> for Noted {
    type Out = <TcpConnector as Connector<In>>::Out;

    fn connect(&self, details: &ConnectionDetails, mut chained: Option<In>) -> Result<Option<Self::Out>, Error> {
        if chained.is_some() {
            return self.tcp.connect(details, chained);
        }
        let mut last = Error::ConnectionFailed;
        let started = std::time::Instant::now();
        for (i, address) in details.addrs.iter().enumerate() {
            let mut addrs = details.resolver.empty();
            addrs.push(*address);
            // Half of the remaining time for each address but the last one. An address that drops packets does not use
            // up the time of the others.
            let mut timeout = details.timeout;
            if let Span::Exact(whole) = timeout.after {
                let left = whole.saturating_sub(started.elapsed());
                timeout.after = Span::Exact(if i + 1 == details.addrs.len() { left } else { left / 2 });
            }
            let one = ConnectionDetails {
                uri: details.uri,
                addrs,
                config: details.config,
                request_level: details.request_level,
                resolver: details.resolver,
                now: (details.current_time)(),
                timeout,
                current_time: details.current_time.clone(),
                run_connector: details.run_connector.clone(),
                register_shutdown: details.register_shutdown.clone(),
            };
            match self.tcp.connect(&one, chained.take()) {
                Ok(made) => {
                    *self.met.lock() = Some(*address);
                    return Ok(made);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

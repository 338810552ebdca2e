//! The other server: one request, and what its answer means. `link.rs` tells when the connection to it was lost.

use super::link::Link;
use crate::clock::Clock;
use crate::config::RemoteWrite;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use ureq::http::{Response, Uri, header};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body, Error};

const CONNECT: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(30);
/// How long a connection is kept that nothing goes over: longer than between any two requests.
const IDLE: Duration = Duration::from_secs(180);
/// The longest that a server may make us wait.
const LONGEST: Duration = Duration::from_secs(300);
/// Characters of a server's own words that are repeated.
const WORDS: u64 = 300;
/// Bytes that are read of an answer that says no more than that it took the request.
const REST: u64 = 64 << 10;
/// Bytes of an answer to a query.
const ANSWER: u64 = 64 << 20;

/// Why a request was not taken; the sentences have no full stop, and no header stands in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The server will never take this one.
    Refused(String),
    /// It, or the way to it, is not well, or does not know us: later perhaps.
    Later {
        /// Why.
        reason: String,
        /// How long the server wants to be left alone.
        wait: Option<Duration>,
    },
}

/// The server that is written to, and read from.
pub struct Server {
    agent: Agent,
    /// Of its own, so that what is read back does not end the connection that is written over.
    reader: Agent,
    link: Link,
    settings: RemoteWrite,
    clock: Arc<dyn Clock>,
}

impl Server {
    /// Nothing is asked yet.
    pub fn new(settings: RemoteWrite, clock: Arc<dyn Clock>) -> Self {
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
        let config = Agent::config_builder()
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(WHOLE))
            .http_status_as_error(false)
            // Headers may hold secrets, and a body would become a GET: no redirect is followed.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .user_agent(concat!("watchglass/", env!("CARGO_PKG_VERSION")))
            .max_idle_connections(1)
            .max_idle_age(IDLE)
            .tls_config(tls)
            .build();
        let (agent, link) = Link::agent(config.clone());
        Server { agent, reader: config.new_agent(), link, settings, clock }
    }

    /// The address that is written to, without secrets.
    pub fn shown(&self) -> String {
        bare(&self.settings.url)
    }

    /// Whether there is one to read from.
    pub fn reads(&self) -> bool {
        self.settings.read_url.is_some()
    }

    /// Writes one packed request.
    ///
    /// # Errors
    /// [`Trouble`]: to be dropped, or to be sent again.
    pub fn write(&self, body: &[u8]) -> Result<(), Trouble> {
        let mut request = self
            .agent
            .post(&self.settings.url)
            .content_type("application/x-protobuf")
            .header("Content-Encoding", "snappy")
            .header("X-Prometheus-Remote-Write-Version", "0.1.0");
        for (name, value) in &self.settings.headers {
            request = request.header(name, value);
        }
        let sent = request.send(body);
        self.link.answered(sent.as_ref().ok());
        match sent {
            Ok(response) => self.taken(response),
            Err(error) => Err(Trouble::Later { reason: told(&error), wait: None }),
        }
    }

    /// How often the connection that is written over was lost: it broke, or it was gone when the next request came though
    /// it was to stay. What was sent over it last may be lost, too, though it was taken.
    pub fn losses(&self) -> u64 {
        self.link.losses()
    }

    fn taken(&self, response: Response<Body>) -> Result<(), Trouble> {
        let status = response.status();
        if status.is_success() {
            // What is read to its end leaves the connection for the next request.
            let read = std::io::copy(&mut response.into_body().into_reader().take(REST), &mut std::io::sink());
            if read.is_ok_and(|read| read == REST) {
                self.link.given_up();
            }
            return Ok(());
        }
        // Of a long explanation the rest is not read, which ends the connection from our side.
        self.link.given_up();
        let wait = response.headers().get(header::RETRY_AFTER).and_then(|v| v.to_str().ok());
        let wait = wait.and_then(|text| self.wait(text)).map(|wait| wait.min(LONGEST));
        let to = response.headers().get(header::LOCATION).and_then(|v| v.to_str().ok()).map(bare).unwrap_or_default();
        let reason = match status.as_u16() {
            300..=399 => {
                format!("it redirects ({status}) to {to:?}, which is not followed: write that address if you trust it")
            }
            401 => "it answered 401, it wants to know who writes: see `headers`".into(),
            403 => "it answered 403, what we send does not let us in: see `headers`".into(),
            404 => "it answered 404, there is no such path: see `url`".into(),
            code => match words(response) {
                words if words.is_empty() => format!("it answered {code}"),
                words => format!("it answered {code}: {words}"),
            },
        };
        Err(match status.as_u16() {
            // The last four say nothing of the samples: someone will mend the settings or the server.
            429 | 500..=599 | 300..=399 | 401 | 403 | 404 | 407 => Trouble::Later { reason, wait },
            _ => Trouble::Refused(reason),
        })
    }

    /// `Retry-After`: seconds, or a date.
    fn wait(&self, text: &str) -> Option<Duration> {
        if let Ok(seconds) = text.trim().parse() {
            return Some(Duration::from_secs(seconds));
        }
        let at = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(at.saturating_sub(Duration::from_millis(u64::try_from(self.clock.wall()).ok()?)))
    }

    /// Asks the server that is read from for a path with parameters; the text of its answer.
    ///
    /// # Errors
    /// Why there is none, a sentence without a full stop.
    pub fn read(&self, path: &str, parameters: &[(&str, String)]) -> Result<String, String> {
        let base = self.settings.read_url.as_deref().ok_or("no server to read from is named")?;
        let uri: Uri = format!("{}{path}", base.trim_end_matches('/')).parse().map_err(|_| "its address is none")?;
        let mut request = self.reader.get(uri);
        for (name, value) in &self.settings.headers {
            request = request.header(name, value);
        }
        let response = request.query_pairs(parameters.iter().map(|(k, v)| (*k, v))).call().map_err(|e| told(&e))?;
        let status = response.status().as_u16();
        if status != 200 {
            return Err(format!("it answered {status}: {}", words(response)));
        }
        let mut text = String::new();
        let read = response.into_body().into_reader().take(ANSWER + 1).read_to_string(&mut text);
        match read {
            Ok(n) if n as u64 > ANSWER => Err(format!("its answer is larger than {} MiB", ANSWER >> 20)),
            Ok(_) => Ok(text),
            Err(error) => Err(format!("its answer broke off: {error}")),
        }
    }
}

/// The begin of a server's own words, on one line.
fn words(response: Response<Body>) -> String {
    let mut bytes = Vec::new();
    // What came before an error is as good as it gets.
    let _ = response.into_body().into_reader().take(WORDS).read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().filter(|c| !c.is_control()).collect()
}

/// An address without what may be secret in it: user, password, query.
fn bare(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or("");
    let Some((scheme, rest)) = url.split_once("://") else { return url.into() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    format!("{scheme}://{}{path}", authority.rsplit('@').next().unwrap_or(""))
}

fn told(error: &Error) -> String {
    match error {
        Error::Timeout(ureq::Timeout::Connect) => format!("no connection within {} s", CONNECT.as_secs()),
        Error::Timeout(_) => format!("no whole answer within {} s", WHOLE.as_secs()),
        Error::HostNotFound => "there is no such host".into(),
        Error::ConnectionFailed => "nothing listens there".into(),
        Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => "nothing listens there".into(),
        error => error.to_string(),
    }
}

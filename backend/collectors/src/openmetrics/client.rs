//! Fetches a page over HTTP/1.1, with limits on time, size and where a redirect may lead.

use flate2::read::GzDecoder;
use std::fmt;
use std::io::Read;
use std::net::IpAddr;
use std::time::Duration;
use ureq::http::{Response, Uri, header};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body, Error};

/// What a page may cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Until a connection stands.
    pub connect: Duration,
    /// From the first name look-up to the last byte.
    pub whole: Duration,
    /// Bytes of a body as sent.
    pub body: u64,
    /// Bytes of a body after unpacking.
    pub unpacked: u64,
}

impl Limits {
    pub(super) const fn of(local: bool) -> Self {
        Limits {
            connect: Duration::from_millis(if local { 250 } else { 2_000 }),
            whole: Duration::from_secs(5),
            body: 8 << 20,
            unpacked: 32 << 20,
        }
    }
}

/// Why there is no page; a sentence without a full stop, in which no header stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure(pub String);

impl<T: Into<String>> From<T> for Failure {
    fn from(reason: T) -> Self {
        Failure(reason.into())
    }
}

/// A page as it was sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fetched {
    pub text: String,
    /// It is OpenMetrics, by its content type: it must end with `# EOF`.
    pub open: bool,
}

/// Asks one endpoint.
pub(super) struct Client {
    agent: Agent,
    uri: Uri,
    headers: Vec<(String, String)>,
    limits: Limits,
    /// What it is asked for.
    accept: &'static str,
}

// Either format is read; OpenMetrics says where a page ends.
const ACCEPT: &str =
    "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.8,text/plain;q=0.5,*/*;q=0.1";
/// For endpoints whose OpenMetrics is none.
const ACCEPT_TEXT: &str = "text/plain;version=0.0.4,text/plain;q=0.5,*/*;q=0.1";
const REDIRECTS: usize = 3;

/// Checks the address of an endpoint.
///
/// # Errors
/// What to write instead, the rest of a sentence.
pub(super) fn address(url: &str) -> Result<Uri, String> {
    let shown = bare(url);
    let wrong = |what: &str| format!("\"{shown}\" {what}; write it like http://127.0.0.1:9400/metrics");
    let uri: Uri = url.parse().map_err(|_| wrong("is not an address"))?;
    match (uri.scheme_str(), uri.authority()) {
        (Some("http" | "https"), Some(authority)) if !authority.as_str().contains('@') => Ok(uri),
        (Some("http" | "https"), Some(_)) => Err(wrong("has a user or password in it, which belong into a header")),
        _ => Err(wrong("does not begin with http:// or https:// and a host")),
    }
}

/// An address without what may be secret in it: user, password and query.
pub(super) fn bare(url: &str) -> String {
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
pub(super) fn is_local(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or("").trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

impl Client {
    pub(super) fn new(uri: Uri, headers: Vec<(String, String)>, limits: Limits) -> Self {
        Client::trusting(uri, headers, limits, RootCerts::PlatformVerifier)
    }

    fn trusting(uri: Uri, headers: Vec<(String, String)>, limits: Limits, roots: RootCerts) -> Self {
        let tls = TlsConfig::builder().root_certs(roots).build();
        let config = Agent::config_builder()
            .timeout_connect(Some(limits.connect))
            .timeout_global(Some(limits.whole))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            // An endpoint is named by its own address; a proxy in the environment is meant for something else.
            .proxy(None)
            .user_agent(concat!("watchglass/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("gzip")
            .max_idle_connections(1)
            .tls_config(tls)
            .build();
        Client { agent: config.new_agent(), uri, headers, limits, accept: ACCEPT }
    }

    /// From now on it is asked for the text format, and for OpenMetrics no more.
    pub(super) fn ask_for_text(&mut self) {
        self.accept = ACCEPT_TEXT;
    }

    /// Fetches the page once.
    pub(super) fn fetch(&self) -> Result<Fetched, Failure> {
        let mut uri = self.uri.clone();
        for _ in 0..=REDIRECTS {
            let response = self.ask(&uri)?;
            if !response.status().is_redirection() {
                return self.page(response);
            }
            uri = redirected(&self.uri, &uri, &response)?;
        }
        Err(format!("it redirects more than {REDIRECTS} times").into())
    }

    fn ask(&self, uri: &Uri) -> Result<Response<Body>, Failure> {
        let mut request = self.agent.get(uri);
        if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(header::ACCEPT.as_str())) {
            request = request.header(header::ACCEPT, self.accept);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.call().map_err(|error| self.told(&error))
    }

    fn page(&self, response: Response<Body>) -> Result<Fetched, Failure> {
        let status = response.status().as_u16();
        match status {
            200 => {}
            401 => {
                return Err(
                    "it answered 401, it wants to know who asks: give the endpoint `headers` with an Authorization"
                        .into(),
                );
            }
            403 => return Err("it answered 403, what we send does not let us in: see the endpoint's `headers`".into()),
            404 => return Err("it answered 404, there is no such page: see the path in `url`".into()),
            other => return Err(format!("it answered {other} instead of a page").into()),
        }
        let word = |name: header::HeaderName| {
            let value = response.headers().get(name).and_then(|v| v.to_str().ok()).unwrap_or("");
            value.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
        };
        let (kind, encoding) = (word(header::CONTENT_TYPE), word(header::CONTENT_ENCODING));
        if kind == "text/html" || kind == "application/xhtml+xml" {
            return Err(
                "it answered with a page for people (text/html), not with metrics: is there a login in front of it?"
                    .into(),
            );
        }
        // One that says how long it is need not be read to be refused.
        if response.body().content_length().is_some_and(|length| length > self.limits.body) {
            return Err(self.too_large());
        }
        let body = Capped { inner: response.into_body().into_reader(), left: self.limits.body };
        let mut bytes = Vec::new();
        let most = self.limits.unpacked;
        let read = match encoding.as_str() {
            "" | "identity" => body.take(most + 1).read_to_end(&mut bytes),
            "gzip" | "x-gzip" => GzDecoder::new(body).take(most + 1).read_to_end(&mut bytes),
            other => return Err(format!("it is packed with {other:?}, and only gzip was asked for").into()),
        };
        read.map_err(|error| self.broken(error))?;
        if bytes.len() as u64 > most {
            return Err(format!("unpacked it is larger than {} MiB", most >> 20).into());
        }
        let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text")?;
        Ok(Fetched { open: kind == "application/openmetrics-text", text })
    }

    fn too_large(&self) -> Failure {
        format!("it is larger than {} MiB: give the endpoint fewer series to print", self.limits.body >> 20).into()
    }

    fn broken(&self, error: std::io::Error) -> Failure {
        if error.get_ref().is_some_and(|inner| inner.is::<TooLarge>()) {
            return self.too_large();
        }
        match Error::from(error) {
            Error::Io(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                "the page broke off before its end".into()
            }
            Error::Io(error) => format!("the page could not be read to its end: {error}").into(),
            other => self.told(&other),
        }
    }

    fn told(&self, error: &Error) -> Failure {
        match error {
            Error::Timeout(ureq::Timeout::Connect) => {
                format!("no connection within {} ms", self.limits.connect.as_millis()).into()
            }
            Error::Timeout(_) => format!("no whole answer within {} s", self.limits.whole.as_secs_f64()).into(),
            Error::HostNotFound => format!("there is no host {:?}", self.uri.host().unwrap_or("")).into(),
            Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                "nothing listens there: is the exporter running?".into()
            }
            Error::ConnectionFailed => "nothing listens there: is the exporter running?".into(),
            error => refused(&error.to_string()).into(),
        }
    }
}

/// What is wrong with a TLS connection and what to do about it; anything else as it was said.
fn refused(said: &str) -> String {
    let has = |part: &str| said.to_ascii_lowercase().contains(part);
    if has("unknownissuer") || has("unknown issuer") || has("causedasendentity") {
        "its certificate is from an authority that this machine does not trust: add that authority's certificate to the \
         system's trusted ones, or start Watchglass with SSL_CERT_FILE naming a file with it"
            .into()
    } else if has("not valid for name") || has("notvalidforname") {
        "its certificate is for another name: write into `url` the host name that the certificate has".into()
    } else if has("certificate expired") || has("certificate not valid yet") {
        format!("its certificate is not valid at this time: renew it, or set the clock that is wrong ({said})")
    } else if has("corrupt message") || has("invalidcontenttype") {
        "it does not speak TLS: write http:// instead of https:// into `url`".into()
    } else {
        said.to_string()
    }
}

/// Where a redirect leads, as long as it is on the same server.
fn redirected(first: &Uri, from: &Uri, response: &Response<Body>) -> Result<Uri, Failure> {
    let status = response.status().as_u16();
    let to = response.headers().get(header::LOCATION).and_then(|v| v.to_str().ok()).unwrap_or("");
    let (Some(scheme), Some(authority)) = (from.scheme_str(), from.authority()) else {
        return Err(format!("it answered {status}").into());
    };
    let whole =
        if to.starts_with('/') && !to.starts_with("//") { format!("{scheme}://{authority}{to}") } else { to.into() };
    let same = |uri: &Uri| uri.scheme() == first.scheme() && uri.authority() == first.authority();
    match whole.parse::<Uri>() {
        Ok(uri) if same(&uri) => Ok(uri),
        _ => Err(format!(
            "it redirects ({status}) to {:?}, another server, which is not followed: write that address into `url` if you trust it",
            bare(&whole).chars().take(200).collect::<String>()
        )
        .into()),
    }
}

/// Ends with an error, not silently, when more than `left` bytes come.
struct Capped<R> {
    inner: R,
    left: u64,
}

#[derive(Debug)]
struct TooLarge;

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too large")
    }
}

impl std::error::Error for TooLarge {}

impl<R: Read> Read for Capped<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(into)?;
        self.left = self.left.checked_sub(n as u64).ok_or_else(|| std::io::Error::other(TooLarge))?;
        Ok(n)
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
pub(super) mod tests;

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tls_tests;

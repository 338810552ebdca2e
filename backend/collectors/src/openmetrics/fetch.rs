//! Fetches a page of an endpoint: request headers, allowed redirects, and errors.

use client::http::{Response, Uri, header};
use client::{Body, BodyError, Client, MaxBytes, NOTHING_LISTENS, bare};
use std::time::Duration;

/// Limits of a fetch.
#[derive(Clone, Copy, Debug)]
pub(super) struct FetchLimits {
    pub time: client::Limits,
    pub bytes: MaxBytes,
}

impl FetchLimits {
    /// Limits for an endpoint on this machine (`local`), or on another.
    pub(super) const fn for_endpoint(local: bool) -> Self {
        let connect = Duration::from_millis(if local { 250 } else { 2_000 });
        let time = client::Limits { connect, whole: Duration::from_secs(5), idle: Duration::from_secs(15) };
        FetchLimits { time, bytes: MaxBytes { sent: 8 << 20, unpacked: 32 << 20 } }
    }
}

/// Reason why there is no page; a sentence without a full stop and without any header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FetchError(pub String);

impl<T: Into<String>> From<T> for FetchError {
    fn from(reason: T) -> Self {
        FetchError(reason.into())
    }
}

/// A page as it was sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fetched {
    pub text: String,
    /// Whether it is OpenMetrics, by its content type. Then it must end with `# EOF`.
    pub open: bool,
}

/// Fetches pages of one endpoint.
pub(super) struct Fetcher {
    client: Client,
    uri: Uri,
    headers: Vec<(String, String)>,
    bytes: MaxBytes,
    /// Value of the Accept header.
    accept: &'static str,
}

// Both formats are parsed. OpenMetrics is preferred because it marks the end of a page.
const ACCEPT: &str =
    "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.8,text/plain;q=0.5,*/*;q=0.1";
/// For endpoints whose OpenMetrics is invalid.
const ACCEPT_TEXT: &str = "text/plain;version=0.0.4,text/plain;q=0.5,*/*;q=0.1";
const MAX_REDIRECTS: usize = 3;

/// Checks the address of an endpoint.
///
/// # Errors
/// A correction, as the rest of a sentence.
pub(super) fn address(url: &str) -> Result<Uri, String> {
    let shown = bare(url);
    let wrong = |what: &str| format!("\"{shown}\" {what}; write it like http://127.0.0.1:9400/metrics");
    let uri: Uri = url.parse().map_err(|_| wrong("is not an address"))?;
    match (uri.scheme_str(), uri.authority()) {
        (Some("http" | "https"), Some(authority)) if !authority.as_str().contains('@') => Ok(uri),
        (Some("http" | "https"), Some(_)) => Err(wrong("contains a user or password, which belong into a header")),
        _ => Err(wrong("does not begin with http:// or https:// and a host")),
    }
}

impl Fetcher {
    pub(super) fn new(uri: Uri, headers: Vec<(String, String)>, limits: FetchLimits) -> Self {
        Fetcher { client: Client::new(limits.time), uri, headers, bytes: limits.bytes, accept: ACCEPT }
    }

    /// Requests only the text format from now on, no more OpenMetrics.
    pub(super) fn ask_for_text(&mut self) {
        self.accept = ACCEPT_TEXT;
    }

    /// Fetches the page once.
    pub(super) fn fetch(&self) -> Result<Fetched, FetchError> {
        let mut uri = self.uri.clone();
        for _ in 0..=MAX_REDIRECTS {
            let response = self.ask(&uri)?;
            if !response.status().is_redirection() {
                return self.page(response);
            }
            uri = redirected(&self.uri, &uri, &response)?;
        }
        Err(format!("it redirects more than {MAX_REDIRECTS} times").into())
    }

    fn ask(&self, uri: &Uri) -> Result<Response<Body>, FetchError> {
        // A header of the user replaces ours.
        let own = [(header::ACCEPT.as_str(), self.accept), (header::ACCEPT_ENCODING.as_str(), "gzip")];
        let written = |name: &str| self.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let own = own.into_iter().filter(|(name, _)| !written(name));
        let headers = own.chain(self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        self.client.get(uri, &[], headers).map_err(|said| match said == NOTHING_LISTENS {
            true => format!("{said}: check that the exporter runs").into(),
            false => said.into(),
        })
    }

    fn page(&self, response: Response<Body>) -> Result<Fetched, FetchError> {
        let status = response.status().as_u16();
        match status {
            200 => {}
            401 => {
                return Err("it returned 401, authentication required: add an Authorization header to the endpoint's \
                    `headers`"
                    .into());
            }
            403 => return Err("it returned 403, access denied: check the endpoint's `headers`".into()),
            404 => return Err("it returned 404, not found: check the path in `url`".into()),
            other => return Err(format!("it returned {other} instead of metrics").into()),
        }
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
        let kind = kind.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
        if kind == "text/html" || kind == "application/xhtml+xml" {
            return Err(
                "it returned a web page (text/html) instead of metrics: check for a login in front of it".into()
            );
        }
        let bytes = client::read(response, self.bytes).map_err(|error| match error {
            BodyError::TooLarge(_) => format!("{error}: reduce the number of series of the endpoint"),
            error => self.client.told_of_body(&self.uri, error),
        })?;
        let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text")?;
        Ok(Fetched { open: kind == "application/openmetrics-text", text })
    }
}

/// Target of a redirect, which must be on the same server.
fn redirected(first: &Uri, from: &Uri, response: &Response<Body>) -> Result<Uri, FetchError> {
    let status = response.status().as_u16();
    let to = response.headers().get(header::LOCATION).and_then(|v| v.to_str().ok()).unwrap_or("");
    let (Some(scheme), Some(authority)) = (from.scheme_str(), from.authority()) else {
        return Err(format!("it returned {status}").into());
    };
    let whole =
        if to.starts_with('/') && !to.starts_with("//") { format!("{scheme}://{authority}{to}") } else { to.into() };
    let same = |uri: &Uri| uri.scheme() == first.scheme() && uri.authority() == first.authority();
    match whole.parse::<Uri>() {
        Ok(uri) if same(&uri) => Ok(uri),
        _ => Err(format!(
            "it redirects ({status}) to another server, {:?}, which is not followed: write that address into `url` \
            if you trust it",
            bare(&whole).chars().take(200).collect::<String>()
        )
        .into()),
    }
}

#[cfg(test)]
#[path = "fetch_tests.rs"]
pub(super) mod tests;

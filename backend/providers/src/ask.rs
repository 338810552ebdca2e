//! Requests to a provider: over our only HTTP client, with limits on time and size.

use super::Failure;
use client::http::Uri;
use client::{Client, Limits, MaxBytes};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::OnceLock;
use std::time::Duration;
use url::form_urlencoded::Serializer;

const LIMITS: Limits =
    Limits { connect: Duration::from_secs(5), whole: Duration::from_secs(10), idle: Duration::from_secs(60) };
/// Maximum size of an answer: keys of large providers have some 10 kB, a token with many groups some 100 kB.
const MAX_ANSWER: MaxBytes = MaxBytes { sent: 512 << 10, unpacked: 512 << 10 };
/// Maximum letters of a provider's own words in a log.
const MAX_WORDS: usize = 200;

/// Sends requests to one provider.
pub(super) struct ProviderRequests(OnceLock<Client>);

impl ProviderRequests {
    pub(super) fn new() -> Self {
        ProviderRequests(OnceLock::new())
    }

    /// The JSON answer to a GET, if its status is 200.
    pub(super) fn get<T: DeserializeOwned>(&self, url: &str, headers: &[(&str, &str)]) -> Result<T, Failure> {
        self.answer("GET", url, headers, None)
    }

    /// Likewise for a POST of a form.
    pub(super) fn post<T: DeserializeOwned>(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        form: &[(&str, &str)],
    ) -> Result<T, Failure> {
        let body = Serializer::new(String::new()).extend_pairs(form).finish();
        let typed = [headers, &[("content-type", "application/x-www-form-urlencoded")]].concat();
        self.answer("POST", url, &typed, Some(body.as_bytes()))
    }

    fn answer<T: DeserializeOwned>(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Result<T, Failure> {
        let at = client::bare(url);
        let away = |why: String| Failure::away(format!("{at}: {why}"));
        let uri: Uri = url.parse().map_err(|_| away("this is not an address".into()))?;
        // Data sent to and received from a provider is secret.
        if uri.scheme_str() != Some("https") && !client::is_local(&uri) {
            return Err(away("it is not an https:// address".into()));
        }
        let client = self.0.get_or_init(|| Client::new(LIMITS));
        let headers = headers.iter().copied().chain([("accept", "application/json")]);
        let answer = client.send(method, &uri, headers, body).map_err(away)?;
        let status = answer.status().as_u16();
        let bytes = client::read(answer, MAX_ANSWER).map_err(|error| away(client.told_of_body(&uri, error)))?;
        match status {
            200 => serde_json::from_slice(&bytes).map_err(|error| {
                away(format!("the response cannot be parsed at line {}, column {}", error.line(), error.column()))
            }),
            _ => Err(away(format!("it returned {status}{}", words(&bytes)))),
        }
    }
}

/// A provider's error text, shortened: only the fields defined by OAuth.
fn words(body: &[u8]) -> String {
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return String::new() };
    let said = ["error", "error_description"].into_iter().filter_map(|name| value.get(name)?.as_str());
    let said: Vec<&str> = said.collect();
    let plain: String = said.join(", ").chars().filter(|letter| !letter.is_control()).take(MAX_WORDS).collect();
    if plain.is_empty() { plain } else { format!(": {plain}") }
}

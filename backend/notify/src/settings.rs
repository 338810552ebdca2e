//! The validated settings of one channel.

use client::http::Uri;
use lettre::message::Mailbox;
use shared::secret::Secret;

/// One validated channel. It contains every secret, so it is never shown and never serialized.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(crate) name: String,
    /// Its kind, as in the table of sinks.
    pub(crate) kind: &'static str,
    /// The part of its target that may be shown.
    pub(crate) target: String,
    pub(crate) addresses: Vec<Address>,
    pub(crate) to: Vec<Mailbox>,
    pub(crate) topic: String,
    pub(crate) secret: Option<Secret>,
    /// Signing keys, newest first.
    pub(crate) keys: Vec<Key>,
    pub(crate) cloud_events: bool,
}

/// An address in the form for requests.
#[derive(Clone)]
pub(crate) struct Address(pub Uri);

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// A signing key.
#[derive(Clone)]
pub(crate) struct Key(pub Vec<u8>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl Address {
    /// The scheme, the host and the port, without any part that may be secret.
    pub(crate) fn place(&self) -> (String, String, u16) {
        let scheme = self.0.scheme_str().unwrap_or("").to_string();
        let port = self.0.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
        (scheme, self.0.host().unwrap_or("").to_ascii_lowercase(), port)
    }

    /// The same host with another path.
    pub(crate) fn at(&self, path: &str) -> Uri {
        let mut parts = self.0.clone().into_parts();
        let base = self.0.path().trim_end_matches('/');
        parts.path_and_query = format!("{base}{path}").parse().ok();
        Uri::from_parts(parts).unwrap_or_else(|_| self.0.clone())
    }
}

impl Settings {
    /// The kind, as in [`crate::SINKS`].
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// The channel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The part of its target that may be shown: `…h4Fz` of a secret, hosts and e-mail addresses as they are.
    pub fn target(&self) -> String {
        self.target.clone()
    }
}

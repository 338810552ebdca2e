//! The kinds of channels: one file and one row each.

mod alertmanager;
mod discord;
mod email;
mod mattermost;
mod ntfy;
mod pagerduty;
mod slack;
mod teams;
mod telegram;
mod webhook;

use crate::settings::Settings;
use client::http::Uri;
use lettre::message::Mailbox;
use serde_json::Value;
use shared::alert::Notice;
use shared::secret::Secret;

/// A field of [`shared::alert::ChannelInput`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `address`.
    Address,
    /// `addresses`.
    Addresses,
    /// `to`.
    To,
    /// `topic`.
    Topic,
    /// `secret`.
    Secret,
    /// `old_secret`.
    OldSecret,
    /// `format`.
    Format,
}

impl Field {
    /// Its name in the API and in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Field::Address => "address",
            Field::Addresses => "addresses",
            Field::To => "to",
            Field::Topic => "topic",
            Field::Secret => "secret",
            Field::OldSecret => "old_secret",
            Field::Format => "format",
        }
    }
}

/// A kind of channel.
pub struct Sink {
    /// Its name.
    pub kind: &'static str,
    /// One line: the place of its settings in the service.
    pub help: &'static str,
    /// Required fields.
    pub needs: &'static [Field],
    /// Optional fields.
    pub takes: &'static [Field],
    /// The field shown as its target.
    pub(crate) shows: Field,
    /// The default address.
    pub(crate) address: Option<&'static str>,
    /// Whether its secret is a signing key.
    pub(crate) signs: bool,
    /// Further validation of its settings.
    pub(crate) check: fn(&Settings) -> Result<(), String>,
    /// The requests for a notice at this time, seconds since the Unix epoch. A pure function.
    pub(crate) body: fn(&Notice, &Settings, i64) -> Vec<Request>,
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind)
    }
}

/// All kinds, in their order of display.
pub const SINKS: &[Sink] = &[
    slack::SINK,
    mattermost::SINK,
    discord::SINK,
    teams::SINK,
    email::SINK,
    webhook::SINK,
    ntfy::SINK,
    telegram::SINK,
    pagerduty::SINK,
    alertmanager::SINK,
];

/// The row of a kind.
///
/// # Errors
/// There is no such kind; the sentence lists the existing ones.
pub(crate) fn find(kind: &str) -> Result<&'static Sink, String> {
    SINKS.iter().find(|sink| sink.kind == kind).ok_or_else(|| {
        let known: Vec<&str> = SINKS.iter().map(|sink| sink.kind).collect();
        format!("unknown kind of channel: kinds are {}", known.join(", "))
    })
}

/// The requests for a notice to a channel at this time, seconds since the Unix epoch.
pub(crate) fn requests(settings: &Settings, notice: &Notice, now: i64) -> Vec<Request> {
    find(settings.kind).map(|sink| (sink.body)(notice, settings, now)).unwrap_or_default()
}

/// A request to a service.
#[derive(Clone, Debug)]
pub enum Request {
    /// A request over HTTP, by POST.
    Post(Post),
    /// A message by e-mail.
    Mail(Mail),
}

/// A request over HTTP.
#[derive(Clone)]
pub struct Post {
    pub(crate) uri: Uri,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

impl std::fmt::Debug for Post {
    // The address and the headers may contain secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "POST of {} bytes", self.body.len())
    }
}

/// A message by e-mail, without the parts from the server's settings.
#[derive(Clone, Debug)]
pub struct Mail {
    pub(crate) to: Vec<Mailbox>,
    pub(crate) subject: String,
    pub(crate) text: String,
    /// The part before the `@` of its `Message-ID`.
    pub(crate) id: String,
    /// The same part of the id that all messages of its group refer to.
    pub(crate) thread: String,
    /// Whether it follows another message of its group.
    pub(crate) follows: bool,
    pub(crate) at: i64,
}

/// A request with a body of compact JSON.
fn post(uri: Uri, body: &Value) -> Post {
    Post { uri, headers: vec![("content-type", "application/json".into())], body: body.to_string().into_bytes() }
}

/// One request to the channel's first address.
fn one(settings: &Settings, body: &Value) -> Vec<Request> {
    settings.addresses.first().map(|address| Request::Post(post(address.0.clone(), body))).into_iter().collect()
}

/// No further validation.
fn any(_: &Settings) -> Result<(), String> {
    Ok(())
}

/// Validates a token for a header.
fn visible(settings: &Settings) -> Result<(), String> {
    let secret = settings.secret.as_ref().map_or("", Secret::reveal);
    let fits = secret.len() <= 1_000 && secret.bytes().all(|byte| byte.is_ascii_graphic());
    if fits { Ok(()) } else { Err("a token has visible ASCII letters only, at most 1,000".into()) }
}

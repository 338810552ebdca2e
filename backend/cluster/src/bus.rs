//! Messages between hubs, over core NATS. NATS stores nothing; the receiver detects a lost message.
//!
//! Sending never blocks: without a connection, or with a full queue, a message is dropped and counted. The client
//! reconnects for ever, from the start on.

use crate::settings::ClusterSettings;
use async_nats::connection::State;
use async_nats::{ConnectOptions, Event, Request, RequestErrorKind, Subject};
use futures_util::{FutureExt, StreamExt};
use shared::secret::Secret;
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// Outgoing messages that wait for the connection, over all subjects.
const MAX_WAITING: usize = 4_096;
/// Incoming messages of one subscription that wait to be read.
const UNREAD: usize = 1_024;
/// Maximum time to connect to a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of pings. A server that leaves three unanswered is disconnected.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum pause between two attempts to connect.
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// Maximum time of a subscribe call.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of a token or credentials file, bytes.
const MAX_FILE_BYTES: u64 = 16 << 10;

/// Maximum size of a message, bytes: below NATS's default limit of 1 MiB.
pub const MAX_BUS_MESSAGE: usize = 1_000_000;

/// Counters since the start.
#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    sent_bytes: AtomicU64,
    dropped: AtomicU64,
    heard: AtomicU64,
    heard_bytes: AtomicU64,
    unread: AtomicU64,
    connects: AtomicU64,
}

/// Counters since the start, for `/metrics`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusCounts {
    /// Whether it is connected now.
    pub connected: bool,
    /// Connections made.
    pub connects: u64,
    /// Messages sent.
    pub sent: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Messages that could not be sent, and were dropped.
    pub dropped: u64,
    /// Messages received.
    pub heard: u64,
    /// Bytes received.
    pub heard_bytes: u64,
    /// Times the receive queue was full, so that messages were dropped.
    pub unread: u64,
}

/// Reason why a request has no answer. Its text is a sentence without a full stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusError {
    /// NATS is not connected.
    Away,
    /// The subject has no subscriber.
    Nobody,
    /// No answer came in time.
    Late,
    /// The message exceeds [`MAX_BUS_MESSAGE`].
    TooLong,
}

impl fmt::Display for BusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BusError::Away => "NATS, which connects the hubs of this cluster, is unreachable",
            BusError::Nobody => "the other hub is unreachable",
            BusError::Late => "the request to the other hub timed out",
            BusError::TooLong => "the message is larger than the limit between hubs",
        })
    }
}

impl std::error::Error for BusError {}

/// Client for messages to the other hubs. Cheap to clone.
#[derive(Clone)]
pub struct Bus {
    client: async_nats::Client,
    prefix: Arc<str>,
    counts: Arc<Counts>,
    up: watch::Receiver<bool>,
}

/// A received message.
#[derive(Clone, Debug)]
pub struct BusMessage {
    /// Its subject, without the prefix of the cluster.
    pub subject: String,
    message: async_nats::Message,
}

impl BusMessage {
    /// The payload.
    pub fn bytes(&self) -> &[u8] {
        &self.message.payload
    }
}

/// A subscription to a subject. It ends when this is dropped.
pub struct BusSubscription {
    inner: async_nats::Subscriber,
    prefix: Arc<str>,
    counts: Arc<Counts>,
}

impl BusSubscription {
    /// The next message; None once the bus has ended. Cancel safe.
    pub async fn next(&mut self) -> Option<BusMessage> {
        let message = self.inner.next().await?;
        self.counts.heard.fetch_add(1, Relaxed);
        self.counts.heard_bytes.fetch_add(message.payload.len() as u64, Relaxed);
        let subject = message.subject.strip_prefix(&*self.prefix).unwrap_or(&message.subject).to_string();
        Some(BusMessage { subject, message })
    }
}

fn read(path: &Path) -> Result<Secret, String> {
    let mut text = String::new();
    let read = system::file::open(path).and_then(|file| file.take(MAX_FILE_BYTES).read_to_string(&mut text));
    read.map_err(|error| format!("[cluster]: {} cannot be read: {error}", path.display()))?;
    Ok(Secret::new(text.trim()))
}

/// The server addresses of a configuration.
pub(super) fn servers(settings: &ClusterSettings) -> Vec<&str> {
    settings.nats.as_deref().unwrap_or_default().split(',').collect()
}

/// Connection options, with authentication and TLS.
///
/// # Errors
/// A file of the configuration cannot be read or used: a sentence.
pub(super) fn options(settings: &ClusterSettings, called: &str) -> Result<ConnectOptions, String> {
    let mut options = ConnectOptions::new()
        .name(called)
        .connection_timeout(CONNECT_TIMEOUT)
        .ping_interval(PING_INTERVAL)
        .client_capacity(MAX_WAITING)
        .subscription_capacity(UNREAD);
    if let Some(path) = &settings.credentials_file {
        let credentials = read(path)?;
        let wrong = || format!("[cluster]: {} has no credentials of a NATS user", path.display());
        options = options.credentials(credentials.reveal()).map_err(|_| wrong())?;
    }
    if let Some(path) = &settings.token_file {
        options = options.token(read(path)?.reveal().to_string());
    }
    if let Some(path) = &settings.ca {
        read(path)?;
        options = options.add_root_certificates(path.clone()).require_tls(true);
    }
    Ok(options)
}

/// Prefix of all subjects of a cluster.
pub(super) fn prefix(settings: &ClusterSettings) -> String {
    format!("wg.{}.", settings.name)
}

impl Bus {
    /// Starts to connect, and retries for ever. An unreachable server is no error.
    ///
    /// # Errors
    /// A file of the configuration cannot be read or used: a sentence.
    pub async fn connect(settings: &ClusterSettings, called: &str) -> Result<Bus, String> {
        let (tell, up) = watch::channel(false);
        let counts = Arc::new(Counts::default());
        let seen = counts.clone();
        let event = move |event: Event| {
            match &event {
                Event::Connected => {
                    seen.connects.fetch_add(1, Relaxed);
                    tell.send_replace(true);
                    tracing::info!("connected to NATS");
                }
                Event::Disconnected | Event::Closed => {
                    if tell.send_replace(false) {
                        tracing::warn!("{}. It is tried again", BusError::Away);
                    }
                }
                Event::SlowConsumer(_) => drop(seen.unread.fetch_add(1, Relaxed)),
                other => tracing::debug!("NATS: {other}"),
            }
            std::future::ready(())
        };
        let options = options(settings, called)?
            .no_echo()
            .retry_on_initial_connect()
            .max_reconnects(None)
            .reconnect_delay_callback(|attempts| {
                let pause = Duration::from_millis(100 << attempts.min(5));
                pause.min(MAX_PAUSE)
            })
            .event_callback(event);
        let wrong = |error: async_nats::ConnectError| format!("[cluster]: {error}");
        let client = options.connect(servers(settings)).await.map_err(wrong)?;
        Ok(Bus { client, prefix: prefix(settings).into(), counts, up })
    }

    /// Whether it is connected.
    pub fn is_up(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Connection state, and each change of it.
    pub fn up(&self) -> watch::Receiver<bool> {
        self.up.clone()
    }

    fn count_sent(&self, sent: bool, bytes: usize) -> bool {
        if sent {
            self.counts.sent.fetch_add(1, Relaxed);
            self.counts.sent_bytes.fetch_add(bytes as u64, Relaxed);
        } else {
            self.counts.dropped.fetch_add(1, Relaxed);
        }
        sent
    }

    /// Publishes a message on a subject of the cluster; true if it was sent. Never waits.
    pub fn publish(&self, subject: &str, payload: Vec<u8>) -> bool {
        self.put(format!("{}{subject}", self.prefix).into(), payload)
    }

    /// Replies to a request; true if the reply was sent. Never waits.
    pub fn answer(&self, message: &BusMessage, payload: Vec<u8>) -> bool {
        message.message.reply.clone().is_some_and(|reply| self.put(reply, payload))
    }

    fn put(&self, subject: Subject, payload: Vec<u8>) -> bool {
        let bytes = payload.len();
        // A message that waits for the connection would arrive much too late.
        let sent = self.is_up() && bytes <= MAX_BUS_MESSAGE && {
            // This waits only if the client's queue is full.
            let put = tokio::task::unconstrained(self.client.publish(subject, payload.into()));
            matches!(put.now_or_never(), Some(Ok(())))
        };
        self.count_sent(sent, bytes)
    }

    /// Subscribes to a subject of the cluster, in which `*` stands for one word, until the returned value is dropped.
    /// The subscription survives a reconnect.
    ///
    /// # Errors
    /// [`BusError::Away`]: the queue to the server is full.
    pub async fn subscribe(&self, subject: &str) -> Result<BusSubscription, BusError> {
        let subscribed = self.client.subscribe(format!("{}{subject}", self.prefix));
        let inner = timeout(SUBSCRIBE_TIMEOUT, subscribed).await.ok().and_then(Result::ok).ok_or(BusError::Away)?;
        Ok(BusSubscription { inner, prefix: self.prefix.clone(), counts: self.counts.clone() })
    }

    /// Sends a request on a subject of the cluster, and waits at most `wait` for the answer.
    ///
    /// # Errors
    /// [`BusError`]; at once when it is known that no answer can come.
    pub async fn request(&self, subject: &str, payload: Vec<u8>, wait: Duration) -> Result<Vec<u8>, BusError> {
        let bytes = payload.len();
        if bytes > MAX_BUS_MESSAGE {
            return Err(BusError::TooLong);
        }
        if !self.count_sent(self.is_up(), bytes) {
            return Err(BusError::Away);
        }
        let request = Request::new().payload(payload.into()).timeout(Some(wait));
        let asked = self.client.send_request(format!("{}{subject}", self.prefix), request);
        match timeout(wait, asked).await {
            Ok(Ok(answer)) => {
                self.counts.heard.fetch_add(1, Relaxed);
                self.counts.heard_bytes.fetch_add(answer.payload.len() as u64, Relaxed);
                Ok(answer.payload.into())
            }
            Ok(Err(error)) => Err(match error.kind() {
                RequestErrorKind::NoResponders => BusError::Nobody,
                RequestErrorKind::TimedOut => BusError::Late,
                _ => BusError::Away,
            }),
            Err(_) => Err(BusError::Late),
        }
    }

    /// The current counters.
    pub fn counts(&self) -> BusCounts {
        let load = |count: &AtomicU64| count.load(Relaxed);
        let Counts { sent, sent_bytes, dropped, heard, heard_bytes, unread, connects } = &*self.counts;
        BusCounts {
            connected: self.is_up(),
            connects: load(connects),
            sent: load(sent),
            sent_bytes: load(sent_bytes),
            dropped: load(dropped),
            heard: load(heard),
            heard_bytes: load(heard_bytes),
            unread: load(unread),
        }
    }
}

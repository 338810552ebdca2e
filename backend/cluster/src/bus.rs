//! What hubs say to one another, over core NATS: nothing is kept there, and what is lost is noticed by whoever waits for it.
//!
//! Nobody waits to say something: without a connection, or with too much under way, it is dropped and counted. The connection
//! is tried for ever, from the start on.

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

/// Messages to others that wait for the connection, of all of a hub together.
const WAITING: usize = 4_096;
/// Messages of one subject that wait to be read.
const UNREAD: usize = 1_024;
/// How long a server may take for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A server that says nothing is asked so often, and given up after the third time.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// The longest pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// How long it may take to say what we want to hear.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest file of a token or of credentials, bytes.
const MAX_FILE_BYTES: u64 = 16 << 10;

/// Bytes of the largest message: below the bound of a server that is set up as it comes, 1 MiB.
pub const MAX_BUS_MESSAGE: usize = 1_000_000;

/// What went over the bus since the start.
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

/// What went over the bus since the start, for `/metrics`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusCounts {
    /// Whether it is connected now.
    pub connected: bool,
    /// Times it was connected.
    pub connects: u64,
    /// Messages sent.
    pub sent: u64,
    /// Bytes of them.
    pub sent_bytes: u64,
    /// Messages that could not be sent, and were dropped.
    pub dropped: u64,
    /// Messages heard.
    pub heard: u64,
    /// Bytes of them.
    pub heard_bytes: u64,
    /// Times messages came faster than they were read, and some were dropped.
    pub unread: u64,
}

/// Why there is no answer. Its text is a sentence without a full stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusError {
    /// NATS is away.
    Away,
    /// Nobody there listens.
    Nobody,
    /// No answer came in time.
    Late,
    /// It is longer than a message may be.
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

/// The way to the other hubs. Cheap to clone.
#[derive(Clone)]
pub struct Bus {
    client: async_nats::Client,
    prefix: Arc<str>,
    counts: Arc<Counts>,
    up: watch::Receiver<bool>,
}

/// Something that was heard.
#[derive(Clone, Debug)]
pub struct BusMessage {
    /// Its subject, without what all of the cluster begin with.
    pub subject: String,
    message: async_nats::Message,
}

impl BusMessage {
    /// What was said.
    pub fn bytes(&self) -> &[u8] {
        &self.message.payload
    }
}

/// What is heard of a subject. It ends being heard when this is dropped.
pub struct BusSubscription {
    inner: async_nats::Subscriber,
    prefix: Arc<str>,
    counts: Arc<Counts>,
}

impl BusSubscription {
    /// The next message; none once the bus has ended. Safe to be given up while it waits.
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

/// The addresses of a configuration.
pub(super) fn servers(settings: &ClusterSettings) -> Vec<&str> {
    settings.nats.as_deref().unwrap_or_default().split(',').collect()
}

/// How a server is connected to, and as whom.
///
/// # Errors
/// A file of the configuration cannot be read or used: a sentence.
pub(super) fn options(settings: &ClusterSettings, called: &str) -> Result<ConnectOptions, String> {
    let mut options = ConnectOptions::new()
        .name(called)
        .connection_timeout(CONNECT_TIMEOUT)
        .ping_interval(PING_INTERVAL)
        .client_capacity(WAITING)
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

/// What the subjects of a cluster begin with.
pub(super) fn prefix(settings: &ClusterSettings) -> String {
    format!("wg.{}.", settings.name)
}

impl Bus {
    /// Begins to connect, and goes on for ever. A server that is away is no error.
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

    /// Whether it is connected, and each change of that.
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

    /// Says something to whoever listens to a subject of the cluster; whether it went out. Never waits.
    pub fn publish(&self, subject: &str, payload: Vec<u8>) -> bool {
        self.put(format!("{}{subject}", self.prefix).into(), payload)
    }

    /// Answers who asked; whether that went out. Never waits.
    pub fn answer(&self, message: &BusMessage, payload: Vec<u8>) -> bool {
        message.message.reply.clone().is_some_and(|reply| self.put(reply, payload))
    }

    fn put(&self, subject: Subject, payload: Vec<u8>) -> bool {
        let bytes = payload.len();
        // What waits where nothing is connected would be heard much later.
        let sent = self.is_up() && bytes <= MAX_BUS_MESSAGE && {
            // The only thing that it could wait for is room among what waits.
            let put = tokio::task::unconstrained(self.client.publish(subject, payload.into()));
            matches!(put.now_or_never(), Some(Ok(())))
        };
        self.count_sent(sent, bytes)
    }

    /// Listens to a subject of the cluster, in which `*` stands for one word, as long as what is returned is held. It stays
    /// so when the connection is made anew.
    ///
    /// # Errors
    /// [`BusError::Away`]: too much waits to be sent.
    pub async fn subscribe(&self, subject: &str) -> Result<BusSubscription, BusError> {
        let subscribed = self.client.subscribe(format!("{}{subject}", self.prefix));
        let inner = timeout(SUBSCRIBE_TIMEOUT, subscribed).await.ok().and_then(Result::ok).ok_or(BusError::Away)?;
        Ok(BusSubscription { inner, prefix: self.prefix.clone(), counts: self.counts.clone() })
    }

    /// Asks who listens to a subject of the cluster, and waits so long for the answer.
    ///
    /// # Errors
    /// [`BusError`], at once where it is known that no answer can come.
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

    /// What went over it.
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

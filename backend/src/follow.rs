//! The stream of a server, for a terminal: over TCP and TLS, a Unix socket, or within this process.
//!
//! It dials, passes messages on in both directions, and redials when a connection was lost. It parses no message.

use api::Operation;
use axum::http::{HeaderValue, StatusCode, header};
use futures_util::{SinkExt, StreamExt};
use shared::secret::Secret;
use shared::wire::HEARTBEAT_MS;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::DuplexStream;
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use uplink::settings::{HubEntry, ProxyEnvironment};
use uplink::{Road, RoadEnd, Wire};

/// Timeout of the response to the upgrade.
const UPGRADE_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a connection without messages.
const SILENCE_TIMEOUT: Duration = Duration::from_millis(3 * HEARTBEAT_MS);
/// Maximum size of a message, bytes.
const MAX_BYTES: usize = 16 << 20;
/// Backoff delays before the next attempts; the last one repeats.
const RETRY_DELAYS: [Duration; 4] =
    [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(5)];
/// Buffer of a connection within this process, bytes.
const WITHIN_BYTES: usize = 64 << 10;

/// Address of the stream.
pub enum StreamPlace {
    /// A server, with a key if it needs one.
    Server {
        /// The way to the server.
        road: Road,
        /// The key.
        key: Option<Secret>,
    },
    /// At a Unix socket.
    Unix(PathBuf),
    /// This process: it gets the other end of each connection.
    Within(Sender<DuplexStream>),
}

/// Events of a stream.
pub enum Happened {
    /// The connection was established.
    Connected,
    /// A message arrived.
    Message(Vec<u8>),
    /// The connection was lost or failed: the reason, and whether there is a retry.
    Lost(String, bool),
}

/// Requests to a stream.
pub enum StreamWish {
    /// Send these bytes.
    Send(Vec<u8>),
    /// Open another connection.
    Reopen,
}

/// The reason why there is no connection.
struct Failed {
    why: String,
    /// A retry may succeed.
    again: bool,
}

impl StreamPlace {
    /// A server, or a hub with its key.
    ///
    /// # Errors
    /// The address cannot be used; a sentence.
    pub fn server(
        entry: &HubEntry,
        environment: &ProxyEnvironment,
        key: Option<Secret>,
    ) -> Result<StreamPlace, String> {
        Ok(StreamPlace::Server { road: Road::new(entry, environment)?, key })
    }

    /// Whether a server responds there.
    pub async fn answers(&self) -> bool {
        self.connect(0).await.is_ok()
    }

    async fn connect(&self, attempt: usize) -> Result<WebSocketStream<Box<dyn Wire>>, Failed> {
        let again = |why: String| Failed { why, again: true };
        let stream = Operation::FollowLive.path();
        let (wire, target, key): (Box<dyn Wire>, String, Option<&Secret>) = match self {
            StreamPlace::Server { road, key } => {
                let url = road.url(attempt);
                let told = |end: RoadEnd| again(format!("{url}: {end}"));
                let wire = road.connect(url, &mut Vec::new()).await.map_err(told)?;
                let scheme = if url.tls { "wss" } else { "ws" };
                let base = url.base.trim_end_matches('/');
                (wire, format!("{scheme}://{}{base}{stream}", url.authority()), key.as_ref())
            }
            #[cfg(unix)]
            StreamPlace::Unix(path) => {
                let wire = tokio::net::UnixStream::connect(path).await;
                let wire = wire.map_err(|error| again(format!("{}: {error}", path.display())))?;
                (Box::new(wire), format!("ws://localhost{stream}"), None)
            }
            #[cfg(not(unix))]
            StreamPlace::Unix(path) => {
                return Err(Failed {
                    why: format!("{}: this system has no Unix sockets", path.display()),
                    again: false,
                });
            }
            StreamPlace::Within(server) => {
                let (ours, theirs) = tokio::io::duplex(WITHIN_BYTES);
                server.send(theirs).await.map_err(|_| Failed { why: "it no longer collects".into(), again: false })?;
                (Box::new(ours), format!("ws://localhost{stream}"), None)
            }
        };
        let mut request = target.into_client_request().map_err(|error| again(error.to_string()))?;
        if let Some(key) = key {
            let bearer = HeaderValue::from_str(&format!("Bearer {}", key.reveal()));
            let mut bearer = bearer.map_err(|_| Failed {
                why: "the key is invalid: it must be one line of visible text".into(),
                again: false,
            })?;
            bearer.set_sensitive(true);
            request.headers_mut().insert(header::AUTHORIZATION, bearer);
        }
        let config = WebSocketConfig::default().max_message_size(Some(MAX_BYTES)).max_frame_size(Some(MAX_BYTES));
        let opened = timeout(UPGRADE_TIMEOUT, client_async_with_config(request, wire, Some(config))).await;
        match opened.map_err(|_| again(format!("no response within {} s", UPGRADE_TIMEOUT.as_secs())))? {
            Ok((socket, _)) => Ok(socket),
            Err(Error::Http(answer)) => {
                let body = answer.body().as_deref().unwrap_or_default();
                let said: Option<serde_json::Value> = serde_json::from_slice(body).ok();
                let said = said.and_then(|said| said["error"].as_str().map(str::to_string));
                let status = answer.status();
                let why = match (status, said) {
                    (StatusCode::UNAUTHORIZED, _) if key.is_none() => {
                        "this is a hub, which requires a key; use --hub URL --key-file FILE".into()
                    }
                    (_, Some(said)) => said,
                    (StatusCode::NOT_FOUND, None) => "there is no Watchglass at this address (404)".into(),
                    (status, None) => format!("it returns {}", status.as_u16()),
                };
                Err(Failed { why, again: status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS })
            }
            Err(Error::Io(error)) => Err(again(format!("the connection was lost during the upgrade: {error}"))),
            Err(error) => Err(Failed { why: format!("the server is not a Watchglass: {error}"), again: false }),
        }
    }
}

/// Follows the stream until the events or the requests have no other end. `happened` returns whether the event was
/// received, and may block meanwhile.
pub async fn follow(place: StreamPlace, happened: impl Fn(Happened) -> bool, mut wanted: Receiver<StreamWish>) {
    let mut attempt = 0;
    loop {
        let why = match place.connect(attempt).await {
            Ok(socket) => {
                // Requests to the connection before do not apply to this one.
                while wanted.try_recv().is_ok() {}
                attempt = 0;
                if !happened(Happened::Connected) {
                    return;
                }
                match serve(socket, &happened, &mut wanted).await {
                    Some(why) => why,
                    None if wanted.is_closed() => return,
                    None => continue,
                }
            }
            Err(failed) if !failed.again => {
                happened(Happened::Lost(failed.why, false));
                return;
            }
            Err(failed) => failed.why,
        };
        if !happened(Happened::Lost(why, true)) {
            return;
        }
        tokio::time::sleep(RETRY_DELAYS[attempt.min(RETRY_DELAYS.len() - 1)]).await;
        attempt += 1;
    }
}

/// Passes messages on until the connection ends, with the reason. None when another connection is requested, or all
/// senders are gone.
async fn serve(
    mut socket: WebSocketStream<Box<dyn Wire>>,
    happened: &impl Fn(Happened) -> bool,
    wanted: &mut Receiver<StreamWish>,
) -> Option<String> {
    loop {
        tokio::select! {
            came = timeout(SILENCE_TIMEOUT, socket.next()) => match came {
                Err(_) => return Some(format!("no data for {} s", SILENCE_TIMEOUT.as_secs())),
                Ok(None | Some(Ok(Message::Close(_)))) => return Some("the server has closed the connection".into()),
                Ok(Some(Err(error))) => return Some(error.to_string()),
                Ok(Some(Ok(Message::Binary(bytes)))) => {
                    if !happened(Happened::Message(bytes.to_vec())) {
                        return None;
                    }
                }
                Ok(Some(Ok(_))) => {}
            },
            next = wanted.recv() => match next {
                Some(StreamWish::Send(bytes)) => {
                    let sent = timeout(SILENCE_TIMEOUT, socket.send(Message::Binary(bytes.into()))).await;
                    if !matches!(sent, Ok(Ok(()))) {
                        return Some("the server does not receive data any more".into());
                    }
                }
                Some(StreamWish::Reopen) | None => {
                    // A close frame, with a short timeout for servers that do not answer it.
                    let _ = timeout(Duration::from_millis(200), socket.close(None)).await;
                    return None;
                }
            },
        }
    }
}

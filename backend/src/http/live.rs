//! `GET /api/v1/live`: the stream over a WebSocket; binary for pages, `?format=json` for scripts.

use super::params::Params;
use super::script::script;
use super::socket::{self, End, Event, Kind, Socket};
use super::{App, error};
use crate::live::{Hub, Next, Session};
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use shared::wire::{self, HEARTBEAT_MS, PageMessage, ServerMessage, decode_page};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// Faster ticks are joined: a page gets at most two messages of ticks a second.
const SPACING: Duration = Duration::from_millis(500);
/// How long the words before the end may take.
const GOODBYE: Duration = Duration::from_secs(1);
/// Messages of history on their way at once: each is a page's own, and half a megabyte.
static HISTORY: Semaphore = Semaphore::const_new(128);

pub(super) async fn get(State(app): State<Arc<App>>, params: Params, request: Request) -> Response<Body> {
    let mut json = false;
    for (key, value) in params.all() {
        json = match (key, value) {
            ("format", "json") => true,
            ("format", "binary") => false,
            ("format", other) => {
                return error(StatusCode::BAD_REQUEST, format!("format is binary or json, not {other:?}"));
            }
            (other, _) => return Params::unknown(other, "there is format=binary or json"),
        };
    }
    let (response, upgraded) = match socket::accept(request) {
        Ok(accepted) => accepted,
        Err(refused) => {
            let sentence = format!("this is a WebSocket; open it as ws://HOST/api/v1/live?format=json ({refused})");
            return error(StatusCode::BAD_REQUEST, sentence);
        }
    };
    let viewer = Viewer::new(&app.hub);
    if app.hub.counts.viewers.load(Ordering::Relaxed) > app.viewers as u64 {
        let sentence = format!("{} viewers are connected; close one and try again", app.viewers);
        return error(StatusCode::TOO_MANY_REQUESTS, sentence);
    }
    tokio::spawn(async move {
        let Some(socket) = upgraded.await else { return };
        // On the heap, so that each viewer takes what its own kind needs.
        match json {
            true => Box::pin(script(socket, app)).await,
            false => Box::pin(page(socket, app)).await,
        }
        drop(viewer);
    });
    response
}

/// Counts a viewer while it is connected.
struct Viewer(Arc<Hub>);

impl Viewer {
    fn new(hub: &Arc<Hub>) -> Self {
        hub.counts.viewers.fetch_add(1, Ordering::Relaxed);
        Viewer(hub.clone())
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.0.counts.viewers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The end of a connection while the server goes on or ends.
pub(super) fn ended(app: &App) -> Result<(), End> {
    // Viewers hear of the end with the hub's last announcement.
    match *app.stop.borrow() {
        true => Err(End::Told(CloseCode::Away, "the server ends".into())),
        false => Ok(()),
    }
}

/// Sends a message, and counts it.
pub(super) async fn send<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut Socket<S>,
    hub: &Hub,
    kind: Kind,
    message: &Bytes,
) -> Result<(), End> {
    socket.send(kind, message).await?;
    hub.counts.bytes.fetch_add(message.len() as u64, Ordering::Relaxed);
    Ok(())
}

/// Reads on in a block; what lies on a disk is not read on the threads that serve the stream.
async fn read(next: Next) -> Result<(Option<Bytes>, Option<Next>), End> {
    match next.waits() {
        true => tokio::task::spawn_blocking(move || next.read()).await.map_err(|_| End::Gone),
        false => Ok(next.read()),
    }
}

async fn page<S: AsyncRead + AsyncWrite + Unpin>(mut socket: Socket<S>, app: Arc<App>) {
    if let Err(End::Told(code, reason)) = follow(&mut socket, &app).await {
        // In words first: proxies drop close codes. Who takes nothing is not waited for.
        let _ = timeout(GOODBYE, send(&mut socket, &app.hub, Kind::Binary, &Session::goodbye(&reason))).await;
        Box::pin(socket.close(code, &reason)).await;
    }
}

/// Serves a page until its connection ends.
async fn follow<S: AsyncRead + AsyncWrite + Unpin>(socket: &mut Socket<S>, app: &App) -> Result<(), End> {
    let hub = &app.hub;
    let mut session = Session::new(hub.clone());
    let mut news = hub.subscribe();
    let heartbeat = Duration::from_millis(HEARTBEAT_MS);
    let (mut said, mut ready) = (Instant::now(), Instant::now());
    let mut more = false;
    loop {
        ended(app)?;
        let now = Instant::now();
        if more && now >= ready {
            more = false;
            if tell(socket, hub, &mut session).await? {
                said = Instant::now();
                ready = said + SPACING;
            }
        } else if !more && now >= said + heartbeat {
            send(socket, hub, Kind::Binary, &session.heartbeat()).await?;
            said = now;
        }
        let wake = if more { ready } else { said + heartbeat };
        match socket.next(&mut news, Some(wake)).await? {
            Event::News => more = true,
            Event::Time => {}
            Event::Said(Message::Binary(bytes)) => {
                let message = decode_page(&bytes)
                    .map_err(|why| End::Told(CloseCode::Invalid, format!("this is no message of a page: {why}")))?;
                if let PageMessage::Processes { at } = message {
                    let table = app.processes(at).map(|table| (*table).clone()).unwrap_or_default();
                    let answer = wire::encode(&ServerMessage::Processes(table));
                    send(socket, hub, Kind::Binary, &answer.into()).await?;
                    continue;
                }
                let question = !matches!(message, PageMessage::Ack { .. });
                let held = session.held();
                session.receive(message).map_err(|why| End::Told(CloseCode::Policy, why))?;
                more |= question || held;
                // What the page asked for does not wait for the next tick.
                if question {
                    ready = Instant::now();
                }
            }
            Event::Said(_) => {
                let sentence = "this stream is binary; scripts use ?format=json";
                return Err(End::Told(CloseCode::Unsupported, sentence.into()));
            }
        }
    }
}

/// Sends a page all there is for it; whether that was anything.
async fn tell<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut Socket<S>,
    hub: &Hub,
    session: &mut Session,
) -> Result<bool, End> {
    let mut any = false;
    while let Some(next) = session.next_message() {
        let (bytes, rest) = match next {
            Next::Message(bytes) => {
                send(socket, hub, Kind::Binary, &bytes).await?;
                any = true;
                continue;
            }
            // On the heap, and only while there is history to send: there are thousands of pages that follow.
            history => {
                Box::pin(async {
                    let _place = HISTORY.acquire().await;
                    let (bytes, rest) = read(history).await?;
                    if let Some(bytes) = &bytes {
                        send(socket, hub, Kind::Binary, bytes).await?;
                    }
                    Ok((bytes.is_some(), rest))
                })
                .await?
            }
        };
        any |= bytes;
        rest.into_iter().for_each(|rest| session.put_back(rest));
    }
    Ok(any)
}

//! `GET /api/v1/live`: the stream over a WebSocket; binary for pages, `?format=json` for scripts.

use super::App;
use crate::live::{Hub, Next, Session};
use crate::store::{Frame, Since, Store};
use axum::body::{Body, Bytes};
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Query, State};
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use shared::tick::TickState;
use shared::wire::{self, HEARTBEAT_MS, PageMessage, ServerMessage, SourceId, decode_page};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// A page that takes nothing for this long is gone.
const SEND: Duration = Duration::from_secs(10);
/// A page says something at least every [`HEARTBEAT_MS`]; after this silence it is gone.
const SILENCE: Duration = Duration::from_secs(30);
/// Faster ticks are joined: a page gets at most two messages of ticks a second.
const SPACING: Duration = Duration::from_millis(500);
/// A page's messages are small.
const FRAME: usize = 64 * 1024;
/// Viewers at once.
const VIEWERS: u64 = 900;

pub(super) async fn get(
    State(app): State<Arc<App>>,
    query: Query<Vec<(String, String)>>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response<Body> {
    let mut json = false;
    for (key, value) in &query.0 {
        json = match (key.as_str(), value.as_str()) {
            ("format", "json") => true,
            ("format", "binary") => false,
            ("format", other) => {
                return super::error(StatusCode::BAD_REQUEST, format!("format is binary or json, not {other:?}"));
            }
            (other, _) => {
                let sentence = format!("unknown parameter {other:?}; there is format=binary or json");
                return super::error(StatusCode::BAD_REQUEST, sentence);
            }
        };
    }
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(refused) => {
            let sentence = format!("this is a WebSocket; open it as ws://HOST/api/v1/live?format=json ({refused})");
            return super::error(refused.into_response().status(), sentence);
        }
    };
    let viewer = Viewer::new(&app.hub);
    if app.hub.counts.viewers.load(Ordering::Relaxed) > VIEWERS {
        return super::error(
            StatusCode::TOO_MANY_REQUESTS,
            format!("{VIEWERS} viewers are connected; close one and try again"),
        );
    }
    let upgrade = upgrade
        .max_message_size(FRAME)
        .max_frame_size(FRAME)
        .read_buffer_size(4 * 1024)
        .write_buffer_size(0)
        .max_write_buffer_size(4 * 1024 * 1024);
    upgrade
        .on_upgrade(move |socket| async move {
            // Errors are the viewer's going away; a page comes back by itself.
            let _ = if json { script(socket, &app).await } else { page(socket, &app).await };
            drop(viewer);
        })
        .into_response()
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

/// The viewer is gone, or does not take what is sent.
struct Gone;

async fn send(socket: &mut WebSocket, hub: &Hub, message: Message) -> Result<(), Gone> {
    let bytes = match &message {
        Message::Binary(b) => b.len(),
        Message::Text(t) => t.len(),
        _ => 0,
    };
    match timeout(SEND, socket.send(message)).await {
        Ok(Ok(())) => {
            hub.counts.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            Ok(())
        }
        _ => Err(Gone),
    }
}

/// Reads on in a block; what lies on a disk is not read on the threads that serve the stream.
async fn read(next: Next) -> Result<(Option<Bytes>, Option<Next>), Gone> {
    match next.waits() {
        true => tokio::task::spawn_blocking(move || next.read()).await.map_err(|_| Gone),
        false => Ok(next.read()),
    }
}

/// Says why before closing: proxies drop close codes.
async fn close(socket: &mut WebSocket, hub: &Hub, reason: &str, code: u16) -> Result<(), Gone> {
    send(socket, hub, Message::Binary(Session::goodbye(reason))).await?;
    let short: String = reason.chars().take(100).collect();
    send(socket, hub, Message::Close(Some(CloseFrame { code, reason: short.into() }))).await
}

async fn page(mut socket: WebSocket, app: &App) -> Result<(), Gone> {
    let hub = &app.hub;
    let mut session = Session::new(hub.clone());
    let (mut newest, mut stop) = (hub.subscribe(), app.stop.clone());
    let heartbeat = Duration::from_millis(HEARTBEAT_MS);
    let mut heard = Instant::now();
    let mut said = Instant::now();
    let mut ready = Instant::now();
    let mut more = false;
    loop {
        if more && Instant::now() >= ready {
            more = false;
            let mut any = false;
            while let Some(next) = session.next_message() {
                let (bytes, rest) = read(next).await?;
                rest.into_iter().for_each(|rest| session.put_back(rest));
                if let Some(bytes) = bytes {
                    send(&mut socket, hub, Message::Binary(bytes)).await?;
                    any = true;
                }
            }
            if any {
                said = Instant::now();
                ready = said + SPACING;
            }
        }
        let wake = if more { ready } else { (said + heartbeat).min(heard + SILENCE) };
        tokio::select! {
            // In this order: what the page said while it was sent a long history counts before its silence does.
            biased;
            () = super::ended(&mut stop) => return close(&mut socket, hub, "the server ends", 1001).await,
            message = socket.recv() => match message {
                Some(Ok(Message::Binary(bytes))) => {
                    heard = Instant::now();
                    let message = decode_page(&bytes).map_err(|e| e.to_string());
                    let question = !matches!(message, Ok(PageMessage::Ack { .. }));
                    let held = session.held();
                    if let Ok(PageMessage::Processes { at }) = message {
                        let table = app.processes(at).map(|table| (*table).clone()).unwrap_or_default();
                        let answer = wire::encode(&ServerMessage::Processes(table));
                        send(&mut socket, hub, Message::Binary(answer.into())).await?;
                        continue;
                    }
                    if let Err(reason) = message.and_then(|m| session.receive(m)) {
                        return close(&mut socket, hub, &reason, 1008).await;
                    }
                    more |= question || held;
                    // What the page asked for does not wait for the next tick.
                    if question {
                        ready = Instant::now();
                    }
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => heard = Instant::now(),
                Some(Ok(Message::Text(_))) => {
                    return close(&mut socket, hub, "this stream is binary; scripts use ?format=json", 1003).await;
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Ok(()),
            },
            changed = newest.changed() => match changed {
                Ok(()) => more = true,
                Err(_) => return Ok(()),
            },
            () = sleep_until(wake) => {
                let now = Instant::now();
                if now >= heard + SILENCE {
                    return close(&mut socket, hub, "the page has said nothing for 30 s", 1001).await;
                }
                if now >= said + heartbeat {
                    send(&mut socket, hub, Message::Binary(session.heartbeat())).await?;
                    said = now;
                }
            }
        }
    }
}

/// A source as a script follows it.
struct Followed {
    source: SourceId,
    name: String,
    state: TickState,
    tags: Vec<String>,
}

/// What a script has yet to be told of a source.
enum News {
    /// The tick that the state now holds.
    Newest,
    /// The ticks that follow the state.
    Frames(Vec<Arc<Frame>>),
}

async fn script(mut socket: WebSocket, app: &App) -> Result<(), Gone> {
    let hub = &app.hub;
    let (mut newest, mut stop) = (hub.subscribe(), app.stop.clone());
    let mut followed: Vec<Followed> = Vec::new();
    loop {
        let sources = hub.store().sources().into_iter().skip(followed.len());
        followed.extend(sources.map(|info| Followed {
            source: info.id,
            name: info.name,
            state: TickState::default(),
            tags: Vec::new(),
        }));
        for place in &mut followed {
            let news = news(&hub.store(), place);
            match news {
                News::Newest => send(&mut socket, hub, text(place)).await?,
                News::Frames(frames) => {
                    for frame in frames {
                        place.state.apply(frame.bytes()).expect("the store's frames follow the store's state");
                        send(&mut socket, hub, text(place)).await?;
                    }
                }
            }
        }
        tokio::select! {
            message = socket.recv() => match message {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Ok(()),
                Some(Ok(_)) => {} // a script has nothing to say
            },
            changed = newest.changed() => if changed.is_err() { return Ok(()) },
            () = super::ended(&mut stop) => return send(&mut socket, hub, Message::Close(None)).await,
        }
    }
}

/// What is new in a source. It is followed from its newest tick on; a script that lost its place goes on from the newest,
/// and the jump in `t` shows it.
fn news(store: &Store, place: &mut Followed) -> News {
    match store.renamed(place.source, place.state.seq()) {
        Some(renamed) => {
            for id in renamed {
                let Some(tag) = place.tags.get_mut(id as usize) else { continue };
                let Some(def) = store.series(place.source, id as usize).first() else { continue };
                *tag = store.catalog().tag(def);
                place.state.redefine(id, store.catalog().metric(def).map_or(0.0, |m| m.steps));
            }
        }
        // Which numbers stand for other series is not known any more.
        None => (place.state, place.tags) = (TickState::default(), Vec::new()),
    }
    let defs = store.series(place.source, place.tags.len());
    place.state.extend(defs.iter().map(|d| store.catalog().metric(d).map_or(0.0, |m| m.steps)));
    place.tags.extend(defs.iter().map(|d| store.catalog().tag(d)));
    match store.since(place.source, place.state.seq()) {
        Since::Frames(frames) if frames.is_empty() || place.state.seq() > 0 => News::Frames(frames),
        _ => match store.state(place.source) {
            Some(state) => {
                place.state = state.clone();
                News::Newest
            }
            None => News::Frames(Vec::new()),
        },
    }
}

fn text(place: &Followed) -> Message {
    let values: serde_json::Map<String, serde_json::Value> = place
        .tags
        .iter()
        .zip(place.state.values())
        .filter(|(_, v)| v.is_finite())
        .map(|(tag, &v)| (tag.clone(), super::api::number(v)))
        .collect();
    let t = super::api::seconds(place.state.t());
    Message::Text(serde_json::json!({ "source": place.name, "t": t, "values": values }).to_string().into())
}

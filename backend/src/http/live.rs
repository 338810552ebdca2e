//! `GET /api/v1/live`: the stream over a WebSocket; binary for pages, `?format=json` for scripts.

use super::App;
use crate::live::{Hub, Session};
use crate::store::Since;
use axum::body::Body;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Query, State};
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use serde::Deserialize;
use shared::tick::TickState;
use shared::wire::{HEARTBEAT_MS, SourceId, decode_page};
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

#[derive(Deserialize)]
pub(super) struct Choice {
    format: Option<String>,
}

pub(super) async fn get(
    State(app): State<Arc<App>>,
    choice: Query<Choice>,
    upgrade: WebSocketUpgrade,
) -> Response<Body> {
    let json = match choice.format.as_deref() {
        None | Some("binary") => false,
        Some("json") => true,
        Some(other) => {
            return super::error(StatusCode::BAD_REQUEST, format!("format is binary or json, not {other:?}"));
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
            while let Some(bytes) = session.next() {
                send(&mut socket, hub, Message::Binary(bytes)).await?;
                any = true;
            }
            if any {
                said = Instant::now();
                ready = said + SPACING;
            }
        }
        let wake = if more { ready } else { (said + heartbeat).min(heard + SILENCE) };
        tokio::select! {
            message = socket.recv() => match message {
                Some(Ok(Message::Binary(bytes))) => {
                    heard = Instant::now();
                    let received = decode_page(&bytes).map_err(|e| e.to_string()).and_then(|m| session.receive(m));
                    if let Err(reason) = received {
                        return close(&mut socket, hub, &reason, 1008).await;
                    }
                    // What the page asked for does not wait for the next tick.
                    (more, ready) = (true, Instant::now());
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
            () = super::ended(&mut stop) => return close(&mut socket, hub, "the server ends", 1001).await,
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
    seq: u64,
}

async fn script(mut socket: WebSocket, app: &App) -> Result<(), Gone> {
    let hub = &app.hub;
    let (mut newest, mut stop) = (hub.subscribe(), app.stop.clone());
    let mut followed: Vec<Followed> = Vec::new();
    loop {
        for text in news(hub, &mut followed) {
            send(&mut socket, hub, Message::Text(text.into())).await?;
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

/// One text per tick since the last call. A source is followed from its newest tick on; a script that lost its place goes on
/// from the newest, and the jump in `t` shows it.
fn news(hub: &Hub, followed: &mut Vec<Followed>) -> Vec<String> {
    let store = hub.store();
    for info in store.sources().into_iter().skip(followed.len()) {
        followed.push(Followed {
            source: info.id,
            name: info.name,
            state: TickState::default(),
            tags: Vec::new(),
            seq: 0,
        });
    }
    let mut texts = Vec::new();
    for place in followed {
        let defs = store.series(place.source, place.tags.len());
        place.state.extend(defs.iter().filter_map(|d| store.catalog().metric(d)).map(|m| m.steps));
        place.tags.extend(defs.iter().map(|d| store.catalog().tag(d)));
        let first = place.seq == 0;
        let frames = match store.since(place.source, place.seq) {
            Since::Frames(frames) if !first => frames,
            Since::Frames(frames) if frames.is_empty() => continue,
            _ => {
                let Some((t, values)) = store.newest(place.source) else { continue };
                let Some((state, seq)) = store.state(place.source) else { continue };
                (place.state, place.seq) = (state, seq);
                texts.push(text(&place.name, t, &place.tags, &values));
                continue;
            }
        };
        for frame in frames {
            if place.state.apply(frame.bytes()).is_err() {
                place.seq = 0;
                break;
            }
            place.seq = frame.seq;
            texts.push(text(&place.name, frame.t, &place.tags, place.state.values()));
        }
    }
    texts
}

fn text(source: &str, t: i64, tags: &[String], values: &[f64]) -> String {
    let values: serde_json::Map<String, serde_json::Value> = tags
        .iter()
        .zip(values)
        .filter(|(_, v)| v.is_finite())
        .map(|(tag, &v)| (tag.clone(), super::api::number(v)))
        .collect();
    serde_json::json!({ "source": source, "t": super::api::seconds(t), "values": values }).to_string()
}

//! `GET /api/v1/live`: the stream over a WebSocket; binary for pages, `?format=json` for scripts.

mod script;
mod socket;
mod viewer;

pub(super) use script::Broadcast;

use crate::accounts::Who;
use crate::export::fitting;
use crate::http::admit::Asker;
use crate::http::api::Params;
use crate::http::hub::counted_as;
use crate::http::rights::Rights;
use crate::http::{App, Refusal};
use crate::live::Live;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use script::{MAX_SCRIPT_SOURCES, script};
use socket::{End, Opcode, Socket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use viewer::page;

pub(super) async fn get(
    State(app): State<Arc<App>>,
    asker: Asker,
    params: Params,
    request: Request,
) -> Result<Response<Body>, Refusal> {
    let json = match params.last("format") {
        None | Some("binary") => false,
        Some("json") => true,
        Some(other) => return Err(Refusal::bad(format!("format is binary or json, not {other:?}"))),
    };
    let patterns: Vec<String> = params.each("source").map(str::to_string).collect();
    if !json && !patterns.is_empty() {
        return Err(Refusal::bad(
            "source= chooses what a script is told of, with format=json; a page names its machine itself",
        ));
    }
    let patterns = asker.sources(&app, patterns).await;
    let chosen = fitting(&asker.reader(&app).sources(), &patterns);
    let chosen = chosen.map_err(|unknown| Refusal::bad(unknown.to_string()))?.len();
    if json && chosen > MAX_SCRIPT_SOURCES {
        return Err(Refusal::bad(format!(
            "these are {chosen} machines, and a script follows {MAX_SCRIPT_SOURCES} at most: name them by source=, * for any text"
        )));
    }
    let (rights, seat) = match (&app.hub, &asker.who) {
        (Some(hub), Some(who)) => {
            let is_link = matches!(who.who, Who::Share { .. });
            if is_link && json {
                return Err(Refusal::new(StatusCode::FORBIDDEN, "a share link is for its page"));
            }
            let seats = if is_link { &hub.link_seats } else { &hub.seats };
            let tab = hub.meter.tab(who);
            let rights = Rights::of(&hub.accounts, app.live.clock.clone(), who.clone(), asker.scope.clone());
            (rights, Some((seats.take(counted_as(who))?, tab)))
        }
        _ => (Rights::unbound(), None),
    };
    let (response, upgraded) = match socket::accept(request) {
        Ok(accepted) => accepted,
        Err(refused) => {
            let sentence = format!("this is a WebSocket; open it as ws://HOST/api/v1/live?format=json ({refused})");
            return Err(Refusal::bad(sentence));
        }
    };
    let slot = ViewerSlot::new(&app.live);
    if app.live.counts.viewers.load(Ordering::Relaxed) > app.viewers as u64 {
        let sentence = format!("{} viewers are connected; close one and try again", app.viewers);
        return Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, sentence));
    }
    tokio::spawn(async move {
        let Some(mut socket) = upgraded.await else { return };
        let seat = seat.map(|(seat, tab)| {
            socket.counts_for(tab.clone());
            (seat, tab.watch(app.live.clock.clone()))
        });
        // On the heap, so that each viewer takes what its own kind needs.
        match json {
            true => Box::pin(script(socket, app, patterns, rights)).await,
            false => Box::pin(page(socket, app, rights)).await,
        }
        drop((slot, seat));
    });
    Ok(response)
}

/// Counts a viewer while it is connected.
struct ViewerSlot(Arc<Live>);

impl ViewerSlot {
    fn new(live: &Arc<Live>) -> Self {
        live.counts.viewers.fetch_add(1, Ordering::Relaxed);
        ViewerSlot(live.clone())
    }
}

impl Drop for ViewerSlot {
    fn drop(&mut self) {
        self.0.counts.viewers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether the server goes on.
///
/// # Errors
/// It ends, and the viewer is told so.
fn ended(app: &App) -> Result<(), End> {
    // Viewers hear of the end with the last announcement.
    match *app.stop.borrow() {
        true => Err(End::Told(CloseCode::Away, shared::wire::SERVER_ENDS.into())),
        false => Ok(()),
    }
}

/// Sends a message, and counts it.
async fn send<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut Socket<S>,
    live: &Live,
    kind: Opcode,
    message: &Bytes,
) -> Result<(), End> {
    socket.send(kind, message).await?;
    live.counts.bytes.fetch_add(message.len() as u64, Ordering::Relaxed);
    Ok(())
}

//! `GET /api/v1/live`: the stream over a WebSocket; binary for pages, `?format=json` for scripts. If no WebSocket
//! passes, a page gets the same by an event stream or by polling.

mod carrier;
mod fallback;
mod script;
mod socket;
mod viewer;

pub(super) use fallback::FallbackViewers;
pub(super) use script::Broadcast;

use crate::export::fitting;
use crate::http::admit::Asker;
use crate::http::api::{Params, no_source};
use crate::http::body::Json;
use crate::http::hub::counted_as;
use crate::http::pace::Seat;
use crate::http::rights::Rights;
use crate::http::{App, Refusal};
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, Response, StatusCode, header};
use carrier::{Carrier, End, Opcode};
use script::{MAX_SCRIPT_SOURCES, script};
use shared::answer::Nothing;
use shared::said::Said;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use stream::live::Live;
use team::accounts::Who;
use team::usage::Tab;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use viewer::page;

/// Transports of messages to a viewer.
enum Way {
    Socket,
    Events,
    /// By polls, with the viewer and the page's position, if it has one already.
    Polls(Option<(String, u64)>),
}

impl Way {
    /// The requested transport. A request for an upgrade, or without any of these, is a socket.
    fn asked(headers: &HeaderMap, cursor: Option<&str>) -> Result<Self, Refusal> {
        if headers.contains_key(header::UPGRADE) {
            return Ok(Way::Socket);
        }
        let wrong =
            || Refusal::bad("cursor is empty at first, then VIEWER.PLACE: its id, and the bytes that were read");
        match cursor {
            Some("") => Ok(Way::Polls(None)),
            Some(cursor) => {
                let (id, place) = cursor.split_once('.').ok_or_else(wrong)?;
                Ok(Way::Polls(Some((id.into(), place.parse().map_err(|_| wrong())?))))
            }
            None if headers.get(header::ACCEPT).is_some_and(|accept| accept == "text/event-stream") => Ok(Way::Events),
            None => Ok(Way::Socket),
        }
    }
}

/// `POST /api/v1/live/{viewer}`: messages of a page without a socket.
pub(super) async fn post_messages(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(viewer): Path<String>,
    Json(body): Json<Said>,
) -> Result<Response<Body>, Refusal> {
    let landing = app.fallbacks.find(&viewer, asker.who.as_ref())?;
    landing.pass_messages(body.messages.into_iter().map(Bytes::from).collect()).await?;
    Ok(crate::http::json(StatusCode::OK, &Nothing {}))
}

/// The rights of a viewer, and in a team its slot, with the tab that counts its time.
fn seat(app: &App, asker: &Asker, json: bool) -> Result<(Rights, Option<(Seat, Tab)>), Refusal> {
    Ok(match (&app.hub, &asker.who) {
        (Some(hub), Some(who)) => {
            let is_link = matches!(who.who, Who::Share { .. });
            if is_link && json {
                return Err(Refusal::new(StatusCode::FORBIDDEN, "a share link works in its page only"));
            }
            let seats = if is_link { &hub.link_seats } else { &hub.seats };
            let tab = hub.meter.tab(who);
            let rights = Rights::new(&hub.accounts, app.live.clock.clone(), who.clone(), asker.scope.clone());
            (rights, Some((seats.take(counted_as(who))?, tab)))
        }
        _ => (Rights::unbound(asker.is_owner), None),
    })
}

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
    let way = Way::asked(request.headers(), params.last("cursor"))?;
    if json && !matches!(way, Way::Socket) {
        return Err(Refusal::bad("format=json is available over a WebSocket only"));
    }
    if let Way::Polls(Some((viewer, place))) = &way {
        return app.fallbacks.find(viewer, asker.who.as_ref())?.poll(*place).await;
    }
    app.lets_in()?;
    let patterns: Vec<String> = params.each("source").map(str::to_string).collect();
    if !json && !patterns.is_empty() {
        return Err(Refusal::bad("source= selects machines for format=json only; a page selects its machine itself"));
    }
    let patterns = asker.sources(&app, patterns).await;
    let chosen = fitting(&asker.reader(&app).sources(), &patterns).map_err(no_source)?.len();
    if json && chosen > MAX_SCRIPT_SOURCES {
        return Err(Refusal::bad(format!(
            "{chosen} machines are too many; select at most {MAX_SCRIPT_SOURCES} with source=, * for any text"
        )));
    }
    let (rights, seat) = seat(&app, &asker, json)?;
    let accepted = match way {
        Way::Socket => Some(socket::accept(request).map_err(|refused| {
            Refusal::bad(format!("this is a WebSocket; open it as ws://HOST/api/v1/live?format=json ({refused})"))
        })?),
        Way::Events | Way::Polls(_) => None,
    };
    let slot = ViewerSlot::new(&app.live);
    if app.live.counts.viewers.load(Ordering::Relaxed) > app.viewers as u64 {
        let sentence = format!("{} viewers are connected; close one and try again", app.viewers);
        return Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, sentence));
    }
    let Some((response, upgraded)) = accepted else {
        let tab = seat.as_ref().map(|(_, tab)| tab.clone());
        let (fallback, response) = match way {
            Way::Polls(_) => {
                let (fallback, landing) = app.fallbacks.polled(asker.who.as_ref(), tab);
                (fallback, landing.poll(0).await?)
            }
            _ => app.fallbacks.events(asker.who.as_ref(), tab),
        };
        tokio::spawn(async move {
            let seat = seat.map(|(seat, tab)| (seat, tab.watch(app.live.clock.clone())));
            Box::pin(page(fallback, app, rights)).await;
            drop((slot, seat));
        });
        return Ok(response);
    };
    tokio::spawn(async move {
        let Some(mut socket) = upgraded.await else { return };
        let seat = seat.map(|(seat, tab)| {
            socket.counts_for(tab.clone());
            (seat, tab.watch(app.live.clock.clone()))
        });
        // On the heap, so each viewer takes only the memory of its own kind.
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

/// Checks that the server goes on, for a viewer at this position in the order of closing.
///
/// # Errors
/// It shuts down, and the viewer gets this reason.
fn ended(app: &App, place: u32) -> Result<(), End> {
    // Viewers are notified of the end with an announcement.
    let stops = *app.stop.borrow();
    match stops || app.drain().is_some_and(|drain| drain.is_due(place)) {
        true => Err(End::Told(CloseCode::Away, shared::wire::SERVER_ENDS.into())),
        false => Ok(()),
    }
}

/// Sends a message, and counts it.
async fn send(carrier: &mut impl Carrier, live: &Live, kind: Opcode, message: &Bytes) -> Result<(), End> {
    carrier.send(kind, message).await?;
    live.counts.bytes.fetch_add(message.len() as u64, Ordering::Relaxed);
    Ok(())
}

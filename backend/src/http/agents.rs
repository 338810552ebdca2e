//! The routes of agents: `POST /api/v1/ingest/enrol` (a machine joins) and `GET /api/v1/ingest` (its link).

use super::admit::Asker;
use super::body::Json;
use super::upgrade::upgrade;
use super::{App, Refusal, json};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use fleet::ingest::{Arrival, Cause};
use shared::agent::{PROTOCOL_NAME, close};
use shared::enrol::{EnrolAnswer, EnrolRequest};
use std::sync::Arc;
use std::time::Duration;
use team::accounts::{Denied, Enrolment, LinkDenied};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;

/// Backoff of an agent when too many connect at once, seconds (range). The spread avoids a simultaneous return.
const COME_BACK: (u64, u64) = (1, 10);

pub(super) async fn enrol(
    State(app): State<Arc<App>>,
    asker: Asker,
    Json(body): Json<EnrolRequest>,
) -> Result<Response<Body>, Refusal> {
    let key = asker.bearer.as_ref().ok_or_else(Refusal::sign_in)?;
    let hub = app.hub()?;
    let enrolled = hub.accounts.enrol(key.reveal(), &body, &asker.network).await;
    let enrolled = enrolled.inspect_err(|why| match why {
        Denied::SignIn(_) | Denied::Forbidden(_) | Denied::Throttled { .. } => hub.ingest.turned_away(Cause::Key),
        _ => hub.ingest.turned_away(Cause::Link),
    });
    match enrolled? {
        Enrolment::Enrolled(enrolled) => Ok(json(StatusCode::CREATED, &EnrolAnswer::Enrolled(enrolled))),
        Enrolment::Pending => Ok(json(StatusCode::ACCEPTED, &EnrolAnswer::Pending { pending: true })),
    }
}

pub(super) async fn link(
    State(app): State<Arc<App>>,
    asker: Asker,
    request: Request,
) -> Result<Response<Body>, Response<Body>> {
    let hub = app.hub()?;
    app.lets_in()?;
    let key = asker.bearer.as_ref().ok_or_else(Refusal::sign_in)?;
    let spoken = common_protocol(request.headers()).map_err(upgrade_required)?;
    // A revoked key is reported on its link: no status code carries the reason.
    let identity = match hub.accounts.agent(key.reveal(), &asker.network).await {
        Ok(identity) => Ok(identity),
        Err(denied) => {
            hub.ingest.turned_away(Cause::Key);
            match denied.close_code() {
                Some(code) => Err((code, denied.to_string())),
                None => return Err(refused(denied).into()),
            }
        }
    };
    let source = identity.as_ref().map(|identity| identity.source.as_str()).unwrap_or_default();
    // A machine that reconnects in a loop uses up only its own limit.
    if hub.returns.count(source).is_err() || hub.handshakes.count("").is_err() {
        hub.ingest.turned_away(Cause::Handshake);
        let (least, most) = COME_BACK;
        let wait = Duration::from_secs(least + spread(asker.network.text()) % (most - least + 1));
        let sentence = "too many agents connect at once; retry in a few seconds";
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, sentence).again_in(wait).into());
    }
    let (mut response, stream) = upgrade(request).map_err(|why| {
        let sentence = format!(
            "this address is a WebSocket for agents ({why}); a proxy must pass the headers Connection and Upgrade"
        );
        upgrade_required(Refusal::new(StatusCode::UPGRADE_REQUIRED, sentence))
    })?;
    response.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(spoken));
    let (ingest, accounts) = (hub.ingest.clone(), hub.accounts.clone());
    let from = asker.network.text().to_owned();
    tokio::spawn(async move {
        let Some((stream, read)) = stream.await else { return };
        let config = Some(fleet::ingest::socket_config());
        let socket = WebSocketStream::from_partially_read(stream, read.to_vec(), Role::Server, config).await;
        match identity {
            Ok(identity) => {
                let mut ended = accounts.watch_agent(&identity);
                let labels = identity.labels.into_iter().collect();
                let (source, key, name) = (identity.source, identity.key, identity.name);
                let arrival = Arrival { source, key, from, name, labels, relayed: false };
                let denied = std::pin::pin!(async move {
                    let why = ended.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
                    // Without a known reason the agent reconnects and gets the reason then.
                    let code = why.as_ref().and_then(LinkDenied::close_code).unwrap_or(close::GOING);
                    (code, why.map_or_else(|| "the hub is shutting down".to_owned(), |why| why.to_string()))
                });
                ingest.link_until(arrival, socket, denied).await;
            }
            Err((code, why)) => ingest.refuse(socket, code, &why).await,
        }
        // The server has ended when the last reference is dropped.
        drop(app);
    });
    Ok(response)
}

/// A number that differs between callers and between calls.
fn spread(text: &str) -> u64 {
    use std::hash::BuildHasher;
    std::hash::RandomState::new().hash_one(text)
}

/// The newest protocol that both the agent and the hub support.
fn common_protocol(headers: &HeaderMap) -> Result<&'static str, Refusal> {
    let lists = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let offered: Vec<&str> = lists.flat_map(|list| list.split(',')).map(str::trim).collect();
    if offered.contains(&PROTOCOL_NAME) {
        return Ok(PROTOCOL_NAME);
    }
    let theirs = if offered.is_empty() { "none".into() } else { offered.join(", ") };
    let sentence = format!(
        "this hub ({}) speaks {PROTOCOL_NAME}, the agent offers {theirs}; update the older of the two",
        env!("CARGO_PKG_VERSION")
    );
    Err(Refusal::new(StatusCode::UPGRADE_REQUIRED, sentence))
}

/// 426, with the protocol to upgrade to.
fn upgrade_required(refusal: Refusal) -> Response<Body> {
    let mut response: Response<Body> = refusal.into();
    response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    response
}

/// The answer before the upgrade.
fn refused(denied: LinkDenied) -> Refusal {
    let sentence = denied.to_string();
    match denied {
        LinkDenied::Throttled { retry_after } => {
            Refusal::new(StatusCode::TOO_MANY_REQUESTS, sentence).again_in(retry_after)
        }
        LinkDenied::Unavailable => {
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, sentence).again_in(Duration::from_secs(5))
        }
        _ => Refusal::new(StatusCode::UNAUTHORIZED, sentence),
    }
}

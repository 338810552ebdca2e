//! Relays a source from one hub to another, with an agent's protocol.

use super::UplinkEnd;
use super::evidence::Evidence;
use super::hello::{Introduction, LinkSocket, Origin, greet};
use super::identity::AgentIdentity;
use super::road::Wire;
use super::serve::{self, LinkParts};
use jobs::runs::RunRegistry;
use shared::agent::MAX_MESSAGE;
use shared::wire::SourceId;
use std::sync::Arc;
use std::time::Duration;
use stream::live::{Live, UplinkState};
use tokio::sync::watch;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

/// Sends the whole history of a source and its new ticks to the hub at the other end of a wire. It ends when either
/// side does, or when `stop` becomes true. Returns the reason, a sentence without a full stop.
pub async fn tell(
    live: Arc<Live>,
    source: SourceId,
    runs: Arc<RunRegistry>,
    wire: Box<dyn Wire>,
    stop: watch::Receiver<bool>,
) -> String {
    let config = WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE)).max_frame_size(Some(MAX_MESSAGE));
    let mut socket: LinkSocket = WebSocketStream::from_raw_socket(wire, Role::Client, Some(config)).await;
    let figures = live.source(source).figures();
    let key = live.store().source(source).map(|(source, _)| source.key.clone()).unwrap_or_default();
    let told = Arc::new(Introduction {
        instance: super::random(),
        folder: 0,
        started: live.clock.wall(),
        evidence: Evidence { host: figures.host.unwrap_or_default(), ..Evidence::default() },
        labels: Vec::new(),
        memory: false,
        origin: Origin::Relayed,
        version: figures.version.unwrap_or_else(|| env!("CARGO_PKG_VERSION").into()),
    });
    let known = AgentIdentity::of_relay(&key);
    let welcome = match greet(&mut socket, &told, &live, source, &known).await {
        Ok(welcome) => welcome,
        Err(end) => return why(end),
    };
    let shown = Arc::new(UplinkState::new(String::new(), (source, None), live.clock.wall()));
    let link = LinkParts { live, source, runs, told, shifts: Vec::new(), spread: Duration::ZERO, shown };
    why(serve::serve(link, socket, &welcome, stop).await)
}

fn why(end: UplinkEnd) -> String {
    match end {
        UplinkEnd::Lost(end) => end.why,
        UplinkEnd::Later(why, _) | UplinkEnd::Refused(_, why) => why,
        UplinkEnd::Stopped => "it was stopped".into(),
    }
}

//! A stream lives as long as the session, key or link that opened it.

use super::JSON;
use futures_util::{SinkExt, StreamExt};
use shared::wire::{self, PROTOCOL, PageMessage, Received, ServerMessage};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};
use watchglass_tests::hub::Hub;
use watchglass_tests::server::Server;
use watchglass_tests::waiting::MAX_WAIT;

pub type Stream = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Opens a stream with these header lines, and waits for its hello message.
pub async fn open(hub: &Hub, query: &str, headers: &[String]) -> Stream {
    open_on(hub, query, headers, "").await
}

/// Opens a stream that follows the machine of this name.
pub async fn open_on(hub: &Hub, query: &str, headers: &[String], source: &str) -> Stream {
    open_at(&hub.server, query, headers, source).await
}

/// Opens a stream at a server.
pub async fn open_at(server: &Server, query: &str, headers: &[String], source: &str) -> Stream {
    let url = format!("ws://{}/api/v1/live{query}", server.addr());
    let mut request = url.into_client_request().expect("an address");
    for line in headers {
        let (name, value) = line.split_once(": ").expect("a header line");
        let name: tokio_tungstenite::tungstenite::http::HeaderName = name.parse().expect("a name");
        request.headers_mut().insert(name, value.parse().expect("a value"));
    }
    let (mut stream, _) = tokio_tungstenite::connect_async(request).await.expect("it is let in");
    if query.is_empty() {
        let open = PageMessage::Open { protocol: PROTOCOL, window: 1_000, resume: None, sources: vec![source.into()] };
        stream.send(Message::Binary(wire::encode(&open).into())).await.expect("it listens");
        let greeting = stream.next().await.expect("a message").expect("a message").into_data();
        assert!(matches!(wire::decode_server(&greeting), Ok(Received::Control(ServerMessage::Hello(_)))));
    }
    stream
}

/// Sends a message of a page.
pub async fn send_message(stream: &mut Stream, message: &PageMessage) {
    stream.send(Message::Binary(wire::encode(message).into())).await.expect("it listens");
}

/// Reads to the end: the reason of the goodbye, and the close frame.
pub async fn ended(
    mut stream: impl StreamExt<Item = Result<Message, Error>> + Unpin,
) -> (Option<String>, Option<CloseFrame>) {
    let mut goodbye = None;
    let all = async {
        while let Some(Ok(message)) = stream.next().await {
            match message {
                Message::Close(frame) => return frame,
                Message::Binary(bytes) => {
                    if let Ok(Received::Control(ServerMessage::Goodbye { reason })) = wire::decode_server(&bytes) {
                        goodbye = Some(reason);
                    }
                }
                _ => {}
            }
        }
        None
    };
    let close = tokio::time::timeout(MAX_WAIT, all).await.expect("it ends in time");
    (goodbye, close)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_a_session_end_when_it_does_and_say_why() {
    let hub = Hub::start([]);
    let (cookie, origin) = (hub.cookie("vera"), hub.origin());
    let page = open(&hub, "", &[cookie.clone(), origin.clone()]).await;
    let script = open(&hub, "?format=json&source=*", &[cookie.clone(), origin.clone()]).await;
    let mut other = open(&hub, "", &[hub.cookie("mike"), origin.clone()]).await;
    let answer = hub.send("DELETE", "/api/v1/session", &[&cookie, &origin, JSON], "");
    assert_eq!(answer.status, 200);
    let (goodbye, close) = ended(page).await;
    assert_eq!(goodbye.as_deref(), Some("signed out"));
    assert!(close.is_some_and(|close| u16::from(close.code) == 1008));
    let (_, close) = ended(script).await;
    assert!(close.is_some_and(|close| u16::from(close.code) == 1008));
    let next = tokio::time::timeout(MAX_WAIT, other.next()).await.expect("it goes on in time");
    assert!(matches!(next, Some(Ok(Message::Binary(_)))), "another's stream goes on: {next:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stream_of_a_key_ends_with_the_key() {
    let hub = Hub::start([]);
    let stream = open(&hub, "", &[hub.key("data")]).await;
    let leaked = hub.send("GET", &format!("/healthz?{}", hub.keys["data"]), &[], "");
    assert_eq!(leaked.status, 400);
    let (goodbye, close) = ended(stream).await;
    assert_eq!(goodbye.as_deref(), Some("this key was revoked"));
    assert!(close.is_some_and(|close| u16::from(close.code) == 1008));
}

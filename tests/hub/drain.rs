//! A hub on SIGTERM closes its connections gradually. Agents and viewers move to the next hub, and no sample is lost.

use super::sockets::{Stream, ended};
use futures_util::{SinkExt, StreamExt};
use shared::wire::{self, PROTOCOL, PageMessage};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use watchglass_tests::fleet::Fleet;
use watchglass_tests::hub::Hub;
use watchglass_tests::server::{Server, ask, watchglass};
use watchglass_tests::waiting::{MAX_WAIT, until};

/// The documented maximum: a hub ends within this time after SIGTERM, even when a client hangs.
const MAX_DRAIN_TIME: Duration = Duration::from_secs(15);
/// Maximum streams of one principal, less some for the test itself.
const IDLE: usize = 90;

async fn open(addr: SocketAddr, query: &str, key: &str) -> Option<Stream> {
    let mut request = format!("ws://{addr}/api/v1/live{query}").into_client_request().expect("an address");
    request.headers_mut().insert("Authorization", format!("Bearer {key}").parse().expect("a value"));
    Some(tokio_tungstenite::connect_async(request).await.ok()?.0)
}

/// Scripts that keep a stream open but do not read, and do not answer a close frame either.
async fn idle(addr: SocketAddr, key: &str) -> Vec<Stream> {
    let mut all = Vec::new();
    for _ in 0..IDLE {
        all.push(open(addr, "?format=json", key).await.expect("it is let in"));
    }
    all
}

/// The time of the next tick, ms since the epoch; None when the stream has ended.
async fn tick(stream: &mut Stream) -> Option<i64> {
    loop {
        match tokio::time::timeout(MAX_WAIT, stream.next()).await.expect("it goes on, or ends") {
            Some(Ok(Message::Text(text))) => {
                let told: serde_json::Value = serde_json::from_str(&text).expect("JSON");
                if let Some(t) = told["t"].as_f64().filter(|_| told["values"].is_object()) {
                    return Some((t * 1e3).round() as i64);
                }
            }
            Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
            Some(Ok(_)) => {}
        }
    }
}

fn health(server: SocketAddr) -> u16 {
    ask(server, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").status
}

/// A hub with the same accounts and keys, in a folder of its own.
fn twin(fleet: &Fleet) -> (std::path::PathBuf, Server) {
    let (copy, folder) = (fleet.folder().join("copy.db"), fleet.folder().join("twin"));
    fleet.administer(&["backup", copy.to_str().expect("a plain path")]);
    let mut restore = watchglass(["restore"]);
    let output = restore.arg(&copy).arg("--data-dir").arg(&folder).output().expect("the binary starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let server = Hub::server(&folder, ["--no-local"]);
    (folder, server)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_and_viewers_move_to_the_next_hub_and_it_has_every_tick() {
    let mut fleet = Fleet::with_people();
    fleet.start_agent();
    fleet.grows("the first hub has samples");
    fleet.kill_agent();
    let (folder, twin) = twin(&fleet);
    let (first, next) = (fleet.server().addr(), twin.addr());
    fleet.url = format!("{},http://{next}", fleet.url);
    fleet.start_agent();
    fleet.grows("it goes on");
    let key = fleet.keys["data"].clone();
    let _idle = idle(first, &key).await;
    let mut page = open(first, "", &key).await.expect("it is let in");
    let opening = PageMessage::Open { protocol: PROTOCOL, window: 1_000, resume: None, sources: vec![String::new()] };
    page.send(Message::Binary(wire::encode(&opening).into())).await.expect("it listens");
    let mut script = open(first, "?format=json", &key).await.expect("it is let in");
    tick(&mut script).await.expect("it is live");

    let begun = Instant::now();
    fleet.server().signal("TERM");
    until("it says that it ends", || (health(first) == 503).then_some(()));
    assert!(open(first, "?format=json", &key).await.is_none(), "nobody is let in any more");
    let mut last = (0, Instant::now());
    while let Some(t) = tick(&mut script).await {
        last = (t, Instant::now());
    }
    // A viewer reconnects to the next hub.
    let mut script = open(next, "?format=json", &key).await.expect("it is let in");
    while tick(&mut script).await.expect("it is live there") <= last.0 {}
    let moved = last.1.elapsed();
    assert_eq!(ended(page).await.0.as_deref(), Some(wire::SERVER_ENDS));
    let old = fleet.succeed(folder, twin);
    assert!(old.wait(MAX_DRAIN_TIME).success());
    let took = begun.elapsed();
    assert!(took < MAX_DRAIN_TIME, "it took {took:?} to end");
    fleet.grows("it goes on at the next hub");
    let audit = fleet.settle();
    assert!(audit.sound() && audit.stored > 0, "{audit:?}");
    assert_eq!(fleet.lacks(), [], "ticks are lacking at the next hub");
    eprintln!("the old hub took {took:?} to end; a viewer was without new ticks for {moved:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_a_hub_to_end_once_more_is_not_kept_waiting() {
    let hub = Hub::start(["--no-local"]);
    let addr = hub.server.addr();
    // So many that they take seconds to go: 50 of them each second.
    let _idle = [idle(addr, &hub.keys["data"]).await, idle(addr, &hub.keys["own"]).await];
    hub.server.signal("TERM");
    until("it says that it ends", || (health(addr) == 503).then_some(()));
    hub.server.signal("TERM");
    // It says this only while others have not gone.
    hub.server.says("asked once more: ending at once");
    assert!(hub.server.wait(MAX_DRAIN_TIME).success());
}

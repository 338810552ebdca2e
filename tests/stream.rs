//! Tests the stream of the real binary, as pages and scripts see it.

use futures_util::StreamExt;
use shared::wire::{CheckState, PROTOCOL, PageMessage};
use std::time::{Duration, Instant};
use tokio_tungstenite::tungstenite::Message;
use watchglass_tests::server::{Server, free_port};
use watchglass_tests::stream::Page;
use watchglass_tests::waiting::{MAX_WAIT, until_so};

const FAST: [&str; 2] = ["--interval", "100ms"];
const WINDOW: i64 = 300_000;

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}

#[test]
fn a_page_sees_this_machine_live() {
    let server = Server::start(FAST);
    block_on(async {
        let mut page = Page::default();
        let mut connection = page.connect(server.addr(), WINDOW).await;
        // A collector that is late for a tick has no value in it, and its check is another one at first.
        let rows = ["memory.total", "system.cpu_percent", "system.load1", "disk.in", "network.recv", "monitor.cpu"];
        let has_all = |page: &Page| rows.iter().chain(&["monitor.cpu.ok"]).all(|tag| page.newest(tag).is_some());
        let is_well = |page: &Page| page.checks.iter().any(|one| one.id == "cpu" && one.state == CheckState::Ok);
        page.until(&mut connection, |page| page.ticks.len() >= 10 && has_all(page) && is_well(page)).await;
        assert!(page.whole() && page.repeated == 0);
        let total = page.newest("memory.total").expect("memory is read");
        let kernel = std::fs::read_to_string("/proc/meminfo").expect("the kernel's own figure");
        let kib: f64 = kernel.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("MemTotal");
        assert!(total <= kib * 1024.0 && total > 0.0, "{total} of {kib} KiB");
        let times: Vec<i64> = page.ticks.values().map(|(t, _)| *t).collect();
        assert!(times[2..].iter().all(|t| t % 100 == 0), "ticks stand on the boundary: {times:?}");
    });
}

#[test]
fn a_break_leaves_no_hole() {
    let server = Server::start(FAST);
    block_on(async {
        let mut page = Page::default();
        let mut connection = page.connect(server.addr(), WINDOW).await;
        page.until(&mut connection, |page| page.ticks.len() >= 5).await;
        for round in 1..=5usize {
            drop(connection);
            connection = page.connect(server.addr(), WINDOW).await;
            let before = page.ticks.len();
            page.until(&mut connection, |page| page.ticks.len() >= before + round).await;
        }
        assert!(page.whole() && page.repeated == 0 && page.resyncs == 0);
        assert_eq!(page.ticks.keys().next(), Some(&1));
    });
}

#[test]
fn a_restarted_server_is_told_apart_and_followed() {
    let port = free_port();
    let first = Server::start_on(port, FAST);
    block_on(async {
        let mut page = Page::default();
        let mut connection = page.connect(first.addr(), WINDOW).await;
        page.until(&mut connection, |page| page.ticks.len() >= 12).await;
        let boot = page.hello.as_ref().map(|h| h.boot);
        drop(first);
        while page.take(&mut connection).await {}
        let second = Server::start_on(port, FAST);
        let mut connection = page.connect(second.addr(), WINDOW).await;
        page.until(&mut connection, |page| page.hello.as_ref().map(|h| h.boot) != boot && page.ticks.len() >= 3).await;
        assert!(page.whole());
        assert_eq!(page.ticks.keys().next(), Some(&1));
    });
}

#[test]
fn a_viewer_that_never_reads_is_sent_its_credit_and_others_do_not_notice() {
    let server = Server::start(FAST);
    block_on(async {
        let mut sleeping = Page::default();
        let mut asleep = sleeping.connect(server.addr(), WINDOW).await;
        sleeping.until(&mut asleep, |page| !page.ticks.is_empty()).await;
        let mut page = Page::default();
        let mut connection = page.connect(server.addr(), WINDOW).await;
        page.until(&mut connection, |page| page.ticks.len() >= 60).await;
        assert!(page.whole());
        let figure = |name: &str| {
            let own = server.get("/metrics", &[]).body;
            let line = own.lines().find(|l| l.starts_with(name) && !l.starts_with('#')).expect("our own health");
            line.rsplit(' ').next().and_then(|n| n.parse::<f64>().ok()).expect("a number")
        };
        assert_eq!(figure("watchglass_self_viewers"), 2.0);
        until_so("the one that sleeps is held back", || figure("watchglass_self_live_held_back_total") > 0.0);
        // The page wakes up and gets the missed ticks, without a gap.
        let newest = *page.ticks.keys().next_back().expect("ticks");
        sleeping.until(&mut asleep, |page| page.ticks.contains_key(&newest)).await;
        assert!(sleeping.whole());
    });
}

#[test]
fn what_is_no_page_is_told_why_before_the_end() {
    let server = Server::start([]);
    block_on(async {
        for wrong in [
            Message::Binary(vec![9, 9, 9].into()),
            Message::Text("hello".into()),
            Message::Binary(
                shared::wire::encode(&PageMessage::Open {
                    protocol: PROTOCOL + 1,
                    window: 0,
                    resume: None,
                    sources: Vec::new(),
                })
                .into(),
            ),
            Message::Binary(shared::wire::encode(&PageMessage::Ack { messages: 1_000_000 }).into()),
        ] {
            let mut page = Page::default();
            let mut connection = page.connect(server.addr(), WINDOW).await;
            connection.send(wrong).await;
            let end = async { while page.take(&mut connection).await {} };
            tokio::time::timeout(MAX_WAIT, end).await.expect("the server closes");
            assert!(page.goodbye.is_some(), "it says why");
        }
    });
    assert_eq!(server.get("/healthz", &[]).status, 200);
}

/// The close code and the reason with which the server ends a connection that sent `bytes`.
async fn closed(server: &Server, query: &str, bytes: &[u8]) -> (u16, String) {
    use tokio::io::AsyncWriteExt;
    use tokio_tungstenite::MaybeTlsStream;
    let url = format!("ws://{}/api/v1/live{query}", server.addr());
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.expect("it listens");
    let MaybeTlsStream::Plain(stream) = socket.get_mut() else { panic!("no TLS here") };
    // The server may have closed already, which the test waits for.
    let _ = stream.write_all(bytes).await;
    let end = async {
        loop {
            match socket.next().await.expect("a close frame before the end") {
                Ok(Message::Close(frame)) => return frame.expect("with a code"),
                other => drop(other.expect("no reset")),
            }
        }
    };
    let frame = tokio::time::timeout(MAX_WAIT, end).await.expect("the server closes");
    (frame.code.into(), frame.reason.to_string())
}

#[test]
fn each_fault_of_the_protocol_has_its_close_code_and_a_sentence() {
    let server = Server::start([]);
    // The message is larger than the limit, and it is sent completely. Unread bytes must not hide the close frame.
    let mut large = vec![0x82, 0xff, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0];
    large.resize(14 + (1 << 20), 0);
    block_on(async {
        for (bytes, code, word) in [
            (&[0x82, 0x01, 0x00][..], 1002, "protocol"),
            (&[0xc2, 0x81, 0, 0, 0, 0, 1], 1002, "protocol"),
            (&[0x83, 0x81, 0, 0, 0, 0, 1], 1002, "protocol"),
            (&[0x89, 0xfe, 0, 126, 0, 0, 0, 0], 1002, "protocol"),
            (&[0x81, 0x82, 0, 0, 0, 0, b'h', b'i'], 1003, "format=json"),
            (&[0x81, 0x81, 0, 0, 0, 0, 0xff], 1007, "UTF-8"),
            (&[0x82, 0x83, 0, 0, 0, 0, 9, 9, 9], 1007, "message of a page"),
            (&large, 1009, "65536"),
        ] {
            // A control frame is read completely before it is rejected.
            let bytes = [bytes, if bytes[0] == 0x89 { &[0; 126] } else { &[][..] }].concat();
            let (told, reason) = closed(&server, "", &bytes).await;
            assert_eq!(told, code, "{:?}: {reason}", &bytes[..3]);
            assert!(reason.contains(word), "{told}: {reason}");
        }
        let (told, reason) = closed(&server, "?format=json", &[0x82, 0x01, 0x00]).await;
        assert_eq!(told, 1002, "{reason}");
        let ack = shared::wire::encode(&PageMessage::Ack { messages: 1_000_000 });
        let frame = [&[0x82, 0x80 | ack.len() as u8, 0, 0, 0, 0], &ack[..]].concat();
        assert_eq!(closed(&server, "", &frame).await.0, 1008);
    });
    assert_eq!(server.get("/healthz", &[]).status, 200);
}

#[test]
fn fast_ticks_come_joined_however_fast_the_page_acknowledges() {
    use futures_util::SinkExt;
    use shared::wire::{self, Received};
    let server = Server::start(FAST);
    block_on(async {
        let (mut socket, _) =
            tokio_tungstenite::connect_async(format!("ws://{}/api/v1/live", server.addr())).await.expect("it listens");
        let open = PageMessage::Open { protocol: PROTOCOL, window: WINDOW, resume: None, sources: vec![String::new()] };
        socket.send(Message::Binary(wire::encode(&open).into())).await.expect("sent");
        let (begin, mut messages, mut frames) = (Instant::now(), 0, 0);
        while frames < 40 {
            let message = tokio::time::timeout(MAX_WAIT, socket.next()).await.expect("in time").expect("more");
            let Message::Binary(bytes) = message.expect("a message") else { continue };
            if let Ok(Received::Ticks(_, several)) = wire::decode_server(&bytes) {
                messages += 1;
                frames += several.len();
                socket.send(Message::Binary(wire::encode(&PageMessage::Ack { messages }).into())).await.expect("sent");
            }
        }
        // At least half a second is between two messages. A loaded machine has fewer ticks in that time, and so in each.
        let most = (begin.elapsed().as_millis() / 500 + 2).max(15);
        assert!(u128::from(messages) <= most, "{frames} ticks in {messages} messages, of {most}");
    });
}

#[test]
fn scripts_read_one_json_text_a_tick() {
    let server = Server::start(FAST);
    block_on(async {
        let url = format!("ws://{}/api/v1/live?format=json", server.addr());
        let (mut socket, _) = tokio_tungstenite::connect_async(url).await.expect("it listens");
        let mut times = Vec::new();
        while times.len() < 5 {
            let message =
                tokio::time::timeout(MAX_WAIT, socket.next()).await.expect("in time").expect("more").expect("text");
            let Message::Text(text) = message else { continue };
            let tick: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            assert!(tick["values"]["system.load1"].is_number(), "{tick}");
            assert!(tick["source"].is_string());
            times.push(tick["t"].as_f64().expect("a time"));
        }
        assert!(times.windows(2).all(|w| w[1] > w[0]), "{times:?}");
    });
    assert_eq!(
        server
            .get(
                "/api/v1/live?format=yaml",
                &[
                    "Connection: Upgrade",
                    "Upgrade: websocket",
                    "Sec-WebSocket-Version: 13",
                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
                ]
            )
            .status,
        400
    );
}

#[test]
fn a_script_chooses_its_sources() {
    let server = Server::start(["demo", "--gpus", "1", "--hosts", "3", "--retention", "1m"]);
    block_on(async {
        for (query, wanted) in
            [("&source=demo-02", &["demo-02"][..]), ("&source=demo-01&source=*3", &["demo-01", "demo-03"])]
        {
            let url = format!("ws://{}/api/v1/live?format=json{query}", server.addr());
            let (mut socket, _) = tokio_tungstenite::connect_async(url).await.expect("it listens");
            let mut names = Vec::new();
            while names.len() < 3 * wanted.len() {
                let message = tokio::time::timeout(MAX_WAIT, socket.next()).await.expect("in time").expect("more");
                let Message::Text(text) = message.expect("text") else { continue };
                let tick: serde_json::Value = serde_json::from_str(&text).expect("JSON");
                names.push(tick["source"].as_str().expect("a name").to_string());
            }
            names.sort_unstable();
            names.dedup();
            assert_eq!(names, wanted);
        }
    });
    let refused = |query: &str| server.get(&format!("/api/v1/live?{query}"), &[]);
    let unknown = refused("format=json&source=nowhere");
    assert_eq!(unknown.status, 404);
    assert!(unknown.error().contains("nowhere") && unknown.error().contains("demo-01"), "{}", unknown.error());
    assert!(refused("source=demo-01").error().contains("format=json"));
}

#[test]
#[cfg(unix)]
fn it_ends_when_asked_with_viewers_connected() {
    use std::process::Stdio;
    let mut child = watchglass_tests::server::watchglass(["--port", "0", "--memory"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().expect("a pipe")), &mut line)
        .expect("an address");
    let addr = line.trim().trim_start_matches("http://").trim_end_matches('/').parse().expect("an address");
    block_on(async {
        let mut page = Page::default();
        let mut connection = page.connect(addr, WINDOW).await;
        page.until(&mut connection, |page| !page.ticks.is_empty()).await;
        let asked = Instant::now();
        #[allow(clippy::disallowed_methods, reason = "tests end what they started, by its id")]
        let kill = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
        assert!(kill.is_ok_and(|s| s.success()));
        while page.take(&mut connection).await {}
        assert_eq!(page.goodbye.as_deref(), Some("the server is shutting down"));
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
        // Three seconds are documented. A loaded machine may take five times as long.
        assert!(asked.elapsed() < Duration::from_secs(15), "{:?}", asked.elapsed());
    });
}

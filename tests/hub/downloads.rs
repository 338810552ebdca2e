//! A streamed answer is cut when its session or key ends.

use super::JSON;
use super::shares::link;
use std::io::Read;
use std::net::TcpStream;
use watchglass_tests::exporter;
use watchglass_tests::hub::Hub;
use watchglass_tests::server::ask_unread_with;
use watchglass_tests::waiting::{MAX_WAIT, until_so};

/// Series of the endpoint. Each takes some 30 bytes per tick in an answer.
const SERIES: usize = 4_000;
/// Larger than the buffers of a connection without a reader.
const LARGE_BYTES: usize = 8 << 20;
const PATH: &str = "/api/v1/query?tag=*&from=-10m";

/// The rest of an answer, and whether it is complete.
fn rest(mut stream: TcpStream) -> (Vec<u8>, bool) {
    stream.set_nonblocking(false).expect("it blocks");
    stream.set_read_timeout(Some(MAX_WAIT)).expect("a time limit");
    let (mut bytes, mut part) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match stream.read(&mut part) {
            // The connection ends with an error when bytes were still on their way.
            Ok(0) => break,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            Ok(count) => bytes.extend_from_slice(&part[..count]),
            Err(error) => panic!("no end after {} bytes: {error}", bytes.len()),
        }
        if bytes.ends_with(b"\r\n0\r\n\r\n") {
            return (bytes, true);
        }
    }
    (bytes, false)
}

#[test]
fn an_answer_breaks_off_when_its_person_key_link_or_session_ends() {
    let url = exporter::serve(|n| {
        let line = |i: usize| format!("wide{{i=\"{i}\"}} {}\n", ((n * SERIES + i) as f64).sin());
        format!("# TYPE wide gauge\n{}", (0..SERIES).map(line).collect::<String>())
    });
    let scrape = format!("wide={url}");
    let hub = Hub::start(["--interval", "100ms", "--collectors", "cpu,openmetrics", "--openmetrics", &scrape]);
    let origin = hub.origin();
    let [root, ada, mike, vera] = ["root", "ada", "mike", "vera"].map(|name| hub.cookie(name));
    let (own, data) = (hub.key("own"), hub.key("data"));
    let shared = link(&hub, "w=10m");
    until_so("there is a large answer", || hub.send("GET", PATH, &[&ada], "").body.len() > LARGE_BYTES);
    let ask = |who: &str| ask_unread_with(hub.server.addr(), PATH, &[who]);
    let goes_on = ask(&ada);
    let reading = [&data, &shared, &vera, &mike, &own].map(|who| (who, ask(who)));
    for (who, stream) in &reading {
        let mut begun = [0; 12];
        until_so("an answer begins", || stream.peek(&mut [0; 12]).is_ok_and(|count| count == 12));
        stream.peek(&mut begun).expect("its begin");
        assert_eq!(&begun, b"HTTP/1.1 200", "{who}");
    }
    let json: Vec<&str> = vec![&root, &origin, JSON];
    let keys = hub.send("GET", "/api/v1/teams/main/keys", &[&root], "");
    let keys: shared::people::Keys = serde_json::from_str(&keys.body).expect("keys");
    let key = keys.keys.iter().find(|key| key.name == "data").expect("the key");
    let links = hub.send("GET", "/api/v1/shares?team=main", &[&root], "");
    let links: shared::views::Shares = serde_json::from_str(&links.body).expect("links");
    let share = links.shares.iter().max_by_key(|share| share.opens).expect("the link that was opened");
    for (method, path, headers) in [
        ("DELETE", format!("/api/v1/teams/main/keys/{}", key.id), &json),
        ("DELETE", format!("/api/v1/shares/{}", share.id), &json),
        ("DELETE", "/api/v1/session".into(), &vec![vera.as_str(), &origin, JSON]),
        ("DELETE", "/api/v1/accounts/mike".into(), &json),
    ] {
        let answer = hub.send(method, &path, headers, "");
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }
    for (who, stream) in reading {
        let (bytes, whole) = rest(stream);
        assert!(!whole && bytes.len() < LARGE_BYTES, "{who} was given {} bytes", bytes.len());
    }
    let (bytes, whole) = rest(goes_on);
    assert!(whole && bytes.len() > LARGE_BYTES, "who may go on gets all of it: {} bytes", bytes.len());
}

//! Clients without an account that hold resources: endless bodies, idle connections.

use super::JSON;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use watchglass_tests::hub::{Hub, PASSWORD};
use watchglass_tests::server::ServerAnswer;
use watchglass_tests::waiting::{MAX_WAIT, until, until_so};

/// More than the connection limit for clients without an account, and fewer than the limit of open files.
const MANY_CLIENTS: usize = 700;

/// A sign-in request whose body never ends.
fn endless(hub: &Hub, more: &str) -> TcpStream {
    let addr = hub.server.addr();
    let mut stream = TcpStream::connect(addr).expect("it listens");
    let head = format!("POST /api/v1/session HTTP/1.1\r\nHost: {addr}\r\n{}\r\n{JSON}\r\n{more}", hub.origin());
    // A connection that was closed to make room counts, too.
    let _ = write!(stream, "{head}Content-Length: 200\r\n\r\n{{");
    stream
}

/// The answer on a connection, once it arrives.
fn answered(mut stream: TcpStream) -> ServerAnswer {
    stream.set_read_timeout(Some(MAX_WAIT)).expect("a time limit");
    let mut bytes = Vec::new();
    // The connection may end in a reset; earlier bytes count.
    let _ = stream.read_to_end(&mut bytes);
    ServerAnswer::read(&bytes)
}

fn figure(hub: &Hub, name: &str) -> f64 {
    let metrics = hub.send("GET", "/metrics", &[&hub.key("metrics")], "").body;
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    line.unwrap_or_else(|| panic!("{name} is not in the metrics"))
}

#[test]
fn bodies_that_never_end_stop_nobody_and_are_not_waited_for() {
    let hub = Hub::start(["--no-local"]);
    let begun = Instant::now();
    let late = answered(endless(&hub, ""));
    assert_eq!(late.status, 408, "{late:?}");
    assert!((Duration::from_secs(9)..MAX_WAIT).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    assert_eq!(figure(&hub, "watchglass_self_bodies_timed_out_total"), 1.0);
    // Each replaces another of them, and no one else's connection.
    let held: Vec<TcpStream> = (0..MANY_CLIENTS).map(|_| endless(&hub, "")).collect();
    goes_on(&hub);
    assert!(refused(&hub) > 0.0, "there were more than there may be");
    drop(held);
}

/// Users with an account are served, and others may sign in, regardless of the held connections.
#[track_caller]
fn goes_on(hub: &Hub) {
    let begun = Instant::now();
    assert_eq!(hub.send("GET", "/api/v1/sources", &[&hub.cookie("ada")], "").status, 200);
    assert_eq!(hub.send("GET", "/healthz", &[], "").status, 200);
    let body = format!("{{\"name\":\"mike\",\"password\":\"{PASSWORD}\"}}");
    until("a person signs in", || {
        let answer = hub.send("POST", "/api/v1/session", &[&hub.origin(), JSON], &body);
        assert!([200, 429].contains(&answer.status), "{answer:?}");
        (answer.status == 200).then_some(())
    });
    assert!(begun.elapsed() < MAX_WAIT, "{:?}", begun.elapsed());
}

/// Number of connections that were closed or rejected to make room.
fn refused(hub: &Hub) -> f64 {
    figure(hub, "watchglass_self_unauthenticated_closed_total")
        + figure(hub, "watchglass_self_unauthenticated_refused_total")
}

#[test]
fn connections_on_which_nothing_is_asked_stop_nobody() {
    let hub = Hub::start(["--no-local"]);
    let held: Vec<TcpStream> =
        (0..MANY_CLIENTS).map(|_| TcpStream::connect(hub.server.addr()).expect("it listens")).collect();
    goes_on(&hub);
    // The limit is 512 of these 700.
    assert!(refused(&hub) >= 100.0, "{}", refused(&hub));
    drop(held);
}

#[test]
fn behind_a_proxy_requests_are_counted_by_the_address_that_it_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("config.toml");
    std::fs::write(&file, "[proxy]\ntrusted = [\"127.0.0.1\"]\n").expect("written");
    let hub = Hub::start(["--no-local", "--config", &file.display().to_string()]);
    let held: Vec<TcpStream> = (0..64).map(|_| endless(&hub, "X-Forwarded-For: 203.0.113.9\r\n")).collect();
    // Its content is invalid, so it is answered at once.
    let ask = |from: &str| {
        let from = format!("X-Forwarded-For: {from}");
        hub.send("POST", "/api/v1/session", &[&hub.origin(), JSON, &from], "{}").status
    };
    until_so("the 65th of an address is refused, or takes the place of the first", || {
        assert!([400, 429].contains(&ask("203.0.113.9")));
        refused(&hub) > 0.0
    });
    let before = refused(&hub);
    assert_eq!((ask("203.0.113.10"), refused(&hub)), (400, before), "another address is another caller");
    assert_eq!(hub.send("GET", "/api/v1/sources", &[&hub.cookie("ada")], "").status, 200);
    drop(held);
    until_so("their requests are over", || ask("203.0.113.9") == 400);
}

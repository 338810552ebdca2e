//! A malicious agent over a real socket: whatever it sends affects only its own source, and is counted.

use super::JSON;
use serde_json::Value;
use shared::agent::{AgentMessage, CONTROL, FillState, MAX_MESSAGE, MAX_SERIES_IDS, close, encode};
use shared::catalog::{Metric, cpu};
use shared::series::SeriesDef;
use std::net::SocketAddr;
use stream::clock::{Clock, System};
use watchglass_tests::hub::{Hub, machines, people};
use watchglass_tests::link::{Link, TurnedAway, patient};
use watchglass_tests::server::Server;
use watchglass_tests::waiting::{MAX_WAIT, until};

/// Number of inputs rejected for a cause since the start, from `/metrics`.
fn refused(hub: &Hub, cause: &str) -> u64 {
    counted(&hub.server, &hub.key("metrics"), cause)
}

fn counted(server: &Server, key: &str, cause: &str) -> u64 {
    let begin = format!("watchglass_ingest_refused_total{{cause=\"{cause}\"}} ");
    let metrics = server.get("/metrics", &[key]);
    let count = metrics.body.lines().find_map(|line| line.strip_prefix(&begin)?.parse().ok());
    count.unwrap_or_else(|| panic!("no count of {cause} in {metrics:?}"))
}

/// A machine's rejected inputs, as the page and the API show them.
fn refused_of(hub: &Hub, name: &str) -> Value {
    let answer = hub.send("GET", "/api/v1/sources", &[&hub.cookie("root")], "");
    let told: Value = serde_json::from_str(&answer.body).expect("JSON");
    let sources = told["sources"].as_array().expect("a list").clone();
    let source = sources.into_iter().find(|source| source["name"] == name);
    source.unwrap_or_else(|| panic!("no {name} in {told}"))["refused"].clone()
}

/// Joins another machine and returns its key.
fn joined(hub: &Hub, n: u32, name: &str) -> String {
    let body = serde_json::json!({ "request": format!("{n:032x}"), "name": name, "host": name }).to_string();
    let answer = hub.send("POST", "/api/v1/ingest/enrol", &[&hub.key("join"), JSON], &body);
    let enrolled: Value = serde_json::from_str(&answer.body).expect("JSON");
    enrolled["key"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_hostile_machine_sends_another_goes_on_and_its_own_source_has_the_count() {
    let hub = Hub::start(["--no-local"]);
    let addr = hub.server.addr();
    let (hostile, honest) = (joined(&hub, 1, "hostile"), joined(&hub, 2, "honest"));
    let (mut other, welcome) = Link::welcome(addr, &honest).await;
    other.tell("0").await;
    let first = (welcome.now / 100) as u64;
    let mut sent = 0;
    let mut goes_on = async || {
        sent += 1;
        other.tick(first + u64::from(sent), f64::from(sent)).await;
        other.acknowledged(sent).await;
    };
    goes_on().await;
    let rows = AgentMessage::Rows { rows: vec![(0, Metric::from(cpu::ROWS[0]))], charts: Vec::new() };
    // Each over a connection of its own: the bytes of a single message, or this many times 500 names of 1,000 bytes;
    // and the close code.
    let attacks: Vec<(Vec<u8>, u32, u16)> = vec![
        (Vec::new(), 1, close::FRAME_ERROR),
        (vec![CONTROL, 0xff, 0xff, 0xff], 1, close::FRAME_ERROR),
        (vec![shared::agent::TICKS, 200, 1, 2, 3], 1, close::FRAME_ERROR),
        (encode(&AgentMessage::FillEnd { id: 7, state: FillState::Whole }), 1, close::FRAME_ERROR),
        (vec![CONTROL; MAX_MESSAGE + 1], 1, close::LIMIT),
        (Vec::new(), 10, close::LIMIT),
    ];
    let ends = attacks.len() as u64;
    for (bytes, times, code) in attacks {
        let (mut link, _) = Link::welcome(addr, &hostile).await;
        link.send_message(&rows).await;
        for n in 0..times {
            // The ids of the series differ, so that none replaces another.
            let mut bytes = bytes.clone();
            if times > 1 {
                let highest = MAX_SERIES_IDS - 1 - n * 500;
                let defs = (0..500).map(|id| (highest - id, SeriesDef { metric: 0, instance: "y".repeat(1_000) }));
                bytes = encode(&AgentMessage::Series { defs: defs.collect() });
            }
            link.bytes(bytes).await;
        }
        let (ended, reason) = link.goodbye().await.expect("it is told why");
        assert_eq!(ended, code, "{reason}");
        goes_on().await;
    }
    // A frame with a declared length of 2^62 bytes allocates no memory.
    let (mut link, _) = Link::welcome(addr, &hostile).await;
    link.raw(&[0x82, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]).await;
    assert_eq!(link.goodbye().await.map(|(code, _)| code), Some(close::LIMIT));
    goes_on().await;
    // Invalid labels, facts and texts, and a value that is not a number, over a connection that stays open.
    let (mut link, welcome) = Link::welcome(addr, &hostile).await;
    let labels = vec![("Rack".to_owned(), "x".to_owned()), ("rack".to_owned(), "\u{1b}[2J".to_owned())];
    link.send_message(&AgentMessage::Facts { host: "h".repeat(300), facts: Vec::new(), labels }).await;
    link.tell("\u{202e}").await;
    let first = (welcome.now / 100) as u64;
    link.tick(first, f64::INFINITY).await;
    link.acknowledged(1).await;
    goes_on().await;
    assert_eq!((refused(&hub, "label"), refused(&hub, "text"), refused(&hub, "fill")), (2, 1, 1));
    assert_eq!(refused(&hub, "ended"), ends + 1);
    // It is reported once a second.
    let expected = [("label", 2), ("ended", ends + 1), ("fill", 1), ("text", 1)];
    until("the counts of the hostile machine", || {
        let told = refused_of(&hub, "hostile");
        expected.iter().all(|(cause, n)| told[*cause] == *n).then_some(())
    });
    let none = refused_of(&hub, "honest");
    assert!(none.as_object().is_none_or(|causes| causes.is_empty()), "{none}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_are_none_are_slowed_down_and_one_that_comes_again_and_again_takes_no_others_turn() {
    let hub = Hub::start(["--no-local"]);
    let addr = hub.server.addr();
    let (hostile, honest) = (joined(&hub, 1, "hostile"), joined(&hub, 2, "honest"));
    // More fills than it may begin at once, and than all machines together may begin per second.
    let mut turned_away = 0;
    for _ in 0..120 {
        match Link::open(addr, &hostile).await {
            Ok(link) => drop(link),
            Err(TurnedAway { status, wait }) => {
                assert!(status == 503 && (1..=10).contains(&wait), "{status}, {wait} s");
                turned_away += 1;
            }
        }
    }
    assert!(turned_away > 0, "30 at once, then one a second");
    assert_eq!(refused(&hub, "handshake"), turned_away);
    let (mut link, _) = patient(addr, &honest).await;
    link.tell("0").await;
    let guess = |n: u32| format!("wg_a_{n:026}_{n:043}");
    let mut statuses = Vec::new();
    for n in 0..12 {
        statuses.push(Link::open(addr, &guess(n)).await.err().map(|away| away.status));
    }
    assert_eq!(statuses[..10], [Some(401); 10], "{statuses:?}");
    assert_eq!(statuses[10..], [Some(429); 2], "{statuses:?}");
    assert_eq!(refused(&hub, "key"), 12);
    let body = serde_json::json!({ "request": format!("{:032x}", 9), "name": "x", "host": "x" }).to_string();
    let answer = hub.send("POST", "/api/v1/ingest/enrol", &["Authorization: Bearer wg_j_guess", JSON], &body);
    assert_eq!((answer.status, refused(&hub, "key")), (429, 13));
    // A connected machine is not affected.
    link.tick((System.wall() / 100) as u64, 1.0).await;
    link.acknowledged(1).await;
}

/// A machine that connects together with all others. It is accepted in its turn, and its ticks are acknowledged.
async fn one_of_many(addr: SocketAddr, key: String, arrived: tokio::sync::mpsc::Sender<u32>) {
    let (mut link, turned_away) = patient(addr, &key).await;
    link.tell("0").await;
    let first = (System.wall() / 100) as u64;
    for n in 1..=5u32 {
        link.tick(first + u64::from(n), f64::from(n)).await;
        link.acknowledged(n).await;
    }
    arrived.send(turned_away).await.expect("it is waited for");
    // It stays connected while the others connect.
    while link.receive_message().await.is_some() {}
}

/// The short form; `cargo xtask bench -- --only links` has a thousand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_machines_that_come_at_once_are_all_let_in_and_each_tick_arrives() {
    const MACHINES: usize = 250;
    let folder = tempfile::tempdir().expect("a folder");
    let everybody = people(folder.path());
    let keys = machines(folder.path(), &everybody["join"], MACHINES);
    let server = Hub::server(folder.path(), ["--no-local"]);
    let addr = server.addr();
    let (arrived, mut arriving) = tokio::sync::mpsc::channel(MACHINES);
    for key in keys {
        tokio::spawn(one_of_many(addr, key, arrived.clone()));
    }
    let mut turned_away = 0;
    for _ in 0..MACHINES {
        turned_away +=
            tokio::time::timeout(6 * MAX_WAIT, arriving.recv()).await.expect("in time").expect("it is let in");
    }
    assert!(turned_away > 0, "not all at once");
    let key = format!("Authorization: Bearer {}", everybody["metrics"]);
    assert_eq!(counted(&server, &key, "handshake"), u64::from(turned_away));
    let metrics = server.get("/metrics", &[&key]).body;
    let figure = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("watchglass_ingest_{name} ")));
        line.and_then(|value| value.parse::<usize>().ok())
    };
    assert_eq!((figure("links"), figure("ticks_total")), (Some(MACHINES), Some(5 * MACHINES)), "{metrics}");
}

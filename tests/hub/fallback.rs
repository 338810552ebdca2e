//! The stream without a WebSocket, attacks first: it belongs to its opener, ends with their session, and only our own
//! page may request it.

use super::JSON;
use shared::wire::{self, PROTOCOL, PageMessage};
use std::cell::Cell;
use std::thread;
use watchglass_tests::hub::Hub;
use watchglass_tests::server::ServerAnswer;
use watchglass_tests::waiting::until;

const LIVE: &str = "/api/v1/live";
const EVENTS: &str = "Accept: text/event-stream";

/// A polling viewer: its id, and the number of bytes read.
struct Polled {
    id: String,
    place: Cell<u64>,
}

/// Bytes of a body, which need not be text.
fn length(answer: &ServerAnswer) -> u64 {
    answer.header("content-length").parse().expect("a whole answer")
}

#[track_caller]
fn begin(hub: &Hub, who: &str) -> Polled {
    let answer = hub.send("GET", &format!("{LIVE}?cursor="), &[who], "");
    assert_eq!((answer.status, length(&answer)), (200, 30), "its id: {answer:?}");
    Polled { id: answer.body[4..].to_string(), place: Cell::new(30) }
}

fn poll(hub: &Hub, who: &str, viewer: &Polled) -> ServerAnswer {
    hub.send("GET", &format!("{LIVE}?cursor={}.{}", viewer.id, viewer.place.get()), &[who], "")
}

fn body_of(message: &PageMessage) -> String {
    serde_json::json!({ "messages": [wire::encode(message)] }).to_string()
}

fn post_message(hub: &Hub, headers: &[&str], viewer: &str, message: &PageMessage) -> u16 {
    hub.send("POST", &format!("{LIVE}/{viewer}"), headers, &body_of(message)).status
}

fn opening() -> PageMessage {
    PageMessage::Open { protocol: PROTOCOL, window: 60_000, resume: None, sources: vec!["gpu-7".into()] }
}

/// Polls until a text arrives.
fn comes(hub: &Hub, who: &str, viewer: &Polled, text: &str) {
    until(text, || {
        let answer = poll(hub, who, viewer);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(length(&answer) <= 256 << 10);
        viewer.place.set(viewer.place.get() + length(&answer));
        answer.body.contains(text).then_some(())
    });
}

#[test]
fn a_viewer_that_polls_counts_for_who_opened_it_alone() {
    let hub = Hub::start(["--no-local"]);
    let (vera, mike, own) = (hub.cookie("vera"), hub.cookie("mike"), hub.origin());
    let viewer = begin(&hub, &vera);
    assert_eq!(post_message(&hub, &[&vera, &own, JSON], &viewer.id, &opening()), 200);
    comes(&hub, &vera, &viewer, "GPU utilization");
    // Another user's viewer gets the answer of an unknown one.
    let (others, nobodys) =
        (poll(&hub, &mike, &viewer), poll(&hub, &mike, &Polled { id: "0".repeat(26), place: Cell::new(0) }));
    assert_eq!((others.status, &others.body), (404, &nobodys.body));
    for (who, status) in [
        (mike.clone(), 404),
        (hub.cookie("root"), 404),
        (hub.key("data"), 404),
        (hub.link.clone(), 404),
        (hub.key("metrics"), 403),
        ("Accept: */*".to_string(), 401),
    ] {
        assert_eq!(poll(&hub, &who, &viewer).status, status, "{who}");
        let told = post_message(&hub, &[&who, &own, JSON], &viewer.id, &opening());
        assert_eq!(told, status, "{who}");
    }
    // A foreign page can neither send for her nor begin a stream.
    let ack = PageMessage::Ack { messages: 0 };
    for (headers, status) in [
        (vec![vera.as_str(), JSON], 403),
        (vec![&vera, JSON, "Origin: http://evil.example"], 403),
        (vec![&vera, JSON, &own, "Sec-Fetch-Site: same-site"], 403),
        (vec![&vera, &own], 415),
        (vec![&vera, &own, "Content-Type: text/plain"], 415),
        (vec![&vera, &own, JSON], 200),
    ] {
        assert_eq!(post_message(&hub, &headers, &viewer.id, &ack), status, "{headers:?}");
    }
    for headers in [[vera.as_str(), "Origin: http://evil.example"], [&vera, "Sec-Fetch-Site: cross-site"]] {
        for (path, accept) in [("?cursor=", "Accept: */*"), ("", EVENTS)] {
            let answer = hub.send("GET", &format!("{LIVE}{path}"), &[&headers[..], &[accept]].concat(), "");
            assert_eq!(answer.status, 403, "{headers:?}");
        }
    }
    for wrong in ["?cursor=x", "?cursor=x.y", "?cursor=.", "?cursor=&format=json"] {
        assert_eq!(hub.send("GET", &format!("{LIVE}{wrong}"), &[&vera], "").status, 400, "{wrong}");
    }
    let beyond = Polled { place: Cell::new(viewer.place.get() + 1_000_000), id: viewer.id };
    assert_eq!(poll(&hub, &vera, &beyond).status, 404);
}

#[test]
fn a_share_link_polls_what_it_shows_and_asks_for_nothing_else() {
    let hub = Hub::start(["--no-local"]);
    let (link, own) = (hub.link.clone(), hub.origin());
    let viewer = begin(&hub, &link);
    assert_eq!(post_message(&hub, &[&link, &own, JSON], &viewer.id, &opening()), 200);
    comes(&hub, &link, &viewer, "GPU utilization");
    assert_eq!(post_message(&hub, &[&link, &own, JSON], &viewer.id, &PageMessage::Processes { at: None }), 200);
    until("its end", || {
        let answer = poll(&hub, &link, &viewer);
        if answer.status == 200 {
            viewer.place.set(viewer.place.get() + length(&answer));
        }
        (answer.status == 404).then_some(())
    });
}

#[test]
fn what_has_no_socket_ends_with_the_session_at_once() {
    let hub = Hub::start(["--no-local"]);
    let (vera, own) = (hub.cookie("vera"), hub.origin());
    let viewer = begin(&hub, &vera);
    assert_eq!(post_message(&hub, &[&vera, &own, JSON], &viewer.id, &opening()), 200);
    comes(&hub, &vera, &viewer, "GPU utilization");
    thread::scope(|scope| {
        // Both streams end because their session ends. Nothing else would end the event stream.
        let events = scope.spawn(|| hub.send("GET", LIVE, &[&vera, EVENTS], ""));
        let viewers = || {
            let metrics = hub.send("GET", "/metrics", &[&hub.cookie("root")], "").body;
            let line = metrics.lines().find(|line| line.starts_with("watchglass_self_viewers "));
            line.and_then(|line| line.split(' ').nth(1)?.parse::<f64>().ok()).unwrap_or_else(|| panic!("{metrics}"))
        };
        until("both are there", || (viewers() == 2.0).then_some(()));
        assert_eq!(hub.send("DELETE", "/api/v1/session", &[&vera, &own, JSON], "").status, 200);
        let answer = events.join().expect("an answer");
        assert_eq!(answer.header("content-type"), "text/event-stream");
        let messages = answer.body.matches("data: ").count();
        assert!(messages >= 2, "its id, and why it ended: {answer:?}");
        until("both have gone", || (viewers() == 0.0).then_some(()));
    });
    assert_eq!(poll(&hub, &vera, &viewer).status, 401);
}

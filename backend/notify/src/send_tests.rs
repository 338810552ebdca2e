//! The sender against local servers with the responses of real services.

use crate::address::{Allowed, Rule};
use crate::address_tests::{FakeNames, rule};
use crate::sample_tests::{AT, hostile, input, notice, test};
use crate::send::{Attempt, Outcome, Road, Sender};
use crate::settings::Settings;
use shared::alert::{ChannelInput, NoticeKind};
use shared::secret::Secret;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// Answers each connection in turn, and returns the received head and body.
fn server(at: &str, answers: Vec<String>) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind(at).expect("a port");
    let addr = listener.local_addr().expect("an address");
    let (tell, told) = mpsc::sync_channel(1_000);
    std::thread::spawn(move || {
        for (tcp, answer) in listener.incoming().zip(answers) {
            let Ok(mut tcp) = tcp else { return };
            let (mut request, mut piece) = (Vec::new(), [0; 4_096]);
            let whole = |request: &[u8]| {
                let text = String::from_utf8_lossy(request).to_ascii_lowercase();
                let (head, body) = text.split_once("\r\n\r\n")?;
                if head.starts_with("connect ") {
                    return Some(true);
                }
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
                Some(body.len() >= length.parse::<usize>().ok()?)
            };
            while whole(&request) != Some(true) {
                match tcp.read(&mut piece) {
                    Ok(n) if n > 0 => request.extend_from_slice(&piece[..n]),
                    _ => break,
                }
            }
            let _ = tell.send(String::from_utf8_lossy(&request).into_owned());
            let _ = tcp.write_all(answer.as_bytes());
        }
    });
    (addr, told)
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

fn channel(kind: &str, addresses: &[String]) -> Settings {
    let allowed = Allowed::parse(&["127.0.0.0/8"]).expect("entries");
    let mut input: ChannelInput = input(kind);
    if kind == "alertmanager" {
        input.addresses = addresses.iter().map(Secret::new).collect();
    } else {
        input.address = addresses.first().map(Secret::new);
    }
    Settings::check(&input, &allowed, true).expect("settings")
}

fn sender() -> Sender {
    let allowed = Allowed::parse(&["127.0.0.1/32"]).expect("entries");
    Sender::new(&Road { allowed, ..Road::default() }).expect("a sender")
}

const FIRST: Attempt = Attempt { now: AT, tries: 1, random: 0.5 };

fn sent(answer: String) -> Outcome {
    let (addr, _told) = server("127.0.0.1:0", vec![answer]);
    let settings = channel("slack", &[format!("http://{addr}/services/SECRET")]);
    let outcome = sender().send(&settings, &hostile(), FIRST);
    let sentence = outcome.sentence();
    for secret in ["SECRET", "127.0.0.1", &addr.port().to_string(), "answer's own words"] {
        assert!(!sentence.contains(secret), "{sentence}");
    }
    outcome
}

#[test]
fn every_answer_has_its_consequence() {
    for status in ["200 OK", "202 Accepted", "204 No Content"] {
        let outcome = sent(answer(status, "", ""));
        let Outcome::Done { sentence } = outcome else { panic!("{status}: {outcome:?}") };
        assert!(sentence.starts_with(&format!("accepted ({}) in ", &status[..3])), "{sentence}");
        assert!(sentence.ends_with("ms over IPv4"), "{sentence}");
    }
    for status in ["408 x", "425 x", "429 x", "500 x", "502 x", "503 x", "599 x"] {
        let outcome = sent(answer(status, "", "the answer's own words"));
        let Outcome::Again { after, sentence } = outcome else { panic!("{status}: {outcome:?}") };
        assert_eq!(after, Duration::from_secs(1));
        assert!(sentence.starts_with(&status[..3]) && sentence.ends_with(", retry in 1 s"), "{sentence}");
    }
    for (status, part) in [
        ("301 x", "do not follow redirects"),
        ("308 x", "do not follow redirects"),
        ("400 x", "it rejects messages of kind slack"),
        ("401 x", "enter a new secret"),
        ("403 x", "enter a new secret"),
        ("404 x", "the address does not exist"),
        ("410 x", "the address does not exist"),
        ("413 x", "messages of that size"),
        ("422 x", "it rejects messages of kind slack"),
    ] {
        let outcome = sent(answer(status, "location: http://127.0.0.1:9/\r\n", "the answer's own words"));
        let Outcome::GivenUp { sentence } = outcome else { panic!("{status}: {outcome:?}") };
        assert!(sentence.starts_with(&status[..3]) && sentence.contains(part), "{sentence}");
    }
}

#[test]
fn a_server_says_when_to_come_again() {
    for (header, seconds) in [("120", 120), ("999999", 3_600), ("soon", 1), ("0", 1)] {
        let outcome = sent(answer("429 x", &format!("retry-after: {header}\r\n"), ""));
        assert!(matches!(outcome, Outcome::Again { after, .. } if after.as_secs() == seconds), "{header}: {outcome:?}");
    }
    let outcome = sent(answer("503 x", "Retry-After: Mon, 23 Nov 2026 14:06:00 GMT\r\n", ""));
    assert!(
        matches!(&outcome, Outcome::Again { after, sentence } if after.as_secs() == 60
        && sentence.ends_with("retry in 1 min")),
        "{outcome:?}"
    );
}

#[test]
fn what_is_not_taken_for_a_day_is_given_up() {
    let (addr, _told) = server("127.0.0.1:0", vec![answer("502 x", "", ""); 2]);
    let settings = channel("slack", &[format!("http://{addr}/")]);
    let attempt = |now| Attempt { now, tries: 100, random: 0.5 };
    let outcome = sender().send(&settings, &notice(NoticeKind::Firing), attempt(AT + 3_600));
    assert!(outcome.sentence().ends_with(", tried 100 times, retry in 10 min"), "{outcome:?}");
    let outcome = sender().send(&settings, &notice(NoticeKind::Firing), attempt(AT + 86_000));
    assert!(
        matches!(&outcome, Outcome::GivenUp { sentence } if sentence.contains("given up after 1 d")),
        "{outcome:?}"
    );
}

#[test]
fn no_redirect_is_followed() {
    let (inner, reached) = server("127.0.0.1:0", vec![answer("200 OK", "", "")]);
    for status in ["301", "302", "303", "307", "308"] {
        let outcome = sent(answer(&format!("{status} x"), &format!("location: http://{inner}/\r\n"), ""));
        assert!(matches!(outcome, Outcome::GivenUp { .. }), "{outcome:?}");
    }
    assert!(reached.try_recv().is_err(), "somebody followed");
}

#[test]
fn what_breaks_off_or_listens_nowhere_is_tried_again() {
    for text in ["", "HTTP/1.1 200", "nonsense\r\n\r\n"] {
        let outcome = sent(text.into());
        assert!(matches!(outcome, Outcome::Again { .. }), "{text:?}: {outcome:?}");
    }
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let outcome = sender().send(&channel("slack", &[format!("http://{free}/")]), &test(), FIRST);
    assert!(matches!(&outcome, Outcome::Again { sentence, .. } if sentence == "connection refused"), "{outcome:?}");
}

#[test]
fn an_answer_without_end_is_read_no_further_than_64_kib() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address");
    let (tell, told) = mpsc::sync_channel(1_000);
    std::thread::spawn(move || {
        let (mut tcp, _) = listener.accept().expect("a connection");
        let mut written = 0_u64;
        let _ = tcp.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while tcp.write_all(&[b'x'; 4_096]).is_ok() && written < 1 << 30 {
            written += 4_096;
        }
        let _ = tell.send(written);
    });
    let outcome = sender().send(&channel("slack", &[format!("http://{addr}/")]), &test(), FIRST);
    assert!(matches!(outcome, Outcome::Done { .. }), "{outcome:?}");
    // Includes bytes in the system's own buffers.
    let written = told.recv_timeout(Duration::from_secs(10)).expect("it was cut off");
    assert!(written < 16 << 20, "{written} bytes");
}

#[test]
fn a_name_is_looked_up_once_and_what_passed_is_what_is_asked() {
    let (first, reached) = server("127.0.0.1:0", vec![answer("200 OK", "", "")]);
    let (_second, evil) = server(&format!("127.0.0.2:{}", first.port()), vec![answer("200 OK", "", "")]);
    // It resolves to an allowed address, and then to a forbidden one.
    let names = FakeNames::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let asked = names.asked.clone();
    let rule = Rule { allowed: Allowed::parse(&["127.0.0.1/32"]).expect("entries"), names: Box::new(names) };
    let mut sender = Sender::by_rule(&Road::default(), rule).expect("a sender");
    let settings = channel("slack", &[format!("http://rebind.example:{}/", first.port())]);
    let outcome = sender.send(&settings, &test(), FIRST);
    assert!(matches!(outcome, Outcome::Done { .. }), "{outcome:?}");
    assert_eq!(asked.load(Ordering::Relaxed), 1, "it was looked up between check and connection");
    let head = reached.recv_timeout(Duration::from_secs(5)).expect("a request").to_ascii_lowercase();
    assert!(head.contains(&format!("host: rebind.example:{}\r\n", first.port())), "{head}");
    // The next try resolves the name again, and is refused: no connection was kept open.
    let outcome = sender.send(&settings, &test(), FIRST);
    assert!(
        matches!(&outcome, Outcome::Again { sentence, .. } if sentence.contains("[alerts] allow_targets")),
        "{outcome:?}"
    );
    assert!(evil.try_recv().is_err(), "the wrong one was reached");
}

#[test]
fn of_mixed_answers_only_the_admitted_one_is_reached() {
    let (good, reached) = server("127.0.0.1:0", vec![answer("200 OK", "", "")]);
    let (_bad, evil) = server(&format!("127.0.0.2:{}", good.port()), vec![answer("200 OK", "", "")]);
    let rule = rule(&["127.0.0.1/32"], &[&["127.0.0.2", "127.0.0.3", "127.0.0.1"]]);
    let mut sender = Sender::by_rule(&Road::default(), rule).expect("a sender");
    let outcome = sender.send(&channel("slack", &[format!("http://mixed.example:{}/", good.port())]), &test(), FIRST);
    assert!(matches!(outcome, Outcome::Done { .. }), "{outcome:?}");
    assert!(reached.recv_timeout(Duration::from_secs(5)).is_ok() && evil.try_recv().is_err());
}

#[test]
fn an_address_that_refuses_does_not_cost_the_next_one_its_turn() {
    let (good, reached) = server("127.0.0.1:0", vec![answer("200 OK", "", "")]);
    let rule = rule(&["127.0.0.0/8"], &[&["127.0.0.9", "127.0.0.1"]]);
    let mut sender = Sender::by_rule(&Road::default(), rule).expect("a sender");
    let outcome = sender.send(&channel("slack", &[format!("http://two.example:{}/", good.port())]), &test(), FIRST);
    assert!(matches!(outcome, Outcome::Done { .. }), "{outcome:?}");
    assert!(reached.recv_timeout(Duration::from_secs(5)).is_ok());
}

#[test]
fn of_a_cluster_one_member_is_enough_and_each_is_told() {
    let (first, one) = server("127.0.0.1:0", vec![answer("503 x", "", "")]);
    let (second, two) = server("127.0.0.1:0", vec![answer("200 OK", "", "")]);
    let settings = channel("alertmanager", &[format!("http://{first}"), format!("http://{second}/am/")]);
    let outcome = sender().send(&settings, &notice(NoticeKind::Firing), FIRST);
    assert!(
        matches!(&outcome, Outcome::Done { sentence } if sentence.contains("by 1 of 2; another one: 503")),
        "{outcome:?}"
    );
    let told = [one, two].map(|told| told.recv_timeout(Duration::from_secs(5)).expect("a request"));
    assert!(told[0].starts_with("POST /api/v2/alerts ") && told[1].starts_with("POST /am/api/v2/alerts "), "{told:?}");
}

#[test]
fn by_a_proxy_the_name_goes_to_the_proxy_and_a_refused_one_does_not() {
    // The proxy refuses the credentials, so no TLS begins.
    let (proxy, asked) = server("127.0.0.1:0", vec![answer("407 x", "", "")]);
    let road = Road { proxy: Some(Secret::new(format!("http://me:pw@{proxy}"))), ..Road::default() };
    let mut sender = Sender::by_rule(&road, rule(&[], &[&["8.8.8.8"]])).expect("a sender");
    let settings = channel("slack", &["https://hooks.example.org/x".into()]);
    let outcome = sender.send(&settings, &test(), FIRST);
    assert!(matches!(&outcome, Outcome::Again { sentence, .. } if sentence.contains("407")), "{outcome:?}");
    assert!(!outcome.sentence().contains("pw"), "{outcome:?}");
    let head = asked.recv_timeout(Duration::from_secs(20)).expect("the proxy is asked");
    assert!(head.starts_with("CONNECT hooks.example.org:443 "), "{head}");
    let (proxy, asked) = server("127.0.0.1:0", vec![answer("200 OK", "", "")]);
    let road = Road { proxy: Some(Secret::new(format!("http://{proxy}"))), ..Road::default() };
    let mut sender = Sender::by_rule(&road, rule(&[], &[&["10.0.0.1"]])).expect("a sender");
    let outcome = sender.send(&settings, &test(), FIRST);
    assert!(outcome.sentence().contains("allow_targets") && asked.try_recv().is_err(), "{outcome:?}");
    for proxy in ["socks5://127.0.0.1:1", "127.0.0.1:1", "http://"] {
        let road = Road { proxy: Some(Secret::new(proxy)), ..Road::default() };
        let error = Sender::new(&road).expect_err(proxy);
        assert!(error.starts_with("[alerts] proxy: ") && !error.contains("127"), "{error}");
    }
}

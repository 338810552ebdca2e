//! Sessions from their owner's view.

use super::JSON;
use shared::me::OwnSessions;
use watchglass_tests::hub::{Hub, PASSWORD};

#[test]
fn a_session_says_by_what_it_was_begun_and_no_more_than_a_line_of_it() {
    let hub = Hub::start(["--no-local"]);
    let body = format!("{{\"name\":\"mike\",\"password\":\"{PASSWORD}\"}}");
    for agent in ["Mozilla/5.0 (X11; Linux x86_64) Firefox/150.0".to_string(), "x".repeat(4_000)] {
        let line = format!("User-Agent: {agent}");
        let answer = hub.send("POST", "/api/v1/session", &[&hub.origin(), JSON, &line], &body);
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let answer = hub.send("GET", "/api/v1/me/sessions", &[&hub.cookie("mike")], "");
    let sessions: OwnSessions = serde_json::from_str(&answer.body).expect("sessions");
    let mut agents: Vec<Option<String>> = sessions.sessions.into_iter().map(|session| session.agent).collect();
    agents.sort();
    let expected = [None, Some("Mozilla/5.0 (X11; Linux x86_64) Firefox/150.0".into()), Some("x".repeat(128))];
    assert_eq!(agents, expected, "the first was begun by nobody's browser");
    let export = hub.send("GET", "/api/v1/me/export", &[&hub.cookie("mike")], "");
    let export: serde_json::Value = serde_json::from_str(&export.body).expect("JSON");
    assert_eq!(
        (export["links"].as_array().map(Vec::len), export["views"].as_array().map(Vec::len)),
        (Some(1), Some(0))
    );
    assert!(!export.to_string().contains("argon2"), "no hash is told");
}

#[test]
fn who_is_unknown_is_answered_like_who_has_another_password() {
    let hub = Hub::start(["--no-local"]);
    let ask = |name: &str| {
        let body = format!("{{\"name\":\"{name}\",\"password\":\"not the right one\"}}");
        let answer = hub.send("POST", "/api/v1/session", &[&hub.origin(), JSON], &body);
        (answer.status, answer.body.clone(), answer.header("set-cookie").to_string())
    };
    let known = ask("mike");
    assert_eq!((known.0, known.2.as_str()), (401, ""), "{known:?}");
    assert_eq!(ask("nobody"), known);
    let disabled =
        hub.send("PATCH", "/api/v1/accounts/vera", &[&hub.cookie("root"), &hub.origin(), JSON], "{\"disabled\":true}");
    assert_eq!(disabled.status, 200, "{disabled:?}");
    assert_eq!(ask("vera"), known);
}

#[test]
fn a_session_that_was_planted_is_not_the_one_that_begins() {
    let hub = Hub::start(["--no-local"]);
    let body = format!("{{\"name\":\"ada\",\"password\":\"{PASSWORD}\"}}");
    let (name, own) = hub.cookies["mike"].split_once('=').expect("name and value");
    let planted = format!("Cookie: {name}={}", "x".repeat(own.len()));
    for cookie in [planted, hub.cookie("mike")] {
        let answer = hub.send("POST", "/api/v1/session", &[&cookie, &hub.origin(), JSON], &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        let set = answer.header("set-cookie").split(';').next().unwrap_or_default().to_string();
        assert!(set.starts_with(&format!("{name}=")) && !cookie.ends_with(&set), "a token of its own");
        let who = |line: &str| hub.send("GET", "/api/v1/me", &[line], "");
        assert_eq!(who(&cookie).status, 401, "what came along is worth nothing afterwards");
        assert!(who(&format!("Cookie: {set}")).body.contains("\"ada\""));
    }
}

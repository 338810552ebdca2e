//! Sessions as their owner sees them.

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

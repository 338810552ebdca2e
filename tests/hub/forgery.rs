//! A foreign page cannot make a browser change anything on a hub.

use super::JSON;
use watchglass_tests::hub::Hub;

const JOIN: &str = "/api/v1/teams/main/join";
const UPGRADE: [&str; 4] = [
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

#[test]
fn what_a_browser_sends_by_itself_counts_from_our_own_page_alone() {
    let hub = Hub::start(["--no-local", "--origin", "https://tools.example.org"]);
    let (cookie, own) = (hub.cookie("ada"), hub.origin());
    let status = |headers: &[&str]| hub.send("POST", JOIN, &[&[cookie.as_str(), JSON], headers].concat(), "{}").status;
    assert_eq!(status(&[&own]), 201);
    assert_eq!(status(&[&own, "Sec-Fetch-Site: same-origin"]), 201);
    assert_eq!(status(&[]), 403, "a browser says from where a form is sent");
    assert_eq!(status(&[&own, &own]), 403);
    let port = hub.server.addr().port();
    for foreign in [
        "http://evil.test".to_string(),
        "null".to_string(),
        own.trim_start_matches("Origin: ").replace("http:", "https:"),
        format!("http://127.0.0.1:{}", port.wrapping_add(1)),
        format!("http://localhost:{port}"),
        format!("http://127.0.0.1:{port}.evil.test"),
        "https://tools.example.org".to_string(),
    ] {
        assert_eq!(status(&[&format!("Origin: {foreign}")]), 403, "{foreign}");
    }
    for site in ["cross-site", "same-site", "none"] {
        assert_eq!(status(&[&own, &format!("Sec-Fetch-Site: {site}")]), 403, "{site}");
    }
}

#[test]
fn a_form_cannot_be_told_for_json() {
    let hub = Hub::start(["--no-local"]);
    let (cookie, own) = (hub.cookie("ada"), hub.origin());
    let status = |headers: &[&str]| hub.send("POST", JOIN, &[&[cookie.as_str(), &own], headers].concat(), "{}").status;
    assert_eq!(status(&[]), 415);
    for mime in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a"] {
        assert_eq!(status(&[&format!("Content-Type: {mime}")]), 415, "{mime}");
    }
    let large = format!("{{\"expires\":\"{}\"}}", "9".repeat(70_000));
    assert_eq!(hub.send("POST", JOIN, &[&cookie, &own, JSON], &large).status, 413);
    // GET requests change nothing.
    let before = hub.send("GET", JOIN, &[&cookie], "").body;
    for trick in ["X-HTTP-Method-Override: POST", "X-Method-Override: DELETE"] {
        assert_eq!(hub.send("GET", JOIN, &[&cookie, &own, trick, JSON], "{}").status, 200);
    }
    assert_eq!(hub.send("GET", JOIN, &[&cookie], "").body, before);
}

#[test]
fn a_key_is_judged_alone_and_needs_no_origin() {
    let hub = Hub::start(["--no-local"]);
    let (cookie, team, data) = (hub.cookie("ada"), hub.key("team"), hub.key("data"));
    let status = |headers: &[&str]| hub.send("POST", JOIN, &[&[JSON], headers].concat(), "{}").status;
    assert_eq!(status(&[&team]), 201);
    assert_eq!(status(&[&data, &cookie, &hub.origin()]), 403, "the cookie beside it does not count");
    assert_eq!(status(&["Authorization: Bearer wg_s_nonsense", &cookie, &hub.origin()]), 401);
    assert_eq!(status(&["Authorization: Bearer", &cookie, &hub.origin()]), 401);
    assert_eq!(status(&[&team, &team]), 400, "which of two counts is a matter of taste");
}

#[test]
fn signing_in_as_somebody_else_is_an_attack_too() {
    let hub = Hub::start(["--no-local"]);
    let body = "{\"name\":\"ada\",\"password\":\"correct horse battery\"}";
    for path in ["/api/v1/session", "/api/v1/session/setup"] {
        for headers in [&[JSON][..], &[JSON, "Origin: http://evil.test"], &[JSON, "Origin: null"]] {
            assert_eq!(hub.send("POST", path, headers, body).status, 403, "{path} {headers:?}");
        }
    }
    assert_eq!(hub.send("DELETE", "/api/v1/session", &[&hub.cookie("ada"), JSON], "").status, 403);
    assert_eq!(hub.send("GET", "/api/v1/sources", &[&hub.cookie("ada")], "").status, 200, "still signed in");
}

#[test]
fn a_stream_is_opened_by_our_own_page_or_by_a_key() {
    let hub = Hub::start(["--no-local"]);
    let (cookie, own, key) = (hub.cookie("vera"), hub.origin(), hub.key("data"));
    let status = |headers: &[&str]| hub.send("GET", "/api/v1/live", &[&UPGRADE[..], headers].concat(), "").status;
    assert_eq!(status(&[&cookie, &own]), 101);
    assert_eq!(status(&[&cookie]), 403);
    assert_eq!(status(&[&cookie, "Origin: http://evil.test"]), 403);
    assert_eq!(status(&[&key]), 101);
    assert_eq!(status(&[&hub.key("metrics")]), 403);
    assert_eq!(status(&[]), 401);
}

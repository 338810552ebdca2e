//! A share link, as whoever has it uses it.

use super::JSON;
use super::sockets::{ended, open};
use watchglass_tests::hub::Hub;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_shows_one_view_to_whoever_has_it_until_it_is_taken_back() {
    // It measures its own machine, so that there is something to show.
    let hub = Hub::start([]);
    let (mike, origin) = (hub.cookie("mike"), hub.origin());
    let made = hub.send("POST", "/api/v1/shares", &[&mike, &origin, JSON], "{\"query\":\"w=5m\"}");
    assert_eq!(made.status, 201, "{made:?}");
    let made: shared::views::MadeShare = serde_json::from_str(&made.body).expect("a link");
    let (_, code) = made.url.reveal().split_once("#share=").expect("the code is in the fragment");
    let body = format!("{{\"code\":\"{code}\"}}");
    let foreign = hub.send("POST", "/api/v1/shares/open", &["Origin: https://evil.example", JSON], &body);
    assert_eq!(foreign.status, 403, "another site opens nothing");
    let opened = hub.send("POST", "/api/v1/shares/open", &[&origin, JSON], &body);
    assert_eq!(opened.status, 200, "{opened:?}");
    let set = opened.header("set-cookie").to_string();
    assert!(set.contains(&made.id) && set.contains("HttpOnly") && set.contains("SameSite=Strict"), "{set}");
    let session: shared::session::Session = serde_json::from_str(&opened.body).expect("a session");
    assert_eq!((session.share.as_deref(), session.account), (Some(made.id.as_str()), None));
    assert_eq!(session.shared.expect("what it shows").query, "w=5m");

    let cookie = format!("Cookie: {}", set.split(';').next().expect("name and value"));
    let sources = hub.send("GET", "/api/v1/sources", &[&cookie], "");
    assert!(sources.status == 200 && sources.body.contains("\"key\""), "{sources:?}");
    for path in ["/api/v1/processes", "/api/v1/export?tag=*", "/api/v1/views", "/api/v1/me", "/api/v1/teams/main"] {
        assert_eq!(hub.send("GET", path, &[&cookie], "").status, 403, "{path}");
    }
    let past = hub.send("GET", "/api/v1/query?tag=*&from=-2h&to=-1h", &[&cookie], "");
    assert_eq!(past.status, 403, "before its window: {past:?}");
    // Who is signed in as well is shown the link where the request names it.
    let both = format!("{}; {}", hub.cookie("olga"), set.split(';').next().expect("name and value"));
    let seen = |path: &str| hub.send("GET", path, &[&both], "").body.contains("\"key\"");
    assert!(!seen("/api/v1/sources") && seen(&format!("/api/v1/sources?share={}", made.id)));

    let stream = open(&hub, "", &[cookie.clone(), origin.clone()]).await;
    let taken = hub.send("DELETE", &format!("/api/v1/shares/{}", made.id), &[&mike, &origin, JSON], "");
    assert_eq!(taken.status, 200, "{taken:?}");
    let (goodbye, close) = ended(stream).await;
    assert_eq!(goodbye.as_deref(), Some("this link was taken back"));
    assert!(close.is_some_and(|close| u16::from(close.code) == 1008));
    assert_eq!(hub.send("GET", "/api/v1/sources", &[&cookie], "").status, 401);
}

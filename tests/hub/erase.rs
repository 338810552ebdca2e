//! An erased person's name appears nowhere, while their actions stay in the log.

use super::JSON;
use super::sockets::{ended, open};
use std::process::Output;
use watchglass_tests::hub::Hub;
use watchglass_tests::server::watchglass;

fn erase(hub: &Hub, args: &[&str]) -> Output {
    let mut command = watchglass(["erase"]);
    command.args(args).arg("--data-dir").arg(hub.folder.path()).output().expect("the binary starts")
}

/// All data that the hub shows an admin: the log, accounts, members, views, links, keys.
fn everything(hub: &Hub) -> Vec<(String, String)> {
    let paths = [
        "audit?limit=1000",
        "accounts",
        "teams/main",
        "teams/main/invites",
        "teams/main/keys",
        "shares?team=main",
        "views?team=main",
    ];
    let ask = |path: &str| {
        let path = format!("/api/v1/{path}");
        let answer = hub.send("GET", &path, &[&hub.cookie("root")], "");
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        (path, answer.body)
    };
    paths.into_iter().map(ask).collect()
}

/// Whether a text has this name as a word. The letters of an id may spell a short name by chance.
fn has_name(text: &str, name: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == name)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_who_is_erased_is_named_nowhere_and_what_they_did_stays() {
    let hub = Hub::start([]);
    let (mike, ada, origin) = (hub.cookie("mike"), hub.cookie("ada"), hub.origin());
    let own = [mike.as_str(), &origin, JSON];
    // Actions that store a name: a view of the team, a link, an invitation, an address, a wrong password.
    for (method, path, body) in [
        ("POST", "/api/v1/views", "{\"name\":\"nights\",\"query\":\"w=5m\",\"scope\":\"team\"}"),
        ("POST", "/api/v1/shares", "{\"query\":\"w=5m\"}"),
        ("POST", "/api/v1/teams/main/invites", "{\"role\":\"viewer\"}"),
        ("PATCH", "/api/v1/me", "{\"email\":\"mike@example.org\"}"),
        ("POST", "/api/v1/session/again", "{\"password\":\"a wrong password\"}"),
    ] {
        let answer = hub.send(method, path, &own, body);
        assert!([200, 201, 401].contains(&answer.status), "{path}: {answer:?}");
    }
    // More than an hour of samples, read with a key of their own.
    assert_eq!(hub.send("GET", "/api/v1/export?tag=*&from=-2h", &[&hub.key("own")], "").status, 200);
    let page = open(&hub, "", &[mike.clone(), origin.clone()]).await;
    let of_key = open(&hub, "", &[hub.key("own")]).await;
    let before = everything(&hub);
    assert!(before.iter().filter(|(_, body)| has_name(body, "mike")).count() >= 5, "he is named");
    let rows = |all: &[(String, String)]| all[0].1.matches("\"action\"").count();

    for (who, headers) in [("an admin of a team", vec![ada.as_str(), &origin, JSON]), ("himself", own.to_vec())] {
        assert_eq!(hub.send("POST", "/api/v1/accounts/mike/erase", &headers, "{}").status, 403, "{who}");
    }
    let done = erase(&hub, &["--user", "mike"]);
    assert!(done.status.success(), "{done:?}");
    assert!(String::from_utf8_lossy(&done.stdout).contains("erased-"), "{done:?}");
    for stream in [page, of_key] {
        let (_, close) = ended(stream).await;
        assert!(close.is_some_and(|close| u16::from(close.code) == 1008));
    }
    for who in [&mike, &hub.key("own")] {
        assert_eq!(hub.send("GET", "/api/v1/sources", &[who], "").status, 401);
    }
    let after = everything(&hub);
    for (path, body) in &after {
        assert!(!has_name(body, "mike"), "{path}: {body}");
    }
    assert!(rows(&after) > rows(&before) && after[0].1.contains("erased-"), "the rows stay, and one says so");
    assert!(after[6].1.contains("nights"), "what is the team's stays");

    // A person who was removed before is only in the log.
    let headers = [hub.cookie("root"), origin.clone(), JSON.to_string()];
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    assert_eq!(hub.send("DELETE", "/api/v1/accounts/vera", &headers, "").status, 200);
    assert!(has_name(&everything(&hub)[0].1, "vera"));
    assert_eq!(hub.send("POST", "/api/v1/accounts/vera/erase", &headers, "{}").status, 200);
    assert!(!everything(&hub).iter().any(|(_, body)| has_name(body, "vera")));
    assert_eq!(hub.send("POST", "/api/v1/accounts/vera/erase", &headers, "{}").status, 404, "nothing names her");
    let last = erase(&hub, &["--user", "root"]);
    assert_eq!(last.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&last.stderr).contains("last admin of the hub"), "{last:?}");
    assert_eq!(erase(&hub, &[]).status.code(), Some(2), "it says whom");
}

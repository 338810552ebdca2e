//! Notes are written by members about their machines and runs, read by everybody who sees those, and changed by their
//! writers and admins alone.

use super::JSON;
use serde_json::{Value, json};
use watchglass_tests::hub::Hub;
use watchglass_tests::server::{Server, ServerAnswer, ask_with, watchglass};
use watchglass_tests::waiting::until;

const PATH: &str = "/api/v1/notes";

/// Sends a request as somebody, from our own page.
fn ask(hub: &Hub, by: &str, method: &str, path: &str, body: &Value) -> ServerAnswer {
    hub.send(method, path, &[&hub.cookie(by), &hub.origin(), JSON], &body.to_string())
}

fn list(hub: &Hub, by: &str, query: &str) -> Vec<Value> {
    let answer = hub.send("GET", &format!("{PATH}{query}"), &[&hub.cookie(by)], "");
    assert_eq!(answer.status, 200, "{by}: {}", answer.body);
    let all: Value = serde_json::from_str(&answer.body).expect("JSON");
    all["notes"].as_array().expect("a list").clone()
}

/// Adds a note as somebody, and returns its id.
fn added(hub: &Hub, by: &str, body: &Value) -> String {
    let answer = ask(hub, by, "POST", PATH, body);
    assert_eq!(answer.status, 201, "{by}: {}", answer.body);
    let note: Value = serde_json::from_str(&answer.body).expect("JSON");
    note["id"].as_str().expect("an id").to_string()
}

#[test]
fn a_note_is_its_writers_and_read_by_who_sees_its_machine() {
    let hub = Hub::start(["--collectors", "cpu"]);
    until("the machine", || {
        let body = hub.send("GET", "/api/v1/sources", &[&hub.cookie("mike")], "").body;
        let all: Value = serde_json::from_str(&body).ok()?;
        (all["sources"].as_array()?.len() == 1).then_some(())
    });
    let note = json!({ "text": "new PSU\nin rack 3" });
    for (by, status) in [("vera", 403), ("olga", 400)] {
        let answer = ask(&hub, by, "POST", PATH, &note);
        assert_eq!(answer.status, status, "{by}: {}", answer.body);
    }
    let key = |name: &str| format!("Authorization: Bearer {}", hub.keys[name]);
    for name in ["data", "views", "alerts"] {
        assert_eq!(hub.send("POST", PATH, &[&key(name), JSON], &note.to_string()).status, 403, "{name}");
    }
    let by_link = hub.send("POST", PATH, &[&hub.link, &hub.origin(), JSON], &note.to_string());
    assert!([401, 403].contains(&by_link.status), "{}", by_link.body);
    assert!([401, 403].contains(&hub.send("GET", PATH, &[&hub.link], "").status), "a link shows no names of people");
    assert_eq!(hub.send("POST", PATH, &[JSON], &note.to_string()).status, 401);
    let foreign = [&*hub.cookie("mike"), "Origin: https://evil.example", JSON];
    assert_eq!(hub.send("POST", PATH, &foreign, &note.to_string()).status, 403);
    assert_eq!(hub.send("POST", PATH, &[&hub.cookie("mike"), &hub.origin()], &note.to_string()).status, 415);
    let id = added(&hub, "mike", &note);
    let by_key = hub.send(
        "POST",
        PATH,
        &[&key("runs"), JSON],
        &json!({ "text": "deployed", "t": 1_000, "end": 2_000 }).to_string(),
    );
    assert_eq!(by_key.status, 201, "{}", by_key.body);
    let [shown] = &list(&hub, "vera", "?from=-1h")[..] else { panic!("one is of now") };
    assert_eq!((&shown["text"], &shown["by"], &shown["own"]), (&note["text"], &"mike".into(), &Value::Null));
    assert_eq!(list(&hub, "vera", "?from=1500&to=1600").len(), 1, "a span that goes on then");
    assert_eq!(list(&hub, "vera", "?from=0&q=RACK").len(), 1);
    assert_eq!(list(&hub, "olga", "?from=0").len(), 0, "who does not see the machine");
    for (wrong, why) in [
        (json!({ "text": " " }), "no text"),
        (json!({ "text": "a\u{1b}[31m" }), "control characters"),
        (json!({ "text": "n".repeat(2_049) }), "at most 2048 bytes"),
        (json!({ "text": "x", "t": 9e12 }), "not in the future"),
        (json!({ "text": "x", "t": 20, "end": 10 }), "end is before t"),
        (json!({ "text": "x", "by": "root" }), "unknown field"),
    ] {
        let answer = ask(&hub, "mike", "POST", PATH, &wrong);
        assert!(answer.status == 400 && answer.error().contains(why), "{wrong}: {}", answer.body);
    }
    assert_eq!(ask(&hub, "mike", "POST", PATH, &json!({ "text": "x", "source": "none" })).status, 404);
    assert_eq!(ask(&hub, "mike", "POST", PATH, &json!({ "text": "x", "run": "a/b" })).status, 404);
    assert_eq!(ask(&hub, "mike", "POST", PATH, &json!({ "text": "n".repeat(70_000) })).status, 413);
    // Its writer and admins change it, and the second of two is told so.
    let one = format!("{PATH}/{id}");
    let change = json!({ "text": "new PSU in rack 4", "version": 1 });
    for (by, status) in [("vera", 403), ("olga", 404)] {
        assert_eq!(ask(&hub, by, "PUT", &one, &change).status, status, "{by}");
        assert_eq!(ask(&hub, by, "DELETE", &one, &json!({})).status, status, "{by}");
    }
    assert_eq!(
        hub.send("DELETE", &one, &[&key("runs"), JSON], "{}").status,
        403,
        "a key of the team is another writer"
    );
    assert_eq!(ask(&hub, "mike", "PUT", &one, &change).status, 200);
    assert_eq!(ask(&hub, "ada", "PUT", &one, &change).status, 409);
    assert_eq!(ask(&hub, "ada", "DELETE", &one, &json!({})).status, 200);
    assert_eq!(ask(&hub, "ada", "DELETE", &one, &json!({})).status, 404);
    let log = hub.send("GET", "/api/v1/audit?team=main&action=note.", &[&hub.cookie("ada")], "").body;
    assert!(log.contains("note.add") && log.contains("note.change") && log.contains("note.remove"), "{log}");
}

#[test]
fn notes_about_a_run_stand_in_its_report_and_go_with_it_and_outlive_a_restart() {
    let hub = Hub::start(["--collectors", "cpu,process"]);
    let mut job = watchglass(["run", "--id", "one", "--data-dir"]);
    job.arg(hub.folder.path()).args(["--", "true"]);
    job.env_remove("WATCHGLASS_RUN_ID").env_remove("WATCHGLASS_SOCKET");
    job.output().expect("it ran");
    until("the end of the run", || {
        let body = hub.send("GET", "/api/v1/runs/one", &[&hub.cookie("vera")], "").body;
        body.contains("\"finished\"").then_some(())
    });
    added(&hub, "mike", &json!({ "text": "<b>the best</b> so far", "run": "one" }));
    added(&hub, "mike", &json!({ "text": "about the machine" }));
    let report =
        |format: &str| hub.send("GET", &format!("/api/v1/runs/one/report?format={format}"), &[&hub.cookie("vera")], "");
    let document: Value = serde_json::from_str(&report("json").body).expect("JSON");
    assert_eq!(
        (&document["notes"][0]["text"], &document["notes"][0]["by"]),
        (&"<b>the best</b> so far".into(), &"mike".into())
    );
    let exported = hub.send("GET", "/api/v1/export?format=json&tag=cpu&from=-1h", &[&hub.cookie("vera")], "").body;
    assert!(exported.contains("\"record\":\"note\"") && exported.contains("about the machine"), "{exported}");
    let html = report("html").body;
    assert!(html.contains("&lt;b&gt;the best&lt;/b&gt; so far") && !html.contains("<b>the best"), "{html}");
    let Hub { server, cookies, keys, link, folder } = hub;
    let port = server.addr().port();
    assert!(server.end_by("TERM").success());
    let server = Hub::server_at(folder.path(), port, ["--collectors", "cpu,process"], Vec::new());
    let hub = Hub { server, cookies, keys, link, folder };
    assert_eq!(list(&hub, "vera", "?run=one").len(), 1);
    assert_eq!(ask(&hub, "ada", "DELETE", "/api/v1/runs/one", &json!({})).status, 200);
    let left = list(&hub, "vera", "");
    assert_eq!(left.iter().map(|note| &note["text"]).collect::<Vec<_>>(), ["about the machine"]);
}

/// Sends a request to a server without accounts, as a program of its owner.
fn send(server: &Server, method: &str, path: &str, body: &Value) -> ServerAnswer {
    let (addr, body) = (server.addr(), body.to_string());
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {addr}\r\n{JSON}\r\nContent-Length: {}\r\n", body.len());
    ask_with(addr, &head, &body)
}

#[test]
fn a_server_alone_keeps_notes_of_its_owner_with_a_folder_or_in_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().to_str().expect("plain letters");
    for args in [vec!["--collectors", "cpu", "--memory"], vec!["--collectors", "cpu", "--data-dir", data]] {
        let server = Server::start(args.iter().copied());
        let made = send(&server, "POST", PATH, &json!({ "text": "a note" }));
        assert_eq!(made.status, 201, "{}", made.body);
        let note: Value = serde_json::from_str(&made.body).expect("JSON");
        assert_eq!((&note["text"], &note["own"]), (&"a note".into(), &true.into()));
        assert!(server.get(PATH, &[]).body.contains("a note"));
        let one = format!("{PATH}/{}", note["id"].as_str().expect("an id"));
        assert_eq!(send(&server, "PUT", &one, &json!({ "text": "another", "version": 1 })).status, 200);
        assert_eq!(send(&server, "PUT", &one, &json!({ "text": "late", "version": 1 })).status, 409);
        server.end_by("TERM");
    }
    let server = Server::start(["--collectors", "cpu", "--data-dir", data]);
    let kept = until("the note of before", || {
        let body = server.get(PATH, &[]).body;
        body.contains("another").then_some(body)
    });
    assert!(!kept.contains("late"), "{kept}");
}

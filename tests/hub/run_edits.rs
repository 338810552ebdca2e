//! Runs are changed and deleted by their makers and by admins of their team, and by nobody else.

use super::JSON;
use serde_json::{Value, json};
use watchglass_tests::hub::Hub;
use watchglass_tests::server::{ServerAnswer, watchglass};
use watchglass_tests::waiting::until;

/// Runs a job to its end on the hub's own machine, and waits until the hub lists it. A job whose ID a run had before
/// gets one of its own.
fn ended(hub: &Hub, id: &str) -> Value {
    let mut job = watchglass(["run", "--logs", "--id", id, "--name", "first", "--tag", "lr=1", "--data-dir"]);
    job.arg(hub.folder.path()).args(["--", "sh", "-c", "echo the words of the job; exit 3"]);
    job.env_remove("WATCHGLASS_RUN_ID").env_remove("WATCHGLASS_SOCKET");
    let said = String::from_utf8_lossy(&job.output().expect("it ran").stderr).into_owned();
    let id = said.split_once("this one is ").map_or(id, |(_, own)| own.split_whitespace().next().unwrap_or(id));
    until("the end of the run", || {
        let answer = get(hub, "ada", id);
        let run: Value = serde_json::from_str(&answer.body).ok()?;
        (run["sentence"] == "failed (exit 3)").then_some(run)
    })
}

fn get(hub: &Hub, by: &str, id: &str) -> ServerAnswer {
    hub.send("GET", &format!("/api/v1/runs/{id}"), &[&hub.cookie(by)], "")
}

/// Sends a request about a run as somebody, from our own page.
fn ask(hub: &Hub, by: &str, method: &str, id: &str, body: &Value) -> ServerAnswer {
    hub.send(method, &format!("/api/v1/runs/{id}"), &[&hub.cookie(by), &hub.origin(), JSON], &body.to_string())
}

fn hub() -> Hub {
    Hub::start(["--collectors", "cpu,process"])
}

#[test]
fn a_run_is_changed_by_members_of_its_team_alone() {
    let hub = hub();
    ended(&hub, "one");
    let named = json!({ "name": "second" });
    for (by, status) in [("vera", 403), ("olga", 404)] {
        let answer = ask(&hub, by, "PATCH", "one", &named);
        assert_eq!(answer.status, status, "{by}: {}", answer.body);
    }
    let path = "/api/v1/runs/one";
    let key = |name: &str| format!("Authorization: Bearer {}", hub.keys[name]);
    let by_link = hub.send("PATCH", path, &[&hub.link, &hub.origin(), JSON], &named.to_string());
    assert!([401, 403].contains(&by_link.status), "{}", by_link.body);
    for name in ["data", "views", "own"] {
        assert_eq!(hub.send("PATCH", path, &[&key(name), JSON], &named.to_string()).status, 403, "{name}");
    }
    assert_eq!(hub.send("PATCH", path, &[JSON], &named.to_string()).status, 401);
    let foreign =
        hub.send("PATCH", path, &[&hub.cookie("mike"), "Origin: https://evil.example", JSON], &named.to_string());
    assert_eq!(foreign.status, 403, "{}", foreign.body);
    assert_eq!(hub.send("PATCH", path, &[&hub.cookie("mike"), &hub.origin()], &named.to_string()).status, 415);
    let run: Value = serde_json::from_str(&get(&hub, "vera", "one").body).expect("JSON");
    assert_eq!((&run["name"], &run["may"]["change"], &run["edited"]), (&"first".into(), &false.into(), &Value::Null));
    // Nobody is known as its maker, so each member may change it.
    let changed = ask(&hub, "mike", "PATCH", "one", &json!({ "name": "second", "tags": { "lr": "2" }, "version": 0 }));
    let run: Value = serde_json::from_str(&changed.body).expect("JSON");
    assert_eq!((changed.status, &run["name"], &run["tags"]["lr"]), (200, &"second".into(), &"2".into()), "{run}");
    assert_eq!((&run["edited"]["by"], &run["edited"]["version"]), (&"mike".into(), &1.into()));
    // Somebody who has loaded the run before is told so.
    let late = ask(&hub, "ada", "PATCH", "one", &json!({ "name": "third", "version": 0 }));
    assert!(late.status == 409 && late.error().contains("somebody else"), "{}", late.body);
    let by_key = hub.send("PATCH", path, &[&key("runs"), JSON], &json!({ "notes": "kept\nfor later" }).to_string());
    assert_eq!(by_key.status, 200, "{}", by_key.body);
    let listed: Value =
        serde_json::from_str(&hub.send("GET", "/api/v1/runs", &[&hub.cookie("vera")], "").body).expect("JSON");
    let row = &listed["runs"][0];
    assert_eq!((&row["name"], &row["notes"]), (&"second".into(), &"kept\nfor later".into()));
    let report = hub.send("GET", "/api/v1/runs/one/report?format=json", &[&hub.cookie("vera")], "");
    let report: Value = serde_json::from_str(&report.body).expect("JSON");
    assert_eq!(report["name"], "second");
    // The audit log has the old and the new names.
    let log = hub.send("GET", "/api/v1/audit?team=main&action=run.", &[&hub.cookie("ada")], "").body;
    assert!(log.contains("run.change") && log.contains("first") && log.contains("second"), "{log}");
    for (wrong, why) in [
        (json!({}), "the change is empty"),
        (json!({ "name": "a\u{1b}[31m" }), "control characters"),
        (json!({ "name": "n".repeat(1_025) }), "at most 1024 bytes"),
        (json!({ "tags": { "": "x" } }), "has a name"),
        (json!({ "project": "x" }), "unknown field"),
        (json!({ "state": "finished" }), "unknown field"),
    ] {
        let answer = ask(&hub, "mike", "PATCH", "one", &wrong);
        assert!(answer.status == 400 && answer.error().contains(why), "{wrong}: {}", answer.body);
    }
    let large = ask(&hub, "mike", "PATCH", "one", &json!({ "notes": "n".repeat(70_000) }));
    assert_eq!(large.status, 413, "{}", large.body);
    for id in ["none", "a%2Fb", "..%2Fone", "one%00", &"x".repeat(65)] {
        for method in ["PATCH", "DELETE"] {
            let status = ask(&hub, "ada", method, id, &named).status;
            assert!([400, 404].contains(&status), "{method} {id}: {status}");
        }
    }
}

#[test]
fn a_deleted_run_is_gone_for_everybody_and_does_not_come_back() {
    let hub = hub();
    let user = ended(&hub, "one")["user"].as_str().expect("a user").to_string();
    let gone = |hub: &Hub| {
        for path in ["", "/report", "/logs"] {
            let answer = hub.send("GET", &format!("/api/v1/runs/one{path}"), &[&hub.cookie("ada")], "");
            assert_eq!(answer.status, 404, "{path}: {}", answer.body);
        }
        assert!(!hub.send("GET", "/api/v1/runs?sums=true", &[&hub.cookie("ada")], "").body.contains("\"one\""));
    };
    let empty = json!({});
    for (by, status) in [("vera", 403), ("mike", 403), ("olga", 404)] {
        assert_eq!(ask(&hub, by, "DELETE", "one", &empty).status, status, "{by}");
    }
    let key = format!("Authorization: Bearer {}", hub.keys["runs"]);
    assert_eq!(hub.send("DELETE", "/api/v1/runs/one", &[&key, JSON], "{}").status, 403, "a program is no maker");
    let foreign = [&hub.cookie("ada"), "Origin: https://evil.example", JSON];
    assert_eq!(hub.send("DELETE", "/api/v1/runs/one", &foreign, "{}").status, 403);
    // The member whose login has run the job is its maker.
    let logins = json!({ "logins": [user] }).to_string();
    let lines = [&*hub.cookie("ada"), &*hub.origin(), JSON];
    assert_eq!(hub.send("PUT", "/api/v1/teams/main/members/mike", &lines, &logins).status, 200);
    let run: Value = serde_json::from_str(&get(&hub, "mike", "one").body).expect("JSON");
    assert_eq!(run["may"], json!({ "change": true, "delete": true }));
    let done = ask(&hub, "mike", "DELETE", "one", &empty);
    assert_eq!(done.status, 200, "{}", done.body);
    gone(&hub);
    assert_eq!(ask(&hub, "ada", "DELETE", "one", &empty).status, 404, "once");
    let log = hub.send("GET", "/api/v1/audit?team=main&action=run.", &[&hub.cookie("ada")], "").body;
    assert!(log.contains("run.delete") && log.contains("mike"), "{log}");
    let Hub { server, cookies, keys, link, folder } = hub;
    let port = server.addr().port();
    assert!(server.end_by("TERM").success());
    let server = Hub::server_at(folder.path(), port, ["--collectors", "cpu,process"], Vec::new());
    let hub = Hub { server, cookies, keys, link, folder };
    gone(&hub);
    // The same ID again is a new run under an ID of its own, without what was deleted.
    let again = ended(&hub, "one");
    assert_eq!((again["processes"].as_array().map(Vec::len), &again["name"]), (Some(1), &"first".into()));
}

//! Members and keys submit runs, events, markers and values at the hub, and the agent of the machine stores them.

use super::JSON;
use super::machine::Machine;
use serde_json::{Value, json};
use watchglass_tests::hub::Hub;
use watchglass_tests::server::ServerAnswer;
use watchglass_tests::waiting::until;

fn read(answer: &ServerAnswer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
}

/// Sends a request with the key of a program that may write runs.
fn by_key(hub: &Hub, path: &str, body: &Value) -> ServerAnswer {
    hub.send("POST", &format!("/api/v1/{path}"), &[&hub.key("runs"), JSON], &body.to_string())
}

/// The answer to a viewer at a path.
fn seen(hub: &Hub, path: &str) -> Value {
    read(&hub.send("GET", &format!("/api/v1/{path}"), &[&hub.cookie("vera")], ""))
}

/// Submits all kinds for a machine, and checks what the hub shows of them.
fn are_stored(hub: &Hub, machine: &str) {
    let begin = json!({ "id": "etl-1", "name": "nightly", "program": "etl" });
    let begun = until("the machine has joined, and the run is taken", || {
        let answer = by_key(hub, &format!("runs?source={machine}"), &begin);
        (![404, 503].contains(&answer.status)).then_some(answer)
    });
    assert_eq!((begun.status, &read(&begun)["id"]), (201, &"etl-1".into()), "{begun:?}");
    // A repetition changes nothing, and is not audited.
    assert_eq!(by_key(hub, &format!("runs?source={machine}"), &begin).status, 200);
    let run = until("the hub lists the run", || {
        let run = seen(hub, "runs/etl-1");
        (run["state"] == "running").then_some(run)
    });
    assert_eq!((&run["sent_by"], &run["user"], &run["hosts"][0]), (&"key runs".into(), &Value::Null, &machine.into()));
    let marker = json!({ "kind": "epoch", "text": "epoch 3", "run": "etl-1", "id": "m1" });
    for _ in 0..2 {
        let taken = by_key(hub, "markers", &marker);
        assert_eq!((taken.status, &read(&taken)["taken"]), (200, &1.into()), "its run names the machine: {taken:?}");
    }
    let markers = until("the hub lists the marker", || {
        let all = seen(hub, "markers?run=etl-1")["markers"].as_array().cloned()?;
        (!all.is_empty()).then_some(all)
    });
    assert_eq!((markers.len(), &markers[0]["sent_by"]), (1, &"key runs".into()), "{markers:?}");
    until("the value is a sample of the hub", || {
        let taken = by_key(hub, "values", &json!({ "values": { "loss": 0.41 }, "run": "etl-1" }));
        assert_eq!(taken.status, 200, "{taken:?}");
        let found = hub.send("GET", "/api/v1/query?tag=job.loss&from=-1m", &[&hub.cookie("vera")], "");
        // A time may have these digits, too.
        found.body.contains(",0.41]").then_some(())
    });
    let event = |event: &Value| by_key(hub, "runs/etl-1/events", event);
    assert_eq!(event(&json!({ "event": "heartbeat" })).status, 200);
    assert_eq!(event(&json!({ "event": "end", "exit": 0 })).status, 200);
    until("it has ended", || (seen(hub, "runs/etl-1")["state"] == "finished").then_some(()));
    assert_eq!(event(&json!({ "event": "heartbeat" })).status, 404, "it has ended");
    assert_eq!(event(&json!({ "event": "end", "exit": 0 })).status, 200, "a repetition of what was not answered");
    let log = read(&hub.send("GET", "/api/v1/audit?team=main&action=run.", &[&hub.cookie("ada")], ""));
    let rows = log["entries"].as_array().expect("rows").iter();
    let mut rows: Vec<_> =
        rows.map(|row| (row["action"].as_str(), row["who"].as_str(), row["after"].as_str())).collect();
    rows.reverse();
    assert_eq!(
        rows,
        [("run.add", machine), ("run.end", machine)].map(|(what, on)| (Some(what), Some("key runs"), Some(on)))
    );
}

#[test]
fn a_key_and_members_submit_what_the_agent_of_the_machine_stores() {
    let hub = Hub::start(["--collectors", "cpu,job", "--interval", "200ms"]);
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Machine::command(&hub, "node-9", ["--collectors", "cpu,job", "--interval", "200ms"]);
    command.arg("--data-dir").arg(folder.path());
    let machine = Machine::run(command);
    are_stored(&hub, "node-9");
    let post = |who: &str, path: &str, body: &Value| {
        hub.send("POST", &format!("/api/v1/{path}"), &[&hub.cookie(who), &hub.origin(), JSON], &body.to_string())
    };
    let marker = json!({ "text": "lr lowered" });
    assert_eq!(post("mike", "markers?source=node-9", &marker).status, 200);
    until("it has the person", || {
        let all = seen(&hub, "markers")["markers"].as_array().cloned()?;
        all.iter().any(|marker| marker["sent_by"] == "mike").then_some(())
    });
    for (who, status) in [("vera", 403), ("olga", 404)] {
        for (path, body) in [
            ("markers?source=node-9", marker.clone()),
            ("values?source=node-9", json!({ "values": { "loss": 1 } })),
            ("runs?source=node-9", json!({})),
            ("runs/etl-1/events?source=node-9", json!({ "event": "heartbeat" })),
        ] {
            let answer = post(who, path, &body);
            assert_eq!(answer.status, status, "{who} {path}: {answer:?}");
        }
    }
    for (path, wrong) in [
        ("markers?source=node-9", json!({ "text": "x", "pid": 1 })),
        ("markers?source=node-9", json!({ "kind": "lunch", "text": "x" })),
        ("values?source=node-9", json!({ "values": { "a b": 1 } })),
        ("values?source=node-9", json!({ "values": { "loss": 1 }, "pid": 1 })),
        ("runs?source=node-9", json!({ "id": "../x" })),
    ] {
        let answer = by_key(&hub, path, &wrong);
        assert_eq!(answer.status, 400, "{path} {wrong}: {answer:?}");
    }
    for name in ["data", "views", "own"] {
        let answer = hub.send("POST", "/api/v1/markers?source=node-9", &[&hub.key(name), JSON], &marker.to_string());
        assert_eq!(answer.status, 403, "{name}: {answer:?}");
    }
    // The hub's own machine is visible, too.
    let missing = by_key(&hub, "markers", &marker);
    assert!(missing.status == 400 && missing.error().contains("source=NAME"), "{missing:?}");
    drop(machine);
    let away = until("it is away", || {
        let answer = by_key(&hub, "markers?source=node-9", &marker);
        // The hub notices it only when its connection ends or an answer is late.
        (answer.status == 503).then_some(answer)
    });
    assert!(away.error().contains("not connected"), "{away:?}");
}

#[test]
fn a_hub_stores_what_is_submitted_for_its_own_machine() {
    let hub = Hub::start(["--collectors", "cpu,job", "--interval", "200ms"]);
    let own = until("its own machine", || {
        let sources = seen(&hub, "sources");
        let own = sources["sources"].as_array()?.iter().find(|source| source["name"] != "gpu-7")?;
        Some(own["name"].as_str()?.to_string())
    });
    are_stored(&hub, &own);
}

#[test]
fn an_alert_needs_no_machine_where_there_is_one_alone() {
    let hub = Hub::start(["--no-local"]);
    let _machine = Machine::start(&hub, "node-9", ["--collectors", "cpu", "--interval", "200ms"]);
    until("the machine has joined", || {
        let names: Vec<Value> =
            seen(&hub, "sources")["sources"].as_array()?.iter().map(|it| it["name"].clone()).collect();
        (names == ["node-9"]).then_some(())
    });
    let alert = json!({ "title": "the disk is slow", "id": "d1" });
    // The evaluation of alerts begins some time after the start.
    until("the alert is taken", || {
        let answer = by_key(&hub, "alerts", &alert);
        assert_ne!(answer.status, 400, "{answer:?}");
        (answer.status < 300).then_some(())
    });
}

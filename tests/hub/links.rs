//! The routes of agents before their connection: errors are returned where the agent can read them.

use super::JSON;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use watchglass_tests::hub::{Hub, spoiled};
use watchglass_tests::server::Server;
use watchglass_tests::waiting::until;

const UPGRADE: [&str; 4] = [
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

#[test]
fn a_link_needs_a_key_and_a_common_protocol() {
    let hub = Hub::start(["--no-local"]);
    let (key, spoken) = (hub.key("agent"), format!("Sec-WebSocket-Protocol: {}", shared::agent::PROTOCOL_NAME));
    let ask = |headers: &[&str]| hub.send("GET", "/api/v1/ingest", &[&UPGRADE[..], headers].concat(), "");
    let linked = ask(&[&key, &spoken]);
    assert_eq!((linked.status, linked.header("sec-websocket-protocol")), (101, shared::agent::PROTOCOL_NAME));
    let newer = format!("Sec-WebSocket-Protocol: watchglass.agent.9, {}", shared::agent::PROTOCOL_NAME);
    assert_eq!(ask(&[&key, &newer]).status, 101);
    for other in ["Sec-WebSocket-Protocol: watchglass.agent.9", "X-Nothing: 1"] {
        let answer = ask(&[&key, other]);
        assert_eq!(answer.status, 426, "{other}");
        assert!(answer.error().contains(shared::agent::PROTOCOL_NAME), "{answer:?}");
    }
    assert_eq!(hub.send("GET", "/api/v1/ingest", &[&key, &spoken], "").status, 426, "it is a WebSocket");
    let wrong = spoiled(&key);
    for header in [wrong.as_str(), "Authorization: Bearer wg_a_nonsense", &hub.key("data"), "X-Nothing: 1"] {
        assert!([401, 403].contains(&ask(&[header, &spoken]).status), "{header}");
    }
    assert_eq!(ask(&[&hub.cookie("root"), &hub.origin(), &spoken]).status, 403, "people are no agents");
}

#[test]
fn a_machine_joins_by_a_key_that_holds() {
    let hub = Hub::start(["--no-local"]);
    let machine = |n: u32, name: &str| {
        serde_json::json!({ "request": format!("{n:032x}"), "name": name, "host": "gpu-9", "container": true })
            .to_string()
    };
    let enrol = |header: &str, body: &str| hub.send("POST", "/api/v1/ingest/enrol", &[header, JSON], body);
    let joined = enrol(&hub.key("join"), &machine(1, "node-9"));
    assert_eq!(joined.status, 201, "{joined:?}");
    let enrolled: shared::enrol::Enrolled = serde_json::from_str(&joined.body).expect("it has joined");
    assert_eq!((enrolled.name.as_str(), enrolled.source.len()), ("node-9", 26));
    let again: shared::enrol::Enrolled =
        serde_json::from_str(&enrol(&hub.key("join"), &machine(1, "node-9")).body).expect("it has joined");
    assert_eq!(again.source, enrolled.source, "a lost answer makes no second machine");
    assert_eq!(enrol(&hub.key("join"), &format!("{{\"host\":\"{}\"}}", "x".repeat(17_000))).status, 413);
    assert_eq!(hub.send("POST", "/api/v1/ingest/enrol", &[&hub.key("join")], "{}").status, 415);
    assert_eq!(enrol("Authorization: Bearer wg_j_nonsense", &machine(2, "node-10")).status, 401);
    let list = hub.send("GET", "/api/v1/teams/main/agents", &[&hub.cookie("root")], "").body;
    assert!(list.contains("node-9") && !list.contains("node-10"), "{list}");
}

#[test]
fn simulated_machines_join_a_hub_from_one_process_and_not_by_a_configuration_file() {
    let hub = Hub::start([]);
    let url = format!("http://{}", hub.server.addr());
    let names = || {
        let answer = hub.send("GET", "/api/v1/query?tag=gpu.1.gpu&from=-1m", &[&hub.cookie("mike")], "");
        let all: Value = serde_json::from_str(&answer.body).expect("JSON");
        let series = all["series"].as_array().cloned().unwrap_or_default();
        let mut names: Vec<String> =
            series.iter().filter_map(|one| Some(one["source"].as_str()?.to_string())).collect();
        names.sort();
        names
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("watchglass.toml");
    let key = folder.path().join("key");
    std::fs::write(&key, &hub.keys["join"]).expect("written");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("private");
    std::fs::write(&file, format!("[[hub]]\nurl = \"{url}\"\nkey_file = \"{}\"\n", key.display())).expect("written");
    let config = file.to_str().expect("a name");
    let alone = Server::start(["demo", "--hosts", "2", "--gpus", "2", "--config", config]);
    let demo = Server::start(["demo", "--hosts", "3", "--gpus", "2", "--hub", &url, "--key", &hub.keys["join"]]);
    let there = until("all three send samples", || Some(names()).filter(|names| names.len() >= 3));
    assert_eq!(there, ["demo-01", "demo-02", "demo-03"], "each machine once");
    drop((alone, demo));
}

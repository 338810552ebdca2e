//! Machines that a scraped page tells of, on agents and on hubs: each is a machine of its own, with an identity of its own.

use super::JSON;
use super::machine::Machine;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use watchglass_tests::exporter;
use watchglass_tests::hub::{self, Hub};
use watchglass_tests::server::{Server, ServerAnswer, watchglass};
use watchglass_tests::waiting::{until, until_so};

/// The page of an exporter for three nodes, `node-9` among them; the last one is on it while the flag is true.
fn page() -> (String, Arc<AtomicBool>) {
    let is_there = Arc::new(AtomicBool::new(true));
    let shown = is_there.clone();
    let url = exporter::serve(move |n| {
        let line = |host: &str, gpu: u32, temp: usize| {
            format!("DCGM_FI_DEV_GPU_TEMP{{gpu=\"{gpu}\",UUID=\"GPU-{host}-{gpu}\",Hostname=\"{host}\"}} {temp}\n")
        };
        let last = if shown.load(Ordering::Relaxed) { line("node-c", 0, 70) } else { String::new() };
        line("node-9", 0, 40) + &line("node-b.lab", 0, 50 + n % 2) + &line("node-b.lab", 1, 60) + &last
    });
    (url, is_there)
}

/// An agent that scrapes the page, with its history in a folder.
fn agent(hub: &Hub, key: &str, page: &str, folder: Option<&Path>) -> Command {
    let url = format!("http://{}", hub.server.addr());
    let mut command = watchglass(["agent", "--hub", &url, "--key", key, "--name", "node-9", "--interval", "200ms"]);
    command.args(["--collectors", "openmetrics", "--openmetrics", &format!("cluster={page}")]);
    match folder {
        Some(folder) => command.arg("--data-dir").arg(folder),
        None => command.arg("--memory"),
    };
    command
}

fn read(answer: &ServerAnswer) -> Value {
    assert_eq!(answer.status, 200, "{answer:?}");
    serde_json::from_str(&answer.body).expect("JSON")
}

fn seen(hub: &Hub, who: &str, path: &str) -> Value {
    read(&hub.send("GET", &format!("/api/v1/{path}"), &[&hub.cookie(who)], ""))
}

/// State of each machine that a person sees, by name.
fn states(hub: &Hub, who: &str) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let sources = seen(hub, who, "sources")["sources"].as_array().cloned().unwrap_or_default();
    sources.iter().map(|source| (text(&source["name"]), text(&source["state"]))).collect()
}

/// The GPUs of a machine with samples.
fn gpus(hub: &Hub, machine: &str) -> Vec<String> {
    let answer = hub.send("GET", &format!("/api/v1/query?tag=gpu.*.temp&source={machine}"), &[&hub.cookie("vera")], "");
    if answer.status != 200 {
        return Vec::new();
    }
    let series = read(&answer)["series"].as_array().cloned().unwrap_or_default();
    let with_points = series.iter().filter(|one| one["points"].as_array().is_some_and(|all| all.len() > 2));
    with_points.filter_map(|one| one["tag"].as_str().map(str::to_string)).collect()
}

/// Waits until the machines of the page are on a hub, each with its GPUs alone.
fn have_their_gpus(hub: &Hub, own: &str) {
    for (machine, count) in [(own, 1), ("node-b", 2), ("node-c", 1)] {
        until(machine, || (gpus(hub, machine).len() == count).then_some(()));
        // On a loaded machine one is late for a moment.
        until_so("it is live", || states(hub, "vera").get(machine).is_some_and(|state| state == "live"));
    }
    let all = seen(hub, "vera", "query?tag=gpu.*.temp");
    assert_eq!(all["series"].as_array().map(Vec::len), Some(4), "{all}");
    assert!(states(hub, "olga").is_empty(), "another team sees none");
}

/// Ids of the machines of the team by name, as an admin sees them.
fn joined(hub: &Hub) -> BTreeMap<String, String> {
    let all = seen(hub, "ada", "teams/main/agents")["agents"].as_array().cloned().expect("a list");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    all.iter().map(|agent| (text(&agent["name"]), text(&agent["id"]))).collect()
}

fn submits_nothing_to(hub: &Hub, machine: &str) {
    let marker = json!({ "text": "lr lowered" }).to_string();
    let path = format!("/api/v1/markers?source={machine}");
    let answer = hub.send("POST", &path, &[&hub.key("runs"), JSON], &marker);
    assert_eq!(answer.status, 409, "{answer:?}");
    assert!(answer.error().contains("no agent runs there"), "{answer:?}");
}

#[test]
fn each_host_of_an_agents_page_joins_once_and_is_a_machine_of_its_team() {
    let (page, is_there) = page();
    let (hub, folder) = (Hub::start(["--no-local"]), tempfile::tempdir().expect("a folder"));
    let command = || agent(&hub, &hub.keys["join"], &page, Some(folder.path()));
    let running = Machine::run(command());
    have_their_gpus(&hub, "node-9");
    submits_nothing_to(&hub, "node-b");
    let before = joined(&hub);
    assert_eq!(before.keys().collect::<Vec<_>>(), ["gpu-7", "node-9", "node-b", "node-c"]);
    // Its links end without a goodbye.
    drop(running);
    let is = |machine: &str, state: &str| states(&hub, "vera").get(machine).is_some_and(|is| is == state);
    for machine in ["node-9", "node-b", "node-c"] {
        until_so("the agent is gone", || is(machine, "unreachable"));
    }
    let _again = Machine::run(command());
    until_so("it is back", || ["node-9", "node-b", "node-c"].iter().all(|machine| is(machine, "live")));
    is_there.store(false, Ordering::Relaxed);
    until_so("a host that vanished is offline", || is("node-c", "unreachable"));
    until_so("the others stay", || is("node-b", "live") && is("node-9", "live"));
    is_there.store(true, Ordering::Relaxed);
    until_so("it has come back", || is("node-c", "live"));
    assert_eq!(joined(&hub), before);
}

#[test]
fn an_agent_without_a_data_folder_sends_them_too() {
    let (page, _) = page();
    let hub = Hub::start(["--no-local"]);
    let _running = Machine::run(agent(&hub, &hub.keys["join"], &page, None));
    have_their_gpus(&hub, "node-9");
}

#[test]
fn a_join_key_for_two_machines_is_for_the_agent_first_and_the_others_say_why_they_are_missing() {
    let (page, _) = page();
    let (hub, folder) = (Hub::start(["--no-local"]), tempfile::tempdir().expect("a folder"));
    let key = hub.send(
        "POST",
        "/api/v1/teams/main/join",
        &[&hub.cookie("ada"), &hub.origin(), JSON],
        &json!({ "uses": 2 }).to_string(),
    );
    let key: Value = serde_json::from_str(&key.body).expect("JSON");
    let key = key["key"].as_str().unwrap_or_else(|| panic!("a key: {key}"));
    let _running = Machine::run(agent(&hub, key, &page, Some(folder.path())));
    let links = until("one of the hosts is refused", || {
        let output = watchglass(["agent", "--status", "--data-dir"]).arg(folder.path()).output().expect("it runs");
        let told: Value = serde_json::from_slice(&output.stdout).ok()?;
        let links = told["hubs"].as_array()?.clone();
        let in_state = |state: &str| links.iter().filter(|link| link["state"] == state).count();
        (in_state("live") == 2 && in_state("refused") == 1).then_some(links)
    });
    assert_eq!((&links[0]["host"], &links[0]["name"]), (&Value::Null, &"node-9".into()), "{links:?}");
    let hosts: Vec<&str> = links.iter().filter_map(|link| link["host"].as_str()).collect();
    assert_eq!(hosts, ["node-b.lab", "node-c"]);
    let refused = links.iter().find(|link| link["state"] == "refused").expect("one");
    assert!(
        refused["why"].as_str().is_some_and(|why| why.contains("limit of machines for this join key")),
        "{refused}"
    );
    assert_eq!(joined(&hub).len(), 3, "with the one of the test");
}

#[test]
fn a_hub_that_scrapes_a_page_has_its_hosts_beside_its_own_machine() {
    let (page, is_there) = page();
    let endpoint = format!("cluster={page}");
    let args = ["--collectors", "openmetrics", "--interval", "200ms", "--openmetrics", &endpoint];
    let hub = Hub::start(args);
    for (machine, count) in [("node-9", 1), ("node-b", 2), ("node-c", 1)] {
        until(machine, || (gpus(&hub, machine).len() == count).then_some(()));
    }
    submits_nothing_to(&hub, "node-b");
    assert!(states(&hub, "olga").is_empty());
    let key = hub.key("data");
    let sources = |server: &Server| {
        let all = read(&hub::send(server, "GET", "/api/v1/sources", &[&key], ""));
        all["sources"].as_array().cloned().unwrap_or_default()
    };
    let ids = |server: &Server| {
        let mut ids: Vec<String> = sources(server).iter().map(|one| format!("{} {}", one["id"], one["name"])).collect();
        ids.sort();
        ids
    };
    let is = |server: &Server, machine: &str, state: &str| {
        sources(server).iter().any(|source| source["name"] == machine && source["state"] == state)
    };
    let known = ids(&hub.server);
    is_there.store(false, Ordering::Relaxed);
    until_so("a host that vanished is offline", || is(&hub.server, "node-c", "unreachable"));
    let Hub { server, folder, .. } = hub;
    drop(server);
    let server = Hub::server(folder.path(), args);
    until_so("they are there again", || is(&server, "node-b", "live") && is(&server, "node-9", "live"));
    assert!(is(&server, "node-c", "unreachable"), "its history is kept");
    assert_eq!(ids(&server), known);
}

//! State that all hubs of a cluster share, over a real NATS and a real PostgreSQL: the states of machines that another
//! hub holds, firing alerts and their acknowledgments, and permissions.
#![cfg(target_os = "linux")]

use crate::hub::sockets::{ended, open_at};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use watchglass_tests::cluster::Cluster;
use watchglass_tests::hooks::Hooks;
use watchglass_tests::hub::{PASSWORD, send};
use watchglass_tests::server::ServerAnswer;

const JSON: &str = "Content-Type: application/json";

/// Webhook secret by which the receiver authenticates us.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// The notifying hub holds its lease so long that no other hub notifies, and a group waits before it is sent. So a
/// repeated notice arrives within this time. Number of steps, and ms of each, in which neither hub nor agent counts as
/// silent.
const SETTLED: (i64, i64) = (15, 2_000);

fn by(cluster: &Cluster, hub: usize, who: &str, (method, path): (&str, &str), body: &Value) -> ServerAnswer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let lines = [cluster.cookie(hub, who), cluster.origin(hub), JSON.to_string()];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    send(cluster.hub(hub), method, &format!("/api/v1/{path}"), &lines, &body)
}

fn json_of(answer: &ServerAnswer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{answer:?}"))
}

/// The entry of the agent's machine in a hub's list.
fn machine(cluster: &Cluster, hub: usize) -> Option<Value> {
    json_of(&cluster.get(hub, "/api/v1/sources"))["sources"]
        .as_array()?
        .iter()
        .find(|one| one["host"].is_string())
        .cloned()
}

/// Ids of a rule's firing alerts, from a hub.
fn firing(cluster: &Cluster, hub: usize, rule: &str) -> BTreeSet<String> {
    let answer = by(cluster, hub, "ada", ("GET", &format!("alerts?state=firing&rule={rule}")), &Value::Null);
    let all = json_of(&answer);
    let all = all["alerts"].as_array().unwrap_or_else(|| panic!("{answer:?}")).iter();
    all.filter_map(|alert| alert["id"].as_str()).map(String::from).collect()
}

#[test]
#[ignore = "needs Debian's nats-server and PostgreSQL 15"]
fn with_nats_what_fires_moves_with_its_machine_and_is_told_once() {
    let hooks = Hooks::start();
    let rules = "[[rules]]\nname = \"always\"\nseverity = \"critical\"\nwhen = \"system.load1 >= 0\"\n";
    let more = format!("[alerts]\nallow_targets = [{:?}]\n{rules}", hooks.target());
    let mut cluster = Cluster::start_with(2, &more);
    let channel = json!({ "name": "hook", "kind": "webhook", "address": hooks.url("/hook"), "secret": SECRET, "is_default": true });
    let made = by(&cluster, 0, "ada", ("POST", "channels"), &channel);
    assert!(matches!(made.status, 200 | 201), "{made:?}");
    cluster.start_agent(&[0, 1]);
    cluster.until("somebody holds it", || !cluster.holder().is_empty());
    // Both hubs show it live and with its agent's facts, before a page opened it there.
    for hub in [0, 1] {
        cluster.until(&format!("it is live on hub {hub}"), || {
            machine(&cluster, hub).is_some_and(|one| one["state"] == "live" && one["version"].is_string())
        });
        cluster.until(&format!("it fires on hub {hub}"), || firing(&cluster, hub, "always").len() == 1);
    }
    let id = firing(&cluster, 0, "always");
    let told = |rule: &str| hooks.came().iter().filter(|request| request.text().contains(rule)).count();
    cluster.until("it is told", || told("always") == 1);
    // An acknowledgment at one hub is visible at the other.
    let one = id.first().expect("one");
    let acked = by(&cluster, 1, "ada", ("POST", &format!("alerts/{one}/ack")), &json!({}));
    assert_eq!(acked.status, 200, "{acked:?}");
    let shown = json_of(&by(&cluster, 0, "ada", ("GET", &format!("alerts/{one}")), &Value::Null));
    assert!(shown["acked"].is_object(), "{shown}");
    // The hub that holds the agent, and that sent all notices, is killed.
    let first = cluster.holder();
    cluster.kill_hub(0);
    cluster.until("the other hub has it", || ![String::new(), first.clone()].contains(&cluster.holder()));
    cluster.until("it is live there", || machine(&cluster, 1).is_some_and(|one| one["state"] == "live"));
    // A rule that is added then is evaluated, and the remaining hub notifies.
    let rule = json!({ "name": "later", "severity": "critical", "when": "system.load1 >= 0" });
    let made = by(&cluster, 1, "ada", ("POST", "rules"), &rule);
    assert!(matches!(made.status, 200 | 201), "{made:?}");
    cluster.until("it fires and is told", || firing(&cluster, 1, "later").len() == 1 && told("later") == 1);
    for _ in 0..SETTLED.0 {
        cluster.clock.pass(SETTLED.1);
        cluster.is_live(1);
        assert_eq!(firing(&cluster, 1, "always"), id, "the same alert, and not another one");
        assert_eq!(told("always"), 1, "nobody is told twice");
    }
    assert!(firing(&cluster, 1, "machine-lost").is_empty(), "the agent had time to move");
    // The hub that returns knows all alerts, and adds none.
    cluster.start_hub(0);
    cluster.until("it knows", || {
        machine(&cluster, 0).is_some_and(|one| one["state"] == "live") && firing(&cluster, 0, "always") == id
    });
    // The agent ends in order, and all hubs learn it.
    cluster.end_agent();
    for hub in [0, 1] {
        cluster.until(&format!("it has ended on hub {hub}"), || {
            machine(&cluster, hub).is_some_and(|one| one["state"] == "stopped" || one["state"] == "unreachable")
        });
    }
    assert_eq!((told("always"), told("later")), (1, 1));
}

#[test]
#[ignore = "needs Debian's nats-server and PostgreSQL 15"]
fn with_nats_a_silent_hub_says_nothing_of_its_machines_any_more() {
    let mut cluster = Cluster::start(2);
    cluster.start_agent(&[0]);
    let state = |cluster: &Cluster| machine(cluster, 1).map(|one| one["state"].as_str().unwrap_or("").to_string());
    cluster.until("it is live on the other hub", || state(&cluster).as_deref() == Some("live"));
    // Its overview over time is requested from the hub that holds it, without a relay of its samples to this hub.
    let key = machine(&cluster, 1).expect("just seen")["key"].clone();
    let over_time = |cluster: &Cluster| {
        let all = json_of(&cluster.get(1, "/api/v1/fleet?row=cpu&from=-1m&step=1s"));
        let all = all["sources"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|one| one["key"] == key).unwrap_or_default()
    };
    let values = |one: &Value| one["values"].as_array().map_or(0, |all| all.iter().filter(|v| v.is_number()).count());
    cluster.until("its overview over time is there", || {
        let one = over_time(&cluster);
        values(&one) > 2 && one["lacks"].is_null()
    });
    assert!(cluster.metrics(1).lines().any(|line| line == "watchglass_cluster_relays_in 0"), "{}", cluster.metrics(1));
    // Its agent knows no other hub.
    cluster.kill_hub(0);
    // Its lease expires after some seconds.
    cluster.until("it is said why that lacks", || {
        over_time(&cluster)["lacks"].as_str().is_some_and(|why| why.contains("the other hub"))
    });
    cluster.until("it is unreachable", || state(&cluster).as_deref() == Some("unreachable"));
    assert!(firing(&cluster, 1, "machine-lost").is_empty(), "nobody calls it lost yet");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Debian's nats-server and PostgreSQL 15"]
async fn with_nats_a_session_is_one_over_all_hubs_and_ends_on_all() {
    let cluster = Cluster::start(2);
    let headers = |hub: usize, who: &str| [cluster.cookie(hub, who), cluster.origin(hub)];
    let status = |hub: usize, lines: &[String]| {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        send(cluster.hub(hub), "GET", "/api/v1/sources", &lines, "").status
    };
    for hub in [0, 1] {
        assert_eq!(status(hub, &headers(hub, "vera")), 200, "one session");
    }
    let page = open_at(cluster.hub(1), "", &headers(1, "vera"), "").await;
    let key = format!("Authorization: Bearer {}", cluster.keys["data"]);
    let script = open_at(cluster.hub(1), "", std::slice::from_ref(&key), "").await;
    // Another hub's page is another site.
    let sign_out = |hub: usize, origin: String| {
        send(cluster.hub(hub), "DELETE", "/api/v1/session", &[&cluster.cookie(hub, "vera"), &origin, JSON], "").status
    };
    assert_eq!(sign_out(1, cluster.origin(0)), 403);
    let begin = Instant::now();
    assert_eq!(sign_out(0, cluster.origin(0)), 200);
    let (goodbye, close) = ended(page).await;
    assert_eq!(goodbye.as_deref(), Some("signed out"));
    assert!(close.is_some_and(|close| u16::from(close.code) == 1008));
    // Without a message from the other hub, a socket's permissions are checked once a minute.
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    assert_eq!(status(1, &headers(1, "vera")), 401);
    // A key is revoked on one hub.
    let begin = Instant::now();
    let keys = json_of(&by(&cluster, 0, "root", ("GET", "teams/main/keys"), &Value::Null));
    let data = keys["keys"].as_array().and_then(|keys| keys.iter().find(|key| key["name"] == "data"));
    let id = data.and_then(|key| key["id"].as_str()).unwrap_or_else(|| panic!("{keys}"));
    let ends = by(&cluster, 0, "root", ("DELETE", &format!("teams/main/keys/{id}")), &Value::Null);
    assert_eq!(ends.status, 200, "{ends:?}");
    let (goodbye, _) = ended(script).await;
    assert_eq!(goodbye.as_deref(), Some("this key was revoked"));
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    cluster.until("it opens nothing", || status(1, std::slice::from_ref(&key)) == 401);
    // An account exists, so no hub gives a setup code.
    let body = json!({ "code": "x", "name": "again", "password": PASSWORD }).to_string();
    for hub in [0, 1] {
        let refused =
            send(cluster.hub(hub), "POST", "/api/v1/session/setup", &[&cluster.origin(hub), JSON], &body).status;
        assert!((400..500).contains(&refused), "{refused}");
        assert!(!cluster.hub(hub).log().contains("#setup="), "{}", cluster.hub(hub).log());
    }
}

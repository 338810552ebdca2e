//! On-demand requests of a hub to a machine while a page shows it: its processes, and the states of its collectors.

use super::machine::Machine;
use super::sockets::open_on;
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use shared::processes::Process;
use shared::wire::{self, PageMessage, Received, ServerMessage};
use tokio_tungstenite::tungstenite::Message;
use watchglass_tests::hub::Hub;
use watchglass_tests::server::ServerAnswer;
use watchglass_tests::waiting::{MAX_WAIT, until};

fn json(answer: &ServerAnswer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{answer:?}"))
}

/// Rows of the process table of `node-9` over HTTP, once there are some.
fn processes(hub: &Hub, headers: &[&str]) -> Vec<Value> {
    until("a process table of node-9", || {
        let answer = hub.send("GET", "/api/v1/processes?source=node-9", headers, "");
        let table = (answer.status == 200).then(|| json(&answer))?;
        table["processes"].as_array().filter(|rows| !rows.is_empty()).cloned()
    })
}

/// Rows of the process table of `node-9` on a page's socket, which repeats the request until there are some.
async fn shown(hub: &Hub, name: &str) -> Vec<Process> {
    let headers = [hub.cookie(name), hub.origin()];
    let mut page = open_on(hub, "", &headers, "node-9").await;
    let answer = async {
        let ask = || Message::Binary(wire::encode(&PageMessage::Processes { at: None }).into());
        page.send(ask()).await.expect("it listens");
        loop {
            let bytes = page.next().await.expect("a message").expect("a message").into_data();
            match wire::decode_server(&bytes) {
                // The answer was late: a page repeats the request, too.
                Ok(Received::Control(ServerMessage::Processes(table))) if table.rows.is_empty() => {
                    page.send(ask()).await.expect("it listens");
                }
                Ok(Received::Control(ServerMessage::Processes(table))) => return table.rows,
                _ => {}
            }
        }
    };
    tokio::time::timeout(2 * MAX_WAIT, answer).await.expect("it is answered")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_of_a_machine_are_shown_and_their_arguments_to_members_alone() {
    let hub = Hub::start(["--no-local"]);
    let flags = ["--collectors", "cpu,processes", "--interval", "100ms", "--show-args"];
    let _machine = Machine::start(&hub, "node-9", flags);
    let agent = |row: &&Value| row["args"].as_str().is_some_and(|args| args.contains("--show-args"));
    let [root, mike, vera, key] = [hub.cookie("root"), hub.cookie("mike"), hub.cookie("vera"), hub.key("data")];
    for whole in [&root, &mike] {
        // On a machine with many processes, their arguments are read one after the other.
        let own = until("arguments of the agent", || processes(&hub, &[whole]).iter().find(agent).cloned());
        assert!(!own["args"].as_str().expect("text").contains(&hub.keys["join"]), "a key is left out: {own}");
    }
    for names in [&vera, &key] {
        let rows = processes(&hub, &[names]);
        assert!(rows.iter().all(|row| row["args"].is_null() && row["pid"].is_u64()), "{rows:?}");
    }
    let with_arguments = |rows: Vec<Process>| (!rows.is_empty(), rows.iter().any(|row| !row.args.is_empty()));
    assert_eq!(with_arguments(shown(&hub, "mike").await), (true, true));
    assert_eq!(with_arguments(shown(&hub, "vera").await), (true, false));
    let past = hub.send("GET", "/api/v1/processes?source=node-9&at=-1s", &[&vera], "");
    assert_eq!((past.status, json(&past)["whole"].as_bool()), (200, Some(false)), "the largest users then: {past:?}");
}

#[test]
fn a_machine_says_itself_how_it_stands_and_one_that_is_away_says_that() {
    let hub = Hub::start(["--no-local"]);
    let machine = Machine::start(&hub, "node-9", ["--collectors", "cpu,processes", "--interval", "100ms"]);
    let vera = hub.cookie("vera");
    let rows = processes(&hub, &[&vera]);
    assert!(rows.iter().all(|row| row["args"].is_null()), "nobody asked for arguments there: {rows:?}");
    let cpu = || {
        let told = hub.send("GET", "/api/v1/doctor?source=node-9", &[&vera], "");
        let checks = (told.status == 200).then(|| json(&told)["checks"].as_array().cloned())??;
        checks.into_iter().find(|check| check["id"] == "cpu").map(|check| check["state"].clone())
    };
    // On a busy machine an answer may come too late, or before the first tick.
    until("its processor is well", || cpu().filter(|state| state == "ok"));
    drop(machine);
    until("it is said that its link has ended", || {
        let answer = hub.send("GET", "/api/v1/processes?source=node-9", &[&vera], "");
        (answer.status == 503 && answer.error().contains("not connected")).then_some(())
    });
    assert_eq!(cpu(), Some("ok".into()), "what it said last stays");
}

//! A team can hide names of users and of people from its viewers and share links: then no answer of the API and no
//! message of a stream has them, and members still see them everywhere.

use super::JSON;
use super::sockets::{Stream, ended, open, open_on, send_message};
use api::{Method, Operation};
use futures_util::StreamExt;
use serde_json::{Value, json};
use shared::agent::{AgentMessage, HubMessage, Question, encode_records};
use shared::alert_call::{ALERT_KIND, AlertCall};
use shared::processes::{Process, ProcessTable};
use shared::record::Record;
use shared::run::{About, BEGIN_KIND, Begun};
use shared::wire::{self, PageMessage};
use std::net::SocketAddr;
use stream::clock::{Clock, System};
use tokio::sync::mpsc;
use watchglass_tests::hub::{Hub, PASSWORD};
use watchglass_tests::link::Link;
use watchglass_tests::server::ServerAnswer;
use watchglass_tests::waiting::{MAX_WAIT, until};

/// A user of the machine, and a person of the hub: words that stand nowhere else.
const USER: &str = "zorawinter";
const PERSON: &str = "karlottasommer";
/// The machine.
const MACHINE: &str = "gpu-7";

/// A table of processes: one of the user.
fn table() -> ProcessTable {
    let args = format!("python /home/{USER}/train.py");
    let row = Process { pid: 7, user: USER.into(), name: "python".into(), args, ..Process::default() };
    ProcessTable { t: System.wall(), total: 1, whole: true, rows: vec![row] }
}

fn record(n: u64, kind: &str, body: &impl serde::Serialize) -> Record {
    Record { n, t: System.wall(), kind: kind.into(), body: serde_json::to_vec(body).expect("JSON") }
}

fn marker(n: u64) -> Record {
    let body = json!({ "kind": "note", "pid": 7, "user": USER, "text": "a mark", "id": format!("{USER}.{n}") });
    record(n, "marker", &body)
}

/// Serves as the machine until the sender of further records is dropped.
async fn serve(hub: SocketAddr, key: String, mut more: mpsc::Receiver<Record>) {
    let (mut link, _) = Link::welcome(hub, &key).await;
    link.tell("").await;
    let first = (System.wall() / 100) as u64;
    link.tick(first, 50.0).await;
    link.acknowledged(1).await;
    let about = About { user: Some(USER.into()), program: "train.py".into(), ..About::default() };
    let begun = Begun { run: "one".into(), t: System.wall(), pid: 7, about, ..Begun::default() };
    let call = AlertCall { title: "loss is NaN".into(), run: Some("one".into()), count: 1, ..AlertCall::default() };
    let records = [record(1, BEGIN_KIND, &begun), marker(2), record(3, ALERT_KIND, &call)];
    link.bytes(encode_records(&records)).await;
    let mut seq = first;
    loop {
        tokio::select! {
            message = link.receive_message() => match message {
                Some(HubMessage::Ask { id, what: Question::Processes { .. } }) => {
                    // The table alone, without the byte of its kind.
                    let bytes = wire::encode(&table()).split_off(1);
                    link.send_message(&AgentMessage::Answer { id, bytes }).await;
                }
                Some(_) => {}
                None => return,
            },
            record = more.recv() => match record {
                Some(record) => {
                    seq += 1;
                    link.bytes(encode_records(&[record])).await;
                    link.tick(seq, 50.0).await;
                }
                None => return,
            },
        }
    }
}

/// Adds a person to the hub, and returns the header line of their cookie.
fn sign_in(hub: &Hub) -> String {
    let origin = hub.origin();
    let new = json!({ "name": PERSON, "password": PASSWORD, "role": "member", "team": "main" });
    let made = hub.send("POST", "/api/v1/accounts", &[&hub.cookie("root"), &origin, JSON], &new.to_string());
    assert!(made.status < 300, "{made:?}");
    let body = json!({ "name": PERSON, "password": PASSWORD });
    let answer = hub.send("POST", "/api/v1/session", &[&origin, JSON], &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    format!("Cookie: {}", answer.header("set-cookie").split(';').next().expect("name and value"))
}

/// Writes something of each kind as a person, and returns the ID of the alert, which they acknowledge.
fn write(hub: &Hub, cookie: &str) -> String {
    let post = |path: &str, body: Value| {
        let answer = hub.send("POST", path, &[cookie, &hub.origin(), JSON], &body.to_string());
        assert!(answer.status < 300, "{path}: {answer:?}");
    };
    let now = System.wall() / 1_000;
    post("/api/v1/notes", json!({ "text": "new PSU", "source": MACHINE }));
    post("/api/v1/notes", json!({ "text": "it began late", "run": "one" }));
    post("/api/v1/views?team=main", json!({ "name": "mine", "query": "w=5m", "scope": "team" }));
    let on = json!({ "user": USER });
    post("/api/v1/rules?team=main", json!({ "name": "it runs", "when": "run running", "on": on }));
    let silence = json!({ "match": { "user": USER }, "from": now, "to": now + 3_600 });
    post("/api/v1/silences?team=main", silence);
    let alert = until("the alert of the run", || {
        let answer = hub.send("GET", "/api/v1/alerts", &[cookie], "");
        let all: Value = serde_json::from_str(&answer.body).ok()?;
        let of_run = |alert: &&Value| alert["labels"]["user"] == USER;
        Some(all["alerts"].as_array()?.iter().find(of_run)?["id"].as_str()?.to_string())
    });
    post(&format!("/api/v1/alerts/{alert}/ack"), json!({}));
    let edit = json!({ "notes": "slow" });
    let edited = hub.send("PATCH", "/api/v1/runs/one", &[cookie, &hub.origin(), JSON], &edit.to_string());
    assert_eq!(edited.status, 200, "{edited:?}");
    alert
}

/// The requests of all operations that read, and whether a member finds a name in the answer.
fn requests(alert: &str) -> Vec<(String, bool)> {
    let named: [(Operation, String); 16] = [
        (Operation::ListProcesses, format!("/api/v1/processes?source={MACHINE}")),
        (Operation::ListRuns, "/api/v1/runs".into()),
        (Operation::ListRuns, format!("/api/v1/runs?sums=true&source={MACHINE}")),
        (Operation::GetRun, "/api/v1/runs/one".into()),
        (Operation::GetRunReport, "/api/v1/runs/one/report".into()),
        (Operation::GetRunReport, "/api/v1/runs/one/report?format=json".into()),
        (Operation::ListMarkers, format!("/api/v1/markers?source={MACHINE}")),
        (Operation::ListNotes, "/api/v1/notes".into()),
        (Operation::ExportSamples, "/api/v1/export?tag=*&from=-10m&format=json".into()),
        (Operation::RecordSamples, "/api/v1/record?from=-10m".into()),
        (Operation::ListAlerts, "/api/v1/alerts".into()),
        (Operation::GetAlert, format!("/api/v1/alerts/{alert}")),
        (Operation::ListRules, "/api/v1/rules".into()),
        (Operation::ListSilences, "/api/v1/silences".into()),
        (Operation::ListViews, "/api/v1/views".into()),
        (Operation::GetTeam, "/api/v1/teams/main".into()),
    ];
    // Operations whose answer depends on parameters.
    let asked = [
        (Operation::GetFleet, "?row=cpu"),
        (Operation::QuerySamples, "?tag=*&from=-10m"),
        (Operation::DrawFigure, "?tag=*&from=-10m"),
        (Operation::ExportSamples, "?tag=*&from=-10m&format=openmetrics"),
    ];
    let done = |operation: &Operation| named.iter().any(|(known, _)| known == operation);
    let others = Operation::ALL.iter().filter(|one| one.method() == Method::Get && !done(one));
    let mut all: Vec<(String, bool)> = others
        .map(|operation| {
            let query = asked.iter().find(|(known, _)| known == operation).map_or("", |(_, query)| query);
            let path = operation.path().replace("{team}", "main").replace(['{', '}', '*'], "");
            (format!("{path}{query}"), false)
        })
        .collect();
    for format in ["csv", "openmetrics", "wandb-jsonl"] {
        all.push((format!("/api/v1/export?tag=*&from=-10m&format={format}"), false));
    }
    all.extend(["user", "run", "project"].map(|by| (format!("/api/v1/usage/runs?team=main&by={by}"), false)));
    all.extend(named.into_iter().map(|(_, path)| (path, true)));
    all
}

fn names(text: &str) -> bool {
    text.contains(USER) || text.contains(PERSON)
}

/// Checks that no answer to a reader has a name, and that each answer to a member has one that should.
fn check_answers(hub: &Hub, alert: &str) {
    let ask = |by: &str, path: &str| hub.send("GET", path, &[by], "");
    let mut faults = Vec::new();
    for (path, is_named) in requests(alert) {
        if is_named {
            let answer = ask(&hub.cookie("mike"), &path);
            if answer.status != 200 || !names(&answer.body) {
                faults.push(format!("a member sees no name at {path}: {answer:?}"));
            }
        }
        for (who, by) in [("viewer", hub.cookie("vera")), ("key", hub.key("data")), ("link", hub.link.clone())] {
            let answer = ask(&by, &path);
            if names(&answer.body) {
                faults.push(format!("a {who} sees a name at {path}: {}", answer.body));
            }
            if is_named && who == "viewer" && answer.status != 200 {
                faults.push(format!("a viewer is refused at {path}: {answer:?}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Numbers of messages with a name and of those with a hidden one, until there are this many of both together.
async fn count_messages(stream: &mut Stream, wanted: usize) -> (usize, usize) {
    let (mut named, mut hidden) = (0, 0);
    let all = async {
        while named + hidden < wanted {
            let message = stream.next().await.expect("a message").expect("a message").into_data();
            let text = String::from_utf8_lossy(&message);
            named += usize::from(names(&text));
            hidden += usize::from(!names(&text) && text.contains("hidden"));
        }
    };
    tokio::time::timeout(MAX_WAIT, all).await.expect("the messages come in time");
    (named, hidden)
}

/// Checks the page's stream and the scripts' for a reader: records, a table of processes, and a new record.
async fn check_streams(hub: &Hub, more: &mpsc::Sender<Record>, n: u64, who: &str, is_named: bool) {
    let headers = [hub.cookie(who), hub.origin()];
    let mut page = open_on(hub, "", &headers, MACHINE).await;
    let mut script = open(hub, "?format=json&source=*", &headers).await;
    send_message(&mut page, &PageMessage::Processes { at: None }).await;
    send_message(&mut page, &PageMessage::Runs).await;
    // The script begins with the newest tick.
    script.next().await.expect("a message").expect("a tick");
    more.send(marker(n)).await.expect("the machine is there");
    let told = [count_messages(&mut page, 2).await, count_messages(&mut script, 1).await];
    let expected = if is_named { [(2, 0), (1, 0)] } else { [(0, 2), (0, 1)] };
    assert_eq!(told, expected, "{who}");
}

fn set(hub: &Hub, by: &str, on: bool) -> ServerAnswer {
    let body = json!({ "user_names": on }).to_string();
    hub.send("PATCH", "/api/v1/teams/main", &[&hub.cookie(by), &hub.origin(), JSON], &body)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn names_of_users_and_people_are_hidden_from_viewers_and_links_everywhere() {
    let hub = Hub::start(["--no-local"]);
    let (more, records) = mpsc::channel(4);
    let machine = tokio::spawn(serve(hub.server.addr(), hub.keys["agent"].clone(), records));
    let person = sign_in(&hub);
    let alert = until("the run", || {
        let listed = hub.send("GET", "/api/v1/runs/one", &[&person], "");
        (listed.status == 200).then(|| write(&hub, &person))
    });
    let seen = |by: &str, path: &str| hub.send("GET", path, &[by], "").body;
    let [vera, mike] = [hub.cookie("vera"), hub.cookie("mike")];
    let (of_user, of_others) = (format!("/api/v1/runs?user={USER}"), format!("/api/v1/runs?user=!{USER}"));
    assert!(names(&seen(&vera, "/api/v1/runs")) && names(&seen(&vera, &of_user)), "viewers see names at first");
    let open_page = open(&hub, "", &[vera.clone(), hub.origin()]).await;
    assert_eq!([set(&hub, "vera", false).status, set(&hub, "mike", false).status], [403; 2]);
    let hidden = set(&hub, "ada", false);
    assert!(hidden.status == 200 && hidden.body.contains("\"user_names\":false"), "{hidden:?}");
    assert!(ended(open_page).await.0.is_some(), "an open page ends, and connects again without names");
    check_answers(&hub, &alert);
    // A filter by a hidden name answers nothing about it.
    let runs = |by: &str, path: &str| seen(by, path).contains("\"id\":\"one\"");
    assert_eq!([runs(&vera, &of_user), runs(&vera, &of_others)], [false, true]);
    assert_eq!([runs(&mike, &of_user), runs(&mike, &of_others)], [true, false]);
    check_streams(&hub, &more, 4, "vera", false).await;
    check_streams(&hub, &more, 5, "mike", true).await;
    assert_eq!(set(&hub, "ada", true).status, 200);
    assert!(names(&seen(&vera, &of_user)), "they come back");
    drop(more);
    machine.await.expect("the machine is not at fault");
}

#[test]
fn a_hub_hides_names_by_its_configuration() {
    let hub = Hub::start([]);
    let members = |hub: &Hub, by: &str| hub.send("GET", "/api/v1/teams/main", &[&hub.cookie(by)], "").body;
    assert!(members(&hub, "vera").contains("\"mike\""));
    let Hub { server, cookies, keys, link, folder } = hub;
    let port = server.addr().port();
    assert!(server.end_by("TERM").success());
    let file = folder.path().join("hub.toml");
    std::fs::write(&file, "[sharing]\nuser_names = false\n").expect("written");
    let server = Hub::server_at(folder.path(), port, ["--config", file.to_str().expect("a name")], Vec::new());
    let hub = Hub { server, cookies, keys, link, folder };
    let (viewer, member) = (members(&hub, "vera"), members(&hub, "mike"));
    assert!(!viewer.contains("\"mike\"") && viewer.contains("\"vera\""), "{viewer}");
    assert!(member.contains("\"mike\"") && member.contains("\"vera\""), "{member}");
    let session = hub.send("GET", "/api/v1/session", &[&hub.link], "").body;
    assert!(session.contains("\"by\":\"hidden\""), "the maker of a link is a person: {session}");
}

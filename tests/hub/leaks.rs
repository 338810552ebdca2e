//! Two teams on one hub: no request returns any data of the other team's machines.

use super::JSON;
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use shared::catalog::fleet::Grain;
use shared::wire::{self, PROTOCOL, PageMessage, Received, ServerMessage, SourceId};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use watchglass_tests::agent::{self, Agent};
use watchglass_tests::hub::Hub;
use watchglass_tests::ledger::Ledger;
use watchglass_tests::waiting::{MAX_WAIT, within};

/// A team, with its data that the other must not see: the names of its machine, and all words about it.
struct Side {
    /// Header lines of readers of the team.
    askers: Vec<String>,
    /// Names of its machine: the current name, the earlier one, the id.
    names: Vec<String>,
    /// Words that the other team must not receive.
    words: Vec<String>,
}

/// A hub with a machine of each team, and both sides. The agents run until they are dropped.
fn two_teams() -> (Hub, [Side; 2], Vec<Agent>) {
    let hub = Hub::start(["--no-local"]);
    let url = format!("http://{}", hub.server.addr());
    let ledger = Ledger::start();
    let root = hub.cookie("root");
    // The other team's objects are created by its own people.
    let made = |what: &str, body: &str| {
        let path = format!("/api/v1/teams/other/{what}");
        let answer = hub.send("POST", &path, &[&root, &hub.origin(), JSON], body);
        assert_eq!(answer.status, 201, "{answer:?}");
        let made: Value = serde_json::from_str(&answer.body).expect("JSON");
        made["key"].as_str().expect("a key").to_string()
    };
    let key = |scope: &str| {
        format!("Authorization: Bearer {}", made("keys", &format!("{{\"name\":\"{scope}\",\"scopes\":[\"{scope}\"]}}")))
    };
    let start = |name: &str, key: &str| {
        let mut command = agent::command(&url, key, &hub.folder.path().join(name));
        command.args(["--name", &format!("{name}-old"), "--label", &format!("rack={name}rack"), "--interval", "200ms"]);
        command.args(["--collectors", "openmetrics,cpu,process"]);
        command.args(["--openmetrics", &format!("{name}books={}", ledger.url)]);
        Agent::start(command)
    };
    let agents = vec![start("alpha", &hub.keys["join"]), start("beta", &made("join", "{}"))];
    let sources = || -> Vec<Value> {
        let answer = hub.send("GET", "/api/v1/sources", &[&root], "");
        let told: Value = serde_json::from_str(&answer.body).expect("JSON");
        told["sources"].as_array().cloned().unwrap_or_default()
    };
    let id = |name: &str| {
        let (mut known, mut series) = (None, String::new());
        let has_samples = within(3 * MAX_WAIT, || {
            known = sources().into_iter().find(|source| source["name"] == *name);
            let path = format!("/api/v1/query?tag=openmetrics.*&source={name}");
            series = hub.send("GET", &path, &[&root], "").body;
            (known.is_some() && series.contains("books")).then_some(())
        });
        let said: String = agents.iter().map(Agent::output).collect();
        assert!(has_samples.is_some(), "{name} has no samples: {known:?} {series:.500}\n{said}");
        known.as_ref().and_then(|known| known["key"].as_str()).expect("an id").to_string()
    };
    let side = |name: &str, team: &str, askers: Vec<String>| {
        let (old, new) = (format!("{name}-old"), format!("{name}-new"));
        let id = id(&old);
        let path = format!("/api/v1/teams/{team}/agents/{id}");
        let renamed = hub.send("PATCH", &path, &[&root, &hub.origin(), JSON], &format!("{{\"name\":\"{new}\"}}"));
        assert_eq!(renamed.status, 200, "{renamed:?}");
        let words = vec![format!("{name}rack"), format!("{name}books"), old.clone(), new.clone(), id.clone()];
        Side { askers, names: vec![new, old, id], words }
    };
    let of_main = ["vera", "ada"].map(|name| hub.cookie(name)).into_iter();
    let of_main = of_main.chain(["data", "metrics", "team", "own"].map(|name| hub.key(name))).collect();
    let of_other = [hub.cookie("olga"), key("data:read"), key("metrics:read"), key("team:admin")];
    let sides = [side("alpha", "main", of_main), side("beta", "other", of_other.to_vec())];
    (hub, sides, agents)
}

/// All paths that read. `{}` is the name of a machine; paths without it read all.
const READ: &[&str] = &[
    "/api/v1/session",
    "/api/v1/catalog",
    "/api/v1/sources",
    "/api/v1/series",
    "/api/v1/query?tag=cpu",
    "/api/v1/query?tag=openmetrics.*",
    // An unknown tag returns the most similar ones.
    "/api/v1/query?tag=openmetrics.betaboks.books_total",
    "/api/v1/query?tag=openmetrics.alphaboks.books_total",
    "/api/v1/series?match=openmetrics.betaboks.books_total",
    "/api/v1/series?match=openmetrics.alphaboks.books_total",
    "/api/v1/rules",
    "/api/v1/figure?tag=openmetrics.*",
    "/api/v1/export?format=json&tag=cpu&from=-10m",
    "/api/v1/export?format=csv&from=-10m",
    "/api/v1/export?format=openmetrics&from=-10m",
    "/api/v1/processes",
    "/api/v1/doctor",
    "/api/v1/fleet?row=cpu",
    "/api/v1/teams/main/agents",
    "/api/v1/teams/other/agents",
    "/api/v1/teams/main/join",
    "/api/v1/teams/other/join",
    "/api/v1/teams/main/keys",
    "/api/v1/teams/other/keys",
    "/metrics",
];
const OF_ONE: &[&str] = &[
    "/api/v1/query?tag=cpu&source={}",
    "/api/v1/export?format=csv&tag=cpu&from=-10m&source={}",
    "/api/v1/record?from=-10m&source={}",
    "/api/v1/processes?source={}",
    "/api/v1/doctor?source={}",
    "/api/v1/fleet?row=cpu&source={}",
    "/api/v1/live?format=json&source={}",
    "/api/v1/teams/main/agents/{}",
    "/api/v1/teams/other/agents/{}",
];

#[test]
fn no_answer_tells_a_team_of_the_machines_of_another() {
    let (hub, sides, _agents) = two_teams();
    let mut faults = Vec::new();
    for (own, other) in [(0, 1), (1, 0)] {
        for asker in &sides[own].askers {
            let get = |path: &str| hub.send("GET", path, &[asker], "");
            for path in READ {
                let answer = get(path);
                let told = sides[other].words.iter().find(|word| answer.body.contains(word.as_str()));
                if let Some(word) = told {
                    faults.push(format!("{asker:.40} {path}: {} tells of {word}", answer.status));
                }
            }
            // An existing object has the same answer as one that never existed.
            for path in OF_ONE {
                let unknown = get(&path.replace("{}", "nosuchmachine"));
                for name in &sides[other].names {
                    let answer = get(&path.replace("{}", name));
                    let (same, body) = (answer.status == unknown.status, answer.body.replace(name, "nosuchmachine"));
                    if !same || body != unknown.body {
                        faults.push(format!(
                            "{asker:.40} {path} of {name}: {} {:.200}, of one that is not: {} {:.200}",
                            answer.status, answer.body, unknown.status, unknown.body
                        ));
                    }
                }
            }
        }
    }
    // A reader of both teams sees both under the same paths, so the paths do return data.
    let all = hub.send("GET", "/api/v1/series", &[&hub.cookie("root")], "").body;
    assert!(all.contains("alphabooks") && all.contains("betabooks"), "{all}");
    for (own, word) in [(0, "alphabooks"), (1, "betabooks")] {
        let table = hub.send("GET", "/api/v1/catalog", &[&sides[own].askers[0]], "").body;
        assert!(table.contains(word), "its own rows are there");
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn what_would_change_a_machine_of_another_team_finds_none() {
    let (hub, sides, _agents) = two_teams();
    let origin = hub.origin();
    for (own, other, asker) in [(0, 1, hub.cookie("ada")), (1, 0, hub.cookie("olga"))] {
        for team in ["main", "other"] {
            for name in sides[other].names.iter().map(String::as_str).chain(["nosuchmachine"]) {
                let path = format!("/api/v1/teams/{team}/agents/{name}");
                for (method, path, body) in [
                    ("PATCH", path.clone(), "{\"name\":\"mine\"}"),
                    ("DELETE", path.clone(), ""),
                    ("POST", format!("{path}/approve"), "{}"),
                ] {
                    let answer = hub.send(method, &path, &[&asker, &origin, JSON], body);
                    assert_eq!(
                        (answer.status, answer.error().as_str()),
                        (404, "there is no such thing here"),
                        "{method} {path}"
                    );
                }
            }
        }
        let names = hub.send("GET", "/api/v1/sources", &[&asker], "").body;
        assert!(names.contains(&sides[own].names[2]), "its own is there: {names}");
    }
}

/// Ids of the machines in a small hub.
const NUMBERS: std::ops::Range<SourceId> = 0..6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_message_of_a_stream_tells_a_team_of_the_machines_of_another() {
    let (hub, sides, _agents) = tokio::task::spawn_blocking(two_teams).await.expect("it begins");
    for (own, other, cookie) in [(0, 1, hub.cookie("vera")), (1, 0, hub.cookie("olga"))] {
        let mut request = format!("ws://{}/api/v1/live", hub.server.addr()).into_client_request().expect("an address");
        for line in [&cookie, &hub.origin()] {
            let (name, value) = line.split_once(": ").expect("a header line");
            let name: tokio_tungstenite::tungstenite::http::HeaderName = name.parse().expect("a name");
            request.headers_mut().insert(name, value.parse().expect("a value"));
        }
        let (mut stream, _) = tokio_tungstenite::connect_async(request).await.expect("it is let in");
        let sources = [&sides[other].names[..], &sides[own].names[..1]].concat();
        let far = i64::MAX / 4;
        let mut say = vec![PageMessage::Open { protocol: PROTOCOL, window: 600_000, resume: None, sources }];
        for source in NUMBERS {
            say.push(PageMessage::History { source, from: 0, to: far });
            say.push(PageMessage::Minutes { source, from: 0, to: far });
        }
        say.push(PageMessage::Processes { at: None });
        say.extend(Grain::ALL.map(|grain| PageMessage::Overview { grain, on: true }));
        for message in &say {
            stream.send(Message::Binary(wire::encode(message).into())).await.expect("it listens");
        }
        // Answers come in order: its own minutes, requested once more, are the last.
        let (mut mine, mut asked, mut tick) = (None::<SourceId>, false, false);
        let (mut answers, mut faults) = (0, Vec::new());
        let all = async {
            loop {
                let bytes = match stream.next().await {
                    Some(Ok(Message::Binary(bytes))) => bytes,
                    Some(Ok(_)) => continue,
                    end => panic!("the stream ended: {end:?}"),
                };
                let message = wire::decode_server(&bytes).expect("a message");
                for word in &sides[other].words {
                    if bytes.windows(word.len()).any(|part| part == word.as_bytes()) {
                        faults.push(format!("{word} in {message:?}"));
                    }
                }
                let of = match &message {
                    Received::Ticks(source, _) => {
                        tick = true;
                        Some(*source)
                    }
                    Received::Control(ServerMessage::Sources(all)) => {
                        mine = all.first().map(|entry| entry.id);
                        assert_eq!(all.len(), 1, "{all:?}");
                        None
                    }
                    Received::Control(ServerMessage::Columns(columns)) => Some(columns.source),
                    Received::Control(ServerMessage::Minutes(minutes)) => Some(minutes.source),
                    Received::Control(ServerMessage::Series { source, .. } | ServerMessage::Facts { source, .. }) => {
                        Some(*source)
                    }
                    Received::Control(ServerMessage::MinutesEnd { source, from: 1, .. }) if Some(*source) == mine => {
                        return;
                    }
                    _ => None,
                };
                if of.is_some() && of != mine {
                    faults.push(format!("of {of:?}, and ours is {mine:?}: {message:?}"));
                }
                answers += 1;
                if let (Some(source), true, false) = (mine, tick, asked) {
                    asked = true;
                    let last = PageMessage::Minutes { source, from: 1, to: far };
                    stream.send(Message::Binary(wire::encode(&last).into())).await.expect("it listens");
                }
            }
        };
        tokio::time::timeout(3 * MAX_WAIT, all).await.expect("the last answer comes in time");
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        assert!(answers > 5, "{answers} answers");
    }
}

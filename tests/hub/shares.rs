//! A share link, from its user's view.

use super::JSON;
use super::machine::Machine;
use super::sockets::{Stream, ended, open, send_message};
use futures_util::StreamExt;
use serde_json::{Value, json};
use shared::catalog::Catalog;
use shared::catalog::fleet::Grain;
use shared::series::SeriesDef;
use shared::tick::TickState;
use shared::wire::{self, PageMessage, Received, ServerMessage, SourceId};
use std::collections::BTreeSet;
use watchglass_tests::hub::Hub;
use watchglass_tests::waiting::{MAX_WAIT, until, until_so};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_shows_one_view_to_whoever_has_it_until_it_is_taken_back() {
    // The hub measures its own machine, so that there is data to show.
    let hub = Hub::start([]);
    let (mike, origin) = (hub.cookie("mike"), hub.origin());
    let made = hub.send("POST", "/api/v1/shares", &[&mike, &origin, JSON], "{\"query\":\"w=5m\"}");
    assert_eq!(made.status, 201, "{made:?}");
    let made: shared::views::MadeShare = serde_json::from_str(&made.body).expect("a link");
    let (_, code) = made.url.reveal().split_once("#share=").expect("the code is in the fragment");
    let body = format!("{{\"code\":\"{code}\"}}");
    let foreign = hub.send("POST", "/api/v1/shares/open", &["Origin: https://evil.example", JSON], &body);
    assert_eq!(foreign.status, 403, "another site opens nothing");
    let opened = hub.send("POST", "/api/v1/shares/open", &[&origin, JSON], &body);
    assert_eq!(opened.status, 200, "{opened:?}");
    let set = opened.header("set-cookie").to_string();
    assert!(set.contains(&made.id) && set.contains("HttpOnly") && set.contains("SameSite=Strict"), "{set}");
    let session: shared::session::Session = serde_json::from_str(&opened.body).expect("a session");
    assert_eq!((session.share.as_deref(), session.account), (Some(made.id.as_str()), None));
    assert_eq!(session.shared.expect("what it shows").query, "w=5m");

    let cookie = format!("Cookie: {}", set.split(';').next().expect("name and value"));
    let sources = hub.send("GET", "/api/v1/sources", &[&cookie], "");
    assert!(sources.status == 200 && sources.body.contains("\"key\""), "{sources:?}");
    for path in ["/api/v1/processes", "/api/v1/export?tag=*", "/api/v1/views", "/api/v1/me", "/api/v1/teams/main"] {
        assert_eq!(hub.send("GET", path, &[&cookie], "").status, 403, "{path}");
    }
    let past = hub.send("GET", "/api/v1/query?tag=*&from=-2h&to=-1h", &[&cookie], "");
    assert_eq!(past.status, 403, "before its window: {past:?}");
    // A signed-in user is shown the link where the request names it.
    let both = format!("{}; {}", hub.cookie("olga"), set.split(';').next().expect("name and value"));
    let seen = |path: &str| hub.send("GET", path, &[&both], "").body.contains("\"key\"");
    assert!(!seen("/api/v1/sources") && seen(&format!("/api/v1/sources?share={}", made.id)));

    let stream = open(&hub, "", &[cookie.clone(), origin.clone()]).await;
    let taken = hub.send("DELETE", &format!("/api/v1/shares/{}", made.id), &[&mike, &origin, JSON], "");
    assert_eq!(taken.status, 200, "{taken:?}");
    let (goodbye, close) = ended(stream).await;
    assert_eq!(goodbye.as_deref(), Some("this link was revoked"));
    assert!(close.is_some_and(|close| u16::from(close.code) == 1008));
    assert_eq!(hub.send("GET", "/api/v1/sources", &[&cookie], "").status, 401);
}

/// Data of the machine's series that a page received on a socket.
#[derive(Default)]
struct SharedData {
    catalog: Catalog,
    source: SourceId,
    defs: Vec<SeriesDef>,
    state: TickState,
    /// Tags of series that had a value in a frame, in columns or in minutes.
    tags: BTreeSet<String>,
    ticks: usize,
    ends: usize,
    /// Number of received collector checks.
    checks: usize,
}

impl SharedData {
    fn tag(&self, id: u32) -> String {
        let def = self.defs.get(id as usize).expect("a series that was announced");
        let tag = self.catalog.tag(def);
        if tag.is_empty() { format!("a series of nothing, {id}") } else { tag }
    }

    fn values(&mut self) {
        let there = (0..).zip(self.state.values()).filter(|(_, value)| value.is_finite());
        let there: Vec<u32> = there.map(|(id, _)| id).collect();
        self.tags.extend(there.into_iter().map(|id| self.tag(id)).collect::<Vec<_>>());
    }

    fn take(&mut self, bytes: &[u8]) {
        match wire::decode_server(bytes).expect("a message") {
            Received::Control(ServerMessage::Catalog(catalog)) => self.catalog = catalog,
            Received::Control(ServerMessage::Rows { first, metrics, charts }) => {
                self.catalog.extend(first as usize, metrics, charts);
            }
            Received::Control(ServerMessage::Sources(sources)) => self.source = sources[0].id,
            Received::Control(ServerMessage::Series { first, defs, .. }) => {
                assert!(first as usize <= self.defs.len(), "series come without a hole");
                for (id, def) in (first..).zip(defs) {
                    let steps = self.catalog.metric(&def).map_or(0.0, |metric| metric.steps);
                    match self.defs.get_mut(id as usize) {
                        Some(known) => {
                            *known = def;
                            self.state.redefine(id, steps);
                        }
                        None => {
                            self.defs.push(def);
                            self.state.extend([steps]);
                        }
                    }
                }
            }
            Received::Ticks(_, frames) => {
                for frame in frames {
                    self.state.apply(frame).expect("frames follow each other");
                    self.ticks += 1;
                    self.values();
                }
            }
            Received::Control(ServerMessage::Checks { checks, .. }) => self.checks += checks.len(),
            Received::Control(ServerMessage::Columns(columns)) => {
                self.tags.extend(columns.columns.iter().map(|(id, _)| self.tag(*id)).collect::<Vec<_>>());
            }
            Received::Control(ServerMessage::Minutes(minutes)) => {
                self.tags.extend(minutes.columns.iter().map(|(id, _)| self.tag(*id)).collect::<Vec<_>>());
            }
            Received::Control(
                ServerMessage::HistoryEnd { from: 1, .. } | ServerMessage::MinutesEnd { from: 1, .. },
            ) => {
                self.ends += 1;
            }
            _ => {}
        }
    }
}

/// Follows a machine for some ticks, requests all of its history, and collects the received data.
async fn collect_data(mut stream: Stream) -> SharedData {
    let mut told = SharedData::default();
    let all = async {
        let mut asked = false;
        while told.ticks < 6 || told.ends < 2 {
            let bytes = stream.next().await.expect("a message").expect("a message").into_data();
            told.take(&bytes);
            if told.ticks > 0 && !asked {
                asked = true;
                let (source, from, to) = (told.source, 1, i64::MAX / 4);
                send_message(&mut stream, &PageMessage::History { source, from, to }).await;
                send_message(&mut stream, &PageMessage::Minutes { source, from, to }).await;
                send_message(&mut stream, &PageMessage::Overview { grain: Grain::Sources, on: true }).await;
            }
            send_message(&mut stream, &PageMessage::Ack { messages: 0 }).await;
        }
    };
    tokio::time::timeout(3 * MAX_WAIT, all).await.expect("ticks come in time");
    told
}

/// A share link of `mike`'s to this query: the header line of its cookie.
pub fn link(hub: &Hub, query: &str) -> String {
    opened(hub, &json!({ "query": query }))
}

/// A share link of `mike`'s, opened: the header line of its cookie.
fn opened(hub: &Hub, wanted: &Value) -> String {
    let body = wanted.to_string();
    let made = hub.send("POST", "/api/v1/shares", &[&hub.cookie("mike"), &hub.origin(), JSON], &body);
    let made: shared::views::MadeShare = serde_json::from_str(&made.body).unwrap_or_else(|_| panic!("{made:?}"));
    let (_, code) = made.url.reveal().split_once("#share=").expect("a code");
    let body = format!("{{\"code\":\"{code}\"}}");
    let opened = hub.send("POST", "/api/v1/shares/open", &[&hub.origin(), JSON], &body);
    format!("Cookie: {}", opened.header("set-cookie").split(';').next().expect("name and value"))
}

/// Tags of the series of an answer.
fn tags(hub: &Hub, who: &str, path: &str) -> BTreeSet<String> {
    let answer = hub.send("GET", path, &[who], "");
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    let told: Value = serde_json::from_str(&answer.body).expect("JSON");
    let series = told["series"].as_array().expect("a list").iter();
    series.filter_map(|one| Some(one["tag"].as_str()?.to_string())).collect()
}

/// Metric of the chart `cpu`.
const CPU: &str = "system.cpu_percent";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_gives_no_value_of_a_chart_that_its_view_leaves_out() {
    let hub = Hub::start(["--interval", "100ms", "--collectors", "cpu,memory"]);
    let whole = link(&hub, "w=5m");
    let less = link(&hub, "w=5m&hide=cpu,load&over=memory~load");
    let hidden = |tags: &BTreeSet<String>| tags.contains(CPU);
    let memory = |tags: &BTreeSet<String>| tags.contains("memory_percent");
    until_so("there are samples of both charts", || {
        let seen = tags(&hub, &whole, "/api/v1/series");
        hidden(&seen) && memory(&seen)
    });
    let query = format!("/api/v1/query?tag={CPU}");
    for path in ["/api/v1/series", "/api/v1/series?match=*", "/api/v1/query?tag=*", &query] {
        assert!(hidden(&tags(&hub, &whole, path)), "{path} tells who is shown all");
        assert!(!hidden(&tags(&hub, &less, path)), "{path}");
    }
    until_so("all else is there, and what is drawn over another chart, too", || {
        let mut seen = tags(&hub, &whole, "/api/v1/series");
        seen.retain(|tag| tag != CPU);
        seen.contains("system.load1") && tags(&hub, &less, "/api/v1/series") == seen
    });
    let fleet = |who: &str| hub.send("GET", "/api/v1/fleet?row=cpu", &[who], "").status;
    assert_eq!((fleet(&whole), fleet(&less)), (200, 403));
    for (who, shown) in [(&whole, true), (&less, false)] {
        let told = collect_data(open(&hub, "", &[who.clone(), hub.origin()]).await).await;
        assert_eq!(hidden(&told.tags), shown, "{:?}", told.tags);
        assert!(memory(&told.tags), "{:?}", told.tags);
        assert_eq!(told.defs.iter().any(|def| told.catalog.tag(def) == CPU), shown, "nor by its name");
        assert_eq!(told.checks, 0, "nor how the machine is read: paths, addresses, names of users");
    }
    let signed_in = collect_data(open(&hub, "", &[hub.cookie("mike"), hub.origin()]).await).await;
    assert!(signed_in.checks > 0, "who is signed in is told that");
}

#[test]
fn a_link_to_a_run_and_one_to_an_alert_show_that_and_nothing_of_people_or_other_runs() {
    let hub = Hub::start(["--collectors", "cpu,job", "--interval", "200ms"]);
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Machine::command(&hub, "node-9", ["--collectors", "cpu,job", "--interval", "200ms"]);
    command.arg("--data-dir").arg(folder.path());
    let machine = Machine::run(command);
    let submit = |path: &str, body: Value| {
        hub.send("POST", &format!("/api/v1/{path}"), &[&hub.key("runs"), JSON], &body.to_string())
    };
    let mike = |path: &str| -> Value {
        let answer = hub.send("GET", &format!("/api/v1/{path}"), &[&hub.cookie("mike")], "");
        serde_json::from_str(&answer.body).unwrap_or(Value::Null)
    };
    for id in ["shown", "secret"] {
        let begin = json!({ "id": id, "name": format!("run {id}"), "notes": "a private note", "program": "train.py" });
        let begun = until("the machine has joined, and the run is taken", || {
            let answer = submit("runs?source=node-9", begin.clone());
            (![404, 503].contains(&answer.status)).then_some(answer)
        });
        assert_eq!(begun.status, 201, "{begun:?}");
        until("the run is listed", || (mike(&format!("runs/{id}"))["state"] == "running").then_some(()));
    }
    let own = "markers?source=node-9";
    assert_eq!(submit(own, json!({ "kind": "epoch", "text": "private", "step": 3, "run": "shown" })).status, 200);
    assert_eq!(submit(own, json!({ "kind": "note", "text": "private", "run": "shown" })).status, 200);
    // The evaluation of alerts begins some time after the start.
    let raise = json!({ "id": "loss-1", "title": "loss is up", "text": "private", "run": "shown" });
    until("the alert is raised", || (submit("alerts", raise.clone()).status < 300).then_some(()));
    until("markers are listed", || (mike("markers?run=shown")["markers"].as_array()?.len() == 2).then_some(()));
    let alert = until("the alert is listed", || {
        let all = mike("alerts");
        all["alerts"].as_array()?.iter().find_map(|one| Some(one["id"].as_str()?.to_string()))
    });
    let to_run = link(&hub, "page=run&run=shown&w=1h");
    let to_alert = link(&hub, &format!("page=alert&alert={alert}&w=1h"));
    let to_machine = link(&hub, "source=node-9&w=1h");
    let ask = |who: &str, path: &str| hub.send("GET", &format!("/api/v1/{path}"), &[who], "");
    let shown = ask(&to_run, "runs/shown");
    assert!(shown.status == 200 && shown.body.contains("run shown"), "{shown:?}");
    let list = ask(&to_run, "runs");
    assert!(list.status == 200 && list.body.contains("run shown"), "{list:?}");
    let markers = ask(&to_run, "markers?run=shown");
    assert!(markers.status == 200 && markers.body.contains("\"step\":3"), "{markers:?}");
    let told = ask(&to_alert, &format!("alerts/{alert}"));
    assert!(told.status == 200 && told.body.contains("loss is up"), "{told:?}");
    for answer in [&shown, &list, &markers, &told] {
        for word in ["private", "secret", "key runs", "note\""] {
            assert!(!answer.body.contains(word), "{word}: {answer:?}");
        }
    }
    let sources = ask(&to_run, "sources");
    assert!(sources.body.contains("node-9") && sources.body.matches("\"key\"").count() == 1, "{sources:?}");
    // Each link shows what its maker chose, and no list of alerts, output or report.
    for (who, path, status) in [
        (&to_run, "runs/secret", 404),
        (&to_machine, "runs/shown", 404),
        (&to_alert, "runs/shown", 404),
        (&to_run, &format!("alerts/{alert}"), 404),
        (&to_alert, "alerts", 403),
        (&to_run, "runs/shown/logs", 403),
        (&to_run, "runs/shown/report", 403),
    ] {
        assert_eq!(ask(who, path).status, status, "{path}");
    }
    assert!(!ask(&to_machine, "runs").body.contains("run shown"));
    // A comparison has each of its runs.
    let compared = link(&hub, "page=run&run=secret&run=shown&w=1h");
    assert_eq!(["secret", "shown"].map(|run| ask(&compared, &format!("runs/{run}")).status), [200, 200]);
    // A saved view of a run has the machines of the run, too.
    let view = json!({ "name": "the run", "scope": "team", "query": "page=run&run=shown&w=1h" }).to_string();
    let view = hub.send("POST", "/api/v1/views?team=main", &[&hub.cookie("mike"), &hub.origin(), JSON], &view);
    let view: Value = serde_json::from_str(&view.body).unwrap_or_else(|_| panic!("{view:?}"));
    let of_view = opened(&hub, &json!({ "view": view["id"] }));
    assert_eq!(ask(&of_view, "sources").body.matches("\"key\"").count(), 1);
    // Filters do not tell what a link hides.
    for path in
        ["runs?user=zora", "runs?tag=x", "markers?run=secret", "markers?kernel=00000000-0000-4000-8000-000000000000"]
    {
        assert_eq!(ask(&to_run, path).status, 403, "{path}");
    }
    // The samples of its time alone, though the run is older.
    let sources = mike("sources")["sources"].as_array().cloned().expect("machines");
    let node = sources.iter().find(|source| source["name"] == "node-9").expect("it has joined");
    let now = node["last"].as_f64().expect("a tick") as u64;
    let past = link(&hub, &format!("page=run&run=shown&from={}&to={}", now - 3, now - 1));
    let curves: Value = serde_json::from_str(&ask(&past, "runs/shown").body).expect("JSON");
    let from = curves["curves"]["from"].as_f64().unwrap_or_else(|| panic!("{curves}"));
    assert!(from >= (now - 3) as f64, "{curves}");
    // Only who sees a thing shares it.
    for (who, query, status) in [("mike", "run=none", 404), ("mike", "finding=none", 404), ("olga", "run=shown", 404)] {
        let body = json!({ "query": query }).to_string();
        let made = hub.send("POST", "/api/v1/shares", &[&hub.cookie(who), &hub.origin(), JSON], &body);
        assert_eq!(made.status, status, "{who} {query}: {made:?}");
    }
    // A machine is missed once it was there for some time.
    let samples = || hub.send("GET", "/api/v1/query?tag=system.cpu_percent&source=node-9&from=-1h", &[&to_machine], "");
    until("it was there for some time", || (samples().body.matches("[").count() > 60).then_some(()));
    drop(machine);
    let lost = until("the machine is missed", || {
        let all = mike("findings?kind=host_lost&active=1");
        all["findings"].as_array()?.iter().find(|one| one["subject"][0]["source"] == "node-9").cloned()
    });
    let wrong = json!({ "id": lost["id"], "why": "a private reason" }).to_string();
    let said = hub.send("POST", "/api/v1/findings/wrong", &[&hub.cookie("mike"), &hub.origin(), JSON], &wrong);
    assert_eq!(said.status, 200, "{said:?}");
    let told = ask(&to_machine, "findings?active=1");
    assert!(told.status == 200 && told.body.contains("node-9 has not reported"), "{told:?}");
    assert!(!told.body.contains("private") && !told.body.contains("mike"), "{told:?}");
    let none = ask(&link(&hub, "source=gpu-7&w=1h"), "findings?active=1");
    assert!(none.status == 200 && !none.body.contains("node-9"), "{none:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_of_a_team_that_turns_them_off_show_nothing_until_it_turns_them_on() {
    let hub = Hub::start([]);
    let link = link(&hub, "w=5m");
    let [ada, mike, origin] = [hub.cookie("ada"), hub.cookie("mike"), hub.origin()];
    let set = |by: &str, on: bool| {
        let body = format!("{{\"share_links\":{on}}}");
        hub.send("PATCH", "/api/v1/teams/main", &[by, &origin, JSON], &body).status
    };
    let reads = || hub.send("GET", "/api/v1/sources", &[&link], "").status;
    let makes = || hub.send("POST", "/api/v1/shares", &[&mike, &origin, JSON], "{\"query\":\"w=5m\"}");
    let stream = open(&hub, "", &[link.clone(), origin.clone()]).await;
    assert_eq!((reads(), set(&mike, false), makes().status), (200, 403, 201));
    assert_eq!(set(&ada, false), 200);
    let (goodbye, close) = ended(stream).await;
    assert!(goodbye.is_some() && close.is_some_and(|close| u16::from(close.code) == 1008), "its page closes");
    assert_eq!(reads(), 401);
    let refused = makes();
    assert!(refused.status == 403 && refused.error().contains("off for this team"), "{refused:?}");
    assert_eq!(set(&ada, true), 200);
    assert_eq!((reads(), makes().status), (200, 201));
    let log = hub.send("GET", "/api/v1/audit?team=main&action=team.change", &[&ada], "").body;
    assert!(log.contains("no_share_links"), "{log}");
    // The hub as a whole turns them off by its configuration.
    let Hub { server, cookies, keys, link, folder } = hub;
    let port = server.addr().port();
    assert!(server.end_by("TERM").success());
    let file = folder.path().join("hub.toml");
    std::fs::write(&file, "[sharing]\nlinks = false\n").expect("written");
    let file = file.to_str().expect("a name").to_string();
    let server = Hub::server_at(folder.path(), port, ["--config", &file], Vec::new());
    let hub = Hub { server, cookies, keys, link, folder };
    assert_eq!(hub.send("GET", "/api/v1/sources", &[&hub.link], "").status, 401);
    let body = "{\"query\":\"w=5m\"}";
    let refused = hub.send("POST", "/api/v1/shares", &[&hub.cookie("mike"), &hub.origin(), JSON], body);
    assert!(refused.status == 403 && refused.error().contains("off on this hub"), "{refused:?}");
}

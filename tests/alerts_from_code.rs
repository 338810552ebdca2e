//! Tests alerts from code, by command, by datagram and by the API. They belong to the run that the kernel identifies,
//! are bounded, and never block the caller.
#![cfg(target_os = "linux")]

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use watchglass_tests::server::{Server, ask_with, run, watchglass};
use watchglass_tests::waiting::{until, until_so};

/// A server of a folder, with scripts in the same folder.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        Bench { folder: tempfile::tempdir().expect("a folder") }
    }

    fn data(&self) -> &str {
        self.folder.path().to_str().expect("plain letters")
    }

    fn server(&self) -> Server {
        Server::start(["--collectors", "cpu", "--data-dir", self.data()])
    }

    /// Runs `watchglass alert` with these arguments. Returns its status and output.
    fn alert(&self, words: &[&str]) -> (Option<i32>, String) {
        let mut command = watchglass(["alert", "--data-dir", self.data()]);
        command.args(words).env_remove("WATCHGLASS_RUN_ID").env_remove("WATCHGLASS_SOCKET");
        let begin = Instant::now();
        let output = command.output().expect("it ran");
        assert!(begin.elapsed() < Duration::from_secs(60), "a machine that is loaded takes a part of it");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Runs `watchglass alert` until it says that the server took the alert. It waits for less than a second, which a
    /// loaded machine may exceed. The same call again is the same alert.
    #[track_caller]
    fn is_taken(&self, words: &[&str]) {
        until_so("the alert is taken", || {
            let (status, line) = self.alert(words);
            assert!((status == Some(0) && line.is_empty()) || line.contains("does not respond"), "{status:?}: {line}");
            status == Some(0)
        });
    }

    /// A job with this script, in whose shell `$A` is the program.
    fn job(&self, id: &str, script: &str) -> Command {
        let mut command = watchglass(["run", "--data-dir", self.data(), "--id", id, "--", "sh", "-c", script]);
        let own = watchglass(["alert"]);
        command.env("A", own.get_program()).env_remove("WATCHGLASS_RUN_ID").env_remove("WATCHGLASS_SOCKET");
        command
    }

    fn post(&self, server: &Server, alert: &Value) -> (u16, Value) {
        let (host, body) = (server.addr(), alert.to_string());
        let lines = format!(
            "POST /api/v1/alerts HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        let answer = ask_with(host, &lines, &body);
        (answer.status, serde_json::from_str(&answer.body).unwrap_or_default())
    }

    /// Contents of the folder's files, as an export.
    fn kept(&self) -> String {
        let tag = "system.cpu_percent";
        let export = ["export", "--format", "json", "--from", "-1h", "--tag", tag, "--data-dir", self.data()];
        String::from_utf8(run(export).stdout).expect("text")
    }

    /// Records of the machine, once they meet a condition.
    fn records(&self, server: &Server, what: &str, so: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        until(what, || {
            let all = alerts(server);
            so(&all).then_some(all)
        })
    }
}

/// The alerts in the records of the machine, in order of arrival.
fn alerts(server: &Server) -> Vec<Value> {
    records(&server.get("/api/v1/export?format=json&from=-1h&tag=system.cpu_percent", &[]).body)
}

/// The alerts in an export.
fn records(lines: &str) -> Vec<Value> {
    let records = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    records.filter(|line| line["record"] == "alert").map(|line| line["body"].clone()).collect()
}

/// The titles of alerts, each once.
fn titles(all: &[Value]) -> BTreeSet<&str> {
    all.iter().filter_map(|one| one["title"].as_str()).collect()
}

/// Whether an alert says that others were left out.
fn is_of_limit(alert: &Value) -> bool {
    alert["title"].as_str().is_some_and(|title| title.starts_with("Limit of alerts"))
}

#[test]
fn an_alert_is_of_the_run_that_the_kernel_names_and_of_no_other() {
    let bench = Bench::new();
    let (status, line) = bench.alert(&["loss is NaN"]);
    assert_eq!((status, line.lines().count()), (Some(1), 1), "{line}");
    assert!(line.contains("no watchglass listens on this machine"), "{line}");
    let server = bench.server();
    bench.is_taken(&["disk is slow", "--severity", "info"]);
    for wrong in [&["x", "--severity", "loud"][..], &["x", "--wait", "8d"], &["  "], &[], &["x", "--to", "me"]] {
        assert_eq!(bench.alert(wrong).0, Some(2), "{wrong:?}");
    }
    // A caller outside of all runs cannot name a run that does not exist. A caller in a run cannot name another one.
    let (status, line) = bench.alert(&["x", "--run", "nobody"]);
    assert!(status == Some(1) && line.contains("no such run on this machine"), "{line}");
    let datagram = "import os, socket, json, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); \
                    s.sendto(json.dumps({'alert': 'from python', 'run': 'other'}).encode(), os.environ['WATCHGLASS_SOCKET']); \
                    sys.stdin.read()";
    let script = format!(
        "$A alert 'loss is NaN' --text 'step 3' --severity critical --wait 30m; $A alert foreign --run other; \
         exec python3 -c \"{datagram}\""
    );
    let mut other =
        bench.job("other", "read line").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    let mut job = bench.job("own", &script).stdin(Stdio::piped()).spawn().expect("it starts");
    let all = bench.records(&server, "its alerts", |all| all.iter().filter(|one| one["run"] == "own").count() == 3);
    let own: Vec<&Value> = all.iter().filter(|one| one["run"] == "own").collect();
    let own_titles: Vec<&Value> = own.iter().map(|one| &one["title"]).collect();
    assert_eq!(own_titles, ["loss is NaN", "foreign", "from python"]);
    let first = (&own[0]["text"], &own[0]["severity"], &own[0]["wait"], &own[0]["count"]);
    assert_eq!(first, (&json!("step 3"), &json!("critical"), &json!(1800), &json!(1)));
    let of_machine: Vec<Value> = all.iter().filter(|one| one["run"].is_null()).cloned().collect();
    assert_eq!(titles(&of_machine), BTreeSet::from(["disk is slow"]));
    drop(job.stdin.take());
    assert!(job.wait().expect("it ended").success());
    other.kill().and_then(|()| other.wait()).expect("it ended");
}

#[test]
fn an_alert_by_a_request_over_the_socket_of_the_folder_is_of_the_run_of_its_process() {
    let bench = Bench::new();
    let server = bench.server();
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../notebook/python");
    let url = format!("unix:{}/control.sock", bench.data());
    // The package sends requests where no launcher of ours names the socket of runs.
    let code = "import time, watchglass as w; w.alert('from python')\nwhile not w.status()['sent']: time.sleep(0.05)";
    let script = format!(
        "until $A alert begun; do sleep 0.1; done; unset WATCHGLASS_SOCKET WATCHGLASS_RUN_ID; \
         exec env PYTHONPATH={package} WATCHGLASS_URL={url} python3 -c \"{code}\""
    );
    let mut job = bench.job("own", &script).spawn().expect("it starts");
    let is_there = |all: &[Value]| titles(all).contains("from python");
    let all = bench.records(&server, "its alert", is_there);
    let alert = all.iter().find(|one| one["title"] == "from python").expect("it is there");
    assert_eq!(alert["run"], "own", "{alert}");
    assert!(job.wait().expect("it ended").success());
}

#[test]
fn a_thousand_calls_in_a_second_and_sixty_four_ranks_at_once_are_a_few_records() {
    let bench = Bench::new();
    let server = bench.server();
    // At full speed: datagrams without room in the socket are dropped, which is the caller's own decision.
    let script = "import os, socket, json, time\n\
                  s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.setblocking(False)\n\
                  sent = 0; begin = time.monotonic()\n\
                  for n in range(1000):\n\
                  \x20   try: s.sendto(b'{\"alert\": \"loss is NaN\"}', os.environ['WATCHGLASS_SOCKET']); sent += 1\n\
                  \x20   except BlockingIOError: pass\n\
                  assert time.monotonic() - begin < 30\n\
                  print(sent)";
    let file = bench.folder.path().join("loop.py");
    std::fs::write(&file, script).expect("written");
    let ran = bench.job("loop", &format!("python3 {}; sleep 3", file.display())).output().expect("it ran");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let sent: u64 = String::from_utf8_lossy(&ran.stdout).trim().parse().expect("a number");
    let counted = |all: &[Value]| all.iter().filter_map(|one| one["count"].as_u64()).sum::<u64>();
    let all = bench.records(&server, "its alerts", |all| !all.is_empty() && counted(all) > 1);
    assert!(all.len() <= 6 && counted(&all) <= sent, "{sent} calls: {all:?}");
    // Each process of a job sends the same alert. On a loaded machine the server may be late for some of them, which do not
    // wait: then it is unknown whether they were heard.
    let ranks = "for n in $(seq 64); do $A alert 'gradient overflow' && echo taken & done; wait; sleep 4";
    let ran = bench.job("ranks", ranks).output().expect("it ran");
    assert!(ran.status.success());
    let taken = String::from_utf8_lossy(&ran.stdout).lines().count() as u64;
    assert!(taken > 0, "{}", String::from_utf8_lossy(&ran.stderr));
    let of = |all: &[Value]| all.iter().filter(|one| one["run"] == "ranks").cloned().collect::<Vec<_>>();
    let all = bench.records(&server, "64 calls", |all| counted(&of(all)) >= taken);
    assert!(counted(&of(&all)) <= 64 && of(&all).len() <= 8, "{all:?}");
}

#[test]
fn what_comes_from_outside_stays_data_and_keeps_to_its_bounds() {
    let bench = Bench::new();
    let server = bench.server();
    let begin = Instant::now();
    let wild = json!({
        "title": "loss {run}\n@everyone <b>\u{202e}x", "text": "{value}\n<script>\u{1b}[2J", "severity": "info", "id": "once",
    });
    let (status, first) = bench.post(&server, &wild);
    assert_eq!((status, &first["count"]), (201, &json!(1)), "{first}");
    assert_eq!(bench.post(&server, &wild), (200, first.clone()), "the same call is one");
    let again = json!({ "title": "loss {run}\n@everyone <b>\u{202e}x" });
    let (status, second) = bench.post(&server, &again);
    assert_eq!((status, &second["id"], &second["count"]), (200, &first["id"], &json!(2)));
    let all = bench.records(&server, "the alert", |all| !all.is_empty());
    assert_eq!(
        (&all[0]["title"], &all[0]["text"]),
        (&json!("loss {run} @everyone <b>x"), &json!("{value}\n<script>[2J"))
    );
    for (alert, why) in [
        (json!({ "title": "" }), "a title of 1 to 150 bytes"),
        (json!({ "title": "a", "wait": "9d" }), "wait is 0s to 7d"),
        (json!({ "title": "a", "to": "slack" }), "unknown field"),
        (json!({ "title": "a", "t": 4e9 }), "not in the future"),
        (json!({ "title": "a", "wait": 9 }), "at wait: expected a string"),
        (json!(["a"]), "send a JSON object"),
    ] {
        let (status, said) = bench.post(&server, &alert);
        assert!(status == 400 && said["error"].as_str().is_some_and(|said| said.contains(why)), "{alert}: {said}");
    }
    for nowhere in [json!({ "title": "a", "run": "nobody" }), json!({ "title": "a", "source": "elsewhere" })] {
        let (status, said) = bench.post(&server, &nowhere);
        assert!(status == 404, "{said}");
    }
    // Ten new ones per minute are accepted, and one is accepted already. Each six seconds of a slow test allow one more.
    let taken: Vec<u16> = (0..20).map(|n| bench.post(&server, &json!({ "title": format!("step {n}") })).0).collect();
    let more = begin.elapsed().as_secs() as usize / 6;
    let accepted = taken.iter().filter(|status| **status == 201).count();
    assert!((9..=9 + more).contains(&accepted), "{taken:?}");
    assert_eq!(taken.iter().filter(|status| **status == 429).count(), 20 - accepted, "{taken:?}");
    let is_said = |all: &[Value]| all.len() > 10 && all.iter().any(is_of_limit);
    let all = bench.records(&server, "that some are left out", is_said);
    assert_eq!(all.iter().filter(|one| is_of_limit(one)).count(), 1, "{all:?}");
}

#[test]
fn a_call_that_was_taken_outlives_the_server_that_took_it() {
    let bench = Bench::new();
    let server = bench.server();
    bench.is_taken(&["loss is NaN"]);
    assert_eq!(bench.post(&server, &json!({ "title": "disk", "id": "one" })).0, 201);
    // The log writes once a second.
    let both = BTreeSet::from(["loss is NaN", "disk"]);
    until_so("both are in the folder", || titles(&records(&bench.kept())) == both);
    server.end_by("KILL");
    let server = bench.server();
    let all = bench.records(&server, "both", |all| titles(all) == both);
    assert_eq!(all[0]["title"], "loss is NaN", "{all:?}");
    assert_eq!(bench.post(&server, &json!({ "title": "disk", "id": "one" })).0, 200, "it is known behind the restart");
}

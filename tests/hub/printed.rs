//! The output of a job can be read only by members of its machine's team, by any path. Lines are in no record, because
//! records go to every viewer, every link and every recording.

use super::JSON;
use super::admission::everybody;
use super::machine::Machine;
use super::sockets::{open, send_message};
use fake_clock::FakeClock;
use futures_util::StreamExt;
use serde_json::Value;
use shared::wire::{PROTOCOL, PageMessage};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio_tungstenite::tungstenite::Message;
use watchglass_tests::hub::Hub;
use watchglass_tests::server::{ServerAnswer, watchglass};
use watchglass_tests::waiting::{until, until_so};

/// A text that only the job prints.
const LINE: &str = "zebra-crossing-of-the-job";

/// Runs a job on the hub's own machine to its end.
fn printed(hub: &Hub, id: &str, script: &str) {
    printed_in(hub.folder.path(), id, script);
}

/// Runs a job to its end on the machine with this data folder.
fn printed_in(folder: &Path, id: &str, script: &str) {
    let mut job = watchglass(["run", "--logs", "--id", id, "--data-dir"]);
    job.arg(folder).args(["--", "sh", "-c", script]);
    job.env_remove("WATCHGLASS_RUN_ID").env_remove("WATCHGLASS_SOCKET");
    let ended = job.output().expect("it ran");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(!said.contains("watchglass:"), "{said}");
}

/// A share link of all machines, including the hub's own.
fn link(hub: &Hub) -> String {
    let made = hub.send(
        "POST",
        "/api/v1/shares",
        &[&hub.cookie("mike"), &hub.origin(), JSON],
        "{\"query\":\"w=5m&run=loud\"}",
    );
    let made: shared::views::MadeShare = serde_json::from_str(&made.body).expect("a link");
    let (_, code) = made.url.reveal().split_once("#share=").expect("the code is in the fragment");
    let opened = hub.send("POST", "/api/v1/shares/open", &[&hub.origin(), JSON], &format!("{{\"code\":\"{code}\"}}"));
    format!("Cookie: {}", opened.header("set-cookie").split(';').next().expect("name and value"))
}

/// A hub with a job that has printed and failed, both of which it lists.
fn hub() -> Hub {
    hub_with(Vec::new())
}

/// The same hub with these variables.
fn hub_with(env: Vec<(String, String)>) -> Hub {
    let hub = Hub::start_with(env, ["--collectors", "cpu,process"]);
    printed(&hub, "loud", &format!("echo begin; echo 'RuntimeError: {LINE}' >&2; exit 1"));
    wait_for_end(&hub);
    hub
}

/// Waits until the hub lists the end of the job, and its line as the cause.
fn wait_for_end(hub: &Hub) {
    until("the end of the run", || {
        let told = hub.send("GET", "/api/v1/runs/loud", &[&hub.cookie("mike")], "");
        (told.body.contains("failed (exit 1)") && tells(&told)).then_some(())
    });
}

/// The same job on an agent's machine, in its folder.
fn hub_of_agent(folder: &Path) -> (Hub, Machine) {
    let hub = Hub::start(["--no-local"]);
    let mut command = Machine::command(&hub, "node-9", ["--collectors", "cpu,process"]);
    command.arg("--data-dir").arg(folder);
    let machine = Machine::run(command);
    until("the agent is there", || folder.join("run.sock").exists().then_some(()));
    printed_in(folder, "loud", &format!("echo begin; echo 'RuntimeError: {LINE}' >&2; exit 1"));
    wait_for_end(&hub);
    (hub, machine)
}

/// All paths that could contain a line.
const ASKED: &[&str] = &[
    "/api/v1/runs/loud/logs",
    "/api/v1/runs/loud/logs?format=json",
    "/api/v1/runs/loud/logs?format=text&limit=100",
    "/api/v1/runs",
    "/api/v1/runs?sums=true",
    "/api/v1/runs/loud",
    "/api/v1/runs/loud/report",
    "/api/v1/runs/loud/report?format=json",
    "/api/v1/export?format=json&tag=*&run=loud",
    "/api/v1/export?format=wandb-jsonl&tag=*&run=loud",
    "/api/v1/record?from=-10m",
    "/api/v1/markers?run=loud",
    "/api/v1/cells",
    "/api/v1/processes",
    "/api/v1/doctor",
    "/api/v1/live?format=json",
    "/api/v1/audit?team=main",
    "/api/v1/views",
    "/api/v1/me/export",
    "/metrics",
];

fn tells(answer: &ServerAnswer) -> bool {
    answer.body.contains(LINE)
}

#[test]
fn whoever_does_not_see_arguments_sees_nothing_that_a_job_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    told_to_members_alone(&hub());
    let (hub, _machine) = hub_of_agent(folder.path());
    told_to_members_alone(&hub);
    assert_eq!(files_with(hub.folder.path(), LINE), [] as [PathBuf; 0], "they stay on their machine");
}

#[test]
fn lines_of_an_agent_reach_its_hub_whole_and_one_that_is_away_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let (hub, machine) = hub_of_agent(folder.path());
    // More than one part has room for, and less than the limit per second.
    let many = "for n in $(seq 3000); do echo \"line $n of many $PADDING\"; echo \"other $n\" >&2; done";
    let padding = format!("PADDING={}; {many}; echo the last", "x".repeat(80));
    printed_in(folder.path(), "many", &padding);
    let by = hub.cookie("mike");
    let asked = |query: &str| hub.send("GET", &format!("/api/v1/runs/many/logs{query}"), &[&by], "");
    // The two streams are two pipes, so the order of their last lines is undefined.
    let whole = until("all lines", || {
        let answer = asked("?format=text");
        (answer.body.contains("the last\n") && answer.body.contains("other 3000\n")).then_some(answer.body)
    });
    let lines: Vec<&str> = whole.lines().collect();
    for (stream, word) in [("line", "of many"), ("other", "")] {
        let own: Vec<&&str> = lines.iter().filter(|line| line.starts_with(stream) && line.contains(word)).collect();
        assert_eq!(own.len(), 3_000, "{stream}");
        let numbers: Vec<u32> = own.iter().filter_map(|line| line.split(' ').nth(1)?.parse().ok()).collect();
        assert_eq!(numbers, (1..=3_000).collect::<Vec<_>>(), "each once, in their order");
    }
    let newest: Value = serde_json::from_str(&asked("?format=json&limit=4000").body).expect("JSON");
    let newest = newest["lines"].as_array().expect("a list");
    assert_eq!(newest.len(), 4_000);
    let is_a_last = |line: &Value| line["text"] == "the last" || line["text"] == "other 3000";
    assert!(newest.last().is_some_and(is_a_last), "{:?}", newest.last());
    let newest_out: Value = serde_json::from_str(&asked("?format=json&stream=out&limit=1").body).expect("JSON");
    assert_eq!(newest_out["lines"][0]["text"], "the last");
    assert!(newest.iter().all(|line| line["source"] == "node-9"));
    let found = asked("?stream=err&text=OTHER%202999&format=text").body;
    assert_eq!(found, "other 2999\n");
    // The command on the hub's own machine, and the report.
    let mut logs = watchglass(["logs", "many", "--stream", "out", "--last", "1", "--data-dir"]);
    let said = logs.arg(hub.folder.path()).output().expect("it ran");
    assert_eq!(String::from_utf8_lossy(&said.stdout), "the last\n", "{said:?}");
    let report = hub.send("GET", "/api/v1/runs/many/report", &[&by], "").body;
    assert!(report.contains("the last") || report.contains("other 3000"), "{report}");
    drop(machine);
    let told = until("it is away", || {
        let answer = asked("?limit=9");
        (answer.status == 503).then(|| answer.error())
    });
    assert!(told.starts_with("node-9: ") && told.contains("not connected"), "{told}");
    let told = asked("?format=text");
    assert!(told.status == 200 && told.body.contains("lines of node-9 are missing"), "{told:?}");
}

fn told_to_members_alone(hub: &Hub) {
    let link = link(hub);
    let mut faults = Vec::new();
    for (letter, header) in everybody(hub).into_iter().chain([('L', Some(link))]) {
        let headers: Vec<&str> = header.as_deref().into_iter().collect();
        for path in ASKED {
            if path.starts_with("/api/v1/live") {
                continue; // It does not end; it is tested below.
            }
            let answer = hub.send("GET", path, &headers, "");
            // The lines themselves, the line in the cause, and the report: only for members of the machine's team.
            let is_about_it = path.contains("/loud");
            let may = "MAH".contains(letter) && is_about_it;
            if tells(&answer) != may {
                faults.push(format!(
                    "{letter} {path}: {} {}",
                    answer.status,
                    if may { "does not tell" } else { "tells" }
                ));
            }
            let closed = path.contains("/logs") && !"MAH".contains(letter);
            // A requester without access to the machine gets the answer for an unknown run.
            let expected: &[u16] = match letter {
                '0' => &[401],
                'O' => &[404],
                'g' | 'j' => &[401, 429],
                _ => &[403],
            };
            if closed && letter == 'd' && !answer.error().contains("a key cannot do this; sign in") {
                faults.push(format!("the key gets wrong help: {}", answer.error()));
            }
            if closed && !expected.contains(&answer.status) {
                faults.push(format!("{letter} {path}: {}", answer.status));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let rows = hub.send("GET", "/api/v1/runs/loud/logs", &[&hub.cookie("mike")], "").body;
    let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).expect("JSON")).collect();
    let texts: Vec<(&str, &str)> =
        rows.iter().map(|row| (row["stream"].as_str().expect("text"), row["text"].as_str().expect("text"))).collect();
    assert!(
        texts.contains(&("out", "begin")) && texts.contains(&("err", &format!("RuntimeError: {LINE}"))),
        "{texts:?}"
    );
    let run: Value =
        serde_json::from_str(&hub.send("GET", "/api/v1/runs/loud", &[&hub.cookie("mike")], "").body).expect("JSON");
    assert_eq!(run["cause"]["line"], format!("RuntimeError: {LINE}"));
    assert_eq!(run["sentence"], "failed (exit 1)", "the kernel's words alone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_stream_has_a_line_of_a_job_not_even_a_members() {
    let hub = tokio::task::spawn_blocking(hub).await.expect("it begins");
    for (n, header) in [hub.cookie("vera"), hub.cookie("mike"), link(&hub)].into_iter().enumerate() {
        let mut stream = open(&hub, "", &[header, hub.origin()]).await;
        send_message(
            &mut stream,
            &PageMessage::Open { protocol: PROTOCOL, window: 600_000, resume: None, sources: Vec::new() },
        )
        .await;
        for source in 0..3 {
            send_message(&mut stream, &PageMessage::History { source, from: 0, to: i64::MAX / 4 }).await;
        }
        printed(&hub, &format!("more-{n}"), &format!("echo {LINE}"));
        let (end, mut messages) = (Instant::now() + Duration::from_secs(4), 0);
        while let Ok(Some(Ok(message))) =
            tokio::time::timeout(end.saturating_duration_since(Instant::now()), stream.next()).await
        {
            let bytes = match message {
                Message::Binary(bytes) => bytes.to_vec(),
                Message::Text(text) => text.as_bytes().to_vec(),
                _ => continue,
            };
            messages += 1;
            assert!(!bytes.windows(LINE.len()).any(|part| part == LINE.as_bytes()), "a line is in the stream");
        }
        assert!(messages > 3, "{messages} messages");
    }
}

/// All files below a folder that contain these bytes.
fn files_with(folder: &Path, part: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, part));
        } else if std::fs::read(&path).unwrap_or_default().windows(part.len()).any(|bytes| bytes == part.as_bytes()) {
            found.push(path);
        }
    }
    found
}

#[test]
fn what_is_kept_of_a_run_that_ended_tells_members_alone_as_well() {
    let own = tempfile::tempdir().expect("a folder");
    let clock = FakeClock::new(own.path());
    let hub = hub_with(clock.environment());
    let ended = hub.folder.path().join("ended-runs");
    // A run that has just ended is not settled yet.
    clock.pass(30_000);
    until_so("a summary is kept", || ["loud.json", "loud.jsonl"].iter().all(|name| ended.join(name).exists()));
    let lines = hub.folder.path().join("run-logs");
    let elsewhere: Vec<PathBuf> =
        files_with(hub.folder.path(), LINE).into_iter().filter(|path| !path.starts_with(&lines)).collect();
    assert_eq!(elsewhere, [ended.join("loud.jsonl")], "beside the files of lines the last of them alone");
    // As after their retention has ended with the samples.
    std::fs::remove_dir_all(&lines).expect("removed");
    for (name, may) in [("vera", false), ("mike", true), ("olga", false), ("root", true)] {
        for path in [
            "/api/v1/runs/loud/logs",
            "/api/v1/runs/loud",
            "/api/v1/runs/loud/report",
            "/api/v1/runs/loud/report?format=json",
        ] {
            let answer = hub.send("GET", path, &[&hub.cookie(name)], "");
            assert_eq!(tells(&answer), may, "{name} {path}: {}", answer.status);
        }
    }
}

#[test]
fn a_secret_that_a_job_prints_is_nowhere() {
    const SECRETS: [&str; 4] =
        ["hunter2-canary", "hf_0123456789abcdef0123456789abcdef01", "canary-of-bearer", "pw-canary"];
    let hub = Hub::start(["--collectors", "cpu"]);
    let script = format!(
        "echo 'password: {}'; echo key {}; printf 'Authorization: \\033[1mBearer\\033[0m {}\\n' >&2; \
         echo 'to https://me:{}@host.example/x'; echo done",
        SECRETS[0], SECRETS[1], SECRETS[2], SECRETS[3]
    );
    printed(&hub, "leaky", &script);
    let answer = until("its lines", || {
        let answer = hub.send("GET", "/api/v1/runs/leaky/logs", &[&hub.cookie("root")], "");
        answer.body.contains("\"done\"").then_some(answer)
    });
    assert!(answer.body.contains("password: …") && answer.body.contains("…@host.example/x"), "{}", answer.body);
    for secret in SECRETS {
        assert!(!answer.body.contains(secret), "{}", answer.body);
        assert_eq!(files_with(hub.folder.path(), secret), [] as [PathBuf; 0]);
        assert!(!hub.server.log().contains(secret));
    }
}

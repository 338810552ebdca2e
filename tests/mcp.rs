//! Tests `watchglass mcp` with the real binary, as an assistant starts it: requests in, answers out.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use watchglass_tests::hub::Hub;
use watchglass_tests::server::{Server, watchglass};
use watchglass_tests::waiting::until_so;

/// Maximum length of the text of an answer, bytes.
const MAX_TEXT_BYTES: usize = 24 << 10;

/// The program that an assistant has started.
struct Assistant {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Assistant {
    fn start<'a>(args: impl IntoIterator<Item = &'a str>) -> Assistant {
        let mut command = watchglass(["mcp"].into_iter().chain(args));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let requests = child.stdin.take().expect("a pipe");
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut assistant = Assistant { child, requests, answers };
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
        assert_eq!(assistant.ask("initialize", &hello)["result"]["protocolVersion"], "2025-06-18");
        assistant.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        assistant
    }

    fn send(&mut self, line: &str) {
        writeln!(self.requests, "{line}").expect("it reads");
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("it answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params }).to_string());
        let answer = self.read();
        assert_eq!(answer["id"], method, "{answer}");
        answer
    }

    /// The text of a tool, and whether it is an error.
    fn call(&mut self, tool: &str, arguments: &Value) -> (String, bool) {
        let answer = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {answer}"));
        assert!(text.len() <= MAX_TEXT_BYTES, "{tool}: {} bytes", text.len());
        (text.to_string(), result["isError"] == true)
    }

    /// Closes its input, and returns the exit status.
    fn end(self) -> Option<i32> {
        let Assistant { mut child, requests, answers } = self;
        drop((requests, answers));
        child.wait().expect("it ended").code()
    }
}

/// A question of a person: the calls of an assistant, and the facts that the answers must have together.
type Question = (&'static str, Vec<(&'static str, Value)>, &'static [&'static str]);

fn answer(fail: &'static str, ready: &str, questions: &[Question]) {
    let server = Server::start(["demo", "--gpus", "8", "--hosts", "2", "--fail", fail, "--retention", "30m"]);
    until_so(ready, || server.get("/api/v1/findings", &[]).body.contains(ready));
    server.wait_for_past();
    let port = server.addr().port().to_string();
    let mut assistant = Assistant::start(["--port", port.as_str()]);
    for (question, calls, facts) in questions {
        let mut texts = String::new();
        for (tool, arguments) in calls {
            let (text, is_error) = assistant.call(tool, arguments);
            assert!(!is_error, "{question} {tool}: {text}");
            texts += &text;
        }
        for fact in *facts {
            assert!(texts.contains(fact), "{question} {fact:?} is not in {texts}");
        }
    }
    assert_eq!(assistant.end(), Some(0));
}

#[test]
fn ten_questions_are_answered_by_the_tools_alone() {
    let questions: [Question; 8] = [
        (
            "Which machines are there?",
            vec![("list_machines", json!({}))],
            &["\"demo-01\"", "\"demo-02\"", "\"live\"", "8 × NVIDIA"],
        ),
        (
            "Which GPU is slow?",
            vec![("list_findings", json!({ "active": "true" }))],
            &["GPU 7 of demo-01 runs at", "% slower"],
        ),
        (
            "What do I do about it?",
            vec![("list_findings", json!({ "kind": "straggler" }))],
            &["nvidia-smi -q -d CLOCK"],
        ),
        (
            "What changed when it became slow?",
            vec![("list_changes", json!({ "source": "demo-01", "from": "-5m" }))],
            &["gpu.{i}.throttleReasons", "\"instance\":\"7\"", "\"before\":", "\"after\":"],
        ),
        (
            "How fast does it run, and how fast do the others?",
            vec![(
                "query_samples",
                json!({ "tag": ["gpu.0.smClock", "gpu.7.smClock"], "source": "demo-01", "from": "-1m" }),
            )],
            &["\"tag\":\"gpu.0.smClock\"", "\"tag\":\"gpu.7.smClock\"", "\"max\":1980", "\"megahertz\""],
        ),
        (
            "What does gpu.0.smActive mean?",
            vec![("explain_metric", json!({ "metric": "gpu.0.smActive" }))],
            &["\"gpu.{i}.smActive\"", "\"help\":", "\"percent\"", "demo-02"],
        ),
        (
            "Does the training run, and on how many GPUs?",
            vec![("list_runs", json!({ "state": "running" }))],
            &["\"state\":\"running\"", "\"gpus\":16", "\"project\":\"demo\""],
        ),
        (
            "What is not measured, and why?",
            vec![("run_doctor", json!({ "source": "demo-01" }))],
            &["\"rapl\"", "\"absent\"", "this machine is simulated"],
        ),
    ];
    answer("straggler", "GPU 7 of demo-01 runs at", &questions);
    let questions: [Question; 2] = [
        (
            "Which rank fell, and why?",
            vec![
                ("list_runs", json!({ "state": "crashed", "limit": 1 })),
                ("list_findings", json!({ "source": "demo-01" })),
            ],
            &["first rank 7 on demo-01: failed (exit 1)", "GPU 7 of demo-01 was full"],
        ),
        ("What do I change before the next start?", vec![("list_findings", json!({}))], &["Lower the batch size"]),
    ];
    answer("oom", "GPU 7 of demo-01 was full", &questions);
}

#[test]
fn a_long_answer_of_a_server_is_cut_and_says_so() {
    let server = Server::start(["demo", "--gpus", "16", "--hosts", "4", "--retention", "30m"]);
    server.wait_for_past();
    let port = server.addr().port().to_string();
    let mut assistant = Assistant::start(["--port", port.as_str()]);
    let (text, is_error) =
        assistant.call("query_samples", &json!({ "tag": "gpu.*.temp", "from": "-30m", "step": "10s" }));
    let answer: Value = serde_json::from_str(&text).expect("it is still JSON");
    let kept = answer["series"].as_array().expect("a list").len();
    assert!(!is_error && kept < 64, "{kept}");
    let note = answer["cut"].as_str().expect("a note");
    assert!(note.contains(&format!("{kept} of 64 series")) && note.contains("longer step"), "{note}");
}

#[test]
fn requests_that_arrive_together_are_answered_in_their_order() {
    let mut assistant = Assistant::start(["--port", "1"]);
    let all: Vec<String> =
        (0..200).map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string()).collect();
    assistant.send(&all.join("\n"));
    for id in 0..200 {
        assert_eq!(assistant.read()["id"], id);
    }
    let (text, is_error) = assistant.call("list_machines", &json!({}));
    assert!(is_error && text.contains("connection refused"), "{text}");
    assert_eq!(assistant.end(), Some(0));
}

#[test]
fn a_server_below_a_path_is_asked_by_its_address_or_its_port() {
    let server = Server::start(["demo", "--gpus", "1", "--retention", "30m", "--base-path", "/a/b/"]);
    let port = server.addr().port().to_string();
    let urls = ["/a/b/", "/a/b"].map(|end| format!("http://localhost:{port}{end}"));
    for args in [["--hub", urls[0].as_str()], ["--hub", urls[1].as_str()], ["--port", port.as_str()]] {
        let mut assistant = Assistant::start(args);
        let (text, is_error) = assistant.call("list_machines", &json!({}));
        assert!(!is_error && text.contains("\"demo-01\""), "{args:?}: {text}");
        assert_eq!(assistant.end(), Some(0));
    }
}

#[test]
fn a_hub_is_asked_with_the_rights_of_the_key() {
    let hub = Hub::start(["--collectors", "cpu"]);
    let url = format!("http://{}", hub.server.addr());
    let folder = tempfile::tempdir().expect("a folder");
    let with = |name: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, format!("{}\n", hub.keys[name])).expect("written");
        Assistant::start(["--hub", url.as_str(), "--key-file", file.to_str().expect("plain letters")])
    };
    let mut reader = with("own");
    until_so("the hub's own machine", || {
        let (machines, _) = reader.call("list_machines", &json!({}));
        machines.contains("\"live\"") && machines.contains("Linux")
    });
    let mut job = watchglass(["run", "--logs", "--id", "loud", "--data-dir"]);
    job.arg(hub.folder.path()).args(["--", "sh", "-c", "echo a secret of the job"]);
    assert!(job.env_remove("WATCHGLASS_RUN_ID").env_remove("WATCHGLASS_SOCKET").stdout(Stdio::null()).status().is_ok());
    until_so("the run", || reader.call("list_runs", &json!({})).0.contains("\"loud\""));
    let (text, is_error) = reader.call("list_run_output", &json!({ "run": "loud" }));
    assert!(is_error && text.contains("cannot be read with a key"), "{text}");

    // The owner of the data folder reads the output by its socket.
    let data = hub.folder.path().to_str().expect("plain letters");
    let mut owner = Assistant::start(["--data-dir", data]);
    until_so("the output", || {
        owner.call("list_run_output", &json!({ "run": "loud" })).0.contains("a secret of the job")
    });
    // A key for something else reads nothing.
    let (text, is_error) = with("alerts").call("list_machines", &json!({}));
    assert!(is_error && text.contains("data:read"), "{text}");
    let mut none = Assistant::start(["--hub", url.as_str()]);
    let (text, is_error) = none.call("list_machines", &json!({}));
    assert!(is_error && text.contains("--key-file FILE"), "{text}");
}

#[test]
fn standard_input_is_not_a_key() {
    let output = watchglass(["mcp", "--hub", "http://127.0.0.1:1", "--key", "-"]).output().expect("it ran");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("write --key-file FILE"), "{said}");
    assert!(output.stdout.is_empty(), "standard output has answers alone");
}

//! Values that jobs log are series with run and rank: by the command, the Python package, a datagram and a request.
#![cfg(target_os = "linux")]

use serde_json::{Value, json};
use std::process::Stdio;
use watchglass_tests::server::{Server, ask_with, watchglass};
use watchglass_tests::waiting::{until, until_so};

/// The Python package of this repository.
const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../notebook/python");

/// A job that logs ten values a second until its input ends: a loss that is lost at once, and a speed.
const SCRIPT: &str = "import select, sys, watchglass\n\
                      step = 0\n\
                      while not select.select([sys.stdin], [], [], 0.1)[0]:\n    \
                          watchglass.log({'loss': float('nan') if step else 2.5, 'tokens_per_s': 12400.123456789}, step=step)\n    \
                          step += 1\n\
                      watchglass.log({'last': 1})\n";

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
        Server::start(["--collectors", "job", "--interval", "500ms", "--data-dir", self.data()])
    }

    /// Exit status and error output of `watchglass log`.
    fn log(&self, words: &[&str]) -> (Option<i32>, String) {
        let mut command = watchglass(["log", "--data-dir", self.data()]);
        command.args(words).env_remove("WATCHGLASS_RUN_ID").env_remove("WATCHGLASS_SOCKET");
        let output = command.output().expect("it ran");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn get(server: &Server, path: &str) -> Value {
    serde_json::from_str(&server.get(path, &[]).body).expect("JSON")
}

/// Tags with the newest value of each, of a query for the last minute.
fn newest(server: &Server, query: &str) -> Vec<(String, f64)> {
    let all = get(server, &format!("/api/v1/query?from=-1m&{query}"));
    let row = |one: &Value| {
        let value = one["points"].as_array()?.last()?[1].as_f64()?;
        Some((one["tag"].as_str()?.to_string(), value))
    };
    all["series"].as_array().into_iter().flatten().filter_map(row).collect()
}

#[test]
fn the_command_logs_numbers_and_a_script_goes_on_without_a_server() {
    let bench = Bench::new();
    let (status, line) = bench.log(&["loss=0.5"]);
    assert_eq!((status, line.lines().count()), (Some(0), 1), "{line}");
    assert!(line.contains("no watchglass listens on this machine; the values are lost"), "{line}");
    for (words, why) in [
        (&["loss"][..], "write it as NAME=NUMBER"),
        (&["a b=1"], "is no name of a value"),
        (&["loss=high"], "\"high\" is not a number; write loss=0.41"),
        (&["not_a_number=1"], "is the name of another series"),
        (&[], "NAME=NUMBER"),
    ] {
        let (status, said) = bench.log(words);
        assert!(status == Some(2) && said.contains(why), "{words:?}: {said}");
    }
    let server = bench.server();
    assert_eq!(bench.log(&["loss=0.1", "train/acc=nan", "--step", "1200"]), (Some(0), String::new()));
    let found = until("a sample of each", || Some(newest(&server, "tag=job.*")).filter(|all| all.len() == 3));
    let of = |tag: &str, value: f64| (tag.to_string(), value);
    let odd = of("job.not_a_number{name=\"train/acc\"}", 1.0);
    let expected = [odd, of("job.loss", 0.1), of("job.step", 1_200.0)];
    assert!(expected.iter().all(|one| found.contains(one)), "{found:?}");
    assert_eq!(bench.log(&["loss=0.2", "--run", "by-hand"]), (Some(0), String::new()));
    let by_hand = of("job.loss{run=\"by-hand\"}", 0.2);
    until_so("its run", || newest(&server, "tag=job.loss").contains(&by_hand));
}

#[test]
fn a_job_has_its_values_with_its_run_in_queries_metrics_and_on_its_page() {
    let bench = Bench::new();
    let server = bench.server();
    let mut job = watchglass(["run", "--data-dir", bench.data(), "--id", "trained", "--", "python3", "-c", SCRIPT]);
    job.env("PYTHONPATH", PACKAGE).env_remove("WATCHGLASS_RUN_ID").env_remove("WATCHGLASS_SOCKET");
    let mut job = job.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    let speed = ("job.tokens_per_s{run=\"trained\"}".to_string(), 12_400.123_456_789);
    until_so("a speed, to the last digit", || newest(&server, "tag=job.tokens_per_s").contains(&speed));
    let odd = ("job.not_a_number{name=\"loss\",run=\"trained\"}".to_string(), 1.0);
    until_so("a loss that is no number", || newest(&server, "tag=job.not_a_number&run=trained").contains(&odd));
    let exposed = ["watchglass_job_value{source=", ",name=\"tokens_per_s\",run=\"trained\"} 12400.123456789"];
    until_so("a sample for Prometheus", || {
        let page = server.get("/metrics", &[]).body;
        page.lines().any(|line| line.starts_with(exposed[0]) && line.ends_with(exposed[1]))
    });
    let page = until("charts of the run", || {
        let run = get(&server, "/api/v1/runs/trained");
        (run["curves"]["measures"].as_array()?.len() >= 3 && run["steps"]["step"].as_u64()? > 10).then_some(run)
    });
    let ids: Vec<&str> =
        page["curves"]["measures"].as_array().into_iter().flatten().filter_map(|m| m["id"].as_str()).collect();
    assert_eq!(ids[..3], ["job.loss", "job.not_a_number", "job.tokens_per_s"], "{ids:?}");
    let csv = server.get("/api/v1/export?tag=job.tokens_per_s&run=trained&from=-1m", &[]).body;
    assert!(csv.contains("12400.123456789"), "{csv}");
    drop(job.stdin.take());
    assert!(job.wait().expect("it ran").success());
    until_so("the last values of a process that ends", || !newest(&server, "tag=job.last").is_empty());
    let other = newest(&server, "tag=job.*&run=trained");
    assert!(other.iter().all(|(tag, _)| tag.contains("run=\"trained\"")), "{other:?}");
}

#[test]
fn a_request_with_values_is_refused_by_the_path_of_its_field_and_what_is_over_is_counted() {
    let server = Server::start(["--memory", "--collectors", "job"]);
    let post = |body: &Value| {
        let (body, addr) = (body.to_string(), server.addr());
        let head = format!("POST /api/v1/values HTTP/1.1\r\nHost: {addr}\r\nContent-Type: application/json\r\n");
        ask_with(addr, &format!("{head}Content-Length: {}\r\n", body.len()), &body)
    };
    for (body, status, why) in [
        (json!({ "values": { "loss": true } }), 400, "at values.loss: expected a number"),
        (json!({ "values": { "loss": 1 }, "text": "x" }), 400, "unknown field `text`"),
        (json!({ "values": { "a b": 1 } }), 400, "is no name of a value"),
        (json!({ "values": {} }), 400, "there is no value"),
        (json!({ "values": { "loss": 1 }, "pid": 4_194_304 }), 409, "has ended"),
    ] {
        let answer = post(&body);
        assert!(answer.status == status && answer.body.contains(why), "{body}: {}", answer.body);
    }
    let many: serde_json::Map<String, Value> = (0..70).map(|n| (format!("v{n}"), json!(n))).collect();
    let answer = post(&json!({ "values": many, "pid": std::process::id() }));
    assert_eq!(answer.body, "{\"taken\":64,\"dropped\":6}");
    let own = format!("{{pid=\"{}\"}}", std::process::id());
    until_so("its values", || newest(&server, "tag=job.v1").contains(&(format!("job.v1{own}"), 1.0)));
    until_so("the count", || newest(&server, "tag=monitor.job.dropped").iter().any(|(_, count)| *count >= 6.0));
}

//! Tests `watchglass doctor` with the real binary: the list of families, the status, and the report for other people.

use serde_json::Value;
use std::process::Output;
use watchglass_tests::server::{Server, run, watchglass};

/// Names of families that are documented for every platform.
const FAMILIES: &[&str] = &[
    "cpu",
    "memory",
    "pressure",
    "disk",
    "disk_usage",
    "network",
    "process",
    "monitor",
    "nvidia",
    "amd",
    "intel",
    "ascend",
    "apple",
    "graphcore",
    "tpu",
    "trainium",
    "openmetrics",
];

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn checks(args: &[&str]) -> (Option<i32>, Vec<Value>) {
    let output = run(["doctor", "--json"].into_iter().chain(args.iter().copied()));
    let json: Value = serde_json::from_str(&stdout(&output)).expect("one JSON text and nothing else");
    (output.status.code(), json["checks"].as_array().expect("a list").clone())
}

fn one<'a>(checks: &'a [Value], id: &str) -> &'a Value {
    checks.iter().find(|c| c["id"] == id).unwrap_or_else(|| panic!("no {id} in {checks:?}"))
}

#[test]
fn every_family_is_listed_with_all_that_is_known() {
    let (_, checks) = checks(&[]);
    for family in FAMILIES {
        assert_eq!(checks.iter().filter(|c| c["id"] == *family).count(), 1, "{family}");
    }
    for check in &checks {
        let fields = ["id", "state", "tried", "found", "reason", "remedy"];
        assert!(fields.iter().all(|field| !check[field].is_null()), "{check}");
        let words = |field: &str| check[field].as_str().is_some_and(|text| !text.is_empty());
        assert!(check["state"] == "ok" || words("reason"), "{check}");
        assert!(words("found"), "{check}");
    }
    #[cfg(target_os = "linux")]
    assert!(one(&checks, "apple")["reason"].as_str().is_some_and(|reason| reason.contains("only on macOS")));
    let memory = one(&checks, "memory");
    assert_eq!(memory["state"], "ok");
    assert!(memory["found"].as_str().is_some_and(|found| found.contains(" values. ")), "{memory}");
    assert!(memory["tried"].as_array().is_some_and(|tried| !tried.is_empty()));
}

#[test]
fn the_server_tells_the_same_families() {
    let server = Server::start(["--collectors", "cpu,memory"]);
    let answer = server.get("/api/v1/doctor", &[]);
    let json: Value = serde_json::from_str(&answer.body).expect("JSON");
    let of_server: Vec<&Value> = json["checks"].as_array().expect("a list").iter().map(|c| &c["id"]).collect();
    let (_, of_doctor) = checks(&["--collectors", "cpu,memory"]);
    assert_eq!(of_server, of_doctor.iter().map(|c| &c["id"]).collect::<Vec<_>>());
    let disk = one(&of_doctor, "disk");
    assert!(disk["state"] == "absent" && disk["remedy"].as_str().is_some_and(|r| r.contains("--collectors disk")));
}

#[test]
fn status_is_0_when_what_was_asked_for_works_and_1_otherwise() {
    let own = std::process::id().to_string();
    // These families work on every machine. A test machine may have a GPU that only half works.
    let some = ["--collectors", "cpu,memory,process"];
    let status = |args: &[&str]| {
        let output = run(["doctor"].into_iter().chain(some).chain(args.iter().copied()));
        (output.status.code(), stdout(&output))
    };
    let (code, text) = status(&[]);
    assert_eq!(code, Some(0), "nobody asked for a process: {text}");
    assert!(text.ends_with("All requested collectors work.\n"), "{text}");
    let (code, text) = status(&["--pid", &own]);
    assert_eq!(code, Some(0), "{text}");
    // This is the highest possible process id, and no process has it.
    let (code, text) = status(&["--pid", "2147483647"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("process, requested by --pid 2147483647: "), "{text}");
    let (code, text) = status(&["--gpu", "4000"]);
    assert!(code == Some(1) && text.contains("GPU 4000, requested by --gpu"), "{text}");

    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("w.toml");
    std::fs::write(&config, "[collectors.nvidia]\nlibrary = \"/nowhere/libnvidia-ml.so.1\"\n").expect("a file");
    let output = run(["doctor", "--collectors", "nvidia", "--config", config.to_str().expect("text")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("/nowhere/libnvidia-ml.so.1"), "{}", stdout(&output));
}

#[test]
fn a_bundle_is_one_text_without_names_and_addresses() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.txt");
    let mut command = watchglass([
        "doctor",
        "--host=box-9.corp.example",
        "--origin=https://wiki.corp.example:8443",
        "--embed=http://10.20.30.40:8888",
        "--disk-path=/,/home/jörg.o'neill/data,/srv/box-9/JÖRG.O'NEILL",
        "--bundle",
    ]);
    command.arg(&path).env("USER", "jörg.o'neill").env("HOSTNAME", "rack-17.corp.example").env("SUDO_USER", "al");
    let output = command.output().expect("it starts");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("report.txt"), "it says where the report is: {words}");
    let text = std::fs::read_to_string(&path).expect("the report");
    for heading in ["Machine", "Checks", "Own health", "Effective configuration", "Log"] {
        assert!(text.contains(&format!("\n== {heading} ==\n")), "{heading} in {text}");
    }
    assert!(text.contains(env!("CARGO_PKG_VERSION")) && text.contains("interval = \"1s\""), "{text}");
    assert!(text.contains("monitor.rssMB: "), "own health has figures: {text}");
    let lower = text.to_lowercase();
    let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    for name in ["box-9", "corp.example", "wiki", "10.20.30.40", "127.0.0.1", "::1", "jörg", "neill", "rack-17"] {
        assert!(!lower.contains(name), "{name} in {text}");
    }
    // Short names are searched as whole words.
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric() && c != '-').collect();
    for name in ["al", own.trim()] {
        assert!(name.is_empty() || !words.contains(&name.to_lowercase().as_str()), "{name} in {text}");
    }
}

#[test]
fn a_bundle_that_cannot_be_written_is_an_error() {
    let output = run(["doctor", "--collectors", "cpu", "--bundle", "/nowhere/report.txt"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nowhere/report.txt cannot be written"));
}

//! The commands `watchglass agent` and `doctor --hub` as a user runs them, without a hub.

use watchglass_tests::agent::Agent;
use watchglass_tests::server::{free_port, run, watchglass};

/// An address at which nothing listens.
fn nobody() -> String {
    format!("http://127.0.0.1:{}", free_port())
}

#[test]
fn an_agent_without_a_hub_or_a_key_says_what_to_give_it() {
    let hub = nobody();
    for (args, said) in [
        (vec!["agent"], "--hub URL"),
        (vec!["agent", "--memory", "--hub", hub.as_str()], "--key-file"),
        (vec!["agent", "--key", "wg_j_s3cret", "--hub", "http://watch.example.org"], "--plain-http"),
        (vec!["agent", "--key", "wg_j_s3cret", "--hub", "https://me:s3cret@a"], "--key"),
        (vec!["serve", "--key", "wg_j_s3cret"], "--hub URL"),
        (vec!["agent", "--hub", "https://a", "--memory", "--key", "wg_j_s3cret", "--ca", "/nowhere/ca.pem"], "--ca"),
    ] {
        let output = run(args.iter().copied());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(said) && !error.contains("s3cret"), "{args:?}: {error}");
    }
}

#[test]
fn an_agent_names_a_key_file_that_has_a_whole_join_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("key");
    std::fs::write(&file, "watchglass agent --hub https://a/ --key wg_j_s3cret\n").expect("written");
    let hub = nobody();
    let mut command = watchglass(["agent", "--memory", "--hub", &hub, "--key-file"]);
    command.arg(&file);
    let agent = Agent::start(command);
    agent.says("has more than a key");
    assert!(!agent.output().contains("s3cret"), "{}", agent.output());
}

#[test]
fn a_unit_names_the_hub_and_no_key() {
    let output = run(["agent", "--unit", "--hub", "https://watch.example.org", "--key", "wg_j_s3cret"]);
    let unit = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && unit.contains(" --hub https://watch.example.org") && unit.contains("[Service]"));
    assert!(!unit.contains("s3cret"), "{unit}");
}

#[test]
fn doctor_says_where_the_road_to_a_hub_ends() {
    let hub = nobody();
    let output = run(["doctor", "--json", "--memory", "--hub", &hub, "--collectors", "cpu"]);
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let steps = told["hubs"][0]["steps"].as_array().expect("steps");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!((steps[0]["step"].as_str(), steps[0]["ok"].as_bool()), (Some("name"), Some(true)));
    assert_eq!((steps[1]["step"].as_str(), steps[1]["ok"].as_bool()), (Some("TCP"), Some(false)));
    assert!(steps[1]["reason"].as_str().expect("a reason").contains("connection refused"), "{told}");
}

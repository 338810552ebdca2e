//! Tests findings with the binary: live, in a recording, after a restart, and as a command.

use serde_json::{Value, json};
use std::path::Path;
#[cfg(target_os = "linux")]
use std::time::{Duration, UNIX_EPOCH};
use watchglass_tests::agent::{self, Agent};
use watchglass_tests::hub::{Hub, send};
#[cfg(target_os = "linux")]
use watchglass_tests::server::watchglass;
use watchglass_tests::server::{Server, ServerAnswer, run};
use watchglass_tests::waiting::{MAX_WAIT, until, until_or, within};

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

fn all(server: &Server, query: &str) -> Vec<Value> {
    let answer = server.get(&format!("/api/v1/findings{query}"), &[]);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let answer: Value = serde_json::from_str(&answer.body).expect("JSON");
    answer["findings"].as_array().expect("a list").clone()
}

/// The finding of a kind, once it exists.
fn found(server: &Server, kind: &str) -> Value {
    until(kind, || all(server, &format!("?kind={kind}")).into_iter().next())
}

#[test]
fn what_breaks_is_told_in_a_sentence_and_a_recording_says_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    for (fail, rule, said) in [
        ("lost", "lost_gpu", "fell off the bus"),
        ("hang", "hang.spin", "utilization 100 %"),
        ("throttle", "throttle.heat", "thermally throttled"),
        ("ecc", "ecc.uncorrected", "(XID 48)"),
        ("idle", "hang.idle", "have been idle"),
        ("oom", "gpu_memory.ended", "all 4 GPUs have been idle since"),
    ] {
        let server = Server::start(["demo", "--gpus", "4", "--retention", "1h", "--fail", fail]);
        // The states of the other GPUs are known a moment after the job has ended.
        let says =
            |one: &Value| one["sentence"].as_str().is_some_and(|text| text.contains(said) && text.contains(" UTC"));
        let open = || all(&server, &format!("?kind={rule}"));
        let tell = || format!("{fail}: {:?}", open());
        let live = until_or(MAX_WAIT, || open().into_iter().find(says), tell);
        assert!(!live["evidence"].as_array().expect("a list").is_empty(), "{fail}: {live}");

        let file = folder.path().join(fail);
        let port = server.addr().port().to_string();
        assert!(run(["record", text(&file), "--port", &port]).status.success());
        let listed = |args: &[&str]| run(["findings", text(&file)].iter().chain(args).copied());
        let once = listed(&["--json"]);
        assert!(once.status.success(), "{}", String::from_utf8_lossy(&once.stderr));
        assert!(once.stdout == listed(&["--json"]).stdout, "{fail}: two equal runs give equal bytes");
        let answer: Value = serde_json::from_slice(&once.stdout).expect("JSON");
        let of_file = answer["findings"].as_array().expect("a list");
        let same = of_file.iter().find(|one| one["rule"] == rule).unwrap_or_else(|| panic!("{fail}: {answer}"));
        // The recording learned its baseline from more of the past, so the numbers of the sentence may differ.
        assert_eq!((&same["kind"], &same["subject"]), (&live["kind"], &live["subject"]), "{fail}");
        let apart = same["since"].as_i64().expect("a time") - live["since"].as_i64().expect("a time");
        assert!(apart.abs() <= 5, "{fail}: {apart} s");
        assert_eq!(listed(&["--check", "warning"]).status.code(), Some(1), "{fail}");
        assert_eq!(listed(&["--check", "warning", "--kind", "disk_full"]).status.code(), Some(0), "{fail}");
        let metrics = server.get("/metrics", &[]).body;
        let row = metrics.lines().find(|line| line.starts_with("watchglass_finding{") && line.contains(rule));
        assert!(row.is_some(), "{fail}: {metrics}");
    }
}

#[test]
fn further_faults_of_a_fleet_are_found_from_its_first_start_on() {
    let faults = [("straggler", "straggler.slow"), ("starvation", "starvation"), ("link", "slow_link.pcie")];
    let start = |fail| Server::start(["demo", "--gpus", "4", "--retention", "1h", "--fail", fail]);
    let servers = faults.map(|(fail, rule)| (start(fail), rule));
    for (server, rule) in &servers {
        until(rule, || all(server, "").iter().any(|one| one["rule"] == *rule).then_some(()));
    }
}

/// Rules that apply to every machine.
const OF_ANY_MACHINE: [&str; 3] = ["host_memory", "disk_full", "slow_link.net"];

/// Waits until the rules for every machine are active. `get` sends a GET request to a path.
#[track_caller]
fn watches(what: &str, get: impl Fn(&str) -> ServerAnswer) {
    let mut states = Value::Null;
    let all = within(MAX_WAIT, || {
        let answer: Value = serde_json::from_str(&get("/api/v1/findings").body).unwrap_or_default();
        states = answer["rules"].clone();
        let watching = |rule: &&str| {
            let mut rules = states.as_array().into_iter().flatten();
            rules.any(|one| one["rule"] == **rule && one["state"] == "watching")
        };
        OF_ANY_MACHINE.iter().all(watching).then_some(())
    });
    assert!(all.is_some(), "{what}: {states}");
}

#[test]
fn a_machine_is_watched_from_its_first_start_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("new");
    let kept = || Server::start(["--data-dir", text(&data)]);
    for (what, server) in [("a first start", kept()), ("in memory", Server::start(["--memory"]))] {
        watches(what, |path| server.get(path, &[]));
    }
    let server = kept();
    watches("a second start", |path| server.get(path, &[]));
}

/// Two GPUs with every value that a rule reads.
fn whole_gpus() -> fake_nvml::Fake {
    let gpu = |n: u32| {
        json!({
            "uuid": format!("GPU-{n}"), "name": "NVIDIA H200", "pci_bus_id": format!("00000000:0{n}:00.0"),
            "memory": { "total": 1u64 << 37, "used": 1u64 << 36 }, "utilization": { "gpu": 5, "memory": 5 },
            "temperature": 50, "power_mw": 200_000, "power_limit_mw": 700_000, "energy_mj": 1,
            "clocks": { "graphics": 1980, "sm": 1980, "mem": 3201 }, "ecc_volatile_dram": { "corrected": 0, "uncorrected": 0 },
            "pcie": { "gen": 5, "width": 16, "max_gen": 5, "max_width": 16, "speed": 32_000, "replays": 0, "tx_bytes": 1, "rx_bytes": 1 },
            "nvlink_tx_kib": 1, "nvlink_rx_kib": 1, "throttle_reasons": 0, "performance_state": 0,
            "recovery_action": 0, "fabric": { "state": 3 },
        })
    };
    fake_nvml::Fake::new(
        &json!({ "driver_version": "590.48.01", "gpm_min_ms": 0, "gpus": [gpu(0), gpu(1)] }).to_string(),
    )
}

/// Rules whose data no machine of a test has: ports of InfiniBand, and an XID that has happened.
const WITHOUT_DATA: [&str; 2] = ["slow_link.port", "xid"];

#[test]
fn every_rule_watches_from_an_empty_folder_and_in_memory_as_it_does_later() {
    let fake = whole_gpus();
    let folder = tempfile::tempdir().expect("a folder");
    let (config, data) = (folder.path().join("watchglass.toml"), folder.path().join("new"));
    let library = text(fake.library()).to_string();
    std::fs::write(&config, format!("[collectors.nvidia]\nlibrary = {library:?}\n")).expect("a file");
    let start = |kept: &[&str]| Server::start([&["--config", text(&config)], kept].concat());
    let kept = ["--data-dir", text(&data)];
    let mut starts: Vec<Vec<String>> = Vec::new();
    for (what, kept) in [("an empty folder", &kept[..]), ("in memory", &["--memory"]), ("a second start", &kept[..])] {
        let server = start(kept);
        let rules = |lacking: bool| -> Vec<String> {
            let answer: Value = serde_json::from_str(&server.get("/api/v1/findings", &[]).body).expect("JSON");
            let wanted = |one: &&Value| !lacking || one["state"] == "needs";
            let all = answer["rules"].as_array().into_iter().flatten().filter(wanted);
            let mut names: Vec<String> = all.filter_map(|one| Some(one["rule"].as_str()?.to_string())).collect();
            names.sort();
            names
        };
        let all = || Some(rules(false)).filter(|all| all.len() > WITHOUT_DATA.len() && rules(true) == WITHOUT_DATA);
        starts.push(until_or(MAX_WAIT, all, || format!("{what}: no data for {:?}", rules(true))));
        server.end_by("TERM");
    }
    assert!(starts.iter().all(|rules| rules.len() > 20 && *rules == starts[2]), "{starts:?}");
}

#[test]
fn a_hub_watches_its_own_machine_and_those_that_join_from_the_first_start_on() {
    let hub = Hub::start([]);
    let asks = |hub: &Hub, path: &str| hub.send("GET", path, &[&hub.key("data")], "");
    watches("the hub's own machine", |path| asks(&hub, path));
    let hub = Hub::start(["--no-local"]);
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("http://{}", hub.server.addr());
    let _agent = Agent::start(agent::command(&url, &hub.keys["join"], folder.path()));
    watches("a machine that joined", |path| asks(&hub, path));
}

#[test]
fn a_finding_that_a_person_calls_wrong_is_dismissed_until_it_is_taken_back() {
    let server = Server::start(["demo", "--gpus", "4", "--retention", "1h", "--fail", "hang"]);
    let id = found(&server, "hang")["id"].as_str().expect("an id").to_string();
    let say = |body: Value| {
        send(&server, "POST", "/api/v1/findings/wrong", &["Content-Type: application/json"], &body.to_string())
    };
    for (body, status, reason) in [
        (json!({ "id": id, "why": " " }), 400, "write in why"),
        (json!({ "id": id, "why": "x".repeat(401) }), 400, "at most 400"),
        (json!({ "id": "hang:nobody:0:1", "why": "x" }), 404, "no such finding"),
        (json!({ "id": id, "because": "x" }), 400, "because"),
    ] {
        let answer = say(body.clone());
        assert!(answer.status == status && answer.body.contains(reason), "{body}: {}", answer.body);
    }
    let is_open = || {
        let rows = server.get("/metrics", &[]).body;
        rows.lines().any(|line| line.starts_with("watchglass_finding{") && line.contains("kind=\"hang\""))
    };
    let dismissed = || {
        let one = all(&server, "?kind=hang").into_iter().find(|one| one["id"] == id.as_str());
        one.expect("it stays in the list")["dismissed"].clone()
    };
    let firing = || server.get("/api/v1/alerts?state=firing", &[]).body.contains("\"hang");
    assert!(is_open() && dismissed().is_null());
    let answer = say(json!({ "id": id, "why": " it is the evaluation " }));
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(!is_open(), "it is no open finding for who watches");
    assert_eq!(dismissed()["why"], "it is the evaluation");
    until("its alert is over", || (!firing()).then_some(()));
    assert_eq!(say(json!({ "id": id })).status, 200);
    assert!(dismissed().is_null() && is_open(), "it was taken back");
}

#[test]
fn nothing_is_told_of_a_fleet_that_is_well() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("well");
    let server = Server::start(["demo", "--gpus", "8", "--hosts", "2", "--fail", "none", "--retention", "3h"]);
    let port = server.addr().port().to_string();
    assert!(run(["record", text(&file), "--port", &port]).status.success());
    let listed = run(["findings", text(&file), "--check", "warning"]);
    let lines = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert_eq!(listed.status.code(), Some(0), "{lines}");
    assert_eq!(all(&server, ""), Vec::<Value>::new());
}

#[test]
fn the_command_reads_a_folder_and_says_what_it_cannot_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let server = Server::start(["--collectors", "cpu", "--data-dir", text(&data)]);
    until("a tick", || server.get("/api/v1/query?tag=system.cpu_percent", &[]).body.contains("points").then_some(()));
    let listed = run(["findings", "--data-dir", text(&data)]);
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let rules = || server.get("/api/v1/findings", &[]).body;
    let has_rules = || {
        let rules: Value = serde_json::from_str(&rules()).expect("JSON");
        rules["rules"].as_array().is_some_and(|rules| rules.len() > 10).then_some(())
    };
    until_or(MAX_WAIT, has_rules, rules);
    for (args, status, said) in [
        (&["findings", "no-such-file"][..], 1, "no-such-file cannot be opened"),
        (&["findings", "--data-dir", "/nonexistent"], 4, "there is no data folder"),
        (&["findings", "--data-dir", text(&data), "--source", "nobody"], 2, "there is no such machine"),
        (&["findings", "--data-dir", text(&data), "--from", "-1m", "--to", "-2m"], 2, "--from is later than --to"),
        (&["findings", "--check", "note"], 2, "warning"),
    ] {
        let refused = run(args.iter().copied());
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(status), "{args:?}: {error}");
        assert!(error.contains(said), "{args:?}: {error}");
    }
    for bad in ["?active=2", "?from=2000000000&to=1000000000", "?kinds=hang"] {
        assert_eq!(server.get(&format!("/api/v1/findings{bad}"), &[]).status, 400, "{bad}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn what_changed_is_ranked_by_how_far_it_moved() {
    // Only training happens in the 100 s before the hang at this time of the demo. A checkpoint would spread power so
    // far that other findings come first.
    let folder = tempfile::tempdir().expect("a folder");
    let clock = fake_clock::FakeClock::new(folder.path());
    clock.set_to(UNIX_EPOCH + Duration::from_secs(1_795_830_200));
    let mut command = watchglass(["demo", "--gpus", "4", "--retention", "1h", "--fail", "hang", "--port", "0"]);
    command.envs(clock.environment());
    let server = Server::start_as_it_is(command);
    let since = found(&server, "hang")["since"].as_i64().expect("a time");
    let query = format!("/api/v1/changed?from={since}&to={}", since + 100);
    let answer: Value = serde_json::from_str(&server.get(&query, &[]).body).expect("JSON");
    let changed = answer["changed"].as_array().expect("a list");
    let scores: Vec<f64> = changed.iter().filter_map(|one| one["score"].as_f64()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b) && scores.len() > 10, "{scores:?}");
    let power = changed.iter().find(|one| one["tag"] == "gpu.{i}.powerWatts").expect("the power fell");
    assert!(power["after"].as_f64() < power["before"].as_f64(), "{power}");
    assert_eq!(server.get("/api/v1/changed?from=-13h", &[]).status, 400);
}

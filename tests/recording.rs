//! Tests recordings with the binary: made, replayed, imported, damaged.

use serde_json::{Value, json as object};
use shared::alert::Checked;
use std::fs;
use std::path::Path;
use watchglass_tests::hub::send;
use watchglass_tests::server::{Server, run};
use watchglass_tests::waiting::until_so;

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

fn json(server: &Server, path: &str) -> Value {
    let answer = server.get(path, &[]);
    assert_eq!(answer.status, 200, "{}", answer.body);
    serde_json::from_str(&answer.body).expect("JSON")
}

#[test]
fn what_was_recorded_is_replayed_sample_for_sample() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("fleet.watchglass");
    let live = Server::start(["demo", "--hosts", "2", "--gpus", "4", "--retention", "20m"]);
    live.wait_for_past();
    let port = live.addr().port().to_string();
    let sources = json(&live, "/api/v1/sources")["sources"].clone();
    let to = sources[0]["last"].as_f64().expect("a time") as i64;
    let span = format!("from={}&to={to}", to - 300);
    let (from, to) = ((to - 300).to_string(), to.to_string());
    let made = run(["record", text(&file), "--port", &port, "--from", &from, "--to", &to]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let replayed = Server::start(["replay", text(&file)]);
    let query = format!("/api/v1/query?tag=*&{span}");
    let (mut expected, mut found) = (json(&live, &query), json(&replayed, &query));
    // The series have the order of the catalog, which is not part of the promise.
    let sorted = |answer: &mut Value| {
        let series = answer["series"].as_array_mut().expect("series");
        series.sort_by_key(|s| format!("{} {}", s["source"], s["tag"]));
        assert!(series.len() > 100, "{} series", series.len());
    };
    sorted(&mut expected);
    sorted(&mut found);
    for (theirs, ours) in
        expected["series"].as_array().expect("series").iter().zip(found["series"].as_array().expect("series"))
    {
        assert_eq!(theirs, ours);
    }
    assert_eq!(json(&replayed, "/api/v1/sources")["sources"].as_array().map(Vec::len), Some(2));
    // There are no notices for it, but the rules are still evaluated.
    let rule =
        object!({ "rule": { "name": "always", "severity": "warning", "when": "system.load1 >= 0" }, "span": 300 });
    let checked =
        send(&replayed, "POST", "/api/v1/rules/check", &["Content-Type: application/json"], &rule.to_string());
    assert_eq!(checked.status, 200, "{}", checked.body);
    let checked: Checked = serde_json::from_str(&checked.body).expect("JSON");
    assert!(checked.times >= 2 && checked.subjects == 2, "{checked:?}");
}

#[test]
fn a_data_folder_is_recorded_when_no_server_answers_and_leaves_for_w_and_b() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, file) = (folder.path().join("data"), folder.path().join("machine.watchglass"));
    let lines = folder.path().join("wandb-events.jsonl");
    let query = "/api/v1/query?tag=memory.used&from=0";
    let points = |server: &Server| json(server, query)["series"][0]["points"].as_array().cloned().unwrap_or_default();
    let seen = {
        let server = Server::start(["--data-dir", text(&data)]);
        until_so("three samples", || points(&server).len() >= 3);
        let seen = points(&server);
        let answer = server.get("/api/v1/export?format=wandb-jsonl&tag=memory.used&from=0", &[]);
        fs::write(&lines, &answer.body).expect("written");
        seen
        // The server is killed here, because it is dropped.
    };
    let made = run(["record", text(&file), "--port", "1", "--data-dir", text(&data)]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let replayed = points(&Server::start(["replay", text(&file)]));
    assert_eq!(replayed[..seen.len()], seen, "what was seen before the kill is in the recording");
    let imported = points(&Server::start(["import", text(&lines)]));
    assert_eq!(imported[..seen.len()], seen, "and in the lines");
}

#[test]
fn a_run_of_w_and_b_is_imported_served_and_converted() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, output) = (folder.path().join("wandb-events.jsonl"), folder.path().join("run.watchglass"));
    let line = |i: i64| {
        format!(
            r#"{{"_wandb": true, "_timestamp": {}.5, "_runtime": {}, "system.gpu.0.temp": {}, "system.memory": 40, "system.cpu/l:rank_1": NaN, "system.proc.cpu.threads/l:rank_1": 12}}"#,
            1_714_566_896 + i * 15,
            i * 15,
            60 + i
        )
    };
    let lines: Vec<String> = (0..20).map(line).collect();
    // The last line is truncated, as by a crash.
    fs::write(&file, lines.join("\n") + "\n{\"_wandb\": tr").expect("written");
    let check = |server: &Server| {
        let answer =
            json(server, "/api/v1/query?tag=gpu.0.temp&tag=memory_percent&tag=proc.cpu.threads&tag=cpu&from=0");
        let series = answer["series"].as_array().expect("series");
        let of = |tag: &str| series.iter().find(|s| s["tag"] == tag).unwrap_or_else(|| panic!("{tag}: {answer}"));
        assert_eq!(series.len(), 3, "cpu has no value that is a number: {answer}");
        assert_eq!(of("gpu.0.temp")["points"][19], serde_json::json!([1_714_567_181.5, 79]));
        assert_eq!(of("memory_percent")["points"].as_array().map(Vec::len), Some(20));
        assert_eq!(of("proc.cpu.threads")["source"], "rank_1");
    };
    let server = Server::start(["import", text(&file)]);
    check(&server);
    // Another thread reads the log of the server.
    until_so("the damage is told", || server.log().contains("1 place is damaged"));
    let made = run(["import", text(&file), "--output", text(&output)]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    check(&Server::start(["replay", text(&output)]));
}

#[test]
fn what_cannot_be_shown_is_refused_with_what_can_be() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("notes.txt");
    fs::write(&file, "hello, world\n").expect("written");
    for command in ["replay", "import"] {
        let refused = run([command, text(&file)]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(said.contains("notes.txt") && said.contains("run-*.wandb"), "{said}");
        assert_eq!(refused.stdout, b"", "no address is promised");
    }
    let missing = run(["replay", "/no/such/file"]);
    assert!(String::from_utf8_lossy(&missing.stderr).contains("/no/such/file"));
    let nobody = run(["record", text(&file), "--port", "1"]);
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("port 1"));
    assert_eq!(fs::read(&file).expect("read"), b"hello, world\n", "nothing is written over");
}

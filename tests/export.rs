//! Tests `watchglass export` on the data folder of a real server, while the server runs and after it was killed.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;
use watchglass_tests::server::{Server, run};
use watchglass_tests::waiting::until_so;

fn export(folder: &Path, args: &[&str]) -> Output {
    let folder = folder.to_str().expect("a plain path");
    run(["export", "--data-dir", folder].into_iter().chain(args.iter().copied()))
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// Time and value of each line of a series.
fn lines(csv: &str) -> BTreeSet<(String, String)> {
    let cells = |line: &str| -> Option<(String, String)> {
        Some((line.split(',').next()?.into(), line.rsplit(',').next()?.into()))
    };
    csv.lines().skip(1).filter_map(cells).collect()
}

/// Time and value of the samples that a page can see of a series, as written in CSV.
fn seen(server: &Server, tag: &str) -> BTreeSet<(String, String)> {
    lines(&server.get(&format!("/api/v1/export?tag={tag}&from=-1h"), &[]).body)
}

#[test]
fn what_a_page_has_seen_is_in_the_folder_while_the_server_runs_and_after_it_was_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let server = Server::start(["--interval", "100ms", "--data-dir", data.to_str().expect("plain")]);
    until_so("a dozen samples", || seen(&server, "system.uptime").len() >= 12);
    let before = seen(&server, "system.uptime");
    let running = lines(&text(&export(&data, &["--tag", "system.uptime", "--format", "csv"])));
    assert!(running.is_superset(&before), "{:?}", before.difference(&running));
    let last = seen(&server, "system.uptime");
    drop(server); // Dropping a server kills it by SIGKILL.
    let killed = lines(&text(&export(&data, &["--tag", "system.uptime", "--format", "csv"])));
    assert!(killed.is_superset(&last), "{:?}", last.difference(&killed));

    let json = text(&export(&data, &["--tag", "cpu.*.cpu_percent", "--format", "json", "--step", "1h"]));
    let rolled: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(rolled.iter().all(|b| b["min"].as_f64() <= b["mean"].as_f64() && b["count"].as_u64() > Some(0)), "{json}");
    assert!(!rolled.is_empty());
    let open = text(&export(&data, &["--tag", "*", "--format", "openmetrics"]));
    assert!(open.contains("# TYPE watchglass_network_receive_bytes counter") && open.ends_with("# EOF\n"));

    let file = folder.path().join("out.csv");
    let path = file.to_str().expect("plain");
    let written = export(&data, &["--tag", "system.uptime", "--format", "csv", "--output", path]);
    assert!(text(&written).is_empty());
    assert_eq!(lines(&std::fs::read_to_string(&file).expect("the file")), killed);
    let names: Vec<_> = std::fs::read_dir(folder.path()).expect("listed").flatten().map(|e| e.file_name()).collect();
    assert_eq!(names.len(), 2, "the folder and the file: {names:?}");
    let nothing = text(&export(&data, &["--tag", "system.uptime", "--format", "csv", "--to", "-1h"]));
    assert_eq!(nothing, "time,source,tag,value\n");
    let nothing = export(&data, &["--tag", "system.uptime", "--format", "csv", "--to", "2001-02-03T04:05:06Z"]);
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("no stored sample matches"), "{nothing:?}");
}

#[test]
fn what_cannot_be_says_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let gone = folder.path().join("gone");
    for (args, status, word) in [
        (&["--tag", "memory", "--format", "csv"][..], 4, "--data-dir"),
        (&["--format", "csv"], 2, "--tag"),
        (&["--tag", "memory"], 2, "--format"),
        (&["--tag", "memory", "--format", "xml"], 2, "openmetrics"),
        (&["--tag", "memory", "--format", "csv", "--from", "soon"], 2, "Unix seconds"),
        (&["--tag", "memory", "--format", "csv", "--step", "0"], 2, "duration"),
    ] {
        let output = export(&gone, args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{args:?}: {said}");
        assert!(said.contains(word), "{args:?}: {said}");
    }
    assert!(!gone.exists(), "asking makes no folder");
    let empty = export(folder.path(), &["--tag", "memory_prcent", "--format", "csv"]);
    assert_eq!(empty.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&empty.stderr).contains("memory_percent"));
    let none = export(folder.path(), &["--tag", "memory", "--format", "json"]);
    assert_eq!((none.status.code(), none.stdout), (Some(0), Vec::new()), "known, without data");
    assert!(String::from_utf8_lossy(&none.stderr).contains("there is no history in"));
}

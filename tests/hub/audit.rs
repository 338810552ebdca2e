//! The audit log, also as a file of JSON lines.

use super::JSON;
use shared::audit::{AuditEntry, AuditLog};
use std::path::Path;
use watchglass_tests::hub::Hub;
use watchglass_tests::server::watchglass;
use watchglass_tests::waiting::until_so;

/// A hub that writes its audit log to this file.
fn hub(folder: &Path, file: &Path) -> Hub {
    let config = folder.join("hub.toml");
    std::fs::write(&config, format!("[audit]\nfile = {:?}\nkeep = \"90d\"\n", file.display().to_string()))
        .expect("written");
    Hub::start(["--no-local", "--config", &config.display().to_string()])
}

fn lines(file: &Path) -> Vec<AuditEntry> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The rows of an action, the newest first.
fn rows(hub: &Hub, action: &str) -> Vec<AuditEntry> {
    let answer = hub.send("GET", &format!("/api/v1/audit?action={action}"), &[&hub.cookie("root")], "");
    assert_eq!(answer.status, 200, "{answer:?}");
    serde_json::from_str::<AuditLog>(&answer.body).expect("the log").entries
}

#[test]
fn each_row_is_a_line_of_the_file_and_a_file_that_was_moved_away_begins_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("audit.jsonl");
    let hub = hub(folder.path(), &file);
    let save = |name: &str| {
        let body = format!("{{\"name\":\"{name}\",\"query\":\"w=5m\",\"scope\":\"team\"}}");
        hub.send("POST", "/api/v1/views?team=main", &[&hub.cookie("mike"), &hub.origin(), JSON], &body).status
    };
    assert_eq!(save("first"), 201);
    let has = |name: &str| lines(&file).iter().any(|row| row.action == "view.add" && row.object == name);
    until_so("the row is in the file", || has("first"));
    let numbers: Vec<i64> = lines(&file).iter().map(|row| row.id).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b) && numbers[0] == 1, "whole and in order: {numbers:?}");
    assert!(!std::fs::read_to_string(&file).expect("text").contains("wg_"), "no key stands there");
    std::fs::rename(&file, folder.path().join("audit.1")).expect("moved away");
    assert_eq!(save("second"), 201);
    until_so("the next row makes another file", || has("second") && !has("first"));
}

#[test]
fn a_file_that_cannot_be_written_stops_nothing_and_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let (hub, full) = (hub(folder.path(), folder.path()), "watchglass_audit_file_");
    let metrics = || hub.send("GET", "/metrics", &[&hub.key("metrics")], "").body;
    let value = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(&format!("{full}{name} "))).map(String::from);
        line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
    };
    until_so("the failure is counted", || {
        let text = metrics();
        value(&text, "failures_total") > Some(0.0) && value(&text, "waiting") > Some(0.0)
    });
    assert_eq!(value(&metrics(), "lines_total"), Some(0.0));
    assert_eq!(hub.send("GET", "/api/v1/me", &[&hub.cookie("mike")], "").status, 200);
    let about = hub.send("GET", "/api/v1/hub", &[&hub.cookie("root")], "");
    let about: shared::hub::AboutHub = serde_json::from_str(&about.body).expect("about the hub");
    assert_eq!((about.database.as_str(), about.accounts, about.teams, about.machines), ("sqlite", 5, 2, 1));
    assert!(about.audit_file.is_some_and(|file| file.failures > 0 && file.waiting > 0));
    assert!(about.database_bytes.is_some_and(|bytes| bytes > 4_096) && about.backup.is_none());
}

#[test]
fn who_takes_more_than_an_hour_of_samples_or_a_copy_of_the_database_is_written_down() {
    let hub = Hub::start(["--no-local"]);
    let get = |path: &str, who: &str| hub.send("GET", path, &[&hub.cookie(who)], "").status;
    assert_eq!(get("/api/v1/export?tag=*&from=-50m", "mike"), 200);
    assert!(rows(&hub, "data.").is_empty(), "less than an hour");
    assert_eq!(get("/api/v1/export?tag=*&from=-2h", "mike"), 200);
    assert_eq!(get("/api/v1/record", "ada"), 404, "nothing was stored");
    let data = rows(&hub, "data.");
    let told: Vec<(&str, &str)> = data.iter().map(|row| (row.who.as_str(), row.action.as_str())).collect();
    assert_eq!(told, [("ada", "data.record"), ("mike", "data.export")]);
    assert!(data[0].after.as_deref().is_some_and(|span| span.starts_with("the beginning to ")), "{data:?}");
    let copy = hub.folder.path().join("copy.db");
    let mut command = watchglass(["backup"]);
    let done = command.arg(&copy).arg("--data-dir").arg(hub.folder.path()).output().expect("it runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let backups = rows(&hub, "backup");
    assert_eq!(backups.len(), 1);
    assert!(backups[0].who.starts_with("uid ") && backups[0].object == copy.display().to_string(), "{backups:?}");
    let about = hub.send("GET", "/api/v1/hub", &[&hub.key("hub")], "");
    let about: shared::hub::AboutHub = serde_json::from_str(&about.body).expect("about the hub");
    assert_eq!(about.backup, Some(backups[0].t));
}

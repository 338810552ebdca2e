//! Tests `watchglass doctor` with the configuration of a hub: connections to the configured servers are tested.
#![cfg(target_os = "linux")]

use crate::sample_stores::{DEDUP, victoria_metrics};
use serde_json::Value;
use std::path::Path;
use watchglass_tests::postgresql::Postgresql;
use watchglass_tests::programs::Program;
use watchglass_tests::server::watchglass;

/// Doctor's results for the servers of a configuration, its status, and its whole output.
fn servers(folder: &Path, text: &str) -> (Vec<Value>, Option<i32>, String) {
    let file = folder.join("hub.toml");
    std::fs::write(&file, text).expect("written");
    let output = watchglass(["doctor", "--json", "--config"]).arg(&file).output().expect("it runs");
    let printed = String::from_utf8(output.stdout).expect("text");
    let json: Value = serde_json::from_str(&printed).unwrap_or_else(|_| panic!("{printed}"));
    (json["servers"].as_array().expect("a list").clone(), output.status.code(), printed)
}

fn one<'a>(servers: &'a [Value], id: &str) -> &'a Value {
    servers.iter().find(|server| server["id"] == id).unwrap_or_else(|| panic!("no {id} in {servers:?}"))
}

/// Reason and remedy for a faulty server.
fn wrong<'a>(servers: &'a [Value], id: &str) -> [&'a str; 2] {
    let server = one(servers, id);
    assert_eq!(server["state"], "failed", "{server}");
    ["reason", "remedy"].map(|word| server[word].as_str().filter(|text| !text.is_empty()).expect("a sentence"))
}

#[test]
fn servers_that_are_away_are_told_each_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("password"), "s3cret").expect("written");
    let away = Program::free();
    let text = format!(
        "[database]\nurl = \"postgres://me@{away}/hub\"\npassword_file = \"{0}/password\"\n\
         [remote_write]\nurl = \"http://{away}/api/v1/write\"\nread_url = \"http://{away}\"\n\
         headers = {{ Authorization = \"Bearer s3cret\" }}\n\
         [cluster]\nnats = \"nats://{away}\"\ntoken_file = \"{0}/password\"\n",
        folder.path().display()
    );
    let (servers, status, printed) = servers(folder.path(), &text);
    assert_eq!(status, Some(1));
    assert!(!printed.contains("s3cret"), "{printed}");
    assert!(wrong(&servers, "database")[0].contains("the database hub of the PostgreSQL at 127.0.0.1"), "{servers:?}");
    assert!(wrong(&servers, "remote_write")[0].contains("it does not accept samples"), "{servers:?}");
    assert!(wrong(&servers, "nats")[1].contains("check that NATS runs"), "{servers:?}");
}

#[test]
#[ignore = "needs Debian's nats-server, PostgreSQL 15 and victoria-metrics"]
fn with_nats_postgresql_and_a_store_doctor_finds_all_well_or_says_who_is_not_let_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let postgresql = Postgresql::start();
    let store = victoria_metrics(Program::free(), &folder.path().join("store"), &[DEDUP]);
    let settings = "authorization {\n  token: s3cret\n}\n";
    std::fs::write(folder.path().join("nats.conf"), settings).expect("written");
    let file = folder.path().join("nats.conf").display().to_string();
    let nats = Program::start("nats-server", |at| {
        ["-c", &file, "-a", &at.ip().to_string(), "-p", &at.port().to_string()].map(str::to_string).to_vec()
    });
    let token = folder.path().join("token");
    let text = |read: &str| {
        format!(
            "[database]\nurl = \"{0}\"\npassword_file = \"{1}\"\n\
             [remote_write]\nurl = \"http://{2}/api/v1/write\"\nread_url = \"http://{2}{read}\"\n\
             [cluster]\nnats = \"nats://{3}\"\ntoken_file = \"{4}\"\n",
            postgresql.url("hub"),
            postgresql.password_file().display(),
            store.addr,
            nats.addr,
            token.display(),
        )
    };
    postgresql.database("hub");
    std::fs::write(&token, "s3cret\n").expect("written");
    let (all, _, printed) = servers(folder.path(), &text(""));
    assert!(all.len() == 3 && all.iter().all(|server| server["state"] == "ok"), "{all:?}");
    assert!(!printed.contains("s3cret"), "{printed}");
    assert!(
        one(&all, "database")["found"].as_str().is_some_and(|found| found.contains("the database is empty")),
        "{all:?}"
    );
    assert!(
        one(&all, "nats")["found"].as_str().is_some_and(|found| found.contains("a test message arrived")),
        "{all:?}"
    );
    // Nothing was changed there.
    assert_eq!(postgresql.sql("hub", "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"), "0");
    assert!(!store.get("/api/v1/labels").body.contains("source"));
    std::fs::write(&token, "other").expect("written");
    let (all, status, _) = servers(folder.path(), &text("/elsewhere"));
    assert_eq!(status, Some(1));
    assert!(wrong(&all, "nats")[0].contains("authentication failed"), "{all:?}");
    assert!(wrong(&all, "remote_write")[1].contains("read_url"), "{all:?}");
}

#[test]
#[ignore = "needs Debian's nats-server"]
fn with_nats_that_lets_everybody_in_doctor_warns() {
    let folder = tempfile::tempdir().expect("a folder");
    let nats = Program::start("nats-server", |at| {
        ["-a", &at.ip().to_string(), "-p", &at.port().to_string()].map(str::to_string).to_vec()
    });
    let (all, _, printed) = servers(folder.path(), &format!("[cluster]\nnats = \"nats://{}\"\n", nats.addr));
    assert_eq!(one(&all, "nats")["state"], "partial", "{printed}");
    assert!(
        one(&all, "nats")["reason"].as_str().is_some_and(|why| why.contains("requires no authentication")),
        "{printed}"
    );
    assert!(one(&all, "nats")["remedy"].as_str().is_some_and(|what| what.contains("token_file")), "{printed}");
}

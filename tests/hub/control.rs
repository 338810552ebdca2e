//! The control socket in the data folder: the owner of the folder can send requests to the process there.

use super::machine::Machine;
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use watchglass_tests::hub::Hub;
use watchglass_tests::server::{Server, ServerAnswer, run};
use watchglass_tests::waiting::until;

/// Sends a request to the process of a data folder over its socket.
fn ask(folder: &Path, path: &str) -> ServerAnswer {
    let mut stream = UnixStream::connect(folder.join("control.sock")).expect("it listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("sent");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    ServerAnswer::read(&bytes)
}

fn text(folder: &Path) -> &str {
    folder.to_str().expect("a plain path")
}

/// Output of `agent --status`, and its exit status.
fn status(folder: &Path) -> (Option<i32>, Value, String) {
    let output = run(["agent", "--status", "--data-dir", text(folder)]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default(), said)
}

#[test]
fn an_agent_says_how_it_does_to_who_owns_its_folder() {
    let hub = Hub::start(["--no-local"]);
    let folder = tempfile::tempdir().expect("a folder");
    let (code, _, said) = status(folder.path());
    assert_eq!(code, Some(1));
    assert!(said.contains("no agent runs"), "{said}");
    let flags = ["--collectors", "cpu,monitor", "--interval", "100ms", "--data-dir", text(folder.path())];
    let machine = Machine::run(Machine::command(&hub, "node-9", flags));
    let (_, told, _) = until("a link that is live and confirmed", || {
        let told = status(folder.path());
        (told.0 == Some(0) && told.1["hubs"][0]["missing_s"].is_number()).then_some(told)
    });
    let link = &told["hubs"][0];
    assert_eq!((link["state"].as_str(), link["name"].as_str()), (Some("live"), Some("node-9")), "{told}");
    assert!(link["bytes"].as_u64() > Some(0) && link["links"] == 1, "{told}");
    let mode = folder.path().join("control.sock").metadata().expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    until("the row of the agent", || {
        let answer = ask(folder.path(), "/api/v1/query?tag=monitor.uplink.0.live&from=-60s");
        (answer.status == 200 && answer.body.contains("monitor.uplink.0.live")).then_some(())
    });
    let answer = ask(folder.path(), "/api/v1/rules");
    assert!(answer.status == 404 && answer.body.contains("its hubs do"), "nobody would look at a rule: {answer:?}");
    // The hub shows the same row of the machine.
    let cookie = hub.cookie("vera");
    until("the row on the hub", || {
        let path = "/api/v1/query?tag=monitor.uplink.0.reconnects&source=node-9&from=-60s";
        let answer = hub.send("GET", path, &[&cookie], "");
        (answer.status == 200 && answer.body.contains("reconnects")).then_some(())
    });
    drop(machine);
    let (code, _, said) = status(folder.path());
    assert!(code == Some(1) && said.contains("no agent runs"), "a socket that a kill left is nobody's: {said}");
}

#[test]
fn a_page_of_one_machine_has_a_socket_too_and_no_accounts() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(["--data-dir", text(folder.path()), "--collectors", "cpu"]);
    assert_eq!(ask(folder.path(), "/healthz").body, "ok\n");
    assert_eq!(ask(folder.path(), "/api/v1/sources").status, 200);
    let output = run(["user", "list", "--data-dir", text(folder.path())]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("watchglass hub"), "{said}");
    assert_eq!(status(folder.path()).0, Some(1), "it sends to no hub");
    assert!(server.end().success());
    assert!(!folder.path().join("control.sock").exists());
}

#[test]
fn a_folder_whose_path_is_too_long_for_a_socket_is_served_without_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let deep = folder.path().join("d".repeat(100));
    let server = Server::start(["--data-dir", text(&deep), "--collectors", "cpu"]);
    assert_eq!(server.get("/healthz", &[]).status, 200);
    until("the log says so", || server.log().contains("longer than a socket's may be").then_some(()));
    assert!(!deep.join("control.sock").exists());
}

#[test]
fn what_keeps_nothing_on_disk_has_no_socket() {
    let output = run(["agent", "--status", "--memory"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--data-dir"));
}

//! Tests the server behind a Unix socket, for a user's own proxy such as Jupyter's.
#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use watchglass_tests::server::{Server, run, watchglass, watchglass_by};
use watchglass_tests::waiting::until_so;

/// Requests the sources with these header lines, and leaves the answer to be read.
fn asked(socket: &Path, lines: &str) -> UnixStream {
    let mut stream = UnixStream::connect(socket).expect("it listens");
    write!(stream, "GET /api/v1/sources HTTP/1.1\r\n{lines}\r\nConnection: close\r\n\r\n").expect("asked");
    stream
}

/// The status of the answer; empty when the connection ends without one.
fn status(socket: &Path, lines: &str) -> String {
    let mut answer = String::new();
    // A connection that is cut in the middle has no status.
    let _ = asked(socket, lines).read_to_string(&mut answer);
    answer.split(' ').nth(1).unwrap_or_default().to_string()
}

/// Whether a process listens on a port: one of its sockets is in the listening state (0A) of the system's table.
fn has_port(id: u32) -> bool {
    let fds = std::fs::read_dir(format!("/proc/{id}/fd")).expect("it runs");
    let links = fds.flatten().filter_map(|fd| std::fs::read_link(fd.path()).ok());
    let own: Vec<String> = links.map(|link| link.to_string_lossy().into_owned()).collect();
    ["tcp", "tcp6"].into_iter().any(|table| {
        let table = std::fs::read_to_string(format!("/proc/{id}/net/{table}")).unwrap_or_default();
        table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).any(|row| {
            row.get(3) == Some(&"0A") && row.get(9).is_some_and(|inode| own.contains(&format!("socket:[{inode}]")))
        })
    })
}

/// Whether each thread of a process is stopped. A signal takes a moment to reach all of them.
fn stands_still(id: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).expect("it runs").flatten();
    let mut states = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
    states.all(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T')))
}

#[test]
fn a_unix_socket_is_for_its_user_and_only_one_that_is_dead_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("page.sock");
    let at = path.to_str().expect("plain letters");
    // A stale socket that an ended program left behind.
    drop(UnixListener::bind(&path).expect("bound"));
    let server = Server::start(["--memory", "--collectors", "cpu", "--unix", at]);
    assert_eq!(path.metadata().expect("there").permissions().mode() & 0o777, 0o600);
    assert_eq!(status(&path, "Host: localhost"), "200");
    assert_eq!(server.get("/api/v1/sources", &[]).status, 200, "with --port it listens there, too");
    let shown = run(["top", "--unix", at, "--once"]);
    assert_eq!(shown.status.code(), Some(0), "{}", String::from_utf8_lossy(&shown.stderr));
    let second = run(["--memory", "--port", "0", "--unix", at]);
    let told = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(second.status.code() == Some(3) && told.contains("a program listens there; stop it"), "{told}");
    assert_eq!(status(&path, "Host: localhost"), "200", "the first one goes on");
    drop(server);
    let file = folder.path().join("file");
    std::fs::write(&file, "mine").expect("written");
    let wrong = run(["--memory", "--port", "0", "--unix", file.to_str().expect("plain letters")]);
    let told = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(wrong.status.code() == Some(3) && told.contains("is not a socket"), "{told}");
    assert_eq!(std::fs::read(&file).expect("there"), b"mine");
}

#[test]
fn a_socket_alone_takes_no_port_and_is_called_by_any_one_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("page.sock");
    let at = path.to_str().expect("plain letters");
    let server = Server::start_as_it_is(watchglass(["--memory", "--collectors", "cpu", "--unix", at]));
    assert_eq!(server.url, format!("unix:{at}"));
    assert!(!has_port(server.id()));
    let beside = Server::start(["--collectors", "cpu"]);
    assert!(has_port(beside.id()), "where there is one, it is seen");
    // A proxy forwards the public host name, and all cookies of its own.
    assert_eq!(status(&path, "Host: hub.example\r\nOrigin: https://hub.example"), "200");
    assert_eq!(status(&path, &format!("Host: hub.example\r\nCookie: a={}", "x".repeat(40_000))), "200");
    assert_eq!(status(&path, "Host: hub.example\r\nOrigin: https://evil.example"), "403");
    assert_eq!(status(&path, "Host: hub.example\r\nSec-Fetch-Site: cross-site"), "403");
    assert_eq!(status(&path, "Host: a.example\r\nHost: b.example"), "400");
    drop(server);
}

#[test]
fn who_joins_shows_what_is_measured_already_and_goes_on_when_that_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let (path, data) = (folder.path().join("page.sock"), data.to_str().expect("plain letters"));
    let at = path.to_str().expect("plain letters");
    let holder = Server::start(["--data-dir", data, "--collectors", "cpu"]);
    let joined = watchglass(["--data-dir", data, "--collectors", "cpu", "--unix", at, "--join"]);
    let joined = Server::start_as_it_is(joined);
    assert_eq!(joined.url, format!("unix:{at}"));
    assert_eq!(status(&path, "Host: hub.example\r\nOrigin: https://hub.example"), "200");
    assert_eq!(status(&path, "Host: hub.example\r\nOrigin: https://evil.example"), "403");
    // The holder answers: while it is stopped, there is no answer.
    holder.signal("STOP");
    until_so("all of it stands still", || stands_still(holder.id()));
    let mut waiting = asked(&path, "Host: localhost");
    waiting.set_read_timeout(Some(std::time::Duration::from_millis(300))).expect("set");
    waiting.read_exact(&mut [0]).expect_err("nobody answers");
    holder.signal("CONT");
    waiting.set_read_timeout(None).expect("set");
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).expect("answered");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    drop(holder);
    until_so("it measures by itself", || joined.log().contains("it has ended: measuring"));
    until_so("it answers by itself", || status(&path, "Host: localhost") == "200");
    assert!(joined.end().success());
    assert!(!path.exists(), "the socket goes with it");
    let alone = run(["--join", "--data-dir", data]);
    let told = String::from_utf8_lossy(&alone.stderr).into_owned();
    assert!(alone.status.code() == Some(2) && told.contains("name a socket with --unix PATH"), "{told}");
}

#[test]
fn who_joins_a_hub_gets_none_of_its_powers() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let (path, data) = (folder.path().join("page.sock"), data.to_str().expect("plain letters"));
    let at = path.to_str().expect("plain letters");
    let mut hub = watchglass(["hub", "--plain-http", "--port", "0", "--data-dir", data]);
    hub.args(["--collectors", "cpu"]);
    let hub = Server::start_as_it_is(hub);
    let joined = Server::start_as_it_is(watchglass(["--data-dir", data, "--unix", at, "--join"]));
    // The socket of a hub's commands must not be used for this, because its callers are admins.
    assert_eq!(status(&path, "Host: localhost"), "");
    drop((joined, hub));
}

#[test]
fn the_end_of_its_parent_ends_it_and_its_status_is_that_of_a_signal() {
    let mut parent = watchglass_by(r#""$@"; true"#, ["--port", "0", "--memory", "--collectors", "cpu"]);
    parent.arg("--exit-with-parent");
    let parent = Server::start_as_it_is(parent);
    let children = format!("/proc/{id}/task/{id}/children", id = parent.id());
    let child: u32 = std::fs::read_to_string(children).expect("a shell").trim().parse().expect("one child");
    assert!(Path::new(&format!("/proc/{child}")).exists());
    let _ = parent.end_by("KILL");
    until_so("it ends with its parent", || !Path::new(&format!("/proc/{child}")).exists());
    let asked = Server::start(["--collectors", "cpu", "--exit-with-parent"]);
    assert_eq!(asked.end_by("TERM").code(), Some(143));
}

//! The path between an agent and its hub: the hub's own TLS, and the reported step of a broken path.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Output;
use watchglass_tests::agent::{self, Agent};
use watchglass_tests::certificate::Authority;
use watchglass_tests::fleet::Fleet;
use watchglass_tests::hub::Hub;
use watchglass_tests::proxy::{Proxy, Sockets};
use watchglass_tests::road::{answering, silent};
use watchglass_tests::server::{free_port, run, watchglass};

/// A hub with TLS for `localhost`, with its certificate in `folder`.
fn encrypted(authority: &Authority, folder: &Path) -> Fleet {
    let (chain, key) = authority.sign("localhost", folder);
    let (chain, key) = (chain.display().to_string(), key.display().to_string());
    let mut fleet = Fleet::hub(&["--tls-cert", &chain, "--tls-key", &key]);
    fleet.url = format!("https://localhost:{}", fleet.addr().port());
    fleet
}

#[test]
fn an_agent_trusts_an_authority_and_a_renewed_certificate_needs_no_restart() {
    let (files, authority) = (tempfile::tempdir().expect("a folder"), Authority::new());
    let mut fleet = encrypted(&authority, files.path());
    fleet.agent_args = vec!["--ca".into(), authority.write(files.path()).display().to_string()];
    fleet.start_agent();
    fleet.grows("samples come over TLS");
    // Another agent trusts only the current key of the certificate.
    let pinned = |pin: &str, folder: &str| {
        let mut command = agent::command(&fleet.url, &fleet.key, &fleet.folder().join(folder));
        command.args(["--collectors", "cpu", "--name", "pinned", "--pin", pin]);
        Agent::start(command)
    };
    let wrong = pinned("sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "wrong");
    wrong.says("a different key than the pinned one");
    let said = wrong.output();
    let pin = said.split("sha256/").nth(1).and_then(|rest| rest.get(..44)).expect("the pin of the key that is shown");
    let right = pinned(&format!("sha256/{pin}"), "right");
    right.says("connected to");
    // Unknown authorities are not trusted, and the error gives the remedy.
    let mut command = agent::command(&fleet.url, &fleet.key, &fleet.folder().join("other"));
    let other = tempfile::tempdir().expect("a folder");
    command.args(["--collectors", "cpu", "--ca"]).arg(Authority::new().write(other.path()));
    Agent::start(command).says("--ca FILE");

    authority.sign("localhost", files.path());
    fleet.until("the hub shows the new certificate", || {
        fleet.server().log().contains("the certificate was read anew").then_some(())
    });
    fleet.cutter.cut();
    right.says("a different key than the pinned one");
    fleet.grows("who trusts the authority comes back");
    let audit = fleet.settle();
    assert!(audit.sound(), "{audit:?}");
}

#[test]
fn who_writes_http_for_a_hub_with_tls_is_told_so_and_the_other_way_round() {
    let (files, authority) = (tempfile::tempdir().expect("a folder"), Authority::new());
    let fleet = encrypted(&authority, files.path());
    let starts = |url: String, folder: &str| {
        let mut command = agent::command(&url, &fleet.key, &fleet.folder().join(folder));
        command.args(["--collectors", "cpu"]);
        Agent::start(command)
    };
    starts(fleet.url.replace("https:", "http:"), "a").says("https://");
    let plain = Fleet::hub(&[]);
    starts(plain.url.replace("http:", "https:"), "b").says("it does not speak TLS: write http://");
}

/// The last step of a broken path, and its message.
fn end(output: &Output) -> (String, String) {
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let steps = told["hubs"][0]["steps"].as_array().expect("steps");
    let broken = steps.iter().find(|step| step["ok"] != true).expect("one is broken");
    assert_eq!(output.status.code(), Some(1), "{steps:?}");
    let text = |name: &str| broken[name].as_str().expect("text").to_string();
    (text("step"), text("reason"))
}

fn doctor(url: &str, more: &[&str]) -> Output {
    let args = ["doctor", "--json", "--memory", "--collectors", "cpu", "--hub", url];
    run(args.into_iter().chain(more.iter().copied()))
}

#[test]
fn doctor_says_where_each_broken_road_ends() {
    let (files, authority) = (tempfile::tempdir().expect("a folder"), Authority::new());
    let fleet = encrypted(&authority, files.path());
    let plain = Fleet::hub(&[]);
    let through = |sockets| format!("http://{}", Proxy::with_sockets("", plain.addr(), sockets).addr);
    let no_proxy = |addr: SocketAddr| format!("http://{addr}");
    let (refuses, asks) = (
        no_proxy(answering("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")),
        no_proxy(answering("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")),
    );
    let web = no_proxy(answering("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi"));
    let moved = no_proxy(answering(
        "HTTP/1.1 301 Moved\r\nLocation: https://other.test/api/v1/ingest\r\nContent-Length: 0\r\n\r\n",
    ));
    let nobody = no_proxy(([127, 0, 0, 1], free_port()).into());
    let by_number = fleet.url.replace("localhost", "127.0.0.1");
    let ca = authority.write(files.path()).display().to_string();
    let swallowed = no_proxy(silent());
    let (web_socket, never) = (through(Sockets::Refuse), through(Sockets::Swallow));
    let (in_clear, by_tls) = (fleet.url.replace("https:", "http:"), plain.url.replace("http:", "https:"));
    let cases: [(&str, &[&str], &str, &str); 16] = [
        ("https://no-such-host.invalid", &[], "name", "cannot be resolved"),
        (&nobody, &[], "TCP", "connection refused"),
        (&plain.url, &["--proxy", &nobody], "TCP", "of the proxy"),
        (&plain.url, &["--proxy", &refuses], "proxy", "returns 403"),
        (&plain.url, &["--proxy", &asks], "proxy", "http://USER:PASSWORD@HOST:PORT"),
        (&plain.url, &["--proxy", &plain.url], "proxy", "does not connect"),
        (&fleet.url, &[], "TLS", "--ca FILE"),
        (&by_number, &["--ca", &ca], "TLS", "another host name"),
        (&by_tls, &[], "TLS", "write http://"),
        (&in_clear, &[], "upgrade", "https://"),
        (&web, &[], "upgrade", "200"),
        (&moved, &[], "upgrade", "https://other.test; write that"),
        (&web_socket, &[], "upgrade", "403"),
        (&swallowed, &[], "upgrade", "WebSocket"),
        (&never, &[], "upgrade", "timed out after 10 s"),
        (&plain.url, &[], "key", "join line"),
    ];
    // One of them waits ten seconds for an answer, so all run in parallel.
    let faults: Vec<String> = std::thread::scope(|scope| {
        let asked = cases.map(|(url, more, step, said)| {
            let asked = scope.spawn(move || end(&doctor(url, more)));
            (asked, format!("{url} {more:?}"), step, said)
        });
        let wrong = asked.into_iter().filter_map(|(asked, road, step, said)| {
            let found = asked.join().expect("it tells");
            let right = found.0 == step && found.1.contains(said);
            (!right).then(|| format!("{road}: {found:?}, and not {step}: {said}"))
        });
        wrong.collect()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn doctor_knows_a_key_that_was_ended_from_one_that_holds() {
    let hub = Hub::start(["--no-local"]);
    let (url, folder) = (hub.server.url.trim_end_matches('/').to_string(), tempfile::tempdir().expect("a folder"));
    let mut command = agent::command(&url, &hub.keys["join"], folder.path());
    command.args(["--collectors", "cpu", "--name", "node-1"]);
    let running = Agent::start(command);
    running.says("connected to");
    drop(running);
    let ask = || {
        let mut command = watchglass(["doctor", "--json", "--collectors", "cpu", "--hub", &url, "--data-dir"]);
        command.arg(folder.path()).output().expect("it starts")
    };
    let output = ask();
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let steps = told["hubs"][0]["steps"].as_array().expect("steps").clone();
    assert!(output.status.success() && steps.iter().all(|step| step["ok"] == true), "{told}");
    assert_eq!(steps.last().map(|step| &step["step"]), Some(&"clock".into()), "{told}");
    let mut command = watchglass(["agents", "revoke", "node-1", "--data-dir"]);
    let revoked = command.arg(hub.folder.path()).output().expect("it starts");
    assert!(revoked.status.success(), "{}", String::from_utf8_lossy(&revoked.stderr));
    let (step, why) = end(&ask());
    assert!(step == "key" && why.contains("revoked"), "{step}: {why}");
}

#[test]
fn a_proxy_that_takes_the_upgrade_out_is_told_of() {
    let hub = Fleet::hub(&[]);
    let url = format!("http://{}", Proxy::with_sockets("", hub.addr(), Sockets::Downgrade).addr);
    let folder = hub.folder().join("node");
    let mut command = agent::command(&url, &hub.key, &folder);
    command.args(["--collectors", "cpu"]);
    Agent::start(command).says("proxy");
    let mut command = watchglass(["doctor", "--json", "--collectors", "cpu", "--hub", &url, "--data-dir"]);
    let (step, why) = end(&command.arg(&folder).output().expect("it starts"));
    assert!(step == "upgrade" && why.contains("proxy"), "{step}: {why}");
}

//! The first admin, sessions and their cookies, and configurations that a hub rejects.

use super::JSON;
use shared::session::Session;
use watchglass_tests::agent::{self, Agent};
use watchglass_tests::hub::{Hub, PASSWORD, send, spoiled};
use watchglass_tests::server::{Server, ServerAnswer, run};
use watchglass_tests::waiting::until;

fn logged_after(server: &Server, begin: &str) -> String {
    until(begin, || {
        let log = server.log();
        let rest = &log[log.find(begin)? + begin.len()..];
        // The word is complete when another character follows.
        rest.find(char::is_whitespace).map(|end| rest[..end].to_string())
    })
}

fn session(answer: &ServerAnswer) -> Session {
    serde_json::from_str(&answer.body).expect("a session")
}

/// The cookie that a browser would keep of an answer.
fn kept(answer: &ServerAnswer) -> String {
    answer.header("set-cookie").split(';').next().unwrap_or_default().to_string()
}

#[test]
fn a_new_hub_answers_nothing_but_how_its_first_admin_is_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Hub::server(folder.path(), ["--no-local"]);
    let code = logged_after(&server, "#setup=");
    let line = logged_after(&server, "--key ");
    assert!(line.starts_with("wg_j_") && server.log().contains(&format!("watchglass agent --hub {} ", server.url)));
    for path in ["/api/v1/sources", "/api/v1/catalog", "/metrics", "/api/v1/teams/main/agents", "/api/v1/live"] {
        let answer = server.get(path, &[]);
        assert_eq!(answer.status, 503, "{path}");
        assert!(answer.error().contains("has no admin yet"), "{answer:?}");
    }
    assert_eq!(["/", "/healthz"].map(|path| server.get(path, &[]).status), [200, 200]);
    let before = session(&server.get("/api/v1/session", &[]));
    assert!(before.setup && before.account.is_none() && before.ways == ["password"] && !before.plain_http);
    let origin = format!("Origin: http://{}", server.addr());
    let setup = |code: &str| {
        let body = serde_json::json!({ "code": code, "name": "root", "password": PASSWORD }).to_string();
        send(&server, "POST", "/api/v1/session/setup", &[&origin, JSON], &body)
    };
    assert_eq!(setup("0").status, 401);
    let made = setup(&code);
    assert_eq!(made.status, 200, "{made:?}");
    assert!(session(&made).account.is_some_and(|account| account.name == "root" && account.hub_admin));
    assert_eq!(setup(&code).status, 401, "a code is taken once");
    let cookie = format!("Cookie: {}", kept(&made));
    assert_eq!(server.get("/api/v1/sources", &[&cookie]).status, 200);
    assert_eq!(server.get("/api/v1/sources", &[]).status, 401);
    // A restarted hub prints no setup code, and existing sessions stay valid.
    assert!(server.end().success());
    let server = Hub::server(folder.path(), ["--no-local"]);
    assert!(!session(&server.get("/api/v1/session", &[])).setup && !server.log().contains("#setup="));
}

#[test]
fn a_session_ends_when_its_holder_signs_out_and_no_other_does() {
    let hub = Hub::start(["--no-local"]);
    let origin = hub.origin();
    let sign_in = |name: &str, password: &str, more: &[&str]| {
        let body = serde_json::json!({ "name": name, "password": password }).to_string();
        hub.send("POST", "/api/v1/session", &[&[origin.as_str(), JSON], more].concat(), &body)
    };
    let (wrong, nobody) = (sign_in("ada", "not her password", &[]), sign_in("eve", PASSWORD, &[]));
    assert_eq!((wrong.status, nobody.status), (401, 401));
    assert_eq!(wrong.body, nobody.body, "nobody learns which names there are");
    assert!(wrong.header("set-cookie").is_empty());
    let begun = sign_in("ada", PASSWORD, &[]);
    let set = begun.header("set-cookie");
    assert!(set.ends_with("; HttpOnly; SameSite=Strict; Path=/") && !set.contains("Domain"), "{set}");
    assert_eq!(begun.header("cache-control"), "no-store");
    let cookie = format!("Cookie: {}", kept(&begun));
    let who = |cookie: &str| session(&hub.send("GET", "/api/v1/session", &[cookie], "")).account.map(|one| one.name);
    assert_eq!(who(&cookie).as_deref(), Some("ada"));
    // A new sign-in ends the session in the request and creates another.
    let renewed = format!("Cookie: {}", kept(&sign_in("ada", PASSWORD, &[&cookie])));
    assert_ne!(renewed, cookie);
    assert_eq!((who(&cookie), who(&renewed).as_deref()), (None, Some("ada")));
    let out = hub.send("DELETE", "/api/v1/session", &[&renewed, &origin, JSON], "");
    assert_eq!(out.status, 200);
    assert!(out.header("set-cookie").contains("Max-Age=0"), "{out:?}");
    assert_eq!((who(&renewed), who(&hub.cookie("ada")).as_deref()), (None, Some("ada")), "her other session goes on");
    assert_eq!(hub.send("GET", "/api/v1/sources", &[&renewed], "").status, 401);
}

#[test]
fn a_cookie_that_is_made_up_or_comes_twice_opens_nothing() {
    let hub = Hub::start(["--no-local"]);
    let own = hub.cookie("ada");
    let name = own.split('=').next().expect("a name").to_string();
    let status = |line: &str| hub.send("GET", "/api/v1/sources", &[line], "").status;
    assert_eq!(status(&own), 200);
    assert_eq!(status(&format!("{name}={}", "A".repeat(43))), 401);
    assert_eq!(status(&format!("{name}=")), 401);
    assert_eq!(status(&own.replacen("wg-", "__Host-wg-", 1)), 401);
    let value = own.split_once('=').expect("a value").1;
    assert_eq!(status(&format!("{own}; {}={value}", name.trim_start_matches("Cookie: "))), 400);
}

#[test]
fn a_key_in_an_address_is_ended() {
    let hub = Hub::start(["--no-local"]);
    let (key, header) = (&hub.keys["data"], hub.key("data"));
    assert_eq!(hub.send("GET", "/api/v1/sources", &[&header], "").status, 200);
    // A partly known key cannot be revoked.
    let wrong = spoiled(key);
    assert_eq!(hub.send("GET", &format!("/api/v1/sources?key={wrong}"), &[], "").status, 400);
    assert_eq!(hub.send("GET", "/api/v1/sources", &[&header], "").status, 200);
    let answer = hub.send("GET", &format!("/api/v1/sources?key={key}"), &[&header], "");
    assert_eq!(answer.status, 400);
    assert!(answer.error().contains("Authorization: Bearer") && !answer.body.contains(key.as_str()));
    assert_eq!(hub.send("GET", "/api/v1/sources", &[&header], "").status, 401, "it is in somebody's log now");
}

#[test]
fn a_hub_refuses_to_be_less_than_it_promises() {
    for (args, sentence) in [
        (&["hub", "--memory"][..], "leave out --memory"),
        (&["hub", "--bind", "0.0.0.0"], "--tls-cert"),
        (&["hub", "--tls-cert", "a.pem"], "--tls-key"),
        (&["hub", "--public-url", "http://watch.example.org"], "--plain-http"),
        (&["serve", "--bind", "0.0.0.0"], "watchglass hub"),
    ] {
        let output = run(args.iter().copied());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(sentence), "{args:?}: {said}");
    }
}

#[test]
fn one_machine_alone_has_no_accounts() {
    let server = Server::start([]);
    for (method, path) in [
        ("GET", "/api/v1/session"),
        ("POST", "/api/v1/session"),
        ("GET", "/api/v1/teams/main/agents"),
        ("POST", "/api/v1/ingest/enrol"),
    ] {
        let answer = send(&server, method, path, &[JSON], "");
        assert_eq!(answer.status, 404, "{method} {path}");
        assert!(answer.error().contains("watchglass hub"), "{answer:?}");
    }
    assert_eq!(send(&server, "POST", "/api/v1/sources", &[JSON], "{}").status, 405);
}

#[test]
fn a_join_key_of_the_configuration_stands_in_its_file_and_lets_machines_join() {
    let folder = tempfile::tempdir().expect("a folder");
    let (config, key) = (folder.path().join("hub.toml"), folder.path().join("join"));
    let text = format!("[[agents.join]]\nname = \"slurm\"\ntoken_file = {key:?}\nlabels = {{ tier = \"gpu\" }}\n");
    std::fs::write(&config, text).expect("written");
    let hub = Hub::start(["--no-local", "--config", config.to_str().expect("plain letters")]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(key.metadata().expect("the hub made it").permissions().mode() & 0o777, 0o600);
    }
    let data = folder.path().join("agent");
    let written = std::fs::read_to_string(&key).expect("the hub made it");
    let mut agent = agent::command(&hub.server.url, written.trim(), &data);
    agent.args(["--collectors", "cpu"]);
    let _agent = Agent::start(agent);
    until("the machine is there with its label", || {
        let agents = hub.send("GET", "/api/v1/teams/main/agents", &[&hub.cookie("root")], "").body;
        (agents.contains("\"tier\"") && agents.contains("gpu")).then_some(())
    });
    assert!(!hub.server.log().contains("wg_j_"), "the log repeats no key");
    std::fs::write(&key, "not a key").expect("written");
    let config = config.to_str().expect("plain letters");
    let other = tempfile::tempdir().expect("a folder");
    let other = other.path().to_str().expect("plain letters");
    let refused = run(["hub", "--plain-http", "--port", "0", "--no-local", "--data-dir", other, "--config", config]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && told.contains("remove it, and the hub creates one"), "{told}");
}

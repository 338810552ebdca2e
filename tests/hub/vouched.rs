//! A proxy that sends the identity in a header, attacks first: from another address, twice, with cookies, from a
//! foreign page.

use super::JSON;
use serde_json::Value;
use watchglass_tests::hub::{Hub, PASSWORD};
use watchglass_tests::server::run;

const SOURCES: &str = "/api/v1/sources";
const SESSION: &str = "/api/v1/session";
const JOIN: &str = "/api/v1/teams/main/join";
const STRANGER: &str = "X-Forwarded-User: stranger@example.org";
const SIGN_OUT: &str = "https://id.example.org/sign-out";
const UPGRADE: [&str; 4] = [
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

/// A hub that trusts these addresses. `more` comes before the table of the proxy.
fn hub(from: &str, more: &str) -> Hub {
    hub_with(from, more, "")
}

/// A hub that trusts these addresses. `behind` is added to the table of the proxy.
fn hub_with(from: &str, more: &str, behind: &str) -> Hub {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("config.toml");
    let text = format!(
        "[proxy]\ntrusted = [\"127.0.0.1\"]\n[sign_in]\n{more}\n[sign_in.proxy]\nfrom = {from}\n\
         user = \"X-Forwarded-User\"\nemail = \"X-Forwarded-Email\"\nsign_out = \"{SIGN_OUT}\"\n{behind}"
    );
    std::fs::write(&file, text).expect("written");
    Hub::start(["--no-local", "--config", &file.display().to_string()])
}

/// Name of the account that is signed in with these headers; empty: none.
fn who(hub: &Hub, headers: &[&str]) -> String {
    let answer = hub.send("GET", SESSION, headers, "");
    assert_eq!(answer.status, 200, "{headers:?}: {answer:?}");
    let session: Value = serde_json::from_str(&answer.body).expect("JSON");
    session["account"]["name"].as_str().unwrap_or_default().to_string()
}

/// Sends a person's password through the proxy.
fn bind(hub: &Hub, name: &str, header: &str) -> u16 {
    let body = format!("{{\"name\":\"{name}\",\"password\":\"{PASSWORD}\"}}");
    hub.send("POST", SESSION, &[header, &hub.origin(), JSON], &body).status
}

#[test]
fn from_elsewhere_the_header_is_refused_whatever_it_comes_with() {
    let hub = hub("[\"10.0.0.5\"]", "new_accounts = \"viewer\"");
    let (ada, key) = (hub.cookie("ada"), hub.key("data"));
    for path in ["/", "/healthz", SESSION, SOURCES, "/metrics", "/api/v1/me"] {
        for beside in ["Accept: */*", &ada, &key, "X-Forwarded-For: 10.0.0.5", "Forwarded: for=10.0.0.5"] {
            let answer = hub.send("GET", path, &[STRANGER, beside], "");
            assert_eq!(answer.status, 400, "{path} {beside:?}");
        }
    }
    assert_eq!(bind(&hub, "ada", STRANGER), 400);
    assert_eq!(hub.send("GET", SOURCES, &["x-forwarded-user:"], "").status, 400, "an empty one is one");
    assert_eq!(hub.send("GET", SOURCES, &[&ada], "").status, 200, "passwords go on");
    assert_eq!(hub.send("GET", SOURCES, &[&ada, "X-Forwarded-Email: a@example.org"], "").status, 200);
}

#[test]
fn it_counts_once_and_before_any_cookie() {
    let hub = hub("[\"127.0.0.1\"]", "");
    let (ada, vera) = (hub.cookie("ada"), hub.cookie("vera"));
    let status = |headers: &[&str]| hub.send("GET", SOURCES, headers, "").status;
    assert_eq!(status(&[STRANGER]), 403, "nobody invited them");
    assert_eq!(status(&[STRANGER, &ada]), 403, "a cookie is no way around it");
    assert_eq!(who(&hub, &[STRANGER, &ada]), "");
    assert_eq!(status(&["X-Forwarded-User: ada"]), 403, "a name that is the same is nobody's account");
    assert_eq!(status(&[STRANGER, STRANGER]), 400);
    assert_eq!(status(&["X-Forwarded-User: ada", STRANGER, &ada]), 400);
    assert_eq!(status(&[&format!("X-Forwarded-User: {}", "x".repeat(513))]), 400);
    assert_eq!(status(&["X-Forwarded-User: "]), 401, "the proxy has signed in nobody");
    assert_eq!(who(&hub, &["X-Forwarded-User: ", &vera]), "vera");
    assert_eq!(status(&[STRANGER, &hub.key("data")]), 200, "a key is judged alone");

    assert_eq!(bind(&hub, "ada", STRANGER), 200);
    assert_eq!(who(&hub, &[STRANGER]), "ada");
    assert_eq!(who(&hub, &[STRANGER, &vera]), "ada", "the header wins");
    assert_eq!(status(&["X-Forwarded-User: Stranger@example.org"]), 403, "letters count");
    assert_eq!(bind(&hub, "mike", STRANGER), 200, "signed in by the header already");
    assert_eq!(who(&hub, &[STRANGER]), "ada", "but whose the name is stays");
    let audit = hub.send("GET", "/api/v1/audit?action=identity.", &[&hub.cookie("root")], "").body;
    assert_eq!(audit.matches("identity.add").count(), 1, "{audit}");

    let out = hub.send("DELETE", SESSION, &[STRANGER, &hub.origin(), JSON], "");
    assert_eq!(out.status, 409);
    assert!(out.error().contains(SIGN_OUT), "{out:?}");
    let disabled =
        hub.send("PATCH", "/api/v1/accounts/ada", &[&hub.cookie("root"), &hub.origin(), JSON], "{\"disabled\":true}");
    assert_eq!(disabled.status, 200, "{disabled:?}");
    assert_eq!((status(&[STRANGER]), who(&hub, &[STRANGER])), (403, String::new()));
}

#[test]
fn a_foreign_page_gains_nothing_by_the_cookie_of_the_proxy() {
    let hub = hub("[\"127.0.0.1\"]", "");
    let own = hub.origin();
    assert_eq!(bind(&hub, "ada", STRANGER), 200);
    let change = |headers: &[&str]| hub.send("POST", JOIN, &[&[STRANGER, JSON], headers].concat(), "{}").status;
    let stream =
        |headers: &[&str]| hub.send("GET", "/api/v1/live", &[&[STRANGER], &UPGRADE[..], headers].concat(), "").status;
    assert_eq!((change(&[&own]), stream(&[&own])), (201, 101));
    for foreign in [&[][..], &["Origin: http://evil.test"], &["Origin: null"], &[&own, "Sec-Fetch-Site: same-site"]] {
        assert_eq!((change(foreign), stream(foreign)), (403, 403), "{foreign:?}");
    }
    let body = format!("{{\"name\":\"mike\",\"password\":\"{PASSWORD}\"}}");
    let forged = hub.send("POST", SESSION, &["X-Forwarded-User: other", "Origin: http://evil.test", JSON], &body);
    assert_eq!(forged.status, 403, "nobody is brought to somebody else's account");
}

#[test]
fn who_is_vouched_for_gets_an_account_where_the_file_says_so() {
    let hub = hub("[\"127.0.0.1\"]", "new_accounts = \"viewer\"");
    let ada = "X-Forwarded-User: ada";
    assert_eq!(who(&hub, &[ada, "X-Forwarded-Email: ada@example.org"]), "ada-2", "never the account of the same name");
    assert_eq!(who(&hub, &[ada]), "ada-2", "and the same again");
    assert_eq!(hub.send("GET", SOURCES, &[ada], "").status, 200);
    assert_eq!(hub.send("POST", JOIN, &[ada, &hub.origin(), JSON], "{}").status, 403, "as viewer");
    let people = hub.send("GET", "/api/v1/accounts", &[&hub.cookie("root")], "").body;
    assert!(people.contains("ada-2") && !people.contains("ada-3"), "{people}");
    let own = hub.send("GET", "/api/v1/me", &[ada], "").body;
    assert!(own.contains("ada@example.org"), "{own}");
    let audit = hub.send("GET", "/api/v1/audit?action=account.add", &[&hub.cookie("root")], "").body;
    assert!(audit.contains("ada-2") && audit.contains("by the proxy"), "{audit}");
}

#[test]
fn groups_in_a_header_of_the_proxy_give_roles_and_who_it_brings_is_written_down() {
    let roles = "groups = \"X-Forwarded-Groups\"\n[sign_in.proxy.roles]\nops = \"admin\"\n\"gpu users\" = \"member\"\n\
                 others = { team = \"other\", role = \"viewer\" }\n";
    let hub = hub_with("[\"127.0.0.1\"]", "new_accounts = \"viewer\"", roles);
    let roles = |groups: &[&str]| {
        let told = hub.send("GET", SESSION, &[&[STRANGER], groups].concat(), "");
        let told: Value = serde_json::from_str(&told.body).expect("JSON");
        let teams = told["teams"].as_array().expect("teams").iter();
        teams.map(|team| format!("{} {}", team["name"], team["role"]).replace('"', "")).collect::<Vec<_>>()
    };
    assert_eq!(roles(&["X-Forwarded-Groups: gpu users, others,,unknown"]), ["main member", "other viewer"]);
    assert_eq!(roles(&["X-Forwarded-Groups: ops"]), ["main admin"], "and `other` went with its group");
    let join = |groups: &str| hub.send("POST", JOIN, &[STRANGER, groups, &hub.origin(), JSON], "{}").status;
    assert_eq!((join("X-Forwarded-Groups: ops"), join("X-Forwarded-Groups: gpu users")), (201, 403));
    assert_eq!(roles(&[]), [""; 0], "no group, no role");
    let twice = ["X-Forwarded-Groups: gpu users", "X-Forwarded-Groups: ops"];
    assert_eq!(
        hub.send("GET", SOURCES, &[&[STRANGER], &twice[..]].concat(), "").status,
        400,
        "a second copy is anybody's"
    );
    let beside = hub.send("GET", SESSION, &["X-Forwarded-Groups: ops", &hub.cookie("vera")], "");
    assert!(beside.body.contains("\"role\":\"viewer\""), "groups of nobody give nothing: {beside:?}");
    let root = hub.cookie("root");
    let audit = |action: &str| hub.send("GET", &format!("/api/v1/audit?action={action}&limit=100"), &[&root], "").body;
    let came = audit("sign-in");
    assert_eq!(came.matches("by the proxy").count(), 1, "once, and not with each request: {came}");
    assert!(came.contains("stranger@example.org"), "{came}");
    assert_eq!(audit("member.groups").matches("\"member.groups\"").count(), 3, "each change, and nothing else");
    assert!(audit("member.groups").contains("admin of main, nothing in other"), "{}", audit("member.groups"));
}

#[cfg(unix)]
#[test]
fn over_the_socket_of_the_folder_it_counts_where_the_file_says_so() {
    use std::io::{Read, Write};
    use watchglass_tests::server::ServerAnswer;
    let ask = |hub: &Hub, header: &str| {
        let socket = hub.folder.path().join("control.sock");
        let mut stream = std::os::unix::net::UnixStream::connect(socket).expect("it listens");
        let lines = format!("Host: localhost\r\nConnection: close\r\n{header}");
        write!(stream, "GET /api/v1/accounts HTTP/1.1\r\n{lines}\r\n\r\n").expect("sent");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("an answer");
        ServerAnswer::read(&bytes).status
    };
    assert_eq!(ask(&hub("[\"127.0.0.1\"]", ""), STRANGER), 400);
    let hub = hub("[\"unix\"]", "");
    assert_eq!(ask(&hub, STRANGER), 403, "they are a stranger, and not the owner of the folder");
    assert_eq!(ask(&hub, "X-Forwarded-User:"), 401, "the proxy has signed in nobody");
    assert_eq!(ask(&hub, "Accept: */*"), 200, "a command of the owner");
}

#[test]
fn a_proxy_without_an_address_stops_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("config.toml");
    std::fs::write(&file, "[sign_in.proxy]\nfrom = []\nuser = \"X-Forwarded-User\"\n").expect("written");
    let (file, data) = (file.display().to_string(), folder.path().display().to_string());
    let output = run(["hub", "--port", "0", "--data-dir", &data, "--config", &file]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("name the address of the proxy"), "{said}");
}

//! The commands `watchglass user`, `key` and `agents`: on the files of a stopped hub, through its control socket, and
//! remotely with a key.

use serde_json::Value;
use std::path::Path;
use std::process::Output;
use watchglass_tests::hub::{Hub, PASSWORD};
use watchglass_tests::server::{ask, watchglass};

fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = watchglass(args.iter().copied());
    command.arg("--data-dir").arg(folder).output().expect("the binary starts")
}

#[track_caller]
fn checked_output(output: Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{error}");
    String::from_utf8(output.stdout).expect("text")
}

#[track_caller]
fn fails(output: Output, status: i32) -> String {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{error}");
    assert!(output.stdout.is_empty(), "errors go to standard error");
    error
}

#[test]
fn an_admin_made_on_the_files_signs_in_and_is_disabled_through_the_socket() {
    let folder = tempfile::tempdir().expect("a folder");
    let password = folder.path().join("password");
    std::fs::write(&password, format!("{PASSWORD}\n")).expect("written");
    let file = password.display().to_string();
    checked_output(run(folder.path(), &["user", "add", "mara", "--admin", "--password-file", &file]));
    let server = Hub::server(folder.path(), []);
    assert!(!server.log().contains("#setup="), "there is an admin");
    let origin = format!("Origin: http://{}", server.addr());
    let body = format!("{{\"name\": \"mara\", \"password\": \"{PASSWORD}\"}}");
    let sign_in = || {
        let headers = [origin.as_str(), super::JSON];
        watchglass_tests::hub::send(&server, "POST", "/api/v1/session", &headers, &body).status
    };
    assert_eq!(sign_in(), 200);
    checked_output(run(folder.path(), &["user", "add", "tom", "--admin", "--password-file", &file]));
    checked_output(run(folder.path(), &["user", "disable", "mara"]));
    assert_eq!(sign_in(), 401);
    let list: Value =
        serde_json::from_str(&checked_output(run(folder.path(), &["user", "list", "--json"]))).expect("JSON");
    let names: Vec<_> = list["accounts"].as_array().expect("a list").iter().map(|person| &person["name"]).collect();
    assert_eq!(names, ["mara", "tom"]);
    let roles: Vec<_> =
        list["accounts"].as_array().expect("a list").iter().map(|one| &one["teams"][0]["role"]).collect();
    assert_eq!(roles, ["admin", "admin"], "an admin of the hub stands as one in its first team");
    let last = fails(run(folder.path(), &["user", "disable", "tom"]), 1);
    assert!(last.contains("last admin of the hub"), "{last}");
}

#[test]
fn a_join_key_is_not_made_where_no_hub_has_run() {
    let folder = tempfile::tempdir().expect("a folder");
    for command in [&["agents", "join"][..], &["key", "add", "ci", "--scope", "data:read"], &["agents", "list"]] {
        let said = fails(run(folder.path(), command), 4);
        let names = format!("no hub has ever run with the data folder {}", folder.path().display());
        assert!(said.contains(&names) && said.contains("--data-dir"), "{said}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing is made");
}

#[test]
fn machines_are_listed_renamed_labeled_and_revoked() {
    let hub = Hub::start([]);
    let folder = hub.folder.path();
    let line = checked_output(run(folder, &["agents", "join", "--uses", "2", "--expires", "1h", "--label", "rack=r1"]));
    let begin = format!("watchglass agent --hub http://{}", hub.server.addr());
    assert!(line.starts_with(&begin) && line.contains(" --key wg_j_") && line.lines().count() == 1, "{line}");
    checked_output(run(folder, &["agents", "rename", "gpu-7", "node-7"]));
    checked_output(run(folder, &["agents", "label", "gpu-7", "rack=r2", "tier=gpu"]));
    let table = checked_output(run(folder, &["agents", "list"]));
    assert!(
        table.starts_with("NAME    STATE") && table.contains("\nnode-7") && table.contains("rack=r2,tier=gpu"),
        "{table}"
    );
    checked_output(run(folder, &["agents", "revoke", "node-7"]));
    let list: Value = serde_json::from_str(&checked_output(run(folder, &["agents", "list", "--json"]))).expect("JSON");
    assert_eq!((&list["agents"][0]["state"], &list["agents"][0]["key"]), (&"revoked".into(), &Value::Null));
    fails(run(folder, &["agents", "approve", "node-7"]), 1);
    checked_output(run(folder, &["agents", "remove", "node-7"]));
    fails(run(folder, &["agents", "revoke", "node-7"]), 1);
}

#[test]
fn from_elsewhere_a_key_may_what_it_is_for() {
    let hub = Hub::start([]);
    let folder = hub.folder.path();
    let url = hub.origin().replace("Origin: ", "");
    let elsewhere = tempfile::tempdir().expect("a folder");
    let file = elsewhere.path().join("key");
    let with = |key: &str, args: &[&str]| {
        std::fs::write(&file, format!("{key}\n")).expect("written");
        let mut command = watchglass(args.iter().copied());
        command.args(["--hub", &url, "--key-file"]).arg(&file).output().expect("the binary starts")
    };
    assert!(checked_output(with(&hub.keys["team"], &["agents", "list"])).contains("gpu-7"));
    fails(with(&hub.keys["team"], &["user", "list"]), 5);
    fails(with(&hub.keys["data"], &["agents", "list"]), 5);
    fails(with("wg_s_guess", &["agents", "list"]), 6);
    fails(with(&hub.keys["join"], &["agents", "list"]), 6);
    let admin =
        checked_output(run(folder, &["key", "add", "ops", "--scope", "hub:admin,team:admin", "--expires", "1h"]));
    assert!(checked_output(with(admin.trim(), &["user", "list"])).contains("root"));
    let link = checked_output(with(admin.trim(), &["user", "reset", "vera"]));
    let code = link.trim().strip_prefix(&format!("{url}/#reset=")).expect("a link");
    let body = format!("{{\"code\": \"{code}\", \"password\": \"another long sentence\"}}");
    let reset = || hub.send("POST", "/api/v1/session/reset", &[&hub.origin(), super::JSON], &body).status;
    assert_eq!((reset(), reset()), (200, 401), "once");
    let id = admin.split('_').nth(2).expect("its id");
    checked_output(run(folder, &["key", "remove", id]));
    fails(with(admin.trim(), &["user", "list"]), 6);
}

#[cfg(unix)]
#[test]
fn the_control_socket_is_its_owners_alone_and_another_site_cannot_use_it() {
    use std::io::{Read, Write};
    use std::os::unix::fs::PermissionsExt;
    let hub = Hub::start([]);
    let socket = hub.folder.path().join("control.sock");
    assert_eq!(socket.metadata().expect("the socket").permissions().mode() & 0o777, 0o600);
    let send = |lines: &str| {
        let mut stream = std::os::unix::net::UnixStream::connect(&socket).expect("it listens");
        let head = format!(
            "POST /api/v1/accounts HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{lines}Content-Length: 2\r\n\r\n{{}}"
        );
        stream.write_all(head.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        answer.split(' ').nth(1).expect("a status").to_string()
    };
    let (own, json) = ("Origin: http://localhost\r\n", "Content-Type: application/json\r\n");
    assert_eq!(send(json), "400", "no name, so it was looked at");
    assert_eq!(send(""), "415");
    // A socket has no web origin. So a browser's request through it, by a proxy, is not accepted as its owner's.
    for passed_on in [own, "Sec-Fetch-Site: same-origin\r\n", "Cookie: a=b\r\n", "X-Forwarded-For: 10.0.0.1\r\n"] {
        assert_eq!(send(&format!("{passed_on}{json}")), "401", "{passed_on}");
    }
    assert_eq!(send(&format!("Origin: http://evil.example\r\n{json}")), "403");
    // Over TCP the owner's uid gives no access, because only the socket reports it.
    assert_eq!(ask(hub.server.addr(), "GET /api/v1/accounts HTTP/1.1\r\nHost: localhost\r\n").status, 401);
}

#[test]
fn a_program_has_an_account_and_its_keys_hold_as_long_as_it_does() {
    let hub = Hub::start(["--no-local"]);
    let folder = hub.folder.path();
    checked_output(run(folder, &["service", "add", "nightly", "--role", "member"]));
    let key = checked_output(run(folder, &["key", "add", "report", "--scope", "data:read", "--service", "nightly"]));
    let bearer = format!("Authorization: Bearer {}", key.trim());
    let status = || hub.send("GET", "/api/v1/sources", &[&bearer], "").status;
    assert_eq!(status(), 200);
    let services: Value =
        serde_json::from_str(&checked_output(run(folder, &["service", "list", "--json"]))).expect("JSON");
    let service = services["services"].as_array().expect("a list").iter().find(|one| one["name"] == "nightly");
    assert_eq!(service.map(|one| (one["role"].clone(), one["keys"].clone())), Some(("member".into(), 1.into())));
    let keys: Value =
        serde_json::from_str(&checked_output(run(folder, &["key", "list", "--service", "nightly", "--json"])))
            .expect("JSON");
    assert_eq!(keys["keys"].as_array().map(Vec::len), Some(1), "{keys}");
    checked_output(run(folder, &["service", "disable", "nightly"]));
    assert_eq!(status(), 401, "it holds no more");
    checked_output(run(folder, &["service", "enable", "nightly"]));
    assert_eq!(status(), 200);
    checked_output(run(folder, &["service", "remove", "nightly"]));
    assert_eq!(status(), 401);
}

#[test]
fn a_person_gets_a_key_by_command_on_the_hubs_machine_alone() {
    let hub = Hub::start(["--no-local"]);
    let folder = hub.folder.path();
    let add = |scope: &str| run(folder, &["key", "add", "laptop", "--scope", scope, "--user", "vera"]);
    let key = checked_output(add("data:read"));
    let bearer = format!("Authorization: Bearer {}", key.trim());
    let status = |path: &str| hub.send("GET", path, &[&bearer], "").status;
    assert_eq!((status("/api/v1/sources"), status("/api/v1/accounts"), status("/api/v1/me")), (200, 403, 403));
    let more = fails(add("team:admin"), 5);
    assert!(more.contains("vera lacks team:admin"), "{more}");
    fails(run(folder, &["key", "add", "laptop", "--scope", "data:read", "--user", "nobody"]), 1);
    let list = checked_output(run(folder, &["key", "list", "--user", "vera"]));
    assert!(list.contains("laptop") && list.contains("data:read"), "{list}");
    let own = hub.send("GET", "/api/v1/me/keys", &[&hub.cookie("vera")], "").body;
    assert!(own.contains("laptop"), "she sees and ends it herself: {own}");
    let audit = hub.send("GET", "/api/v1/audit?action=key.add", &[&hub.cookie("root")], "").body;
    assert!(audit.contains("vera/laptop: data:read") && audit.contains("command line"), "{audit}");
    // A remote admin sees and revokes others' keys, but creates none in their names.
    let root = hub.key("hub");
    let path = "/api/v1/accounts/vera/keys";
    let made = hub.send("POST", path, &[&root, super::JSON], "{\"name\":\"x\",\"scopes\":[\"data:read\"]}");
    assert!(made.status == 403 && made.body.contains("cannot be created remotely"), "{made:?}");
    assert!(hub.send("GET", path, &[&root], "").body.contains("laptop"));
    let id = key.split('_').nth(2).expect("its id");
    fails(run(folder, &["key", "remove", id]), 1);
    checked_output(run(folder, &["key", "remove", id, "--user", "vera"]));
    assert_eq!(status("/api/v1/sources"), 401);
    checked_output(run(folder, &["user", "disable", "vera"]));
    let disabled = fails(add("data:read"), 1);
    assert!(disabled.contains("vera is disabled"), "{disabled}");
}

#[test]
fn a_person_has_logins_on_machines_in_their_team() {
    let hub = Hub::start(["--no-local"]);
    let folder = hub.folder.path();
    let logins = |who: &str| {
        let team = hub.send("GET", "/api/v1/teams/main", &[&hub.cookie(who)], "").body;
        let team: Value = serde_json::from_str(&team).expect("JSON");
        let members = team["members"].as_array().expect("a list");
        members.iter().find(|one| one["name"] == "vera").expect("she is in it")["logins"].clone()
    };
    checked_output(run(folder, &["user", "logins", "vera", "vera", "vschmidt"]));
    assert_eq!(logins("ada"), serde_json::json!(["vera", "vschmidt"]));
    assert_eq!(logins("mike"), Value::Null, "for admins alone");
    fails(run(folder, &["user", "logins", "vera", "two words"]), 2);
    let out = fails(run(folder, &["user", "logins", "olga", "olga"]), 1);
    assert!(out.contains("not in this team"), "{out}");
    let audit = hub.send("GET", "/api/v1/audit?action=member.change", &[&hub.cookie("root")], "").body;
    assert!(audit.contains("viewer, logins: vera vschmidt"), "{audit}");
    checked_output(run(folder, &["user", "logins", "vera"]));
    assert_eq!(logins("ada"), Value::Null);
}

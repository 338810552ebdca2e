//! A hub with its records in a real PostgreSQL: setup, requests, an outage, and migration from its file.

use super::JSON;
use super::revoked::all_is_closed;
use std::path::{Path, PathBuf};
use team::accounts::Database;
use watchglass_tests::certificate::Authority;
use watchglass_tests::fleet::Fleet;
use watchglass_tests::hub::{Hub, PASSWORD, send};
use watchglass_tests::postgresql::Postgresql;
use watchglass_tests::server::watchglass;
use watchglass_tests::waiting::{until, until_so};

/// A configuration with a new database, and the address of the database.
fn configured(postgresql: &Postgresql, folder: &Path) -> (PathBuf, String) {
    configured_at(postgresql, folder, postgresql.database("hub"))
}

/// A configuration with the database at this address.
fn configured_at(postgresql: &Postgresql, folder: &Path, url: String) -> (PathBuf, String) {
    let config = folder.join("config.toml");
    let password = postgresql.password_file();
    let text = format!("[database]\nurl = \"{url}\"\npassword_file = \"{}\"\n", password.display());
    std::fs::write(&config, text).expect("written");
    (config, url)
}

/// A hub with all people in a PostgreSQL.
fn hub(postgresql: &Postgresql, args: &[&str]) -> Hub {
    let folder = tempfile::tempdir().expect("a folder");
    let (config, url) = configured(postgresql, folder.path());
    let database =
        Database::from_settings(folder.path(), Some(&url), Some(&postgresql.password_file())).expect("a database");
    let config = config.display().to_string();
    Hub::start_in(folder, database, ["--config", &config].into_iter().chain(args.iter().copied()))
}

fn sign_in(hub: &Hub, name: &str) -> watchglass_tests::server::ServerAnswer {
    let body = serde_json::json!({ "name": name, "password": PASSWORD }).to_string();
    hub.send("POST", "/api/v1/session", &[&hub.origin(), JSON], &body)
}

/// Status, standard output and standard error of a command with this configuration.
fn run_command(config: &Path, folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = watchglass(args.iter().copied());
    let output = command.arg("--config").arg(config).arg("--data-dir").arg(folder).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
#[ignore = "needs Debian's PostgreSQL 15"]
fn with_postgresql_people_sign_in_machines_join_and_it_is_written_down_who_did_what() {
    let postgresql = Postgresql::start();
    let folder = tempfile::tempdir().expect("a folder");
    let (config, _) = configured(&postgresql, folder.path());
    let config = config.display().to_string();
    let mut fleet = Fleet::hub(&["--config", &config]);
    fleet.server().says("#setup=");
    let code = until("a whole line", || {
        let log = fleet.server().log();
        let (code, _) = log.split_once("#setup=")?.1.split_once(char::is_whitespace)?;
        Some(code.to_string())
    });
    let origin = format!("Origin: http://{}", fleet.server().addr());
    let body = serde_json::json!({ "code": code, "name": "root", "password": PASSWORD }).to_string();
    let made = send(fleet.server(), "POST", "/api/v1/session/setup", &[&origin, JSON], &body);
    assert_eq!(made.status, 200, "{made:?}");
    let cookie = made.header("set-cookie").split(';').next().map(|cookie| format!("Cookie: {cookie}")).expect("one");
    fleet.start_agent();
    fleet.grows("the machine that joined sends samples");
    let key = fleet.administer(&["key", "add", "ci", "--scope", "data:read"]);
    let key = format!("Authorization: Bearer {}", key.trim());
    assert_eq!(send(fleet.server(), "GET", "/api/v1/sources", &[&key], "").status, 200);
    assert_eq!(send(fleet.server(), "GET", "/api/v1/sources", &[&cookie], "").status, 200);
    assert!(!fleet.hub_folder().join("hub.db").exists(), "there is no file");
    let log = fleet.administer(&["audit", "--json"]);
    assert!(log.contains("\"key.add\"") && log.contains("root"), "{log}");
    assert_eq!(postgresql.sql("hub", "SELECT count(*) FROM audit WHERE action = 'key.add'"), "1");
    // It knows all of them after a restart.
    fleet.kill_hub();
    fleet.start_hub();
    assert_eq!(send(fleet.server(), "GET", "/api/v1/sources", &[&cookie], "").status, 200);
    fleet.grows("samples come again");
}

#[test]
#[ignore = "needs Debian's PostgreSQL 15"]
fn with_postgresql_away_for_a_while_no_sample_is_lost() {
    let postgresql = Postgresql::start();
    let folder = tempfile::tempdir().expect("a folder");
    let (config, _) = configured(&postgresql, folder.path());
    let mut fleet = Fleet::hub(&["--config", &config.display().to_string()]);
    fleet.start_agent();
    fleet.grows("the hub has samples of the agent");
    postgresql.stop();
    fleet.grows("samples come while the database is away");
    postgresql.start_again();
    fleet.grows("samples come on");
    let audit = fleet.settle();
    assert!(audit.sound(), "{audit:?}");
}

#[test]
#[ignore = "needs Debian's PostgreSQL 15"]
fn with_postgresql_away_a_sign_in_is_told_so_and_it_comes_back_by_itself() {
    let postgresql = Postgresql::start();
    let hub = hub(&postgresql, &["--no-local"]);
    assert_eq!(sign_in(&hub, "ada").status, 200);
    let get = |path: &str, who: &str| hub.send("GET", path, &[who], "").status;
    let (ada, olga, data, metrics) = (hub.cookie("ada"), hub.cookie("olga"), hub.key("data"), hub.key("metrics"));
    let watches = || [get("/api/v1/sources", &ada), get("/api/v1/sources", &data), get("/metrics", &metrics)];
    assert_eq!(watches(), [200, 200, 200]);
    postgresql.stop();
    let refused = sign_in(&hub, "ada");
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.error().contains("database of the hub is unavailable"), "{refused:?}");
    // Only known sessions and keys are accepted, and changes need the database.
    until_so("nobody else can be judged", || get("/api/v1/sources", &olga) == 503);
    assert_eq!(get("/api/v1/sources", &hub.key("own")), 503);
    assert_eq!(get("/api/v1/teams", &ada), 503);
    assert_eq!(hub.send("DELETE", "/api/v1/session", &[&ada, &hub.origin(), JSON], "").status, 503);
    assert_eq!(watches(), [200, 200, 200], "what watches the hub is not blind just then");
    assert_eq!(["/", "/healthz"].map(|path| hub.send("GET", path, &[], "").status), [200, 200]);
    postgresql.start_again();
    until_so("it is back", || hub.send("GET", "/api/v1/sources", &[&hub.cookie("ada")], "").status == 200);
    assert_eq!(sign_in(&hub, "ada").status, 200);
    assert_eq!(hub.send("GET", "/api/v1/sources", &[&hub.key("data")], "").status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Debian's PostgreSQL 15"]
async fn with_postgresql_what_another_hub_takes_back_is_closed_here() {
    let postgresql = Postgresql::start();
    let hub = hub(&postgresql, &[]);
    let url = postgresql.url("hub");
    let database =
        Database::from_settings(hub.folder.path(), Some(&url), Some(&postgresql.password_file())).expect("a database");
    all_is_closed(&hub, &database).await;
    let about = hub.send("GET", "/api/v1/hub", &[&hub.cookie("root")], "");
    let about: shared::hub::AboutHub = serde_json::from_str(&about.body).expect("about the hub");
    assert_eq!(about.database, "postgresql");
}

#[test]
#[ignore = "needs Debian's PostgreSQL 15"]
fn with_postgresql_a_hub_moves_there_from_its_file() {
    let Hub { server, folder, keys, cookies, .. } = Hub::start(["--no-local"]);
    assert!(server.end().success());
    let postgresql = Postgresql::start();
    let (config, _) = configured(&postgresql, folder.path());
    let file = folder.path().join("hub.db").display().to_string();
    // It does not start anew silently.
    let (status, _, said) = run_command(&config, folder.path(), &["hub", "--port", "0", "--no-local"]);
    assert_eq!(status, Some(4), "{said}");
    assert!(said.contains(&format!("watchglass restore {file}")), "{said}");
    let (status, _, said) = run_command(&config, folder.path(), &["restore", &file]);
    assert_eq!(status, Some(0), "{said}");
    let (status, people, _) = run_command(&config, folder.path(), &["user", "list"]);
    assert!(status == Some(0) && people.contains("ada") && people.contains("olga"), "{people}");
    let (status, _, said) = run_command(&config, folder.path(), &["restore", &file]);
    assert!(status == Some(4) && said.contains("has data of a hub already"), "{said}");
    let (status, _, said) = run_command(&config, folder.path(), &["backup", "copy"]);
    assert!(status == Some(2) && said.contains("pg_dump"), "{said}");
    let config = config.display().to_string();
    let server = Hub::server(folder.path(), ["--no-local", "--config", &config]);
    let key = format!("Authorization: Bearer {}", keys["data"]);
    assert_eq!(send(&server, "GET", "/api/v1/sources", &[&key], "").status, 200);
    // Cookie names contain the port; otherwise sessions stay valid.
    let (name, token) = cookies["ada"].split_once('=').expect("a cookie");
    let instance = name.rsplit_once('-').expect("a port").0;
    let cookie = format!("Cookie: {instance}-{}={token}", server.addr().port());
    assert_eq!(send(&server, "GET", "/api/v1/sources", &[&cookie], "").status, 200);
}

#[test]
#[ignore = "needs Debian's PostgreSQL 15"]
fn with_postgresql_over_tcp_a_hub_goes_by_tls_and_to_no_server_that_it_cannot_trust() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().expect("a folder"));
    let postgresql = Postgresql::start_tls(|folder| authority.sign("localhost", folder));
    postgresql.database("hub");
    let url = |how: &str| format!("{}?{how}", postgresql.tcp_url("hub"));
    let others = tempfile::tempdir().expect("a folder");
    let verified = |ca: &Path| url(&format!("sslmode=verify-full&sslrootcert={}", ca.display()));
    for refused in [verified(&Authority::new().write(others.path())), url("sslmode=disable")] {
        let (config, _) = configured_at(&postgresql, folder.path(), refused.clone());
        let (status, _, said) = run_command(&config, folder.path(), &["hub", "--port", "0", "--no-local"]);
        assert_eq!(status, Some(4), "{refused}: {said}");
        assert!(said.contains("PostgreSQL at localhost:") && !said.contains(postgresql.password()), "{said}");
    }
    let url = verified(&authority.write(folder.path()));
    let (config, _) = configured_at(&postgresql, folder.path(), url.clone());
    let database =
        Database::from_settings(folder.path(), Some(&url), Some(&postgresql.password_file())).expect("a database");
    let config = config.display().to_string();
    let hub = Hub::start_in(folder, database, ["--no-local", "--config", &config]);
    assert_eq!(sign_in(&hub, "ada").status, 200);
    let about = hub.send("GET", "/api/v1/hub", &[&hub.cookie("root")], "");
    assert!(about.body.contains("\"database\":\"postgresql\""), "{about:?}");
    let ours = "FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'watchglass'";
    let open = |how: &str| postgresql.sql("hub", &format!("SELECT count(*) {ours} AND {how}"));
    assert!(open("ssl") != "0" && open("NOT ssl") == "0", "{} by TLS, {} without", open("ssl"), open("NOT ssl"));
}

//! Notices to people about their own runs.

use super::machine::Machine;
use serde_json::{Value, json};
use std::path::Path;
use watchglass_tests::hub::{Hub, PASSWORD};
use watchglass_tests::mail::{Mail, Message};
use watchglass_tests::server::{ServerAnswer, watchglass};
use watchglass_tests::waiting::until;

const JSON: &str = "Content-Type: application/json";

/// A request from a person's page, by their cookie.
fn by(hub: &Hub, cookie: &str, method: &str, path: &str, body: &Value) -> ServerAnswer {
    let answer = hub.send(method, &format!("/api/v1/{path}"), &[cookie, &hub.origin(), JSON], &body.to_string());
    assert!(matches!(answer.status, 200 | 201), "{path}: {answer:?}");
    answer
}

fn read(answer: &ServerAnswer) -> Value {
    serde_json::from_str(&answer.body).expect("JSON")
}

/// Cookie of a person who accepted an invitation to an address.
fn invited(hub: &Hub, name: &str, email: Option<&str>) -> String {
    let invite = json!({ "role": "member", "email": email });
    let made = read(&by(hub, &hub.cookie("root"), "POST", "teams/main/invites", &invite));
    let url = made["url"].as_str().expect("a link");
    let code = url.rsplit(['/', '=', '#']).next().expect("a code");
    let body = json!({ "code": code, "name": name, "password": PASSWORD }).to_string();
    let taken = hub.send("POST", "/api/v1/session/invite", &[&hub.origin(), JSON], &body);
    assert_eq!(taken.status, 200, "{taken:?}");
    format!("Cookie: {}", taken.header("set-cookie").split(';').next().expect("a cookie"))
}

/// Runs a job that a signal ends, on the machine with this folder.
fn crash(folder: &Path, id: &str) {
    let mut job = watchglass(["run", "--id", id, "--name", id, "--data-dir"]);
    job.arg(folder).args(["--", "sh", "-c", "kill -SEGV $$"]).env_remove("WATCHGLASS_RUN_ID");
    job.output().expect("it ran");
}

#[test]
fn a_run_that_crashes_is_told_to_its_owner_by_mail_and_to_nobody_else() {
    let (mail, own) = (Mail::start(), tempfile::tempdir().expect("a folder"));
    let config = own.path().join("hub.toml");
    let port = mail.addr.port();
    std::fs::write(
        &config,
        format!("[smtp]\nhost = \"127.0.0.1\"\nport = {port}\ntls = \"none\"\nfrom = \"watchglass@example.org\"\n"),
    )
    .expect("written");
    let hub = Hub::start(["--no-local", "--config", config.to_str().expect("plain letters")]);
    let user = system::user::login_of(system::user::own_uid());
    let people = [
        // The owner; a person with an unverified address; one with another user name; one who subscribes to other
        // events.
        (invited(&hub, "mara", Some("mara@example.org")), "mara@example.org", user.as_str(), ["tell_crashed"; 2]),
        (invited(&hub, "typed", None), "stranger@example.org", &user, ["tell_crashed"; 2]),
        (invited(&hub, "other", Some("other@example.org")), "other@example.org", "nobody-here", ["tell_crashed"; 2]),
        (invited(&hub, "quiet", Some("quiet@example.org")), "quiet@example.org", &user, ["tell_finished"; 2]),
    ];
    for (cookie, email, login, [tell, _]) in &people {
        let me = read(&by(&hub, cookie, "PATCH", "me", &json!({ "email": email, *tell: true })));
        assert_eq!((&me["email"], &me[tell]), (&json!(email), &json!(true)), "{me}");
        assert_eq!(me["email_vouched"], *email != "stranger@example.org", "{me}");
        let path = format!("teams/main/members/{}", me["id"].as_str().expect("an id"));
        by(&hub, &hub.cookie("root"), "PUT", &path, &json!({ "logins": [login] }));
    }
    let folder = own.path().join("agent");
    let mut command = Machine::command(&hub, "node-9", ["--collectors", "cpu"]);
    command.arg("--data-dir").arg(&folder);
    let _machine = Machine::run(command);
    until("the agent is there", || folder.join("run.sock").exists().then_some(()));
    let told = |what: &str| -> Vec<Message> {
        let told = until(what, || {
            let all = mail.came();
            all.iter().any(|one| one.text.contains(what)).then_some(all)
        });
        assert!(told.iter().all(|one| one.to == ["mara@example.org"]), "{told:?}");
        told
    };
    // A wrong notice about the first run would arrive together with the right one, long before that of the second run.
    for id in ["first-run", "second-run"] {
        crash(&folder, id);
        told(id);
    }
    let all = mail.came();
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(all[0].text.contains("crashed (SIGSEGV)"), "{all:?}");
    let runs = read(&hub.send("GET", "/api/v1/runs", &[&hub.cookie("mike")], ""));
    assert_eq!(runs["runs"][0]["user"], user, "{runs}");
    // A rule that notifies its creator.
    let rule = json!({ "name": "always mine", "title": "always mine", "when": "system.load1 >= 0", "to": ["me"] });
    by(&hub, &people[0].0, "POST", "rules", &rule);
    assert_eq!(told("always mine").len(), 3);
    // Others of the team do not see it.
    let channels = by(&hub, &hub.cookie("ada"), "GET", "channels", &json!({}));
    assert_eq!(read(&channels), json!({ "channels": [], "sent": [] }));
}

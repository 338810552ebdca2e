//! Attacks on rules, silences, channels and alerts by another team, by another page, and by read-only users. Secrets
//! must not appear in any answer, log, database or audit row.

use super::JSON;
use records::alerts::AlertRow;
use records::{Records, alerts};
use shared::alert::{Alert, Alerts, Channel, Channels, Rule, Rules, Silence, Silences};
use watchglass_tests::hub::Hub;
use watchglass_tests::server::{Server, ServerAnswer};

const RULE: &str = r#"{"name": "CPU", "when": "cpu > 90 % for 5m"}"#;
const SECRET: &str = "T0000XYZs3cretB0000";

fn channel(name: &str, more: &str) -> String {
    format!(r#"{{"name": "{name}", "kind": "slack"{more}}}"#)
}

fn slack(name: &str) -> String {
    channel(name, &format!(r#", "address": "https://hooks.slack.com/services/{SECRET}""#))
}

/// Sends a request as a person from the hub's own page.
fn by(hub: &Hub, who: &str, method: &str, path: &str, body: &str) -> ServerAnswer {
    hub.send(method, &format!("/api/v1/{path}"), &[&hub.cookie(who), &hub.origin(), JSON], body)
}

fn read<T: serde::de::DeserializeOwned>(answer: &ServerAnswer) -> T {
    serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
}

#[test]
fn what_a_team_has_does_not_exist_for_another_and_a_viewer_changes_nothing() {
    let hub = Hub::start(["--no-local"]);
    let rule: Rule = read(&by(&hub, "mike", "POST", "rules", RULE));
    assert_eq!((rule.by.as_str(), rule.version), ("mike", 1));
    let silence = r#"{"match": {"source": "gpu-*"}, "from": 0, "to": 4000000000}"#;
    assert_eq!(by(&hub, "mike", "POST", "silences", silence).status, 400, "longer than 30 days");
    let now = watchglass_tests::provider::now();
    let silence = format!(r#"{{"match": {{"source": "gpu-*"}}, "from": 0, "to": {}}}"#, now + 600);
    let silence: Silence = read(&by(&hub, "mike", "POST", "silences", &silence));
    let made: Channel = read(&by(&hub, "ada", "POST", "channels", &slack("lab")));
    assert_eq!(made.target, format!("…{}", &SECRET[SECRET.len() - 4..]));

    for who in ["olga", "vera"] {
        let expected = if who == "olga" { 404 } else { 403 };
        for (method, path, body) in [
            ("PUT", format!("rules/{}", rule.id), RULE),
            ("DELETE", format!("rules/{}", rule.id), ""),
            ("DELETE", format!("silences/{}", silence.id), ""),
            ("PUT", format!("channels/{}", made.id), &channel("lab", "")),
            ("PUT", "channels/lab".into(), &channel("lab", "")),
            ("DELETE", format!("channels/{}", made.id), ""),
            ("DELETE", "channels/lab".into(), ""),
            ("POST", format!("channels/{}/test", made.id), ""),
            ("POST", "rules?team=main".into(), RULE),
        ] {
            let answer = by(&hub, who, method, &path, body);
            assert_eq!(answer.status, expected, "{who} {method} {path}: {answer:?}");
            assert!(!answer.body.contains(SECRET) && !answer.body.contains("gpu-*"), "{answer:?}");
        }
    }
    // For an object of another team, olga gets the answer for an object that never existed.
    let never = by(&hub, "olga", "DELETE", "rules/00000000000000000000000000", "");
    assert_eq!(by(&hub, "olga", "DELETE", &format!("rules/{}", rule.id), "").body, never.body);
    assert!(read::<Rules>(&by(&hub, "olga", "GET", "rules", "")).rules.iter().all(|row| row.rule.id != rule.id));
    assert_eq!(read::<Silences>(&by(&hub, "olga", "GET", "silences", "")).silences, []);
    assert_eq!(read::<Channels>(&by(&hub, "olga", "GET", "channels", "")).channels, []);
    assert!(read::<Rules>(&by(&hub, "vera", "GET", "rules", "")).rules.iter().any(|row| row.rule.id == rule.id));

    // Only the owner or an admin may change it, and only the version that they have read.
    let of_ada: Rule = read(&by(&hub, "ada", "POST", "rules", &RULE.replace("CPU", "CPU 2")));
    let theirs = by(&hub, "mike", "PUT", &format!("rules/{}", of_ada.id), &RULE.replace("CPU", "mine"));
    assert_eq!((theirs.status, theirs.error().contains("belongs to ada")), (403, true), "{theirs:?}");
    let stale = by(&hub, "ada", "PUT", &format!("rules/{}", rule.id), RULE);
    assert_eq!(stale.status, 409, "{stale:?}");
    let newer = RULE.replace('{', r#"{"version": 1, "#).replace("90", "80");
    let changed: Rule = read(&by(&hub, "ada", "PUT", &format!("rules/{}", rule.id), &newer));
    assert_eq!((changed.version, changed.by.as_str()), (2, "mike"));
    assert_eq!(by(&hub, "mike", "POST", "rules", &RULE.replace("cpu >", "cpy >")).status, 400);
    assert_eq!(by(&hub, "mike", "POST", "rules", RULE).status, 409, "the name is taken");
    let unknown = RULE.replace('}', r#", "to": ["nobody"]}"#).replace("CPU", "other");
    assert!(by(&hub, "mike", "POST", "rules", &unknown).error().contains("channels are lab, me, browser"));
    assert_eq!(by(&hub, "mike", "DELETE", "rules/run-crashed", "").status, 403, "it comes along");
    assert_eq!(by(&hub, "mike", "DELETE", &format!("silences/{}", silence.id), "").status, 200);
    assert_eq!(by(&hub, "mike", "DELETE", &format!("silences/{}", silence.id), "").status, 409, "it is over");
}

#[test]
fn a_page_of_another_site_or_port_and_a_plain_form_change_nothing() {
    let hub = Hub::start(["--no-local"]);
    let cookie = hub.cookie("ada");
    let origin = hub.origin();
    let host = origin.rsplit_once(':').expect("a port").0.to_string();
    for (headers, status) in [
        (vec![cookie.as_str(), JSON], 403),
        (vec![cookie.as_str(), JSON, host.as_str()], 403),
        (vec![cookie.as_str(), JSON, "Origin: http://evil.test"], 403),
        (vec![cookie.as_str(), JSON, "Origin: null"], 403),
        (vec![cookie.as_str(), JSON, origin.as_str(), "Sec-Fetch-Site: same-site"], 403),
        (vec![cookie.as_str(), "Content-Type: text/plain", origin.as_str()], 415),
        (vec![cookie.as_str(), origin.as_str()], 415),
    ] {
        for (path, body) in
            [("rules", RULE.to_string()), ("channels", slack("lab")), ("alerts/none/ack", String::new())]
        {
            let answer = hub.send("POST", &format!("/api/v1/{path}"), &headers, &body);
            assert_eq!(answer.status, status, "{path} {headers:?}: {answer:?}");
        }
    }
    let rules: Rules = read(&by(&hub, "ada", "GET", "rules", ""));
    assert!(rules.rules.iter().all(|row| row.rule.name != "CPU"), "nothing was made");
}

#[test]
fn secrets_are_sealed_kept_and_never_told() {
    let hub = Hub::start(["--no-local"]);
    let made = by(&hub, "ada", "POST", "channels", &slack("lab"));
    assert_eq!(made.status, 201, "{made:?}");
    let id = read::<Channel>(&made).id;
    let path = format!("channels/{id}");
    let kept = by(&hub, "ada", "PUT", &path, &channel("renamed", ""));
    assert_eq!(kept.status, 200, "the address stays: {kept:?}");
    let moved = channel("renamed", "").replace("slack", "discord");
    let refused = by(&hub, "ada", "PUT", &path, &moved);
    assert_eq!(refused.status, 400, "the kind changes: {refused:?}");
    let hook = r#"{"name": "hook", "kind": "webhook", "address": "https://a.example.org/x",
                   "secret": "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0IQ=="}"#;
    let hook: Channel = read(&by(&hub, "ada", "POST", "channels", hook));
    let elsewhere = r#"{"name": "hook", "kind": "webhook", "address": "https://evil.example.org/x"}"#;
    let stolen = by(&hub, "ada", "PUT", &format!("channels/{}", hook.id), elsewhere);
    assert_eq!((stolen.status, stolen.error().contains("again")), (400, true), "{stolen:?}");
    for wrong in [
        slack("http").replace("https:", "http:"),
        slack("user").replace("hooks.", "me:pw@hooks."),
        slack("loop").replace("hooks.slack.com", "127.0.0.1"),
        slack("bad").replace("\"name\"", "\"nam\""),
    ] {
        let answer = by(&hub, "ada", "POST", "channels", &wrong);
        assert_eq!(answer.status, 400, "{wrong}: {answer:?}");
        assert!(!answer.body.contains(SECRET), "{answer:?}");
    }
    let folder = hub.folder.path();
    for who in ["ada", "mike", "root"] {
        for path in ["channels", "audit?team=main", "me/export", "rules"] {
            let answer = by(&hub, who, "GET", path, "");
            assert!(!answer.body.contains(SECRET) && !answer.body.contains("whsec_"), "{who} {path}: {answer:?}");
        }
    }
    let mut looked = 0;
    for entry in std::fs::read_dir(folder).expect("the data folder").flatten() {
        let Ok(bytes) = std::fs::read(entry.path()) else { continue };
        looked += 1;
        let secret = SECRET.as_bytes();
        assert!(!bytes.windows(secret.len()).any(|part| part == secret), "{} tells it", entry.path().display());
    }
    assert!(looked > 1 && folder.join("secret.key").exists());
    // Without the key everything else works, and the channel reports the missing file.
    std::fs::rename(folder.join("secret.key"), folder.join("away")).expect("moved");
    let before = hub.server.addr().port();
    let Hub { server, cookies, keys, link, folder } = hub;
    drop(server);
    let server = Hub::server(folder.path(), ["--no-local"]);
    let (old, new) = (format!("-{before}="), format!("-{}=", server.addr().port()));
    let cookies = cookies.into_iter().map(|(name, cookie)| (name, cookie.replace(&old, &new))).collect();
    let hub = Hub { server, cookies, keys, link, folder };
    let channels: Channels = read(&by(&hub, "ada", "GET", "channels", ""));
    let states: Vec<_> = channels.channels.iter().map(|one| one.delivery.words.contains("key is missing")).collect();
    assert_eq!(states, [true, true], "{channels:?}");
    assert_eq!(by(&hub, "mike", "POST", "rules", RULE).status, 201);
}

#[test]
fn an_alert_is_taken_on_by_members_of_those_who_see_it() {
    let hub = Hub::start(["--no-local"]);
    let sources = by(&hub, "ada", "GET", "teams/main/agents", "");
    let machine = serde_json::from_str::<serde_json::Value>(&sources.body).expect("agents")["agents"][0]["id"].clone();
    let machine = machine.as_str().expect("an id").to_string();
    let body = |id: &str| {
        let text = r#"{"id": "ID", "rule": "machine-lost", "name": "machine lost", "subject": "gpu-7", "severity": "warning",
            "state": "firing", "began": 1, "fired": 1, "ended": null, "value": null, "worst": null, "sentence": "gpu-7 is lost"}"#;
        text.replace("ID", id)
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let records = Records::open(hub.folder.path()).await.expect("the hub's database");
        let mut change = records.change().await.expect("a change");
        for (id, source) in [("seen", Some(machine.clone())), ("hub", None)] {
            let row = AlertRow {
                id: id.into(),
                team: None,
                rule: "machine-lost".into(),
                subject: id.into(),
                source,
                run: None,
                severity: "warning".into(),
                state: "firing".into(),
                began: 1,
                ended: None,
                body: body(id),
                acked_by: None,
                acked_at: None,
                updated: 1,
                heard: 2,
                held: String::new(),
            };
            alerts::put(&mut change, &row).await.expect("written");
        }
        change.commit().await.expect("written");
        records.close().await;
    });
    let ids = |who: &str| {
        let found: Alerts = read(&by(&hub, who, "GET", "alerts?state=firing", ""));
        assert_eq!(found.firing, found.alerts.len() as u64);
        found.alerts.into_iter().map(|alert| alert.id).collect::<Vec<_>>()
    };
    assert_eq!((ids("vera"), ids("olga"), ids("root").len()), (vec!["seen".to_string()], Vec::new(), 2));
    for (who, id, status) in [
        ("vera", "seen", 403),
        ("olga", "seen", 404),
        ("olga", "none", 404),
        ("mike", "hub", 404),
        ("mike", "seen", 200),
        ("ada", "seen", 409),
    ] {
        let answer = by(&hub, who, "POST", &format!("alerts/{id}/ack"), "");
        assert_eq!(answer.status, status, "{who} {id}: {answer:?}");
    }
    let alert: Alert = read(&by(&hub, "vera", "GET", "alerts/seen", ""));
    assert_eq!(alert.acked.expect("taken on").by, "mike");
}

#[test]
fn without_accounts_only_the_owner_writes_and_no_file_is_made_before() {
    let folder = tempfile::tempdir().expect("made");
    let path = folder.path().display().to_string();
    let server = Server::start(["--data-dir", path.as_str()]);
    let origin = format!("Origin: http://{}", server.addr());
    let port_away = format!("Origin: http://{}", server.addr().ip());
    let send = |method: &str, path: &str, headers: &[&str], body: &str| {
        watchglass_tests::hub::send(&server, method, &format!("/api/v1/{path}"), headers, body)
    };
    assert_eq!(read::<Alerts>(&send("GET", "alerts", &[], "")).alerts, []);
    assert!(read::<Rules>(&send("GET", "rules", &[], "")).rules.len() > 5, "those that come along");
    for (headers, status) in [
        (vec!["Content-Type: text/plain", origin.as_str()], 415),
        (vec![JSON, port_away.as_str()], 403),
        (vec![JSON, "Origin: http://evil.test"], 403),
        (vec![JSON, "Cookie: a=b"], 403),
        (vec![JSON, origin.as_str(), "Sec-Fetch-Site: cross-site"], 403),
    ] {
        assert_eq!(send("POST", "rules", &headers, RULE).status, status, "{headers:?}");
        assert_eq!(send("POST", "channels", &headers, &slack("lab")).status, status, "{headers:?}");
    }
    let made = |name: &str| folder.path().join(name).exists();
    assert!(!made("watchglass.db") && !made("secret.key"), "nobody has written anything");
    assert_eq!(send("POST", "rules", &[JSON, &origin], RULE).status, 201, "our own page");
    assert_eq!(send("POST", "channels", &[JSON], &slack("lab")).status, 201, "a program");
    assert!(made("watchglass.db") && made("secret.key"));
    let channels: Channels = read(&send("GET", "channels", &[], ""));
    assert_eq!((channels.channels.len(), channels.channels[0].delivery.state.as_str()), (1, "none"));

    let off = Server::start(["--local-auth", "off", "--memory"]);
    let answer = watchglass_tests::hub::send(&off, "POST", "/api/v1/rules", &[JSON], RULE);
    assert_eq!((answer.status, answer.error().contains("watchglass alerts")), (403, true), "{answer:?}");
}

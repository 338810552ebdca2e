//! The whole table of routes, requested with every kind of credential.

use super::JSON;
use api::Operation;
use std::collections::BTreeSet;
use watchglass_tests::hub::Hub;

/// Every kind of credential: the letter in the table below, and the header line.
pub fn everybody(hub: &Hub) -> Vec<(char, Option<String>)> {
    let person = |letter, name| (letter, Some(hub.cookie(name)));
    let key = |letter, name| (letter, Some(hub.key(name)));
    vec![
        ('0', None),
        ('S', Some(hub.link.clone())),
        person('V', "vera"),
        person('M', "mike"),
        person('A', "ada"),
        person('O', "olga"),
        person('H', "root"),
        key('p', "own"),
        key('d', "data"),
        key('m', "metrics"),
        key('r', "runs"),
        key('v', "views"),
        key('l', "alerts"),
        key('u', "audit"),
        key('t', "team"),
        key('h', "hub"),
        key('g', "agent"),
        key('j', "join"),
    ]
}

/// Letters of the keys.
pub const KEYS: &str = "pdmrvluthgj";

/// All letters.
pub const EVERY_LETTER: &str = "0SVMAOHpdmrvluthgj";

/// Method, path in the table of routes, requested path, the letters that may, and the status for them. Requests that
/// would change data are invalid or name an unknown object, so that the order of callers does not matter.
const EXPECTED: &[(&str, &str, &str, &str, u16)] = &[
    ("GET", "/{*file}", "/", EVERY_LETTER, 200),
    ("GET", "/healthz", "/healthz", EVERY_LETTER, 200),
    ("GET", "/api/{*rest}", "/api/v1/nothing", EVERY_LETTER, 404),
    ("GET", "/metrics", "/metrics", "AOHm", 200),
    ("GET", "/api/v1/session", "/api/v1/session", "0SVMAOH", 200),
    ("POST", "/api/v1/session", "/api/v1/session", "0SVMAOH", 400),
    ("POST", "/api/v1/session/setup", "/api/v1/session/setup", "0SVMAOH", 400),
    ("POST", "/api/v1/session/invite", "/api/v1/session/invite", "0SVMAOH", 400),
    ("POST", "/api/v1/session/reset", "/api/v1/session/reset", "0SVMAOH", 400),
    ("POST", "/api/v1/session/oidc", "/api/v1/session/oidc", "0SVMAOH", 400),
    ("GET", "/auth/{provider}/callback", "/auth/none/callback", "0SVMAOH", 303),
    ("POST", "/api/v1/session/again", "/api/v1/session/again", "VMAOH", 400),
    ("GET", "/api/v1/catalog", "/api/v1/catalog", "SVMAOHpd", 200),
    ("GET", "/api/v1/openapi.json", "/api/v1/openapi.json", "SVMAOHpd", 200),
    ("GET", "/api/v1/sources", "/api/v1/sources", "SVMAOHpd", 200),
    ("GET", "/api/v1/fleet", "/api/v1/fleet", "SVMAOHpd", 400),
    ("GET", "/api/v1/series", "/api/v1/series", "SVMAOHpd", 200),
    ("GET", "/api/v1/query", "/api/v1/query", "SVMAOHpd", 400),
    ("GET", "/api/v1/figure", "/api/v1/figure", "SVMAOHpd", 400),
    ("GET", "/api/v1/export", "/api/v1/export", "VMAOHpd", 400),
    ("GET", "/api/v1/record", "/api/v1/record?from=2&to=1", "VMAOHpd", 400),
    ("GET", "/api/v1/processes", "/api/v1/processes?at=soon", "VMAOHpd", 400),
    ("GET", "/api/v1/kernels", "/api/v1/kernels", "VMAOHpd", 200),
    ("GET", "/api/v1/cells", "/api/v1/cells", "VMAOHpd", 200),
    ("GET", "/api/v1/markers", "/api/v1/markers", "SVMAOHpd", 200),
    ("POST", "/api/v1/markers", "/api/v1/markers", "MAOHr", 400),
    ("POST", "/api/v1/values", "/api/v1/values", "MAOHr", 400),
    ("GET", "/api/v1/notes", "/api/v1/notes", "VMAOHpd", 200),
    ("POST", "/api/v1/notes", "/api/v1/notes", "MAOHr", 400),
    ("PUT", "/api/v1/notes/{id}", "/api/v1/notes/none", "MAOHr", 400),
    ("DELETE", "/api/v1/notes/{id}", "/api/v1/notes/none", "MAOHr", 404),
    ("GET", "/api/v1/doctor", "/api/v1/doctor", "VMAOHpd", 200),
    ("GET", "/api/v1/findings", "/api/v1/findings", "SVMAOHpd", 200),
    ("POST", "/api/v1/findings/wrong", "/api/v1/findings/wrong", "MAOHl", 400),
    ("GET", "/api/v1/now", "/api/v1/now", "SVMAOHpd", 200),
    ("GET", "/api/v1/changed", "/api/v1/changed", "VMAOHpd", 200),
    ("GET", "/api/v1/runs", "/api/v1/runs", "SVMAOHpd", 200),
    ("POST", "/api/v1/runs", "/api/v1/runs", "MAOHr", 400),
    ("POST", "/api/v1/runs/{id}/events", "/api/v1/runs/none/events", "MAOHr", 400),
    ("GET", "/api/v1/runs/{id}", "/api/v1/runs/none", "SVMAOHpd", 404),
    ("PATCH", "/api/v1/runs/{id}", "/api/v1/runs/none", "MAOHr", 400),
    ("DELETE", "/api/v1/runs/{id}", "/api/v1/runs/none", "MAOHr", 404),
    ("GET", "/api/v1/runs/{id}/logs", "/api/v1/runs/none/logs", "MAOH", 404),
    ("GET", "/api/v1/runs/{id}/report", "/api/v1/runs/none/report", "VMAOHpd", 404),
    ("GET", "/api/v1/uplink", "/api/v1/uplink", "VMAOHpd", 200),
    ("GET", "/api/v1/live", "/api/v1/live", "SVMAOHpd", 400),
    ("POST", "/api/v1/live/{viewer}", "/api/v1/live/none", "SVMAOHpd", 400),
    ("GET", "/api/v1/views", "/api/v1/views", "VMAOHpd", 200),
    ("POST", "/api/v1/views", "/api/v1/views", "VMAOHv", 400),
    ("PUT", "/api/v1/views/{id}", "/api/v1/views/none", "VMAOHv", 400),
    ("DELETE", "/api/v1/views/{id}", "/api/v1/views/none", "VMAOHv", 404),
    ("PUT", "/api/v1/teams/{team}/default-view", "/api/v1/teams/main/default-view", "AHt", 400),
    ("GET", "/api/v1/shares", "/api/v1/shares?team=main", "MAH", 200),
    ("POST", "/api/v1/shares", "/api/v1/shares", "MAOH", 400),
    ("DELETE", "/api/v1/shares/{id}", "/api/v1/shares/none", "MAOH", 404),
    ("POST", "/api/v1/shares/open", "/api/v1/shares/open", "0SVMAOH", 400),
    ("GET", "/api/v1/rules", "/api/v1/rules", "VMAOHpd", 200),
    ("POST", "/api/v1/rules", "/api/v1/rules", "MAOHl", 400),
    ("POST", "/api/v1/rules/check", "/api/v1/rules/check", "MAOHl", 400),
    ("PUT", "/api/v1/rules/{id}", "/api/v1/rules/none", "MAOHl", 400),
    ("DELETE", "/api/v1/rules/{id}", "/api/v1/rules/none", "MAOHl", 404),
    ("GET", "/api/v1/silences", "/api/v1/silences", "VMAOHpd", 200),
    ("POST", "/api/v1/silences", "/api/v1/silences", "MAOHl", 400),
    ("DELETE", "/api/v1/silences/{id}", "/api/v1/silences/none", "MAOHl", 404),
    ("GET", "/api/v1/channels", "/api/v1/channels", "MAOH", 200),
    ("POST", "/api/v1/channels", "/api/v1/channels", "AOHt", 400),
    ("PUT", "/api/v1/channels/{id}", "/api/v1/channels/none", "AOHt", 400),
    ("DELETE", "/api/v1/channels/{id}", "/api/v1/channels/none", "AOHt", 404),
    ("POST", "/api/v1/channels/{id}/test", "/api/v1/channels/none/test", "AOHt", 404),
    ("GET", "/api/v1/alerts", "/api/v1/alerts", "VMAOHpd", 200),
    ("POST", "/api/v1/alerts", "/api/v1/alerts", "MAOHr", 400),
    ("GET", "/api/v1/alerts/{id}", "/api/v1/alerts/none", "SVMAOHpd", 404),
    ("POST", "/api/v1/alerts/{id}/ack", "/api/v1/alerts/none/ack", "MAOHl", 404),
    ("GET", "/api/v1/audit", "/api/v1/audit?team=main", "AHu", 200),
    ("GET", "/api/v1/usage", "/api/v1/usage?team=main", "MAHpd", 200),
    ("GET", "/api/v1/usage/runs", "/api/v1/usage/runs?team=main", "MAHpd", 200),
    ("GET", "/api/v1/me", "/api/v1/me", "VMAOH", 200),
    ("PATCH", "/api/v1/me", "/api/v1/me", "VMAOH", 400),
    ("PUT", "/api/v1/me/password", "/api/v1/me/password", "VMAOH", 400),
    ("GET", "/api/v1/me/sessions", "/api/v1/me/sessions", "VMAOH", 200),
    ("DELETE", "/api/v1/me/sessions/{id}", "/api/v1/me/sessions/none", "VMAOH", 404),
    ("GET", "/api/v1/me/identities", "/api/v1/me/identities", "VMAOH", 200),
    ("DELETE", "/api/v1/me/identities/{id}", "/api/v1/me/identities/none", "VMAOH", 404),
    ("GET", "/api/v1/me/export", "/api/v1/me/export", "VMAOH", 200),
    ("GET", "/api/v1/me/keys", "/api/v1/me/keys", "VMAOH", 200),
    ("POST", "/api/v1/me/keys", "/api/v1/me/keys", "VMAOH", 400),
    ("DELETE", "/api/v1/me/keys/{id}", "/api/v1/me/keys/none", "VMAOH", 404),
    ("GET", "/api/v1/teams", "/api/v1/teams", "VMAOHt", 200),
    ("POST", "/api/v1/teams", "/api/v1/teams", "Hh", 400),
    ("GET", "/api/v1/teams/{team}", "/api/v1/teams/main", "VMAOHt", 200),
    ("PATCH", "/api/v1/teams/{team}", "/api/v1/teams/main", "AHt", 400),
    ("DELETE", "/api/v1/teams/{team}", "/api/v1/teams/main", "Hh", 400),
    ("PUT", "/api/v1/teams/{team}/members/{person}", "/api/v1/teams/main/members/none", "AHt", 400),
    ("DELETE", "/api/v1/teams/{team}/members/{person}", "/api/v1/teams/main/members/none", "AHt", 404),
    ("GET", "/api/v1/teams/{team}/invites", "/api/v1/teams/main/invites", "MAHt", 200),
    ("POST", "/api/v1/teams/{team}/invites", "/api/v1/teams/main/invites", "MAHt", 400),
    ("DELETE", "/api/v1/teams/{team}/invites/{id}", "/api/v1/teams/main/invites/none", "MAHt", 404),
    ("GET", "/api/v1/teams/{team}/services", "/api/v1/teams/main/services", "AHt", 200),
    ("POST", "/api/v1/teams/{team}/services", "/api/v1/teams/main/services", "AHt", 400),
    ("PATCH", "/api/v1/teams/{team}/services/{service}", "/api/v1/teams/main/services/none", "AHt", 400),
    ("DELETE", "/api/v1/teams/{team}/services/{service}", "/api/v1/teams/main/services/none", "AHt", 404),
    ("GET", "/api/v1/teams/{team}/services/{service}/keys", "/api/v1/teams/main/services/none/keys", "AHt", 404),
    ("POST", "/api/v1/teams/{team}/services/{service}/keys", "/api/v1/teams/main/services/none/keys", "AHt", 400),
    (
        "DELETE",
        "/api/v1/teams/{team}/services/{service}/keys/{id}",
        "/api/v1/teams/main/services/none/keys/none",
        "AHt",
        404,
    ),
    ("GET", "/api/v1/sources/{source}/grants", "/api/v1/sources/none/grants", "Hh", 404),
    ("PUT", "/api/v1/sources/{source}/grants", "/api/v1/sources/none/grants", "Hh", 400),
    ("GET", "/api/v1/teams/{team}/join", "/api/v1/teams/main/join", "AHt", 200),
    ("POST", "/api/v1/teams/{team}/join", "/api/v1/teams/main/join", "AHt", 400),
    ("DELETE", "/api/v1/teams/{team}/join/{id}", "/api/v1/teams/main/join/none", "AHt", 404),
    ("GET", "/api/v1/teams/{team}/agents", "/api/v1/teams/main/agents", "AHt", 200),
    ("PATCH", "/api/v1/teams/{team}/agents/{source}", "/api/v1/teams/main/agents/none", "AHt", 400),
    ("DELETE", "/api/v1/teams/{team}/agents/{source}", "/api/v1/teams/main/agents/none", "AHt", 404),
    ("POST", "/api/v1/teams/{team}/agents/{source}/approve", "/api/v1/teams/main/agents/none/approve", "AHt", 404),
    ("DELETE", "/api/v1/sources/{source}", "/api/v1/sources/none", "Hh", 404),
    ("GET", "/api/v1/teams/{team}/keys", "/api/v1/teams/main/keys", "AHt", 200),
    ("POST", "/api/v1/teams/{team}/keys", "/api/v1/teams/main/keys", "AHt", 400),
    ("DELETE", "/api/v1/teams/{team}/keys/{id}", "/api/v1/teams/main/keys/none", "AHt", 404),
    ("GET", "/api/v1/hub", "/api/v1/hub", "Hh", 200),
    ("GET", "/api/v1/accounts", "/api/v1/accounts", "Hh", 200),
    ("POST", "/api/v1/accounts", "/api/v1/accounts", "Hh", 400),
    ("PATCH", "/api/v1/accounts/{person}", "/api/v1/accounts/none", "Hh", 400),
    ("DELETE", "/api/v1/accounts/{person}", "/api/v1/accounts/none", "Hh", 404),
    ("POST", "/api/v1/accounts/{person}/reset", "/api/v1/accounts/none/reset", "Hh", 404),
    ("POST", "/api/v1/accounts/{person}/erase", "/api/v1/accounts/none/erase", "Hh", 404),
    ("GET", "/api/v1/accounts/{person}/keys", "/api/v1/accounts/none/keys", "Hh", 404),
    ("POST", "/api/v1/accounts/{person}/keys", "/api/v1/accounts/none/keys", "Hh", 400),
    ("DELETE", "/api/v1/accounts/{person}/keys/{id}", "/api/v1/accounts/none/keys/none", "Hh", 404),
    ("POST", "/api/v1/ingest/enrol", "/api/v1/ingest/enrol", "j", 400),
    ("GET", "/api/v1/ingest", "/api/v1/ingest", "g", 426),
    // Last, because a signed-out session has no permissions.
    ("DELETE", "/api/v1/session", "/api/v1/session", "0SVMAOH", 200),
];

/// A body that no route accepts.
const WRONG: &str = "{\"unheard\": 1";

#[test]
fn every_route_answers_those_whom_the_table_names_and_nobody_else() {
    let hub = Hub::start(["--no-local"]);
    let mut written: BTreeSet<(&str, &str)> = EXPECTED.iter().map(|(method, path, ..)| (*method, *path)).collect();
    written.insert(("DELETE", "/api/v1/me"));
    let there: BTreeSet<(&str, &str)> =
        Operation::ALL.iter().map(|operation| (operation.method().text(), operation.path())).collect();
    assert_eq!(written, there, "every route has its line here");
    let origin = hub.origin();
    let mut faults = Vec::new();
    for (method, _, path, may, status) in EXPECTED {
        for (letter, header) in everybody(&hub) {
            let mut headers = vec![JSON];
            headers.extend(header.as_deref());
            // Our page sends its origin; a program does not.
            if !KEYS.contains(letter) {
                headers.push(&origin);
            }
            let answer = hub.send(method, path, &headers, if *method == "GET" { "" } else { WRONG });
            // For an admin of another team this one does not exist: they receive the answer for an unknown id.
            let hides = letter == 'O' && (path.contains("/teams/main") || path.contains("team=main"));
            let is_right = match (may.contains(letter), letter) {
                (true, 'O') if hides => answer.status == if *status == 400 { 400 } else { 404 },
                (false, 'O') if hides => [400, 403, 404].contains(&answer.status),
                (true, _) => answer.status == *status,
                (false, '0') => answer.status == 401,
                // A machine's key is invalid elsewhere. Many such requests are rate-limited.
                (false, 'g' | 'j') => [401, 429].contains(&answer.status),
                (false, _) => answer.status == 403,
            };
            if !is_right {
                faults.push(format!("{letter} {method} {path}: {} {}", answer.status, answer.body));
            }
            if !may.contains(letter) {
                assert!(!answer.error().is_empty(), "{method} {path}");
                let asks = answer.body.contains("\"sign_in\":true");
                assert_eq!(asks, letter == '0', "{letter} {method} {path}: only who is nobody is asked to sign in");
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn an_account_removes_itself_and_nobody_else_is_asked() {
    let hub = Hub::start(["--no-local"]);
    for (letter, header) in everybody(&hub) {
        let mut headers = vec![JSON];
        headers.extend(header.as_deref());
        let origin = hub.origin();
        if !KEYS.contains(letter) {
            headers.push(&origin);
        }
        let status = hub.send("DELETE", "/api/v1/me", &headers, "").status;
        let expected: &[u16] = match letter {
            '0' => &[401],
            'S' => &[403],
            'V' | 'M' | 'A' | 'O' => &[200],
            'H' => &[409],
            // Its key was removed with the account.
            'p' | 'g' | 'j' => &[401, 429],
            _ => &[403],
        };
        assert!(expected.contains(&status), "{letter}: {status}");
    }
}

#[test]
fn a_team_of_others_is_answered_like_one_that_was_never_there() {
    let hub = Hub::start(["--no-local"]);
    for team in ["other", "00000000000000000000000000", "main%20", "Main", "*"] {
        for path in ["join", "agents"] {
            let answer = hub.send("GET", &format!("/api/v1/teams/{team}/{path}"), &[&hub.cookie("ada")], "");
            assert_eq!((answer.status, answer.error().as_str()), (404, "there is no such thing here"), "{team}");
        }
    }
}

#[test]
fn a_machine_is_seen_by_its_team_under_its_name() {
    let hub = Hub::start(["--no-local"]);
    let answer = hub.send("GET", "/api/v1/teams/main/agents", &[&hub.cookie("ada")], "");
    assert_eq!(answer.status, 200, "{answer:?}");
    let agents: shared::session::Agents = serde_json::from_str(&answer.body).expect("agents");
    let names: Vec<(&str, &str)> = agents.agents.iter().map(|one| (one.name.as_str(), one.state.as_str())).collect();
    assert_eq!(names, [("gpu-7", "unreachable")], "it has joined, and no link of it has begun");
    let change = "{\"name\":\"node-7\",\"labels\":{\"rack\":\"r1\"}}";
    let path = format!("/api/v1/teams/main/agents/{}", agents.agents[0].id);
    let answer = hub.send("PATCH", &path, &[&hub.cookie("ada"), &hub.origin(), JSON], change);
    assert_eq!(answer.status, 200, "{answer:?}");
    let renamed: shared::session::Agent = serde_json::from_str(&answer.body).expect("an agent");
    assert_eq!((renamed.name.as_str(), renamed.labels["rack"].as_str()), ("node-7", "r1"));
}

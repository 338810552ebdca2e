//! The request for each route, and the owner of its object. Permissions are not listed here: they follow from the table
//! of routes.

use super::About::{self, At, Chosen, Made, Nothing, Team};
use shared::role::Role;

/// One request.
pub struct MatrixRow {
    /// Method and path, as the table of routes has them.
    pub route: &'static str,
    /// Requested path and query; empty: the path of the table. A name in braces is an object of a team.
    pub asked: &'static str,
    /// The body. `PLAIN` sends none, and no JSON content type, so that an allowed request has no effect.
    pub body: &'static str,
    /// Owner of its object.
    pub about: About,
    /// Statuses for allowed requesters.
    pub ok: &'static [u16],
    /// Kind of the object that it removes, which is created again.
    pub removes: &'static str,
}

/// Sent with requests that would change shared state: they are rejected after the permission check.
pub const PLAIN: &str = "plain";
/// A body that no route reads.
const WRONG: &str = "{\"unheard\": 1";
const EMPTY: &str = "{}";

const fn row(
    route: &'static str,
    asked: &'static str,
    body: &'static str,
    about: About,
    ok: &'static [u16],
) -> MatrixRow {
    MatrixRow { route, asked, body, about, ok, removes: "" }
}

const fn removing(what: &'static str, row: MatrixRow) -> MatrixRow {
    MatrixRow { removes: what, ..row }
}

const OK: &[u16] = &[200];
const MADE: &[u16] = &[201];
const BAD: &[u16] = &[400];
const NONE: &[u16] = &[404];
const NOT_JSON: &[u16] = &[415];
const CONFLICT: &[u16] = &[409];
const NOT_LINKED: &[u16] = &[503];

/// All requests. A route may have more than one.
pub const ROWS: &[MatrixRow] = &[
    row("GET /{*file}", "/", "", Nothing, OK),
    row("GET /healthz", "", "", Nothing, OK),
    row("GET /api/{*rest}", "/api/v1/nothing", "", Nothing, NONE),
    row("GET /metrics", "", "", Nothing, OK),
    row("GET /api/v1/session", "", "", Nothing, OK),
    row("POST /api/v1/session", "", WRONG, Nothing, BAD),
    row("DELETE /api/v1/session", "", PLAIN, Nothing, NOT_JSON),
    row("POST /api/v1/session/setup", "", WRONG, Nothing, BAD),
    row("POST /api/v1/session/invite", "", WRONG, Nothing, BAD),
    row("POST /api/v1/session/reset", "", WRONG, Nothing, BAD),
    row("POST /api/v1/session/oidc", "", WRONG, Nothing, BAD),
    row("GET /auth/{provider}/callback", "/auth/none/callback", "", Nothing, &[303]),
    row("POST /api/v1/session/again", "", WRONG, Nothing, BAD),
    row("GET /api/v1/catalog", "", "", Nothing, OK),
    row("GET /api/v1/openapi.json", "", "", Nothing, OK),
    row("GET /api/v1/sources", "", "", Nothing, OK),
    row("GET /api/v1/fleet", "/api/v1/fleet?row=cpu&from=-10m&source={machine}", "", Team, OK),
    row("GET /api/v1/series", "", "", Nothing, OK),
    row("GET /api/v1/query", "/api/v1/query?tag=*&from=-10m&source={machine}", "", Team, OK),
    row("GET /api/v1/query", "/api/v1/query?tag=*&from=-10m", "", Nothing, OK),
    row("GET /api/v1/figure", "/api/v1/figure?tag=*&from=-10m&source={machine}", "", Team, OK),
    row("GET /api/v1/export", "/api/v1/export?tag=*&from=-10m&source={machine}", "", Team, OK),
    row("GET /api/v1/export", "/api/v1/export?tag=*&from=-10m", "", Nothing, OK),
    row("GET /api/v1/record", "/api/v1/record?from=-10m", "", Nothing, OK),
    row("GET /api/v1/runs", "", "", Nothing, OK),
    row("GET /api/v1/runs", "/api/v1/runs?source={machine}", "", Team, OK),
    // Its agent is not linked.
    row("POST /api/v1/runs", "/api/v1/runs?source={machine}", EMPTY, Team, NOT_LINKED),
    row(
        "POST /api/v1/runs/{id}/events",
        "/api/v1/runs/none/events?source={machine}",
        r#"{"event":"heartbeat"}"#,
        Team,
        NOT_LINKED,
    ),
    row("GET /api/v1/runs/{id}", "/api/v1/runs/none", "", Nothing, NONE),
    row("PATCH /api/v1/runs/{id}", "/api/v1/runs/none", r#"{"name":"x"}"#, Nothing, NONE),
    row("DELETE /api/v1/runs/{id}", "/api/v1/runs/none", EMPTY, Nothing, NONE),
    row("GET /api/v1/runs/{id}/report", "/api/v1/runs/none/report", "", Nothing, NONE),
    row("GET /api/v1/runs/{id}/logs", "/api/v1/runs/none/logs", "", Nothing, NONE),
    row("GET /api/v1/notes", "/api/v1/notes?source={machine}", "", Team, OK),
    row("GET /api/v1/notes", "", "", Nothing, OK),
    row("POST /api/v1/notes", "", r#"{"text":"one {n}","source":"{machine}"}"#, Team, MADE),
    row("PUT /api/v1/notes/{id}", "/api/v1/notes/{note}", r#"{"text":"x","version":99}"#, Made(403), CONFLICT),
    removing("note", row("DELETE /api/v1/notes/{id}", "/api/v1/notes/{note}", EMPTY, Made(403), OK)),
    row("GET /api/v1/findings", "", "", Nothing, OK),
    row("POST /api/v1/findings/wrong", "", "{\"id\": \"none\"}", Nothing, NONE),
    row("GET /api/v1/now", "/api/v1/now?source={machine}", "", Team, OK),
    row("GET /api/v1/changed", "", "", Nothing, OK),
    row("GET /api/v1/processes", "/api/v1/processes?source={machine}", "", Team, &[200, 503]),
    row("GET /api/v1/kernels", "/api/v1/kernels?source={machine}", "", Team, OK),
    row("GET /api/v1/cells", "/api/v1/cells?source={machine}", "", Team, OK),
    row("GET /api/v1/markers", "/api/v1/markers?source={machine}", "", Team, OK),
    row("POST /api/v1/markers", "/api/v1/markers?source={machine}", r#"{"text":"x"}"#, Team, NOT_LINKED),
    row("POST /api/v1/values", "/api/v1/values?source={machine}", "{\"values\": {\"loss\": 0.41}}", Team, NOT_LINKED),
    row("GET /api/v1/doctor", "/api/v1/doctor?source={machine}", "", Team, OK),
    row("GET /api/v1/uplink", "", "", Nothing, OK),
    row("GET /api/v1/live", "", "", Nothing, BAD),
    row("POST /api/v1/live/{viewer}", "/api/v1/live/none", WRONG, Nothing, BAD),
    row("GET /api/v1/views", "/api/v1/views?team={team}", "", Team, OK),
    row("GET /api/v1/views", "", "", Nothing, OK),
    row(
        "POST /api/v1/views",
        "/api/v1/views?team={team}",
        "{\"name\": \"one {n}\", \"query\": \"tag=cpu\", \"scope\": \"team\"}",
        At(Role::Member),
        MADE,
    ),
    row("PUT /api/v1/views/{id}", "/api/v1/views/{view}", "{\"version\": 99}", Made(403), CONFLICT),
    removing("view", row("DELETE /api/v1/views/{id}", "/api/v1/views/{view}", EMPTY, Made(403), OK)),
    row("GET /api/v1/shares", "/api/v1/shares?team={team}", "", Team, OK),
    row("POST /api/v1/shares", "/api/v1/shares?team={team}", "{\"query\": \"w=5m&source={machine}\"}", Team, MADE),
    row("POST /api/v1/shares", "/api/v1/shares?team={team}", "{\"view\": \"{view}\"}", Team, MADE),
    removing("share", row("DELETE /api/v1/shares/{id}", "/api/v1/shares/{share}", EMPTY, Made(404), OK)),
    row("POST /api/v1/shares/open", "", WRONG, Nothing, BAD),
    row("GET /api/v1/rules", "/api/v1/rules?team={team}", "", Team, OK),
    row("GET /api/v1/rules", "", "", Nothing, OK),
    row(
        "POST /api/v1/rules",
        "/api/v1/rules?team={team}",
        "{\"name\": \"rule {n}\", \"when\": \"cpu > 90 % for 5m\"}",
        Team,
        MADE,
    ),
    row(
        "POST /api/v1/rules/check",
        "",
        "{\"rule\": {\"name\": \"one\", \"when\": \"cpu > 90 % for 5m\"}, \"span\": 60}",
        Nothing,
        OK,
    ),
    row(
        "PUT /api/v1/rules/{id}",
        "/api/v1/rules/{rule}",
        "{\"name\": \"one\", \"when\": \"cpu > 90 % for 5m\", \"version\": 99}",
        Made(403),
        CONFLICT,
    ),
    removing("rule", row("DELETE /api/v1/rules/{id}", "/api/v1/rules/{rule}", EMPTY, Made(403), OK)),
    row("GET /api/v1/silences", "/api/v1/silences?team={team}", "", Team, OK),
    row("GET /api/v1/silences", "", "", Nothing, OK),
    row(
        "POST /api/v1/silences",
        "/api/v1/silences?team={team}",
        "{\"match\": {\"rule\": \"nothing {n}\"}, \"from\": 0, \"to\": {soon}}",
        Team,
        MADE,
    ),
    removing("silence", row("DELETE /api/v1/silences/{id}", "/api/v1/silences/{silence}", EMPTY, Team, OK)),
    row("GET /api/v1/channels", "/api/v1/channels?team={team}", "", Team, OK),
    row("GET /api/v1/channels", "", "", Nothing, OK),
    row("POST /api/v1/channels", "/api/v1/channels?team={team}", CHANNEL, Team, MADE),
    row("PUT /api/v1/channels/{id}", "/api/v1/channels/{channel}", CHANNEL, Team, OK),
    removing("channel", row("DELETE /api/v1/channels/{id}", "/api/v1/channels/{channel}", EMPTY, Team, OK)),
    // An existing channel would receive a notice.
    row("POST /api/v1/channels/{id}/test", "/api/v1/channels/none/test", EMPTY, Nothing, NONE),
    row("GET /api/v1/alerts", "", "", Nothing, OK),
    row("GET /api/v1/alerts", "/api/v1/alerts?team={team}", "", Team, OK),
    row(
        "POST /api/v1/alerts",
        "",
        "{\"title\": \"one\", \"wait\": \"7d\", \"source\": \"{machine}\"}",
        Team,
        &[200, 201],
    ),
    row("GET /api/v1/alerts/{id}", "/api/v1/alerts/{alert}", "", Chosen, OK),
    // The first requester acknowledges it, and then no other may.
    row("POST /api/v1/alerts/{id}/ack", "/api/v1/alerts/{alert}/ack", EMPTY, Team, &[200, 409]),
    row("GET /api/v1/audit", "/api/v1/audit?team={team}", "", Team, OK),
    row("GET /api/v1/usage", "/api/v1/usage?team={team}", "", Team, OK),
    row("GET /api/v1/usage/runs", "/api/v1/usage/runs?team={team}", "", Team, OK),
    row("GET /api/v1/me", "", "", Nothing, OK),
    row("PATCH /api/v1/me", "", WRONG, Nothing, BAD),
    row("DELETE /api/v1/me", "", PLAIN, Nothing, NOT_JSON),
    row("PUT /api/v1/me/password", "", WRONG, Nothing, BAD),
    row("GET /api/v1/me/sessions", "", "", Nothing, OK),
    row("DELETE /api/v1/me/sessions/{id}", "/api/v1/me/sessions/none", EMPTY, Nothing, NONE),
    row("GET /api/v1/me/identities", "", "", Nothing, OK),
    row("DELETE /api/v1/me/identities/{id}", "/api/v1/me/identities/none", EMPTY, Nothing, NONE),
    row("GET /api/v1/me/export", "", "", Nothing, OK),
    row("GET /api/v1/me/keys", "", "", Nothing, OK),
    row("POST /api/v1/me/keys", "", WRONG, Nothing, BAD),
    row("DELETE /api/v1/me/keys/{id}", "/api/v1/me/keys/none", EMPTY, Nothing, NONE),
    row("GET /api/v1/teams", "", "", Nothing, OK),
    row("POST /api/v1/teams", "", WRONG, Nothing, BAD),
    row("GET /api/v1/teams/{team}", "", "", Team, OK),
    row("PATCH /api/v1/teams/{team}", "", EMPTY, Team, OK),
    row("DELETE /api/v1/teams/{team}", "/api/v1/teams/none", "{\"name\": \"none\"}", Nothing, NONE),
    row(
        "PUT /api/v1/teams/{team}/members/{person}",
        "/api/v1/teams/{team}/members/{guest}",
        "{\"role\": \"viewer\"}",
        Team,
        OK,
    ),
    removing(
        "guest",
        row(
            "DELETE /api/v1/teams/{team}/members/{person}",
            "/api/v1/teams/{team}/members/{guest}",
            EMPTY,
            At(Role::Admin),
            OK,
        ),
    ),
    row("GET /api/v1/teams/{team}/invites", "", "", At(Role::Admin), OK),
    row("POST /api/v1/teams/{team}/invites", "", "{\"role\": \"viewer\"}", At(Role::Admin), MADE),
    removing(
        "invite",
        row(
            "DELETE /api/v1/teams/{team}/invites/{id}",
            "/api/v1/teams/{team}/invites/{invite}",
            EMPTY,
            At(Role::Admin),
            OK,
        ),
    ),
    row("PUT /api/v1/teams/{team}/default-view", "", "{\"view\": \"default\"}", Team, OK),
    row("GET /api/v1/teams/{team}/services", "", "", Team, OK),
    row("POST /api/v1/teams/{team}/services", "", "{\"name\": \"one-{n}\"}", Team, MADE),
    row(
        "PATCH /api/v1/teams/{team}/services/{service}",
        "/api/v1/teams/{team}/services/{service}",
        "{\"disabled\": false}",
        Team,
        OK,
    ),
    row("GET /api/v1/teams/{team}/services/{service}/keys", "", "", Team, OK),
    row(
        "POST /api/v1/teams/{team}/services/{service}/keys",
        "",
        "{\"name\": \"one\", \"scopes\": [\"team:admin\"]}",
        Team,
        MADE,
    ),
    removing(
        "service key",
        row(
            "DELETE /api/v1/teams/{team}/services/{service}/keys/{id}",
            "/api/v1/teams/{team}/services/{service}/keys/{service key}",
            EMPTY,
            Team,
            OK,
        ),
    ),
    removing("service", row("DELETE /api/v1/teams/{team}/services/{service}", "", EMPTY, Team, OK)),
    row("GET /api/v1/sources/{source}/grants", "/api/v1/sources/{machine}/grants", "", Team, OK),
    row("PUT /api/v1/sources/{source}/grants", "/api/v1/sources/{machine}/grants", EMPTY, Team, OK),
    row("GET /api/v1/teams/{team}/join", "", "", Team, OK),
    row("POST /api/v1/teams/{team}/join", "", EMPTY, Team, MADE),
    removing("join", row("DELETE /api/v1/teams/{team}/join/{id}", "/api/v1/teams/{team}/join/{join}", EMPTY, Team, OK)),
    row("GET /api/v1/teams/{team}/agents", "", "", Team, OK),
    row(
        "PATCH /api/v1/teams/{team}/agents/{source}",
        "/api/v1/teams/{team}/agents/{machine}",
        "{\"labels\": {}}",
        Team,
        OK,
    ),
    removing(
        "spare",
        row("DELETE /api/v1/teams/{team}/agents/{source}", "/api/v1/teams/{team}/agents/{spare}", EMPTY, Team, OK),
    ),
    // It does not wait for a confirmation.
    row(
        "POST /api/v1/teams/{team}/agents/{source}/approve",
        "/api/v1/teams/{team}/agents/{machine}/approve",
        EMPTY,
        Team,
        CONFLICT,
    ),
    removing("spare", row("DELETE /api/v1/sources/{source}", "/api/v1/sources/{spare}", EMPTY, Team, OK)),
    row("GET /api/v1/teams/{team}/keys", "", "", Team, OK),
    row("POST /api/v1/teams/{team}/keys", "", "{\"name\": \"one\", \"scopes\": [\"team:admin\"]}", Team, MADE),
    removing("key", row("DELETE /api/v1/teams/{team}/keys/{id}", "/api/v1/teams/{team}/keys/{key}", EMPTY, Team, OK)),
    row("GET /api/v1/hub", "", "", Nothing, OK),
    row("GET /api/v1/accounts", "", "", Nothing, OK),
    row("POST /api/v1/accounts", "", WRONG, Nothing, BAD),
    row("PATCH /api/v1/accounts/{person}", "/api/v1/accounts/{person}", "{\"disabled\": false}", Team, OK),
    row("DELETE /api/v1/accounts/{person}", "/api/v1/accounts/none", EMPTY, Nothing, NONE),
    row("POST /api/v1/accounts/{person}/reset", "/api/v1/accounts/none/reset", EMPTY, Nothing, NONE),
    row("POST /api/v1/accounts/{person}/erase", "/api/v1/accounts/none/erase", EMPTY, Nothing, NONE),
    row("GET /api/v1/accounts/{person}/keys", "", "", Team, OK),
    row(
        "POST /api/v1/accounts/{person}/keys",
        "/api/v1/accounts/none/keys",
        "{\"name\": \"one\", \"scopes\": [\"data:read\"]}",
        Nothing,
        &[403, 404],
    ),
    row("DELETE /api/v1/accounts/{person}/keys/{id}", "/api/v1/accounts/{person}/keys/none", EMPTY, Nothing, NONE),
    row("POST /api/v1/ingest/enrol", "", WRONG, Nothing, BAD),
    row("GET /api/v1/ingest", "", "", Nothing, &[426]),
];

/// Target of notices; nothing is sent there.
const CHANNEL: &str = "{\"name\": \"one-{n}\", \"kind\": \"webhook\", \"address\": \"https://a.example.org/x\", \
                       \"secret\": \"whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0IQ==\"}";

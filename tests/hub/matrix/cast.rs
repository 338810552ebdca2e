//! A hub with two teams, all kinds of requesters, and objects of each team.

use crate::hub::JSON;
use serde_json::{Value, json};
use shared::enrol::EnrolRequest;
use shared::people::{NewPerson, NewServiceKey};
use shared::role::{KeyScope, Role};
use shared::secret::Secret;
use shared::session::{NewJoin, Setup, SignIn};
use shared::team::{MemberChange, NewTeam};
use shared::views::NewShare;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use stream::clock::{self, Clock, System};
use team::accounts::{Accounts, Database, Enrolment, Network, Principal};
use watchglass_tests::hub::{Hub, PASSWORD, send};
use watchglass_tests::link::Link;
use watchglass_tests::server::{Server, ServerAnswer};
use watchglass_tests::waiting::{until, until_so};

/// The two teams. The name of each is part of the name of all its objects, and of no other.
pub const TEAMS: [&str; 2] = ["alpha", "beta"];

/// Kind of a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Means {
    /// No valid credential.
    Nothing,
    /// An invalid or revoked key.
    NoKey,
    /// A share link of team alpha.
    Link,
    /// A session.
    Session,
    /// The key of a program or of a person, with this scope.
    Key(KeyScope),
    /// The key of a machine, with this scope.
    Machine(KeyScope),
}

/// A requester.
pub struct Asker {
    pub name: &'static str,
    pub means: Means,
    /// The role in each team; for a key, the role of its owner.
    pub roles: [Option<Role>; 2],
    pub hub_admin: bool,
    header: Option<String>,
}

/// A running hub, and its requesters.
pub struct Cast {
    server: Server,
    pub askers: Vec<Asker>,
    /// Objects of each team, by kind.
    things: [BTreeMap<&'static str, String>; 2],
    count: Cell<u32>,
    _folder: tempfile::TempDir,
}

/// People by name, with their roles in the two teams.
const PEOPLE: [(&str, [Option<Role>; 2]); 10] = [
    ("viewer-alpha", [Some(Role::Viewer), None]),
    ("member-alpha", [Some(Role::Member), None]),
    ("admin-alpha", [Some(Role::Admin), None]),
    ("guest-alpha", [Some(Role::Viewer), None]),
    ("viewer-beta", [None, Some(Role::Viewer)]),
    ("member-beta", [None, Some(Role::Member)]),
    ("admin-beta", [None, Some(Role::Admin)]),
    ("guest-beta", [None, Some(Role::Viewer)]),
    // An account with a role in one team is at most a viewer in the other.
    ("mixed-member", [Some(Role::Member), Some(Role::Viewer)]),
    ("mixed-admin", [Some(Role::Admin), Some(Role::Viewer)]),
];

/// A key: its name, kind, roles of its owner, whether that is an admin of the hub, and the key itself.
type HeldKey = (&'static str, Means, [Option<Role>; 2], bool, String);

/// Records created in the folder: header lines and their names, the id of the cookie, join keys of the teams.
struct Made {
    instance: String,
    sessions: Vec<(&'static str, [Option<Role>; 2], bool, Secret)>,
    revoked: Secret,
    keys: Vec<HeldKey>,
    link: (String, Secret),
    joins: [String; 2],
    machines: [String; 2],
}

fn request(n: u32) -> String {
    format!("{n:032x}")
}

async fn made(folder: &Path) -> Made {
    let database = Database::in_folder(folder);
    let accounts = Accounts::open_in(&database, Arc::new(clock::System)).await.expect("a database");
    let network = Network::local();
    let code = accounts.setup_code().await.expect("a database").expect("there is no account yet");
    let setup = Setup { code, name: "root".into(), password: Secret::new(PASSWORD) };
    let begun = accounts.setup(&setup, &network).await.expect("the first admin");
    let root: Principal = begun.principal;
    let mut sessions = vec![("root", [Some(Role::Admin); 2], true, begun.token)];
    let mut joins = Vec::new();
    let mut machines = Vec::new();
    for (n, team) in (0..).zip(TEAMS) {
        accounts.add_team(&root, &NewTeam { name: team.into() }).await.expect("a team");
        let join = accounts.new_join(&root, team, &NewJoin::default()).await.expect("a join key").key;
        let host = format!("node-{team}");
        let enrol = EnrolRequest { request: request(n), host, ..EnrolRequest::default() };
        let Enrolment::Enrolled(enrolled) = accounts.enrol(join.reveal(), &enrol, &network).await.expect("it joins")
        else {
            panic!("nobody has to confirm it")
        };
        machines.push(enrolled.key.reveal().to_string());
        joins.push(join.reveal().to_string());
    }
    let mut of_member = None;
    let mut revoked = None;
    for (name, roles) in PEOPLE {
        let first = usize::from(roles[0].is_none());
        let (password, team) = (Some(Secret::new(PASSWORD)), Some(TEAMS[first].to_string()));
        let person = NewPerson { name: name.into(), password, role: roles[first], team, ..NewPerson::default() };
        accounts.add_person(&root, &person).await.expect("an account");
        if first == 0 && roles[1].is_some() {
            let change = MemberChange { role: roles[1], ..MemberChange::default() };
            accounts.set_member(&root, TEAMS[1], name, &change).await.expect("in both teams");
        }
        if name.starts_with("guest") {
            continue;
        }
        let sign_in = SignIn { name: name.into(), password: Secret::new(PASSWORD) };
        let begun = accounts.sign_in(&sign_in, &network, None).await.expect("signed in");
        if name == "admin-alpha" {
            let other = accounts.sign_in(&sign_in, &network, None).await.expect("signed in again");
            accounts.sign_out(&other.principal).await.expect("signed out");
            revoked = Some(other.token);
        }
        if name == "member-alpha" {
            of_member = Some(begun.principal);
        }
        sessions.push((name, roles, false, begun.token));
    }
    let of_member = of_member.expect("a member");
    let mut keys = Vec::new();
    let wanted = |name: &str, scope| NewServiceKey { name: name.into(), scopes: vec![scope], expires: None };
    for (name, scope) in [
        ("key data:read", KeyScope::DataRead),
        ("key metrics:read", KeyScope::MetricsRead),
        ("key runs:write", KeyScope::RunsWrite),
        ("key views:write", KeyScope::ViewsWrite),
        ("key alerts:write", KeyScope::AlertsWrite),
        ("key audit:read", KeyScope::AuditRead),
        ("key team:admin", KeyScope::TeamAdmin),
        ("key hub:admin", KeyScope::HubAdmin),
    ] {
        let made = accounts.add_service_key(&root, TEAMS[0], &wanted("own", scope)).await.expect("a key");
        let of_hub = scope == KeyScope::HubAdmin;
        let roles = [Some(Role::Admin), of_hub.then_some(Role::Admin)];
        keys.push((name, Means::Key(scope), roles, of_hub, made.key.reveal().to_string()));
    }
    let own = accounts.add_own_key(&of_member, &wanted("laptop", KeyScope::DataRead)).await.expect("a key");
    let roles = [Some(Role::Member), None];
    keys.push(("key of member-alpha", Means::Key(KeyScope::DataRead), roles, false, own.key.reveal().to_string()));
    let ended = accounts.add_service_key(&root, TEAMS[0], &wanted("gone", KeyScope::DataRead)).await.expect("a key");
    accounts.end_service_key(&root, TEAMS[0], &ended.id).await.expect("ended");
    keys.push(("ended key", Means::NoKey, [None; 2], false, ended.key.reveal().to_string()));
    keys.push(("key of a machine", Means::Machine(KeyScope::AgentWrite), [None; 2], false, machines[0].clone()));
    keys.push(("join key", Means::Machine(KeyScope::AgentJoin), [None; 2], false, joins[0].clone()));
    let link = NewShare { query: Some("w=5m".into()), ..NewShare::default() };
    let link = accounts.add_share(&of_member, None, &link, &[]).await.expect("a link");
    let instance = accounts.instance().to_string();
    accounts.close().await;
    let [joins, machines] = [joins, machines].map(|all| all.try_into().expect("two teams"));
    Made { instance, sessions, revoked: revoked.expect("signed out"), keys, link, joins, machines }
}

impl Cast {
    /// Starts the hub with all requesters, and creates one object of each kind.
    pub fn start() -> Cast {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().to_path_buf();
        // On a thread of its own, because the test may be on a runtime.
        let made = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(made(&path))
        });
        let Made { instance, sessions, revoked, keys, link, joins, machines } =
            made.join().expect("everybody is there");
        let server = Hub::server(folder.path(), ["--no-local"]);
        // The running hub knows a machine only after its first connection.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        for key in &machines {
            runtime.block_on(async {
                let (mut link, _) = Link::welcome(server.addr(), key).await;
                link.tell("").await;
                link.tick((System.wall() / 100) as u64, 50.0).await;
                link.acknowledged(1).await;
            });
        }
        let port = server.addr().port();
        let cookie = |token: &Secret| Some(format!("Cookie: wg-{instance}-{port}={}", token.reveal()));
        let nobody = |name, means, header| Asker { name, means, roles: [None; 2], hub_admin: false, header };
        let share = Some(format!("Cookie: wg-share-{instance}-{port}-{}={}", link.0, link.1.reveal()));
        let mut askers = vec![
            nobody("nobody", Means::Nothing, None),
            nobody("revoked session", Means::Nothing, cookie(&revoked)),
            nobody("share link", Means::Link, share),
        ];
        askers.extend(sessions.into_iter().map(|(name, roles, hub_admin, token)| Asker {
            name,
            means: Means::Session,
            roles,
            hub_admin,
            header: cookie(&token),
        }));
        askers.extend(keys.into_iter().map(|(name, means, roles, hub_admin, key)| Asker {
            name,
            means,
            roles,
            hub_admin,
            header: Some(format!("Authorization: Bearer {key}")),
        }));
        let mut cast = Cast { server, askers, things: Default::default(), count: Cell::new(100), _folder: folder };
        for (at, team) in TEAMS.iter().enumerate() {
            for (what, name) in [
                ("team", team.to_string()),
                ("machine", format!("node-{team}")),
                ("person", format!("member-{team}")),
                ("guest", format!("guest-{team}")),
                ("join key", joins[at].clone()),
            ] {
                cast.things[at].insert(what, name);
            }
            for what in MADE {
                cast.make(what, at);
            }
        }
        cast
    }

    /// A number that was not used before.
    pub fn next(&self) -> u32 {
        self.count.set(self.count.get() + 1);
        self.count.get()
    }

    /// An object of a team; without a team, a name that no object has.
    pub fn thing(&self, what: &str, team: Option<usize>) -> String {
        team.map_or_else(|| format!("never-{what}"), |team| self.things[team][what].clone())
    }

    /// A text with its placeholders in braces replaced by objects of a team.
    pub fn filled(&self, text: &str, team: Option<usize>) -> String {
        let mut text = text.replace("{n}", &self.next().to_string()).replace("{soon}", &(now() + 3_600).to_string());
        for what in self.things[0].keys() {
            text = text.replace(&format!("{{{what}}}"), &self.thing(what, team));
        }
        text
    }

    /// Sends a request.
    pub fn ask(&self, asker: &Asker, method: &str, path: &str, body: &str, is_json: bool) -> ServerAnswer {
        let origin = format!("Origin: http://{}", self.server.addr());
        let mut lines: Vec<&str> = asker.header.as_deref().into_iter().collect();
        lines.extend(is_json.then_some(JSON));
        // Our page sends its origin; a program does not.
        if !asker.header.as_ref().is_some_and(|header| header.starts_with("Authorization")) {
            lines.push(&origin);
        }
        send(&self.server, method, path, &lines, body)
    }

    fn by(&self, name: &str) -> &Asker {
        self.askers.iter().find(|asker| asker.name == name).expect("somebody")
    }

    fn create(&self, name: &str, method: &str, path: &str, body: Value) -> Value {
        let answer = self.ask(self.by(name), method, path, &body.to_string(), true);
        assert!(answer.status < 300, "{name} {method} {path} {body}: {answer:?}");
        serde_json::from_str(&answer.body).expect("JSON")
    }

    /// Creates an object of a team again, by its member or its admin.
    pub fn make(&mut self, what: &'static str, at: usize) {
        let (team, n) = (TEAMS[at], self.next());
        let (member, admin) = (format!("member-{team}"), format!("admin-{team}"));
        let named = format!("{what}-{team}-{n}");
        let of_team = |path: &str| format!("/api/v1/{path}?team={team}");
        let in_team = |path: &str| format!("/api/v1/teams/{team}/{path}");
        let id = |value: Value| value["id"].as_str().expect("an id").to_string();
        let thing = match what {
            "view" => {
                let body = json!({ "name": named, "query": "tag=cpu", "scope": "team" });
                id(self.create(&member, "POST", &of_team("views"), body))
            }
            "share" => {
                let body = json!({ "query": format!("w=5m&source=node-{team}") });
                id(self.create(&member, "POST", &of_team("shares"), body))
            }
            "rule" => {
                let body = json!({ "name": named, "when": "cpu > 90 % for 5m" });
                id(self.create(&member, "POST", &of_team("rules"), body))
            }
            "note" => {
                let body = json!({ "text": named, "source": format!("node-{team}") });
                id(self.create(&member, "POST", "/api/v1/notes", body))
            }
            "silence" => {
                let body = json!({ "match": { "rule": named }, "from": now(), "to": now() + 3_600 });
                id(self.create(&member, "POST", &of_team("silences"), body))
            }
            "channel" => id(self.create(&admin, "POST", &of_team("channels"), channel(&named))),
            "alert" => {
                let body = json!({ "title": named, "source": format!("node-{team}") }).to_string();
                // Rules are evaluated a moment after the start.
                until_so("alerts are taken", || {
                    self.ask(self.by(&member), "POST", "/api/v1/alerts", &body, true).status == 201
                });
                until("the alert", || {
                    let alerts = self.create(&member, "GET", "/api/v1/alerts", json!(null));
                    Some(alerts["alerts"].as_array()?.first()?["id"].as_str()?.to_string())
                })
            }
            "service" => {
                let body = json!({ "name": named, "role": "admin" });
                id(self.create(&admin, "POST", &in_team("services"), body))
            }
            "service key" => {
                let path = in_team(&format!("services/{}/keys", self.things[at]["service"]));
                id(self.create(&admin, "POST", &path, json!({ "name": named, "scopes": ["team:admin"] })))
            }
            "key" => {
                id(self.create(&admin, "POST", &in_team("keys"), json!({ "name": named, "scopes": ["team:admin"] })))
            }
            "join" => id(self.create(&admin, "POST", &in_team("join"), json!({}))),
            "invite" => id(self.create(&admin, "POST", &in_team("invites"), json!({ "role": "viewer" }))),
            "guest" => {
                self.create("root", "PUT", &in_team(&format!("members/guest-{team}")), json!({ "role": "viewer" }));
                format!("guest-{team}")
            }
            "spare" => {
                let key = Asker {
                    name: "a join key",
                    means: Means::Machine(KeyScope::AgentJoin),
                    roles: [None; 2],
                    hub_admin: false,
                    header: Some(format!("Authorization: Bearer {}", self.things[at]["join key"])),
                };
                let body = json!({ "request": request(n), "host": named });
                let answer = self.ask(&key, "POST", "/api/v1/ingest/enrol", &body.to_string(), true);
                assert_eq!(answer.status, 201, "{answer:?}");
                named
            }
            other => panic!("nobody knows how a {other} is made"),
        };
        self.things[at].insert(what, thing);
        if what == "service" {
            // The keys of the service before were removed with it.
            self.make("service key", at);
        }
    }
}

/// Unix seconds.
fn now() -> u64 {
    u64::try_from(System.wall() / 1_000).expect("after 1970")
}

/// Objects that are created once the hub runs, and again after a request has removed them.
const MADE: [&str; 12] =
    ["view", "share", "rule", "silence", "channel", "alert", "note", "service", "key", "join", "invite", "spare"];

/// Target of a team's notices; nothing is sent there.
fn channel(name: &str) -> Value {
    let secret = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0IQ==";
    json!({ "name": name, "kind": "webhook", "address": "https://a.example.org/x", "secret": secret })
}

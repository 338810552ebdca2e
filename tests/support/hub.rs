//! A hub with people, keys and a machine, for tests. They are created in its folder before it starts.

use crate::server::{Server, ServerAnswer, ask_with, free_port, watchglass};
use shared::enrol::EnrolRequest;
use shared::people::{NewPerson, NewServiceKey};
use shared::role::{KeyScope, Role};
use shared::secret::Secret;
use shared::session::{NewJoin, Setup, SignIn};
use shared::team::{NewTeam, TeamChange};
use shared::views::NewShare;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use stream::clock;
use team::accounts::{Accounts, Database, Enrolment, Network, Principal};

/// The password of all people.
pub const PASSWORD: &str = "correct horse battery";

/// A running hub, and the credentials of its people.
pub struct Hub {
    /// The hub.
    pub server: Server,
    /// Cookies by name: `vera` (viewer), `mike` (member), `ada` (admin), `root` (admin of the hub), and `olga`, admin
    /// of the team `other`, which has no machines.
    pub cookies: BTreeMap<&'static str, String>,
    /// Keys by purpose: `data`, `metrics`, `runs`, `views`, `alerts`, `audit`, `team`, `hub`, `own` (`mike`'s, for
    /// data), `agent`, `join`.
    pub keys: BTreeMap<&'static str, String>,
    /// The header line of a share link's cookie, for all machines of `main`.
    pub link: String,
    /// The data folder. It is removed when this is dropped.
    pub folder: tempfile::TempDir,
}

/// Sessions and keys, created before the hub's port is known.
struct Cast {
    instance: String,
    tokens: Vec<(&'static str, Secret)>,
    keys: BTreeMap<&'static str, String>,
    link: (String, Secret),
}

async fn cast(database: &Database) -> Cast {
    let accounts = Accounts::open_in(database, Arc::new(clock::System)).await.expect("a database");
    let network = Network::local();
    let code = accounts.setup_code().await.expect("a database").expect("there is no account yet");
    let setup = Setup { code, name: "root".into(), password: Secret::new(PASSWORD) };
    let begun = accounts.setup(&setup, &network).await.expect("the first admin");
    let root: Principal = begun.principal;
    let mut tokens = vec![("root", begun.token)];
    accounts.add_team(&root, &NewTeam { name: "other".into() }).await.expect("a second team");
    let may = TeamChange { members_invite: Some(true), ..TeamChange::default() };
    accounts.change_team(&root, "main", &may).await.expect("members may invite");
    let mut own = None;
    for (name, role, team) in [
        ("vera", Role::Viewer, "main"),
        ("mike", Role::Member, "main"),
        ("ada", Role::Admin, "main"),
        ("olga", Role::Admin, "other"),
    ] {
        let (password, team) = (Some(Secret::new(PASSWORD)), Some(team.into()));
        let person = NewPerson { name: name.into(), password, role: Some(role), team, ..NewPerson::default() };
        accounts.add_person(&root, &person).await.expect("an account");
        let sign_in = SignIn { name: name.into(), password: Secret::new(PASSWORD) };
        let begun = accounts.sign_in(&sign_in, &network, None).await.expect("signed in");
        if name == "mike" {
            own = Some(begun.principal);
        }
        tokens.push((name, begun.token));
    }
    let mut keys = BTreeMap::new();
    let wanted = NewServiceKey { name: "own".into(), scopes: vec![KeyScope::DataRead], expires: None };
    let mike = own.expect("mike");
    let made = accounts.add_own_key(&mike, &wanted).await.expect("a key");
    keys.insert("own", made.key.reveal().to_string());
    for (name, scope) in [
        ("data", KeyScope::DataRead),
        ("metrics", KeyScope::MetricsRead),
        ("runs", KeyScope::RunsWrite),
        ("views", KeyScope::ViewsWrite),
        ("alerts", KeyScope::AlertsWrite),
        ("audit", KeyScope::AuditRead),
        ("team", KeyScope::TeamAdmin),
        ("hub", KeyScope::HubAdmin),
    ] {
        let wanted = NewServiceKey { name: name.into(), scopes: vec![scope], expires: None };
        let made = accounts.add_service_key(&root, "main", &wanted).await.expect("a key");
        keys.insert(name, made.key.reveal().to_string());
    }
    let join = accounts.new_join(&root, "main", &NewJoin::default()).await.expect("a join key").key;
    let machine =
        EnrolRequest { request: "0123456789abcdef".repeat(2), host: "gpu-7".into(), ..EnrolRequest::default() };
    let enrolled = accounts.enrol(join.reveal(), &machine, &network).await.expect("it joins");
    let Enrolment::Enrolled(enrolled) = enrolled else { panic!("nobody has to confirm it") };
    keys.insert("agent", enrolled.key.reveal().to_string());
    keys.insert("join", join.reveal().to_string());
    let link = NewShare { query: Some("w=5m".into()), ..NewShare::default() };
    let link = accounts.add_share(&mike, None, &link, &[]).await.expect("a link");
    let instance = accounts.instance().to_string();
    accounts.close().await;
    Cast { instance, tokens, keys, link }
}

/// Creates all people in the database of a hub that does not run.
fn made_in(database: Database) -> Cast {
    // On a thread of its own, because the test itself may be on a runtime.
    let made = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(cast(&database))
    });
    made.join().expect("everybody is there")
}

/// Creates all people in the folder of a hub that does not run, and returns their keys.
///
/// # Panics
/// Panics when there are people already.
pub fn people(folder: &Path) -> BTreeMap<&'static str, String> {
    made_in(Database::in_folder(folder)).keys
}

/// Adds machines by a join key to the folder of a hub that does not run, and returns the key of each. Their names are
/// `node-0` and so on.
///
/// # Panics
/// Panics when one is rejected.
pub fn machines(folder: &Path, join: &str, count: usize) -> Vec<String> {
    machines_of(Database::in_folder(folder), join, count)
}

/// Adds machines like [`machines`], in this database.
///
/// # Panics
/// Panics when one is rejected.
pub fn machines_of(database: Database, join: &str, count: usize) -> Vec<String> {
    let join = join.to_owned();
    let enrol = async move {
        let accounts = Accounts::open_in(&database, Arc::new(clock::System)).await.expect("a database");
        let mut keys = Vec::new();
        for n in 0..count {
            let host = format!("node-{n}");
            let request = EnrolRequest { request: format!("{n:032x}"), host, ..EnrolRequest::default() };
            let enrolled = accounts.enrol(&join, &request, &Network::local()).await.expect("it joins");
            let Enrolment::Enrolled(enrolled) = enrolled else { panic!("nobody has to confirm it") };
            keys.push(enrolled.key.reveal().to_string());
        }
        accounts.close().await;
        keys
    };
    let made = std::thread::spawn(move || {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(enrol)
    });
    made.join().expect("all have joined")
}

impl Hub {
    /// Starts a hub with all people.
    pub fn start<'a>(args: impl IntoIterator<Item = &'a str>) -> Self {
        Self::start_with(Vec::new(), args)
    }

    /// Starts a hub with all people and these variables.
    pub fn start_with<'a>(env: Vec<(String, String)>, args: impl IntoIterator<Item = &'a str>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let database = Database::in_folder(folder.path());
        Self::start_from(folder, database, env, args)
    }

    /// Starts a hub with all people in this database, which the arguments name.
    pub fn start_in<'a>(
        folder: tempfile::TempDir,
        database: Database,
        args: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        Self::start_from(folder, database, Vec::new(), args)
    }

    fn start_from<'a>(
        folder: tempfile::TempDir,
        database: Database,
        env: Vec<(String, String)>,
        args: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let Cast { instance, tokens, keys, link } = made_in(database);
        // A test may start another one on the same port.
        let server = Self::server_at(folder.path(), free_port(), args, env);
        let port = server.addr().port();
        let cookie = |token: Secret| format!("wg-{instance}-{port}={}", token.reveal());
        let cookies = tokens.into_iter().map(|(name, token)| (name, cookie(token))).collect();
        let link = format!("Cookie: wg-share-{instance}-{port}-{}={}", link.0, link.1.reveal());
        Hub { server, cookies, keys, link, folder }
    }

    /// Starts the hub of a folder on a free port.
    pub fn server<'a>(folder: &Path, args: impl IntoIterator<Item = &'a str>) -> Server {
        Self::server_at(folder, 0, args, Vec::new())
    }

    /// Starts the hub of a folder on this port with these variables, like [`Server::start_on`].
    pub fn server_at<'a>(
        folder: &Path,
        port: u16,
        args: impl IntoIterator<Item = &'a str>,
        env: Vec<(String, String)>,
    ) -> Server {
        let mut command = watchglass(["hub", "--port", &port.to_string(), "--data-dir"]);
        command.arg(folder).args(args).envs(env);
        Server::start_as_it_is(command)
    }

    /// Sends a request with these header lines and a body. `Host` and `Content-Length` are added.
    pub fn send(&self, method: &str, path: &str, headers: &[&str], body: &str) -> ServerAnswer {
        send(&self.server, method, path, headers, body)
    }

    /// The header line of a person's cookie.
    pub fn cookie(&self, name: &str) -> String {
        format!("Cookie: {}", self.cookies[name])
    }

    /// The header line of a key.
    pub fn key(&self, name: &str) -> String {
        format!("Authorization: Bearer {}", self.keys[name])
    }

    /// The `Origin` header line of our own page.
    pub fn origin(&self) -> String {
        format!("Origin: http://{}", self.server.addr())
    }
}

/// Sends a request with these header lines and a body. `Host` and `Content-Length` are added.
pub fn send(server: &Server, method: &str, path: &str, headers: &[&str], body: &str) -> ServerAnswer {
    let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let addr = server.addr();
    ask_with(addr, &format!("{method} {path} HTTP/1.1\r\nHost: {addr}\r\n{lines}{length}"), body)
}

/// The same text with another last character.
pub fn spoiled(text: &str) -> String {
    let other = if text.ends_with('x') { 'y' } else { 'x' };
    format!("{}{other}", &text[..text.len() - 1])
}

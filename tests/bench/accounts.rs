//! Measures the cost of authorization on a hub: lookups of sessions and keys among many, and of the data that they may
//! read.

use crate::cost::cpu_of;
use crate::table::Table;
use records::accounts::Account;
use records::sessions::Session;
use records::sources::Source;
use records::{Records, grants, sessions, sources, teams};
use shared::people::{NewPerson, NewServiceKey};
use shared::role::{KeyScope, Role};
use shared::secret::Secret;
use shared::session::SignIn;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use stream::clock;
use team::accounts::{Accounts, Network, Principal};

/// Accounts and sessions of the goal, and machines visible to each account.
const ACCOUNTS: usize = 1_000;
const SESSIONS: usize = 10_000;
const MACHINES: usize = 100;
/// Number of accounts that send requests, with one session each.
const ASKING_ACCOUNTS: usize = 20;
/// Number of authorized requests.
const REQUESTS: usize = 20_000;

const PASSWORD: &str = "correct horse battery";

/// Measures all figures of this file.
pub fn measure(table: &mut Table) {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let figures = runtime.expect("a runtime").block_on(judged(folder.path()));
    let on =
        format!("{ACCOUNTS} accounts, {SESSIONS} sessions, {MACHINES} machines; {REQUESTS} requests in turn, CPU time");
    for (what, figure) in figures {
        table.at_most(what, figure, "µs", 50.0, "50 µs", "", &on);
    }
}

fn id(kind: char, n: usize) -> String {
    format!("{kind}{n:025}")
}

/// CPU time of each request in microseconds, by kind of credential.
async fn judged(folder: &Path) -> [(&'static str, f64); 2] {
    let accounts = Accounts::open(folder, Arc::new(clock::System)).await.expect("a database");
    let (local, network) = (Principal::local(0), Network::local());
    let mut tokens = Vec::new();
    for n in 0..ASKING_ACCOUNTS {
        let name = format!("asking-{n}");
        let password = Some(Secret::new(PASSWORD));
        let person = NewPerson { name: name.clone(), password, role: Some(Role::Member), ..NewPerson::default() };
        accounts.add_person(&local, &person).await.expect("an account");
        let sign_in = SignIn { name, password: Secret::new(PASSWORD) };
        tokens.push(accounts.sign_in(&sign_in, &network, None).await.expect("signed in").token);
    }
    let wanted = NewServiceKey { name: "bench".into(), scopes: vec![KeyScope::DataRead], expires: None };
    let key = accounts.add_service_key(&local, "main", &wanted).await.expect("a key").key;
    fill(folder).await;
    let mut figures = [("a request by a session is judged", 0.0), ("... by a key", 0.0)];
    for (at, figure) in figures.iter_mut().enumerate() {
        let begun = cpu_of("self");
        for n in 0..REQUESTS {
            let who = match at {
                0 => accounts.session(tokens[n % ASKING_ACCOUNTS].reveal(), &network).await,
                _ => accounts.key(key.reveal(), &network).await,
            };
            let who = who.expect("answered").expect("it holds");
            assert!(who.scope().sees(&id('s', 0)));
        }
        figure.1 = (cpu_of("self") - begun).as_secs_f64() * 1e6 / REQUESTS as f64;
    }
    accounts.close().await;
    figures
}

/// The other accounts, their sessions, and the machines.
async fn fill(folder: &Path) {
    let records = Records::open(folder).await.expect("the database");
    let mut change = records.change().await.expect("a change");
    let team = teams::find(&mut change, "main").await.expect("read").expect("the team").id;
    let now = clock::Clock::wall(&clock::System);
    let day = Duration::from_secs(86_400).as_millis() as i64;
    for n in ASKING_ACCOUNTS..ACCOUNTS {
        let account = Account {
            id: id('a', n),
            name: format!("person-{n}"),
            email: None,
            hub_admin: false,
            state: "active".into(),
            revision: 0,
            created: now,
        };
        records::accounts::add(&mut change, &account).await.expect("an account");
        teams::set_role(&mut change, &team, &account.id, Some("viewer")).await.expect("a member");
    }
    for n in ASKING_ACCOUNTS..SESSIONS {
        let mut id_hash = vec![0; 32];
        id_hash[..8].copy_from_slice(&(n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
        let session = Session {
            id_hash,
            account: id('a', ASKING_ACCOUNTS + n % (ACCOUNTS - ASKING_ACCOUNTS)),
            kind: "password".into(),
            made: now,
            proved: now,
            seen: now,
            ends: now + day,
            network: "10.0.0.1".into(),
            agent: String::new(),
        };
        sessions::add(&mut change, &session).await.expect("a session");
    }
    for n in 0..MACHINES {
        let source = Source {
            id: id('s', n),
            team: team.clone(),
            name: format!("node-{n}"),
            labels: "{}".into(),
            state: "active".into(),
            ephemeral: false,
            by_name: None,
            machine: None,
            links: "[]".into(),
            host: None,
            platform: None,
            version: None,
            facts: None,
            first_seen: now,
            last_seen: None,
        };
        sources::add(&mut change, &source).await.expect("a machine");
        grants::add(&mut change, &team, &source.id).await.expect("a grant");
    }
    change.commit().await.expect("written");
    records.close().await;
}

//! Rows for the tests, and the PostgreSQL for them.
#![allow(clippy::unwrap_used, dead_code)] // each test program uses some of them

use records::accounts::Account;
use records::keys::Key;
use records::sources::Source;
use records::teams::Team;
use records::{Change, Records, teams};

#[cfg(unix)]
#[path = "../../../../tests/support/postgresql.rs"]
pub mod postgresql;

pub fn id(letter: char) -> String {
    letter.to_string().repeat(26)
}

pub fn account(letter: char, hub_admin: bool) -> Account {
    Account {
        id: id(letter),
        name: format!("name-{letter}"),
        email: None,
        hub_admin,
        state: "active".into(),
        revision: 0,
        created: 1,
    }
}

pub fn source(letter: char) -> Source {
    Source {
        id: id(letter),
        team: id('t'),
        name: format!("node-{letter}"),
        labels: "{}".into(),
        state: "active".into(),
        ephemeral: false,
        by_name: Some("n".into()),
        machine: Some("m".into()),
        links: "[]".into(),
        host: Some("h".into()),
        platform: None,
        version: None,
        facts: None,
        first_seen: 1,
        last_seen: None,
    }
}

pub fn key(letter: char, kind: &str) -> Key {
    Key {
        id: letter.to_string().repeat(12),
        hash: vec![letter as u8; 32],
        kind: kind.into(),
        name: "k".into(),
        team: id('t'),
        owner: None,
        scopes: "data:read".into(),
        source: (kind == "a").then(|| id('s')),
        settings: "{}".into(),
        uses: Some(1),
        joined: 0,
        made: 5,
        ends: Some(100),
        ended: None,
        why: None,
        used: None,
        network: None,
        service: None,
    }
}

/// Adds the team that the statements use.
pub async fn begin(records: &Records) {
    let mut change = change(records).await;
    teams::add(&mut change, &Team { id: id('t'), name: "main".into(), settings: "{}".into() }).await.expect("a team");
    change.commit().await.expect("written");
}

pub async fn change(records: &Records) -> Change {
    records.change().await.expect("a change")
}

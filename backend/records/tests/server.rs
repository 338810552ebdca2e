//! A PostgreSQL as a whole: its schema, access, and the rows transferred from a file.
#![cfg(unix)]
#![allow(clippy::unwrap_used)] // each body is a test's

mod rows;

use records::alerts::AlertEvent;
use records::audit::{AuditRow, Filter};
use records::keys::Key;
use records::sources::Source;
use records::usage::Used;
use records::{Records, accounts, alerts, audit, eras, grants, keys, meta, sources, usage};
use rows::postgresql::Postgresql;
use rows::{account, begin, change, id, key, source};

#[tokio::test]
#[ignore = "needs Debian's PostgreSQL 15"]
async fn with_postgresql_a_newer_schema_is_refused_and_a_known_one_is_opened_by_many_at_once() {
    let postgresql = Postgresql::start();
    let password = shared::secret::Secret::new(postgresql.password());
    let server = records::Server::parse(&postgresql.database("hub"), Some(&password)).expect("an address");
    let (one, two, three) =
        tokio::join!(Records::connect(&server), Records::connect(&server), Records::connect(&server));
    for opened in [one, two, three] {
        opened.expect("one of them made the schema, the others waited").close().await;
    }
    // Other hubs of a cluster may have migrated it one step ahead, and this one may restart until it is replaced.
    let known: i64 = postgresql.sql("hub", "SELECT value FROM meta WHERE key = 'schema'").parse().expect("a number");
    let ahead = |steps: i64| format!("UPDATE meta SET value = '{}' WHERE key = 'schema'", known + steps);
    postgresql.sql("hub", &ahead(1));
    Records::connect(&server).await.expect("the version before goes on").close().await;
    postgresql.sql("hub", &ahead(2));
    assert!(Records::connect(&server).await.is_err(), "two steps ahead is another program's");
    postgresql.sql("hub", "UPDATE meta SET value = '99' WHERE key = 'schema'");
    let error = Records::connect(&server).await.expect_err("newer").to_string();
    assert!(error.contains("(schema 99, this version knows"), "{error}");
    assert_eq!(postgresql.sql("hub", "SELECT value FROM meta"), "99", "nothing was changed");
    let wrong = shared::secret::Secret::new("wrong");
    let server = records::Server::parse(&postgresql.database("other"), Some(&wrong)).expect("an address");
    let error = Records::connect(&server).await.expect_err("no entry").to_string();
    assert!(error.contains("password") && error.contains("[database]") && !error.contains("wrong"), "{error}");
    postgresql.stop();
    let error = Records::connect(&server).await.expect_err("it is away").to_string();
    assert!(error.contains("cannot open the database other"), "{error}");
}

#[tokio::test]
#[ignore = "needs Debian's PostgreSQL 15"]
async fn with_postgresql_only_what_others_changed_makes_cached_reads_stale() {
    let postgresql = Postgresql::start();
    let password = shared::secret::Secret::new(postgresql.password());
    let server = records::Server::parse(&postgresql.database("hub"), Some(&password)).expect("an address");
    let (one, other) =
        (Records::connect(&server).await.expect("it opens"), Records::connect(&server).await.expect("it"));
    let put = async |records: &Records, value: &str| {
        let mut on = change(records).await;
        meta::put(&mut on, "instance", value).await.unwrap();
        on.commit().await.expect("it is written");
    };
    put(&one, "a").await;
    one.check_changes().await.expect("an answer");
    // A check right after an own change finds nothing new: a read between them outlives a database that goes away.
    for value in ["b", "c"] {
        put(&one, value).await;
        let generation = one.generation();
        assert!(!one.check_changes().await.expect("an answer"), "{value}: its own change");
        assert_eq!(one.generation(), generation, "{value}");
    }
    // Another one's change is seen, also if an own one follows before the check.
    for own in [false, true] {
        put(&other, "d").await;
        if own {
            put(&one, "e").await;
        }
        let generation = one.generation();
        assert!(one.check_changes().await.expect("an answer"), "another's change, own after it: {own}");
        assert!(one.generation() > generation);
        assert!(!one.check_changes().await.expect("an answer"));
    }
}

#[tokio::test]
#[ignore = "needs Debian's PostgreSQL 15"]
async fn with_postgresql_a_connection_to_a_standby_is_not_kept_after_a_failover() {
    let postgresql = Postgresql::start();
    let password = shared::secret::Secret::new(postgresql.password());
    let server = records::Server::parse(&postgresql.database("hub"), Some(&password)).expect("an address");
    Records::connect(&server).await.expect("it opens").close().await;
    // New connections are as those to a standby, which the address leads to for a moment.
    let reads_only = |only: &str| {
        postgresql.sql("postgres", &format!("ALTER DATABASE hub SET default_transaction_read_only = {only}"));
    };
    reads_only("on");
    let records = Records::connect(&server).await.expect("a standby can be read");
    for _ in 0..2 {
        let why = records.change().await.err().expect("nothing can be written").to_string();
        assert!(why.contains("standby"), "{why}");
    }
    reads_only("off");
    let why = records.change().await.err().map(|error| error.to_string());
    assert!(why.is_none_or(|why| why.contains("standby")), "the connection is from before");
    let mut on = change(&records).await;
    meta::put(&mut on, "instance", "a").await.unwrap();
    on.commit().await.expect("the server that writes is found");
}

#[tokio::test]
#[ignore = "needs Debian's PostgreSQL 15"]
async fn with_postgresql_all_rows_of_a_file_come_over_and_only_into_an_empty_database() {
    let postgresql = Postgresql::start();
    let password = shared::secret::Secret::new(postgresql.password());
    let server = records::Server::parse(&postgresql.database("hub"), Some(&password)).expect("an address");
    let folder = tempfile::tempdir().expect("a folder");
    let (file, between) = (folder.path().join(records::FILE), folder.path().join("between"));
    let from = Records::open(folder.path()).await.expect("a fresh database");
    begin(&from).await;
    let mut on = change(&from).await;
    meta::put(&mut on, "instance", "abcdefgh").await.unwrap();
    accounts::add(&mut on, &account('a', true)).await.unwrap();
    sources::add(&mut on, &Source { ephemeral: true, ..source('s') }).await.unwrap();
    keys::add(&mut on, &Key { owner: Some(id('a')), ..key('p', "p") }).await.unwrap();
    eras::erase(&mut on, "gone", -7, -1).await.unwrap();
    let used = Used { day: 1, team: id('t'), kind: "day".into(), subject: String::new(), measure: "samples".into() };
    usage::add(&mut on, &used, 2.5).await.unwrap();
    let entry = |t: i64| AuditRow {
        id: t,
        t,
        who: "mara\0".into(),
        by: "session".into(),
        network: "n".into(),
        action: "key.add".into(),
        team: None,
        object: "o".into(),
        before: None,
        after: Some("a".into()),
        result: "ok".into(),
    };
    let alert = records::alerts::AlertRow {
        id: id('l'),
        team: None,
        rule: "disk-full".into(),
        subject: "/data".into(),
        source: Some(id('s')),
        run: None,
        severity: "warning".into(),
        state: "firing".into(),
        began: 5,
        ended: None,
        body: "{}".into(),
        acked_by: None,
        acked_at: None,
        updated: 5,
        heard: 0,
        held: String::new(),
    };
    alerts::put(&mut on, &alert).await.unwrap();
    let event = AlertEvent { alert: id('l'), t: 5, kind: "firing".into(), who: String::new(), words: String::new() };
    alerts::happened(&mut on, &event).await.unwrap();
    for t in 1..=1_203 {
        audit::add(&mut on, &entry(t)).await.unwrap();
    }
    on.commit().await.unwrap();

    // The hub may still have it open.
    records::transfer(&file, &between, &server).await.expect("brought over");
    assert!(!between.exists(), "nothing is left between");
    let to = Records::connect(&server).await.expect("it is there");
    let mut on = change(&to).await;
    assert_eq!(meta::get(&mut on, "instance").await.unwrap().as_deref(), Some("abcdefgh"));
    assert_eq!(accounts::all(&mut on).await.unwrap(), [account('a', true)]);
    assert_eq!(sources::list(&mut on, None).await.unwrap(), [Source { ephemeral: true, ..source('s') }]);
    assert_eq!(grants::teams(&mut on, &id('s')).await.unwrap(), [id('t')]);
    assert_eq!(keys::of_owner(&mut on, &id('a'), 50).await.unwrap().len(), 1);
    assert_eq!(eras::erased(&mut on, "gone").await.unwrap(), [(-7, -1)]);
    assert_eq!(usage::list(&mut on, None, "day", (0, 9), 9).await.unwrap(), [(used, 2.5)]);
    assert_eq!(audit::count_after(&mut on, 0).await.unwrap(), 1_203);
    assert_eq!(alerts::open(&mut on).await.unwrap(), [alert]);
    alerts::happened(&mut on, &event).await.expect("the numbers go on where they were");
    assert_eq!(alerts::events(&mut on, &id('l'), 9).await.unwrap().len(), 2);
    assert_eq!(audit::newest(&mut on, &Filter::default(), 1).await.unwrap()[0].who, "mara\u{fffd}");
    audit::add(&mut on, &entry(0)).await.expect("the numbers go on where they were");
    on.commit().await.unwrap();

    let again = records::transfer(&file, &between, &server).await.expect_err("there is one").to_string();
    assert!(again.contains("has data of a hub already") && !between.exists(), "{again}");
    let none = folder.path().join("none");
    std::fs::write(&none, "no database").expect("written");
    assert!(records::transfer(&none, &between, &server).await.is_err());
    from.close().await;
}

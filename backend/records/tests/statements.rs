//! Every statement runs once on either engine: this finds a wrong column, a missing parameter, or syntax that only one
//! of them has.
#![allow(clippy::unwrap_used)] // each body is a test's, run on either engine

mod rows;

#[cfg(unix)]
use rows::postgresql::Postgresql;
use rows::{account, begin, change, id, key, source};

use records::accounts::{Account, Tells};
use records::alerts::{AlertEvent, AlertFilter, AlertRow, KeptState};
use records::audit::{AuditRow, Filter};
use records::channels::ChannelRow;
use records::codes::Code;
use records::enrolments::Enrolment;
use records::eras::Era;
use records::keys::Key;
use records::links::LinkRow;
use records::notes::NoteRow;
use records::outbox::{ChannelFigures, OutboxRow};
use records::rules::RuleRow;
use records::run_edits::RunEditRow;
use records::services::Service;
use records::sessions::Session;
use records::shares::Share;
use records::silences::SilenceRow;
use records::sources::{ReportedFacts, Source};
use records::teams::Team;
use records::usage::Used;
use records::views::View;
use records::{
    Records, accounts, alerts, audit, channels, codes, coverage, enrolments, eras, grants, keys, leases, links, meta,
    notes, outbox, rules, run_edits, services, sessions, shares, silences, sources, teams, usage, views, watched,
};

/// A test of each on SQLite, and one of all on PostgreSQL, which starts once for them.
macro_rules! on_both {
    ($($name:ident,)*) => {
        mod on_sqlite {
            $(#[tokio::test]
            async fn $name() {
                let folder = tempfile::tempdir().expect("a folder");
                let records = records::Records::open(folder.path()).await.expect("a fresh database");
                super::begin(&records).await;
                super::$name(&records).await;
                records.close().await;
            })*
        }

        #[cfg(unix)]
        #[tokio::test]
        #[ignore = "needs Debian's PostgreSQL 15"]
        async fn with_postgresql_every_statement_does_the_same() {
            let postgresql = Postgresql::start();
            let password = shared::secret::Secret::new(postgresql.password());
            $({
                let url = postgresql.database(stringify!($name));
                let server = records::Server::parse(&url, Some(&password)).expect("an address");
                let records = Records::connect(&server).await.expect("a fresh database");
                begin(&records).await;
                $name(&records).await;
                records.close().await;
            })*
        }
    };
}

on_both! {
    accounts_teams_sessions_and_codes,
    keys_and_services,
    machines,
    the_audit_log_and_what_the_database_knows_of_itself,
    views_and_links,
    changes_of_runs_are_counted_by_their_versions,
    the_use_of_deleted_runs_is_forgotten_with_its_time_its_machine_and_its_user,
    notes_are_found_by_their_time_and_their_run,
    a_change_is_whole_or_not_at_all_and_a_reader_changes_nothing,
    what_was_used_adds_up_or_is_the_largest_of_its_day,
    rows_are_followed_and_what_an_account_has_is_found,
    rules_silences_and_channels_are_one_teams,
    alerts_are_one_row_each_and_seen_by_whose_they_are,
    notices_of_a_group_go_out_one_by_one_and_in_their_order,
    a_clock_that_is_set_back_holds_no_notice_up,
    what_only_one_may_do_is_done_by_one,
    a_link_is_one_hubs_and_void_without_its_lease,
    who_judges_a_machine_follows_its_link_and_else_is_who_tells,
    what_the_store_has_taken_is_spans_that_do_not_touch,
}

async fn accounts_teams_sessions_and_codes(records: &Records) {
    let mut on = change(records).await;
    accounts::add(&mut on, &account('a', true)).await.expect("added");
    let again = Account { id: id('x'), ..account('a', false) };
    on.commit().await.expect("written");
    assert!(accounts::add(&mut *change(records).await, &again).await.expect_err("the name is taken").is_taken());
    let mut on = change(records).await;
    accounts::add(&mut on, &account('b', false)).await.expect("added");
    assert_eq!((accounts::count(&mut on).await.unwrap(), accounts::hub_admins(&mut on).await.unwrap()), (2, 1));
    assert_eq!(accounts::all(&mut on).await.unwrap(), [account('a', true), account('b', false)]);
    assert_eq!(accounts::by_name(&mut on, "name-b").await.unwrap(), Some(account('b', false)));
    accounts::set(&mut on, &id('b'), true, "disabled").await.unwrap();
    let b = accounts::by_id(&mut on, &id('b')).await.unwrap().expect("there");
    assert_eq!((b.hub_admin, b.state.as_str(), b.revision), (true, "disabled", 1));
    assert_eq!(accounts::hub_admins(&mut on).await.unwrap(), 1, "a disabled one does not count");
    for hash in ["one", "two"] {
        accounts::set_password(&mut on, &id('i'), &id('a'), hash).await.unwrap();
    }
    assert_eq!(accounts::password(&mut on, &id('a')).await.unwrap().as_deref(), Some("two"));
    assert_eq!(accounts::password(&mut on, &id('b')).await.unwrap(), None);
    accounts::add_identity(&mut on, &id('p'), &id('b'), ("proxy", "proxy", "mara")).await.unwrap();
    let whose = accounts::by_identity(&mut on, "proxy", "mara").await.unwrap().expect("there");
    assert_eq!(whose.id, id('b'));
    assert_eq!(accounts::by_identity(&mut on, "proxy", "Mara").await.unwrap(), None);
    assert_eq!(accounts::by_identity(&mut on, "password", "mara").await.unwrap(), None);
    accounts::add_identity(&mut on, &id('q'), &id('b'), ("oidc", "https://id.example.org", "p-1")).await.unwrap();
    let own = accounts::identities(&mut on, &id('b')).await.unwrap();
    assert_eq!(
        own.iter().map(|one| (one.kind.as_str(), one.issuer.as_str())).collect::<Vec<_>>(),
        [("oidc", "https://id.example.org"), ("proxy", "proxy"),]
    );
    accounts::remove_identity(&mut on, &id('q')).await.unwrap();
    assert_eq!(accounts::by_identity(&mut on, "https://id.example.org", "p-1").await.unwrap(), None);

    assert_eq!(teams::all(&mut on).await.unwrap().len(), 1);
    assert!(teams::find(&mut on, "main").await.unwrap() == teams::find(&mut on, &id('t')).await.unwrap());
    teams::set_role(&mut on, &id('t'), &id('a'), Some("viewer")).await.unwrap();
    teams::set_role(&mut on, &id('t'), &id('a'), Some("admin")).await.unwrap();
    let memberships = teams::memberships(&mut on, Some(&id('a'))).await.unwrap();
    assert_eq!((memberships.len(), memberships[0].role.as_str(), memberships[0].name.as_str()), (1, "admin", "main"));
    teams::set_role(&mut on, &id('t'), &id('a'), None).await.unwrap();
    assert_eq!(teams::memberships(&mut on, None).await.unwrap(), []);

    let session = |letter: u8, made| Session {
        id_hash: vec![letter; 32],
        account: id('a'),
        kind: "password".into(),
        made,
        proved: made,
        seen: made,
        ends: made + 100,
        network: "n".into(),
        agent: String::new(),
    };
    for (letter, made) in [(1, 10), (2, 20), (3, 30), (4, 40)] {
        sessions::add(&mut on, &session(letter, made)).await.unwrap();
    }
    assert_eq!(sessions::get(&mut on, &[2; 32]).await.unwrap(), Some(session(2, 20)));
    sessions::seen(&mut on, &[2; 32], 25, "m").await.unwrap();
    sessions::proved(&mut on, &[2; 32], 26).await.unwrap();
    let seen = sessions::get(&mut on, &[2; 32]).await.unwrap().expect("there");
    assert_eq!((seen.seen, seen.proved, seen.network.as_str()), (25, 26, "m"));
    assert_eq!(sessions::end_oldest(&mut on, &id('a'), 3).await.unwrap(), [vec![1; 32]]);
    assert!(sessions::end(&mut on, &[2; 32]).await.unwrap() && !sessions::end(&mut on, &[2; 32]).await.unwrap());
    sessions::end_all(&mut on, &id('a'), Some(&[3; 32])).await.unwrap();
    assert!(sessions::get(&mut on, &[3; 32]).await.unwrap().is_some());
    sessions::forget(&mut on, 0, 30).await.unwrap();
    assert!(sessions::get(&mut on, &[3; 32]).await.unwrap().is_none(), "not used for too long");
    sessions::add(&mut on, &session(5, 50)).await.unwrap();
    sessions::end_all(&mut on, &id('a'), None).await.unwrap();
    assert!(sessions::get(&mut on, &[5; 32]).await.unwrap().is_none());

    let code = |letter: u8, kind: &str, ends| Code {
        hash: vec![letter; 32],
        id: id(char::from(b'a' + letter)),
        kind: kind.into(),
        account: (kind == "reset").then(|| id('a')),
        team: (kind == "invite").then(|| id('t')),
        role: None,
        owner: (kind == "invite").then(|| id('a')),
        maker: "mara".into(),
        email: None,
        data: "{}".into(),
        made: 1,
        ends,
    };
    codes::add(&mut on, &code(1, "setup", 10)).await.unwrap();
    codes::add(&mut on, &code(2, "reset", 10)).await.unwrap();
    assert_eq!(codes::take(&mut on, &[1; 32], "reset", 5).await.unwrap(), None, "of another kind");
    assert_eq!(codes::take(&mut on, &[1; 32], "setup", 10).await.unwrap(), None, "over");
    assert_eq!(codes::take(&mut on, &[1; 32], "setup", 9).await.unwrap(), Some(code(1, "setup", 10)));
    assert_eq!(codes::take(&mut on, &[1; 32], "setup", 9).await.unwrap(), None, "once");
    codes::end(&mut on, "reset", Some(&id('b'))).await.unwrap();
    codes::end(&mut on, "setup", None).await.unwrap();
    codes::forget(&mut on, 5).await.unwrap();
    assert!(codes::take(&mut on, &[2; 32], "reset", 5).await.unwrap().is_some());
    codes::add(&mut on, &code(4, "invite", 10)).await.unwrap();
    codes::add(&mut on, &code(5, "invite", 10)).await.unwrap();
    assert_eq!(codes::of_team(&mut on, &id('t'), "invite", 9).await.unwrap().len(), 2);
    assert_eq!(codes::of_team(&mut on, &id('t'), "invite", 10).await.unwrap(), []);
    assert_eq!(codes::count(&mut on, "invite", 9).await.unwrap(), 2);
    assert_eq!(codes::count(&mut on, "invite", 10).await.unwrap(), 0);
    codes::remove(&mut on, &id('e')).await.unwrap();
    assert_eq!(codes::of_team(&mut on, &id('t'), "invite", 9).await.unwrap(), [code(5, "invite", 10)]);
    codes::end_of_owner(&mut on, &id('t'), &id('a')).await.unwrap();
    assert_eq!(codes::of_team(&mut on, &id('t'), "invite", 9).await.unwrap(), []);
    codes::add(&mut on, &code(3, "reset", 10)).await.unwrap();
    sessions::add(&mut on, &session(6, 60)).await.unwrap();
    assert_eq!(sessions::list(&mut on, &id('a')).await.unwrap(), [session(6, 60)]);
    accounts::set_email(&mut on, &id('a'), Some("a@example.org")).await.unwrap();
    let mail = accounts::by_id(&mut on, &id('a')).await.unwrap().expect("there").email;
    assert_eq!(mail.as_deref(), Some("a@example.org"));
    let kinds: Vec<String> =
        accounts::identities(&mut on, &id('a')).await.unwrap().into_iter().map(|one| one.kind).collect();
    assert_eq!(kinds, ["password"]);
    accounts::add_identity(&mut on, &id('l'), &id('a'), ("oidc", "https://id", "7")).await.unwrap();
    assert_eq!(accounts::list_claims(&mut on, None).await.unwrap(), []);
    let hash = accounts::password(&mut on, &id('a')).await.unwrap();
    for who in [("https://id", "7"), ("password", &id('a'))] {
        accounts::set_said(&mut on, who, r#"{"login":"mara"}"#).await.unwrap();
    }
    for of in [None, Some(id('a'))] {
        let said = accounts::list_claims(&mut on, of.as_deref()).await.unwrap();
        assert_eq!(said, [(id('a'), r#"{"login":"mara"}"#.to_string())], "{of:?}");
    }
    assert_eq!(accounts::list_claims(&mut on, Some(&id('b'))).await.unwrap(), []);
    assert_eq!(accounts::password(&mut on, &id('a')).await.unwrap(), hash, "a password is never overwritten by it");
    accounts::remove_identity(&mut on, &id('l')).await.unwrap();
    teams::set_role(&mut on, &id('t'), &id('a'), Some("member")).await.unwrap();
    teams::set_logins(&mut on, &id('t'), &id('a'), r#"["mara"]"#).await.unwrap();
    let members = teams::members(&mut on, &id('t')).await.unwrap();
    let member = members.first().expect("one");
    assert_eq!((members.len(), member.role.as_str(), member.seen), (1, "member", Some(60)));
    assert_eq!((member.logins.as_str(), member.state.as_str()), (r#"["mara"]"#, "active"));
    let other = Team { id: id('o'), name: "other".into(), settings: "{}".into() };
    teams::add(&mut on, &other).await.unwrap();
    let renamed = Team { name: "second".into(), settings: r#"{"a":1}"#.into(), ..other };
    teams::set(&mut on, &renamed).await.unwrap();
    assert_eq!(teams::find(&mut on, "second").await.unwrap(), Some(renamed));
    let taken = Team { id: id('o'), name: "main".into(), settings: "{}".into() };
    on.commit().await.expect("written");
    assert!(teams::set(&mut *change(records).await, &taken).await.expect_err("the name is taken").is_taken());
    let mut on = change(records).await;
    teams::remove(&mut on, &id('o')).await.unwrap();
    assert_eq!(teams::all(&mut on).await.unwrap().len(), 1);
    accounts::remove(&mut on, &id('a')).await.unwrap();
    assert!(sessions::get(&mut on, &[6; 32]).await.unwrap().is_none(), "it goes with its account");
    assert_eq!(codes::take(&mut on, &[3; 32], "reset", 5).await.unwrap(), None);
    on.commit().await.expect("written");
}

async fn keys_and_services(records: &Records) {
    let mut on = change(records).await;
    for row in [key('a', "a"), key('j', "j"), key('s', "s")] {
        keys::add(&mut on, &row).await.unwrap();
    }
    assert_eq!(keys::get(&mut on, &"j".repeat(12)).await.unwrap(), Some(key('j', "j")));
    let ids = |keys: Vec<Key>| keys.into_iter().map(|key| key.id[..1].to_string()).collect::<String>();
    assert_eq!(ids(keys::list(&mut on, Some(&id('t')), "js", 50).await.unwrap()), "js");
    assert_eq!(ids(keys::list(&mut on, None, "j", 100).await.unwrap()), "", "over");
    assert_eq!(keys::of_agents(&mut on).await.unwrap(), [(id('s'), "a".repeat(12))]);
    assert!(keys::join(&mut on, &"j".repeat(12)).await.unwrap());
    assert!(!keys::join(&mut on, &"j".repeat(12)).await.unwrap(), "no use is left");
    let joined = keys::get(&mut on, &"j".repeat(12)).await.unwrap().expect("there");
    assert_eq!((joined.uses, joined.joined), (Some(0), 1));
    keys::set_settings(&mut on, &"j".repeat(12), "{\"x\":1}").await.unwrap();
    assert_eq!(keys::get(&mut on, &"j".repeat(12)).await.unwrap().expect("there").settings, "{\"x\":1}");
    keys::used(&mut on, &"s".repeat(12), 7, "n").await.unwrap();
    let used = keys::get(&mut on, &"s".repeat(12)).await.unwrap().expect("there");
    assert_eq!((used.used, used.network.as_deref()), (Some(7), Some("n")));
    assert!(keys::end(&mut on, &"s".repeat(12), 8, "ended").await.unwrap());
    assert!(!keys::end(&mut on, &"s".repeat(12), 9, "leaked").await.unwrap(), "ended already");
    assert_eq!(keys::end_of_source(&mut on, &id('s'), 9, "revoked").await.unwrap(), ["a".repeat(12)]);
    keys::source_removed(&mut on, &id('s')).await.unwrap();
    let ended = keys::get(&mut on, &"a".repeat(12)).await.unwrap().expect("its row stays");
    assert_eq!((ended.ended, ended.why.as_deref()), (Some(9), Some("removed")));
    accounts::add(&mut on, &account('a', false)).await.unwrap();
    teams::add(&mut on, &Team { id: id('o'), name: "other".into(), settings: "{}".into() }).await.unwrap();
    let own = |letter| Key { owner: Some(id('a')), team: id('o'), ..key(letter, "p") };
    keys::add(&mut on, &own('p')).await.unwrap();
    assert_eq!(ids(keys::of_owner(&mut on, &id('a'), 50).await.unwrap()), "p");
    assert_eq!(ids(keys::of_owner(&mut on, &id('a'), 100).await.unwrap()), "", "over");
    let service = Service {
        id: id('v'),
        team: id('o'),
        name: "slurm".into(),
        role: "viewer".into(),
        state: "active".into(),
        made: 1,
    };
    services::add(&mut on, &service).await.unwrap();
    let again = Service { id: id('w'), ..service.clone() };
    on.commit().await.expect("written");
    assert!(services::add(&mut *change(records).await, &again).await.expect_err("the name is taken").is_taken());
    let mut on = change(records).await;
    services::set(&mut on, &id('v'), "member", "disabled").await.unwrap();
    let set = Service { role: "member".into(), state: "disabled".into(), ..service };
    assert_eq!(services::find(&mut on, &id('o'), "slurm").await.unwrap(), Some(set.clone()));
    assert_eq!(services::find(&mut on, &id('t'), "slurm").await.unwrap(), None, "of another team");
    assert_eq!(services::get(&mut on, &id('v')).await.unwrap(), Some(set.clone()));
    assert_eq!(services::list(&mut on, &id('o')).await.unwrap(), [set]);
    keys::add(&mut on, &Key { service: Some(id('v')), team: id('o'), ..key('v', "s") }).await.unwrap();
    services::remove(&mut on, &id('v')).await.unwrap();
    assert!(keys::get(&mut on, &"v".repeat(12)).await.unwrap().is_none(), "it goes with its service");
    keys::add(&mut on, &Key { team: id('o'), ..key('w', "s") }).await.unwrap();
    keys::team_removed(&mut on, &id('o'), &id('t')).await.unwrap();
    assert!(keys::get(&mut on, &"w".repeat(12)).await.unwrap().is_none());
    assert_eq!(keys::get(&mut on, &"p".repeat(12)).await.unwrap().map(|key| key.team), Some(id('t')));
    assert_eq!(keys::end_of_owner(&mut on, &id('a'), 9).await.unwrap(), ["p".repeat(12)]);
    keys::forget(&mut on, 9).await.unwrap();
    assert!(keys::get(&mut on, &"s".repeat(12)).await.unwrap().is_none());
    assert!(keys::get(&mut on, &"a".repeat(12)).await.unwrap().is_some());
    on.commit().await.expect("written");
}

async fn machines(records: &Records) {
    let mut on = change(records).await;
    sources::add(&mut on, &source('a')).await.unwrap();
    sources::add(&mut on, &source('b')).await.unwrap();
    let named = Source { id: id('c'), ..source('a') };
    on.commit().await.expect("written");
    assert!(sources::add(&mut *change(records).await, &named).await.expect_err("the name is taken").is_taken());
    let mut on = change(records).await;
    assert_eq!(sources::count(&mut on).await.unwrap(), 2);
    assert_eq!(sources::list(&mut on, None).await.unwrap(), [source('a'), source('b')]);
    assert_eq!(sources::list(&mut on, Some("other")).await.unwrap(), []);
    assert_eq!(sources::get(&mut on, &id('a')).await.unwrap(), Some(source('a')));
    assert_eq!(sources::of_machine(&mut on, &id('t'), "m", "h").await.unwrap().len(), 2);
    assert_eq!(sources::of_name(&mut on, &id('t'), "n").await.unwrap().len(), 2);
    sources::rename(&mut on, &id('a'), "node-a", "gpu-1", 50).await.unwrap();
    for (word, now, found) in [("gpu-1", 0, true), ("node-a", 49, true), ("node-a", 50, false), (&id('a'), 99, true)] {
        let source = sources::find(&mut on, word, now).await.unwrap();
        assert_eq!(source.is_some_and(|source| source.id == id('a')), found, "{word} at {now}");
        assert_eq!(sources::is_taken(&mut on, word, now).await.unwrap(), found, "{word} at {now}");
    }
    on.commit().await.expect("written");
    let taken = sources::rename(&mut *change(records).await, &id('b'), "node-b", "gpu-1", 50)
        .await
        .expect_err("the name is taken");
    let mut on = change(records).await;
    assert!(taken.is_taken());
    sources::rename(&mut on, &id('a'), "gpu-1", "node-a", 60).await.expect("back to the name that it had");
    assert_eq!(sources::find(&mut on, "node-a", 99).await.unwrap().map(|source| source.id), Some(id('a')));
    teams::add(&mut on, &Team { id: id('o'), name: "other".into(), settings: "{}".into() }).await.unwrap();
    for _ in 0..2 {
        grants::add(&mut on, &id('o'), &id('a')).await.unwrap();
    }
    assert_eq!(grants::teams(&mut on, &id('a')).await.unwrap(), [id('o'), id('t')]);
    let granted = grants::list(&mut on, &id('o')).await.unwrap();
    assert_eq!((granted.len(), granted[0].name.as_str(), granted[0].home == id('t')), (1, "node-a", true));
    assert_eq!(sources::ids(&mut on, &id('o')).await.unwrap(), [id('a')]);
    grants::remove(&mut on, &id('o'), &id('a')).await.unwrap();
    assert_eq!(sources::ids(&mut on, &id('o')).await.unwrap(), [] as [String; 0]);
    sources::set_state(&mut on, &id('a'), "pending").await.unwrap();
    assert_eq!(sources::ids(&mut on, &id('t')).await.unwrap(), [id('b')], "one that waits is seen by nobody");
    sources::set_labels(&mut on, &id('a'), r#"{"rack":"r1"}"#).await.unwrap();
    sources::set_machine(&mut on, &id('a'), None, "[1]", None).await.unwrap();
    sources::record_reception(&mut on, &id('a'), 9, ReportedFacts { host: Some("new"), ..ReportedFacts::default() })
        .await
        .unwrap();
    let heard = sources::get(&mut on, &id('a')).await.unwrap().expect("there");
    assert_eq!((heard.host.as_deref(), heard.last_seen, heard.machine), (Some("new"), Some(9), None));
    assert_eq!((heard.labels.as_str(), heard.links.as_str()), (r#"{"rack":"r1"}"#, "[1]"));
    assert_eq!(heard.by_name.as_deref(), Some("n"), "what is not told stays");

    let request = |letter: &str, state: &str| Enrolment {
        request: letter.repeat(32),
        source: id(if letter == "1" { 'a' } else { 'b' }),
        join_key: "j".into(),
        state: state.into(),
        made: 5,
        asked: 5,
    };
    enrolments::add(&mut on, &request("1", "pending")).await.unwrap();
    enrolments::add(&mut on, &request("2", "approved")).await.unwrap();
    assert_eq!(enrolments::get(&mut on, &"2".repeat(32)).await.unwrap(), Some(request("2", "approved")));
    assert_eq!(enrolments::pending(&mut on).await.unwrap(), [id('a')]);
    enrolments::asked(&mut on, &"1".repeat(32), 8).await.unwrap();
    enrolments::forget(&mut on, 6, 8).await.unwrap();
    assert!(enrolments::get(&mut on, &"1".repeat(32)).await.unwrap().is_some());
    assert!(enrolments::get(&mut on, &"2".repeat(32)).await.unwrap().is_none());
    assert_eq!(enrolments::approve(&mut on, &id('a')).await.unwrap(), 1);
    assert_eq!(enrolments::approve(&mut on, &id('a')).await.unwrap(), 0);
    enrolments::remove(&mut on, &"1".repeat(32)).await.unwrap();
    enrolments::forget(&mut on, 0, 0).await.unwrap();
    assert!(sources::get(&mut on, &id('a')).await.unwrap().is_none(), "nobody asks for it, nobody confirmed it");

    let era = |first, shift| Era { first, shift, skew: -shift, rtt: 3 };
    for (first, shift) in [(7, 1), (-1, 2), (7, 3)] {
        eras::put(&mut on, &id('b'), &era(first, shift)).await.unwrap();
    }
    assert_eq!(eras::list(&mut on, &id('b')).await.unwrap(), [era(-1, 2), era(7, 3)]);
    for first in 10..1_010 {
        eras::put(&mut on, &id('b'), &era(first, 1)).await.unwrap();
    }
    let kept = eras::list(&mut on, &id('b')).await.unwrap();
    let bounds = (kept.len(), kept.first(), kept.last());
    assert_eq!(bounds, (1_000, Some(&era(10, 1)), Some(&era(1_009, 1))), "the oldest are forgotten");
    on.commit().await.expect("written");
    assert!(eras::put(&mut *change(records).await, &id('x'), &era(1, 1)).await.is_err(), "no such source");
    let mut on = change(records).await;
    eras::erase(&mut on, &id('b'), 0, -1).await.unwrap();
    assert_eq!(eras::erased(&mut on, &id('b')).await.unwrap(), [(0, -1)]);
    sources::remove(&mut on, &id('b')).await.unwrap();
    assert_eq!(eras::list(&mut on, &id('b')).await.unwrap(), []);
    assert_eq!(eras::erased(&mut on, &id('b')).await.unwrap(), [(0, -1)], "it never comes back");
    assert_eq!(eras::removed(&mut on).await.unwrap(), [id('b')]);
    sources::forget_aliases(&mut on, 1_000).await.unwrap();
    on.commit().await.expect("written");
}

async fn the_audit_log_and_what_the_database_knows_of_itself(records: &Records) {
    let mut on = change(records).await;
    let entry = |t, team: Option<&str>| AuditRow {
        id: t,
        t,
        who: "mara".into(),
        by: "session".into(),
        network: "n".into(),
        action: "key.add".into(),
        team: team.map(String::from),
        object: "o".into(),
        before: None,
        after: Some("a".into()),
        result: "ok".into(),
    };
    for row in [entry(1, None), entry(2, Some("t")), entry(3, None)] {
        audit::add(&mut on, &row).await.unwrap();
    }
    let of_team = Filter { team: Some("t".into()), ..Filter::default() };
    assert_eq!(audit::newest(&mut on, &Filter::default(), 2).await.unwrap(), [entry(3, None), entry(2, Some("t"))]);
    assert_eq!(audit::newest(&mut on, &of_team, 9).await.unwrap(), [entry(2, Some("t"))]);
    let narrow = Filter {
        who: Some("mara".into()),
        action: Some("key.".into()),
        object: Some("o".into()),
        from: Some(1),
        to: Some(2),
        before: Some(2),
        team: None,
    };
    assert_eq!(audit::newest(&mut on, &narrow, 9).await.unwrap(), [entry(1, None)]);
    let other = Filter { action: Some("%".into()), ..Filter::default() };
    assert_eq!(audit::newest(&mut on, &other, 9).await.unwrap(), [], "no pattern, the text itself");
    let by = |network: &str, t| AuditRow { network: network.into(), ..entry(t, Some("x")) };
    for row in [by("10.2.4.17", 4), by("2001:db8::/64", 5), by("local", 6), by("10.2.4.18", 7)] {
        audit::add(&mut on, &row).await.unwrap();
    }
    assert_eq!(audit::addresses(&mut on, 7).await.unwrap(), ["10.2.4.17"]);
    audit::blur(&mut on, 7, "10.2.4.17", "10.2.4.0/24").await.unwrap();
    assert_eq!(audit::addresses(&mut on, 7).await.unwrap(), [] as [String; 0]);
    assert_eq!(audit::addresses(&mut on, 8).await.unwrap(), ["10.2.4.18"]);
    let of = |who: &str, action: &str, object: &str| AuditRow {
        who: who.into(),
        action: action.into(),
        object: object.into(),
        ..entry(8, None)
    };
    for row in [of("root", "agent.label", "mara"), of("root", "account.reset", "mara")] {
        audit::add(&mut on, &row).await.unwrap();
    }
    assert_eq!(audit::naming(&mut on, "mara", 9).await.unwrap().len(), 8, "but not the machine of that name");
    let made = |after: &str| AuditRow { after: Some(after.into()), ..of("root", "key.add", "k") };
    for after in ["mara/ci: data:read", "maral/ci: data:read"] {
        audit::add(&mut on, &made(after)).await.unwrap();
    }
    let member = AuditRow { after: Some("admin, logins: m7 m.w".into()), ..of("root", "member.change", "mara") };
    audit::add(&mut on, &member).await.unwrap();
    assert_eq!(audit::erase(&mut on, "mara", Some("mara@example.org"), "erased-1").await.unwrap(), 10);
    let members = Filter { action: Some("member.change".into()), ..Filter::default() };
    assert_eq!(audit::newest(&mut on, &members, 9).await.unwrap()[0].after.as_deref(), Some("admin"));
    let keys = Filter { object: Some("k".into()), ..Filter::default() };
    let keys = audit::newest(&mut on, &keys, 9).await.unwrap();
    let afters: Vec<&str> = keys.iter().filter_map(|row| row.after.as_deref()).collect();
    assert_eq!(afters, ["maral/ci: data:read", "erased-1/ci: data:read"]);
    assert_eq!(audit::naming(&mut on, "mara", 9).await.unwrap(), []);
    assert_eq!(audit::naming(&mut on, "erased-1", 20).await.unwrap().len(), 9);
    let entry = |t, team| AuditRow { who: "erased-1".into(), ..entry(t, team) };
    audit::forget(&mut on, 3).await.unwrap();
    let first = Filter { before: Some(4), ..Filter::default() };
    assert_eq!(audit::newest(&mut on, &first, 9).await.unwrap(), [entry(3, None)]);
    let last = audit::newest(&mut on, &Filter::default(), 1).await.unwrap()[0].id;
    audit::forget(&mut on, i64::MAX).await.unwrap();
    audit::add(&mut on, &entry(10, None)).await.unwrap();
    assert_eq!(audit::after(&mut on, last, 9).await.unwrap().len(), 1, "no number is given twice");
    assert_eq!(audit::count_after(&mut on, 0).await.unwrap(), 2, "all but the last row went");
    meta::put(&mut on, "k", "1").await.unwrap();
    meta::put(&mut on, "k", "2").await.unwrap();
    assert_eq!(meta::get(&mut on, "k").await.unwrap().as_deref(), Some("2"));
    assert_eq!(meta::get(&mut on, "none").await.unwrap(), None);
}

async fn views_and_links(records: &Records) {
    let mut on = change(records).await;
    accounts::add(&mut on, &account('a', false)).await.unwrap();
    let view = |letter, scope: &str| View {
        id: id(letter),
        team: id('t'),
        owner: Some(id('a')),
        maker: "mara".into(),
        scope: scope.into(),
        name: format!("view {letter}"),
        query: "w=1h".into(),
        version: 1,
        updated: 5,
    };
    views::add(&mut on, &view('m', "mine")).await.unwrap();
    views::add(&mut on, &view('n', "team")).await.unwrap();
    assert_eq!(views::list(&mut on, &id('t'), Some(&id('a'))).await.unwrap(), [view('n', "team"), view('m', "mine")]);
    assert_eq!(views::list(&mut on, &id('t'), None).await.unwrap(), [view('n', "team")]);
    assert_eq!(views::count(&mut on, &id('t'), None).await.unwrap(), 1);
    assert_eq!(views::count(&mut on, &id('t'), Some(&id('a'))).await.unwrap(), 1);
    let newer = View { version: 2, name: "newer".into(), ..view('n', "team") };
    assert!(views::set(&mut on, &newer).await.unwrap() && !views::set(&mut on, &newer).await.unwrap(), "once");
    assert_eq!(views::get(&mut on, &id('n')).await.unwrap(), Some(newer.clone()));
    views::leave(&mut on, Some(&id('x')), &id('a'), "mara (left)").await.unwrap();
    assert_eq!(views::count(&mut on, &id('t'), Some(&id('a'))).await.unwrap(), 1, "another team");
    views::leave(&mut on, None, &id('a'), "mara (left)").await.unwrap();
    let left = View { owner: None, maker: "mara (left)".into(), ..newer };
    assert_eq!(views::list(&mut on, &id('t'), Some(&id('a'))).await.unwrap(), [left]);
    views::rename(&mut on, "mara (left)", "erased-1").await.unwrap();
    assert_eq!(views::get(&mut on, &id('n')).await.unwrap().expect("it is there").maker, "erased-1");
    views::remove(&mut on, &id('n')).await.unwrap();
    assert_eq!(views::get(&mut on, &id('n')).await.unwrap(), None);

    let share = |letter: char, ends| Share {
        id: id(letter),
        hash: vec![letter as u8; 32],
        team: id('t'),
        owner: id('a'),
        maker: "mara".into(),
        name: "n".into(),
        query: "w=1h".into(),
        sources: "[]".into(),
        span_from: Some(1),
        span_to: Some(2),
        live_window: None,
        note: String::new(),
        made: 1,
        ends,
        opens: 0,
        opened: None,
    };
    shares::add(&mut on, &share('p', 10)).await.unwrap();
    shares::add(&mut on, &share('q', 20)).await.unwrap();
    assert_eq!(shares::list(&mut on, &id('t'), None, 10).await.unwrap(), [share('q', 20)]);
    assert_eq!(shares::list(&mut on, &id('t'), Some(&id('x')), 0).await.unwrap(), []);
    assert_eq!(shares::by_hash(&mut on, &[b'p'; 32], 10).await.unwrap(), None, "over");
    assert_eq!(shares::by_hash(&mut on, &[b'p'; 32], 9).await.unwrap(), Some(share('p', 10)));
    shares::opened(&mut on, &id('p'), 7).await.unwrap();
    let opened = shares::get(&mut on, &id('p')).await.unwrap().expect("there");
    assert_eq!((opened.opens, opened.opened), (1, Some(7)));
    shares::remove(&mut on, &id('p')).await.unwrap();
    shares::forget(&mut on, 19).await.unwrap();
    assert_eq!(shares::leave(&mut on, &id('t'), &id('a')).await.unwrap(), [id('q')]);
    shares::add(&mut on, &share('r', 20)).await.unwrap();
    shares::forget(&mut on, 20).await.unwrap();
    assert_eq!(shares::get(&mut on, &id('r')).await.unwrap(), None);
}

async fn changes_of_runs_are_counted_by_their_versions(records: &Records) {
    let mut on = change(records).await;
    let edit = |letter: char, run: &str, updated, deleted: Option<i64>| RunEditRow {
        id: id(letter),
        run: run.into(),
        team: id('t'),
        machines: r#"{"node":null}"#.into(),
        began: 5,
        ended: Some(9),
        names: r#"{"name":"x"}"#.into(),
        maker: "mara".into(),
        version: 1,
        updated,
        deleted,
        used: deleted.map(|_| r#"{"days":[]}"#.into()),
    };
    assert_eq!(run_edits::state(&mut on).await.unwrap(), (0, 0));
    for row in [edit('e', "one", 10, None), edit('f', "one", 20, Some(20)), edit('g', "two", 30, None)] {
        run_edits::add(&mut on, &row).await.unwrap();
    }
    assert_eq!(run_edits::state(&mut on).await.unwrap(), (3, 3));
    let ids = |rows: Vec<RunEditRow>| rows.into_iter().map(|row| row.id[..1].to_string()).collect::<String>();
    assert_eq!(ids(run_edits::all(&mut on, 2).await.unwrap()), "gf");
    assert_eq!(ids(run_edits::list(&mut on, "one").await.unwrap()), "fe");
    assert_eq!(run_edits::count(&mut on, &id('t')).await.unwrap(), 3);
    let newer = RunEditRow { version: 2, ended: None, ..edit('e', "one", 40, Some(40)) };
    assert!(run_edits::set(&mut on, &newer).await.unwrap() && !run_edits::set(&mut on, &newer).await.unwrap(), "once");
    assert_eq!(run_edits::list(&mut on, "one").await.unwrap(), [newer, edit('f', "one", 20, Some(20))]);
    run_edits::rename(&mut on, "mara", "erased-1").await.unwrap();
    assert_eq!(run_edits::state(&mut on).await.unwrap(), (3, 7), "others read them again");
    run_edits::forget(&mut on, 30).await.unwrap();
    assert_eq!(ids(run_edits::all(&mut on, 9).await.unwrap()), "eg");
}

async fn the_use_of_deleted_runs_is_forgotten_with_its_time_its_machine_and_its_user(records: &Records) {
    let mut on = change(records).await;
    let used = |user: &str| Some(format!(r#"{{"project":"\"user\":\"ann\"","user":{user},"days":[]}}"#));
    for (letter, team, ended, user) in
        [('e', 't', 5, r#""ann""#), ('f', 't', 9, r#""anna""#), ('g', 't', 9, r#""ann""#), ('h', 'u', 9, r#""ann""#)]
    {
        let row = RunEditRow {
            id: id(letter),
            run: "one".into(),
            team: id(team),
            machines: format!(r#"{{"node-{letter}":null}}"#),
            began: 1,
            ended: Some(ended),
            names: "{}".into(),
            maker: "mara".into(),
            version: 1,
            updated: 10,
            deleted: Some(10),
            used: used(user),
        };
        run_edits::add(&mut on, &row).await.unwrap();
    }
    let all = |rows: Vec<RunEditRow>| rows.into_iter().map(|row| row.used).collect::<Vec<_>>();
    run_edits::forget_used(&mut on, 9).await.unwrap();
    run_edits::forget_user(&mut on, &id('t'), r#""ann""#).await.unwrap();
    let left = [None, used(r#""anna""#), used("null"), used(r#""ann""#)];
    assert_eq!(all(run_edits::list(&mut on, "one").await.unwrap()), left);
    assert_eq!(run_edits::state(&mut on).await.unwrap(), (4, 6), "others read them again");
    run_edits::forget_used_of(&mut on, "node").await.unwrap();
    assert_eq!(all(run_edits::list(&mut on, "one").await.unwrap()), left, "the name of another machine");
    run_edits::forget_used_of(&mut on, "node-f").await.unwrap();
    let [first, _, third, fourth] = left;
    assert_eq!(all(run_edits::list(&mut on, "one").await.unwrap()), [first, None, third, fourth]);
}

async fn notes_are_found_by_their_time_and_their_run(records: &Records) {
    let mut on = change(records).await;
    accounts::add(&mut on, &account('a', false)).await.unwrap();
    let note = |letter: char, run: Option<&str>, begins, ends| NoteRow {
        id: id(letter),
        team: id('t'),
        owner: Some(id('a')),
        maker: "mara".into(),
        source: "node".into(),
        run: run.map(Into::into),
        begins,
        ends,
        text: "new PSU".into(),
        version: 1,
        updated: 5,
    };
    for row in [note('e', None, 10, None), note('f', Some("one"), 20, Some(30)), note('g', None, 40, None)] {
        notes::add(&mut on, &row).await.unwrap();
    }
    let ids = |rows: Vec<NoteRow>| rows.into_iter().map(|row| row.id[..1].to_string()).collect::<String>();
    assert_eq!(ids(notes::between(&mut on, (None, None), (0, 99), 9).await.unwrap()), "gfe");
    assert_eq!(ids(notes::between(&mut on, (None, None), (25, 28), 9).await.unwrap()), "f", "it goes on then");
    assert_eq!(ids(notes::between(&mut on, (Some("node"), Some("one")), (0, 99), 9).await.unwrap()), "f");
    assert_eq!(ids(notes::between(&mut on, (None, None), (0, 99), 2).await.unwrap()), "gf");
    assert_eq!(ids(notes::between(&mut on, (Some("other"), None), (0, 99), 9).await.unwrap()), "");
    assert_eq!(notes::of_owner(&mut on, &id('a')).await.unwrap().len(), 3);
    assert_eq!(notes::count(&mut on, &id('t')).await.unwrap(), 3);
    let newer = NoteRow { text: "old PSU".into(), version: 2, ..note('e', None, 10, None) };
    assert!(notes::set(&mut on, &newer).await.unwrap() && !notes::set(&mut on, &newer).await.unwrap(), "once");
    assert_eq!(notes::get(&mut on, &id('e')).await.unwrap(), Some(newer));
    notes::rename(&mut on, "mara", "erased-1").await.unwrap();
    assert_eq!(notes::get(&mut on, &id('e')).await.unwrap().expect("there").maker, "erased-1");
    accounts::remove(&mut on, &id('a')).await.unwrap();
    assert_eq!(notes::get(&mut on, &id('e')).await.unwrap().expect("there").owner, None);
    notes::remove_of(&mut on, "node", Some("one")).await.unwrap();
    assert_eq!(ids(notes::between(&mut on, (None, None), (0, 99), 9).await.unwrap()), "ge");
    notes::remove(&mut on, &id('g')).await.unwrap();
    notes::remove_of(&mut on, "node", None).await.unwrap();
    assert_eq!(notes::count(&mut on, &id('t')).await.unwrap(), 0);
}

async fn a_change_is_whole_or_not_at_all_and_a_reader_changes_nothing(records: &Records) {
    let mut dropped = change(records).await;
    accounts::add(&mut dropped, &account('a', true)).await.unwrap();
    drop(dropped);
    let mut reader = records.read().await.expect("a reader");
    assert_eq!(accounts::count(&mut reader).await.unwrap(), 0);
    assert!(accounts::add(&mut reader, &account('a', true)).await.is_err());
    drop(reader);
    let mut kept = change(records).await;
    accounts::add(&mut kept, &account('a', true)).await.unwrap();
    kept.commit().await.unwrap();
    assert_eq!(accounts::count(&mut records.read().await.unwrap()).await.unwrap(), 1);
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_is_for_its_owner_alone_and_holds_what_was_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let records = Records::open(folder.path()).await.expect("a fresh database");
    begin(&records).await;
    for entry in std::fs::read_dir(folder.path()).expect("the folder") {
        use std::os::unix::fs::PermissionsExt;
        let entry = entry.expect("a file");
        let mode = entry.metadata().expect("a file").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{} is for its owner alone", entry.path().display());
    }
    records.close().await;
    let records = Records::open(folder.path()).await.expect("opened again");
    assert_eq!(teams::all(&mut records.read().await.unwrap()).await.unwrap().len(), 1);
}

async fn what_was_used_adds_up_or_is_the_largest_of_its_day(records: &Records) {
    let mut on = change(records).await;
    sources::add(&mut on, &source('s')).await.unwrap();
    assert_eq!(sources::homes(&mut on).await.unwrap(), [(id('s'), id('t'))]);
    let of = |day, kind: &str, measure: &str| Used {
        day,
        team: id('t'),
        kind: kind.into(),
        subject: if kind == "day" { String::new() } else { id('s') },
        measure: measure.into(),
    };
    usage::add(&mut on, &of(1, "day", "samples"), 2.0).await.unwrap();
    usage::add(&mut on, &of(1, "day", "samples"), 3.5).await.unwrap();
    usage::add(&mut on, &of(1, "source", "samples"), 1.0).await.unwrap();
    for value in [7.0, 9.0, 8.0] {
        usage::raise(&mut on, &of(2, "day", "series"), value).await.unwrap();
    }
    let all = usage::list(&mut on, Some(&id('t')), "day", (0, 9), 10).await.unwrap();
    assert_eq!(all, [(of(1, "day", "samples"), 5.5), (of(2, "day", "series"), 9.0)]);
    assert_eq!(usage::list(&mut on, None, "day", (2, 2), 10).await.unwrap(), [(of(2, "day", "series"), 9.0)]);
    assert_eq!(usage::list(&mut on, Some(&id('x')), "day", (0, 9), 10).await.unwrap(), []);
    assert_eq!(usage::list(&mut on, None, "source", (0, 9), 10).await.unwrap(), [(of(1, "source", "samples"), 1.0)]);
    usage::forget(&mut on, 2).await.unwrap();
    assert_eq!(usage::list(&mut on, None, "day", (0, 9), 10).await.unwrap(), [(of(2, "day", "series"), 9.0)]);
}

async fn rows_are_followed_and_what_an_account_has_is_found(records: &Records) {
    let mut on = change(records).await;
    assert!(meta::bytes(&mut on).await.unwrap() > 4_096);
    for t in 1..=3 {
        let entry = AuditRow {
            id: 0,
            t,
            who: "mara".into(),
            by: "b".into(),
            network: "n".into(),
            action: "a".into(),
            team: None,
            object: "o".into(),
            before: None,
            after: None,
            result: "ok".into(),
        };
        audit::add(&mut on, &entry).await.unwrap();
    }
    let all = audit::after(&mut on, 0, 10).await.unwrap();
    assert_eq!(all.iter().map(|row| row.t).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(audit::after(&mut on, all[0].id, 1).await.unwrap(), [all[1].clone()]);
    assert_eq!(audit::count_after(&mut on, all[0].id).await.unwrap(), 2);
    accounts::add(&mut on, &account('a', false)).await.unwrap();
    let session = Session {
        id_hash: vec![7; 32],
        account: id('a'),
        kind: "password".into(),
        made: 1,
        proved: 1,
        seen: 1,
        ends: 9,
        network: "n".into(),
        agent: String::new(),
    };
    sessions::add(&mut on, &session).await.unwrap();
    sessions::set_agent(&mut on, &[7; 32], "curl/8").await.unwrap();
    assert_eq!(sessions::get(&mut on, &[7; 32]).await.unwrap().expect("there").agent, "curl/8");
    assert_eq!(views::of_owner(&mut on, &id('a')).await.unwrap(), []);
    assert_eq!(shares::of_owner(&mut on, &id('a')).await.unwrap(), []);
}

fn channel(letter: char) -> ChannelRow {
    ChannelRow {
        id: id(letter),
        team: id('t'),
        maker: "mara".into(),
        name: format!("channel {letter}"),
        kind: "slack".into(),
        target: "…h4Fz".into(),
        settings: "{}".into(),
        sealed: Some(vec![0, 255, 7]),
        is_default: true,
        tested: None,
        updated: 5,
    }
}

async fn rules_silences_and_channels_are_one_teams(records: &Records) {
    let mut on = change(records).await;
    accounts::add(&mut on, &account('a', false)).await.unwrap();
    assert_eq!(accounts::tells(&mut on, None).await.unwrap(), [], "nobody asked for anything");
    let tells = Tells { id: id('a'), email: None, tell_finished: false, tell_crashed: true };
    accounts::set_tells(&mut on, &id('a'), (false, true)).await.unwrap();
    for whose in [None, Some(id('a'))] {
        assert_eq!(accounts::tells(&mut on, whose.as_deref()).await.unwrap(), std::slice::from_ref(&tells));
    }
    let mail = async |on: &mut records::Change| accounts::tells(on, None).await.unwrap().remove(0).email;
    accounts::set_email(&mut on, &id('a'), Some("typed@example.org")).await.unwrap();
    assert_eq!(mail(&mut on).await, None, "anybody can type a stranger's");
    accounts::vouch_email(&mut on, &id('a'), Some("Typed@Example.org")).await.unwrap();
    assert_eq!(mail(&mut on).await.as_deref(), Some("typed@example.org"));
    accounts::set_email(&mut on, &id('a'), None).await.unwrap();
    accounts::vouch_email(&mut on, &id('a'), Some("own@example.org")).await.unwrap();
    accounts::vouch_email(&mut on, &id('a'), None).await.unwrap();
    assert_eq!(mail(&mut on).await.as_deref(), Some("own@example.org"), "there was none");
    accounts::set_tells(&mut on, &id('a'), (false, false)).await.unwrap();
    assert_eq!(accounts::tells(&mut on, None).await.unwrap(), []);
    assert_eq!(accounts::tells(&mut on, Some(&id('a'))).await.unwrap().len(), 1);
    accounts::set(&mut on, &id('a'), false, "disabled").await.unwrap();
    assert_eq!(accounts::tells(&mut on, Some(&id('a'))).await.unwrap(), [], "who may not sign in is told nothing");

    let rule = |letter: char| RuleRow {
        id: id(letter),
        team: id('t'),
        owner: Some(id('a')),
        maker: "mara".into(),
        name: format!("rule {letter}"),
        body: "{}".into(),
        version: 1,
        updated: 5,
    };
    rules::add(&mut on, &rule('b')).await.unwrap();
    rules::add(&mut on, &rule('c')).await.unwrap();
    on.commit().await.expect("written");
    let again = RuleRow { id: id('d'), ..rule('c') };
    assert!(rules::add(&mut *change(records).await, &again).await.expect_err("the name is taken").is_taken());
    let mut on = change(records).await;
    assert_eq!(rules::list(&mut on, None).await.unwrap(), [rule('b'), rule('c')]);
    assert_eq!(rules::list(&mut on, Some("other")).await.unwrap(), []);
    assert_eq!(rules::count(&mut on, &id('t')).await.unwrap(), 2);
    let newer = RuleRow { version: 2, name: "newer".into(), body: "{\"a\":1}".into(), updated: 6, ..rule('c') };
    assert!(rules::set(&mut on, &newer).await.unwrap() && !rules::set(&mut on, &newer).await.unwrap(), "once");
    assert_eq!(rules::get(&mut on, &id('c')).await.unwrap(), Some(newer.clone()));
    rules::leave(&mut on, Some("other"), &id('a'), "mara (left)").await.unwrap();
    assert_eq!(rules::get(&mut on, &id('c')).await.unwrap(), Some(newer.clone()));
    rules::leave(&mut on, None, &id('a'), "mara (left)").await.unwrap();
    rules::rename(&mut on, "mara (left)", "erased-1").await.unwrap();
    let left = RuleRow { owner: None, maker: "erased-1".into(), ..newer };
    assert_eq!(rules::get(&mut on, &id('c')).await.unwrap(), Some(left));
    assert!(rules::remove(&mut on, &id('c')).await.unwrap() && !rules::remove(&mut on, &id('c')).await.unwrap());

    let silence = |letter: char, begins, ends| SilenceRow {
        id: id(letter),
        team: id('t'),
        maker: "mara".into(),
        labels: "{}".into(),
        begins,
        ends,
        comment: "new PSU".into(),
        held: 0,
    };
    for row in [silence('e', 10, 20), silence('f', 30, 40)] {
        silences::add(&mut on, &row).await.unwrap();
    }
    let ids = |rows: Vec<SilenceRow>| rows.into_iter().map(|row| row.id[..1].to_string()).collect::<String>();
    assert_eq!(ids(silences::list(&mut on, Some(&id('t')), 0, 9).await.unwrap()), "fe");
    assert_eq!(ids(silences::list(&mut on, None, 20, 9).await.unwrap()), "f", "the other is over");
    assert_eq!(silences::list(&mut on, Some("other"), 0, 9).await.unwrap(), []);
    assert_eq!(silences::count(&mut on, &id('t'), 20).await.unwrap(), 1);
    silences::held(&mut on, &id('e'), 2).await.unwrap();
    assert!(
        silences::end(&mut on, &id('e'), 15).await.unwrap() && !silences::end(&mut on, &id('e'), 15).await.unwrap()
    );
    assert!(silences::end(&mut on, &id('f'), 16).await.unwrap());
    silences::rename(&mut on, "mara", "erased-1").await.unwrap();
    let ended = silences::get(&mut on, &id('e')).await.unwrap().expect("there");
    assert_eq!((ended.begins, ended.ends, ended.held, ended.maker.as_str()), (10, 15, 2, "erased-1"));
    let never = silences::get(&mut on, &id('f')).await.unwrap().expect("there");
    assert_eq!((never.begins, never.ends), (16, 16), "one that had not begun never does");
    silences::forget(&mut on, 16).await.unwrap();
    assert_eq!(ids(silences::list(&mut on, None, 0, 9).await.unwrap()), "f");

    channels::add(&mut on, &channel('g')).await.unwrap();
    channels::add(&mut on, &channel('h')).await.unwrap();
    assert_eq!(channels::list(&mut on, None).await.unwrap(), [channel('g'), channel('h')]);
    assert_eq!(channels::list(&mut on, Some("other")).await.unwrap(), []);
    assert_eq!(channels::count(&mut on, &id('t')).await.unwrap(), 2);
    let open = ChannelRow { kind: "browser".into(), sealed: None, is_default: false, ..channel('h') };
    channels::set(&mut on, &open).await.unwrap();
    assert_eq!(channels::get(&mut on, &id('h')).await.unwrap(), Some(open.clone()));
    channels::rename(&mut on, "mara", "erased-1").await.unwrap();
    assert_eq!(channels::get(&mut on, &id('h')).await.unwrap().expect("there").maker, "erased-1");
    channels::rename(&mut on, "erased-1", "mara").await.unwrap();
    assert!(channels::test(&mut on, &id('h'), 100, 90).await.unwrap());
    assert!(!channels::test(&mut on, &id('h'), 105, 95).await.unwrap(), "too soon");
    assert!(channels::test(&mut on, &id('h'), 110, 100).await.unwrap());
    assert!(channels::test(&mut on, &id('h'), 20, 10).await.unwrap(), "the clock was set back");
    assert!(channels::remove(&mut on, &id('h')).await.unwrap() && !channels::remove(&mut on, &id('h')).await.unwrap());
    on.commit().await.expect("written");
    let taken = ChannelRow { id: id('i'), ..channel('g') };
    assert!(channels::add(&mut *change(records).await, &taken).await.expect_err("the name is taken").is_taken());
    let mut on = change(records).await;
    teams::remove(&mut on, &id('t')).await.unwrap();
    let left = (rules::list(&mut on, None).await.unwrap().len(), channels::list(&mut on, None).await.unwrap().len());
    assert_eq!((left, silences::get(&mut on, &id('f')).await.unwrap()), ((0, 0), None), "they go with their team");
}

async fn alerts_are_one_row_each_and_seen_by_whose_they_are(records: &Records) {
    let mut on = change(records).await;
    let alert = |letter: char, team: Option<char>, source: Option<char>, began| AlertRow {
        id: id(letter),
        team: team.map(id),
        rule: "disk-full".into(),
        subject: format!("node-{letter}"),
        source: source.map(id),
        run: (letter == 'b').then(|| "run-1".into()),
        severity: "warning".into(),
        state: "firing".into(),
        began,
        ended: None,
        body: "{}".into(),
        acked_by: None,
        acked_at: None,
        updated: 1,
        heard: 0,
        held: String::new(),
    };
    teams::add(&mut on, &Team { id: id('o'), name: "other".into(), settings: "{}".into() }).await.unwrap();
    let all = [
        alert('a', None, Some('s'), 1),
        alert('b', Some('t'), Some('s'), 2),
        alert('c', Some('o'), Some('s'), 3),
        alert('d', Some('t'), Some('x'), 4),
        alert('e', None, Some('x'), 5),
        alert('f', Some('t'), None, 6),
        alert('g', None, None, 7),
    ];
    for row in &all {
        alerts::put(&mut on, row).await.unwrap();
    }
    let ids = |rows: Vec<AlertRow>| rows.into_iter().map(|row| row.id[..1].to_string()).collect::<String>();
    let filter = |sources: &[char], teams: &[char]| AlertFilter {
        sources: Some(sources.iter().copied().map(id).collect()),
        teams: Some(teams.iter().copied().map(id).collect()),
        ..AlertFilter::default()
    };
    assert_eq!(ids(alerts::newest(&mut on, &AlertFilter::default(), 9).await.unwrap()), "gfedcba");
    for (sources, teams, seen) in
        [("s", "t", "fba"), ("s", "o", "ca"), ("sx", "to", "fedcba"), ("", "t", "f"), ("", "", ""), ("x", "", "e")]
    {
        let filter = filter(&sources.chars().collect::<Vec<_>>(), &teams.chars().collect::<Vec<_>>());
        let found = ids(alerts::newest(&mut on, &filter, 9).await.unwrap());
        assert_eq!(found, seen, "machines {sources:?}, teams {teams:?}");
        assert_eq!(alerts::count(&mut on, &filter).await.unwrap(), seen.len() as i64);
    }
    let over = AlertRow { state: "resolved".into(), ended: Some(5), severity: "critical".into(), ..all[1].clone() };
    alerts::put(&mut on, &over).await.unwrap();
    assert_eq!(alerts::get(&mut on, &id('b')).await.unwrap(), Some(over), "the same row");
    for (filter, found) in [
        (AlertFilter { state: Some("resolved".into()), ..AlertFilter::default() }, "b"),
        (AlertFilter { rule: Some("none".into()), ..AlertFilter::default() }, ""),
        (AlertFilter { source: Some(id('x')), ..AlertFilter::default() }, "ed"),
        (AlertFilter { run: Some("run-1".into()), ..AlertFilter::default() }, "b"),
        (AlertFilter { from: Some(6), to: Some(2), ..AlertFilter::default() }, "a"),
        (AlertFilter { from: Some(5), to: Some(2), ..AlertFilter::default() }, "ba"),
    ] {
        assert_eq!(ids(alerts::newest(&mut on, &filter, 9).await.unwrap()), found, "{filter:?}");
    }
    assert_eq!(ids(alerts::newest(&mut on, &AlertFilter::default(), 2).await.unwrap()), "gf");
    assert_eq!(alerts::open(&mut on).await.unwrap().len(), 6);
    let by_rule = alerts::by_rule(&mut on, &AlertFilter::default()).await.unwrap();
    assert_eq!(by_rule, [("disk-full".to_string(), 6, 7)]);
    assert_eq!(alerts::by_rule(&mut on, &filter(&['s'], &['t'])).await.unwrap(), [("disk-full".to_string(), 2, 6)]);

    assert!(alerts::ack(&mut on, &id('a'), "mara", 9).await.unwrap());
    assert!(!alerts::ack(&mut on, &id('a'), "sofia", 10).await.unwrap(), "somebody has it");
    assert!(!alerts::ack(&mut on, &id('b'), "mara", 9).await.unwrap(), "it is over");
    alerts::put(&mut on, &all[0]).await.unwrap();
    assert_eq!(alerts::acked(&mut on).await.unwrap(), [(id('a'), "mara".to_string(), 9)], "it stays");
    let event =
        |kind: &str| AlertEvent { alert: id('a'), t: 9, kind: kind.into(), who: "mara".into(), words: "".into() };
    for kind in ["firing", "acked"] {
        alerts::happened(&mut on, &event(kind)).await.unwrap();
    }
    alerts::rename(&mut on, "mara", "erased-1").await.unwrap();
    alerts::rename_in_events(&mut on, "mara", "erased-1").await.unwrap();
    assert_eq!(alerts::acked(&mut on).await.unwrap()[0].1, "erased-1");
    let happened = alerts::events(&mut on, &id('a'), 9).await.unwrap();
    let told: Vec<_> = happened.iter().map(|event| (event.kind.as_str(), event.who.as_str())).collect();
    assert_eq!(told, [("firing", "erased-1"), ("acked", "erased-1")]);
    assert_eq!(alerts::events(&mut on, &id('a'), 1).await.unwrap().len(), 1);

    // The notifier processes each in its current state, and again those that were written meanwhile.
    assert_eq!(alerts::unheard(&mut on, 9).await.unwrap().len(), 7);
    for (letter, state) in [('a', "firing"), ('b', "firing"), ('c', "firing")] {
        alerts::set_heard(&mut on, &id(letter), state, 1).await.unwrap();
    }
    alerts::put(&mut on, &AlertRow { severity: "info".into(), updated: 2, ..all[2].clone() }).await.unwrap();
    alerts::put(&mut on, &AlertRow { heard: alerts::NOTIFIED_STATE, ..all[3].clone() }).await.unwrap();
    let heard: Vec<_> = alerts::unheard(&mut on, 9).await.unwrap().into_iter().map(|row| (row.id, row.heard)).collect();
    assert_eq!(heard, [(id('b'), 1), (id('e'), 0), (id('f'), 0), (id('g'), 0), (id('c'), 1)], "b is over by now");
    alerts::set_held(&mut on, &id('a'), "silenced").await.unwrap();
    alerts::put(&mut on, &all[0]).await.unwrap();
    assert_eq!(alerts::get(&mut on, &id('a')).await.unwrap().unwrap().held, "silenced", "it stays, too");

    alerts::forget(&mut on, 5).await.unwrap();
    assert!(alerts::get(&mut on, &id('b')).await.unwrap().is_some());
    alerts::forget(&mut on, 6).await.unwrap();
    assert!(alerts::get(&mut on, &id('b')).await.unwrap().is_none());
    assert_eq!(alerts::remove_source(&mut on, &id('s')).await.unwrap(), 2);
    assert_eq!(alerts::events(&mut on, &id('a'), 9).await.unwrap(), [], "they go with their alert");

    let kept = |key: &str, updated| KeptState { key: key.into(), body: vec![0, updated as u8], updated };
    for state in [kept("node-1", 1), kept("node-2", 2), kept("node-1", 3)] {
        alerts::keep_state(&mut on, &state).await.unwrap();
    }
    assert_eq!(alerts::states(&mut on).await.unwrap(), [kept("node-1", 3), kept("node-2", 2)]);
    alerts::forget_states(&mut on, 3).await.unwrap();
    assert_eq!(alerts::states(&mut on).await.unwrap(), [kept("node-1", 3)]);
    alerts::drop_state(&mut on, "node-1").await.unwrap();
    assert_eq!(alerts::states(&mut on).await.unwrap(), []);
}

async fn notices_of_a_group_go_out_one_by_one_and_in_their_order(records: &Records) {
    let mut on = change(records).await;
    for letter in ['c', 'd'] {
        channels::add(&mut on, &channel(letter)).await.unwrap();
    }
    let notice = |letter: char, channel: char, group: &str, seq| OutboxRow {
        id: id(letter),
        channel: id(channel),
        group_key: group.into(),
        seq,
        kind: "firing".into(),
        title: format!("notice {letter}"),
        body: "{}".into(),
        made: 10 + seq,
        state: "waiting".into(),
        tries: 0,
        next: 20,
        lease: None,
        holder: None,
        tried: None,
        words: String::new(),
    };
    let rows = [
        notice('1', 'c', "one", 1),
        notice('2', 'c', "one", 2),
        notice('3', 'c', "two", 1),
        notice('4', 'd', "one", 1),
    ];
    for row in &rows {
        outbox::add(&mut on, row).await.unwrap();
    }
    outbox::add(&mut on, &OutboxRow { title: "other".into(), ..rows[0].clone() }).await.unwrap();
    assert_eq!(outbox::get(&mut on, &id('1')).await.unwrap(), Some(rows[0].clone()), "written once");
    on.commit().await.expect("written");

    let mut on = change(records).await;
    let mut lease = async |now, at_once| {
        let row = outbox::lease(&mut on, "me", (now, now + 60), at_once).await.unwrap();
        row.map(|row| (row.id[..1].to_string(), row.tries))
    };
    assert_eq!(lease(19, 4).await, None, "not before its time");
    assert_eq!(lease(20, 4).await, Some(("1".into(), 1)));
    assert_eq!(lease(20, 1).await, Some(("4".into(), 1)), "the first channel has one in hand");
    assert_eq!(lease(20, 4).await, Some(("3".into(), 1)));
    assert_eq!(lease(20, 4).await, None, "the second of a group waits for the first");
    assert_eq!(lease(80, 4).await, Some(("1".into(), 2)), "a lease ends, and the same goes again");
    assert!(outbox::oldest(&mut on).await.unwrap().is_some());
    assert_eq!(outbox::waiting(&mut on, &id('c'), "one", 81).await.unwrap().len(), 1, "the first is in hand");
    assert!(!outbox::finish(&mut on, (&id('1'), "other"), "sent", "", 81).await.unwrap(), "in another's hand");
    assert!(outbox::again(&mut on, (&id('1'), "me"), 90, "502, again in 9 s", 81).await.unwrap());
    assert!(!outbox::again(&mut on, (&id('1'), "me"), 90, "", 81).await.unwrap(), "in nobody's hand");
    let tried = outbox::last_tried(&mut on).await.unwrap();
    assert_eq!((tried.len(), tried[0].words.as_str(), tried[0].tries), (1, "502, again in 9 s", 2));
    assert!(outbox::lease(&mut on, "me", (89, 149), 4).await.unwrap().is_some_and(|row| row.id == id('3')));
    let first = outbox::lease(&mut on, "me", (91, 151), 4).await.unwrap().expect("due");
    assert_eq!((first.id, first.holder.as_deref(), first.lease), (id('4'), Some("me"), Some(151)));
    let first = outbox::lease(&mut on, "me", (91, 151), 4).await.unwrap().expect("due");
    assert_eq!((first.id, first.words.as_str()), (id('1'), "502, again in 9 s"));
    assert!(outbox::finish(&mut on, (&id('1'), "me"), "sent", "accepted", 92).await.unwrap());
    outbox::add(&mut on, &notice('5', 'c', "one", 3)).await.unwrap();
    let waiting = outbox::waiting(&mut on, &id('c'), "one", 92).await.unwrap();
    assert_eq!(waiting.iter().map(|row| row.seq).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(outbox::fold(&mut on, (&id('c'), "one"), 3, 92).await.unwrap(), 1);
    assert_eq!(outbox::get(&mut on, &id('2')).await.unwrap().map(|row| row.state), Some("folded".into()));
    assert!(outbox::finish(&mut on, (&id('3'), "me"), "failed", "404", 93).await.unwrap());
    let figures =
        |channel, waiting, oldest, sent, failed| ChannelFigures { channel: id(channel), waiting, oldest, sent, failed };
    let both = [figures('c', 1, Some(13), 1, 1), figures('d', 1, Some(11), 0, 0)];
    assert_eq!(outbox::figures(&mut on, 92).await.unwrap(), both);
    assert_eq!(outbox::figures(&mut on, 93).await.unwrap()[0], figures('c', 1, Some(13), 0, 1), "sent before");
    let done = outbox::done_since(&mut on, 93, 9).await.unwrap();
    assert_eq!(done, [(id('3'), id('c'), "failed".to_string())]);
    assert_eq!(outbox::done_since(&mut on, 92, 9).await.unwrap().len(), 2);
    let newest = outbox::newest(&mut on, &id('t'), 12, 9).await.unwrap();
    assert_eq!(newest.iter().map(|row| &row.id[..1]).collect::<Vec<_>>(), ["5", "2"]);
    assert_eq!(outbox::newest(&mut on, &id('x'), 0, 9).await.unwrap(), []);
    outbox::forget_done(&mut on, (&id('c'), "one"), 3).await.unwrap();
    assert_eq!(outbox::get(&mut on, &id('2')).await.unwrap(), None, "done, and of before");
    assert!(outbox::get(&mut on, &id('5')).await.unwrap().is_some(), "it waits");
    outbox::forget(&mut on, 100).await.unwrap();
    assert_eq!(outbox::newest(&mut on, &id('t'), 0, 9).await.unwrap().len(), 2, "what waits stays");
    assert!(outbox::give_up(&mut on, &id('4')).await.unwrap() && !outbox::give_up(&mut on, &id('4')).await.unwrap());
    for _ in 0..2 {
        channels::have_own(&mut on, &id('a'), &id('t'), 9).await.unwrap();
    }
    outbox::add(&mut on, &notice('6', 'a', "mine", 1)).await.unwrap();
    channels::forget_own(&mut on).await.unwrap();
    assert!(outbox::get(&mut on, &id('6')).await.unwrap().is_some(), "what is a person's stays while it is named");
    assert_eq!(channels::get(&mut on, &id('a')).await.unwrap(), None, "and is no channel of the team");
    assert_eq!(
        (channels::list(&mut on, None).await.unwrap().len(), channels::count(&mut on, &id('t')).await.unwrap()),
        (2, 2)
    );
    assert_eq!(outbox::newest(&mut on, &id('t'), 0, 9).await.unwrap().len(), 2, "nor is what it is told");
    channels::remove(&mut on, &id('d')).await.unwrap();
    assert_eq!(outbox::newest(&mut on, &id('t'), 0, 9).await.unwrap().len(), 1, "they go with their channel");
}

async fn a_clock_that_is_set_back_holds_no_notice_up(records: &Records) {
    let mut on = change(records).await;
    channels::add(&mut on, &channel('k')).await.unwrap();
    // Its next try and its lease are of a day when the clock was four hours ahead.
    let hour = 3_600_000;
    let notice = OutboxRow {
        id: id('7'),
        channel: id('k'),
        group_key: "one".into(),
        seq: 1,
        kind: "firing".into(),
        title: "notice".into(),
        body: "{}".into(),
        made: 4 * hour,
        state: "waiting".into(),
        tries: 0,
        next: 4 * hour,
        lease: None,
        holder: None,
        tried: None,
        words: String::new(),
    };
    outbox::add(&mut on, &notice).await.unwrap();
    let mut lease = async |now| outbox::lease(&mut on, "me", (now, now + 60), 4).await.unwrap().map(|row| row.id);
    assert_eq!(lease(3 * hour).await, None, "a pause may last an hour");
    assert_eq!(lease(hour).await, Some(id('7')));
    assert_eq!(lease(hour).await, None, "it is in hand");
    assert_eq!(lease(4 * hour).await, Some(id('7')), "that lease has expired");
    assert_eq!(lease(2 * hour).await, Some(id('7')), "this one is of a time to come");
}

async fn what_only_one_may_do_is_done_by_one(records: &Records) {
    let mut on = change(records).await;
    assert!(leases::take(&mut on, "rules:t", "a", (0, 15)).await.unwrap());
    assert!(!leases::take(&mut on, "rules:t", "b", (14, 29)).await.unwrap());
    assert!(leases::take(&mut on, "rules:t", "a", (14, 29)).await.unwrap(), "kept");
    assert!(leases::take(&mut on, "rules:t", "b", (29, 44)).await.unwrap(), "over");
    leases::give_back(&mut on, "rules:t", "a").await.unwrap();
    assert!(!leases::take(&mut on, "rules:t", "a", (30, 45)).await.unwrap(), "another's is not given back");
    leases::give_back(&mut on, "rules:t", "b").await.unwrap();
    assert!(leases::take(&mut on, "rules:t", "a", (30, 45)).await.unwrap());
}

async fn who_judges_a_machine_follows_its_link_and_else_is_who_tells(records: &Records) {
    let mut on = change(records).await;
    for letter in ['m', 'n', 'o'] {
        sources::add(&mut on, &source(letter)).await.unwrap();
    }
    for (hub, until) in [("one", 15), ("two", 30), ("three", 30)] {
        assert!(leases::take(&mut on, &links::lease_of(hub), hub, (0, until)).await.unwrap());
    }
    links::take(&mut on, &id('m'), "one", 1).await.unwrap();
    links::take(&mut on, &id('n'), "two", 1).await.unwrap();
    let first_seen = source('m').first_seen;
    for (hub, since, new) in [("one", first_seen, "m"), ("two", first_seen + 1, ""), ("one", 0, "")] {
        let found = watched::follow_links(&mut on, hub, since).await.unwrap();
        assert_eq!(
            found.concat().replace(char::is_numeric, "").chars().next().map(String::from).unwrap_or_default(),
            new
        );
    }
    // Only machines that never had a link here are assigned to the caller; the end of a link changes nothing.
    let own = |all: Vec<String>| {
        all.iter().filter(|id| "mno".contains(&id[..1])).map(|id| id[..1].to_string()).collect::<String>()
    };
    links::give_back(&mut on, &id('m'), "one", 9).await.unwrap();
    watched::take_left(&mut on, "three", 10).await.unwrap();
    assert_eq!(own(watched::list(&mut on, "one").await.unwrap()), "m");
    assert_eq!(own(watched::list(&mut on, "three").await.unwrap()), "o");
    // A hub stopped.
    assert_eq!(watched::take_left(&mut on, "three", 20).await.unwrap(), 1);
    assert_eq!(own(watched::list(&mut on, "three").await.unwrap()), "mo");
    links::take(&mut on, &id('m'), "two", 21).await.unwrap();
    watched::follow_links(&mut on, "two", 0).await.unwrap();
    assert_eq!(own(watched::list(&mut on, "two").await.unwrap()), "mn");
    watched::take(&mut on, &id('o'), "two").await.unwrap();
    assert_eq!(own(watched::list(&mut on, "two").await.unwrap()), "mno");
    assert_eq!(watched::list(&mut on, "one").await.unwrap(), [""; 0]);
}

async fn a_link_is_one_hubs_and_void_without_its_lease(records: &Records) {
    let mut on = change(records).await;
    for letter in ['s', 'z'] {
        sources::add(&mut on, &source(letter)).await.unwrap();
    }
    assert!(leases::take(&mut on, &links::lease_of("a"), "node-1", (0, 15)).await.unwrap());
    assert!(leases::take(&mut on, &links::lease_of("b"), "node-2", (5, 20)).await.unwrap());
    assert!(leases::take(&mut on, "rules:t", "b", (5, 20)).await.unwrap());
    links::take(&mut on, &id('s'), "a", 1).await.unwrap();
    links::take(&mut on, &id('z'), "b", 2).await.unwrap();
    let link = |letter, hub: &str, since, alive| LinkRow { source: id(letter), hub: hub.into(), since, alive };
    assert_eq!(links::all(&mut on, 14).await.unwrap(), [link('s', "a", 1, true), link('z', "b", 2, true)]);
    assert_eq!(links::all(&mut on, 15).await.unwrap(), [link('s', "a", 1, false), link('z', "b", 2, true)]);
    let hubs = links::hubs(&mut on, 14).await.unwrap();
    assert_eq!(hubs, [("a".into(), "node-1".into()), ("b".into(), "node-2".into())]);
    assert_eq!(links::hubs(&mut on, 15).await.unwrap(), [("b".into(), "node-2".into())]);
    links::take(&mut on, &id('s'), "b", 16).await.unwrap();
    assert_eq!(links::find(&mut on, &id('s'), 17).await.unwrap(), Some(link('s', "b", 16, true)));
    assert!(!links::give_back(&mut on, &id('s'), "a", 99).await.unwrap(), "it is another's now");
    assert!(!links::give_back(&mut on, &id('s'), "b", 15).await.unwrap(), "it was taken again since");
    assert!(links::give_back(&mut on, &id('s'), "b", 16).await.unwrap());
    assert_eq!(links::find(&mut on, &id('s'), 17).await.unwrap(), None);
    links::forget(&mut on, 18).await.unwrap();
    assert_eq!(links::all(&mut on, 17).await.unwrap(), [link('z', "b", 2, true)], "its hub is there");
    links::forget(&mut on, 21).await.unwrap();
    assert_eq!(links::all(&mut on, 17).await.unwrap(), []);
    links::take(&mut on, &id('z'), "b", 22).await.unwrap();
    links::take(&mut on, &id('s'), "a", 22).await.unwrap();
    links::give_all_back(&mut on, "b").await.unwrap();
    assert_eq!(links::all(&mut on, 23).await.unwrap(), [link('s', "a", 22, false)]);
    sources::remove(&mut on, &id('s')).await.unwrap();
    assert_eq!(links::all(&mut on, 23).await.unwrap(), [], "it goes with its machine");
}

async fn what_the_store_has_taken_is_spans_that_do_not_touch(records: &Records) {
    let mut on = change(records).await;
    for letter in ['s', 'z'] {
        sources::add(&mut on, &source(letter)).await.unwrap();
    }
    coverage::add(&mut on, &id('z'), 1, 1_000).await.unwrap();
    let mut spans = async |first, last| {
        coverage::add(&mut on, &id('s'), first, last).await.unwrap();
        coverage::list(&mut on, &id('s')).await.unwrap()
    };
    assert_eq!(spans(10, 19).await, [(10, 19)]);
    assert_eq!(spans(30, 39).await, [(10, 19), (30, 39)]);
    assert_eq!(spans(40, 49).await, [(10, 19), (30, 49)], "it goes on");
    assert_eq!(spans(9, 9).await, [(9, 19), (30, 49)]);
    assert_eq!(spans(31, 45).await, [(9, 19), (30, 49)], "it is there");
    assert_eq!(spans(60, 69).await, [(9, 19), (30, 49), (60, 69)]);
    assert_eq!(spans(20, 59).await, [(9, 69)], "nothing lacks between");
    assert_eq!(spans(i64::MAX, i64::MAX).await, [(9, 69), (i64::MAX, i64::MAX)]);
    coverage::drop_below(&mut on, &id('s'), 9).await.unwrap();
    coverage::drop_below(&mut on, &id('s'), 50).await.unwrap();
    assert_eq!(coverage::list(&mut on, &id('s')).await.unwrap(), [(50, 69), (i64::MAX, i64::MAX)]);
    coverage::drop_below(&mut on, &id('s'), 70).await.unwrap();
    assert_eq!(coverage::list(&mut on, &id('s')).await.unwrap(), [(i64::MAX, i64::MAX)]);
    assert_eq!(coverage::list(&mut on, &id('z')).await.unwrap(), [(1, 1_000)], "another machine's");
    assert!(coverage::add(&mut on, &id('z'), 2_000, 1_999).await.is_err());
}

#[tokio::test]
async fn a_database_in_memory_holds_what_was_written_and_leaves_no_file() {
    let records = Records::in_memory().await.expect("a fresh one");
    begin(&records).await;
    let mut dropped = change(&records).await;
    channels::add(&mut dropped, &channel('c')).await.unwrap();
    drop(dropped);
    assert_eq!(channels::list(&mut records.read().await.unwrap(), None).await.unwrap(), [], "nothing was changed");
    let mut kept = change(&records).await;
    channels::add(&mut kept, &channel('c')).await.unwrap();
    kept.commit().await.unwrap();
    assert_eq!(channels::list(&mut records.read().await.unwrap(), None).await.unwrap(), [channel('c')]);
    assert!(!std::path::Path::new(":memory:").exists());
    let other = Records::in_memory().await.expect("another one");
    assert_eq!(teams::all(&mut other.read().await.unwrap()).await.unwrap(), [], "each has its own");
}

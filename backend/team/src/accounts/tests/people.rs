//! Setup codes, passwords, sessions, keys of programs.

use super::*;
use shared::people::{NewServiceKey, PersonChange, Reset};
use shared::session::Again;

fn setup(code: Secret, password: &str) -> Setup {
    Setup { code, name: "mara".into(), password: secret(password) }
}

#[tokio::test]
async fn guesses_of_one_name_from_many_networks_are_few_and_lock_nobody_out() {
    let (hub, _) = Hub::with_admin().await;
    hub.add("vera", Role::Viewer, false).await;
    hub.add("mike", Role::Viewer, false).await;
    let from = async |name: &str, password: &str, last: u8| {
        let wanted = SignIn { name: name.into(), password: Secret::new(password) };
        hub.accounts.sign_in(&wanted, &network(last), None).await.map(|_| 200).unwrap_or_else(|denied| denied.status())
    };
    assert_eq!(from("vera", PASSWORD, 1).await, 200, "she has signed in from there");
    let mut looked_at = 0;
    for last in 10..60 {
        looked_at += u32::from(from("vera", "guess of a password", last).await == 401);
    }
    assert_eq!(looked_at, 30, "of 50 networks");
    assert_eq!(from("vera", PASSWORD, 60).await, 429, "a new network waits, like those who guess");
    assert_eq!(from("vera", PASSWORD, 1).await, 200, "one that is known does not");
    assert_eq!(from("mike", PASSWORD, 60).await, 200, "nor does another name");
    for (wait, last) in [(10, 61), (10, 62)] {
        hub.pass(Duration::from_secs(wait));
        assert_eq!(from("vera", "guess of a password", last).await, 401, "one more each 10 s");
        assert_eq!(from("vera", "guess of a password", last).await, 429);
    }
    hub.pass(Duration::from_secs(10));
    assert_eq!(from("vera", PASSWORD, 60).await, 200, "she is not locked out");
    // An unknown name gets the same answer.
    let mut looked_at = 0;
    for last in 100..150 {
        looked_at += u32::from(from("nobody", "guess of a password", last).await == 401);
    }
    assert_eq!(looked_at, 30);
}

#[tokio::test]
async fn the_setup_code_works_once_within_a_day_and_a_new_start_ends_the_old() {
    let hub = Hub::new().await;
    assert!(!hub.accounts.is_set_up());
    let old = hub.accounts.setup_code().await.unwrap().expect("a code");
    let code = hub.accounts.setup_code().await.unwrap().expect("a code");
    assert_eq!(code.reveal().len(), 32, "160 bits");
    for wrong in [old, secret(""), secret(&code.reveal()[1..]), secret(&code.reveal().to_uppercase())] {
        let denied = hub.accounts.setup(&setup(wrong, PASSWORD), &network(1)).await.expect_err("a wrong code");
        assert_eq!(denied.status(), 401);
    }
    let weak = hub.accounts.setup(&setup(code.clone(), "password1234"), &network(1)).await.expect_err("a weak one");
    assert_eq!(weak.status(), 400, "and the code still holds");
    let begun = hub.accounts.setup(&setup(code.clone(), PASSWORD), &network(1)).await.expect("the first admin");
    assert!(begun.principal.is_hub_admin() && hub.accounts.is_set_up());
    assert_eq!(hub.accounts.setup(&setup(code, PASSWORD), &network(1)).await.expect_err("used").status(), 401);
    assert_eq!(hub.accounts.setup_code().await, Ok(None), "there is an account");

    let late = Hub::new().await;
    let code = late.accounts.setup_code().await.unwrap().expect("a code");
    late.pass(minutes(24 * 60));
    assert_eq!(late.accounts.setup(&setup(code, PASSWORD), &network(1)).await.expect_err("over").status(), 401);
}

#[tokio::test]
async fn two_who_have_the_setup_code_make_one_admin() {
    let hub = Hub::new().await;
    let code = hub.accounts.setup_code().await.unwrap().expect("a code");
    let other = Setup { code: code.clone(), name: "eve".into(), password: secret(PASSWORD) };
    let (mara, eve) = (setup(code, PASSWORD), network(2));
    let (one, two) = tokio::join!(hub.accounts.setup(&mara, &eve), hub.accounts.setup(&other, &eve));
    assert_eq!([&one, &two].iter().filter(|begun| begun.is_ok()).count(), 1);
    assert_eq!(hub.accounts.people(&Principal::local(0)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn codes_are_not_guessed() {
    let hub = Hub::new().await;
    hub.accounts.setup_code().await.unwrap();
    for _ in 0..30 {
        // A password that is too short costs nothing and reveals nothing about the code.
        let denied = hub.accounts.setup(&setup(secret("guess"), "short"), &network(1)).await.expect_err("a guess");
        assert_eq!(denied.status(), 400);
    }
    let denied = hub.accounts.setup(&setup(secret("guess"), PASSWORD), &network(1)).await.expect_err("too often");
    assert_eq!((denied.status(), denied.retry_after().is_some()), (429, true));
    let other = hub.accounts.setup(&setup(secret("guess"), PASSWORD), &network(2)).await.expect_err("a guess");
    assert_eq!(other.status(), 401, "another network is not concerned");
}

#[tokio::test]
async fn whatever_is_wrong_at_a_sign_in_the_answer_is_the_same() {
    let (hub, _) = Hub::with_admin().await;
    hub.add("tom", Role::Viewer, false).await;
    let disable = PersonChange { disabled: Some(true), ..PersonChange::default() };
    hub.accounts.change_person(&Principal::local(0), "tom", &disable).await.unwrap();
    let fresh = NewPerson { name: "new".into(), ..NewPerson::default() };
    hub.accounts.add_person(&Principal::local(0), &fresh).await.unwrap();
    let mut told = Vec::new();
    for (name, password) in [
        ("nobody", PASSWORD),
        ("mara", "wrong password here"),
        ("tom", PASSWORD),
        ("new", PASSWORD),
        ("new", ""),
        ("", PASSWORD),
        ("no such\nname", PASSWORD),
    ] {
        let denied = hub.sign_in(name, password).await.expect_err("wrong");
        assert_eq!(denied.status(), 401, "{name}");
        told.push(denied.to_string());
    }
    told.dedup();
    assert_eq!(told.len(), 1, "{told:?}");
    // Text typed as a name may be a password, so only existing names are logged.
    let log = hub.log().await;
    assert!(log.iter().any(|row| row == "nobody sign-in nobody wrong"), "{log:?}");
    assert!(log.iter().any(|row| row == "mara sign-in mara wrong") && !log.iter().any(|row| row.contains("no such")));
    let begun = hub.sign_in(" MARA ", PASSWORD).await.expect("names are the same in capitals");
    assert!(!format!("{begun:?}").contains(begun.token.reveal()), "a token is never printed");
}

#[tokio::test]
async fn who_guesses_is_slowed_and_never_locks_anybody_out() {
    let (hub, _) = Hub::with_admin().await;
    for _ in 0..10 {
        assert_eq!(hub.sign_in("mara", "a wrong password").await.expect_err("wrong").status(), 401);
    }
    let denied = hub.sign_in("mara", PASSWORD).await.expect_err("also the right one waits");
    assert_eq!(denied, Denied::Throttled { retry_after: Duration::from_secs(30) });
    assert_eq!(hub.accounts.unwritten_sign_ins(), 1, "it is counted, and costs no row of the log");
    let elsewhere = SignIn { name: "mara".into(), password: secret(PASSWORD) };
    hub.accounts.sign_in(&elsewhere, &network(2), None).await.expect("from another network at once");
    hub.pass(Duration::from_secs(30));
    hub.sign_in("mara", PASSWORD).await.expect("after the wait");
}

#[tokio::test]
async fn an_operator_says_how_long_a_session_holds() {
    let (hub, begun) = Hub::with_admin().await;
    let session = async |token: &str| hub.accounts.session(token, &network(1)).await.expect("answered").is_some();
    hub.accounts.limit_sessions(minutes(60), minutes(150));
    hub.pass(minutes(60));
    assert!(!session(begun.token.reveal()).await, "not used for an hour");
    let token = hub.sign_in("mara", PASSWORD).await.unwrap().token;
    for _ in 0..2 {
        hub.pass(minutes(59));
        assert!(session(token.reveal()).await);
    }
    hub.pass(minutes(40));
    assert!(!session(token.reveal()).await, "150 min are over");
}

#[tokio::test]
async fn a_session_has_two_ends_and_its_token_is_nowhere() {
    let (hub, begun) = Hub::with_admin().await;
    let session = async |token: &str| hub.accounts.session(token, &network(1)).await.expect("answered").is_some();
    let token = begun.token.reveal();
    assert!(session(token).await && !session("").await && !session(&token[1..]).await);
    for _ in 0..6 {
        hub.pass(minutes(11 * 60));
        assert!(session(token).await, "used every 11 h");
    }
    hub.pass(minutes(12 * 60));
    assert!(!session(token).await, "not used for 12 h");
    let token = hub.sign_in("mara", PASSWORD).await.unwrap().token;
    for _ in 0..14 {
        hub.pass(minutes(11 * 60));
        assert!(session(token.reveal()).await);
    }
    hub.pass(minutes(14 * 60 / 2 * 2));
    assert!(!session(token.reveal()).await, "7 days are over");
    let file = std::fs::read(hub._folder.path().join(records::FILE)).expect("the file");
    let logged = std::fs::read(hub._folder.path().join("hub.db-wal")).unwrap_or_default();
    for kept in [file, logged] {
        let has = |text: &str| kept.windows(text.len()).any(|bytes| bytes == text.as_bytes());
        assert!(!has(token.reveal()) && !has(PASSWORD));
    }
}

#[tokio::test]
async fn sign_out_and_a_twenty_first_session_close_sockets() {
    let (hub, begun) = Hub::with_admin().await;
    let mut first = hub.accounts.watch(&begun.principal);
    assert_eq!(*first.borrow_and_update(), None);
    let second = hub.sign_in("mara", PASSWORD).await.unwrap();
    let watched = hub.accounts.watch(&second.principal);
    hub.accounts.sign_out(&second.principal).await.unwrap();
    assert_eq!(*watched.borrow(), Some(Ended::SignedOut));
    assert!(hub.accounts.session(second.token.reveal(), &network(1)).await.unwrap().is_none());
    for _ in 0..20 {
        assert!(!first.has_changed().unwrap());
        hub.pass(Duration::from_secs(1));
        hub.sign_in("mara", PASSWORD).await.unwrap();
    }
    assert_eq!(*first.borrow(), Some(Ended::SignedOut));
    assert!(hub.accounts.session(begun.token.reveal(), &network(1)).await.unwrap().is_none());
    let wanted = SignIn { name: "mara".into(), password: secret(PASSWORD) };
    let old = hub.sign_in("mara", PASSWORD).await.unwrap().token;
    hub.accounts.sign_in(&wanted, &network(1), Some(old.reveal())).await.unwrap();
    assert!(hub.accounts.session(old.reveal(), &network(1)).await.unwrap().is_none(), "the one that came along ends");
}

#[tokio::test]
async fn a_sign_in_after_the_clock_was_set_back_is_not_the_oldest() {
    let (hub, _) = Hub::with_admin().await;
    for _ in 0..20 {
        hub.sign_in("mara", PASSWORD).await.unwrap();
    }
    hub.clock.step(-3_600_000);
    let begun = hub.sign_in("mara", PASSWORD).await.unwrap();
    assert!(hub.accounts.session(begun.token.reveal(), &network(1)).await.unwrap().is_some());
}

#[tokio::test]
async fn old_rows_of_the_log_go_also_after_the_clock_was_years_ahead() {
    let (hub, _) = Hub::with_admin().await;
    hub.clock.step(2_000 * DAY);
    hub.sign_in("mara", PASSWORD).await.unwrap();
    hub.clock.step(-2_000 * DAY);
    hub.sign_in("mara", PASSWORD).await.unwrap();
    for wait in [401 * 24 * 60, 61] {
        hub.pass(minutes(wait));
        // The last one of the old rows stays until there is a later one.
        hub.sign_in("mara", PASSWORD).await.unwrap();
    }
    let log = hub.accounts.audit_log(&Principal::local(0), &LogFilter::default()).await.unwrap();
    let before = (hub.clock.wall() - 400 * DAY) / 1_000;
    assert!(log.entries.iter().all(|entry| entry.t >= before), "{:?}", log.entries);
}

#[tokio::test]
async fn what_makes_keys_and_admins_wants_the_password_again() {
    let (hub, begun) = Hub::with_admin().await;
    let again = async || hub.accounts.session(begun.token.reveal(), &network(1)).await.unwrap().expect("signed in");
    let person = NewPerson { name: "tom".into(), ..NewPerson::default() };
    hub.pass(minutes(15));
    let stale = again().await;
    assert_eq!(hub.accounts.add_person(&stale, &person).await, Err(Denied::Again));
    assert_eq!(hub.accounts.new_join(&stale, "main", &Default::default()).await.expect_err("stale"), Denied::Again);
    let key = NewServiceKey { name: "k".into(), scopes: vec![KeyScope::DataRead], expires: None };
    assert_eq!(hub.accounts.add_service_key(&stale, "main", &key).await, Err(Denied::Again));
    let wrong = hub.accounts.again(&stale, &Again { password: secret("not the password") }).await;
    assert_eq!(wrong.expect_err("wrong").status(), 401);
    assert_eq!(hub.accounts.add_person(&again().await, &person).await, Err(Denied::Again));
    hub.accounts.again(&stale, &Again { password: secret(PASSWORD) }).await.expect("right");
    hub.accounts.add_person(&again().await, &person).await.expect("fresh");
}

#[tokio::test]
async fn the_last_admin_of_the_hub_stays() {
    let (hub, begun) = Hub::with_admin().await;
    let by = &begun.principal;
    let demote = PersonChange { hub_admin: Some(false), ..PersonChange::default() };
    let disable = PersonChange { disabled: Some(true), ..PersonChange::default() };
    for change in [&demote, &disable] {
        let denied = hub.accounts.change_person(by, "mara", change).await.expect_err("the last one");
        assert_eq!(denied.status(), 409);
    }
    assert_eq!(hub.accounts.remove_person(by, "mara").await.expect_err("the last one").status(), 409);
    hub.add("tom", Role::Viewer, true).await;
    hub.accounts.change_person(by, "tom", &disable).await.expect("not the last");
    assert_eq!(hub.accounts.remove_person(by, "mara").await.expect_err("a disabled one cannot help").status(), 409);
    hub.accounts
        .change_person(by, "tom", &PersonChange { disabled: Some(false), ..PersonChange::default() })
        .await
        .unwrap();
    hub.accounts.remove_person(by, "mara").await.expect("tom is there");
    assert!(hub.accounts.session(begun.token.reveal(), &network(1)).await.unwrap().is_none());
}

#[tokio::test]
async fn a_change_of_rights_closes_sockets_and_counts_at_once() {
    let (hub, begun) = Hub::with_admin().await;
    hub.add("tom", Role::Viewer, false).await;
    let tom = hub.sign_in("tom", PASSWORD).await.unwrap();
    let team = tom.principal.teams[0].id.clone();
    assert_eq!(tom.principal.role_in(&team), Some(Role::Viewer));
    assert_eq!(hub.accounts.people(&tom.principal).await.expect_err("no admin").status(), 403);
    assert_eq!(hub.accounts.joins(&tom.principal, "main").await.expect_err("no admin").status(), 403);
    assert_eq!(hub.accounts.joins(&tom.principal, "other").await, Err(Denied::Unknown));
    let watched = hub.accounts.watch(&tom.principal);
    let role = PersonChange { role: Some(Role::Admin), ..PersonChange::default() };
    hub.accounts.change_person(&begun.principal, "tom", &role).await.unwrap();
    assert_eq!(*watched.borrow(), Some(Ended::Rights));
    assert_eq!(*hub.accounts.watch(&tom.principal).borrow(), Some(Ended::Rights), "known before, watched after");
    let now = hub.accounts.session(tom.token.reveal(), &network(1)).await.unwrap().expect("still signed in");
    assert_eq!(now.role_in(&team), Some(Role::Admin));
    let watched = hub.accounts.watch(&now);
    assert_eq!(*watched.borrow(), None);
    hub.accounts
        .change_person(&begun.principal, "tom", &PersonChange { disabled: Some(true), ..PersonChange::default() })
        .await
        .unwrap();
    assert_eq!(*watched.borrow(), Some(Ended::Disabled));
    assert!(hub.accounts.session(tom.token.reveal(), &network(1)).await.unwrap().is_none());
}

#[tokio::test]
async fn a_new_password_ends_all_sessions_but_the_one_that_set_it() {
    let (hub, begun) = Hub::with_admin().await;
    let other = hub.sign_in("mara", PASSWORD).await.unwrap();
    let (own, theirs) = (hub.accounts.watch(&begun.principal), hub.accounts.watch(&other.principal));
    let new = secret("another long sentence");
    let wrong =
        hub.accounts.set_password(&begun.principal, Some(&secret("no idea what")), &new).await.expect_err("wrong");
    assert_eq!((wrong.status(), *theirs.borrow()), (401, None));
    hub.accounts.set_password(&begun.principal, Some(&secret(PASSWORD)), &new).await.expect("right");
    assert_eq!((*own.borrow(), *theirs.borrow()), (None, Some(Ended::Password)));
    assert!(hub.accounts.session(other.token.reveal(), &network(1)).await.unwrap().is_none());
    assert!(hub.accounts.session(begun.token.reveal(), &network(1)).await.unwrap().is_some());
    assert_eq!(hub.sign_in("mara", PASSWORD).await.expect_err("the old one").status(), 401);
    hub.sign_in("mara", new.reveal()).await.expect("the new one");
}

#[tokio::test]
async fn a_reset_code_works_once_and_ends_all_sessions() {
    let (hub, begun) = Hub::with_admin().await;
    let made = hub.accounts.reset_person(&Principal::local(0), "mara").await.unwrap();
    let older = made.code.expect("a code");
    let code = hub.accounts.reset_person(&Principal::local(0), "mara").await.unwrap().code.expect("a code");
    let reset = |code: &Secret| Reset { code: code.clone(), password: secret("another long sentence") };
    assert_eq!(hub.accounts.reset_password(&reset(&older), &network(1)).await.expect_err("ended").status(), 401);
    let again = hub.accounts.reset_password(&reset(&code), &network(1)).await.expect("the code");
    assert_eq!(again.principal.who, begun.principal.who);
    assert_eq!(hub.accounts.reset_password(&reset(&code), &network(1)).await.expect_err("used").status(), 401);
    assert!(hub.accounts.session(begun.token.reveal(), &network(1)).await.unwrap().is_none());
    assert!(hub.accounts.session(again.token.reveal(), &network(1)).await.unwrap().is_some());
}

#[tokio::test]
async fn a_key_may_what_it_is_for_and_never_more_than_who_made_it() {
    let (hub, begun) = Hub::with_admin().await;
    hub.add("tom", Role::Admin, false).await;
    let tom = hub.sign_in("tom", PASSWORD).await.unwrap().principal;
    let wanted = |scopes: &[KeyScope]| NewServiceKey { name: "ci".into(), scopes: scopes.into(), expires: None };
    let denied = hub.accounts.add_service_key(&tom, "main", &wanted(&[KeyScope::HubAdmin])).await;
    assert_eq!(denied.expect_err("tom is none").status(), 403);
    for wrong in [&[][..], &[KeyScope::AgentWrite], &[KeyScope::AgentJoin]] {
        assert_eq!(hub.accounts.add_service_key(&tom, "main", &wanted(wrong)).await.expect_err("wrong").status(), 400);
    }
    let made = hub.accounts.add_service_key(&tom, "main", &wanted(&[KeyScope::DataRead])).await.unwrap();
    let key = hub.accounts.key(made.key.reveal(), &network(3)).await.unwrap().expect("it holds");
    assert!(key.allows(KeyScope::DataRead) && !key.allows(KeyScope::MetricsRead) && !key.is_hub_admin());
    assert_eq!(hub.accounts.joins(&key, "main").await.expect_err("not for that").status(), 403);
    let admin = hub.accounts.add_service_key(&begun.principal, "main", &wanted(&[KeyScope::HubAdmin])).await.unwrap();
    let admin = hub.accounts.key(admin.key.reveal(), &network(3)).await.unwrap().expect("it holds");
    assert!(admin.is_hub_admin());
    assert!(admin.ends.is_some_and(|ends| ends <= hub.clock.wall() + 90 * DAY), "90 days at most");
    let watched = hub.accounts.watch(&key);
    hub.accounts.end_service_key(&tom, "main", &made.id).await.unwrap();
    assert_eq!(*watched.borrow(), Some(Ended::Key));
    assert!(hub.accounts.key(made.key.reveal(), &network(3)).await.unwrap().is_none());
    assert_eq!(hub.accounts.end_service_key(&tom, "main", &made.id).await, Err(Denied::Unknown));
    let listed = hub.accounts.service_keys(&tom, "main").await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].network.as_deref(), Some("10.0.0.3"));
}

#[tokio::test]
async fn a_key_in_an_address_is_ended_and_a_wrong_one_ends_nothing() {
    let (hub, begun) = Hub::with_admin().await;
    let wanted = NewServiceKey { name: "ci".into(), scopes: vec![KeyScope::DataRead], expires: Some("never".into()) };
    let made = hub.accounts.add_service_key(&begun.principal, "main", &wanted).await.unwrap();
    let other = hub.accounts.add_service_key(&begun.principal, "main", &wanted).await.unwrap();
    // The id of one key with the secret of the other: strangers must not be able to end a key.
    let (text, foreign) = (made.key.reveal(), other.key.reveal());
    let forged = format!("{}{}", &text[..18], &foreign[18..]);
    for wrong in ["", "wg_s_x_y", &text[..text.len() - 1], &forged] {
        hub.accounts.leaked(wrong, &network(2)).await.unwrap();
        assert!(hub.accounts.key(wrong, &network(2)).await.unwrap().is_none());
    }
    assert!(hub.accounts.key(text, &network(3)).await.unwrap().is_some());
    hub.accounts.leaked(text, &network(3)).await.unwrap();
    assert!(hub.accounts.key(text, &network(3)).await.unwrap().is_none());
    assert!(hub.accounts.key(foreign, &network(3)).await.unwrap().is_some());
    assert!(hub.log().await[0].starts_with("hub key.leaked"));
    for _ in 0..20 {
        let _ = hub.accounts.key("wg_s_guess", &network(9)).await;
    }
    assert_eq!(hub.accounts.key("wg_s_guess", &network(9)).await.expect_err("too often").status(), 429);
    assert!(hub.accounts.key(foreign, &network(9)).await.unwrap().is_some(), "a good one is not concerned");
}

#[tokio::test]
async fn a_database_of_before_is_opened_with_all_that_was_in_it() {
    let (hub, begun) = Hub::with_admin().await;
    let instance = hub.accounts.instance().to_string();
    hub.accounts.close().await;
    let accounts = Accounts::open(hub._folder.path(), hub.clock.clone()).await.expect("opened again");
    assert!(accounts.is_set_up() && accounts.instance() == instance);
    assert!(accounts.session(begun.token.reveal(), &network(1)).await.unwrap().is_some(), "sessions outlive a start");
}

#[tokio::test]
async fn the_last_way_to_sign_in_that_works_stays_and_a_removed_one_closes_what_it_opened() {
    let (hub, begun) = Hub::with_admin().await;
    let mara = begun.principal;
    let who = Vouched { subject: "mara@lab".into(), email: None, roles: Vec::new(), login: None };
    hub.accounts.bind(&mara, &who).await.expect("another sign-in method");
    let other = hub.sign_in("mara", PASSWORD).await.expect("another window");
    let mut ends = hub.accounts.watch(&other.principal);
    let ways = hub.accounts.own_identities(&mara).await.expect("a list");
    let id = |kind: &str| ways.iter().find(|way| way.kind == kind).map(|way| way.id.clone()).expect("a way");
    let (password, proxy) = (id("password"), id("proxy"));
    let without_proxy = hub.accounts.remove_identity(&mara, &password, |kind, _| kind == "password").await;
    assert_eq!(without_proxy.expect_err("nobody could sign in").status(), 409, "this hub has no proxy any more");
    hub.pass(minutes(16));
    let old = hub.accounts.session(begun.token.reveal(), &network(1)).await.unwrap().expect("it holds");
    let late = hub.accounts.remove_identity(&old, &proxy, |_, _| true).await;
    assert_eq!(late, Err(Denied::Again));
    hub.accounts.again(&old, &Again { password: secret(PASSWORD) }).await.expect("the password once more");
    let fresh = hub.accounts.session(begun.token.reveal(), &network(1)).await.unwrap().expect("it holds");
    hub.accounts.remove_identity(&fresh, &proxy, |_, _| true).await.expect("removed");
    assert_eq!(*ends.borrow_and_update(), Some(Ended::Identity));
    assert!(hub.accounts.session(other.token.reveal(), &network(1)).await.unwrap().is_none());
    assert!(hub.accounts.session(begun.token.reveal(), &network(1)).await.unwrap().is_some(), "one's own goes on");
    assert_eq!(hub.accounts.remove_identity(&fresh, &password, |_, _| true).await.expect_err("the last").status(), 409);
}
